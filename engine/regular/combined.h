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
  void spend_words(std::size_t words);

  // Bounds the work while it lives, and takes it off the compilation's Effort; spent, a GrammarError is thrown. One step
  // is the making of one node of an expression, or of 16 words of tuples.
  class Allowance {
   public:
    Allowance(PartTable& parts, std::uint64_t steps);
    ~Allowance();
    Allowance(const Allowance&) = delete;
    Allowance& operator=(const Allowance&) = delete;

   private:
    PartTable& parts_;
    std::uint64_t steps_;
  };

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

// The union of languages that are put together by And, Or and Not; a string's label is the first one that it is in.
// Not all of its states are live: ExploredDfa sees to that.
class CombinedAutomaton final : public CpAutomaton {
 public:
  CombinedAutomaton(PartTable& parts, const std::vector<RegexStore::Id>& languages);

  State start() const override { return start_; }
  const Pieces& row(State state) override;
  bool accepting(State state) override { return label(state) != kNoLabel; }
  std::uint32_t label(State state) override;

 private:
  // kSettled: whatever its value is, it changes nothing any more.
  enum class Value : std::uint8_t { kOpen, kNone, kAll, kSettled };
  // A node of the expressions, children before parents. A state's tuple has a word for each part, its own state, and
  // two bits for each other node: what is decided about it stays so.
  struct Join {
    RegexStore::Join kind = RegexStore::Join::kPart;
    std::uint32_t at = 0;               // among the parts, or among the others
    std::uint32_t first = 0, last = 0;  // of its children
  };
  static constexpr std::uint32_t kSettledPart = ~std::uint32_t{0};
  static constexpr std::size_t kMaxJoins = 4'000, kPerWord = 16;

  std::uint32_t read(RegexStore::Id id, std::unordered_map<RegexStore::Id, std::uint32_t>* known);
  template <class Part>
  void evaluate(const std::uint32_t* tuple, Part part);
  Value join_of(const Join& join) const;
  State intern(std::uint32_t* tuple);

  PartTable& parts_;
  std::vector<Join> joins_;
  std::vector<std::uint32_t> children_, languages_;  // joins
  std::vector<std::uint32_t> starts_;                // by part: its first state
  std::size_t others_ = 0;                           // joins that are no parts
  std::vector<Value> values_;                        // by join
  std::vector<bool> needed_;
  Tuples<std::uint32_t> tuples_;
  State start_ = kDead;
  Pieces row_;
  std::vector<std::uint32_t> columns_, targets_, raw_;
};

}  // namespace ag::regular
