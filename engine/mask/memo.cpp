#include "mask/memo.h"

#include <algorithm>
#include <cstring>

namespace ag {

namespace {
std::uint64_t hash_of(const std::vector<std::uint64_t>& key) {
  std::uint64_t h = key.size();
  for (std::uint64_t v : key) {
    h = (h ^ v) * 0x9E3779B97F4A7C15ull;
    h ^= h >> 29;
  }
  return h | 1;
}
}  // namespace

void Steps::clear() {
  steps_.clear();
  own_.clear();
  used_.clear();
  kept_.clear();
}

void Steps::set_one(std::uint32_t id) {
  if (steps_.empty() || steps_.back().kind != kSetOwn)
    steps_.push_back({nullptr, static_cast<std::uint32_t>(own_.size()), 0, kSetOwn});
  own_.push_back(id);
  ++steps_.back().count;
}

void Steps::unset(const std::vector<std::uint32_t>& ids) {
  if (ids.empty()) return;
  steps_.push_back(
      {nullptr, static_cast<std::uint32_t>(own_.size()), static_cast<std::uint32_t>(ids.size()), kUnsetOwn});
  own_.insert(own_.end(), ids.begin(), ids.end());
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
        for (std::uint32_t i = 0; i < step.count; ++i) row[ids[i] / 32] |= 1u << (ids[i] % 32);
        break;
      case kUnsetOwn:
        for (std::uint32_t i = 0; i < step.count; ++i) row[ids[i] / 32] &= ~(1u << (ids[i] % 32));
        break;
    }
  }
}

std::size_t Steps::bytes() const {
  return steps_.capacity() * sizeof(Step) + own_.capacity() * 4 + kept_.capacity() * sizeof(kept_[0]);
}

std::uint64_t Memo::index(const Node* node) {
  const auto it = std::find(nodes_.begin(), nodes_.end(), node);
  if (it == nodes_.end()) nodes_.push_back(node);
  return static_cast<std::uint64_t>(it - nodes_.begin());
}

bool Memo::text(const char* bytes, std::size_t size) {
  put(size);
  if (key_.size() + size / 8 >= kMostKey) return false;
  for (std::size_t i = 0; i < size; i += 8) {
    std::uint64_t part = 0;
    std::memcpy(&part, bytes + i, std::min<std::size_t>(8, size - i));
    put(part);
  }
  return true;
}

bool Memo::describe(const Rule& rule, std::uint32_t state, const Payload& payload) {
  if (rule.describe(state, payload, key_)) return key_.size() < kMostKey;
  put(rule.id);
  put(std::uint64_t{state} << 32 | (payload.blob ? payload.blob->words + 1 : 0));
  put(payload.word);
  if (!payload.blob) return key_.size() < kMostKey;
  if (key_.size() + payload.blob->words >= kMostKey) return false;
  key_.insert(key_.end(), payload.blob->bits, payload.blob->bits + payload.blob->words);
  for (const SeenKey* key = payload.blob->keys; key; key = key->previous) {
    if (!text(key->text, key->size)) return false;
  }
  put(~0ull);  // no text is as long
  return key_.size() < kMostKey;
}

bool Memo::describe(MaskCache& cache, const ConfigView& config) {
  key_.clear();
  nodes_.clear();
  if (config.items.size() > kMostItems) return false;
  put(cache.tag());
  for (const Item& item : config.items) {
    put(item.terminal->id());
    const CounterClass units = cache.classify(*item.terminal, item.counter);
    put(std::uint64_t{units.room} << 32 | units.need);
    put(std::uint64_t{item.state} << 32 | std::uint64_t{item.key != nullptr} << 31 | index(item.node));
    if (!describe(*item.node->rule, item.to, item.payload)) return false;
    if (!item.key) continue;
    std::uint32_t at = item.key->length;
    if (at > kMostKey) return false;
    char spelled[kMostKey + 1];
    for (const KeyByte* key = item.key; key; key = key->previous) spelled[--at] = static_cast<char>(key->byte);
    if (!text(spelled, item.key->length)) return false;
  }
  return true;
}

bool Memo::describe(const Node& node) {
  put(std::uint64_t{node.count} << 1 | (node.root ? 1u : 0u));
  for (std::uint32_t i = 0; i < node.count; ++i) {
    const Link& link = node.links[i];
    put(index(link.parent));
    if (!describe(*link.parent->rule, link.state, link.payload)) return false;
  }
  return nodes_.size() <= kMostNodes;
}

Memo::Hit Memo::find(MaskCache& cache, const ConfigView& config, std::uint32_t* row, std::size_t words) {
  if (!describe(cache, config)) return {};
  items_ = key_.size();
  item_nodes_ = nodes_.size();
  if (slots_.empty()) slots_.resize(kSlots);
  hash_ = hash_of(key_);
  Slot& slot = slots_[(hash_ >> 20) % kSlots];
  slot_ = &slot;
  if (slot.hash != hash_) {
    const bool again = slot.met == hash_;
    slot.met = hash_;
    return {.again = again};
  }
  std::size_t equal = 0;  // so many numbers are
  const auto same = [&] {
    if (key_.size() > slot.key.size()) return false;
    const bool out = std::equal(key_.begin() + static_cast<std::ptrdiff_t>(equal), key_.end(),
                                slot.key.begin() + static_cast<std::ptrdiff_t>(equal));
    equal = key_.size();
    return out;
  };
  bool found = items_ == slot.items && same();
  for (std::size_t i = 0; found && i < slot.followed.size(); ++i) found = describe(*nodes_[slot.followed[i]]) && same();
  if (!found || equal != slot.key.size()) return {.again = true};  // the same items under other callers
  slot.steps.make(row, words);
  return {.found = true, .entries = slot.entries};
}

// Its space is kept, for the next.
void Memo::Slot::clear() {
  hash = 0;
  key.clear();
  followed.clear();
  steps.clear();
  if (held_for) held_for->fetch_sub(held, std::memory_order_relaxed);
  held_for = nullptr;
}

Memo::~Memo() {
  for (Slot& slot : slots_) slot.clear();
}

void Memo::keep(MaskCache& cache, const Steps& steps, std::uint32_t entries, const Parser::Reads& reads) {
  key_.resize(items_);
  nodes_.resize(item_nodes_);
  Slot& slot = *slot_;
  slot.clear();
  if (steps.size() > kMostSteps || *cache.beside() > cache.most_beside()) return;
  for (const Node* node : reads.nodes) {
    // Callers are met one after the other, from the items on.
    const auto at = std::find(nodes_.begin(), nodes_.end(), node);
    if (at == nodes_.end()) return;
    slot.followed.push_back(static_cast<std::uint32_t>(at - nodes_.begin()));
    if (!describe(*node)) return;
  }
  slot.key = key_;
  slot.steps = steps;
  slot.steps.keep();
  slot.items = static_cast<std::uint32_t>(items_);
  slot.entries = entries;
  slot.held_for = cache.beside();
  slot.held = slot.bytes();
  slot.held_for->fetch_add(slot.held, std::memory_order_relaxed);
  slot.hash = hash_;
}

}  // namespace ag
