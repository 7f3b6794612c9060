// Derivatives and costs of hash-consed expressions; their constructors are in derivative.cpp.

#include <algorithm>

#include "regular/derivative.h"

namespace ag::regular {

RegexStore::Id RegexStore::derivative(Id a, Cp cp) {
  if (memo_.size() < nodes_.size()) memo_.resize(nodes_.size() + 64, {0, kEmpty});
  if (memo_[a].first == stamp_) return memo_[a].second;
  const Nested nested(*this);
  spend(1);
  const Node node = nodes_[a];
  Id out = kEmpty;
  switch (node.kind) {
    case Kind::kEmpty:
    case Kind::kEpsilon:
      break;
    case Kind::kSet:
      out = sets_[node.a].contains(cp) ? kEpsilon : kEmpty;
      break;
    case Kind::kConcat: {
      std::vector<Id> options;  // one for each head that what stands before it lets through
      Id at = a;
      for (;;) {
        const Id h = head(at), t = tail(at);
        options.push_back(concat(derivative(h, cp), t));
        if (t == kEpsilon || !nullable(h)) break;
        at = t;
      }
      out = alt(std::move(options));
      break;
    }
    case Kind::kAlt:
    case Kind::kAnd: {
      std::vector<Id> parts(children_.begin() + node.a, children_.begin() + node.a + node.b);
      for (Id& part : parts) part = derivative(part, cp);
      out = node.kind == Kind::kAlt ? alt(std::move(parts)) : both(std::move(parts));
      break;
    }
    case Kind::kNot:
      out = negate(derivative(node.a, cp));
      break;
    case Kind::kRepeat: {
      const std::uint64_t min = node.min == 0 ? 0 : node.min - 1, max = node.max == kNoMax ? kNoMax : node.max - 1;
      const Id first = derivative(node.a, cp);
      out = first == kEmpty ? kEmpty : concat(first, repeat(node.a, min, max));
      break;
    }
  }
  if (memo_.size() < nodes_.size()) memo_.resize(nodes_.size() + 64, {0, kEmpty});
  memo_[a] = {stamp_, out};
  return out;
}

// The sets that a derivative of `a` may look at.
void RegexStore::collect_sets(Id a, std::vector<std::uint32_t>* out) {
  for (;;) {
    if (seen_.size() < nodes_.size()) seen_.resize(nodes_.size(), 0);
    if (seen_[a] == stamp_) return;
    seen_[a] = stamp_;
    const Node& node = nodes_[a];
    switch (node.kind) {
      case Kind::kSet:
        out->push_back(node.a);
        return;
      case Kind::kConcat:
        collect_sets(node.a, out);
        if (!nullable(node.a)) return;
        a = node.b;
        continue;
      case Kind::kAlt:
      case Kind::kAnd:
        for (std::uint32_t i = 0; i < node.b; ++i) collect_sets(children_[node.a + i], out);
        return;
      case Kind::kNot:
      case Kind::kRepeat:
        a = node.a;
        continue;
      default:
        return;
    }
  }
}

void RegexStore::derive(Id a, CpAutomaton::Pieces* out) {
  fuel_ = kRowFuel;
  ++stamp_;
  std::vector<std::uint32_t> used;
  collect_sets(a, &used);
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  // Scalars that are in the same sets have the same derivative.
  std::unordered_map<std::string, Id> known;
  each_class(used, [&](Cp lo, Cp hi, const std::string& signature) {
    const auto [it, fresh] = known.try_emplace(signature, kEmpty);
    if (fresh) {
      ++stamp_;
      it->second = derivative(a, lo);
    }
    append_piece(out, lo, hi, it->second);
  });
}

RegexStore::Join RegexStore::join(Id a) const {
  const Node& node = nodes_[a];
  if (node.kind == Kind::kNot) return Join::kNot;
  if (node.kind == Kind::kAnd) return Join::kAnd;
  return node.kind == Kind::kAlt && node.boolean ? Join::kOr : Join::kPart;
}

std::vector<RegexStore::Id> RegexStore::joined(Id a) const {
  const Node& node = nodes_[a];
  if (node.kind == Kind::kNot) return {node.a};
  return {children_.begin() + node.a, children_.begin() + node.a + node.b};
}

std::vector<std::uint32_t> RegexStore::sets_below(const std::vector<Id>& roots) const {
  std::vector<std::uint32_t> out;
  std::vector<Id> todo = roots;
  std::vector<bool> seen(nodes_.size(), false);
  while (!todo.empty()) {
    const Id a = todo.back();
    todo.pop_back();
    if (seen[a]) continue;
    seen[a] = true;
    const Node& node = nodes_[a];
    if (node.kind == Kind::kSet) out.push_back(node.a);
    if (node.kind == Kind::kConcat) todo.insert(todo.end(), {node.a, node.b});
    if (node.kind == Kind::kNot || node.kind == Kind::kRepeat) todo.push_back(node.a);
    if (node.kind == Kind::kAlt || node.kind == Kind::kAnd)
      todo.insert(todo.end(), children_.begin() + node.a, children_.begin() + node.a + node.b);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::uint32_t RegexStore::node_cost(Id a, bool quoted) {
  const Node& node = nodes_[a];
  switch (node.kind) {
    case Kind::kEpsilon:
      return 0;
    case Kind::kSet: {
      std::uint32_t best = kNoRest;
      for (const CpRange r : sets_[node.a].ranges())
        best = std::min(best, cost_of(cheapest(r.lo, r.hi, quoted), quoted));
      return best;
    }
    case Kind::kAlt: {
      std::uint32_t best = kNoRest;
      for (std::uint32_t i = 0; i < node.b; ++i) best = std::min(best, min_cost(children_[node.a + i], quoted));
      return best;
    }
    case Kind::kRepeat: {
      if (node.min == 0) return 0;
      const std::uint32_t one = min_cost(node.a, quoted);  // not zero: a nullable body has no minimum
      return node.min >= kNoRest / one ? kNoRest : static_cast<std::uint32_t>(one * node.min);
    }
    default:
      return kNoRest;
  }
}

std::uint32_t RegexStore::min_cost(Id a, bool quoted) {
  std::vector<std::uint32_t>& cost = cost_[quoted];
  if (cost.size() < nodes_.size()) cost.resize(nodes_.size(), kNoRest);
  std::vector<Id> spine;
  for (; cost[a] == kNoRest && nodes_[a].kind == Kind::kConcat; a = nodes_[a].b) spine.push_back(a);
  if (cost[a] == kNoRest) {
    const std::uint32_t one = node_cost(a, quoted);
    cost[a] = one;
  }
  for (auto it = spine.rbegin(); it != spine.rend(); ++it) {
    const std::uint32_t first = min_cost(nodes_[*it].a, quoted);
    cost[*it] = add_rest(first, cost[nodes_[*it].b]);
  }
  return spine.empty() ? cost[a] : cost[spine.front()];
}

RegexStore::Id RegexStore::clipped(Id a, Runs& runs, bool escaped) {
  if (const auto known = clipped_.find(a); known != clipped_.end()) return known->second;
  fuel_ = kRowFuel;
  Id out = a;
  try {
    out = clip(a, runs, escaped);
  } catch (const GrammarError&) {  // too large: it stays as it is
  }
  return clipped_[a] = out;
}

RegexStore::Id RegexStore::clip(Id a, Runs& runs, bool escaped) {
  if (const auto known = clipped_.find(a); known != clipped_.end()) return known->second;
  const Nested nested(*this);
  spend(1);
  const Node node = nodes_[a];
  Id out = a;
  switch (node.kind) {
    case Kind::kConcat: {
      std::vector<Id> parts;
      Id at = a;
      for (; nodes_[at].kind == Kind::kConcat; at = nodes_[at].b) parts.push_back(clip(nodes_[at].a, runs, escaped));
      out = clip(at, runs, escaped);
      for (auto it = parts.rbegin(); it != parts.rend(); ++it) out = concat(*it, out);
      break;
    }
    case Kind::kAlt: {
      std::vector<Id> parts(children_.begin() + node.a, children_.begin() + node.a + node.b);
      for (Id& part : parts) part = clip(part, runs, escaped);
      out = alt(std::move(parts));
      break;
    }
    case Kind::kRepeat: {
      std::uint64_t most = runs.longest();
      if (nodes_[node.a].kind == Kind::kSet) {
        Characters set;
        for (const CpRange r : sets_[nodes_[node.a].a].ranges()) {
          for (Cp c = r.lo; c <= std::min<Cp>(r.hi, 0x7f); ++c) set.set(static_cast<std::uint8_t>(c));
          set.other = set.other || r.hi > 0x7f;
        }
        most = runs.longest_run(set, escaped);
      }
      most += 2;  // a character that is begun before the token, and what may follow it
      out = repeat(clip(node.a, runs, escaped), std::min(node.min, most), node.max > most ? kNoMax : node.max);
      break;
    }
    default:
      break;
  }
  if (out != a) clipped_[a] = out;
  return out;
}

const CpAutomaton::Pieces& DerivativeAutomaton::row(State state) {
  const auto known = rows_.find(state);
  if (known != rows_.end()) return known->second;
  Pieces row;
  store_.derive(state, &row);
  row_bytes_ += 64 + row.size() * sizeof(Piece);
  return rows_.emplace(state, std::move(row)).first->second;
}

}  // namespace ag::regular
