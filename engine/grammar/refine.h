// Which nodes of a graph look the same however far one goes from them (bisimulation).
#pragma once

#include <cstdint>
#include <vector>

namespace ag {

// The coarsest refinement of the given classes in which nodes of one class have, position by position, successors of
// one class. Classes are numbered from 0 on, without gaps; nodes of one class must have equally many successors.
std::vector<std::uint32_t> refine(const std::vector<std::uint32_t>& classes,
                                  const std::vector<std::vector<std::uint32_t>>& successors);

}  // namespace ag
