#include "regular/strings.h"

namespace ag::regular {

namespace {

bool plain(const StringLanguage& s) {
  return s.patterns.empty() && s.not_patterns.empty() && s.formats.empty() && s.excluded.empty();
}
bool bounded(const StringLanguage& s) { return s.min_length > 0 || s.max_length != kNoMax; }

[[noreturn]] void refuse_pattern() {
  throw GrammarError("patterns and formats are not available in this build", "", "pattern", "Leave them out.");
}

}  // namespace

StringPlan plan_string(const StringLanguage& s) {
  if (s.min_length > s.max_length) return {};
  if (!plain(s)) refuse_pattern();
  return {std::make_unique<AnyString>(), bounded(s)};
}

std::vector<CpAutomatonPtr> plan_keys(const std::vector<std::string>&, const std::vector<std::string>&,
                                      const std::vector<StringLanguage>& classes) {
  std::vector<CpAutomatonPtr> out;
  for (const StringLanguage& c : classes) {
    if (!plain(c) || bounded(c)) refuse_pattern();
    if (out.empty()) out.push_back(std::make_unique<AnyString>());
  }
  return out;
}

CpAutomatonPtr whole_pattern(std::string_view) { refuse_pattern(); }

}  // namespace ag::regular

namespace ag {

bool known_format(std::string_view) { return false; }

bool contains(const StringLanguage& s, std::string_view value) {
  if (!regular::plain(s)) regular::refuse_pattern();
  std::uint64_t units = 0;
  regular::Cp cp = 0;
  for (std::size_t at = 0; at < value.size(); ++units)
    if (!regular::decode_utf8(value, &at, &cp)) return false;
  return units >= s.min_length && units <= s.max_length;
}

}  // namespace ag
