#include "grammar/components.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "grammar/refine.h"
#include "grammar/rules.h"

namespace ag {

Symbol Components::run(Symbol root) {
  nodes_.resize(open_.size());
  for (std::uint32_t i = 0; i < open_.size(); ++i) {
    if (!open_[i]->home) open_[i]->place = i;
  }
  root = resolve(root);
  if (Sharing::closed(root)) return root;
  const std::uint32_t node = root.rule->place;
  find_components(node);
  for (std::uint32_t i = 0; i < open_.size(); ++i) {
    if (!open_[i] || !nodes_[i].now) continue;
    open_[i]->home = nodes_[i].now.rule->home;
    open_[i]->place = nodes_[i].now.rule->place;
  }
  std::erase(open_, nullptr);
  return nodes_[node].now ? nodes_[node].now : root;
}

// What a symbol is behind all placeholders.
Symbol Components::resolve(Symbol symbol) {
  const auto behind = [](Symbol s) { return Sharing::closed(s) ? nullptr : s.rule->stands_for(); };
  Symbol end = symbol;
  for (std::size_t steps = 0; const Symbol* next = behind(end); ++steps) {
    if (!*next || steps > open_.size()) {  // never defined, or by itself
      end = dead();
      break;
    }
    end = *next;
  }
  while (Symbol* next = behind(symbol)) {
    if (*next == end) break;
    symbol = std::exchange(*next, end);
  }
  return Sharing::now(end);
}

// A rule that matches nothing. The empty symbol would not do: for some rules that is a part which they do not have.
Symbol Components::dead() {
  if (dead_) return dead_;
  Parts& parts = Parts::scratch(Parts::kBuild);
  auto rule = std::make_unique<ChoiceRule>(std::vector<Symbol>{});
  rule->parts(parts);
  const auto& description = parts.describe(Parts::of);
  const std::uint64_t hash = Interner::hash(description);
  dead_ = sharing_.find(hash, description);
  if (!dead_) dead_ = sharing_.publish(std::move(rule), hash, description);
  return dead_;
}

void Components::read(std::uint32_t node) {
  Node& n = nodes_[node];
  Parts& parts = Parts::scratch(Parts::kBuild);
  n.shareable = open_[node]->parts(parts);
  n.first = static_cast<std::uint32_t>(symbols_.size());
  n.count = static_cast<std::uint32_t>(parts.symbols().size());
  symbols_.insert(symbols_.end(), parts.symbols().begin(), parts.symbols().end());
  for (std::uint32_t k = n.first; k < symbols_.size(); ++k) {
    *symbols_[k] = resolve(*symbols_[k]);
    targets_.push_back(Sharing::closed(*symbols_[k]) ? kNone : symbols_[k]->rule->place);
  }
}

// Tarjan's algorithm, on a stack of its own. A component comes after all that it calls.
void Components::find_components(std::uint32_t root) {
  struct Visit {
    std::uint32_t node, next;
  };
  constexpr std::size_t kFew = 16;
  std::vector<Visit> visits;
  Members stack;
  visits.reserve(kFew);
  stack.reserve(kFew);
  symbols_.reserve(2 * kFew);
  targets_.reserve(2 * kFew);
  std::uint32_t count = 0;
  const auto enter = [&](std::uint32_t node) {
    read(node);
    nodes_[node].index = nodes_[node].low = count++;
    stack.push_back(node);
    visits.push_back({node, 0});
  };
  enter(root);
  while (!visits.empty()) {
    auto& [at, next] = visits.back();
    Node& n = nodes_[at];
    if (next < n.count) {
      const std::uint32_t to = targets_[n.first + next++];
      if (to == kNone) continue;
      if (nodes_[to].index == kNone) {
        enter(to);
      } else if (nodes_[to].component == kNone) {
        n.low = std::min(n.low, nodes_[to].index);
      }
      continue;
    }
    const std::uint32_t done = at;
    visits.pop_back();
    if (!visits.empty()) nodes_[visits.back().node].low = std::min(nodes_[visits.back().node].low, n.low);
    if (n.low != n.index) continue;
    const auto from = std::find(stack.rbegin(), stack.rend(), done).base() - 1;
    const Members members(from, stack.end());
    stack.erase(from, stack.end());
    for (std::uint32_t i = 0; i < members.size(); ++i) {
      nodes_[members[i]].component = components_;
      nodes_[members[i]].member = i;
    }
    close(members);
    ++components_;
  }
}

bool Components::calls(std::uint32_t node, std::uint32_t component) const {
  const Node& n = nodes_[node];
  return std::any_of(targets_.begin() + n.first, targets_.begin() + n.first + n.count,
                     [&](std::uint32_t to) { return to != kNone && nodes_[to].component == component; });
}

void Components::close(const Members& members) {
  bool shareable = members.size() <= kMostMembers;
  for (const std::uint32_t node : members) {
    const Node& n = nodes_[node];
    shareable = shareable && n.shareable;
    for (std::uint32_t k = n.first; k < n.first + n.count; ++k) {
      if (targets_[k] == kNone) continue;
      const Node& to = nodes_[targets_[k]];
      if (to.now) *symbols_[k] = to.now;
      shareable = shareable && !to.unshared;
    }
  }
  if (!shareable) {
    settle(members);
    for (const std::uint32_t node : members) nodes_[node].unshared = true;
  } else if (members.size() > 1 || calls(members[0], components_)) {
    close_cycle(members);
  } else {
    const std::uint32_t node = members[0];
    Parts& parts = Parts::scratch(Parts::kBuild);
    open_[node]->parts(parts);
    const auto& description = parts.describe(Parts::of);
    const std::uint64_t hash = Interner::hash(description);
    nodes_[node].now = sharing_.find(hash, description);
    if (!nodes_[node].now) nodes_[node].now = sharing_.publish(std::move(open_[node]), hash, description);
  }
}

Components::Own Components::own(std::uint32_t node) {
  const Node& n = nodes_[node];
  Own out;
  out.calls.reserve(n.count);
  Parts& parts = Parts::scratch(Parts::kBuild);
  open_[node]->parts(parts);
  std::uint32_t k = n.first;
  out.numbers = parts.describe([&](const Symbol& symbol) {
    const std::uint32_t to = targets_[k++];
    if (to == kNone || nodes_[to].component != components_) return Parts::of(symbol);
    out.calls.push_back(nodes_[to].member);
    return Parts::of_place(0);
  });
  out.symbols = n.count;
  return out;
}

std::vector<Components::Members> Components::calls_of(const std::vector<Own>& all) {
  std::vector<Members> out;
  for (const Own& own : all) out.push_back(own.calls);
  return out;
}

void Components::close_cycle(const Members& members) {
  const auto size = static_cast<std::uint32_t>(members.size());
  std::vector<Own> all;
  all.reserve(size);
  for (const std::uint32_t node : members) all.push_back(own(node));
  // Provisional classes: what a member is by itself, in an order that is the same whoever else is there.
  Members order(size), initial(size);
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return all[a].numbers < all[b].numbers; });
  for (std::uint32_t i = 1; i < size; ++i) {
    initial[order[i]] = initial[order[i - 1]] + (all[order[i]].numbers != all[order[i - 1]].numbers ? 1 : 0);
  }
  const bool distinct = initial[order.back()] + 1 == size;
  const Members classes = distinct ? initial : refine(initial, calls_of(all));
  Members of_class(*std::max_element(classes.begin(), classes.end()) + 1, kNone);  // class -> a member
  for (std::uint32_t i = 0; i < size; ++i) of_class[classes[i]] = std::min(of_class[classes[i]], i);

  for (const SharedRules* below : cycles_below(members)) {
    for (const auto& rule : below->rules) {
      const std::vector<Rule*> now = unfolded(all, of_class, classes, *rule);
      for (std::uint32_t i = 0; i < size && !now.empty(); ++i) nodes_[members[i]].now = {nullptr, now[classes[i]]};
      if (!now.empty()) return;
    }
  }

  std::vector<std::uint64_t> description;
  const Members chosen = canonical_order(all, initial, of_class, classes, &description);
  const std::uint64_t hash = Interner::hash(description);
  const SharedRules* shared = sharing_.find_component(hash, description);
  if (!shared) {
    std::vector<std::unique_ptr<Rule>> rules;
    Members kept;
    for (const std::uint32_t member : chosen) kept.push_back(members[member]);
    for (const std::uint32_t node : kept) {
      const Node& n = nodes_[node];
      for (std::uint32_t k = n.first; k < n.first + n.count; ++k) {
        if (targets_[k] == kNone || nodes_[targets_[k]].component != components_) continue;
        targets_[k] = members[of_class[classes[nodes_[targets_[k]].member]]];
        *symbols_[k] = {nullptr, open_[targets_[k]].get()};
      }
    }
    settle(kept);
    for (const std::uint32_t node : kept) rules.push_back(std::move(open_[node]));
    shared = sharing_.publish_component(std::move(rules), hash, description);
  }
  Members place(of_class.size());
  for (std::uint32_t i = 0; i < chosen.size(); ++i) place[classes[chosen[i]]] = i;
  for (std::uint32_t i = 0; i < size; ++i) nodes_[members[i]].now = {nullptr, shared->rules[place[classes[i]]].get()};
}

