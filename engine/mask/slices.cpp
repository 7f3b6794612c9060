#include "mask/slices.h"

#include <bit>

namespace ag {

int SliceKey::count() const { return std::popcount(ascii[0]) + std::popcount(ascii[1]); }

std::shared_ptr<const SlicePlan> Slices::plan(const SliceKey& key) {
  std::lock_guard lock(mutex_);
  auto& slot = plans_[key];
  if (slot) return slot;
  auto out = std::make_shared<SlicePlan>();
  const Vocabulary& v = *vocab_;
  // What does not begin with the slice's characters is in neither part. A subtree made only of them, reached by them,
  // holds only tokens of the slice.
  std::vector<char> inside(v.trie().max_depth() + 1, 0);
  inside[0] = 1;
  out->rest = v.trie().part(
      [&](std::uint32_t n) {
        const std::uint32_t d = v.trie().depth(n);
        inside[d] = inside[d - 1] && key.has_lead(v.trie().byte(n));
        if (!inside[d]) return d > 1;
        if (!key.covers(v.below(n))) return true;
        for (auto t = v.trie().begin(n); t != v.trie().end(n); ++t) {
          if (!key.covers(v.signature(*t), v.whole(*t))) return true;
        }
        return false;
      },
      [&](std::uint32_t id) { return !key.covers(v.signature(id), v.whole(id)); });
  out->bits.assign(v.words(), 0);
  for (std::uint32_t id = 0; id < v.size(); ++id) {
    if (v.ordinary(id) && key.covers(v.signature(id), v.whole(id))) out->bits[id / 32] |= 1u << (id % 32);
  }
  slot = out;
  if (plans_.size() > kMostPlans) {
    for (auto it = plans_.begin(); it != plans_.end(); ++it) {
      if (it->second != slot) {
        auto keep = slot;
        plans_.erase(it);
        return keep;
      }
    }
  }
  return slot;
}

const std::vector<std::uint32_t>& Slices::at_most(std::uint32_t chars) {
  std::lock_guard lock(mutex_);
  auto& slot = lengths_[std::min(chars, 255u)];
  if (!slot) {
    slot = std::make_unique<std::vector<std::uint32_t>>(vocab_->words(), 0);
    for (std::uint32_t id : vocab_->trie().values()) {
      if (vocab_->chars(id) <= chars) (*slot)[id / 32] |= 1u << (id % 32);
    }
  }
  return *slot;
}

std::size_t Slices::memory() const {
  std::lock_guard lock(mutex_);
  std::size_t total = 0;
  for (const auto& [key, plan] : plans_) {
    if (plan) total += plan->bits.capacity() * 4 + plan->rest.memory();
  }
  for (const auto& l : lengths_) total += l ? l->capacity() * 4 : 0;
  return total;
}

void Slices::clear() {
  std::lock_guard lock(mutex_);
  plans_.clear();
}

}  // namespace ag
