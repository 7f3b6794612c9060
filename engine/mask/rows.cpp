#include "mask/rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bits.h"
#include "base/hash.h"

namespace ag {

void Steps::clear() {
  steps_.clear();
  own_.clear();
  used_.clear();
  kept_.clear();
  pointed_ = 0;
}

void Steps::add_own(Kind kind, const std::uint32_t* from, std::size_t count) {
  if (steps_.empty() || steps_.back().kind != kind)
    steps_.push_back({nullptr, static_cast<std::uint32_t>(own_.size()), 0, kind});
  own_.insert(own_.end(), from, from + count);
  steps_.back().count += static_cast<std::uint32_t>(count);
}

void Steps::set(const std::uint32_t* from, const std::uint32_t* until) {
  if (until - from > kFew)
    add(kSet, from, until - from);
  else
    add_own(kSetOwn, from, static_cast<std::size_t>(until - from));
}

void Steps::set_one(std::uint32_t id) { add_own(kSetOwn, &id, 1); }

void Steps::unset(const std::vector<std::uint32_t>& ids) {
  if (!ids.empty()) add_own(kUnsetOwn, ids.data(), ids.size());
}

void Steps::keep() {
  kept_.reserve(used_.size());
  for (const Entry* entry : used_) kept_.push_back(entry->shared_from_this());
  used_.clear();
}

void Steps::make(std::uint32_t* row, std::size_t words) const {
  for (const Step& step : steps_) {
    if (step.at) __builtin_prefetch(step.at);
  }
  if (steps_.empty() || steps_.front().kind != kCopy) std::memset(row, 0, words * 4);
  for (const Step& step : steps_) {
    const std::uint32_t* ids = step.at ? step.at : own_.data() + step.from;
    switch (step.kind) {
      case kCopy:
        std::memcpy(row, step.at, words * 4);
        break;
      case kMerge:
        for (std::size_t w = 0; w < words; ++w) row[w] |= step.at[w];
        break;
      case kSet:
      case kSetOwn:
        for (std::uint32_t i = 0; i < step.count; ++i) set_bit(row, ids[i]);
        break;
      case kUnsetOwn:
        for (std::uint32_t i = 0; i < step.count; ++i) clear_bit(row, ids[i]);
        break;
    }
  }
}

std::size_t Steps::bytes() const {
  return steps_.capacity() * sizeof(Step) + own_.capacity() * 4 + kept_.capacity() * sizeof(kept_[0]);
}

std::size_t Steps::cost() const {
  std::size_t out = 0;
  for (const Step& step : steps_) out += step.kind == kCopy ? 0 : step.kind == kMerge ? kFew : step.count;
  return out;
}

KeptRow::KeptRow(const std::uint32_t* base, std::vector<std::shared_ptr<const Entry>> holders,
                 std::span<const Patch> patches, std::shared_ptr<std::atomic<std::size_t>> counted)
    : base_(base),
      holders_(std::move(holders)),
      patches_(patches.begin(), patches.end()),
      counted_(std::move(counted)) {
  counted_->fetch_add(bytes(), std::memory_order_relaxed);
}

KeptRow::~KeptRow() { counted_->fetch_sub(bytes(), std::memory_order_relaxed); }

void KeptRow::make(std::uint32_t* row, std::size_t words) const {
  if (base_)
    std::memcpy(row, base_, words * 4);
  else
    std::memset(row, 0, words * 4);
  for (const Patch& patch : patches_) row[patch.at] = patch.bits;
}

// Into patches_, at most a block more than kMost. Which words differ is anybody's guess, the processor's too, so that
// there are no branches by single words.
template <class At>
std::size_t KeptRows::differences(const std::uint32_t* row, std::size_t words, At base) {
  std::size_t count = 0;
  const auto take = [&](std::size_t from, std::size_t until) {
    for (std::size_t i = from; i < until; ++i) {
      patches_[count] = {static_cast<std::uint32_t>(i), row[i]};
      count += row[i] != base(i);
    }
  };
  std::size_t w = 0;
  for (; w + kBlock <= words && count < kMost; w += kBlock) {
    std::uint32_t differ = 0;
    for (std::size_t i = w; i < w + kBlock; ++i) differ |= row[i] ^ base(i);
    if (differ) take(w, w + kBlock);
  }
  if (count < kMost) take(w, words);
  return count;
}

std::shared_ptr<const KeptRow> KeptRows::find_or_make(const std::uint32_t* row, const Steps& steps,
                                                      const MaskCache& cache) {
  const std::uint32_t* const base = steps.base();
  const std::size_t words = cache.vocab().words();
  const std::size_t count = base ? differences(row, words, [&](std::size_t i) { return base[i]; })
                                 : differences(row, words, [](std::size_t) { return 0u; });
  if (count >= kMost) return nullptr;
  const std::span<const KeptRow::Patch> patches(patches_.data(), count);
  std::uint64_t hash = reinterpret_cast<std::uintptr_t>(base);
  for (const KeptRow::Patch& patch : patches) hash = hash_next(hash, std::uint64_t{patch.at} << 32 | patch.bits);
  std::shared_ptr<const KeptRow>& found = lately_[(hash >> 20) % kLately];
  if (!found || !found->is(base, patches)) {
    found = std::make_shared<KeptRow>(base, base ? steps.kept() : std::vector<std::shared_ptr<const Entry>>(), patches,
                                      cache.beside());
  }
  return found;
}

}  // namespace ag
