#include "mask/cache.h"

#include <algorithm>

namespace ag {

namespace {
std::atomic<std::uint64_t> next_cache{1};
}

thread_local std::array<MaskCache::Near, MaskCache::kNear> MaskCache::near_;
thread_local std::vector<std::shared_ptr<const Entry>> MaskCache::replaced_;

const Entry& MaskCache::keep(Near& near, std::uint64_t tag, const Key& key, std::shared_ptr<const Entry> entry) {
  if (near.entry) replaced_.push_back(std::move(near.entry));
  near.cache = tag;
  near.key = key;
  near.entry = std::move(entry);
  return *near.entry;
}

MaskCache::MaskCache(std::shared_ptr<const Vocabulary> vocab, std::size_t bytes, bool compress)
    : id_(next_cache++), vocab_(vocab), shard_bytes_(bytes / kShards), compress_(compress), slices_(std::move(vocab)) {
  // The interior of JSON strings, which nearly every grammar has.
  Characters key;
  key.other = key.separators = true;
  for (std::uint8_t b = 0x20; b < 0x80; ++b) {
    if (b != '"' && b != '\\') key.set(b);
  }
  slices_.plan(key);
  longest_key_ = slices_.longest_key();  // looks at all tokens
}

CounterClass MaskCache::classify(const Terminal& terminal, std::uint64_t counter) {
  if (!terminal.counted()) return {};
  const std::uint64_t max = terminal.max_units(), min = terminal.min_units();
  const std::uint64_t need = min > counter ? min - counter : 0;
  if (!compress_) {
    constexpr std::uint64_t kMost = 0x7fff'fffe;
    const std::uint64_t room = max == kNoMax ? kMost : max - std::min(max, counter);
    return {static_cast<std::uint32_t>(std::min(room, kMost)), static_cast<std::uint32_t>(std::min(need, kMost))};
  }
  return {max == kNoMax ? slices_.max_chars() : slices_.room(max - std::min(max, counter)), slices_.need(need)};
}

const Entry& MaskCache::get(const Rests* rests, Terminal& terminal, Terminal::State state, CounterClass counter) {
  Terminal& table = *terminal.table();
  Key key{table.id(), rests ? rests->id : 0,
          std::uint64_t{counter.room} << 32 | std::uint64_t{counter.need} << 1 | (terminal.counted() ? 1u : 0u), state};
  const std::uint64_t h = Hash{}(key);
  const std::uint64_t tag = this->tag();
  Near& near = near_[h % kNear];
  if (near.cache == tag && near.key == key) return *near.entry;
  if (terminal.transient()) {
    auto made = build_entry(*vocab_, rests, slices_, ends_, terminal, state, counter);
    nodes_.fetch_add(made->nodes, std::memory_order_relaxed);
    return keep(near, tag, key, std::move(made));
  }
  const Key asked = key;
  if (compress_) key.state = state = table.alike(state, slices_);
  Shard& shard = shards_[(key == asked ? h : Hash{}(key)) >> 32 & (kShards - 1)];
  std::shared_ptr<Slot> slot;
  {
    std::lock_guard lock(shard.mutex);
    auto it = shard.by_key.find(key);
    if (it != shard.by_key.end()) {
      shard.recent.splice(shard.recent.begin(), shard.recent, it->second);
      slot = it->second->second;
    } else {
      slot = std::make_shared<Slot>();
      shard.recent.emplace_front(key, slot);
      shard.by_key.emplace(key, shard.recent.begin());
    }
  }
  bool built = false;
  std::call_once(slot->once, [&] {
    slot->entry = build_entry(*vocab_, rests, slices_, ends_, terminal, state, counter);
    built = true;
  });
  if (built) {
    misses_.fetch_add(1, std::memory_order_relaxed);
    nodes_.fetch_add(slot->entry->nodes, std::memory_order_relaxed);
    std::lock_guard lock(shard.mutex);
    if (slot->listed) {
      slot->bytes = slot->entry->memory() + 160;
      shard.bytes += slot->bytes;
    }
    // The newest stays, so that one large entry cannot empty the shard for nothing.
    while (shard.bytes + ends_.bytes() / kShards > shard_bytes_ && shard.recent.size() > 1) {
      auto& [old, dropped] = shard.recent.back();
      shard.bytes -= dropped->bytes;
      dropped->listed = false;
      shard.by_key.erase(old);
      shard.recent.pop_back();
      evictions_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  return keep(near, tag, asked, slot->entry);
}

MaskCache::Stats MaskCache::stats() const {
  Stats out;
  for (const Shard& shard : shards_) {
    std::lock_guard lock(const_cast<std::mutex&>(shard.mutex));
    out.entries += shard.recent.size();
    out.bytes += shard.bytes;
  }
  out.bytes += slices_.memory() + ends_.bytes() + *beside_;
  out.hits = hits_;
  out.misses = misses_;
  out.evictions = evictions_;
  out.nodes = nodes_;
  return out;
}

void MaskCache::clear() {
  ++generation_;
  for (Shard& shard : shards_) {
    std::lock_guard lock(shard.mutex);
    for (auto& [key, slot] : shard.recent) slot->listed = false;
    shard.by_key.clear();
    shard.recent.clear();
    shard.bytes = 0;
  }
  slices_.clear();
}

}  // namespace ag
