// JSON numbers as a terminal: the union of parts, each a deterministic automaton for one interval and one sign.
//
// A state is the tuple of the parts' states. Each part reports only live states (it proves by intervals that a
// completion exists), so the union is live iff one part is.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "regular/table.h"

namespace ag::regular {

class NumberPart {
 public:
  using State = std::uint32_t;
  static constexpr State kDead = 0;
  virtual ~NumberPart() = default;
  virtual State start() = 0;  // dead when the part is empty
  virtual State step(State state, char byte) = 0;
  virtual bool accepting(State state) = 0;
  // A shortest completion.
  virtual std::string shortest(State state) = 0;
};

using NumberPartPtr = std::unique_ptr<NumberPart>;

// Every number of one sign, or every integer (no "-0" then). Exponents go as far as a double's, from -324 to 308:
// what reads JSON makes infinity of more, or a number of any length.
class FreeNumber final : public NumberPart {
 public:
  FreeNumber(bool negative, bool integer) : negative_(negative), integer_(integer) {}
  State start() override { return kStart; }
  State step(State state, char byte) override;
  bool accepting(State state) override { return state == kZero || state == kInt || state == kFrac || state >= kExp; }
  std::string shortest(State state) override;

 private:
  enum : State {
    kStart = 1,
    kMinus,
    kZero,
    kInt,
    kPoint,
    kFrac,
    kE,
    kESign,
    kEMinus,
    kExp,
    kExp3,
    kExp30,
    kExpMinus3,
    kExpMinus32,
    kExpLast,
    kExpDone
  };
  bool negative_, integer_;
};

class NumberTerminal final : public TableTerminal {
 public:
  // The parts that can produce anything; at least one.
  explicit NumberTerminal(std::vector<NumberPartPtr> parts);
  std::string shortest(State state, std::uint64_t counter) override;

 private:
  using Tuple = std::vector<NumberPart::State>;
  void fill(State state, Row& row) override;
  std::uint32_t compute_rest(State state) override;
  std::string completion(State state);
  State intern(Tuple tuple);

  std::vector<NumberPartPtr> parts_;
  std::vector<Tuple> tuples_;
  std::map<Tuple, State> index_;
};

}  // namespace ag::regular
