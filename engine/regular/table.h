// A terminal whose transition rows are made when first needed and then read without locks.
//
// Invariants:
//   - a row is immutable once published; a state's label and acceptance are written before its number is;
//   - fill() and compute_rest() run under the terminal's mutex, everything else on the fast path takes no lock;
//   - rows with few live bytes are stored as short lists, so that automata of names stay small.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <mutex>

#include "regular/terminal.h"

namespace ag::regular {

inline constexpr std::uint32_t kNoRest = 0xffff'ffff;  // no completion, or more bytes than fit

// Adds lengths, sticking at kNoRest.
inline std::uint32_t add_rest(std::uint64_t a, std::uint64_t b) {
  return a >= kNoRest || b >= kNoRest - a ? kNoRest : static_cast<std::uint32_t>(a + b);
}

// A shortest completion, found by following bytes that each bring the end one byte nearer.
std::string walk_shortest(Terminal& terminal, Terminal::State state, std::uint64_t counter);

class TableTerminal : public Terminal {
 public:
  TableTerminal();
  ~TableTerminal() override;
  TableTerminal(const TableTerminal&) = delete;
  TableTerminal& operator=(const TableTerminal&) = delete;

  std::uint32_t next(State state, std::uint8_t byte) final { return step(state, byte); }
  bool accepting(State state) final { return slot(state).accepting; }
  std::uint32_t label(State state) final { return slot(state).label; }
  Advance advance(State state, std::uint64_t counter, std::string_view bytes) final {
    return advance_by([this](State s, std::uint8_t b) { return step(s, b); },
                      [this](State s) { return slot_accepting(s); }, state, counter, bytes);
  }
  std::uint32_t min_rest(State state, std::uint64_t counter) override;
  std::string shortest(State state, std::uint64_t counter) override { return walk_shortest(*this, state, counter); }
  Range range(State state) final;
  std::bitset<256> live(State state) final;
  std::uint32_t few_live(State state, std::uint8_t* out) final;
  const std::uint32_t* row(State state) final;
  std::size_t bytes() const override { return bytes_.load(std::memory_order_relaxed); }

  std::uint32_t step(State state, std::uint8_t byte) {
    std::uintptr_t row = slot(state).row.load(std::memory_order_acquire);
    if (row == 0) row = miss(state);
    if (row & 1u) return reinterpret_cast<const Sparse*>(row & ~std::uintptr_t{1})->find(byte);
    return reinterpret_cast<const Dense*>(row)->to[byte];
  }
  std::uint32_t state_count() const { return count_.load(std::memory_order_acquire); }

 protected:
  using Row = std::array<std::uint32_t, 256>;

  // Writes the live transitions of `state` into `row` (all zero before). Called once a state, under the mutex.
  virtual void fill(State state, Row& row) = 0;
  // min_rest() of a state without a counter; under the mutex.
  virtual std::uint32_t compute_rest(State state) = 0;

  // range() of a live state of a labelled terminal, label values below 2^31; under the mutex.
  virtual Range compute_range(State) { return {}; }

  // Makes the next state (numbers run from kStart). Under the mutex, or in a constructor.
  State add_state(bool accepting, std::uint32_t label);
  void charge(std::size_t bytes) { bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  bool slot_accepting(State state) { return slot(state).accepting; }

  std::mutex mutex_;

 private:
  struct Dense {
    Row to;
    std::bitset<256> live;
  };
  struct Sparse {
    static constexpr std::uint32_t kMax = 12;
    std::uint32_t size = 0;
    std::array<std::uint8_t, kMax> byte{};
    std::array<std::uint32_t, kMax> to{};
    std::uint32_t find(std::uint8_t b) const {
      for (std::uint32_t i = 0; i < size; ++i)
        if (byte[i] == b) return to[i];
      return kDead;
    }
  };
  struct Slot {
    std::atomic<std::uintptr_t> row{0};   // Dense*, or Sparse* with the lowest bit set
    std::atomic<std::uint64_t> range{0};  // packed; zero: not known yet
    std::atomic<std::uint32_t> rest{kNoRest};
    std::uint32_t label = 0;
    bool accepting = false;
  };
  static constexpr std::uint32_t kFirst = 8;  // slots in the first chunk; each chunk doubles the last

  Slot& slot(State state) {
    const std::uint32_t at = state + kFirst;
    const auto chunk = static_cast<std::uint32_t>(std::bit_width(at)) - 4;
    return chunks_[chunk].load(std::memory_order_acquire)[at - (kFirst << chunk)];
  }
  std::uintptr_t miss(State state);
  static std::uintptr_t pack(const Row& row, std::size_t* size);
  static void release(std::uintptr_t row);

  std::array<std::atomic<Slot*>, 26> chunks_{};
  std::atomic<std::uint32_t> count_{0};
  std::atomic<std::size_t> bytes_{0};
};

}  // namespace ag::regular
