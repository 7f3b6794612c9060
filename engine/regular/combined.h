// And, Or and Not of expressions, followed side by side: a state is the tuple of the parts' own states, so that a part
// is derived once, however many combinations it occurs in.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "regular/derivative.h"
#include "regular/tuples.h"

namespace ag::regular {

// The parts of an expression, each with its table: rows over classes of scalars that no set of the store tells apart.
// Automata of one store share them. The store must not get new sets meanwhile, other than unions of those it has.
class PartTable {
 public:
  static constexpr std::uint32_t kNothing = 0, kEverything = 1;  // states of the parts {} and "any string"
  struct Span {
    Cp lo, hi;
    std::uint32_t of_class;
  };

  PartTable(RegexStore& store, const std::vector<RegexStore::Id>& roots);

  RegexStore& store() { return store_; }
  std::size_t classes() const { return samples_.size(); }
  const std::vector<Span>& spans() const { return spans_; }
  std::uint32_t state(RegexStore::Id id);
  bool accepting(std::uint32_t state) const { return store_.nullable(ids_[state]); }
  // By class: the state that follows. Good until the next call.
  const std::uint32_t* row(std::uint32_t state);
  // Bounds the work of everything done from here on; spent, a GrammarError is thrown. One is the making of one node of
  // an expression, or of 64 words of a tuple.
  void allow(std::uint64_t work);
  void spend_words(std::size_t words);

 private:
  static constexpr std::uint32_t kUnknown = ~std::uint32_t{0};
  RegexStore& store_;
  std::vector<Span> spans_;
  std::vector<Cp> samples_;  // by class: one of its scalars
  std::vector<RegexStore::Id> ids_;
  std::unordered_map<RegexStore::Id, std::uint32_t> index_;
  std::vector<std::uint32_t> rows_;  // by state and class; kUnknown first where a row was not made
  std::uint64_t words_left_ = ~std::uint64_t{0};
};

// Not all of its states are live: ExploredDfa sees to that.
class CombinedAutomaton final : public CpAutomaton {
 public:
  CombinedAutomaton(PartTable& parts, RegexStore::Id root);

  State start() const override { return start_; }
  const Pieces& row(State state) override;
  bool accepting(State state) override;

 private:
  // A node of the expression as a tree, children before parents. Its parts stand next to each other in a tuple.
  struct Join {
    RegexStore::Join kind = RegexStore::Join::kPart;
    std::uint32_t children = 0;         // how many joins before this one end in it: see evaluate()
    std::uint32_t first = 0, last = 0;  // of its parts
  };
  enum class Value : std::uint8_t { kNone, kAll, kOpen, kSettled };
  static constexpr std::uint32_t kSettledPart = ~std::uint32_t{0};  // whatever this part says changes nothing any more
  static constexpr std::size_t kMaxParts = 1'000;

  void read(RegexStore::Id id);
  std::size_t width() const { return starts_.size(); }
  template <class Part>
  Value evaluate(const std::uint32_t* tuple, Part part);
  State intern(std::uint32_t* tuple);

  PartTable& parts_;
  std::vector<Join> joins_;
  std::vector<std::uint32_t> starts_;  // by part: its first state
  std::vector<Value> values_;          // by join
  std::vector<Value> stack_;
  Tuples<std::uint32_t> tuples_;       // by state: one word for each part
  State start_ = kDead;
  Pieces row_;
  std::vector<std::uint32_t> columns_, targets_, raw_;
};

}  // namespace ag::regular
