// What a grammar will need soon: states of its terminals whose masks are worth building before they are asked for.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/rule.h"
#include "vocab/vocabulary.h"

namespace ag {

struct WarmState {
  Terminal* terminal;
  Terminal::State state;
  std::uint64_t cost;  // tokens that begin with a byte which may follow: what a build looks at, at most
};

// States that are reached from the roots, the dearest first, `top` at most. Terminals are found by following the rules,
// without regard to the order in which a reply comes to them, at most `most` rule positions; roots in `known` are left
// out, with all that only they reach.
std::vector<WarmState> warm_states(const Vocabulary& vocab, const std::vector<const Rule*>& roots,
                                   const std::vector<const Rule*>& known, std::size_t top, std::size_t most = 4'096);

}  // namespace ag
