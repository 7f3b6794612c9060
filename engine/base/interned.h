// Interning: things with equal descriptions are one object for all who ask, as long as somebody holds it.
//
// A description is a list of numbers. It is hashed to be found and compared in full, so that no collision does harm. The
// table holds no reference: what nobody holds is gone. All of it may be called from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/ref.h"

namespace ag {

using Description = std::span<const std::uint64_t>;

class Interner;

// What can be interned. It may be found by several descriptions, which are told apart by a number, the `way`.
class Interned {
 public:
  explicit Interned(Interner& interner) : interner_(interner) {}
  Interned(const Interned&) = delete;
  Interned& operator=(const Interned&) = delete;

  void add_ref() const { refs_.fetch_add(1, std::memory_order_relaxed); }
  // Destroys what is left without a holder. That may be all that holds others, to any depth: no stack is used for them.
  void release() const;

 protected:
  virtual ~Interned() = default;
  virtual bool has(std::uint32_t way, Description description) const = 0;
  // Bytes held, and how many things it is, which must not change.
  virtual std::size_t bytes() const = 0;
  virtual std::size_t things() const = 0;

 private:
  friend class Interner;
  struct Place {
    const Interned* of = nullptr;
    Place* next = nullptr;
    std::uint64_t hash = 0;
    std::uint32_t way = 0;
  };
  bool try_add_ref() const;

  mutable std::atomic<std::uint32_t> refs_{1};
  mutable const Interned* next_dead_ = nullptr;
  Interner& interner_;
  Place first_;  // most have one
  std::vector<Place> more_;
  Place named_;
  std::uint64_t name_ = 0;
};

class Interner {
 public:
  Interner() : heads_(kFirstSize) {}
  Interner(const Interner&) = delete;
  Interner& operator=(const Interner&) = delete;

  struct Found {
    Ref<const Interned> object;
    std::uint32_t way = 0;
  };
  static std::uint64_t hash(Description description);
  // What has this description, whose hash it is; nothing when nobody holds such a thing.
  Found find(std::uint64_t hash, Description description);
  // Makes `fresh`, which the caller holds, be found by these (way, hash) pairs from now on; or gives what came to be
  // meanwhile, where that has the description, which is the first pair's.
  using Way = std::pair<std::uint32_t, std::uint64_t>;
  Ref<const Interned> publish(Interned& fresh, Description description, std::span<const Way> ways);

  // Short cuts: a number that stands for one description always, whoever gives it. A thing has one at most.
  void name(const Interned& thing, std::uint32_t way, std::uint64_t name);
  Found find_named(std::uint64_t name);

  struct Stats {
    std::size_t things = 0, bytes = 0;
    std::uint64_t found = 0;
  };
  Stats stats() const;

  // For tests, before anything is interned: no more than this many bits of a hash are looked at.
  void truncate(unsigned bits) { mask_ = bits < 64 ? (std::uint64_t{1} << bits) - 1 : ~std::uint64_t{0}; }

 private:
  friend class Interned;
  using Place = Interned::Place;
  static constexpr std::size_t kFirstSize = 64;

  Place*& head(std::uint64_t hash) { return heads_[hash & (heads_.size() - 1)]; }
  Found look(std::uint64_t hash, Description description);
  void insert(Place& place, const Interned& thing, std::uint32_t way, std::uint64_t hash);
  void remove(const Place& place);
  void grow();
  void forget(const Interned& dead);

  mutable std::mutex mutex_;
  std::vector<Place*> heads_;  // as many as a power of two
  std::size_t placed_ = 0;
  std::uint64_t mask_ = ~std::uint64_t{0};
  Stats stats_;
};

}  // namespace ag
