// Expressions with anchors, exactly: each is kept as four plain languages, for what stands on its two sides.
#pragma once

#include <array>
#include <vector>

#include "regular/derivative.h"

namespace ag::regular {

// by[l + 2 * r]: the strings it matches where its left edge is (l = 1) or is not the text's beginning, and its right
// edge is (r = 1) or is not the text's end. An expression without anchors has the same language in all four.
struct Anchored {
  std::array<RegexStore::Id, 4> by{};
  bool has_anchor = false;
  bool plain() const { return !has_anchor; }
  RegexStore::Id id() const { return by[0]; }
};

class Anchors {
 public:
  explicit Anchors(RegexStore& store) : store_(store) {}

  Anchored plain(RegexStore::Id id) const { return {{id, id, id, id}, false}; }
  Anchored begin() const;
  Anchored end() const;
  Anchored alt(const std::vector<Anchored>& options);
  Anchored concat(const std::vector<Anchored>& parts);

  RegexStore::Id whole(const Anchored& a) const { return a.by[3]; }
  RegexStore::Id search(const Anchored& a);

 private:
  Anchored pair(const Anchored& a, const Anchored& b);
  RegexStore& store_;
};

}  // namespace ag::regular
