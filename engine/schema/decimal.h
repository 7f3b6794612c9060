// Exact decimal numbers, as JSON spells them: compared by value, printed as json.dumps would.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace ag {

// 0.d1d2d3... * 10^exponent; digits has neither leading nor trailing zeros, and is empty for zero.
struct Decimal {
  bool negative = false;
  std::string digits;
  std::int64_t exponent = 0;

  // `text` must be a JSON number. Exponents are held within +-10^15, beyond any number that is ever written out.
  static Decimal parse(std::string_view text);

  bool zero() const { return digits.empty(); }
  bool integer() const { return exponent >= static_cast<std::int64_t>(digits.size()); }
  // Characters of the plain spelling, without sign.
  std::int64_t plain_size() const;
  // All digits, without an exponent: "1200", "-0.05".
  std::string plain() const;
  // As json.dumps spells the nearest float: "1.0", "0.05", "1e-07", "1.5e+16".
  std::string as_float() const;

  std::strong_ordering operator<=>(const Decimal& other) const;
  bool operator==(const Decimal& other) const = default;
};

}  // namespace ag
