// What the files of the bindings share.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "matcher/engine.h"

namespace ag {

struct PyGrammar {
  std::shared_ptr<const Grammar> grammar;
  SpecPtr spec;
};

// Token ids come as any integers: what is no id is refused, not wrapped around.
inline std::uint32_t token_id(std::int64_t id) {
  return id < 0 || id > 0xffff'fffe ? 0xffff'ffffu : static_cast<std::uint32_t>(id);
}

inline std::vector<std::uint32_t> token_ids(const std::vector<std::int64_t>& ids) {
  std::vector<std::uint32_t> out;
  for (auto id : ids) out.push_back(token_id(id));
  return out;
}

// Matchers, and fill_masks.
void bind_matcher(nanobind::module_& m);

}  // namespace ag
