#include "schema/decimal.h"

#include <algorithm>

namespace ag {

namespace {
constexpr std::int64_t kExponentLimit = 1'000'000'000'000'000;
}

Decimal Decimal::parse(std::string_view text) {
  Decimal out;
  std::size_t i = 0;
  if (i < text.size() && text[i] == '-') out.negative = true, ++i;
  std::int64_t point = 0;  // digits before the point
  bool fraction = false;
  for (; i < text.size() && text[i] != 'e' && text[i] != 'E'; ++i) {
    if (text[i] == '.') {
      fraction = true;
      continue;
    }
    out.digits += text[i];
    if (!fraction) ++point;
  }
  std::int64_t shift = 0;
  if (i < text.size()) {
    ++i;
    bool minus = i < text.size() && text[i] == '-';
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
    for (; i < text.size(); ++i) shift = std::min(shift * 10 + (text[i] - '0'), kExponentLimit);
    if (minus) shift = -shift;
  }
  std::size_t lead = out.digits.find_first_not_of('0');
  if (lead == std::string::npos) return Decimal{};
  out.digits.erase(0, lead);
  out.digits.erase(out.digits.find_last_not_of('0') + 1);
  out.exponent = point - static_cast<std::int64_t>(lead) + shift;
  return out;
}

std::int64_t Decimal::plain_size() const {
  auto size = static_cast<std::int64_t>(digits.size());
  if (zero()) return 1;
  if (exponent <= 0) return 2 - exponent + size;
  return exponent >= size ? exponent : size + 1;
}

std::string Decimal::plain() const {
  if (zero()) return "0";
  std::string out = negative ? "-" : "";
  auto size = static_cast<std::int64_t>(digits.size());
  if (exponent <= 0) return out + "0." + std::string(static_cast<std::size_t>(-exponent), '0') + digits;
  if (exponent >= size) return out + digits + std::string(static_cast<std::size_t>(exponent - size), '0');
  auto head = static_cast<std::size_t>(exponent);
  return out + digits.substr(0, head) + "." + digits.substr(head);
}

std::string Decimal::as_float() const {
  if (zero()) return "0.0";
  std::int64_t power = exponent - 1;  // of the first digit
  if (power >= -4 && power < 16) return integer() ? plain() + ".0" : plain();
  std::string out = negative ? "-" : "";
  out += digits[0];
  if (digits.size() > 1) out += "." + digits.substr(1);
  std::string e = std::to_string(power < 0 ? -power : power);
  return out + "e" + (power < 0 ? "-" : "+") + (e.size() < 2 ? "0" : "") + e;
}

std::strong_ordering Decimal::operator<=>(const Decimal& other) const {
  auto sign = [](const Decimal& d) { return d.zero() ? 0 : d.negative ? -1 : 1; };
  if (sign(*this) != sign(other)) return sign(*this) <=> sign(other);
  if (zero()) return std::strong_ordering::equal;
  auto magnitude = exponent != other.exponent ? exponent <=> other.exponent : digits.compare(other.digits) <=> 0;
  return negative ? 0 <=> magnitude : magnitude;
}

}  // namespace ag
