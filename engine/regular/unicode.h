// Sets of scalar values by name: Unicode general categories, and ECMA-262's character class escapes.
#pragma once

#include <optional>
#include <string_view>

#include "regular/codepoints.h"

namespace ag::regular {

// The set of \p{...}: a general category ("Lu", "Letter", "gc=Lu"), Any, ASCII or Assigned. Nothing for other
// properties.
std::optional<CpSet> property_set(std::string_view expression);

const CpSet& digit_set();      // \d
const CpSet& word_set();       // \w
const CpSet& space_set();      // \s
const CpSet& line_ends_set();  // what . does not match

}  // namespace ag::regular
