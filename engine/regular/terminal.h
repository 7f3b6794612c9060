// A terminal: a regular language over bytes, run as a deterministic automaton whose states are made on demand.
//
// Invariants that the parser and the masks rely on:
//   - state 0 is dead, state 1 is the start; state numbers are stable for the terminal's life;
//   - every state that next() returns is live: some completion exists (for a counted terminal, within its bounds;
//     for a labelled terminal, for some label). Dead ends are pruned here, never searched for at run time;
//   - all methods are safe to call from several threads at once.
//
// Counters. A terminal may count units (characters of a JSON string). The counter's value lives with the parser's
// item, not in the state, so that states and masks do not depend on the bounds. next() says by flags what a step does:
// kUnit: the step takes one more unit, legal while counter < max_units(). It is the unit's first byte that carries the
// flag (the lead byte, the backslash), so that a unit which may not be finished is never begun;
// kClose: the step is legal only while counter >= min_units() (the closing quote).
//
// Labels. A terminal may stand for several outcomes (the members of an object, the triggers of a dispatch).
// accepting(s) states then carry label(s), and range(s) tells which labels can still be reached, so that a
// caller may rule some of them out for a while without making new states.
#pragma once

#include <atomic>
#include <bit>
#include <bitset>
#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"

namespace ag {

namespace regular {
class NameSet;
}

// A set of characters: ASCII ones by bit, all others together, but for the line and paragraph separators.
struct Characters {
  std::uint64_t ascii[2] = {0, 0};
  bool other = false;
  bool separators = false;  // U+2028 and U+2029, too
  bool has(std::uint8_t b) const { return b < 0x80 && (ascii[b >> 6] >> (b & 63) & 1); }
  bool has_lead(std::uint8_t b) const { return b < 0x80 ? has(b) : other; }
  void set(std::uint8_t b) { ascii[b >> 6] |= std::uint64_t{1} << (b & 63); }
  // Whether holds(byte) for each of the ASCII ones.
  template <class Holds>
  bool all(Holds holds) const {
    for (std::uint8_t b = 0; b < 0x80; ++b) {
      if (has(b) && !holds(b)) return false;
    }
    return true;
  }
  int count() const { return std::popcount(ascii[0]) + std::popcount(ascii[1]); }
  auto operator<=>(const Characters&) const = default;
};

// How many characters one after the other some token has; at least, where that is all that matters.
class Runs {
 public:
  virtual ~Runs() = default;
  virtual std::uint32_t longest() const = 0;
  // Of these characters alone. `escaped`: in a JSON string, where an escape may stand for any of them.
  virtual std::uint32_t longest_run(const Characters& characters, bool escaped) = 0;
};

class Terminal {
 public:
  using State = std::uint32_t;
  static constexpr State kDead = 0;
  static constexpr State kStart = 1;
  static constexpr std::uint32_t kUnit = 1u << 30;
  static constexpr std::uint32_t kClose = 1u << 31;
  static constexpr std::uint32_t kStateMask = kUnit - 1;

  // Labels reachable from a state: members [lo, hi) in the terminal's own label order, or `others`: label values
  // from others_begin() on.
  struct Range {
    std::uint32_t lo = 0, hi = 0;
    bool others = false;
    bool operator==(const Range&) const = default;
  };

  Terminal() : id_(next_id()) {}
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  virtual ~Terminal() = default;

  // Never given twice in a process, unlike an address.
  std::uint64_t id() const { return id_; }

  // The state after `byte`, with flags; kDead when the byte cannot follow.
  virtual std::uint32_t next(State state, std::uint8_t byte) = 0;
  virtual bool accepting(State state) = 0;

  // Length in bytes of a shortest completion from `state` when `counter` units are read, and one such completion.
  virtual std::uint32_t min_rest(State state, std::uint64_t counter) = 0;
  virtual std::string shortest(State state, std::uint64_t counter) = 0;

  // Counted terminals only.
  virtual bool counted() const { return false; }
  virtual std::uint64_t min_units() const { return 0; }
  virtual std::uint64_t max_units() const { return kNoMax; }

