// Numbers that are no multiples of given divisors: another part, followed together with remainders.
#pragma once

#include <array>
#include <vector>

#include "regular/decimal.h"
#include "regular/number_scaled.h"

namespace ag::regular {

// `base` must write no exponents; its values are on `grid`, if that is given. The product of its states and the
// remainders is explored as a whole when it is made, and what leads nowhere is dropped. Throws GrammarError when there
// are too many states.
class AvoidingNumber final : public NumberPart {
 public:
  AvoidingNumber(NumberPartPtr base, const Grid* grid, const std::vector<Decimal>& divisors);
  State start() override { return start_; }
  State step(State state, char byte) override;
  bool accepting(State state) override { return rows_[state].accepting; }
  std::string shortest(State state) override;

 private:
  static constexpr std::string_view kBytes = "0123456789-.";
  static constexpr std::uint32_t kFar = ~std::uint32_t{0};
  using Steps = std::array<State, kBytes.size()>;
  struct Row {
    Steps to{};
    bool accepting = false;
    std::uint32_t distance = kFar;  // bytes to the nearest end
  };
  // Divisors that are followed together: what was read, mod `modulus`, a multiple of each of them.
  struct Group {
    std::uint64_t modulus = 1;
    std::vector<std::uint64_t> divisors;
    std::vector<std::uint64_t> moduli{};  // by digits of the fraction: with fewer, zeros bring factors of ten
  };
  // What was read: the base's state, and of the digits: whether a point stands before them, how many follow it, and
  // whether one that is not zero stands beyond every divisor's digits (`finer`). A place is a tuple of this head and of
  // the remainders of all digits read, one a group.
  struct Head {
    State base = kDead;
    bool point = false, finer = false;
    std::uint32_t fraction = 0;
  };
  std::uint64_t pack(const Head& head) const;
  Head unpack(std::uint64_t word) const;
  void add(std::uint64_t divisor);
  const Steps& base_steps(State base);
  bool read(std::size_t byte, std::vector<std::uint64_t>* place);  // false: nowhere
  bool accepts(const std::uint64_t* place) const;
  void explore();
  void measure();

  NumberPartPtr base_;
  std::uint32_t scale_ = 0;  // the divisors are in units of 10^-scale_
  std::vector<Group> groups_;
  std::vector<Steps> base_steps_;
  std::vector<bool> base_known_;
  std::vector<Row> rows_{1};
  State start_ = kDead;
};

}  // namespace ag::regular
