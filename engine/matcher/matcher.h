// A matcher follows one reply through a grammar.
//
// Its history is a persistent list of states, one for each successful accept: a fork copies a pointer, a rollback
// follows it. A matcher belongs to one thread at a time; its forks are independent of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/kept_memory.h"
#include "base/ref.h"
#include "grammar/rule.h"
#include "mask/mask.h"
#include "vocab/vocabulary.h"

namespace ag {

class EngineCore;
class Packer;

// Compiled and immutable; what Engine::compile returns.
struct Grammar {
  std::shared_ptr<EngineCore> engine;
  std::shared_ptr<const Vocabulary> vocab;
  std::shared_ptr<const Fragment> fragment;
};

// An owned configuration, with everything that it reaches and that no earlier one owns, in one block (and more where
// that does not do).
struct Snapshot {
  std::span<const Item> items;
  std::span<const TokenItem> tokens;
  bool complete = false;
  operator ConfigView() const { return {items, tokens, complete}; }

  // Whether bytes that leave every terminal in its state have been seen to leave the whole as it is; then all such do,
  // because nothing else of a byte matters.
  bool loops() const { return loops_.load(std::memory_order_relaxed); }
  void set_loops() const { loops_.store(true, std::memory_order_relaxed); }

  void add_ref() const { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release() const;

 private:
  friend Packer;
  struct Block {
    Block* next;
  };
  Snapshot() = default;
  mutable std::atomic<std::uint32_t> refs_{1};
  std::uint32_t size_ = 0;  // of the block, in bytes
  Block* more_ = nullptr;
  mutable std::atomic<bool> loops_{false};
};

struct HistoryState {
  Ref<HistoryState> previous;
  Ref<const Snapshot> snapshot;
  Ref<HistoryState> bridge;  // states between this one and the previous that own parts of the snapshot
  bool ended = false;

  HistoryState(Ref<HistoryState> before, Ref<const Snapshot> now)
      : previous(std::move(before)), snapshot(std::move(now)) {}
  HistoryState(const HistoryState&) = delete;
  HistoryState& operator=(const HistoryState&) = delete;
  static Ref<HistoryState> make(Ref<HistoryState> before, Ref<const Snapshot> now) {
    return Ref<HistoryState>::adopt(new HistoryState(std::move(before), std::move(now)));
  }
  void add_ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release();
  static void* operator new(std::size_t size) { return KeptMemory::take(size); }
  static void operator delete(void* memory, std::size_t size) { KeptMemory::give(memory, size); }

 private:
  ~HistoryState() = default;
  std::atomic<std::uint32_t> refs_{1};
};

class Matcher {
 public:
  explicit Matcher(std::shared_ptr<const Grammar> grammar);

  bool accept(std::uint32_t token);
  bool accept_bytes(std::string_view bytes);
  void rollback(std::uint64_t n);  // throws ValueError when there are fewer
  Matcher(const Matcher& other) : grammar_(other.grammar_), state_(other.state_), depth_(other.depth_) {}
  Matcher(Matcher&&) = default;
  Matcher& operator=(const Matcher&) = delete;
  Matcher fork() const { return *this; }
  void reset();

  bool can_end() const { return !state_->ended && state_->snapshot->complete; }
  bool ended() const { return state_->ended; }
  std::uint64_t depth() const { return depth_; }

  // Writes words() words; false when every token of the vocabulary is allowed.
  bool fill(std::uint32_t* row) const;
  void fill_by_walk(std::uint32_t* row) const;  // the same mask without entries: for tests
  std::string forced_bytes() const;
  std::vector<std::uint32_t> forced_tokens(
      const std::function<std::vector<std::uint32_t>(const std::string&)>& tokenize) const;
  Ending shortest_end() const;
  std::size_t validate(const std::vector<std::uint32_t>& tokens) const;
  // Row i: the mask after node i of a draft tree; parents come first, -1 is the current state. A refused node's row,
  // and those under it, are zero.
  void fill_draft(std::uint32_t* rows, const std::vector<std::uint32_t>& tokens,
                  const std::vector<std::int64_t>& parents) const;

  const Vocabulary& vocab() const { return *grammar_->vocab; }
  const std::shared_ptr<const Grammar>& grammar() const { return grammar_; }

 private:
  bool try_token(const Ref<HistoryState>& from, std::uint32_t token, Ref<HistoryState>* out) const;
  static Ref<HistoryState> commit(const Ref<HistoryState>& previous, const ConfigView& config, Packer& packer);
  void add_ids(const ConfigView& config, std::uint32_t* row) const;
  void fill_from(const HistoryState& state, std::uint32_t* row) const;

  // A mask that was asked for twice, and what it belongs to: while nothing changes (inside a text, inside a string) a fill
  // is a copy.
  struct Last {
    Ref<const Snapshot> of;
    std::vector<std::uint32_t> row;
    bool masked = true;
  };

  std::shared_ptr<const Grammar> grammar_;
  Ref<HistoryState> state_;
  std::uint64_t depth_ = 0;
  mutable const Snapshot* filled_ = nullptr;  // whose mask was asked for last; never looked into
  mutable std::unique_ptr<Last> last_;
};

// How many bytes the calling thread's parser has stepped, for masks and for tokens: for tests of what they cost.
std::uint64_t bytes_stepped();

// Lengths of the shortest ways from a configuration to the end, and one such way.
Ending shortest_end(const ConfigView& config);

}  // namespace ag
