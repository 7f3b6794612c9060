#include "mask/mask.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace ag {

namespace {
// Whether some terminal goes on with the byte: dearer questions come after it.
bool takes(const ConfigView& config, std::uint8_t byte) {
  for (const Item& item : config.items) {
    if (item.terminal->next(item.state, byte) != Terminal::kDead) return true;
  }
  return false;
}

// Whether what ends here is a value of an object, so that a key comes after a comma.
bool in_object(const Item& item) {
  const auto object = [](const Node& node) { return node.rule->has_outlook(); };
  if (object(*item.node)) return true;
  const std::span links(item.node->links, item.node->count);
  return !item.node->root && !links.empty() && item.node->rule->is_tail(item.to) &&
         std::all_of(links.begin(), links.end(), [&](const Link& l) { return object(*l.parent); });
}
}  // namespace

// Calls found(node) for each node with values in the subtrees [from, until), whose roots are one deeper than `base`,
// that the configuration can take; false ends the walk.
template <class Found>
void MaskWorkspace::visit(const ByteTrie& trie, std::uint32_t from, std::uint32_t until, std::uint32_t base,
                          const ConfigView& config, Found found) {
  const std::size_t levels = trie.max_depth() - base + 1;
  if (stack_.size() < levels) stack_.resize(levels);
  if (marks_.size() < levels) marks_.resize(levels);
  const Arena::Mark entry = parser.arena().mark();
  for (std::uint32_t n = from; n < until;) {
    const std::uint32_t level = trie.depth(n) - base;
    const ConfigView before = level == 1 ? config : ConfigView(stack_[level - 1]);
    parser.arena().release(level == 1 ? entry : marks_[level - 1]);
    if (!takes(before, trie.byte(n)) || !parser.step(before, trie.byte(n), stack_[level])) {
      n = trie.skip(n);
      continue;
    }
    marks_[level] = parser.arena().mark();
    if (trie.has_values(n) && !found(n)) break;
    ++n;
  }
  parser.arena().release(entry);
}

void MaskWorkspace::fill_by_walk(const Vocabulary& vocab, const ConfigView& config, std::uint32_t* row) {
  std::fill(row, row + vocab.words(), 0u);
  const ByteTrie& trie = vocab.trie();
  visit(trie, 1, trie.nodes(), 0, config, [&](std::uint32_t n) {
    for (auto t = trie.begin(n); t != trie.end(n); ++t) set_bit(row, *t);
    return true;
  });
}

bool MaskWorkspace::any(const Vocabulary& vocab, std::uint32_t node, const ConfigView& config) {
  bool out = false;
  const ByteTrie& trie = vocab.trie();
  visit(trie, node + 1, trie.skip(node), trie.depth(node), config, [&](std::uint32_t) { return !(out = true); });
  return out;
}

void MaskWorkspace::fill(const Vocabulary& vocab, MaskCache& cache, const ConfigView& config, std::uint32_t* row) {
  vocab_ = &vocab;
  cache_ = &cache;
  row_ = row;
  row_empty_ = true;
  completions_ = entries_ = 0;
  steps_.clear();
  if (config.items.size() == 1 && fill_alone(config.items[0])) {
    clear_row();
    cache.count_hits(entries_);
    return MaskCache::let_go();
  }
  const Memo::Hit known = memo_.find(cache, config, row);
  if (known.found) {
    entries_ = known.entries;
    cache.count_hits(entries_);
    return;
  }
  reads_.clear();
  parser.watch(&reads_);
  fill_config(nullptr, config, 0);
  clear_row();
  cache.count_hits(entries_);
  parser.watch(nullptr);
  if (entries_ >= kMemorable && !reads_.own) memo_.keep(cache, config, steps_, entries_, reads_);
  MaskCache::let_go();
}

void MaskWorkspace::fill_config(const Rests* rests, const ConfigView& config, std::size_t level) {
  if (config.items.size() == 1) return fill_group(rests, config.items.data(), 1, level);
  if (levels_.size() <= level) levels_.push_back(std::make_unique<Level>());
  // Items at the same state of the same terminal share an entry, and what follows them is one configuration.
  std::vector<Item>& sorted = levels_[level]->sorted;
  sorted.assign(config.items.begin(), config.items.end());
  auto key = [](const Item& i) { return std::make_tuple(i.terminal, i.state, i.counter); };
  std::sort(sorted.begin(), sorted.end(), [&](const Item& a, const Item& b) { return key(a) < key(b); });
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t j = i + 1;
    // Where there are labels the rule's guards decide, item by item.
    while (j < sorted.size() && key(sorted[j]) == key(sorted[i]) && !sorted[i].terminal->labelled()) ++j;
    fill_group(rests, &sorted[i], j - i, level);
    i = j;
  }
}

