#include "mask/mask.h"

#include <algorithm>
#include <cstring>

namespace ag {

namespace {
void set(std::uint32_t* row, std::uint32_t id) { row[id / 32] |= 1u << (id % 32); }
}  // namespace

// Calls found(node) for each node with values strictly below `node` that the configuration can take; false ends the
// walk.
template <class Found>
void MaskWorkspace::visit(const ByteTrie& trie, std::uint32_t node, const Config& config, Found found) {
  const std::uint32_t base = trie.depth(node);
  const std::size_t levels = trie.max_depth() - base + 1;
  if (stack_.size() < levels) stack_.resize(levels);
  if (marks_.size() < levels) marks_.resize(levels);
  const Arena::Mark entry = parser.arena().mark();
  const std::uint32_t end = trie.skip(node);
  for (std::uint32_t n = node + 1; n < end;) {
    const std::uint32_t level = trie.depth(n) - base;
    const Config& before = level == 1 ? config : stack_[level - 1];
    parser.arena().release(level == 1 ? entry : marks_[level - 1]);
    if (!parser.step(before, trie.byte(n), stack_[level])) {
      n = trie.skip(n);
      continue;
    }
    marks_[level] = parser.arena().mark();
    if (trie.has_values(n) && !found(n)) break;
    ++n;
  }
  parser.arena().release(entry);
}

void MaskWorkspace::fill_by_walk(const Vocabulary& vocab, const Config& config, std::uint32_t* row) {
  std::fill(row, row + vocab.words(), 0u);
  const ByteTrie& trie = vocab.trie();
  visit(trie, 0, config, [&](std::uint32_t n) {
    for (auto t = trie.begin(n); t != trie.end(n); ++t) set(row, *t);
    return true;
  });
}

bool MaskWorkspace::any(const Vocabulary& vocab, std::uint32_t node, const Config& config) {
  bool out = false;
  visit(vocab.trie(), node, config, [&](std::uint32_t) { return !(out = true); });
  return out;
}

void MaskWorkspace::fill(const Vocabulary& vocab, MaskCache& cache, const Config& config, std::uint32_t* row) {
  row_empty_ = true;
  if (config.items.size() == 1) {
    fill_group(vocab, cache, config.items.data(), 1, row);
  } else {
    // Items at the same state of the same terminal share an entry, and their leaves are walked together.
    sorted_ = config.items;
    auto key = [](const Item& i) { return std::make_tuple(i.terminal, i.state, i.counter); };
    std::stable_sort(sorted_.begin(), sorted_.end(), [&](const Item& a, const Item& b) { return key(a) < key(b); });
    for (std::size_t i = 0; i < sorted_.size();) {
      std::size_t j = i + 1;
      // Where there are labels the rule's guards decide, item by item.
      while (j < sorted_.size() && key(sorted_[j]) == key(sorted_[i]) && !sorted_[i].terminal->labelled()) ++j;
      fill_group(vocab, cache, &sorted_[i], j - i, row);
      i = j;
    }
  }
  if (row_empty_) std::fill(row, row + vocab.words(), 0u);
}

void MaskWorkspace::fill_group(const Vocabulary& vocab, MaskCache& cache, const Item* items, std::size_t count,
                               std::uint32_t* row) {
  const Item& first = items[0];
  const auto entry = cache.get(*first.terminal, first.state, cache.classify(*first.terminal, first.counter));
  const bool labelled = first.terminal->labelled();
  const std::size_t words = vocab.words();
  for (const auto& accepted : entry->accepted) {
    if (labelled && !first.node->rule->admits(first.to, first.payload, accepted.range)) continue;
    if (!accepted.bits.empty()) {
      if (row_empty_) {
        std::memcpy(row, accepted.bits.data(), words * 4);
        row_empty_ = false;
      } else {
        for (std::size_t w = 0; w < words; ++w) row[w] |= accepted.bits[w];
      }
    }
  }
  if (row_empty_) {
    std::memset(row, 0, words * 4);
    row_empty_ = false;
  }
  for (const auto& accepted : entry->accepted) {
    if (accepted.ids.empty()) continue;
    if (labelled && !first.node->rule->admits(first.to, first.payload, accepted.range)) continue;
    for (std::uint32_t id : accepted.ids) set(row, id);
  }
  for (const auto& leaves : entry->leaves) {
    if (first.node->rule->reads_key(first.to) && first.node->rule->needs_key(first.to, leaves.label)) {
      for (std::size_t i = 0; i < count; ++i) leaves_by_key(vocab, items[i], leaves, row);
    } else {
      leaves_of(vocab, items, count, leaves, row);
    }
  }
  if (entry->inner.any()) {
    // The terminal might have ended earlier, where what follows could read what the terminal would have read.
    const Arena::Mark mark = parser.arena().mark();
    const std::uint32_t label = labelled ? first.terminal->inner_label() : 0;
    parser.complete(items, count, label, nullptr, 0, after_);
    bool meets = false;
    for (const Item& item : after_.items) {
      if ((item.terminal->live(item.state) & entry->inner).any()) meets = true;
    }
    parser.arena().release(mark);
    if (meets) {
      group_.clear();
      group_.items.assign(items, items + count);
      const ByteTrie& trie = entry->ambiguous;
      visit(trie, 0, group_, [&](std::uint32_t n) {
        for (auto t = trie.begin(n); t != trie.end(n); ++t) set(row, *t);
        return true;
      });
    }
  }
}

void MaskWorkspace::leaves_of(const Vocabulary&, const Item* items, std::size_t count, const Entry::Leaves& leaves,
                              std::uint32_t* row) {
  const ByteTrie& rests = leaves.rests;
  const Arena::Mark mark = parser.arena().mark();
  parser.complete(items, count, leaves.label, nullptr, 0, after_);
  if (!after_.dead()) {
    for (auto t = rests.begin(0); t != rests.end(0); ++t) set(row, *t);
    visit(rests, 0, after_, [&](std::uint32_t n) {
      for (auto t = rests.begin(n); t != rests.end(n); ++t) set(row, *t);
      return true;
    });
  }
  parser.arena().release(mark);
}

// Keys that no name declares must not repeat: what a token makes of the key decides, token by token. Tokens with the
// same rest share one walk, made with the first whose key is new.
void MaskWorkspace::leaves_by_key(const Vocabulary& vocab, const Item& item, const Entry::Leaves& leaves,
                                  std::uint32_t* row) {
  const ByteTrie& rests = leaves.rests;
  const Rule& rule = *item.node->rule;
  const Arena::Mark mark = parser.arena().mark();
  const bool known = rule.taken_keys(item.payload, item.key, &taken_);
  auto is_new = [&](std::string_view part) {
    if (!known || part.find('\\') != std::string_view::npos) return rule.key_is_new(item.payload, item.key, part);
    const std::size_t open = item.key ? 0 : 1;  // the quotes are no part of the key
    return !std::binary_search(taken_.begin(), taken_.end(), part.substr(open, part.size() - 1 - open));
  };
  const bool all_new = known && taken_.empty();
  bool walked = false;
  for (std::uint32_t n = 0; n < rests.nodes(); ++n) {
    if (walked && !allowed_[n]) continue;
    for (auto t = rests.begin(n); t != rests.end(n); ++t) {
      const std::string_view bytes = vocab.bytes(*t);
      const std::string_view part = bytes.substr(0, bytes.size() - rests.depth(n));
      if (!all_new && !is_new(part)) continue;
      if (!walked) {
        walked = true;
        allowed_.assign(rests.nodes(), 0);
        parser.complete(&item, 1, leaves.label, reinterpret_cast<const std::uint8_t*>(part.data()), part.size(),
                        after_);
        if (!after_.dead()) {
          allowed_[0] = 1;
          visit(rests, 0, after_, [&](std::uint32_t m) { return allowed_[m] = 1, true; });
        }
      }
      if (allowed_[n]) set(row, *t);
    }
  }
  parser.arena().release(mark);
}

}  // namespace ag
