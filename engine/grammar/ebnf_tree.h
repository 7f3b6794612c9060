// The syntax tree of an EBNF grammar, and its reader.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"

namespace ag::ebnf {

struct Expr {
  enum Kind : std::uint8_t { kText, kRegex, kRef, kSeq, kChoice, kRepeat } kind = kText;
  std::string text;                // kText: UTF-8; kRegex: a pattern (character classes too)
  std::uint32_t rule = 0;          // kRef
  std::uint64_t min = 1, max = 1;  // kRepeat, of children[0]
  std::vector<Expr> children;      // nested at most kMaxNesting deep
};

struct RuleDef {
  std::string name;
  std::size_t at = 0;  // offset of the name where it is defined, or first used
  bool defined = false;
  Expr body;
};

inline constexpr std::uint32_t kMaxNesting = 500;

struct Grammar {
  std::vector<RuleDef> rules;  // every one is defined
  std::uint32_t root = 0;
};

Grammar read(std::string_view text);
[[noreturn]] void fail_at(std::string_view text, std::size_t offset, std::string message, std::string hint = {});
// A code point as a regular expression spells it, inside or outside a class.
void append_regex(std::string& out, std::uint32_t code_point);

}  // namespace ag::ebnf
