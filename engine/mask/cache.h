// The cache of mask entries of one engine: shared by all its grammars, sessions and threads, bounded in bytes.
//
// Reading goes through a small table of the thread's own and takes no lock; a miss there looks into one of a few
// shards. Two threads that want one entry build it once. Eviction drops the cache's reference only, so it never blocks
// a fill.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/ref.h"
#include "mask/entry.h"

namespace ag {

class MaskCache {
 public:
  // `compress`: whether counters that no token can tell apart share their entries (repetition compression).
  MaskCache(std::shared_ptr<const Vocabulary> vocab, std::size_t bytes, bool compress = true);

  // The entry of a terminal's state over the vocabulary, or over the rests of another entry's leaves. It stays until the
  // calling thread calls let_go().
  const Entry& get(const Rests* rests, Terminal& terminal, Terminal::State state, CounterClass counter);
  // The same where the thread has asked for it lately, otherwise null.
  const Entry* at_hand(const Rests* rests, Terminal& terminal, Terminal::State state, CounterClass counter) const;
  static void let_go() { replaced_.clear(); }
  std::uint32_t longest_key() const { return longest_key_; }
  const Vocabulary& vocab() const { return *vocab_; }
  CounterClass classify(const Terminal& terminal, std::uint64_t counter);
  // Changes when the cache is cleared, and is never that of another cache.
  std::uint64_t tag() const { return id_ << 20 | (generation_.load(std::memory_order_relaxed) & 0xfffff); }
  // Bytes that threads hold beside the cache, for what is in it; and how many they should.
  const std::shared_ptr<std::atomic<std::size_t>>& beside() const { return beside_; }
  std::size_t most_beside() const { return shard_bytes_ * kShards / 4; }

  struct Stats {
    std::size_t entries = 0, bytes = 0;
    std::uint64_t hits = 0, misses = 0, evictions = 0, nodes = 0;
  };
  Stats stats() const;
  void count_hits(std::uint64_t hits) { hits_.fetch_add(hits, std::memory_order_relaxed); }
  void clear();

 private:
  struct Key {
    std::uint64_t terminal, rests, counter;
    std::uint32_t state;
    bool operator==(const Key&) const = default;
  };
  static Key key_of(const Rests* rests, Terminal& table, const Terminal& terminal, Terminal::State state,
                    CounterClass counter);
  struct Hash {
    std::size_t operator()(const Key& k) const {
      std::uint64_t h = (k.terminal * 0x9E3779B97F4A7C15ull) ^ (k.rests * 0xC2B2AE3D27D4EB4Full) ^
                        (std::uint64_t{k.state} << 20) ^ k.counter;
      h ^= h >> 31;
      h *= 0xBF58476D1CE4E5B9ull;
      return h ^ h >> 29;
    }
  };
  // One block for each entry: it is in a bucket of its shard, and in a list by when it was asked for.
  struct Slot {
    Key key;
    std::once_flag once;
    std::shared_ptr<const Entry> entry;
    std::size_t bytes = 0;
    bool listed = true;  // the shard has it
    Slot *next = nullptr, *newer = nullptr, *older = nullptr;
    std::atomic<std::uint32_t> refs{1};
    explicit Slot(const Key& k) : key(k) {}
    void add_ref() { refs.fetch_add(1, std::memory_order_relaxed); }
    void release() {
      if (refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }
  };
  struct Shard {
    std::mutex mutex;
    std::vector<Slot*> buckets = std::vector<Slot*>(64);  // a power of two
    Slot *newest = nullptr, *oldest = nullptr;
    std::size_t count = 0, bytes = 0;
    ~Shard() { clear(); }
    // The slot of a key, which is the newest then.
    Ref<Slot> find_or_add(const Key& key);
    void drop_oldest();
    void clear();

   private:
    Slot*& bucket(const Key& key) { return buckets[Hash{}(key) & (buckets.size() - 1)]; }
    void add_newest(Slot* slot);
    void unlink(Slot* slot);
    void grow();
  };
  struct alignas(64) Near {  // the thread's own table
    std::uint64_t cache = 0;
    Key key{};
    std::shared_ptr<const Entry> entry;
  };
  static constexpr std::size_t kShards = 8, kNear = 1024;

  static thread_local std::array<Near, kNear> near_;
  static thread_local std::vector<std::shared_ptr<const Entry>> replaced_;  // out of near_, and perhaps still in use
  static const Entry& keep(Near& near, std::uint64_t tag, const Key& key, std::shared_ptr<const Entry> entry);
  const std::uint64_t id_;
  std::atomic<std::uint64_t> generation_{0};
  std::shared_ptr<const Vocabulary> vocab_;
  const std::size_t shard_bytes_;
  const bool compress_;
  Slices slices_;
  std::uint32_t longest_key_ = 0;
  SharedEnds ends_;
  std::array<Shard, kShards> shards_;
  std::shared_ptr<std::atomic<std::size_t>> beside_ = std::make_shared<std::atomic<std::size_t>>(0);
  std::atomic<std::uint64_t> hits_{0}, misses_{0}, evictions_{0}, nodes_{0};
};

}  // namespace ag
