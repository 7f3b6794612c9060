// How a language of strings becomes an automaton: which parts are needed, and whether lengths are counted outside it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "regular/cp_automaton.h"
#include "regular/terminals.h"

namespace ag::regular {

struct StringPlan {
  CpAutomatonPtr automaton;  // null when the language is empty
  bool counted = false;      // the bounds are a counter's: the automaton is that of the language without them
};
inline constexpr std::size_t kMaxStates = 20'000;
// Throws GrammarError when it needs more states than that (where all have to be known).
StringPlan plan_string(const StringLanguage& language, std::size_t max_states = kMaxStates);

// The keys of classes, labelled by the first class that has them, without those of barred classes; and without the names
// and the forbidden keys where that matters for liveness.
CpAutomatonPtr plan_keys(const std::vector<std::string>& names, const std::vector<std::string>& forbidden,
                         const std::vector<StringLanguage>& classes, std::vector<std::uint32_t> barred);

// The full matches of a pattern; null when there is none.
CpAutomatonPtr whole_pattern(std::string_view pattern);

}  // namespace ag::regular
