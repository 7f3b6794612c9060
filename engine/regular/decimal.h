// Exact decimal numbers as texts: no value is ever rounded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ag::regular {

inline constexpr std::uint64_t kMaxDivisor = std::uint64_t{1} << 59;  // of multipleOf, its digits as a whole number

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// sign · digits · 10^exponent; digits without leading or trailing zeros, empty for zero (which has no sign).
struct Decimal {
  bool negative = false;
  std::string digits;
  std::int64_t exponent = 0;

  bool zero() const { return digits.empty(); }
  Decimal magnitude() const { return {false, digits, exponent}; }
  bool operator==(const Decimal&) const = default;
};

// Reads a JSON number (leading zeros allowed); nothing when it is none.
std::optional<Decimal> read_decimal(std::string_view text);
int compare(const Decimal& a, const Decimal& b);  // -1, 0, 1
bool is_multiple(const Decimal& value, const Decimal& of);

// A magnitude's digits before the point ("0" at least) and after it. Throws GrammarError when they would be too many.
struct Positional {
  std::string whole, fraction;
};
Positional positional(const Decimal& value);

}  // namespace ag::regular