void MaskWorkspace::set(const std::uint32_t* from, const std::uint32_t* until) {
  if (from == until) return;
  for (const std::uint32_t* id = from; id != until; ++id) set_bit(row_, *id);
  steps_.set(from, until);
}

void MaskWorkspace::set_one(std::uint32_t id) {
  set_bit(row_, id);
  steps_.set_one(id);
}

void MaskWorkspace::clear_row() {
  if (row_empty_) std::memset(row_, 0, vocab_->words() * 4);
  row_empty_ = false;
}

// A request's own names come once, and after the first token few are left: finding their tokens is quicker than
// building what nobody asks for again.
bool MaskWorkspace::fill_names(const Item& item, std::size_t level) {
  const regular::NameSet* names = item.terminal->names();
  regular::NameSet::Span left;
  if (!names || !names->transient() || names->quoted() || names->tokens().empty()) return false;
  if (!names->open(item.state, &left) || left.depth == 0) return false;
  clear_row();
  const ByteTrie& all = vocab_->trie();
  const Rule& rule = *item.node->rule;
  names_.assign(1, {0, left});
  while (!names_.empty()) {
    const auto [node, span] = names_.back();
    names_.pop_back();
    names->each_group(span, [&](std::uint8_t byte, const regular::NameSet::Span& below) {
      const std::uint32_t to = all.child(node, byte);
      if (!to || !rule.admits(item.to, item.payload, {below.first, below.end, false})) return;
      if (names->whole(below)) {  // no name begins another
        leaves_of(&item, 1, below.first, Rests::below(all, to), level, false);
        return;
      }
      set(all.begin(to), all.end(to));
      if (all.skip(to) > to + 1) names_.push_back({to, below});
    });
  }
  return true;
}

// Where that is less than looking for a mask that was kept.
bool MaskWorkspace::fill_alone(const Item& item) {
  if (fill_names(item, 0)) return true;
  const Entry* entry =
      cache_->at_hand(nullptr, *item.terminal, item.state, cache_->classify(*item.terminal, item.counter));
  if (!entry || !entry->alone) return false;
  ++entries_;
  fill_entry(nullptr, *entry, &item, 1, 0);
  return true;
}

void MaskWorkspace::fill_group(const Rests* rests, const Item* items, std::size_t count, std::size_t level) {
  const Item& first = items[0];
  if (!rests && fill_names(first, level)) return;
  const Entry& entry =
      cache_->get(rests, *first.terminal, first.state, cache_->classify(*first.terminal, first.counter));
  ++entries_;
  const std::uint32_t pointed = steps_.pointed();
  fill_entry(rests, entry, items, count, level);
  if (steps_.pointed() != pointed) steps_.use(entry);
}

void MaskWorkspace::fill_entry(const Rests* rests, const Entry& entry, const Item* items, std::size_t count,
                               std::size_t level) {
  const Item& first = items[0];
  const Rule& rule = *first.node->rule;
  const bool labelled = first.terminal->labelled();
  const std::size_t words = vocab_->words();
  for (const auto& accepted : entry.accepted) {
    if (labelled && rests) parser.asks(first, accepted.range);
  }
  for (const auto& accepted : entry.accepted) {
    if (accepted.bits.empty()) continue;
    if (labelled && !rule.admits(first.to, first.payload, accepted.range)) continue;
    if (row_empty_) {
      std::memcpy(row_, accepted.bits.data(), words * 4);
      row_empty_ = false;
      steps_.copy(accepted.bits.data());
    } else {
      for (std::size_t w = 0; w < words; ++w) row_[w] |= accepted.bits[w];
      steps_.merge(accepted.bits.data());
    }
  }
  clear_row();
  for (const auto& accepted : entry.accepted) {
    if (accepted.from == accepted.until) continue;
    if (labelled && !rule.admits(first.to, first.payload, accepted.range)) continue;
    set(entry.ids.data() + accepted.from, entry.ids.data() + accepted.until);
  }
  for (const auto& leaves : entry.leaves) {
    if (!rule.reads_key(first.to) || !rule.needs_key(first.to, leaves.label)) {
      leaves_of(items, count, leaves.label, leaves->rests, level, rests);
    } else {
      for (std::size_t i = 0; i < count; ++i) leaves_by_key(rests, items[i], leaves, level);
    }
    const bool array = !leaves->apart_items.empty() && !std::all_of(items, items + count, in_object);
    if (leaves->apart.empty() && !array && leaves->whole.trie.nodes() == 0) continue;
    group_.clear();
    group_.items.assign(items, items + count);
    if (rests) walk(leaves->whole, group_);
    const auto take = [&](std::uint32_t id) {
      if (!has(id) && takes_token(group_, id)) set_one(id);
    };
    std::for_each(leaves->apart.begin(), leaves->apart.end(), take);
    if (array) std::for_each(leaves->apart_items.begin(), leaves->apart_items.end(), take);
  }
  if (entry.inner.none()) return;
  // The terminal might have ended earlier, where what follows could read what the terminal would have read.
  const Arena::Mark mark = parser.arena().mark();
  const std::uint32_t label = labelled ? first.terminal->inner_label() : 0;
  parser.complete(items, count, label, nullptr, 0, begun_, rests);
  bool meets = false;
  for (const Item& item : begun_.items) {
    if ((item.terminal->live(item.state) & entry.inner).any()) meets = true;
  }
  parser.arena().release(mark);
  if (!meets) return;
  group_.clear();
  group_.items.assign(items, items + count);
  walk_tokens(entry.ambiguous, group_);
}

