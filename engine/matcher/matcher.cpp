#include "matcher/matcher.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "base/bits.h"
#include "matcher/engine.h"

namespace ag {

namespace {

bool same(const ConfigView& a, const ConfigView& b) {
  if (a.complete != b.complete || a.items.size() != b.items.size() || a.tokens.size() != b.tokens.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    const Item &x = a.items[i], &y = b.items[i];
    if (x.terminal != y.terminal || x.state != y.state || x.node != y.node || x.to != y.to || x.counter != y.counter ||
        x.key != y.key || !equal(x.payload, y.payload)) {
      return false;
    }
  }
  for (std::size_t i = 0; i < a.tokens.size(); ++i) {
    const TokenItem &x = a.tokens[i], &y = b.tokens[i];
    if (x.ids != y.ids || x.node != y.node || x.to != y.to || !equal(x.payload, y.payload)) return false;
  }
  return true;
}

// Whether bytes leave the terminals in their states.
bool loops_by(const ConfigView& config, std::string_view bytes) {
  constexpr std::size_t kMost = 4;  // items
  if (bytes.empty() || config.items.empty() || config.items.size() > kMost) return false;
  return std::all_of(config.items.begin(), config.items.end(), [&](const Item& item) {
    if (const std::uint32_t* row = item.terminal->row(item.state)) {
      return std::all_of(bytes.begin(), bytes.end(),
                         [&](char c) { return row[static_cast<std::uint8_t>(c)] == item.state; });
    }
    return std::all_of(bytes.begin(), bytes.end(), [&](char c) {
      return item.terminal->next(item.state, static_cast<std::uint8_t>(c)) == item.state;
    });
  });
}

// Whether the token may come by its id.
bool named(const ConfigView& config, std::uint32_t token) {
  return std::any_of(config.tokens.begin(), config.tokens.end(), [&](const TokenItem& item) {
    return std::binary_search(item.ids->begin(), item.ids->end(), token);
  });
}

std::size_t rounded(std::size_t size) { return (size + 15) & ~std::size_t{15}; }

}  // namespace

class Packer {
 public:
  Ref<const Snapshot> pack(const ConfigView& config) {
    const std::size_t items = rounded(config.items.size_bytes()), tokens = rounded(config.tokens.size_bytes());
    const std::size_t fixed = rounded(sizeof(Snapshot)) + items + tokens;
    const std::size_t size = fixed + (owns_all(config) ? 0 : kFirst);
    auto* memory = static_cast<std::byte*>(KeptMemory::take(size));
    out_ = new (memory) Snapshot;
    out_->size_ = static_cast<std::uint32_t>(size);
    at_ = memory + fixed;
    end_ = memory + size;
    auto* item = new (memory + rounded(sizeof(Snapshot))) Item[config.items.size()];
    auto* token = new (memory + rounded(sizeof(Snapshot)) + items) TokenItem[config.tokens.size()];
    out_->items = {item, config.items.size()};
    out_->tokens = {token, config.tokens.size()};
    out_->complete = config.complete;
    for (const Item& from : config.items) {
      *item = from;
      item->node = move(from.node);
      item->payload = move(from.payload);
      item->key = move(from.key);
      ++item;
    }
    for (const TokenItem& from : config.tokens) {
      *token = from;
      token->node = move(from.node);
      token->payload = move(from.payload);
      ++token;
    }
    while (!pending_.empty()) {
      Node* node = pending_.back();
      pending_.pop_back();
      for (std::uint32_t i = 0; i < node->count; ++i) {
        node->links[i].parent = move(node->links[i].parent);
        node->links[i].payload = move(node->links[i].payload);
      }
    }
    return Ref<const Snapshot>::adopt(out_);
  }

 private:
  static constexpr std::size_t kFirst = 256, kMore = 1008;