// What members lead to that may be a cycle.
std::vector<const SharedRules*> Components::cycles_below(const Members& members) const {
  std::vector<const SharedRules*> out;
  for (const std::uint32_t node : members) {
    const Node& n = nodes_[node];
    for (std::uint32_t k = n.first; k < n.first + n.count; ++k) {
      const Rule* rule = symbols_[k]->rule;
      if (rule && rule->home && rule->home->cyclic) out.push_back(rule->home);
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// A cycle that only unfolds one below it, as { x: [x, y] } does where { y: [y, y] }, is that one: the first class is tried
// as one of its rules, and what follows from that for the others. Gives the rule of each class; nothing where it differs.
std::vector<Rule*> Components::unfolded(const std::vector<Own>& all, const Members& of_class, const Members& classes,
                                        Rule& as) {
  std::vector<Rule*> now(of_class.size());
  Members todo{0};
  now[0] = &as;
  for (std::size_t done = 0; done < todo.size(); ++done) {
    const Own& own = all[of_class[todo[done]]];
    Parts& parts = Parts::scratch(Parts::kBuild);
    now[todo[done]]->parts(parts);
    const std::size_t plain = own.numbers.size() - own.symbols;
    if (parts.symbols().size() != own.symbols || parts.numbers().size() != plain ||
        !std::equal(parts.numbers().begin(), parts.numbers().end(), own.numbers.begin()))
      return {};
    auto call = own.calls.begin();
    for (std::size_t k = 0; k < own.symbols; ++k) {
      const Symbol symbol = *parts.symbols()[k];
      if (own.numbers[plain + k] != Parts::of_place(0)) {
        if (own.numbers[plain + k] != Parts::of(symbol)) return {};
        continue;
      }
      const std::uint32_t to = classes[*call++];
      if (!symbol.rule || (now[to] && now[to] != symbol.rule)) return {};
      if (!std::exchange(now[to], symbol.rule)) todo.push_back(to);
    }
  }
  return now;
}

// One member of each class, breadth first from the one from which the description comes out least; candidates are those
// of the rarest kind. All members are told apart by what can be reached from them, so the description tells them all.
Components::Members Components::canonical_order(const std::vector<Own>& all, const Members& initial,
                                                const Members& of_class, const Members& classes,
                                                std::vector<std::uint64_t>* description) const {
  Members often(all.size());
  for (const std::uint32_t member : of_class) ++often[initial[member]];
  const std::uint32_t rarest = initial[*std::min_element(of_class.begin(), of_class.end(), [&](auto a, auto b) {
    return std::pair(often[initial[a]], initial[a]) < std::pair(often[initial[b]], initial[b]);
  })];
  Members best, order, place(of_class.size());
  std::vector<std::uint64_t> text;
  std::size_t length = 2;
  for (const std::uint32_t member : of_class) length += all[member].numbers.size();
  text.reserve(length);
  order.reserve(of_class.size());
  for (const std::uint32_t start : of_class) {
    if (initial[start] != rarest) continue;
    order.assign(1, start);
    place.assign(place.size(), kNone);
    place[classes[start]] = 0;
    text.assign({Parts::kComponent, of_class.size()});
    bool less = best.empty(), more = false;
    for (std::size_t i = 0; i < order.size() && !more; ++i) {
      const Own& own = all[order[i]];
      const std::size_t from = text.size();
      text.insert(text.end(), own.numbers.begin(), own.numbers.end());
      auto code = text.end() - static_cast<std::ptrdiff_t>(own.symbols);
      for (const std::uint32_t call : own.calls) {
        const std::uint32_t to = classes[call];
        if (place[to] == kNone) {
          place[to] = static_cast<std::uint32_t>(order.size());
          order.push_back(of_class[to]);
        }
        code = std::find(code, text.end(), Parts::of_place(0));
        *code++ = Parts::of_place(place[to]);
      }
      if (less) continue;
      const auto to = std::min(text.size(), description->size());
      const auto [a, b] = std::mismatch(text.begin() + static_cast<std::ptrdiff_t>(from),
                                        text.begin() + static_cast<std::ptrdiff_t>(to),
                                        description->begin() + static_cast<std::ptrdiff_t>(from));
      if (a == text.begin() + static_cast<std::ptrdiff_t>(to)) continue;
      less = *a < *b;
      more = !less;
    }
    if (!less) continue;
    best.swap(order);
    description->swap(text);
  }
  return best;
}

// Least fixpoints, in rounds: what is found in a round rests on earlier rounds only, so that it is the same whatever the
// order of the members, and whichever of equal ones was kept.
void Components::settle(const Members& members) {
  std::vector<Members> callers(members.size());
  std::uint32_t round = 0;
  for (std::uint32_t i = 0; i < members.size(); ++i) nodes_[members[i]].member = i;
  for (std::uint32_t i = 0; i < members.size(); ++i) {
    const Node& n = nodes_[members[i]];
    for (std::uint32_t k = n.first; k < n.first + n.count; ++k) {
      const bool inside = targets_[k] != kNone && nodes_[targets_[k]].component == components_;
      if (inside)
        callers[nodes_[targets_[k]].member].push_back(i);
      else
        round = std::max(round, found_at(*symbols_[k]));
    }
    Rule& rule = *open_[members[i]];
    rule.nullable = false;
    rule.min_length = Rule::kInfinite;
    rule.found = round;
  }
  struct Facts {
    bool nullable;
    std::uint64_t min_length;
  };
  std::vector<Facts> facts(members.size());
  std::vector<std::uint32_t> asked(members.size());  // the round for which it is on the list
  Members now(members.size()), next;
  std::iota(now.begin(), now.end(), 0u);
  while (!now.empty()) {
    ++round;
    for (const std::uint32_t i : now) {
      Rule& rule = *open_[members[i]];
      rule.settle();
      facts[i] = {rule.compute_nullable(), rule.compute_min()};
    }
    next.clear();
    for (const std::uint32_t i : now) {
      Rule& rule = *open_[members[i]];
      if (facts[i].nullable == rule.nullable && facts[i].min_length == rule.min_length) continue;
      if (facts[i].min_length != rule.min_length) rule.found = round;
      rule.nullable = facts[i].nullable;
      rule.min_length = facts[i].min_length;
      for (const std::uint32_t caller : callers[i]) {
        if (std::exchange(asked[caller], round) != round) next.push_back(caller);
      }
    }
    now.swap(next);
  }
}

}  // namespace ag
