// What a builder shares with other builders of its pool: it finds rules that are there, and publishes new ones.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "grammar/parts.h"
#include "grammar/shared_rules.h"

namespace ag {

// Terminals by where they are.
class TerminalSet {
 public:
  void insert(TerminalPtr terminal);
  const TerminalPtr& at(const Terminal* terminal) const { return slots_[slot(terminal)]; }
  std::vector<TerminalPtr> take();

 private:
  std::size_t slot(const Terminal* terminal) const;
  std::vector<TerminalPtr> slots_ = std::vector<TerminalPtr>(32);  // as many as a power of two
  std::size_t used_ = 0;
};

class Sharing {
 public:
  explicit Sharing(std::shared_ptr<Interner> interner) : interner_(std::move(interner)) {}

  const std::shared_ptr<Interner>& interner() const { return interner_; }
  // Terminals and shared rules that symbols name are kept here until they are taken.
  void keep(TerminalPtr terminal) { terminals_.insert(std::move(terminal)); }
  void keep(Symbol symbol);
  std::vector<Ref<const SharedRules>> take_shared() { return std::move(shared_); }
  std::vector<TerminalPtr> take_terminals() { return terminals_.take(); }

  // Whether what it is made of is settled: it is no rule, or one that is shared.
  static bool closed(Symbol symbol) { return !symbol.rule || symbol.rule->home; }
  // What a symbol is now: not a placeholder of something closed, nor a rule that is equal to a shared one.
  static Symbol now(Symbol symbol);

  // The rule of this description, where there is one.
  Symbol find(std::uint64_t hash, Description description);
  Symbol find_named(std::uint64_t name);
  void name(Symbol symbol, std::uint64_t name);
  // The rule, or one that another thread has published meanwhile.
  Symbol publish(std::unique_ptr<Rule> rule, std::uint64_t hash, Description description);
  // The same for rules that call one another, in an order that belongs to the description. Settled by the caller.
  const SharedRules* find_component(std::uint64_t hash, Description description);
  const SharedRules* publish_component(std::vector<std::unique_ptr<Rule>> rules, std::uint64_t hash,
                                       Description description);

 private:
  const SharedRules& keep(Ref<const Interned> object);
  Symbol keep(Interner::Found found);
  const SharedRules& publish(const Ref<SharedRules>& fresh, Description description,
                             std::span<const Interner::Way> ways);
  void hold_parts(SharedRules& fresh);

  std::shared_ptr<Interner> interner_;
  std::vector<Ref<const SharedRules>> shared_;
  TerminalSet terminals_;
};

}  // namespace ag
