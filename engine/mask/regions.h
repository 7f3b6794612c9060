// What whole characters do to a terminal's states.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "regular/terminal.h"

namespace ag {

// Steps by whole characters, one unit each where the terminal counts.
class CharacterSteps {
 public:
  explicit CharacterSteps(Terminal& terminal) : terminal_(terminal), counted_(terminal.counted()) {}
  // Whether what next() said leads to `to`.
  bool leads(std::uint32_t next, Terminal::State to) const { return (next & Terminal::kStateMask) == to && fits(next); }
  // Whether every character beyond ASCII leads from `from` to `to`, but for the separators; and whether these do.
  bool others_lead(Terminal::State from, Terminal::State to);
  bool separators_lead(Terminal::State from, Terminal::State to);
  // Characters that lead from `from` to `to`.
  Characters between(Terminal::State from, Terminal::State to);
  // ASCII characters that may follow, and where they lead; kDead where one may not.
  void ascii(Terminal::State from, Terminal::State (&to)[0x80]);
  // Where one beyond ASCII leads; all do, if others_lead() says so.
  Terminal::State example(Terminal::State from);

 private:
  bool fits(std::uint32_t next) const {
    return next != Terminal::kDead && !(next & Terminal::kClose) && (!counted_ || (next & Terminal::kUnit));
  }
  bool separators_apart(std::uint32_t e2, Terminal::State separators);
  Terminal& terminal_;
  const bool counted_;
};

// States with the same labels that are never left by some characters: each of these leads from each of the states to one
// of them. Tokens made of them alone stay inside of the terminal, wherever they lead.
struct Region {
  Characters characters;                // none: these states have no region
  std::vector<Terminal::State> states;  // sorted
};

class Regions {
 public:
  // The region of a state, with many characters; null where none was found.
  std::shared_ptr<const Region> find(Terminal& terminal, Terminal::State state);
  void clear();

 private:
  static std::shared_ptr<const Region> look(Terminal& terminal, Terminal::State state);
  static constexpr std::size_t kMost = 1024;  // of regions
  std::mutex mutex_;
  std::map<std::uint64_t, std::vector<std::shared_ptr<const Region>>> of_;  // by terminal
  std::size_t known_ = 0;
};

}  // namespace ag
