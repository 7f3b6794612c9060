#include "schema/keywords.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace ag {
namespace {

struct Entry {
  std::string_view word;
  Keyword keyword;
};

constexpr Entry kWords[] = {
    {"type", Keyword::kType},
    {"enum", Keyword::kEnum},
    {"const", Keyword::kConst},
    {"properties", Keyword::kProperties},
    {"required", Keyword::kRequired},
    {"additionalProperties", Keyword::kAdditionalProperties},
    {"patternProperties", Keyword::kPatternProperties},
    {"propertyNames", Keyword::kPropertyNames},
    {"minProperties", Keyword::kMinProperties},
    {"maxProperties", Keyword::kMaxProperties},
    {"dependentRequired", Keyword::kDependentRequired},
    {"dependentSchemas", Keyword::kDependentSchemas},
    {"dependencies", Keyword::kDependencies},
    {"unevaluatedProperties", Keyword::kUnevaluatedProperties},
    {"items", Keyword::kItems},
    {"prefixItems", Keyword::kPrefixItems},
    {"additionalItems", Keyword::kAdditionalItems},
    {"contains", Keyword::kContains},
    {"minContains", Keyword::kMinContains},
    {"maxContains", Keyword::kMaxContains},
    {"minItems", Keyword::kMinItems},
    {"maxItems", Keyword::kMaxItems},
    {"uniqueItems", Keyword::kUniqueItems},
    {"unevaluatedItems", Keyword::kUnevaluatedItems},
    {"minLength", Keyword::kMinLength},
    {"maxLength", Keyword::kMaxLength},
    {"pattern", Keyword::kPattern},
    {"format", Keyword::kFormat},
    {"contentEncoding", Keyword::kContentEncoding},
    {"contentMediaType", Keyword::kContentMediaType},
    {"minimum", Keyword::kMinimum},
    {"maximum", Keyword::kMaximum},
    {"exclusiveMinimum", Keyword::kExclusiveMinimum},
    {"exclusiveMaximum", Keyword::kExclusiveMaximum},
    {"multipleOf", Keyword::kMultipleOf},
    {"allOf", Keyword::kAllOf},
    {"anyOf", Keyword::kAnyOf},
    {"oneOf", Keyword::kOneOf},
    {"not", Keyword::kNot},
    {"if", Keyword::kIf},
    {"then", Keyword::kThen},
    {"else", Keyword::kElse},
    {"$ref", Keyword::kRef},
    {"$dynamicRef", Keyword::kDynamicRef},
    {"$recursiveRef", Keyword::kRecursiveRef},
    {"$anchor", Keyword::kAnchor},
    {"$dynamicAnchor", Keyword::kDynamicAnchor},
    {"$recursiveAnchor", Keyword::kRecursiveAnchor},
    {"$id", Keyword::kId},
    {"id", Keyword::kLegacyId},
    {"$defs", Keyword::kDefs},
    {"definitions", Keyword::kDefinitions},
    {"$schema", Keyword::kSchema},
    {"title", Keyword::kAnnotation},
    {"description", Keyword::kAnnotation},
    {"default", Keyword::kAnnotation},
    {"examples", Keyword::kAnnotation},
    {"example", Keyword::kAnnotation},
    {"deprecated", Keyword::kAnnotation},
    {"readOnly", Keyword::kAnnotation},
    {"writeOnly", Keyword::kAnnotation},
    {"$comment", Keyword::kAnnotation},
    {"$vocabulary", Keyword::kAnnotation},
    {"contentSchema", Keyword::kAnnotation},
    {"discriminator", Keyword::kAnnotation},
    {"externalDocs", Keyword::kAnnotation},
    {"xml", Keyword::kAnnotation},
    {"nullable", Keyword::kAnnotation},
};

// Open addressing over a small table, built by the compiler: a look-up is one probe for nearly every word.
constexpr std::size_t kSlots = 256;

constexpr std::size_t slot_of(std::string_view w) {
  std::size_t h = w.size() * 31;
  if (!w.empty()) {
    h += static_cast<unsigned char>(w.front()) * 7u + static_cast<unsigned char>(w.back()) * 13u +
         static_cast<unsigned char>(w[w.size() / 2]) * 101u;
  }
  return h % kSlots;
}

constexpr std::array<std::uint8_t, kSlots> make_table() {
  std::array<std::uint8_t, kSlots> table{};  // index + 1
  for (std::size_t i = 0; i < std::size(kWords); ++i) {
    std::size_t s = slot_of(kWords[i].word);
    while (table[s]) s = (s + 1) % kSlots;
    table[s] = static_cast<std::uint8_t>(i + 1);
  }
  return table;
}
constexpr auto kTable = make_table();

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t changed = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row[b.size()];
}

// Lower case, without '-' and '_': "max_length" and "maxlength" mean maxLength.
std::string plain_form(std::string_view w) {
  std::string out;
  for (char c : w) {
    if (c != '_' && c != '-' && c != '$') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

}  // namespace

Keyword keyword_of(std::string_view word) {
  for (std::size_t s = slot_of(word); kTable[s]; s = (s + 1) % kSlots) {
    const Entry& e = kWords[kTable[s] - 1];
    if (e.word == word) return e.keyword;
  }
  return Keyword::kUnknown;
}

std::string_view nearest_keyword(std::string_view word) {
  if (word.starts_with("x-") || word.size() > 40) return {};
  std::string plain = plain_form(word);
  std::string_view best;
  std::size_t best_distance = 3;
  for (const Entry& e : kWords) {
    if (e.keyword == Keyword::kAnnotation || e.keyword == Keyword::kLegacyId) continue;
    std::string other = plain_form(e.word);
    std::size_t allowed = other.size() >= 9 ? 2 : other.size() >= 5 ? 1 : 0;
    std::size_t d = distance(plain, other);
    if (d <= allowed && d < best_distance) best = e.word, best_distance = d;
  }
  return best;
}

}  // namespace ag