bool MaskWorkspace::takes_token(const ConfigView& config, std::uint32_t id) {
  if (stack_.size() < 2) stack_.resize(2);
  const Arena::Mark mark = parser.arena().mark();
  const bool taken = parser.step_all(config, vocab_->bytes(id), stack_[0], stack_[1]);
  parser.arena().release(mark);
  return taken;
}

// Node by node with the parser.
void MaskWorkspace::walk(const Rests& rests, const ConfigView& config) {
  const auto take = [&](const ByteTrie& trie) {
    return [&](std::uint32_t n) {
      std::for_each(trie.begin(n), trie.end(n), [&](std::uint32_t id) { set_one(id); });
      return true;
    };
  };
  visit(rests.trie, 1, rests.trie.nodes(), 0, config, take(rests.trie));
  const ByteTrie& all = vocab_->trie();
  for (const auto& piece : rests.pieces) {
    const bool at_end = all.depth(piece.from) == piece.depth;
    visit(all, piece.from + at_end, piece.until, piece.depth, config, take(all));
  }
}

// Whole tokens; of pieces of the vocabulary's trie, wherever they are, only what leads to them is walked.
void MaskWorkspace::walk_tokens(const Rests& tokens, const ConfigView& config) {
  const std::vector<Rests::Piece>& pieces = tokens.pieces;
  if (tokens.trie.nodes()) {
    visit(tokens.trie, 1, tokens.trie.nodes(), 0, config, [&](std::uint32_t n) {
      std::for_each(tokens.trie.begin(n), tokens.trie.end(n), [&](std::uint32_t id) { set_one(id); });
      return true;
    });
  }
  const ByteTrie& all = vocab_->trie();
  const std::size_t levels = all.max_depth() + 1;
  if (stack_.size() < levels) stack_.resize(levels);
  if (marks_.size() < levels) marks_.resize(levels);
  const Arena::Mark entry = parser.arena().mark();
  auto piece = pieces.begin();
  for (std::uint32_t n = 1; n < all.nodes() && piece != pieces.end();) {
    if (piece->until <= n) {
      ++piece;
      continue;
    }
    const std::uint32_t level = all.depth(n);
    const ConfigView before = level == 1 ? config : ConfigView(stack_[level - 1]);
    parser.arena().release(level == 1 ? entry : marks_[level - 1]);
    if (all.skip(n) <= piece->from || !takes(before, all.byte(n)) || !parser.step(before, all.byte(n), stack_[level])) {
      n = all.skip(n);
      continue;
    }
    marks_[level] = parser.arena().mark();
    if (n >= piece->from) std::for_each(all.begin(n), all.end(n), [&](std::uint32_t id) { set_one(id); });
    ++n;
  }
  parser.arena().release(entry);
}

void MaskWorkspace::take_rests(const Rests& rests, const ConfigView& config, std::size_t level) {
  if (config.dead()) return;
  if (rests.trie.nodes()) set(rests.trie.begin(0), rests.trie.end(0));
  bool more = rests.trie.nodes() > 1;
  const ByteTrie& all = vocab_->trie();
  for (const auto& piece : rests.pieces) {
    const bool at_end = all.depth(piece.from) == piece.depth;
    if (at_end) set(all.begin(piece.from), all.end(piece.from));
    more = more || piece.until > piece.from + at_end;
  }
  if (!more || config.items.empty()) return;
  if (++completions_ > kMostCompletions)
    walk(rests, config);
  else
    fill_config(&rests, config, level + 1);
}

