// Numbers on a grid: integers, and multiples of a decimal, within bounds, exactly.
//
// Values are scaled by 10^scale, so that bounds and divisor are integers. A state keeps the digits read (their count,
// how they compare to each bound's) and their remainder. It is live iff for some number of further digits the interval
// of values that begin with what was read meets the bounds in a multiple; that is one division (engine notes: number
// theory in place of a search).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "regular/number.h"
#include "regular/tuples.h"

namespace ag::regular {

// All in units of 10^-scale; `low` and `high` are digit strings with at least scale + 1 digits and no other leading
// zeros.
struct Grid {
  std::string low, high;
  bool unbounded = false;
  std::uint64_t divisor = 1;  // below 2^59
  std::uint32_t scale = 0;    // 0 exactly for integers: then no fraction is written
};

class ScaledNumber final : public NumberPart {
 public:
  ScaledNumber(bool negative, Grid grid);
  State start() override;
  State step(State state, char byte) override;
  bool accepting(State state) override;
  std::string shortest(State state) override;

 private:
  enum class Phase : std::uint8_t { kStart, kMinus, kZero, kWhole, kPoint, kFraction };
  struct Place {
    Phase phase = Phase::kStart;
    std::uint32_t whole = 0;     // digits of the whole part, clipped where they no longer matter
    std::uint32_t fraction = 0;  // digits of the fraction, at most scale: the rest are zeros
    std::int8_t low = 0, high = 0;
    std::uint64_t rest = 0;  // what was read, mod what it has to be a multiple of if nothing follows
  };
  State keep(const Place& place);
  Place digit(Place place, char byte) const;
  // The least digits that make a number from here: `more` further digits of the whole part, the fraction ending at
  // `fraction` digits. Nothing when there are none.
  std::optional<std::string> completion(const Place& place, std::uint64_t more, std::uint32_t fraction) const;
  bool live(const Place& place) const;
  // How many further digits of the whole part are worth a look.
  std::uint64_t most_digits(const Place& place) const;

  bool negative_;
  Grid grid_;
  std::size_t low_whole_, high_whole_;   // digits of the bounds' whole parts
  std::vector<std::uint64_t> divisors_;  // by number of fraction digits: what the digits must be a multiple of
  std::vector<Place> places_;
  Tuples<std::uint64_t> met_{3};      // places, packed
  std::vector<State> states_{kDead};  // by number in met_
};

}  // namespace ag::regular
