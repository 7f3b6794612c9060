#include "regular/numbers.h"

namespace ag::regular {

std::vector<NumberPartPtr> number_parts(const NumberLanguage& n) {
  if (!(n.minimum + n.exclusive_minimum + n.maximum + n.exclusive_maximum).empty() || !n.multiple_of.empty() ||
      !n.excluded.empty())
    throw GrammarError("bounds on numbers are not available in this build", "", "minimum", "Leave them out.");
  std::vector<NumberPartPtr> out;
  out.push_back(std::make_unique<FreeNumber>(false, n.integer));
  out.push_back(std::make_unique<FreeNumber>(true, n.integer));
  return out;
}

}  // namespace ag::regular