  static bool owns_all(const ConfigView& config) {
    const auto owned = [](const auto& i) {
      return i.node->committed && (!i.payload.blob || i.payload.blob->committed);
    };
    for (const Item& i : config.items) {
      if (!owned(i) || (i.key && !i.key->committed)) return false;
    }
    return std::all_of(config.tokens.begin(), config.tokens.end(), owned);
  }

  void* allocate(std::size_t size) {
    size = rounded(size);
    if (size > static_cast<std::size_t>(end_ - at_)) {
      const std::size_t block = std::max(kMore, size + rounded(sizeof(Snapshot::Block)));
      auto* memory = static_cast<std::byte*>(::operator new(block));
      out_->more_ = new (memory) Snapshot::Block{out_->more_};
      at_ = memory + rounded(sizeof(Snapshot::Block));
      end_ = memory + block;
    }
    void* p = at_;
    at_ += size;
    return p;
  }

  const Node* move(const Node* node) {
    if (node->committed) return node;
    if (node->moved) return node->moved;
    Node* copy = new (allocate(sizeof(Node))) Node(*node);
    copy->links = static_cast<Link*>(allocate(sizeof(Link) * node->count));
    std::copy(node->links, node->links + node->count, copy->links);
    copy->capacity = copy->count;
    copy->committed = true;
    copy->epoch = 0;
    node->moved = copy;
    pending_.push_back(copy);
    return copy;
  }

  Payload move(const Payload& p) {
    if (!p.blob || p.blob->committed) return p;
    Blob* copy = new (allocate(sizeof(Blob))) Blob(*p.blob);
    copy->committed = true;
    copy->keys = move(copy->keys);
    if (copy->words) {
      copy->bits = static_cast<std::uint64_t*>(allocate(copy->words * 8));
      std::memcpy(copy->bits, p.blob->bits, copy->words * 8);
    }
    return {p.word, copy};
  }

  const SeenKey* move(const SeenKey* key) {
    SeenKey* newest = nullptr;
    const SeenKey** at = nullptr;
    for (; key && !key->committed; key = key->previous) {
      SeenKey* copy = new (allocate(sizeof(SeenKey))) SeenKey(*key);
      char* text = static_cast<char*>(allocate(key->size + 1));
      std::memcpy(text, key->text, key->size);
      copy->text = text;
      copy->committed = true;
      if (at)
        *at = copy;
      else
        newest = copy;
      at = &copy->previous;
    }
    if (!at) return key;
    *at = key;
    return newest;
  }

  const KeyByte* move(const KeyByte* key) {
    KeyByte* newest = nullptr;
    const KeyByte** at = nullptr;
    for (; key && !key->committed; key = key->previous) {
      KeyByte* copy = new (allocate(sizeof(KeyByte))) KeyByte(*key);
      copy->committed = true;
      if (at)
        *at = copy;
      else
        newest = copy;
      at = &copy->previous;
    }
    if (!at) return key;
    *at = key;
    return newest;
  }

  Snapshot* out_ = nullptr;
  std::byte *at_ = nullptr, *end_ = nullptr;
  std::vector<Node*> pending_;
};

void Snapshot::release() const {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  for (Block* block = more_; block;) {
    Block* next = block->next;
    ::operator delete(block);
    block = next;
  }
  const std::size_t size = size_;
  this->~Snapshot();
  KeptMemory::give(const_cast<Snapshot*>(this), size);
}

namespace {

// The rules know their own rests, so only the stack of callers is left to minimise: shortest paths to a root over the
// links, which may run in circles (left recursion).
class EndSearch {
 public:
  std::uint64_t node_cost(const Node* node) {
    if (!known_.contains(node)) settle(node);
    return known_[node].cost;
  }
  void write_node(const Node* node, Ending& out) {
    node_cost(node);
    while (const Link* best = known_[node].best) {
      best->parent->rule->write_min(best->state, best->payload, out);
      node = best->parent;
    }
  }

 private:
  struct Known {
    std::uint64_t cost = Rule::kInfinite;
    const Link* best = nullptr;
  };

