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
  out->bits.assign(v.words(), 0);
  std::vector<std::pair<std::string_view, std::uint32_t>> rest;
  for (std::uint32_t id : v.trie().values()) {
    const auto& sig = v.signature(id);
    if (!(sig.ascii[0] & ~key.ascii[0]) && !(sig.ascii[1] & ~key.ascii[1]) && (!sig.other || (key.other && v.whole(id)))) {
      out->bits[id / 32] |= 1u << (id % 32);
    } else {
      rest.emplace_back(v.bytes(id), id);
    }
  }
  out->rest = ByteTrie(rest);
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
