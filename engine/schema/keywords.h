// The words of JSON Schema: which are constraints, which only describe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ag {

enum class Keyword : std::uint8_t {
  kUnknown,
  kAnnotation,
  kType,
  kEnum,
  kConst,
  kProperties,
  kRequired,
  kAdditionalProperties,
  kPatternProperties,
  kPropertyNames,
  kMinProperties,
  kMaxProperties,
  kDependentRequired,
  kDependentSchemas,
  kDependencies,
  kUnevaluatedProperties,
  kItems,
  kPrefixItems,
  kAdditionalItems,
  kContains,
  kMinContains,
  kMaxContains,
  kMinItems,
  kMaxItems,
  kUniqueItems,
  kUnevaluatedItems,
  kMinLength,
  kMaxLength,
  kPattern,
  kFormat,
  kContentEncoding,
  kContentMediaType,
  kMinimum,
  kMaximum,
  kExclusiveMinimum,
  kExclusiveMaximum,
  kMultipleOf,
  kAllOf,
  kAnyOf,
  kOneOf,
  kNot,
  kIf,
  kThen,
  kElse,
  kRef,
  kDynamicRef,
  kRecursiveRef,
  kAnchor,
  kDynamicAnchor,
  kRecursiveAnchor,
  kId,
  kLegacyId,
  kDefs,
  kDefinitions,
  kSchema,
  kCount  // at most 64: sets of keywords are words
};

inline constexpr std::size_t kKeywordCount = static_cast<std::size_t>(Keyword::kCount);

Keyword keyword_of(std::string_view word);
// The keyword that an unknown word was probably meant to be; empty when none is near.
std::string_view nearest_keyword(std::string_view word);

}  // namespace ag