  void settle(const Node* from) {
    std::vector<const Node*> found{from};
    known_[from];
    for (std::size_t i = 0; i < found.size(); ++i) {
      for (std::uint32_t l = 0; l < found[i]->count; ++l) {
        const Node* parent = found[i]->links[l].parent;
        if (known_.try_emplace(parent).second) found.push_back(parent);
      }
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = found.size(); i-- > 0;) {
        const Node* node = found[i];
        Known best = known_[node];
        if (node->root) best = {0, nullptr};
        for (std::uint32_t l = 0; l < node->count; ++l) {
          const Link& link = node->links[l];
          std::uint64_t cost =
              add_cost(link.parent->rule->min_cost(link.state, link.payload), known_[link.parent].cost);
          if (cost < best.cost) best = {cost, &link};
        }
        if (best.cost < known_[node].cost) {
          known_[node] = best;
          changed = true;
        }
      }
    }
  }

  std::unordered_map<const Node*, Known> known_;
};

}  // namespace

Ending shortest_end(const ConfigView& config) {
  Ending best;
  if (config.complete) return best;
  std::uint64_t least = Rule::kInfinite;
  EndSearch search;
  Arena arena;
  auto consider = [&](const std::string& bytes, const Node* node, std::uint32_t state, const Payload& payload) {
    std::uint64_t cost = add_cost(add_cost(bytes.size(), node->rule->min_cost(state, payload)), search.node_cost(node));
    if (cost >= least) return;
    least = cost;
    best.units.clear();
    best.append(bytes);
    node->rule->write_min(state, payload, best);
    search.write_node(node, best);
  };
  for (const Item& item : config.items) {
    if (!item.terminal->labelled() && !item.node->rule->reads_key(item.to)) {
      if (item.terminal->min_rest(item.state, item.counter) < least) {
        consider(item.terminal->shortest(item.state, item.counter), item.node, item.to, item.payload);
      }
      continue;
    }
    auto try_from = [&](std::uint32_t label, Terminal::State from, std::string bytes) {
      std::uint32_t state = 0;
      Payload payload;
      std::string rest;
      if (!item.terminal->labelled()) {
        rest = item.terminal->shortest(from, item.counter);
      } else if (!item.terminal->shortest_label(from, label, &rest)) {
        return false;
      }
      bytes += rest;
      const KeyByte* key = item.key;
      for (unsigned char c : bytes) key = arena.make<KeyByte>(key, key ? key->length + 1 : 1, c, false);
      if (!item.node->rule->on_label(item.to, item.payload, label, key, arena, &state, &payload)) return false;
      consider(bytes, item.node, state, payload);
      return true;
    };
    auto walk = [&](Terminal::State at, std::string_view bytes) {
      for (unsigned char c : bytes) at = at ? item.terminal->next(at, c) & Terminal::kStateMask : 0;
      return at;
    };
    auto try_label = [&](std::uint32_t label) {
      if (try_from(label, item.state, {}) || !item.node->rule->reads_key(item.to)) return;
      // The shortest key is there already: a few more letters make a new one. Inside an escape they come after it.
      std::string shortest;
      if (!item.terminal->labelled())
        shortest = item.terminal->shortest(item.state, item.counter);
      else if (!item.terminal->shortest_label(item.state, label, &shortest))
        return;
      if (!shortest.empty()) shortest.pop_back();  // the quote
      for (const std::string& before : {std::string(), shortest}) {
        const Terminal::State from = walk(item.state, before);
        for (std::size_t n = 1; from && n < 20'000; ++n) {
          std::string more = before;
          for (std::size_t i = n; i > 0; i = (i - 1) / 26) more += static_cast<char>('a' + (i - 1) % 26);
          const Terminal::State at = walk(from, std::string_view(more).substr(before.size()));
          if (at && try_from(label, at, more)) return;
        }
      }
    };
    if (!item.terminal->labelled()) {
      try_label(0);
      continue;
    }
    auto range = item.terminal->range(item.state);
    for (std::uint32_t label = range.lo; label < range.hi; ++label) try_label(label);
    if (range.others) {
      auto [first, count] = item.node->rule->other_labels(item.to);
      for (std::uint32_t i = 0; i < count; ++i) try_label(first + i);
    }
  }
  for (const TokenItem& item : config.tokens) {
    std::uint64_t cost =
        add_cost(add_cost(1, item.node->rule->min_cost(item.to, item.payload)), search.node_cost(item.node));
    if (cost >= least) continue;
    least = cost;
    best.units.clear();
    best.units.push_back({item.ids->front(), true});
    item.node->rule->write_min(item.to, item.payload, best);
    search.write_node(item.node, best);
  }
  return best;
}

