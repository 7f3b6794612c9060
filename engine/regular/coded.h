// Spells an automaton over decoded strings in bytes: as plain UTF-8, or as a JSON string (quotes included), which is
// the preimage of the language under the JSON decoder: every escaped spelling of each string, and nothing else.
//
// A state is a decoder mode and a state of the automaton. Inside a character (UTF-8 tail, \u escape) the mode carries
// the interval of scalar values still possible; as soon as the automaton moves uniformly over it, the interval and the
// source are forgotten and only the target is kept, so that few states exist. A pending character that no live
// transition can finish is dead.
#pragma once

#include <unordered_map>
#include <vector>

#include "regular/cp_automaton.h"

namespace ag::regular {

class CodedTerminal final : public TableTerminal {
 public:
  struct Options {
    bool quoted = true;
    bool counted = false;  // flag units and the close
    bool labelled = false;
    std::uint32_t others_begin = 0;
  };
  CodedTerminal(CpAutomatonPtr automaton, Options options);

  bool labelled() const override { return options_.labelled; }
  std::uint32_t others_begin() const override { return options_.others_begin; }
  bool shortest_label(State state, std::uint32_t label, std::string* out) override;
  bool has_label(std::uint32_t label) override { return automaton_->has_label(label); }
  State alike(State state, Runs& runs) override;
  State after_character(State state) override;

  // For a counted terminal with bounds: how many units more are begun at least before the close, from a counter
  // that needs `need` more of them. Only for automata whose every state can go on by one-byte characters.
  std::uint32_t counted_rest(State state, std::uint64_t need);

 private:
  enum class Mode : std::uint8_t { kOpen, kPlain, kDone, kEscape, kUtf8, kHex, kHexHigh };
  // kUtf8: `left` bytes to come. kHex: `left` digits to come of a \u escape. kHexHigh: bytes to come of a surrogate
  // pair: 8, 7: the last digits of the high one; 6, 5, 4, 3, 2, 1: `\`, `u`, `d`, then three digits. resolved: `q` is
  // the target for every scalar of [lo, hi].
  struct Place {
    Mode mode = Mode::kPlain;
    std::uint8_t left = 0;
    bool resolved = false;
    std::uint32_t q = 0;
    Cp lo = 0, hi = 0;
    bool operator==(const Place&) const = default;
  };
  struct PlaceHash {
    std::size_t operator()(const Place& p) const;
  };

  void fill(State state, Row& row) override;
  Range compute_range(State state) override;
  std::uint32_t compute_rest(State state) override;

  std::uint32_t intern(const Place& place);
  std::uint32_t plain(std::uint32_t q);                       // 0 for a dead q
  std::uint32_t pending(Place place);                         // settles liveness and uniformity first
  std::uint32_t advance(const Place& at, std::uint8_t byte);  // one byte inside a pending character
  std::uint32_t finish(const Place& at, Cp cp);
  void fill_plain(std::uint32_t q, Row& row);
  void fill_escape(std::uint32_t q, Row& row);
  std::uint32_t rest_to(const Place& at, std::uint32_t label);
  template <class F>
  void each_target(const Place& at, F f);  // f(target, bytes until it) for the live pieces of a pending character

  CpAutomatonPtr automaton_;
  Options options_;
  bool counts_;  // a state may be like others
  std::vector<Place> places_;
  std::unordered_map<Place, State, PlaceHash> index_;
  std::size_t charged_ = 0;  // of the automaton's memory
};

// Strings with bounds on their length, over a counted CodedTerminal that is shared between all bounds.
class CountedTerminal final : public Terminal {
 public:
  CountedTerminal(std::shared_ptr<CodedTerminal> core, std::uint64_t min, std::uint64_t max)
      : core_(std::move(core)), min_(min), max_(max) {}

  std::uint32_t next(State state, std::uint8_t byte) override { return core_->step(state, byte); }
  bool accepting(State state) override { return core_->accepting(state); }
  std::uint32_t min_rest(State state, std::uint64_t counter) override {
    return core_->counted_rest(state, counter < min_ ? min_ - counter : 0);
  }
  std::string shortest(State state, std::uint64_t counter) override { return walk_shortest(*this, state, counter); }
  bool counted() const override { return true; }
  std::uint64_t min_units() const override { return min_; }
  std::uint64_t max_units() const override { return max_; }
  std::bitset<256> live(State state) override { return core_->live(state); }
  std::uint32_t few_live(State state, std::uint8_t* out) override { return core_->few_live(state, out); }
  const std::uint32_t* row(State state) override { return core_->row(state); }
  std::size_t bytes() const override { return sizeof(*this); }
  Terminal* table() override { return core_.get(); }
  State after_character(State state) override { return core_->after_character(state); }

 private:
  std::shared_ptr<CodedTerminal> core_;
  std::uint64_t min_, max_;
};

}  // namespace ag::regular
