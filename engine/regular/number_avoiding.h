// Numbers that are no multiples of given divisors: another part, followed together with remainders.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "regular/decimal.h"
#include "regular/number.h"

namespace ag::regular {

// `base` must write no exponents. The product of its states and the remainders is explored as a whole when it is made,
// and what leads nowhere is dropped. Throws GrammarError when there are too many states.
class AvoidingNumber final : public NumberPart {
 public:
  AvoidingNumber(NumberPartPtr base, const std::vector<Decimal>& divisors);
  State start() override { return start_; }
  State step(State state, char byte) override;
  bool accepting(State state) override { return rows_[state].accepting; }
  std::string shortest(State state) override;

 private:
  static constexpr std::string_view kBytes = "0123456789-.";
  static constexpr std::uint32_t kFar = ~std::uint32_t{0};
  struct Row {
    std::array<State, kBytes.size()> to{};
    bool accepting = false;
    std::uint32_t distance = kFar;  // bytes to the nearest end
  };
  // What was read: digits of the fraction (none before the point), remainders of all digits read.
  struct Place {
    State base = kDead;
    bool point = false, finer = false;  // finer: a digit that is not zero stands beyond every divisor's digits
    std::uint32_t fraction = 0;
    std::vector<std::uint64_t> rests;
    auto operator<=>(const Place&) const = default;
  };
  Place read(const Place& place, char byte) const;
  bool avoids(const Place& place) const;
  void explore();
  void measure();

  NumberPartPtr base_;
  std::uint32_t scale_ = 0;  // the divisors are divisors_ · 10^-scale_
  std::vector<std::uint64_t> divisors_;
  std::vector<Row> rows_{1};
  State start_ = kDead;
};

}  // namespace ag::regular