  // Labelled terminals only. label() of an accepting state; range() of any live state (exact: a label is in the range
  // iff some completion ends with it). shortest_label(): a shortest completion that ends with that label, if any.
  virtual bool labelled() const { return false; }
  virtual std::uint32_t others_begin() const { return 0; }
  virtual std::uint32_t label(State) { return 0; }
  // The label of accepting states from which the terminal goes on (the end of a text).
  virtual std::uint32_t inner_label() const { return 0xffff'ffff; }
  virtual Range range(State) { return {}; }
  virtual bool shortest_label(State, std::uint32_t /*label*/, std::string* /*out*/) { return false; }
  // Whether anything at all ends with that label.
  virtual bool has_label(std::uint32_t /*label*/) { return true; }

  // Bytes taken one after the other for as long as no state on the way accepts. `dead`: the next one cannot follow.
  struct Advance {
    State state;
    std::uint64_t counter;
    std::size_t taken = 0;
    bool dead = false;
  };
  virtual Advance advance(State state, std::uint64_t counter, std::string_view bytes) {
    return advance_by([this](State s, std::uint8_t b) { return next(s, b); }, [this](State s) { return accepting(s); },
                      state, counter, bytes);
  }

  // Bytes that may follow.
  virtual std::bitset<256> live(State state) {
    std::bitset<256> out;
    for (int b = 0; b < 256; ++b) out[b] = next(state, static_cast<std::uint8_t>(b)) != kDead;
    return out;
  }
  // The bytes that may follow, in any order, where they are at most kFew; kMany where they are more.
  static constexpr std::uint32_t kFew = 64, kMany = ~0u;
  virtual std::uint32_t few_live(State state, std::uint8_t* out) {
    const std::bitset<256> bytes = live(state);
    const std::size_t n = bytes.count();
    if (n > kFew) return kMany;
    std::uint32_t at = 0;
    for (std::size_t b = bytes._Find_first(); b < 256; b = bytes._Find_next(b))
      out[at++] = static_cast<std::uint8_t>(b);
    return at;
  }
  // next() of a state for all bytes, where it is kept as a table; it stays as long as the terminal.
  virtual const std::uint32_t* row(State) { return nullptr; }
  // This terminal as a set of names, where it is one.
  virtual const regular::NameSet* names() const { return nullptr; }
  // Inside a character of several bytes: the state that all of its ends lead to; kDead where that is not known.
  virtual State after_character(State) { return kDead; }
  // Whether some state may take most characters and stay as it is.
  virtual bool loops() const { return true; }
  // Of one request only: its masks are made anew each time and kept nowhere.
  virtual bool transient() const { return false; }
  // A state that no token can tell from this one, though their counts differ (repetition compression): one for many.
  virtual State alike(State state, Runs&) { return state; }
  // The terminal whose states and rows this one uses: what a cache of masks should be keyed by. Counted terminals with
  // different bounds share one.
  virtual Terminal* table() { return this; }
  // No byte may follow. Override where it is known without trying all bytes.
  virtual bool exhausted(State state) { return live(state).none(); }
  // True when the terminal accepts the empty string.
  bool nullable() { return accepting(kStart); }
  // Bytes of memory held, for the cache's bound.
  virtual std::size_t bytes() const = 0;

 protected:
  // advance() by these ways to make a step and to ask of a state.
  template <class Next, class Accepting>
  Advance advance_by(Next next, Accepting accepting, State state, std::uint64_t counter, std::string_view bytes) {
    Advance out{state, counter};
    for (char c : bytes) {
      const std::uint32_t to = next(out.state, static_cast<std::uint8_t>(c));
      const bool unit = to & kUnit;
      out.dead = to == kDead || (unit && out.counter >= max_units()) || ((to & kClose) && out.counter < min_units());
      if (out.dead || accepting(to & kStateMask)) break;
      out.counter += unit;
      out.state = to & kStateMask;
      ++out.taken;
    }
    return out;
  }

 private:
  static std::uint64_t next_id() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }
  const std::uint64_t id_;
};

using TerminalPtr = std::shared_ptr<Terminal>;

}  // namespace ag
