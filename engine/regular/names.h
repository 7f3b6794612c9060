// Sorted sets of names as automata: the keys of an object (labelled), the values of an enum (not).
//
// A state is the range [lo, hi) of names that begin with what was read, the same for forbidden names, the depth, and
// the states of the classes of other keys. A range that is empty is forgotten, so all other keys share their states.
// Precondition: the automaton of class j holds no string of a class before j.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "regular/cp_automaton.h"

namespace ag::regular {

class NameAutomaton final : public CpAutomaton {
 public:
  // Both lists are sorted bytewise, distinct, and UTF-8.
  NameAutomaton(std::vector<std::string> names, std::vector<std::string> forbidden,
                std::vector<CpAutomatonPtr> classes);

  State start() const override { return start_; }
  const Pieces& row(State state) override;
  bool accepting(State state) override { return places_[state].label != kNone; }
  std::uint32_t label(State state) override { return places_[state].label; }
  Terminal::Range range(State state) override;
  std::uint32_t min_cost(State state, std::uint32_t label, bool quoted) override;

  bool has_label(std::uint32_t label) const override {
    if (label < names_.size()) return true;
    const std::size_t j = label - names_.size();  // classes after one that has every key are not kept
    return j < classes_.size() && classes_[j]->start() != kDead;
  }
  std::size_t bytes() const override { return sizeof(*this) + bytes_; }

 private:
  static constexpr std::uint32_t kNone = 0xffff'ffff;
  struct Span {
    std::uint32_t lo = 0, hi = 0;
    bool empty() const { return lo == hi; }
  };
  struct Place {
    Span names, forbidden;
    std::uint32_t depth = 0;   // bytes read, while a span is not empty
    std::uint32_t others = 0;  // index of the classes' states; 0 when all are dead
    std::uint32_t label = kNone;
    bool has_row = false;
    Pieces row;
  };

  State intern(Place place);
  std::uint32_t intern_others(std::vector<State> states);
  std::uint32_t label_of(const Place& place);
  // The part of `span` whose names go on with a scalar in place, per scalar, in order.
  struct Child {
    Cp cp;
    Span span;
    std::uint32_t depth;
  };
  static std::vector<Child> children(const std::vector<std::string>& names, Span span, std::uint32_t depth);

  std::vector<std::string> names_, forbidden_;
  std::vector<CpAutomatonPtr> classes_;
  std::vector<Place> places_;
  std::vector<std::vector<State>> others_;
  std::map<std::vector<State>, std::uint32_t> others_index_;
  std::unordered_map<std::uint64_t, std::vector<State>> index_;
  State start_ = kDead;
  std::size_t bytes_ = 0;
};

}  // namespace ag::regular
