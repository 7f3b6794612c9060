// Values that are told apart while they are spelled, byte by byte: numbers, and strings of few characters, of which an
// array of distinct items may run out (JSON Schema's uniqueItems).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "grammar/rule.h"

namespace ag {

class SpelledValues {
 public:
  // The union of the terminals' languages, each of JSON numbers or of JSON strings.
  explicit SpelledValues(std::vector<TerminalPtr> kinds);
  bool empty() const { return kinds_.empty(); }
  const std::string& alphabet() const { return alphabet_; }  // the bytes that occur, in order

  // What is seen is kept among an array's SeenKeys: as it was spelled, a zero byte, and what tells its value. Other
  // keys there are strings of another kind.
  static const SeenKey* keep(std::string_view spelling, const SeenKey* before, Arena& arena);
  static bool kept_here(const SeenKey& key);
  static std::string_view spelling(const SeenKey& key);

  // Whether a spelling can be completed to a value that is not taken, and whether it is one as it is.
  bool alive(std::string_view prefix, const SeenKey* taken) const;
  bool complete(std::string_view spelling, const SeenKey* taken) const;
  // Such completions (the whole spellings), short ones first, of up to `wanted` different values; none of `avoided`.
  std::vector<std::string> fresh(std::string_view prefix, const SeenKey* taken, std::uint64_t wanted,
                                 const std::vector<std::string>& avoided = {}) const;
  std::size_t bytes() const { return kinds_.size() * sizeof(TerminalPtr) + alphabet_.size(); }

 private:
  struct Place {
    std::uint32_t kind;
    Terminal::State state;
    std::uint64_t units;
  };
  bool step(Place* place, std::uint8_t byte) const;
  std::vector<Place> read(std::string_view prefix) const;

  std::vector<TerminalPtr> kinds_;
  std::string alphabet_;
};

}  // namespace ag
