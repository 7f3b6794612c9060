// The rules that grammars of any kind are made of: sequence, choice, repetition, token sets, JSON arrays, references.
#pragma once

#include <memory>
#include <vector>

#include "grammar/rule.h"

namespace ag {

// States 0..n: how many children are done.
class SeqRule final : public Rule {
 public:
  explicit SeqRule(std::vector<Symbol> children) : children_(std::move(children)) {}
  bool parts(Parts& out) const override;
  void expand(std::uint32_t state, const Payload& payload, Edges& out) const override;
  bool is_tail(std::uint32_t to) const override { return to == children_.size(); }
  std::uint64_t min_cost(std::uint32_t state, const Payload&) const override;
  void write_min(std::uint32_t state, const Payload&, Ending& out) const override;
  bool compute_nullable() const override;
  std::size_t bytes() const override { return sizeof *this + children_.size() * sizeof(Symbol); }

 private:
  std::vector<Symbol> children_;
};

// States 0 (choose) and 1 (done).
class ChoiceRule final : public Rule {
 public:
  explicit ChoiceRule(std::vector<Symbol> options) : options_(std::move(options)) {}
  bool parts(Parts& out) const override;
  void expand(std::uint32_t state, const Payload& payload, Edges& out) const override;
  bool is_tail(std::uint32_t to) const override { return to == 1; }
  std::uint64_t min_cost(std::uint32_t state, const Payload&) const override;
  void write_min(std::uint32_t state, const Payload&, Ending& out) const override;
  bool compute_nullable() const override;
  std::size_t bytes() const override { return sizeof *this + options_.size() * sizeof(Symbol); }

 private:
  std::vector<Symbol> options_;
};

// A placeholder of Builder::reserve(): one body, set later. finish() puts the body in its place.
class RefRule final : public Rule {
 public:
  Symbol body;
  Symbol* stands_for() override { return &body; }
  void expand(std::uint32_t state, const Payload& payload, Edges& out) const override;
  bool is_tail(std::uint32_t to) const override { return to == 1; }
  std::uint64_t min_cost(std::uint32_t state, const Payload&) const override;
  void write_min(std::uint32_t state, const Payload&, Ending& out) const override;
  bool compute_nullable() const override { return is_nullable(body); }
  std::size_t bytes() const override { return sizeof *this; }
};

// One of some token ids. States 0 and 1.
class TokenRule final : public Rule {
 public:
  explicit TokenRule(std::vector<std::uint32_t> ids);
  bool parts(Parts& out) const override;
  void expand(std::uint32_t state, const Payload& payload, Edges& out) const override;
  bool is_tail(std::uint32_t to) const override { return to == 1; }
  std::uint64_t min_cost(std::uint32_t state, const Payload&) const override { return state == 0 ? 1 : 0; }
  void write_min(std::uint32_t state, const Payload&, Ending& out) const override;
  bool compute_nullable() const override { return false; }
  std::size_t bytes() const override { return sizeof *this + ids_.size() * 4; }

 private:
  std::vector<std::uint32_t> ids_;
};

// item{min,max} with an optional separator. The payload's word is the count, clipped where counting no longer matters.
// States: 0 between items, 1 after a separator.
class RepeatRule final : public Rule {
 public:
  RepeatRule(Symbol item, std::uint64_t min, std::uint64_t max, Symbol separator)
      : item_(item), separator_(separator), min_(min), max_(max) {}
  bool parts(Parts& out) const override;
  void expand(std::uint32_t state, const Payload& payload, Edges& out) const override;
  bool is_tail(std::uint32_t to) const override { return to == 0 && max_ == 1; }
  std::uint64_t min_cost(std::uint32_t state, const Payload& payload) const override;
  void write_min(std::uint32_t state, const Payload& payload, Ending& out) const override;
  bool compute_nullable() const override { return min_ == 0 || is_nullable(item_); }
  std::size_t bytes() const override { return sizeof *this; }

 private:
  Payload count(std::uint64_t n) const { return {max_ == kNoMax ? std::min(n, std::max<std::uint64_t>(min_, 1)) : n}; }
  Symbol item_, separator_;
  std::uint64_t min_, max_;
};

// A JSON array. The payload's word is the number of items, clipped. States: 0 before '[', 1 after it, 2 after an item,
// 3 after ',', 4 done.
class ArrayRule final : public Rule {
 public:
  ArrayRule(ArraySpec spec, TerminalPool& pool);
  static void describe(const ArraySpec& spec, Parts& out);
  bool parts(Parts& out) const override;
  void expand(std::uint32_t state, const Payload& payload, Edges& out) const override;
  bool is_tail(std::uint32_t to) const override { return to == 4; }
  std::uint64_t min_cost(std::uint32_t state, const Payload& payload) const override;
  void write_min(std::uint32_t state, const Payload& payload, Ending& out) const override;
  bool compute_nullable() const override { return false; }
  void settle() override;
  std::size_t bytes() const override { return sizeof *this + spec_.prefix.size() * sizeof(Symbol); }

 private:
  Symbol item(std::uint64_t index) const { return index < spec_.prefix.size() ? spec_.prefix[index] : spec_.item; }
  bool has_item(std::uint64_t index) const { return index < max_ && is_productive(item(index)); }
  Payload count(std::uint64_t n) const;
  std::uint64_t items_cost(std::uint64_t from) const;
  ArraySpec spec_;
  std::uint64_t max_;
  TerminalPtr open_, close_first_, close_, comma_;
};

}  // namespace ag
