// Rows of masks to be made again: as the steps that they were put together by, which costs little to write down, and, of
// those that are asked for often, as what is to be written.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "mask/cache.h"

namespace ag {

// How a row was put together, to do it again. A few ids are written down; what entries and the vocabulary hold of more is
// pointed to.
class Steps {
 public:
  void clear();
  void copy(const std::uint32_t* bits) { add(kCopy, bits, 0); }    // the whole row
  void merge(const std::uint32_t* bits) { add(kMerge, bits, 0); }  // into the whole row
  void set(const std::uint32_t* from, const std::uint32_t* until);
  void set_one(std::uint32_t id);
  void unset(const std::vector<std::uint32_t>& ids);
  // Steps so far that point to something: who has some since then uses the entries that it comes from. Until the steps
  // are cleared, unless keep() is called.
  std::uint32_t pointed() const { return pointed_; }
  void use(const Entry& entry) { used_.push_back(&entry); }
  void keep();
  void make(std::uint32_t* row, std::size_t words) const;
  std::size_t size() const { return steps_.size() + own_.size() + used_.size(); }
  std::size_t bytes() const;
  // What the row begins as: null for zeros.
  const std::uint32_t* base() const { return steps_.empty() || steps_[0].kind != kCopy ? nullptr : steps_[0].at; }
  const std::vector<std::shared_ptr<const Entry>>& kept() const { return kept_; }
  std::size_t cost() const;  // words written one by one

 private:
  enum Kind : std::uint32_t { kCopy, kMerge, kSet, kSetOwn, kUnsetOwn };
  struct Step {
    const std::uint32_t* at;  // of own ids: null
    std::uint32_t from, count;
    Kind kind;
  };
  void add(Kind kind, const std::uint32_t* at, std::ptrdiff_t count) {
    steps_.push_back({at, 0, static_cast<std::uint32_t>(count), kind});
    ++pointed_;
  }
  void add_own(Kind kind, const std::uint32_t* from, std::size_t count);
  static constexpr std::ptrdiff_t kFew = 160;
  std::uint32_t pointed_ = 0;
  std::vector<Step> steps_;
  std::vector<std::uint32_t> own_;
  std::vector<const Entry*> used_;
  std::vector<std::shared_ptr<const Entry>> kept_;
};

// A mask as what differs from one that an entry holds, or from none: often a few words of some thousands.
class KeptRow {
 public:
  struct Patch {
    std::uint32_t at, bits;
    bool operator==(const Patch&) const = default;
  };
  // `base`: null, or bits that one of the `holders` holds.
  KeptRow(const std::uint32_t* base, std::vector<std::shared_ptr<const Entry>> holders, std::span<const Patch> patches,
          std::shared_ptr<std::atomic<std::size_t>> counted);
  ~KeptRow();
  KeptRow(const KeptRow&) = delete;
  KeptRow& operator=(const KeptRow&) = delete;
  void make(std::uint32_t* row, std::size_t words) const;
  bool is(const std::uint32_t* base, std::span<const Patch> patches) const {
    return base_ == base && std::ranges::equal(patches_, patches);
  }

 private:
  std::size_t bytes() const { return sizeof(KeptRow) + patches_.capacity() * sizeof(Patch); }
  const std::uint32_t* base_;
  std::vector<std::shared_ptr<const Entry>> holders_;
  std::vector<Patch> patches_;
  std::shared_ptr<std::atomic<std::size_t>> counted_;  // the cache's count of bytes
};

// Rows of one thread; those that were made lately are found again, since many configurations have the same mask.
class KeptRows {
 public:
  // What these steps have made; null where kMost words differ, or more, from what they began with.
  std::shared_ptr<const KeptRow> find_or_make(const std::uint32_t* row, const Steps& steps, const MaskCache& cache);

 private:
  static constexpr std::size_t kMost = 1024, kBlock = 16, kLately = 256;
  template <class At>
  std::size_t differences(const std::uint32_t* row, std::size_t words, At base);
  std::array<KeptRow::Patch, kMost + kBlock> patches_;
  std::array<std::shared_ptr<const KeptRow>, kLately> lately_;
};

}  // namespace ag
