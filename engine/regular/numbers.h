// From a number language to the parts of its terminal.
#pragma once

#include <vector>

#include "regular/number.h"
#include "regular/terminals.h"

namespace ag::regular {

// Empty when no number is in the language.
std::vector<NumberPartPtr> number_parts(const NumberLanguage& language);

}  // namespace ag::regular