// Long histories must not be released by recursion.
void HistoryState::release() {
  HistoryState* at = this;
  while (at && at->refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    // The reference to the one before is taken over, so that the loop drops it.
    Ref<HistoryState> before = std::move(at->previous);
    delete at;
    at = before.leak();
  }
}

namespace {

// What a thread needs to work with.
struct Scratch {
  MaskWorkspace workspace;
  Config a, b, c;
  Packer packer;
};

Scratch& scratch() {
  thread_local Scratch out;
  return out;
}

Scratch& fresh_scratch() {
  Scratch& out = scratch();
  out.workspace.parser.arena().reset();
  return out;
}

}  // namespace

std::uint64_t bytes_stepped() { return scratch().workspace.parser.pushes; }

Matcher::Matcher(std::shared_ptr<const Grammar> grammar) : grammar_(std::move(grammar)) {
  Scratch& here = fresh_scratch();
  here.workspace.parser.start(grammar_->fragment->root.rule, here.a);
  state_ = commit({}, here.a, here.packer);
}

Ref<HistoryState> Matcher::commit(const Ref<HistoryState>& previous, const ConfigView& config, Packer& packer) {
  if (previous && same(*previous->snapshot, config)) return HistoryState::make(previous, previous->snapshot);
  return HistoryState::make(previous, packer.pack(config));
}

bool Matcher::try_token(const Ref<HistoryState>& from, std::uint32_t token, Ref<HistoryState>* out) const {
  if (from->ended || token >= vocab().size()) return false;
  const ConfigView config = *from->snapshot;
  const bool loops = vocab().ordinary(token) && loops_by(config, vocab().bytes(token)) && !named(config, token);
  if (loops && from->snapshot->loops()) {
    *out = HistoryState::make(from, from->snapshot);
    return true;
  }
  Scratch& here = fresh_scratch();
  Parser& parser = here.workspace.parser;
  Config* result = &here.a;
  bool ok = false;
  if (vocab().ordinary(token)) ok = parser.step_all(config, vocab().bytes(token), here.a, here.b);
  if (!config.tokens.empty() && parser.step_token(config, token, here.c)) {
    if (ok) {
      here.a.items.insert(here.a.items.end(), here.c.items.begin(), here.c.items.end());
      here.a.tokens.insert(here.a.tokens.end(), here.c.tokens.begin(), here.c.tokens.end());
      here.a.complete = here.a.complete || here.c.complete;
    } else {
      result = &here.c;
    }
    ok = true;
  }
  if (ok) {
    *out = commit(from, *result, here.packer);
    if (loops && (*out)->snapshot == from->snapshot) from->snapshot->set_loops();
    return true;
  }
  if (config.complete && vocab().is_end(token)) {
    *out = HistoryState::make(from, from->snapshot);
    (*out)->ended = true;
    return true;
  }
  return false;
}

bool Matcher::accept(std::uint32_t token) {
  Ref<HistoryState> next;
  if (!try_token(state_, token, &next)) return false;
  state_ = std::move(next);
  ++depth_;
  return true;
}

