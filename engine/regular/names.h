// Sorted sets of names as automata: the keys of an object (labelled), the values of an enum (not).
//
// A state is the range [lo, hi) of names that begin with what was read, the same for forbidden names, the depth, and
// the state of other keys' automaton, whose labels are their classes. A range that is empty is forgotten, so all other
// keys share their states.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "regular/cp_automaton.h"

namespace ag::regular {

class NameAutomaton final : public CpAutomaton {
 public:
  // Both lists are sorted bytewise, distinct, and UTF-8.
  NameAutomaton(std::vector<std::string> names, std::vector<std::string> forbidden, CpAutomatonPtr others);

  State start() const override { return start_; }
  const Pieces& row(State state) override;
  bool accepting(State state) override { return places_[state].label != kNone; }
  std::uint32_t label(State state) override { return places_[state].label; }
  Terminal::Range range(State state) override;
  std::uint32_t min_cost(State state, std::uint32_t label, bool quoted) override;

  bool has_label(std::uint32_t label) const override {
    return label < names_.size() || others_->has_label(label - static_cast<std::uint32_t>(names_.size()));
  }
  std::size_t bytes() const override { return sizeof(*this) + bytes_; }

 private:
  static constexpr std::uint32_t kNone = kNoLabel;
  struct Span {
    std::uint32_t lo = 0, hi = 0;
    bool empty() const { return lo == hi; }
  };
  struct Place {
    Span names, forbidden;
    std::uint32_t depth = 0;  // bytes read, while a span is not empty
    State others = kDead;
    std::uint32_t label = kNone;
    bool has_row = false;
    Pieces row;
  };

  State intern(Place place);
  std::uint32_t label_of(const Place& place);
  // The part of `span` whose names go on with a scalar in place, per scalar, in order.
  struct Child {
    Cp cp;
    Span span;
    std::uint32_t depth;
  };
  static std::vector<Child> children(const std::vector<std::string>& names, Span span, std::uint32_t depth);

  std::vector<std::string> names_, forbidden_;
  CpAutomatonPtr others_;
  std::vector<Place> places_;
  std::unordered_map<std::uint64_t, std::vector<State>> index_;
  State start_ = kDead;
  std::size_t bytes_ = 0;
};

}  // namespace ag::regular
