// What a rule is, as numbers, and the symbols that it is made of: enough to tell whether two rules are the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/builder.h"

namespace ag {

class Parts {
 public:
  enum Kind : std::uint64_t {
    kComponent,
    kSeq,
    kChoice,
    kToken,
    kRepeat,
    kArray,
    kObject,
    kCountedArray,
    kUniqueArray
  };

  // Empty ones of this thread, until somebody asks for the same use.
  enum Use : std::uint8_t { kBuild, kHold, kCompare };
  static Parts& scratch(Use use) {
    static thread_local Parts all[3];
    all[use].numbers_.clear();
    all[use].symbols_.clear();
    return all[use];
  }
  Parts& number(std::uint64_t value) {
    numbers_.push_back(value);
    return *this;
  }
  Parts& text(std::string_view text);
  Parts& texts(const std::vector<std::string>& list);
  Parts& language(const StringLanguage& language);
  // Symbols may be replaced through these parts, before what they are parts of is anybody else's.
  Parts& symbol(const Symbol& symbol) {
    symbols_.push_back(const_cast<Symbol*>(&symbol));
    return *this;
  }

  // So far without the symbols. Each kind begins with its number and says how many there are of what comes in lists, so
  // that equal numbers mean the same parts, symbol by symbol.
  const std::vector<std::uint64_t>& numbers() const { return numbers_; }
  const std::vector<Symbol*>& symbols() const { return symbols_; }
  // Appends a number for each symbol, and gives all.
  template <class Code>
  const std::vector<std::uint64_t>& describe(Code code) {
    for (const Symbol* symbol : symbols_) numbers_.push_back(code(*symbol));
    return numbers_;
  }

  // Numbers of symbols: of terminals and rules by what is never given twice, of what is only being made by its place.
  static std::uint64_t of(Symbol symbol);
  static std::uint64_t of_place(std::uint64_t place) { return place << 2 | 3; }

 private:
  std::vector<std::uint64_t> numbers_;
  std::vector<Symbol*> symbols_;
};

}  // namespace ag
