#include "regular/number_scaled.h"

#include <algorithm>
#include <numeric>

#include "regular/decimal.h"

namespace ag::regular {

namespace {

// Adds to a digit string in place; false when it overflows.
bool add(std::string* digits, std::uint64_t value) {
  for (std::size_t i = digits->size(); i-- > 0 && value > 0;) {
    value += static_cast<std::uint64_t>((*digits)[i] - '0');
    (*digits)[i] = static_cast<char>('0' + value % 10);
    value /= 10;
  }
  return value == 0;
}

std::int8_t order(char a, char b) { return static_cast<std::int8_t>(a < b ? -1 : a > b ? 1 : 0); }

}  // namespace

ScaledNumber::ScaledNumber(bool negative, Grid grid)
    : negative_(negative),
      grid_(std::move(grid)),
      low_whole_(grid_.low.size() - grid_.scale),
      high_whole_(grid_.unbounded ? 0 : grid_.high.size() - grid_.scale),
      divisors_(grid_.scale + 1, grid_.divisor),
      places_(1) {
  // With fewer digits, the missing ones are zeros, which bring factors of ten.
  for (std::uint32_t f = grid_.scale; f-- > 0;) {
    const std::uint64_t above = divisors_[f + 1];
    divisors_[f] = above / std::gcd<std::uint64_t, std::uint64_t>(above, 10);
  }
}

NumberPart::State ScaledNumber::keep(const Place& place) {
  const std::uint64_t packed[] = {static_cast<std::uint64_t>(place.phase) |
                                      static_cast<std::uint64_t>(place.low + 1) << 3 |
                                      static_cast<std::uint64_t>(place.high + 1) << 5,
                                  std::uint64_t{place.whole} << 32 | place.fraction, place.rest};
  const auto [number, fresh] = met_.intern(packed);
  if (!fresh) return states_[number];
  const State out = live(place) ? static_cast<State>(places_.size()) : kDead;
  if (out != kDead) places_.push_back(place);
  states_.push_back(out);
  return out;
}

NumberPart::State ScaledNumber::start() { return keep({}); }

std::uint64_t ScaledNumber::most_digits(const Place& p) const {
  if (p.phase != Phase::kStart && p.phase != Phase::kMinus && p.phase != Phase::kWhole) return 0;
  if (!grid_.unbounded) return p.whole < high_whole_ ? high_whole_ - p.whole : 0;
  // Longer than the lower bound, and enough digits to hit every remainder.
  return (p.whole < low_whole_ ? low_whole_ - p.whole : 0) + 20;
}

std::optional<std::string> ScaledNumber::completion(const Place& p, std::uint64_t more, std::uint32_t fraction) const {
  const std::uint64_t whole = p.whole + more;
  if (whole == 0) return std::nullopt;
  if (whole < low_whole_ || (!grid_.unbounded && whole > high_whole_)) return std::nullopt;
  const bool low = whole == low_whole_, high = !grid_.unbounded && whole == high_whole_;
  if ((low && p.low < 0) || (high && p.high > 0)) return std::nullopt;
  const std::size_t size = more + fraction - p.fraction;  // digits to write
  const std::size_t read = p.whole + p.fraction;          // so many digits of a bound are matched in a tie
  std::string least(size, '0'), most(size, '9');
  if (p.whole == 0 && whole > 1) least[0] = '1';
  if (low && p.low == 0) {
    std::string bound = grid_.low.substr(read, size);
    // A bound with more digits than are written is met by the next greater number only.
    const bool up = grid_.low.find_first_not_of('0', read + size) != std::string::npos;
    if (up && !add(&bound, 1)) return std::nullopt;
    least = std::max(least, bound);
  }
  if (high && p.high == 0) most = std::min(most, grid_.high.substr(read, size));
  if (divisors_[fraction] > 1) {
    const std::uint64_t d = divisors_[fraction];
    std::uint64_t rest = p.rest % d;
    for (const char c : least) rest = (rest * 10 + static_cast<std::uint64_t>(c - '0')) % d;
    if (rest != 0 && !add(&least, d - rest)) return std::nullopt;
  }
  if (least > most) return std::nullopt;
  return least;
}

bool ScaledNumber::live(const Place& p) const {
  const std::uint64_t most = most_digits(p);
  for (std::uint64_t more = 0; more <= most; ++more)
    if (completion(p, more, grid_.scale)) return true;
  return false;
}

ScaledNumber::Place ScaledNumber::digit(Place p, char c) const {
  const bool fraction = p.phase == Phase::kFraction;
  const std::size_t read = p.whole + p.fraction;
  // A tie in the fraction is one with a bound as long as the whole part (see step), so the digits line up.
  if (p.low == 0) p.low = read < grid_.low.size() ? order(c, grid_.low[read]) : std::int8_t{1};
  if (p.high == 0 && !grid_.unbounded) p.high = read < grid_.high.size() ? order(c, grid_.high[read]) : std::int8_t{1};
  p.fraction += fraction;
  p.rest = (p.rest * 10 + static_cast<std::uint64_t>(c - '0')) % divisors_[p.fraction];
  if (fraction) return p;
  const std::size_t longest = grid_.unbounded ? low_whole_ : std::max(low_whole_, high_whole_);
  p.whole = static_cast<std::uint32_t>(std::min<std::size_t>(p.whole + 1, longest + 1));
  if (p.whole > low_whole_) p.low = 1;
  return p;
}

NumberPart::State ScaledNumber::step(State state, char c) {
  Place p = places_[state];
  switch (p.phase) {
    case Phase::kStart:
      if (negative_) {
        p.phase = Phase::kMinus;
        return c == '-' ? keep(p) : kDead;
      }
      [[fallthrough]];
    case Phase::kMinus:
      if (!is_digit(c)) return kDead;
      p.phase = c == '0' ? Phase::kZero : Phase::kWhole;
      return keep(digit(p, c));
    case Phase::kZero:
    case Phase::kWhole:
      if (is_digit(c)) return p.phase == Phase::kZero ? kDead : keep(digit(p, c));
      if (c != '.' || grid_.scale == 0) return kDead;
      if (p.whole < low_whole_) p.low = -1;
      if (!grid_.unbounded && p.whole < high_whole_) p.high = -1;
      p.phase = Phase::kPoint;
      return keep(p);
    default:
      if (!is_digit(c)) return kDead;
      p.phase = Phase::kFraction;
      if (p.fraction == grid_.scale) return c == '0' ? keep(p) : kDead;  // finer than the grid
      return keep(digit(p, c));
  }
}

bool ScaledNumber::accepting(State state) {
  const Place& p = places_[state];
  if (p.phase != Phase::kZero && p.phase != Phase::kWhole && p.phase != Phase::kFraction) return false;
  return completion(p, 0, p.fraction).has_value();
}

std::string ScaledNumber::shortest(State state) {
  const Place& p = places_[state];
  const bool point = p.phase == Phase::kPoint || p.phase == Phase::kFraction;
  const std::string sign = p.phase == Phase::kStart && negative_ ? "-" : "";
  const std::uint64_t most = most_digits(p);
  std::optional<std::string> best;
  for (std::uint64_t more = 0; more <= most && (!best || more < best->size()); ++more)
    for (std::uint32_t f = p.fraction; f <= grid_.scale; ++f) {
      if (p.phase == Phase::kPoint && f == 0) continue;
      std::optional<std::string> digits = completion(p, more, f);
      if (!digits) continue;
      if (!point && f > 0) digits->insert(more, 1, '.');
      if (!best || digits->size() < best->size()) best = digits;
    }
  return sign + best.value_or("");
}

}  // namespace ag::regular
