#include "regular/unicode.h"

#include <array>
#include <string>
#include <utility>

namespace ag::regular {

namespace {

struct CategoryRange {
  std::uint32_t lo, hi;
  std::uint8_t category;
};
constexpr CategoryRange kCategories[] = {
#include "regular/unicode_categories.inc"
};

// Indices are those of the table; a bit mask names a union. Cn (unassigned) is what the table leaves out.
constexpr std::uint64_t bits(int from, int to) { return ((std::uint64_t{1} << (to - from + 1)) - 1) << from; }
constexpr std::uint64_t kUnassigned = std::uint64_t{1} << 63;

struct Name {
  std::string_view brief, full;
  std::uint64_t mask;
};
constexpr Name kNames[] = {
    {"Lu", "Uppercase_Letter", bits(0, 0)},
    {"Ll", "Lowercase_Letter", bits(1, 1)},
    {"Lt", "Titlecase_Letter", bits(2, 2)},
    {"LC", "Cased_Letter", bits(0, 2)},
    {"Lm", "Modifier_Letter", bits(3, 3)},
    {"Lo", "Other_Letter", bits(4, 4)},
    {"L", "Letter", bits(0, 4)},
    {"Mn", "Nonspacing_Mark", bits(5, 5)},
    {"Mc", "Spacing_Mark", bits(6, 6)},
    {"Me", "Enclosing_Mark", bits(7, 7)},
    {"M", "Mark", bits(5, 7)},
    {"Combining_Mark", "Combining_Mark", bits(5, 7)},
    {"Nd", "Decimal_Number", bits(8, 8)},
    {"digit", "digit", bits(8, 8)},
    {"Nl", "Letter_Number", bits(9, 9)},
    {"No", "Other_Number", bits(10, 10)},
    {"N", "Number", bits(8, 10)},
    {"Pc", "Connector_Punctuation", bits(11, 11)},
    {"Pd", "Dash_Punctuation", bits(12, 12)},
    {"Ps", "Open_Punctuation", bits(13, 13)},
    {"Pe", "Close_Punctuation", bits(14, 14)},
    {"Pi", "Initial_Punctuation", bits(15, 15)},
    {"Pf", "Final_Punctuation", bits(16, 16)},
    {"Po", "Other_Punctuation", bits(17, 17)},
    {"P", "Punctuation", bits(11, 17)},
    {"punct", "punct", bits(11, 17)},
    {"Sm", "Math_Symbol", bits(18, 18)},
    {"Sc", "Currency_Symbol", bits(19, 19)},
    {"Sk", "Modifier_Symbol", bits(20, 20)},
    {"So", "Other_Symbol", bits(21, 21)},
    {"S", "Symbol", bits(18, 21)},
    {"Zs", "Space_Separator", bits(22, 22)},
    {"Zl", "Line_Separator", bits(23, 23)},
    {"Zp", "Paragraph_Separator", bits(24, 24)},
    {"Z", "Separator", bits(22, 24)},
    {"Cc", "Control", bits(25, 25)},
    {"cntrl", "cntrl", bits(25, 25)},
    {"Cf", "Format", bits(26, 26)},
    {"Co", "Private_Use", bits(27, 27)},
    {"Cs", "Surrogate", 0},
    {"Cn", "Unassigned", kUnassigned},
    {"C", "Other", bits(25, 27) | kUnassigned},
};

CpSet of_mask(std::uint64_t mask) {
  std::vector<CpRange> ranges;
  for (const CategoryRange& r : kCategories)
    if (mask >> r.category & 1) ranges.push_back({r.lo, r.hi});
  if (!(mask & kUnassigned)) return CpSet(std::move(ranges));
  std::vector<CpRange> assigned;
  for (const CategoryRange& r : kCategories) assigned.push_back({r.lo, r.hi});
  return CpSet(std::move(ranges)).united(CpSet(std::move(assigned)).complement());
}

}  // namespace

std::optional<CpSet> property_set(std::string_view expression) {
  for (const std::string_view prefix : {"General_Category=", "gc="})
    if (expression.substr(0, prefix.size()) == prefix) {
      expression.remove_prefix(prefix.size());
      for (const Name& name : kNames)
        if (expression == name.brief || expression == name.full) return of_mask(name.mask);
      return std::nullopt;
    }
  if (expression == "Any") return CpSet::all();
  if (expression == "ASCII") return CpSet({{0, 0x7f}});
  if (expression == "Assigned") return of_mask(kUnassigned).complement();
  for (const Name& name : kNames)
    if (expression == name.brief || expression == name.full) return of_mask(name.mask);
  return std::nullopt;
}

const CpSet& digit_set() {
  static const CpSet set({{'0', '9'}});
  return set;
}

const CpSet& word_set() {
  static const CpSet set({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
  return set;
}

const CpSet& space_set() {
  static const CpSet set({{'\t', '\r'},
                          {' ', ' '},
                          {0xa0, 0xa0},
                          {0x1680, 0x1680},
                          {0x2000, 0x200a},
                          {0x2028, 0x2029},
                          {0x202f, 0x202f},
                          {0x205f, 0x205f},
                          {0x3000, 0x3000},
                          {0xfeff, 0xfeff}});
  return set;
}

const CpSet& line_ends_set() {
  static const CpSet set({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}});
  return set;
}

}  // namespace ag::regular
