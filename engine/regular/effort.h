// How much work one compilation may put into the states of patterns and numbers, so that many of them together are
// refused as soon as one large one is. Counted in steps of about 70 ns, never in time: the same schema ends the same
// way on any machine, and whether or not others have made its terminals before it (see TerminalPool).
#pragma once

#include <cstdint>
#include <limits>

namespace ag::regular {

class Effort {
 public:
  // For what this thread does until it is destroyed.
  explicit Effort(std::uint64_t steps) : outer_(current_), left_(steps) { current_ = this; }
  ~Effort() { current_ = outer_; }
  Effort(const Effort&) = delete;
  Effort& operator=(const Effort&) = delete;

  static std::uint64_t left() { return current_ ? current_->left_ : std::numeric_limits<std::uint64_t>::max(); }
  // False when it was more than was left.
  static bool spend(std::uint64_t steps) {
    if (!current_) return true;
    const bool enough = steps <= current_->left_;
    current_->left_ -= enough ? steps : current_->left_;
    return enough;
  }

 private:
  static inline thread_local Effort* current_ = nullptr;
  Effort* outer_;
  std::uint64_t left_;
};

}  // namespace ag::regular
