// Exact decimal numbers as JSON spells them: ordered by value, printed as json.dumps would.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "regular/decimal.h"

namespace ag::schema {

struct Decimal : regular::Decimal {
  // `text` must be a JSON number.
  static Decimal parse(std::string_view text) { return {regular::read_decimal(text).value_or(regular::Decimal{})}; }

  bool integer() const { return exponent >= 0; }
  bool multiple_of(const Decimal& of) const { return regular::is_multiple(*this, of); }
  // Characters of the plain spelling, without the sign.
  std::int64_t plain_size() const;
  // All digits, without an exponent: "1200", "-0.05".
  std::string plain() const;
  // As json.dumps spells the float: "1.0", "0.05", "1e-07", "1.5e+16".
  std::string as_float() const;

  std::strong_ordering operator<=>(const Decimal& other) const { return regular::compare(*this, other) <=> 0; }
  bool operator==(const Decimal& other) const = default;

 private:
  // The number of digits before the point; negative when zeros follow it first.
  std::int64_t point() const { return static_cast<std::int64_t>(digits.size()) + exponent; }
};

}  // namespace ag::schema
