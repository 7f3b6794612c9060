#include "mask/cache.h"

#include <algorithm>
#include <utility>

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

MaskCache::Key MaskCache::key_of(const Rests* rests, Terminal& table, const Terminal& terminal, Terminal::State state,
                                 CounterClass counter) {
  return {table.id(), rests ? rests->id : 0,
          std::uint64_t{counter.room} << 32 | std::uint64_t{counter.need} << 1 | (terminal.counted() ? 1u : 0u), state};
}

const Entry* MaskCache::at_hand(const Rests* rests, Terminal& terminal, Terminal::State state,
                                CounterClass counter) const {
  const Key key = key_of(rests, *terminal.table(), terminal, state, counter);
  const Near& near = near_[Hash{}(key) % kNear];
  return near.cache == tag() && near.key == key ? near.entry.get() : nullptr;
}

const Entry& MaskCache::get(const Rests* rests, Terminal& terminal, Terminal::State state, CounterClass counter) {
  Terminal& table = *terminal.table();
  Key key = key_of(rests, table, terminal, state, counter);
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
  const Ref<Slot> slot = [&] {
    std::lock_guard lock(shard.mutex);
    return shard.find_or_add(key);
  }();
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
    while (shard.bytes + ends_.bytes() / kShards > shard_bytes_ && shard.count > 1) {
      shard.drop_oldest();
      evictions_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  return keep(near, tag, asked, slot->entry);
}

Ref<MaskCache::Slot> MaskCache::Shard::find_or_add(const Key& key) {
  for (Slot* slot = bucket(key); slot; slot = slot->next) {
    if (!(slot->key == key)) continue;
    if (slot != newest) {
      unlink(slot);
      add_newest(slot);
    }
    return Ref<Slot>(slot);
  }
  if (count == buckets.size()) grow();
  auto* slot = new Slot(key);
  Slot*& first = bucket(key);
  slot->next = std::exchange(first, slot);
  add_newest(slot);
  ++count;
  return Ref<Slot>(slot);
}

void MaskCache::Shard::add_newest(Slot* slot) {
  slot->newer = nullptr;
  slot->older = std::exchange(newest, slot);
  (slot->older ? slot->older->newer : oldest) = slot;
}

void MaskCache::Shard::unlink(Slot* slot) {
  (slot->newer ? slot->newer->older : newest) = slot->older;
  (slot->older ? slot->older->newer : oldest) = slot->newer;
}

void MaskCache::Shard::grow() {
  buckets.assign(buckets.size() * 2, nullptr);
  for (Slot* slot = newest; slot; slot = slot->older) {
    Slot*& first = bucket(slot->key);
    slot->next = std::exchange(first, slot);
  }
}

void MaskCache::Shard::drop_oldest() {
  Slot* slot = oldest;
  Slot** at = &bucket(slot->key);
  while (*at != slot) at = &(*at)->next;
  *at = slot->next;
  unlink(slot);
  slot->listed = false;
  bytes -= slot->bytes;
  --count;
  slot->release();
}

void MaskCache::Shard::clear() {
  while (oldest) drop_oldest();
}

MaskCache::Stats MaskCache::stats() const {
  Stats out;
  for (const Shard& shard : shards_) {
    std::lock_guard lock(const_cast<std::mutex&>(shard.mutex));
    out.entries += shard.count;
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
    shard.clear();
  }
  slices_.clear();
}

}  // namespace ag