void MaskWorkspace::leaves_of(const Item* items, std::size_t count, std::uint32_t label, const Rests& rests,
                              std::size_t level, bool beyond) {
  while (levels_.size() <= level) levels_.push_back(std::make_unique<Level>());
  Config& after = levels_[level]->after;
  const Arena::Mark mark = parser.arena().mark();
  parser.complete(items, count, label, nullptr, 0, after, beyond);
  take_rests(rests, after, level);
  parser.arena().release(mark);
}

// Keys that no name declares must not repeat: tokens that would repeat one are left out.
void MaskWorkspace::leaves_by_key(const Rests* rests, const Item& item, const Entry::Leaves& leaves,
                                  std::size_t level) {
  if (rests) parser.asks(item);
  while (levels_.size() <= level) levels_.push_back(std::make_unique<Level>());
  const ByteTrie& after_key = leaves->rests.trie;
  const Rule& rule = *item.node->rule;
  refused_.clear();
  known_ = rule.taken_keys(item.payload, item.key, &taken_);
  if (known_) {
    for (std::string_view taken : taken_) {
      if (!rests && taken.size() > cache_->longest_key()) continue;  // most are
      if (!rests) refuse(item.key ? "" : "\"", taken);
      auto at = std::lower_bound(leaves->keys.begin(), leaves->keys.end(), taken,
                                 [](const Entry::Ends::Key& k, std::string_view text) { return k.says < text; });
      for (; at != leaves->keys.end() && at->says == taken; ++at) refused_.push_back(at->id);
    }
  } else {  // inside an escape: one by one
    for (std::uint32_t n = 0; n < after_key.nodes(); ++n) {
      for (auto t = after_key.begin(n); t != after_key.end(n); ++t) {
        const std::string_view bytes = vocab_->bytes(*t);
        if (!rule.key_is_new(item.payload, item.key, bytes.substr(0, bytes.size() - after_key.depth(n))))
          refused_.push_back(*t);
      }
    }
  }
  // Which new key it is makes no difference to the rests.
  const std::string_view part = rests ? new_key(leaves) : new_key(item, leaves);
  if (part.empty()) return;
  std::vector<std::uint32_t>& refused = levels_[level]->refused;  // what comes after has some of its own
  refused.clear();
  std::copy_if(refused_.begin(), refused_.end(), std::back_inserter(refused),
               [&](std::uint32_t id) { return !has(id); });  // others are allowed for another reason
  Config& after = levels_[level]->after;
  const Arena::Mark mark = parser.arena().mark();
  parser.complete(&item, 1, leaves.label, reinterpret_cast<const std::uint8_t*>(part.data()), part.size(), after,
                  rests);
  take_rests(leaves->rests, after, level);
  parser.arena().release(mark);
  for (std::uint32_t id : refused) clear_bit(row_, id);
  steps_.unset(refused);
}

// How some token that ends a key spells its part of one that is not there yet; empty when all would repeat one.
std::string_view MaskWorkspace::new_key(const Item& item, const Entry::Leaves& leaves) const {
  const ByteTrie& rests = leaves->rests.trie;
  const std::size_t open = item.key ? 0 : 1;  // the quotes are no part of the key
  for (std::uint32_t n = 0; n < rests.nodes(); ++n) {
    for (auto t = rests.begin(n); t != rests.end(n); ++t) {
      const std::string_view bytes = vocab_->bytes(*t);
      const std::string_view part = bytes.substr(0, bytes.size() - rests.depth(n));
      const bool plain = known_ && part.find('\\') == std::string_view::npos;
      if (plain ? !std::binary_search(taken_.begin(), taken_.end(), part.substr(open, part.size() - open - 1))
                : item.node->rule->key_is_new(item.payload, item.key, part)) {
        return part;
      }
    }
  }
  return {};
}

// The same of whole keys.
std::string_view MaskWorkspace::new_key(const Entry::Leaves& leaves) const {
  for (const Entry::Ends::Key& key : leaves->keys) {
    if (!std::binary_search(taken_.begin(), taken_.end(), key.says))
      return vocab_->bytes(key.id).substr(key.from, key.size);
  }
  return {};
}

// Tokens that begin with the rest of a key and its closing quote, spelled without escapes: what cannot be, is not there.
void MaskWorkspace::refuse(std::string_view quote, std::string_view rest) {
  const auto escaped = [](unsigned char c) { return c < 0x20 || c == '"' || c == '\\'; };
  if (std::any_of(rest.begin(), rest.end(), escaped)) return;
  const ByteTrie& all = vocab_->trie();
  std::uint32_t node = 0;
  for (std::string_view part : {quote, rest, std::string_view("\"")}) {
    for (unsigned char c : part) {
      if (!(node = all.child(node, c))) return;
    }
  }
  refused_.insert(refused_.end(), all.begin(node), all.end(all.skip(node) - 1));
}

}  // namespace ag
