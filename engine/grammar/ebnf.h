// A reader for grammars in EBNF, the dialect that GBNF and XGrammar share:
//
//   root ::= expr ("," expr)*      # a comment
//   expr ::= [0-9]+ | "(" root ")" | Regex("[a-z]{2,4}") | expr "+" expr
//
// Sequences, `|`, groups, `? * + {n} {m,} {m,n}`, literals in double or single quotes, character classes, `.` for any
// character. Escapes: \n \r \t \\ \" \' \] \- \^ \xHH \uHHHH \UHHHHHHHH \u{H...}. A pattern stands between its quotes
// as it is, save that \" is a quote. Any recursion is allowed.
#pragma once

#include <memory>
#include <string_view>

#include "grammar/builder.h"

namespace ag {

// The language of the rule `root`. Throws GrammarError whose pointer is "line:column": a syntax error, a rule that is
// missing, defined twice, or can never be completed.
std::shared_ptr<const Fragment> compile_ebnf(std::string_view text, TerminalPool& pool, const Limits& limits);

}  // namespace ag
