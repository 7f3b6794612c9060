#include "mask/memo.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/hash.h"
#include "regular/name_set.h"

namespace ag {

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

bool Memo::by_outlook(const Rule& rule, std::uint32_t state, const Payload& payload, const Rule::Ahead& ahead) {
  if (!outlook_) return false;
  put(kOutlook);
  if (rule.outlook(state, payload, ahead, key_)) return used_ = true;
  key_.pop_back();
  return false;
}

bool Memo::whole(const Rule& rule, std::uint32_t state, const Payload& payload) {
  put(rule.id);
  put(std::uint64_t{state} << 32 | (payload.blob ? payload.blob->words + 1 : 0));
  put(payload.word);
  if (!payload.blob) return key_.size() < kMostKey;
  if (key_.size() + payload.blob->words >= kMostKey) return false;
  key_.insert(key_.end(), payload.blob->bits, payload.blob->bits + payload.blob->words);
  for (const SeenKey* key = payload.blob->keys; key; key = key->previous) {
    if (!text(key->text, key->size)) return false;
  }
  put(kEnd);
  return key_.size() < kMostKey;
}

// Of the keys that may not come, what is left of those that some token may end.
bool Memo::taken(MaskCache& cache, const Item& item) {
  if (!item.node->rule->taken_keys(item.payload, item.key, &taken_)) return false;
  for (std::string_view rest : taken_) {
    if (rest.size() <= cache.longest_key() && !text(rest.data(), rest.size())) return false;
  }
  put(kEnd);
  return true;
}

bool Memo::describe(MaskCache& cache, const Item& item) {
  put(item.terminal->id());
  const CounterClass units = cache.classify(*item.terminal, item.counter);
  put(std::uint64_t{units.room} << 32 | units.need);
  put(std::uint64_t{item.state} << 32 | std::uint64_t{item.key != nullptr} << 31 | index(item.node));
  const Rule& rule = *item.node->rule;
  if (rule.describe(item.to, item.payload, key_)) return key_.size() < kMostKey;
  const std::size_t before = key_.size();
  Rule::Ahead ahead;
  if (item.terminal->labelled()) ahead.left = item.terminal->range(item.state);
  if (const regular::NameSet* names = item.terminal->names()) {
    regular::NameSet::Span span{};
    if (names->open(item.state, &span) || item.state == Terminal::kStart) {
      ahead.read = span.depth;
      ahead.longest = cache.longest_key();
    }
  }
  if (by_outlook(rule, item.to, item.payload, ahead)) {
    if (!rule.reads_key(item.to) || taken(cache, item)) return key_.size() < kMostKey;
    key_.resize(before);
  }
  if (!whole(rule, item.to, item.payload)) return false;
  if (!item.key) return true;
  std::uint32_t at = item.key->length;
  if (at > kMostKey) return false;
  char spelled[kMostKey + 1];
  for (const KeyByte* k = item.key; k; k = k->previous) spelled[--at] = static_cast<char>(k->byte);
  return text(spelled, item.key->length);
}

bool Memo::describe(MaskCache& cache, const ConfigView& config) {
  key_.clear();
  nodes_.clear();
  used_ = false;
  if (config.items.size() > kMostItems) return false;
  put(cache.tag());
  return std::all_of(config.items.begin(), config.items.end(), [&](const Item& i) { return describe(cache, i); });
}

bool Memo::describe(const Node& node) {
  put(std::uint64_t{node.count} << 1 | (node.root ? 1u : 0u));
  for (std::uint32_t i = 0; i < node.count; ++i) {
    const Link& link = node.links[i];
    put(index(link.parent));
    const Rule& rule = *link.parent->rule;
    if (!rule.describe(link.state, link.payload, key_) && !by_outlook(rule, link.state, link.payload, {}) &&
        !whole(rule, link.state, link.payload))
      return false;
  }
  return nodes_.size() <= kMostNodes && key_.size() < kMostKey;
}

Memo::Hit Memo::find(MaskCache& cache, const ConfigView& config, std::uint32_t* row) {
  outlook_ = true;
  if (locate(cache, config) && set_->hash[way_] == hash_ && slot_->whole) {
    stamp();
    outlook_ = false;
    locate(cache, config);
  }
  if (!slot_) return {};
  Slot& slot = *slot_;
  if (set_->hash[way_] != hash_) return {};
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
  if (!found || equal != slot.key.size()) return {};  // the same items under other callers
  stamp();
  if (slot.row) {
    slot.row->make(row, cache.vocab().words());
  } else {
    slot.steps.make(row, cache.vocab().words());
    if (++slot.hits == kOften && slot.steps.cost() > kLong) {
      slot.row = rows_.find_or_make(row, slot.steps, cache);
      if (slot.row) {
        slot.steps = {};
        slot.count();
      }
    }
  }
  return {.found = true, .entries = slot.entries};
}

// The slot of a configuration, if it is one to be kept.
bool Memo::locate(MaskCache& cache, const ConfigView& config) {
  slot_ = nullptr;
  if (!describe(cache, config)) return false;
  items_ = key_.size();
  item_nodes_ = nodes_.size();
  hash_ = hash_numbers(key_) | 1;
  if (slots_.empty()) {
    sets_.resize(kSets);
    slots_.resize(kSets * kWays);
  }
  const std::size_t at = (hash_ >> 20) % kSets;
  set_ = &sets_[at];
  way_ = 0;
  for (std::size_t way = 0; way < kWays; ++way) {
    if (set_->hash[way] == hash_) {
      way_ = way;
      break;
    }
    if (set_->used[way] < set_->used[way_]) way_ = way;
  }
  slot_ = &slots_[at * kWays + way_];
  return true;
}

// Its space is kept, for the next.
void Memo::Slot::clear() {
  whole = false;
  key.clear();
  followed.clear();
  steps.clear();
  hits = 0;
  row = nullptr;
  if (held_for) held_for->fetch_sub(held, std::memory_order_relaxed);
  held_for = nullptr;
  held = 0;
}

void Memo::Slot::count() {
  held_for->fetch_sub(std::exchange(held, bytes()), std::memory_order_relaxed);
  held_for->fetch_add(held, std::memory_order_relaxed);
}

Memo::~Memo() {
  for (Slot& slot : slots_) slot.clear();
}

// Describes what was followed, too.
bool Memo::complete(const Parser::Reads& reads) {
  key_.resize(items_);
  nodes_.resize(item_nodes_);
  followed_.clear();
  for (const Node* node : reads.nodes) {
    // Callers are met one after the other, from the items on.
    const auto at = std::find(nodes_.begin(), nodes_.end(), node);
    if (at == nodes_.end()) return false;
    followed_.push_back(static_cast<std::uint32_t>(at - nodes_.begin()));
    if (!describe(*node)) return false;
  }
  return true;
}

void Memo::keep(MaskCache& cache, const ConfigView& config, const Steps& steps, std::uint32_t entries,
                const Parser::Reads& reads) {
  if (!slot_ || steps.size() > kMostSteps || *cache.beside() > cache.most_beside()) return;
  if (!complete(reads)) return;
  if (used_ && reads.beyond) {  // an outlook does not reach as far: that is what is kept, and the mask elsewhere
    slot_->clear();
    slot_->whole = true;
    set_->hash[way_] = hash_;
    stamp();
    outlook_ = false;
    if (!locate(cache, config) || !complete(reads)) return;
  }
  Slot& slot = *slot_;
  slot.clear();
  slot.key = key_;
  slot.followed = followed_;
  slot.steps = steps;
  slot.steps.keep();
  slot.items = static_cast<std::uint32_t>(items_);
  slot.entries = entries;
  slot.held_for = cache.beside();
  slot.count();
  set_->hash[way_] = hash_;
  stamp();
}

}  // namespace ag
