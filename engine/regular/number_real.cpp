#include "regular/number_real.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

namespace ag::regular {

namespace {

// The digit at `i`, zero past the end.
char at(const std::string& digits, std::size_t i) { return i < digits.size() ? digits[i] : '0'; }
// Whether a digit other than zero stands at or after `i`; the digits do not end in zero.
bool more(const std::string& digits, std::size_t i) { return i < digits.size(); }
bool more_nonzero(const std::string& digits, std::size_t i) {
  return i < digits.size() && digits.find_first_not_of('0', i) != std::string::npos;
}

template <class T>
T compare_digit(char a, char b) {
  return static_cast<T>(a < b ? -1 : a > b ? 1 : 0);
}

}  // namespace

std::string SearchedPart::shortest(State from) {
  std::unordered_map<State, std::pair<State, char>> came{{from, {kDead, '\0'}}};
  std::queue<State> queue;
  queue.push(from);
  while (!queue.empty()) {
    State state = queue.front();
    queue.pop();
    if (accepting(state)) {
      std::string out;
      for (; state != from; state = came[state].first) out.push_back(came[state].second);
      std::reverse(out.begin(), out.end());
      return out;
    }
    for (const char c : {'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '.', '-', '+', 'e'}) {
      const State to = step(state, c);
      if (to != kDead && came.try_emplace(to, state, c).second) queue.push(to);
    }
  }
  return "";
}

PositionalNumber::PositionalNumber(bool negative, const Magnitudes& range)
    : negative_(negative), range_(range), low_(positional(range.low)), high_(positional(range.high)), places_(1) {}

NumberPart::State PositionalNumber::start() { return keep({}); }

NumberPart::State PositionalNumber::keep(const Place& place) {
  if (!live(place)) return kDead;
  const auto [it, fresh] = index_.try_emplace(place, static_cast<State>(places_.size()));
  if (fresh) places_.push_back(place);
  return it->second;
}

// Takes one more digit, clipping what no longer matters.
PositionalNumber::Place PositionalNumber::digit(Place p, char c) const {
  const bool fraction = p.phase == Phase::kFraction;
  const std::string& low = fraction ? low_.fraction : low_.whole;
  const std::string& high = fraction ? high_.fraction : high_.whole;
  if (p.low == 0)
    p.low = !fraction && p.read >= low.size() ? std::int8_t{1} : compare_digit<std::int8_t>(c, at(low, p.read));
  if (p.high == 0 && !range_.unbounded)
    p.high = !fraction && p.read >= high.size() ? std::int8_t{1} : compare_digit<std::int8_t>(c, at(high, p.read));
  ++p.read;
  const std::size_t most = range_.unbounded ? low.size() : std::max(low.size(), high.size());
  p.read = static_cast<std::uint32_t>(std::min<std::size_t>(p.read, most + 1));
  if (!fraction && p.read > low.size()) p.low = 1;
  return p;
}

// Whether the whole part may end here as far as the lower bound goes; a tie is left to the fraction.
// (Shorter numbers are smaller, longer ones greater.)
bool PositionalNumber::live_whole(const Place& p) const {
  const std::size_t n = p.read, la = low_.whole.size(), lb = high_.whole.size();
  if (!range_.unbounded && n > lb) return false;
  const bool only = p.phase == Phase::kZero;  // no digit may follow
  const auto fits = [&](std::size_t total) {
    if (total < n || (only && total != n) || total < la || (!range_.unbounded && total > lb)) return false;
    if (total == la && p.low < 0) return false;
    if (range_.unbounded || total != lb) return true;
    if (p.high > 0) return false;
    if (p.high < 0 || (total == la && p.low == 0)) return true;  // both ties: the interval lies within
    return !range_.high_open || more_nonzero(high_.whole, n) || more(high_.fraction, 0);
  };
  // Numbers as long as a bound, and any length in between, stand for all lengths.
  if (fits(n) || fits(la) || fits(la + 1) || fits(std::max(n, la + 1))) return true;
  return !range_.unbounded && fits(lb);
}

bool PositionalNumber::live(const Place& p) const {
  switch (p.phase) {
    case Phase::kStart:
    case Phase::kMinus:
      return true;
    case Phase::kZero:
    case Phase::kWhole:
      return live_whole(p);
    default:
      if (p.low < 0 || p.high > 0) return false;
      if (p.low == 0 && p.high == 0 && !range_.unbounded) return true;
      if (p.high < 0 || range_.unbounded) return true;
      return !range_.high_open || more(high_.fraction, p.read);
  }
}

NumberPart::State PositionalNumber::step(State state, char c) {
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
      if (c != '.') return kDead;
      if (p.read < low_.whole.size()) p.low = -1;
      if (!range_.unbounded && p.read < high_.whole.size()) p.high = -1;
      p.phase = Phase::kPoint;
      p.read = 0;
      return keep(p);
    default:
      if (!is_digit(c)) return kDead;
      p.phase = Phase::kFraction;
      p = digit(p, c);
      if (p.low != 0 && (p.high != 0 || range_.unbounded)) p.read = 1;
      return keep(p);
  }
}

bool PositionalNumber::low_met(const Place& p) const {
  const bool fraction = p.phase == Phase::kFraction;
  if (!fraction && p.read < low_.whole.size()) return false;
  if (p.low != 0) return p.low > 0;
  return !range_.low_open && !more(low_.fraction, fraction ? p.read : 0);
}

bool PositionalNumber::high_met(const Place& p) const {
  const bool fraction = p.phase == Phase::kFraction;
  if (range_.unbounded || (!fraction && p.read < high_.whole.size())) return true;
  if (p.high != 0) return p.high < 0;
  return !range_.high_open || more(high_.fraction, fraction ? p.read : 0);
}

bool PositionalNumber::accepting(State state) {
  const Place& p = places_[state];
  if (p.phase != Phase::kZero && p.phase != Phase::kWhole && p.phase != Phase::kFraction) return false;
  return low_met(p) && high_met(p);
}

ScientificNumber::ScientificNumber(bool negative, Magnitudes range)
    : negative_(negative), range_(std::move(range)), places_(1) {
  // A double is never outside these, and neither end is reached by rounding.
  const Decimal least = *read_decimal("5e-324"), most = *read_decimal("1.7976931348623157e308");
  if (compare(range_.low, least) < 0) {
    range_.low = least;
    range_.low_open = false;
  }
  if (range_.unbounded || compare(range_.high, most) > 0) {
    range_.high = most;
    range_.high_open = false;
    range_.unbounded = false;
  }
  const int order = compare(range_.low, range_.high);
  empty_ = order > 0 || (order == 0 && (range_.low_open || range_.high_open));
  if (empty_) return;
  const auto exponent = [](const Decimal& d) {
    return static_cast<std::int32_t>(d.exponent + static_cast<std::int64_t>(d.digits.size()) - 1);
  };
  low_exponent_ = exponent(range_.low);
  high_exponent_ = exponent(range_.high);
}

NumberPart::State ScientificNumber::start() { return empty_ ? kDead : keep({}); }

NumberPart::State ScientificNumber::keep(const Place& place) {
  if (!live(place)) return kDead;
  const auto [it, fresh] = index_.try_emplace(place, static_cast<State>(places_.size()));
  if (fresh) places_.push_back(place);
  return it->second;
}

ScientificNumber::Place ScientificNumber::digit(Place p, char c) const {
  const std::string &low = range_.low.digits, &high = range_.high.digits;
  if (p.low == 0) p.low = compare_digit<std::int32_t>(c, at(low, p.read));
  if (p.high == 0) p.high = compare_digit<std::int32_t>(c, at(high, p.read));
  p.read = static_cast<std::uint32_t>(std::min<std::size_t>(p.read + 1, std::max(low.size(), high.size()) + 1));
  if (p.low != 0 && p.high != 0) p.read = 1;
  return p;
}

// Some mantissa from here on has an exponent. A mantissa below the lower bound's needs a greater exponent than it, one
// above the upper bound's a smaller one; ties can be kept or broken upwards by further digits.
bool ScientificNumber::live_mantissa(const Place& p) const {
  const std::int32_t room = high_exponent_ - low_exponent_;
  const bool low = p.low >= 0;
  const bool high = p.high < 0 || (p.high == 0 && (more(range_.high.digits, p.read) || !range_.high_open));
  if (room >= 2) return true;
  if (room == 1) return low || high;
  return room == 0 && low && (high || (p.low == 0 && p.high == 0));
}

bool ScientificNumber::live_exponent(const Place& p) const {
  if (p.low > p.high) return false;
  const auto meets = [&](std::int32_t from, std::int32_t to) {
    return p.minus ? -to <= p.high && -from >= p.low : from <= p.high && to >= p.low;
  };
  if (p.read == 0) return meets(0, 999);
  if (meets(p.value, p.value)) return true;
  if (p.zero) return p.read == 1 && meets(0, 9);
  if (p.read < 3 && meets(p.value * 10, p.value * 10 + 9)) return true;
  return p.read < 2 && meets(p.value * 100, p.value * 100 + 99);
}

bool ScientificNumber::live(const Place& p) const {
  switch (p.phase) {
    case Phase::kStart:
    case Phase::kMinus:
      return true;
    case Phase::kLead:
    case Phase::kPoint:
    case Phase::kFraction:
      return live_mantissa(p);
    case Phase::kMark: {
      Place negative = p;
      negative.minus = true;
      return live_exponent(p) || live_exponent(negative);
    }
    default:
      return live_exponent(p);
  }
}

// After the e: the mantissa is known, so the exponent's bounds are.
ScientificNumber::Place ScientificNumber::mark(const Place& p) const {
  int low = p.low, high = p.high;
  if (low == 0 && (more(range_.low.digits, p.read) || range_.low_open)) low = -1;
  if (high == 0) high = more(range_.high.digits, p.read) || !range_.high_open ? -1 : 1;
  Place out;
  out.phase = Phase::kMark;
  out.low = low_exponent_ + (low < 0 ? 1 : 0);
  out.high = high_exponent_ - (high > 0 ? 1 : 0);
  return out;
}

NumberPart::State ScientificNumber::step(State state, char c) {
  Place p = places_[state];
  switch (p.phase) {
    case Phase::kStart:
      if (negative_) {
        p.phase = Phase::kMinus;
        return c == '-' ? keep(p) : kDead;
      }
      [[fallthrough]];
    case Phase::kMinus:
      if (!is_digit(c) || c == '0') return kDead;
      p.phase = Phase::kLead;
      return keep(digit(p, c));
    case Phase::kLead:
    case Phase::kFraction:
      if (c == 'e' || c == 'E') return keep(mark(p));
      if (c == '.' && p.phase == Phase::kLead) {
        p.phase = Phase::kPoint;
        return keep(p);
      }
      if (p.phase == Phase::kLead) return kDead;
      [[fallthrough]];
    case Phase::kPoint:
      if (!is_digit(c)) return kDead;
      p.phase = Phase::kFraction;
      return keep(digit(p, c));
    case Phase::kMark:
      if (c == '+' || c == '-') {
        p.phase = Phase::kSign;
        p.minus = c == '-';
        return keep(p);
      }
      [[fallthrough]];
    default:
      if (!is_digit(c) || p.read >= 3 || (p.zero && p.read >= 2)) return kDead;
      p.phase = Phase::kExponent;
      p.zero = p.zero || (p.read == 0 && c == '0');
      p.value = p.value * 10 + (c - '0');
      ++p.read;
      return keep(p);
  }
}

bool ScientificNumber::accepting(State state) {
  const Place& p = places_[state];
  const std::int32_t value = p.minus ? -p.value : p.value;
  return p.phase == Phase::kExponent && value >= p.low && value <= p.high;
}

}  // namespace ag::regular
