// Numbers within an interval, without multipleOf: positional notation, and the scientific notation that json.dumps
// writes.
#pragma once

#include <map>
#include <tuple>

#include "regular/decimal.h"
#include "regular/number.h"

namespace ag::regular {

// Magnitudes from `low` to `high`; `unbounded`: no upper end. Not empty.
struct Magnitudes {
  Decimal low, high;
  bool low_open = false, high_open = false, unbounded = false;
};

// A part whose states are interned tuples; completions are searched, for there are few states.
class SearchedPart : public NumberPart {
 public:
  std::string shortest(State state) override;
};

// -?(0|[1-9][0-9]*)(\.[0-9]+)? with a magnitude in the interval. While the whole part is read, its first n digits are
// compared with those of each bound; how many digits follow decides later. After the point only ties matter.
class PositionalNumber final : public SearchedPart {
 public:
  PositionalNumber(bool negative, const Magnitudes& range);
  State start() override;
  State step(State state, char byte) override;
  bool accepting(State state) override;

 private:
  enum class Phase : std::uint8_t { kStart, kMinus, kZero, kWhole, kPoint, kFraction };
  struct Place {
    Phase phase = Phase::kStart;
    std::uint32_t read = 0;  // digits of the whole part, or of the fraction, clipped where they no longer matter
    std::int8_t low = 0, high = 0;
    auto operator<=>(const Place&) const = default;
  };
  State keep(const Place& place);
  bool live(const Place& place) const;
  bool live_whole(const Place& place) const;
  bool low_met(const Place& place) const;
  bool high_met(const Place& place) const;
  Place digit(Place place, char byte) const;

  bool negative_;
  Magnitudes range_;
  Positional low_, high_;
  std::vector<Place> places_;
  std::map<Place, State> index_;
};

// -?[1-9](\.[0-9]+)?[eE][+-]?(0?[0-9]|[1-9][0-9]+), of a magnitude in the interval and within the range of a double.
class ScientificNumber final : public SearchedPart {
 public:
  ScientificNumber(bool negative, Magnitudes range);
  State start() override;
  State step(State state, char byte) override;
  bool accepting(State state) override;

 private:
  enum class Phase : std::uint8_t { kStart, kMinus, kLead, kPoint, kFraction, kMark, kSign, kExponent };
  struct Place {
    Phase phase = Phase::kStart;
    std::uint32_t read = 0;            // digits of the mantissa (clipped), or of the exponent
    std::int32_t low = 0, high = 0;    // how the mantissa compares to each bound's; then the exponent's bounds
    bool minus = false, zero = false;  // of the exponent: its sign, whether it began with a zero
    std::int32_t value = 0;
    auto operator<=>(const Place&) const = default;
  };
  State keep(const Place& place);
  bool live(const Place& place) const;
  bool live_mantissa(const Place& place) const;
  bool live_exponent(const Place& place) const;
  Place digit(Place place, char byte) const;
  Place mark(const Place& place) const;

  bool negative_, empty_ = false;
  Magnitudes range_;
  std::int32_t low_exponent_ = 0, high_exponent_ = 0;  // of the bounds written as d.ddd·10^x
  std::vector<Place> places_;
  std::map<Place, State> index_;
};

}  // namespace ag::regular
