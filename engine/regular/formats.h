// JSON Schema's string formats as regular languages, after the documents that define them.
#pragma once

#include <string_view>

#include "regular/derivative.h"

namespace ag::regular {

// The strings of a known format; lowers *max_length where the format bounds its strings' length.
RegexStore::Id format_language(RegexStore& store, std::string_view format, std::uint64_t* max_length);

}  // namespace ag::regular
