// A deterministic automaton over Unicode scalar values: a language of decoded strings, before it is spelled in bytes.
//
// Invariants: state 0 is dead and appears in no row; every other state is live. Rows are sorted, disjoint and hold
// no surrogate; neighbours with one target are merged (except across the surrogate gap).
// Not thread-safe: the terminal that owns it calls it under its mutex.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "regular/codepoints.h"
#include "regular/table.h"

namespace ag::regular {

class CpAutomaton {
 public:
  using State = std::uint32_t;
  static constexpr State kDead = 0;
  static constexpr std::uint32_t kAnyLabel = 0xffff'fffe, kNoLabel = 0xffff'ffff;

  struct Piece {
    Cp lo, hi;
    State to;
  };
  using Pieces = std::vector<Piece>;

  virtual ~CpAutomaton() = default;

  virtual State start() const = 0;
  // The reference holds until the next call of row().
  virtual const Pieces& row(State state) = 0;
  virtual bool accepting(State state) = 0;
  virtual State step(State state, Cp cp);

  // Of an accepting state.
  virtual std::uint32_t label(State) { return 0; }
  virtual Terminal::Range range(State) { return {0, 1, false}; }
  virtual bool has_label(std::uint32_t) const { return true; }

  // Whether counts tell states apart; and a state that does the same as this one for as long as a token may be.
  virtual bool counts() const { return false; }
  virtual State alike(State state, Runs&, bool /*escaped*/) { return state; }

  // Memory held, about. It only grows.
  virtual std::size_t bytes() const { return 64; }

  // Bytes (see cost_of) of a shortest completion that ends with `label`, or with any; kNoRest when there is none.
  virtual std::uint32_t min_cost(State state, std::uint32_t label, bool quoted) { return search(state, label, quoted); }

 protected:
  // min_cost() by Dijkstra's algorithm over the states met.
  std::uint32_t search(State state, std::uint32_t label, bool quoted);
};

using CpAutomatonPtr = std::unique_ptr<CpAutomaton>;

// Appends a piece, merging it with the one before where possible.
void append_piece(CpAutomaton::Pieces* row, Cp lo, Cp hi, CpAutomaton::State to);

// Every string.
class AnyString final : public CpAutomaton {
 public:
  State start() const override { return 1; }
  const Pieces& row(State) override { return row_; }
  bool accepting(State) override { return true; }
  State step(State state, Cp) override { return state; }
  bool has_label(std::uint32_t label) const override { return label == 0; }
  std::uint32_t min_cost(State, std::uint32_t, bool) override { return 0; }

 private:
  Pieces row_{{0, kSurrogateLo - 1, 1}, {kSurrogateHi + 1, kMaxCp, 1}};
};

}  // namespace ag::regular
