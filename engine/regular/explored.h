// An automaton explored as a whole, with dead ends removed: for languages with And or Not, whose emptiness only the
// states show, and for questions about all states.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "regular/cp_automaton.h"

namespace ag::regular {

class ExploredDfa final : public CpAutomaton {
 public:
  // Null when the language is empty. Throws GrammarError when more than `max_states` would be needed.
  static std::unique_ptr<ExploredDfa> explore(CpAutomaton& source, std::size_t max_states);
  // No string.
  static std::unique_ptr<ExploredDfa> nothing() { return std::unique_ptr<ExploredDfa>(new ExploredDfa); }

  State start() const override { return start_; }
  const Pieces& row(State state) override { return states_[state].row; }
  bool accepting(State state) override { return states_[state].label != kNoLabel; }
  std::uint32_t label(State state) override { return states_[state].label; }
  bool has_label(std::uint32_t label) const override;
  // Makes label 1 label 0, and so on.
  void shift_labels();
  // Takes the strings of labels away, and what leads to no others.
  void drop(const std::vector<std::uint32_t>& labels);
  std::uint32_t min_cost(State state, std::uint32_t label, bool quoted) override;

  std::size_t size() const { return states_.size(); }  // the dead state included
  std::size_t bytes() const override { return sizeof(*this) + bytes_; }
  // Whether a count of characters can be kept outside the automaton: after any character the string may end, and may go
  // on by a character of one byte. Then the lengths possible from a state are all from some bound on.
  bool free_length(bool quoted);
  // Whether from every state there are either none or infinitely many completions of each label.
  bool endless() const;

 private:
  struct Place {
    Pieces row;
    std::uint32_t label = kNoLabel;
  };
  void prune();
  const std::vector<std::uint32_t>& costs(bool quoted);

  std::vector<Place> states_{1};
  State start_ = kDead;
  std::size_t bytes_ = 0;
  std::vector<std::uint32_t> cost_[2];
};

// The strings of an explored automaton whose length in characters is within bounds. State = (state, characters read).
class BoundedDfa final : public CpAutomaton {
 public:
  BoundedDfa(std::unique_ptr<ExploredDfa> base, std::uint64_t min, std::uint64_t max);

  State start() const override { return start_; }  // kDead when no string is left
  const Pieces& row(State state) override;
  bool accepting(State state) override;
  std::uint32_t min_cost(State state, std::uint32_t label, bool quoted) override;
  bool counts() const override { return max_ != kNoMax && max_ - min_ > transient_ + period_; }
  // Far from the greatest length it makes no difference how far.
  State alike(State state, Runs& runs, bool escaped) override;
  std::size_t bytes() const override { return sizeof(*this) + base_->bytes() + bytes_; }

 private:
  using Bits = std::vector<std::uint64_t>;
  struct Place {
    State base = kDead;
    std::uint64_t count = 0;  // clipped at min when there is no maximum
    bool has_row = false;
    Pieces row;
  };
  State intern(State base, std::uint64_t count);
  bool completes(State base, std::uint64_t length) const;  // some completion has exactly this many characters
  bool live(State base, std::uint64_t count) const;
  // By state: where its pieces lead, each place once, and the cheapest character there.
  struct Edge {
    State to;
    std::uint32_t cost[2];  // plain, quoted
  };
  void measure();
  const std::vector<std::uint32_t>& exact_costs(std::uint64_t length, bool quoted);

  std::unique_ptr<ExploredDfa> base_;
  std::uint64_t min_, max_;
  Characters characters_;  // that occur
  std::vector<std::vector<Edge>> edges_;
  // lengths_[l]: the states with a completion of l characters; from transient_ on the rows repeat with period_.
  std::vector<Bits> lengths_;
  std::uint64_t transient_ = 0, period_ = 1;
  std::vector<std::vector<std::uint32_t>> exact_[2];
  std::vector<Place> places_{1};
  std::size_t bytes_ = 0;
  std::unordered_map<std::uint64_t, State> index_;
  State start_ = kDead;
};

}  // namespace ag::regular
