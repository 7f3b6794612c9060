#include "regular/decimal.h"

#include <algorithm>

#include "base/error.h"

namespace ag::regular {

namespace {

constexpr std::int64_t kMaxDigits = 4096;

int compare_magnitudes(const Decimal& a, const Decimal& b) {
  if (a.zero() || b.zero()) return static_cast<int>(b.zero()) - static_cast<int>(a.zero());
  const std::int64_t top_a = a.exponent + static_cast<std::int64_t>(a.digits.size());
  const std::int64_t top_b = b.exponent + static_cast<std::int64_t>(b.digits.size());
  if (top_a != top_b) return top_a < top_b ? -1 : 1;
  const int order = a.digits.compare(b.digits);  // without trailing zeros, a proper prefix is the smaller
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}

}  // namespace

std::optional<Decimal> read_decimal(std::string_view text) {
  Decimal out;
  std::size_t at = 0;
  out.negative = at < text.size() && text[at] == '-';
  at += out.negative;
  const std::size_t first = at;
  for (; at < text.size() && is_digit(text[at]); ++at) out.digits.push_back(text[at]);
  if (at == first) return std::nullopt;
  if (at < text.size() && text[at] == '.') {
    const std::size_t point = ++at;
    for (; at < text.size() && is_digit(text[at]); ++at) out.digits.push_back(text[at]);
    if (at == point) return std::nullopt;
    out.exponent = -static_cast<std::int64_t>(at - point);
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    const bool minus = at < text.size() && text[at] == '-';
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    std::int64_t value = 0;
    const std::size_t start = at;
    for (; at < text.size() && is_digit(text[at]); ++at)
      value = std::min<std::int64_t>(value * 10 + (text[at] - '0'), std::int64_t{1} << 50);
    if (at == start) return std::nullopt;
    out.exponent += minus ? -value : value;
  }
  if (at != text.size()) return std::nullopt;
  out.digits.erase(0, std::min(out.digits.find_first_not_of('0'), out.digits.size()));
  while (!out.digits.empty() && out.digits.back() == '0') {
    out.digits.pop_back();
    ++out.exponent;
  }
  if (out.zero()) return Decimal{};
  return out;
}

int compare(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  return a.negative ? compare_magnitudes(b, a) : compare_magnitudes(a, b);
}

bool is_multiple(const Decimal& value, const Decimal& of) {
  if (of.zero()) return false;
  if (value.zero()) return true;
  // Neither digit string ends in zero, so a divisor with the larger exponent would bring in a factor of ten.
  if (value.exponent < of.exponent) return false;
  std::uint64_t divisor = 0, rest = 0;
  for (const char c : of.digits) {
    divisor = divisor * 10 + static_cast<std::uint64_t>(c - '0');
    if (divisor >= kMaxDivisor) throw GrammarError("multipleOf has too many digits", "", "multipleOf", "Round it.");
  }
  for (const char c : value.digits) rest = (rest * 10 + static_cast<std::uint64_t>(c - '0')) % divisor;
  // 10^60 holds every power of 2 and 5 that a divisor below 2^59 can have.
  const std::int64_t tens = std::min<std::int64_t>(value.exponent - of.exponent, 60);
  for (std::int64_t i = 0; i < tens; ++i) rest = rest * 10 % divisor;
  return rest == 0;
}

Positional positional(const Decimal& value) {
  if (value.zero()) return {"0", ""};
  const auto size = static_cast<std::int64_t>(value.digits.size());
  if (value.exponent > kMaxDigits || value.exponent < -kMaxDigits || size > kMaxDigits)
    throw GrammarError("a bound with more than 4,096 digits", "", "minimum", "Leave it out.");
  Positional out;
  if (value.exponent >= 0) {
    out.whole = value.digits + std::string(static_cast<std::size_t>(value.exponent), '0');
    return out;
  }
  const std::int64_t point = size + value.exponent;  // digits before the point
  if (point <= 0) return {"0", std::string(static_cast<std::size_t>(-point), '0') + value.digits};
  return {value.digits.substr(0, static_cast<std::size_t>(point)),
          value.digits.substr(static_cast<std::size_t>(point))};
}

}  // namespace ag::regular
