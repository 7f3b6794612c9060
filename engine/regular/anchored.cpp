#include "regular/anchored.h"

namespace ag::regular {

using Id = RegexStore::Id;

Anchored Anchors::begin() const {
  return {{RegexStore::kEmpty, RegexStore::kEpsilon, RegexStore::kEmpty, RegexStore::kEpsilon}, true};
}

Anchored Anchors::end() const {
  return {{RegexStore::kEmpty, RegexStore::kEmpty, RegexStore::kEpsilon, RegexStore::kEpsilon}, true};
}

Anchored Anchors::alt(const std::vector<Anchored>& options) {
  if (options.size() == 1) return options.front();
  Anchored out;
  for (const Anchored& o : options) out.has_anchor |= o.has_anchor;
  for (std::size_t side = 0; side < 4; ++side) {
    std::vector<Id> ids;
    for (const Anchored& o : options) ids.push_back(o.by[side]);
    out.by[side] = side > 0 && !out.has_anchor ? out.by[0] : store_.alt(std::move(ids));
  }
  return out;
}

Anchored Anchors::pair(const Anchored& a, const Anchored& b) {
  if (a.plain() && b.plain()) return plain(store_.concat(a.id(), b.id()));
  Anchored out;
  out.has_anchor = true;
  for (std::size_t l = 0; l < 2; ++l)
    for (std::size_t r = 0; r < 2; ++r) {
      const std::size_t outer = l + 2 * r, left = l,
                        right = 2 * r;  // left: not at the end; right: not at the beginning
      if (a.by[left] == a.by[outer] && b.by[right] == b.by[outer]) {  // neither asks about the edge between them
        out.by[outer] = store_.concat(a.by[outer], b.by[outer]);
        continue;
      }
      std::vector<Id> options{store_.concat(store_.nonempty(a.by[left]), store_.nonempty(b.by[right]))};
      // Where one side is empty, the other has the outer edges on both sides.
      if (store_.nullable(a.by[left])) options.push_back(store_.nonempty(b.by[outer]));
      if (store_.nullable(b.by[right])) options.push_back(store_.nonempty(a.by[outer]));
      if (store_.nullable(a.by[outer]) && store_.nullable(b.by[outer])) options.push_back(RegexStore::kEpsilon);
      out.by[outer] = store_.alt(std::move(options));
    }
  return out;
}

Anchored Anchors::concat(const std::vector<Anchored>& parts) {
  if (parts.empty()) return plain(RegexStore::kEpsilon);
  Anchored out = parts.back();
  for (std::size_t i = parts.size() - 1; i-- > 0;) out = pair(parts[i], out);
  return out;
}

Id Anchors::search(const Anchored& a) {
  const Id some = store_.repeat(RegexStore::kAny, 1, kNoMax);
  if (a.plain()) return store_.concat(RegexStore::kAll, store_.concat(a.id(), RegexStore::kAll));
  const auto before = [&](Id first, Id later) {  // nothing, or something before the match
    if (first == later) return store_.concat(RegexStore::kAll, first);
    return store_.alt({first, store_.concat(some, later)});
  };
  const auto at_end = before(a.by[3], a.by[2]), inside = before(a.by[1], a.by[0]);
  if (at_end == inside) return store_.concat(at_end, RegexStore::kAll);
  return store_.alt({at_end, store_.concat(inside, some)});
}

}  // namespace ag::regular