bool Matcher::accept_bytes(std::string_view bytes) {
  if (state_->ended) return bytes.empty();
  if (bytes.empty()) return true;
  // In pieces, so that scratch memory does not grow with the text.
  auto base = state_;
  auto at = state_;
  for (std::size_t i = 0; i < bytes.size(); i += 256) {
    Scratch& here = fresh_scratch();
    if (!here.workspace.parser.step_all(*at->snapshot, bytes.substr(i, 256), here.a, here.b)) return false;
    at = commit(at, here.a, here.packer);
  }
  // One history entry for the whole; the pieces between stay alive through it.
  Ref<HistoryState> out = HistoryState::make(base, at->snapshot);
  out->bridge = at;
  state_ = std::move(out);
  ++depth_;
  return true;
}

void Matcher::rollback(std::uint64_t n) {
  if (n > depth_) {
    throw ValueError("cannot roll back " + std::to_string(n) + " steps: only " + std::to_string(depth_) +
                     " were accepted");
  }
  for (std::uint64_t i = 0; i < n; ++i) state_ = Ref<HistoryState>(state_->previous);
  depth_ -= n;
}

void Matcher::reset() { rollback(depth_); }

void Matcher::fill_from(const HistoryState& state, std::uint32_t* row) const {
  const Vocabulary& v = vocab();
  if (state.ended || state.snapshot->items.empty()) std::fill(row, row + v.words(), 0u);
  if (state.ended) return;
  const ConfigView config = *state.snapshot;
  if (!config.items.empty()) {
    MaskWorkspace& ws = fresh_scratch().workspace;
    if (grammar_->engine->options().adaptive_masks)
      ws.fill(v, grammar_->engine->masks(), config, row);
    else
      ws.fill_by_walk(v, config, row);
  }
  add_ids(config, row);
}

// Tokens that are taken by id: those that the grammar names, and the end.
void Matcher::add_ids(const ConfigView& config, std::uint32_t* row) const {
  const Vocabulary& v = vocab();
  for (const TokenItem& item : config.tokens) {
    for (std::uint32_t id : *item.ids) {
      if (id < v.size()) set_bit(row, id);
    }
  }
  if (config.complete) {
    for (std::uint32_t id : v.end()) set_bit(row, id);
  }
}

void Matcher::fill_by_walk(std::uint32_t* row) const {
  const Vocabulary& v = vocab();
  std::fill(row, row + v.words(), 0u);
  if (state_->ended) return;
  const ConfigView config = *state_->snapshot;
  fresh_scratch().workspace.fill_by_walk(v, config, row);
  add_ids(config, row);
}

bool Matcher::fill(std::uint32_t* row) const {
  const std::size_t words = vocab().words();
  const Snapshot* const now = state_->snapshot.get();
  if (last_ && last_->of.get() == now && !state_->ended) {
    std::memcpy(row, last_->row.data(), words * 4);
    return last_->masked;
  }
  fill_from(*state_, row);
  const std::uint32_t size = vocab().size();
  bool masked = size % 32 && row[size / 32] != (1u << (size % 32)) - 1;
  for (std::uint32_t w = 0; w < size / 32 && !masked; ++w) masked = row[w] != 0xffff'ffffu;
  if (state_->ended) return masked;
  if (filled_ == now) {
    if (!last_) last_ = std::make_unique<Last>();
    last_->of = state_->snapshot;
    last_->masked = masked;
    last_->row.assign(row, row + words);
  }
  filled_ = now;
  return masked;
}

std::string Matcher::forced_bytes() const {
  constexpr std::size_t kMost = 4096;
  std::string out;
  if (state_->ended) return out;
  MaskWorkspace& ws = fresh_scratch().workspace;
  Config current, next;
  ws.parser.step_all(*state_->snapshot, {}, current, next);
  while (out.size() < kMost && !current.complete && current.tokens.empty()) {
    int only = -1;
    bool several = false;
    for (const Item& item : current.items) {
      std::bitset<256> live = item.terminal->live(item.state);
      for (int b = 0; b < 256 && !several; ++b) {
        if (!live[b] || b == only) continue;
        std::uint32_t to = item.terminal->next(item.state, static_cast<std::uint8_t>(b));
        if (((to & Terminal::kUnit) && item.counter >= item.terminal->max_units()) ||
            ((to & Terminal::kClose) && item.counter < item.terminal->min_units())) {
          continue;
        }
        if (item.terminal->labelled() &&
            !item.node->rule->admits(item.to, item.payload, item.terminal->range(to & Terminal::kStateMask))) {
          continue;
        }
        several = only >= 0;
        only = b;
      }
    }
    if (several || only < 0) break;
    if (!ws.parser.step(current, static_cast<std::uint8_t>(only), next)) break;  // a key that may not repeat
    out.push_back(static_cast<char>(only));
    std::swap(current, next);
  }
  return out;
}

