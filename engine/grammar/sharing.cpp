#include "grammar/sharing.h"

#include <algorithm>

namespace ag {

namespace {
template <class T>
void make_distinct(std::vector<T>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}
}  // namespace

std::size_t TerminalSet::slot(const Terminal* terminal) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = (reinterpret_cast<std::uintptr_t>(terminal) * 0x9E3779B97F4A7C15ull) >> 32 & mask;
  while (slots_[at] && slots_[at].get() != terminal) at = (at + 1) & mask;
  return at;
}

void TerminalSet::insert(TerminalPtr terminal) {
  TerminalPtr& place = slots_[slot(terminal.get())];
  if (place) return;
  place = std::move(terminal);
  if (++used_ * 2 < slots_.size()) return;
  std::vector<TerminalPtr> old(slots_.size() * 4);
  old.swap(slots_);
  for (TerminalPtr& t : old) {
    if (t) slots_[slot(t.get())] = std::move(t);
  }
}

std::vector<TerminalPtr> TerminalSet::take() {
  std::vector<TerminalPtr> out;
  for (TerminalPtr& t : slots_) {
    if (t) out.push_back(std::move(t));
  }
  return out;
}

void Sharing::keep(Symbol symbol) {
  if (symbol.rule && symbol.rule->home) shared_.emplace_back(symbol.rule->home);
}

const SharedRules& Sharing::keep(Ref<const Interned> object) {
  shared_.push_back(Ref<const SharedRules>::adopt(static_cast<const SharedRules*>(object.leak())));
  return *shared_.back();
}

Symbol Sharing::now(Symbol symbol) {
  if (!symbol.rule) return symbol;
  if (!symbol.rule->home) {
    const Symbol* behind = symbol.rule->stands_for();
    if (!behind || !*behind || !closed(*behind)) return symbol;
    symbol = *behind;
  }
  return symbol.rule ? Symbol{nullptr, symbol.rule->home->rules[symbol.rule->place].get()} : symbol;
}

Symbol Sharing::keep(Interner::Found found) {
  if (!found.object) return {};
  return {nullptr, keep(std::move(found.object)).rules[found.way].get()};
}

Symbol Sharing::find(std::uint64_t hash, Description description) { return keep(interner_->find(hash, description)); }

Symbol Sharing::find_named(std::uint64_t name) { return keep(interner_->find_named(name)); }

void Sharing::name(Symbol symbol, std::uint64_t name) {
  if (symbol.rule && symbol.rule->home) interner_->name(*symbol.rule->home, symbol.rule->place, name);
}

const SharedRules* Sharing::find_component(std::uint64_t hash, Description description) {
  Interner::Found found = interner_->find(hash, description);
  return found.object ? &keep(std::move(found.object)) : nullptr;
}

// Holds what its rules are made of.
void Sharing::hold_parts(SharedRules& fresh) {
  static thread_local std::vector<const Terminal*> terminals;
  static thread_local std::vector<const SharedRules*> below;
  terminals.clear();
  below.clear();
  for (const auto& rule : fresh.rules) {
    Parts& parts = Parts::scratch(Parts::kHold);
    rule->parts(parts);
    for (const Symbol* s : parts.symbols()) {
      if (s->terminal) terminals.push_back(s->terminal);
      if (s->rule && s->rule->home != &fresh) below.push_back(s->rule->home);
    }
  }
  make_distinct(terminals);
  make_distinct(below);
  fresh.terminals.reserve(terminals.size());
  for (const Terminal* t : terminals) fresh.terminals.push_back(terminals_.at(t));
  fresh.below.reserve(below.size());
  for (const SharedRules* other : below) fresh.below.emplace_back(other);
}

// Where another came first, its rules are what these are now, for all who still know these.
const SharedRules& Sharing::publish(const Ref<SharedRules>& fresh, Description description,
                                    std::span<const Interner::Way> ways) {
  const SharedRules& now = keep(interner_->publish(*fresh, description, ways));
  if (&now == fresh.get()) return now;
  for (const auto& rule : fresh->rules) rule->home = &now;
  shared_.emplace_back(fresh.get());
  return now;
}

Symbol Sharing::publish(std::unique_ptr<Rule> rule, std::uint64_t hash, Description description) {
  const auto fresh = Ref<SharedRules>::adopt(new SharedRules(*interner_));
  fresh->rules.push_back(std::move(rule));
  Rule& own = *fresh->rules[0];
  own.home = fresh.get();
  own.place = 0;
  own.settle();
  own.nullable = own.compute_nullable();
  own.min_length = own.compute_min();
  own.found = 0;
  hold_parts(*fresh);
  for (const auto& other : fresh->below) own.found = std::max(own.found, other->latest);
  fresh->latest = own.found;
  const Interner::Way alone{0, hash};
  return {nullptr, publish(fresh, description, {&alone, 1}).rules[0].get()};
}

const SharedRules* Sharing::publish_component(std::vector<std::unique_ptr<Rule>> rules, std::uint64_t hash,
                                              Description description) {
  const auto fresh = Ref<SharedRules>::adopt(new SharedRules(*interner_));
  fresh->rules = std::move(rules);
  fresh->cyclic = true;
  for (std::uint32_t i = 0; i < fresh->rules.size(); ++i) {
    Rule& rule = *fresh->rules[i];
    rule.home = fresh.get();
    rule.place = i;
    fresh->latest = std::max(fresh->latest, rule.found);
  }
  hold_parts(*fresh);
  std::vector<Interner::Way> ways{{SharedRules::kTogether, hash}};
  for (std::uint32_t i = 0; i < fresh->rules.size(); ++i) {
    Parts& parts = Parts::scratch(Parts::kHold);
    fresh->rules[i]->parts(parts);
    ways.emplace_back(i, Interner::hash(parts.describe(Parts::of)));
  }
  return &publish(fresh, description, ways);
}

}  // namespace ag
