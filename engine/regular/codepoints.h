// Unicode scalar values: UTF-8, sorted interval sets, and the bytes a scalar costs in a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ag::regular {

using Cp = std::uint32_t;
inline constexpr Cp kMaxCp = 0x10ffff, kSurrogateLo = 0xd800, kSurrogateHi = 0xdfff;

// Decodes one scalar value at `at`, strictly; false when the bytes there are not UTF-8.
bool decode_utf8(std::string_view text, std::size_t* at, Cp* out);
bool valid_utf8(std::string_view text);
void append_utf8(std::string* out, Cp cp);
// JSON's escapes of one letter (RFC 8259, section 7): the letter, and the character that it stands for.
struct SimpleEscape {
  char letter, character;
};
inline constexpr SimpleEscape kSimpleEscapes[] = {{'"', '"'},  {'\\', '\\'}, {'/', '/'},  {'b', '\b'},
                                                  {'f', '\f'}, {'n', '\n'},  {'r', '\r'}, {'t', '\t'}};
int hex_value(std::uint8_t byte);  // -1: no digit

// What the inside of a JSON string says. The spelling has been checked before; an escape that is cut off ends the text.
std::string json_unescape(std::string_view inside);
// Throws ValueError that names `what` unless the text is UTF-8.
void require_utf8(std::string_view text, const char* what);

// Bytes of the cheapest spelling: in plain UTF-8, or inside a JSON string.
std::uint32_t utf8_cost(Cp cp);
std::uint32_t quoted_cost(Cp cp);

// Surrogates are in no set. Ranges are sorted, disjoint, and not adjacent (the surrogate gap does not count).
struct CpRange {
  Cp lo, hi;
  bool operator==(const CpRange&) const = default;
};

class CpSet {
 public:
  CpSet() = default;
  explicit CpSet(std::vector<CpRange> ranges);  // any order, overlaps and surrogates allowed: cleaned here
  static CpSet all();
  static CpSet one(Cp cp) { return CpSet({{cp, cp}}); }

  const std::vector<CpRange>& ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }
  bool contains(Cp cp) const;
  CpSet united(const CpSet& other) const;
  CpSet intersected(const CpSet& other) const;
  CpSet complement() const;
  bool operator==(const CpSet&) const = default;

 private:
  std::vector<CpRange> ranges_;
};

// The member of [lo, hi] that costs least (the least such).
Cp cheapest(Cp lo, Cp hi, bool quoted);
inline std::uint32_t cost_of(Cp cp, bool quoted) { return quoted ? quoted_cost(cp) : utf8_cost(cp); }

}  // namespace ag::regular
