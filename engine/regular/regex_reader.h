// Reads regular expressions: ECMA-262 with the u flag, and what Python writes alike ((?P<name>), \A, \Z, escaped
// punctuation). Look-around, back-references, word boundaries, flags and possessive quantifiers are refused by name and
// position. Anchors are exact: a search for `^a|b$` is the strings that begin with a or end with b.
#pragma once

#include <string_view>

#include "regular/derivative.h"

namespace ag::regular {

enum class Match { kSearch, kWhole };

// The strings in which the pattern is found, or which it matches as a whole. Throws GrammarError.
RegexStore::Id read_regex(RegexStore& store, std::string_view pattern, Match match);

}  // namespace ag::regular
