#include "mask/slices.h"

#include <algorithm>
#include <bit>

namespace ag {

int SliceKey::count() const { return std::popcount(ascii[0]) + std::popcount(ascii[1]); }

std::shared_ptr<const SlicePlan> Slices::plan(const SliceKey& key) {
  std::lock_guard lock(mutex_);
  auto& slot = plans_[key];
  if (slot) return slot;
  auto out = std::make_shared<SlicePlan>();
  const Vocabulary& v = *vocab_;
  const ByteTrie& all = v.trie();
  const auto size = [&](std::uint32_t n) { return static_cast<std::size_t>(all.end(all.skip(n) - 1) - all.begin(n)); };
  // Either the slice's tokens are written, or all are and the others taken back: whichever are fewer.
  std::size_t candidates = 0;
  for (std::uint32_t n = 1; n < all.nodes(); n = all.skip(n)) candidates += key.has_lead(all.byte(n)) ? size(n) : 0;
  const bool most = candidates > all.values().size() / 2;
  if (most)
    out->bits = v.all_bits();
  else
    out->bits.assign(v.words(), 0);
  const auto flip = [&](std::uint32_t id) { out->bits[id / 32] ^= 1u << (id % 32); };
  const auto flip_below = [&](std::uint32_t n) { std::for_each(all.begin(n), all.end(all.skip(n) - 1), flip); };
  // By depth: whether the path is made of the slice's characters, and whether some are beyond ASCII.
  struct Path {
    bool inside, other;
  };
  std::vector<Path> path(all.max_depth() + 1, Path{true, false});
  std::uint32_t depth = 0;
  const auto in_slice = [&](std::uint32_t id) { return path[depth].inside && (!path[depth].other || v.whole(id)); };
  // What does not begin with the slice's characters is in neither part. A subtree made only of them, reached by them,
  // holds only tokens of the slice.
  out->rest = all.part(
      [&](std::uint32_t n) {
        depth = all.depth(n);
        const std::uint8_t byte = all.byte(n);
        path[depth] = {path[depth - 1].inside && key.has_lead(byte), path[depth - 1].other || byte >= 0x80};
        if (!path[depth].inside) {
          if (depth == 1 && most) flip_below(n);
          return depth > 1;
        }
        if (!key.covers(v.below(n)) || !std::all_of(all.begin(n), all.end(n), in_slice)) return true;
        if (!most) flip_below(n);
        return false;
      },
      [&](std::uint32_t id) {
        const bool in = in_slice(id);
        if (in != most) flip(id);
        return !in;
      });
  for (std::uint32_t n = 1, r = 1; n < all.nodes(); n = all.skip(n)) {
    const bool left = r < out->rest.nodes() && out->rest.byte(r) == all.byte(n);
    out->tops.push_back({n, left ? r : 0, all.byte(n)});
    if (left) r = out->rest.skip(r);
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
    if (plan) total += plan->bits.capacity() * 4 + plan->rest.memory() + plan->tops.capacity() * sizeof(SlicePlan::Top);
  }
  for (const auto& l : lengths_) total += l ? l->capacity() * 4 : 0;
  return total;
}

void Slices::clear() {
  std::lock_guard lock(mutex_);
  plans_.clear();
}

}  // namespace ag
