#include "schema/decimal.h"

namespace ag::schema {

std::int64_t Decimal::plain_size() const {
  if (zero()) return 1;
  if (exponent >= 0) return point();
  auto size = static_cast<std::int64_t>(digits.size());
  return point() > 0 ? size + 1 : size + 2 - point();
}

std::string Decimal::plain() const {
  if (zero()) return "0";
  std::string out = negative ? "-" : "";
  if (exponent >= 0) return out.append(digits).append(static_cast<std::size_t>(exponent), '0');
  if (point() <= 0) return out.append("0.").append(static_cast<std::size_t>(-point()), '0').append(digits);
  auto head = static_cast<std::size_t>(point());
  return out.append(digits, 0, head).append(".").append(digits, head);
}

std::string Decimal::as_float() const {
  if (zero()) return "0.0";
  std::int64_t power = point() - 1;  // of the first digit
  if (power >= -4 && power < 16) return integer() ? plain().append(".0") : plain();
  std::string out = negative ? "-" : "";
  out += digits[0];
  if (digits.size() > 1) out.append(".").append(digits, 1);
  std::string e = std::to_string(power < 0 ? -power : power);
  return out.append(power < 0 ? "e-" : "e+").append(e.size() < 2 ? "0" : "").append(e);
}

}  // namespace ag::schema
