#include "mask/slices.h"

#include <algorithm>
#include <iterator>

#include "base/bits.h"

namespace ag {

void Slices::look_at_lengths() {
  const std::uint32_t most = max_chars() + 2;
  std::vector<char> adds(most, 0), closes(most, 0);
  adds[0] = closes[0] = 1;
  for (std::uint32_t id : vocab_->trie().values()) {
    const std::string_view bytes = vocab_->bytes(id);
    const std::size_t quote = bytes.find('"');
    if (quote == bytes.npos && bytes.find('\\') == bytes.npos) {
      adds[vocab_->chars(id)] = 1;
      continue;
    }
    if (quote != bytes.npos) longest_key_ = std::max(longest_key_, static_cast<std::uint32_t>(bytes.rfind('"')));
    // Escapes: a character may take from one byte to twelve. A token may end in the middle of one, or go on to a second
    // string, which counts anew.
    std::uint32_t chars = 0;
    for (unsigned char c : bytes) {
      chars += (c & 0xC0) != 0x80;
      adds[std::min(chars, most - 1)] = 1;
    }
    for (std::size_t at = quote; at != bytes.npos; at = bytes.find('"', at + 1)) {
      const std::string_view before = bytes.substr(0, at);
      const bool plain = at == quote && before.find('\\') == before.npos;
      chars = 0;
      for (unsigned char c : before) {
        chars += (c & 0xC0) != 0x80;
        if (!plain) closes[chars] = 1;
      }
      closes[chars] = 1;
    }
  }
  for (std::uint32_t id : vocab_->trie().values()) {
    if (vocab_->chars(id) > kSurelyRuns) longest_first_.push_back(id);
  }
  std::stable_sort(longest_first_.begin(), longest_first_.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return vocab_->chars(a) > vocab_->chars(b); });
  for (std::uint32_t n = 0; n < most; ++n) {
    if (adds[n]) rooms_.push_back(n);
    if (closes[n]) needs_.push_back(n);
  }
}

std::uint32_t Slices::room(std::uint64_t room) {
  std::call_once(looked_, [&] { look_at_lengths(); });
  return *std::prev(std::upper_bound(rooms_.begin(), rooms_.end(), room));
}

std::uint32_t Slices::need(std::uint64_t need) {
  if (need == 0) return 0;
  std::call_once(looked_, [&] { look_at_lengths(); });
  const auto at = std::lower_bound(needs_.begin(), needs_.end(), need);
  return at == needs_.end() ? max_chars() + 1 : *at;
}

std::uint32_t Slices::longest_key() {
  std::call_once(looked_, [&] { look_at_lengths(); });
  return longest_key_;
}

std::uint32_t Slices::longest_run(const Characters& key, bool escaped) {
  std::call_once(looked_, [&] { look_at_lengths(); });
  std::lock_guard lock(mutex_);
  if (runs_.size() >= kMostKept) runs_.clear();
  auto [slot, fresh] = runs_.try_emplace({key, escaped}, kSurelyRuns);
  std::uint32_t& longest = slot->second;
  if (!fresh) return longest;
  for (std::uint32_t id : longest_first_) {
    if (vocab_->chars(id) <= longest) break;
    const std::string_view bytes = vocab_->bytes(id);
    const bool all = escaped && bytes.find('\\') != bytes.npos;  // an escape may stand for any of them
    std::uint32_t run = 1;                                       // a character that an earlier token began
    for (unsigned char c : bytes) {
      if ((c & 0xC0) == 0x80) continue;
      run = all || key.has_lead(c) ? run + 1 : 0;
      longest = std::max(longest, run);
    }
  }
  return longest;
}

bool Slices::pays(const Characters& key) {
  std::lock_guard lock(mutex_);
  if (pays_.size() >= kMostKept) pays_.clear();
  const auto [slot, fresh] = pays_.try_emplace(key, false);
  if (!fresh) return slot->second;
  constexpr std::size_t kSamples = 512;
  const auto& all = vocab_->trie().values();
  const std::size_t step = std::max<std::size_t>(1, all.size() / kSamples);
  std::size_t mixed = 0;
  for (std::size_t i = step / 2; i < all.size(); i += step) {
    const std::string_view bytes = vocab_->bytes(all[i]);
    const auto in = [&](char c) { return (c & 0xC0) == 0x80 || key.has_lead(static_cast<std::uint8_t>(c)); };
    mixed += in(bytes.front()) && !std::all_of(bytes.begin(), bytes.end(), in);
  }
  return slot->second = mixed * 4 <= kSamples;
}

