// JSON arrays some of whose items are counted (JSON Schema's contains).
#pragma once

#include <vector>

#include "grammar/rule.h"

namespace ag {

struct CountedArraySpec {
  // One way to be an item: its value, and for which bounds it counts (bit j: bounds[j]). A value that counts for a
  // bound with a maximum is in no cell that does not count for it.
  struct Cell {
    Symbol value;
    std::uint32_t counts;
  };
  struct Bound {
    std::uint64_t min, max;
  };
  std::vector<std::vector<Cell>> prefix;  // by position
  std::vector<Cell> item;                 // after the prefix
  std::vector<Bound> bounds;
  std::uint64_t min_items = 0;
  std::uint64_t max_items = kNoMax;
  Whitespace whitespace = Whitespace::kFlexible;
};

// The payload's word numbers the pair (items so far, counts so far), each clipped where it no longer matters. A table
// holds the cost of a shortest end from each such place, so that no place without one is ever entered. States: 0 before
// '[', 1 after it, 2 after an item, 3 after ',', 4 done.
class CountedArrayRule final : public Rule {
 public:
  static constexpr std::uint64_t kMaxPlaces = 1u << 20;
  // How many places there are; the rule must not be made when they are more than kMaxPlaces.
  static std::uint64_t places(const CountedArraySpec& spec);

  CountedArrayRule(CountedArraySpec spec, TerminalPool& pool);
  bool parts(Parts& out) const override;
  void expand(std::uint32_t state, const Payload& payload, Edges& out) const override;
  bool is_tail(std::uint32_t to) const override { return to == 4; }
  std::uint64_t min_cost(std::uint32_t state, const Payload& payload) const override;
  void write_min(std::uint32_t state, const Payload& payload, Ending& out) const override;
  bool compute_nullable() const override { return false; }
  void settle() override;
  std::size_t bytes() const override;

 private:
  using Cell = CountedArraySpec::Cell;
  static std::uint64_t last_count(const CountedArraySpec& spec);
  static std::uint64_t last_of(const CountedArraySpec::Bound& b) { return b.max == kNoMax ? b.min : b.max; }

  std::uint64_t items_at(std::uint64_t place) const { return place / per_count_; }
  const std::vector<Cell>& cells_at(std::uint64_t place) const;
  bool may_close(std::uint64_t place) const;
  // The place after one more item of this cell, or kInfinite when it may not come.
  std::uint64_t after(std::uint64_t place, const Cell& cell) const;
  std::uint64_t item_cost(std::uint64_t place, const Cell& cell) const;
  const Cell* cheapest(std::uint64_t place) const;

  CountedArraySpec spec_;
  std::uint64_t last_count_;         // the item count stops here: at max_items, or where it no longer matters
  std::uint64_t per_count_ = 1;      // places for each item count
  std::vector<std::uint64_t> rest_;  // place -> cost of a shortest end, before ']' or ','
  TerminalPtr open_, close_first_, close_, comma_;
};

}  // namespace ag