std::vector<std::uint32_t> Matcher::forced_tokens(
    const std::function<std::vector<std::uint32_t>(const std::string&)>& tokenize) const {
  const Vocabulary& v = vocab();
  std::string forced = forced_bytes();
  if (forced.empty()) return {};
  std::vector<std::uint32_t> tokens = tokenize ? tokenize(forced) : v.longest_match(forced);
  // Only what spells the forced bytes counts; a tokenizer may add or change something.
  std::size_t length = 0, good = 0;
  std::vector<std::size_t> starts;
  for (std::uint32_t t : tokens) {
    if (t >= v.size() || !v.ordinary(t) || std::string_view(forced).substr(length, v.bytes(t).size()) != v.bytes(t))
      break;
    starts.push_back(length);
    length += v.bytes(t).size();
    ++good;
  }
  tokens.resize(good);
  Scratch& here = fresh_scratch();
  MaskWorkspace& ws = here.workspace;
  if (!ws.parser.step_all(*state_->snapshot, forced, here.a, here.b)) return {};
  const Config end = here.a;
  // The end of the forced bytes may fall inside a token that the model would rather take: drop trailing tokens while
  // some token from a cut runs past the end.
  // A cut at offset c (also one that no kept token has) is bad when a token spells forced[c:] and then more that is
  // legal.
  std::size_t earliest_bad = forced.size();
  for (std::size_t c = forced.size() > 128 ? forced.size() - 128 : 0; c < forced.size(); ++c) {
    std::uint32_t node = 0;
    for (std::size_t i = c; i < forced.size(); ++i) {
      node = v.trie().child(node, static_cast<std::uint8_t>(forced[i]));
      if (!node) break;
    }
    if (node && ws.any(v, node, end)) {
      earliest_bad = c;
      break;
    }
  }
  while (!tokens.empty() && starts.back() + v.bytes(tokens.back()).size() > earliest_bad) {
    tokens.pop_back();
    starts.pop_back();
  }
  return tokens;
}

Ending Matcher::shortest_end() const {
  if (state_->ended) return {};
  return ag::shortest_end(*state_->snapshot);
}

std::size_t Matcher::validate(const std::vector<std::uint32_t>& tokens) const {
  Ref<HistoryState> at = state_;
  std::size_t n = 0;
  for (; n < tokens.size(); ++n) {
    Ref<HistoryState> next;
    if (!try_token(at, tokens[n], &next)) break;
    at = std::move(next);
  }
  return n;
}

void Matcher::fill_draft(std::uint32_t* rows, const std::vector<std::uint32_t>& tokens,
                         const std::vector<std::int64_t>& parents) const {
  if (tokens.size() != parents.size()) throw ValueError("a draft needs one parent for each token");
  std::vector<Ref<HistoryState>> states(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::uint32_t* row = rows + i * vocab().words();
    std::fill(row, row + vocab().words(), 0u);
    if (parents[i] < -1 || parents[i] >= static_cast<std::int64_t>(i)) {
      throw ValueError("node " + std::to_string(i) + " of the draft has parent " + std::to_string(parents[i]) +
                       ": parents come before their children, and -1 is the current state");
    }
    const auto& from = parents[i] < 0 ? state_ : states[static_cast<std::size_t>(parents[i])];
    if (from && try_token(from, tokens[i], &states[i])) fill_from(*states[i], row);
  }
}

}  // namespace ag