const ByteTrie& SlicePlan::Part::trie(const Vocabulary& vocab) const {
  std::call_once(made_, [&] {
    std::vector<std::pair<std::string_view, std::uint32_t>> spelled;
    spelled.reserve(ids.size());
    for (std::uint32_t id : ids) spelled.emplace_back(vocab.bytes(id), id);
    trie_ = ByteTrie(spelled);
  });
  return trie_;
}

void Slices::part(const std::vector<std::uint32_t>& rest, const Characters& key, SlicePlan* out) const {
  constexpr std::size_t kAny = 256;
  std::vector<SlicePlan::Part*> by_byte(kAny + 1);
  for (std::uint32_t id : rest) {
    const std::string_view bytes = vocab_->bytes(id);
    const auto leaves = [&](char c) { return (c & 0xC0) != 0x80 && !key.has_lead(static_cast<std::uint8_t>(c)); };
    const auto at = std::find_if(bytes.begin(), bytes.end(), leaves);
    const bool known = at != bytes.end() && vocab_->whole(id) && (key.separators || !vocab_->separator(id));
    SlicePlan::Part*& part = by_byte[known ? static_cast<std::uint8_t>(*at) : kAny];
    if (!part) {
      part = &out->parts.emplace_back();
      part->any = !known;
      part->byte = known ? static_cast<std::uint8_t>(*at) : 0;
    }
    part->ids.push_back(id);
  }
}

std::shared_ptr<const SlicePlan> Slices::plan(const Characters& key) {
  std::lock_guard lock(mutex_);
  Kept& slot = plans_[key];
  slot.used = ++uses_;
  if (slot.plan) return slot.plan;
  auto out = std::make_shared<SlicePlan>();
  const Vocabulary& v = *vocab_;
  const ByteTrie& all = v.trie();
  out->bits = v.all_bits();
  const auto drop = [&](std::uint32_t what) {
    const std::vector<std::uint32_t>& held = v.holding(what);
    for (std::size_t w = 0; w < held.size(); ++w) out->bits[w] &= ~held[w];
  };
  for (std::uint8_t b = 0; b < 0x80; ++b) {
    if (!key.has(b)) drop(b);
  }
  drop(key.other ? Vocabulary::kPartial : Vocabulary::kOther);
  if (key.other && !key.separators) drop(Vocabulary::kSeparator);
  // What does not begin with the slice's characters is in neither part.
  std::vector<std::uint32_t> rest;
  for (std::uint32_t n = 1; n < all.nodes(); n = all.skip(n)) {
    if (!key.has_lead(all.byte(n))) continue;
    std::copy_if(all.begin(n), all.end(all.skip(n) - 1), std::back_inserter(rest),
                 [&](std::uint32_t id) { return !has_bit(out->bits.data(), id); });
  }
  part(rest, key, out.get());
  for (std::uint32_t n = 1; n < all.nodes(); n = all.skip(n)) out->tops.push_back({n, all.byte(n)});
  slot.plan = out;
  if (plans_.size() > kMostPlans) {
    plans_.erase(std::min_element(plans_.begin(), plans_.end(),
                                  [](const auto& x, const auto& y) { return x.second.used < y.second.used; }));
  }
  return out;
}

const std::vector<std::uint32_t>& Slices::at_most(std::uint32_t chars) {
  std::call_once(looked_, [&] { look_at_lengths(); });
  std::lock_guard lock(mutex_);
  auto& slot = lengths_[chars];
  if (!slot) {
    auto made = std::make_unique<std::vector<std::uint32_t>>(vocab_->all_bits());
    const auto drop = [&](std::uint32_t id) { clear_bit(made->data(), id); };
    if (chars >= kSurelyRuns) {
      for (std::uint32_t id : longest_first_) {
        if (vocab_->chars(id) <= chars) break;
        drop(id);
      }
    } else {
      for (std::uint32_t id : vocab_->trie().values()) {
        if (vocab_->chars(id) > chars) drop(id);
      }
    }
    slot = std::move(made);
  }
  return *slot;
}

std::size_t Slices::memory() const {
  std::lock_guard lock(mutex_);
  std::size_t total = 0;
  for (const auto& [key, kept] : plans_) {
    const SlicePlan* plan = kept.plan.get();
    if (!plan) continue;
    total += plan->bits.capacity() * 4 + plan->tops.capacity() * sizeof(SlicePlan::Top);
    // A trie takes some twenty bytes a token; whether it was made yet is not asked, for others may be making it.
    for (const SlicePlan::Part& part : plan->parts) total += part.ids.capacity() * 24;
  }
  for (const auto& [chars, bits] : lengths_) total += bits ? bits->capacity() * 4 : 0;
  return total;
}

void Slices::clear() {
  std::lock_guard lock(mutex_);
  plans_.clear();
  regions_.clear();
}

}  // namespace ag
