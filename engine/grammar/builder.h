// Builds grammars: rules over terminals. What is built is a Fragment, immutable and shared between grammars.
//
// A Symbol is a terminal or a rule. The builder settles what the parser relies on: which symbols are nullable, which
// are productive (unproductive branches are pruned, an unproductive root is an error), and shortest lengths.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "regular/terminals.h"

namespace ag {

class Rule;  // grammar/rule.h

struct Symbol {
  Terminal* terminal = nullptr;
  Rule* rule = nullptr;
  explicit operator bool() const { return terminal || rule; }  // false: matches nothing ("never")
  bool operator==(const Symbol&) const = default;
};

// An object. Declared order: members in the order given, then keys of `others` in any order. Any order: all mixed. Keys
// never repeat, compared decoded, undeclared ones included.
struct ObjectSpec {
  struct Member {
    std::string name;  // decoded, UTF-8
    Symbol value;      // never: the key is forbidden (and the object never, if required)
    bool required = false;
  };
  struct Other {  // keys that are no member's, by class; the first class that contains the key decides
    StringLanguage keys;
    Symbol value;
    // Values that meet needs: a set of needs (bit i: need i), and the value. All of them are values as well.
    std::vector<std::pair<std::uint32_t, Symbol>> meeting{};
  };
  std::vector<Member> members;
  std::vector<Other> others;
  std::uint64_t min_properties = 0;
  std::uint64_t max_properties = kNoMax;
  std::uint32_t needs =
      0;  // how many needs there are, each to be met by the value of some key that is no member's; at most 4
  // member index -> member indices that must be present too
  std::vector<std::pair<std::uint32_t, std::vector<std::uint32_t>>> dependent_required;
  bool any_order = false;
  Whitespace whitespace = Whitespace::kFlexible;
};

struct ArraySpec {
  std::vector<Symbol> prefix;  // a prefix item that is never ends the array before it
  Symbol item;                 // after the prefix; never: nothing more
  std::uint64_t min_items = 0;
  std::uint64_t max_items = kNoMax;
  Whitespace whitespace = Whitespace::kFlexible;
};

struct Fragment;

class Builder {
 public:
  explicit Builder(TerminalPool& pool, const Limits& limits = {});
  ~Builder();

  TerminalPool& pool();

  Symbol terminal(TerminalPtr);  // nullptr gives never
  Symbol literal(std::string_view bytes);
  Symbol seq(std::vector<Symbol>);  // empty: the empty string
  Symbol choice(std::vector<Symbol>);
  Symbol repeat(Symbol item, std::uint64_t min, std::uint64_t max, Symbol separator = {});
  Symbol object(ObjectSpec);
  Symbol array(ArraySpec);
  Symbol token(std::vector<std::uint32_t> ids);          // one of these token ids
  Symbol embed(const std::shared_ptr<const Fragment>&);  // another fragment's root, kept alive
  void keep(std::shared_ptr<const Fragment>);            // the same, where its root is known
  Symbol rule(std::unique_ptr<Rule>);                    // a rule made elsewhere (dispatch)

  // Recursion: use the symbol of reserve() anywhere, define it once before finish(). What is needed again and again may have
  // a name, which stands for the same always: known() gives what some builder of the pool has defined under it, where that
  // is still in use.
  Symbol reserve();
  void define(Symbol reserved, Symbol body, std::uint64_t name = 0);
  Symbol known(std::uint64_t name);

  // Throws GrammarError when nothing can be produced, or a limit is passed.
  std::shared_ptr<const Fragment> finish(Symbol root);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ag
