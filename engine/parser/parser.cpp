#include "parser/parser.h"

#include <algorithm>
#include <array>

namespace ag {

namespace {
constexpr std::size_t kLinear = 12;

std::uint64_t mix(std::uint64_t h) {
  h ^= h >> 32;
  h *= 0x9E3779B97F4A7C15ull;
  return h ^ h >> 29;
}
std::uint64_t address(const void* p) { return reinterpret_cast<std::uintptr_t>(p) >> 4; }

std::uint64_t hash_item(const Item& i) {
  return mix(address(i.terminal) * 31 + address(i.node) * 1000003 + i.state * 7919u + i.to * 104729u + i.counter * 131 +
             hash(i.payload) + address(i.key));
}
bool same_item(const Item& a, const Item& b) {
  return a.terminal == b.terminal && a.state == b.state && a.node == b.node && a.to == b.to && a.counter == b.counter &&
         a.key == b.key && equal(a.payload, b.payload);
}
}  // namespace

void Parser::Seen::put(std::uint64_t hash, std::uint32_t index) {
  std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at].stamp == stamp_) at = (at + 1) & mask;
  slots_[at] = {stamp_, index};
  ++filled_;
}

// `size` elements are in the set already; true when the new one (to be element `size`) is not among them.
template <class Equal, class HashAt>
bool Parser::Seen::insert(std::size_t size, std::uint64_t hash, Equal equal, HashAt hash_at) {
  if (size < kLinear) {
    for (std::size_t i = 0; i < size; ++i) {
      if (equal(i)) return false;
    }
    return true;
  }
  if (!used_) {
    used_ = true;
    filled_ = 0;
    if (slots_.size() < 64) slots_.resize(64);
    for (std::size_t i = 0; i < size; ++i) {
      if (filled_ * 2 >= slots_.size()) break;
      put(hash_at(i), static_cast<std::uint32_t>(i));
    }
  }
  if (filled_ * 2 >= slots_.size()) {
    slots_.assign(slots_.size() * 4, {});
    stamp_ = 1;
    filled_ = 0;
    for (std::size_t i = 0; i < size; ++i) put(hash_at(i), static_cast<std::uint32_t>(i));
  }
  std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask; slots_[at].stamp == stamp_; at = (at + 1) & mask) {
    if (equal(slots_[at].index)) return false;
  }
  put(hash, static_cast<std::uint32_t>(size));
  return true;
}

void Parser::begin(Config& out) {
  ++epoch_;
  out.clear();
  positions_.clear();
  nodes_.clear();
  seen_items_.clear();
  seen_positions_.clear();
  seen_nodes_.clear();
}

void Parser::start(const Rule* root, Config& out) {
  begin(out);
  Node* node = activation(root);
  node->root = true;
  run(out);
  // An empty match of the whole was skipped by done(), as for every node made here.
  if (root->nullable) out.complete = true;
}

bool Parser::step(const ConfigView& in, std::uint8_t byte, Config& out) {
  ++pushes;
  begin(out);
  for (const Item& item : in.items) {
    std::uint32_t next = item.terminal->next(item.state, byte);
    if (next == Terminal::kDead) continue;
    Item moved = item;
    moved.state = next & Terminal::kStateMask;
    if (next & Terminal::kUnit) {
      if (moved.counter >= item.terminal->max_units()) continue;
      ++moved.counter;
    }
    if ((next & Terminal::kClose) && moved.counter < item.terminal->min_units()) continue;
    if (item.terminal->labelled()) {
      const Terminal::Range labels = item.terminal->range(moved.state);
      asks(item, labels);
      if (!item.node->rule->admits(item.to, item.payload, labels)) continue;
    }
    if (item.node->rule->reads_key(item.to)) moved.key = extend_key(item.key, byte);
    // A state that does not accept goes on: all states are live.
    const bool accepting = item.terminal->accepting(moved.state);
    if (!accepting || !item.terminal->exhausted(moved.state)) add_item(out, moved);
    if (accepting) finish_terminal(moved, item.terminal->label(moved.state));
  }
  run(out);
  return !out.dead();
}

// A stretch in which no terminal can end needs no sets: few items, each at the place of its own. Which labels are left
// matters at its end only: on the way there were more.
bool Parser::stretch(std::vector<Item>& items, std::string_view& bytes) {
  std::array<Terminal::Advance, kFew> at;
  std::size_t taken = bytes.size();
  bool any = false;
  for (std::size_t i = 0; i < items.size(); ++i) {
    at[i] = items[i].terminal->advance(items[i].state, items[i].counter, bytes.substr(0, taken));
    if (at[i].dead) continue;
    any = true;
    taken = at[i].taken;
  }
  if (!any) return false;
  if (taken == 0) return true;
  const std::string_view done = bytes.substr(0, taken);
  std::size_t left = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (at[i].taken < taken) continue;
    Item item = items[i];
    if (at[i].taken > taken) at[i] = item.terminal->advance(item.state, item.counter, done);
    item.state = at[i].state;
    item.counter = at[i].counter;
    const Rule& rule = *item.node->rule;
    if (item.terminal->labelled()) {
      const Terminal::Range labels = item.terminal->range(item.state);
      asks(item, labels);
      if (!rule.admits(item.to, item.payload, labels)) continue;
    }
    if (rule.reads_key(item.to)) {
      for (char c : done) item.key = extend_key(item.key, static_cast<std::uint8_t>(c));
    }
    items[left++] = item;
  }
  items.resize(left);
  bytes.remove_prefix(taken);
  pushes += taken;
  return left > 0;
}

// Whether items can be moved each by itself: where they are few, and never the same afterwards.
bool Parser::apart(std::span<const Item> items) {
  if (items.size() > kFew) return false;
  for (std::size_t i = 1; i < items.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (items[i].terminal == items[j].terminal && items[i].node == items[j].node && items[i].to == items[j].to)
        return false;
    }
  }
  return true;
}

bool Parser::step_all(const ConfigView& in, std::string_view bytes, Config& out, Config& spare) {
  ConfigView at = in;
  Config *to = &out, *other = &spare;
  bool moved = false, several = true;
  while (!bytes.empty()) {
    if (at.tokens.empty() && !at.complete && (at.items.size() == 1 || (several && apart(at.items)))) {
      const std::size_t before = bytes.size();
      to->clear();
      to->items.assign(at.items.begin(), at.items.end());
      if (!stretch(to->items, bytes)) return false;
      if (bytes.size() < before) {
        at = *to;
        moved = true;
        std::swap(to, other);
        continue;
      }
      several = false;
    }
    if (!step(at, static_cast<std::uint8_t>(bytes.front()), *to)) return false;
    bytes.remove_prefix(1);
    at = *to;
    moved = true;
    std::swap(to, other);
  }
  if (!moved) {
    out.items.assign(in.items.begin(), in.items.end());
    out.tokens.assign(in.tokens.begin(), in.tokens.end());
    out.complete = in.complete;
  } else if (other != &out) {
    std::swap(out, spare);
  }
  return true;
}

bool Parser::step_token(const ConfigView& in, std::uint32_t id, Config& out) {
  begin(out);
  for (const TokenItem& item : in.tokens) {
    if (std::binary_search(item.ids->begin(), item.ids->end(), id)) add_position(item.node, item.to, item.payload);
  }
  run(out);
  return !out.dead();
}

void Parser::complete(const Item* items, std::size_t count, std::uint32_t label, const std::uint8_t* bytes,
                      std::size_t length, Config& out, bool beyond) {
  begin(out);
  for (std::size_t n = 0; n < count; ++n) {
    Item item = items[n];
    if (item.node->rule->reads_key(item.to)) {
      for (std::size_t i = 0; i < length; ++i) item.key = extend_key(item.key, bytes[i]);
    }
    finish_terminal(item, label, beyond);
  }
  run(out);
}

const KeyByte* Parser::extend_key(const KeyByte* key, std::uint8_t byte) {
  return arena_.make<KeyByte>(key, key ? key->length + 1 : 1, byte, false);
}

void Parser::add_item(Config& out, const Item& item) {
  auto& items = out.items;
  if (seen_items_.insert(
          items.size(), hash_item(item), [&](std::size_t i) { return same_item(items[i], item); },
          [&](std::size_t i) { return hash_item(items[i]); })) {
    items.push_back(item);
  }
}

// The terminal of an item ends here: the rule goes on.
void Parser::finish_terminal(const Item& item, std::uint32_t label, bool beyond) {
  if (!item.terminal->labelled() && !item.node->rule->reads_key(item.to)) {
    add_position(item.node, item.to, item.payload);
    return;
  }
  if (beyond) asks(item);
  std::uint32_t state = 0;
  Payload payload;
  if (item.node->rule->on_label(item.to, item.payload, label, item.key, arena_, &state, &payload)) {
    add_position(item.node, state, payload);
  }
}

void Parser::add_position(const Node* node, std::uint32_t state, const Payload& payload) {
  auto hash_of = [](const Position& p) { return mix(address(p.node) * 1000003 + p.state * 104729u + hash(p.payload)); };
  Position p{node, payload, state};
  if (seen_positions_.insert(
          positions_.size(), hash_of(p),
          [&](std::size_t i) {
            const Position& q = positions_[i];
            return q.node == node && q.state == state && equal(q.payload, payload);
          },
          [&](std::size_t i) { return hash_of(positions_[i]); })) {
    positions_.push_back(p);
  }
}

Node* Parser::activation(const Rule* rule) {
  auto hash_of = [](const Rule* r) { return mix(address(r)); };
  Node* found = nullptr;
  if (seen_nodes_.insert(
          nodes_.size(), hash_of(rule),
          [&](std::size_t i) {
            if (nodes_[i]->rule != rule) return false;
            found = nodes_[i];
            return true;
          },
          [&](std::size_t i) { return hash_of(nodes_[i]->rule); })) {
    found = arena_.make<Node>(rule, nullptr, 0u, 0u, epoch_, nullptr, false, false);
    nodes_.push_back(found);
    add_position(found, 0, {});
  }
  return found;
}

void Parser::add_link(Node* node, std::uint32_t state, const Payload& payload, const Node* parent) {
  for (std::uint32_t i = node->count; i-- > 0;) {
    const Link& l = node->links[i];
    if (l.parent == parent && l.state == state && equal(l.payload, payload)) return;
  }
  if (node->count == node->capacity) {
    std::uint32_t capacity = node->capacity ? node->capacity * 2 : 2;
    Link* links = arena_.array<Link>(capacity);
    std::copy(node->links, node->links + node->count, links);
    node->links = links;
    node->capacity = capacity;
  }
  node->links[node->count++] = {payload, parent, state};
}

void Parser::call(const Rule* rule, const Node* from, std::uint32_t to, const Payload& payload) {
  Node* node = activation(rule);
  if (from->epoch != epoch_ && from->rule->is_tail(to)) {
    follow(from);
    node->root = node->root || from->root;
    for (std::uint32_t i = 0; i < from->count; ++i) {
      add_link(node, from->links[i].state, from->links[i].payload, from->links[i].parent);
    }
  } else {
    add_link(node, to, payload, from);
  }
}

// Its links are looked at.
void Parser::follow(const Node* node) {
  if (!reads_ || !node->committed) return;
  auto& nodes = reads_->nodes;
  if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
}

void Parser::done(const Node* node, Config& out) {
  if (node->epoch == epoch_) return;  // an empty match: the caller has already gone on
  follow(node);
  if (node->root) out.complete = true;
  for (std::uint32_t i = 0; i < node->count; ++i)
    add_position(node->links[i].parent, node->links[i].state, node->links[i].payload);
}

void Parser::run(Config& out) {
  for (std::size_t p = 0; p < positions_.size(); ++p) {
    const Position at = positions_[p];
    if (reads_ && at.node->rule->own(at.state)) reads_->own = true;
    edges_.clear();
    at.node->rule->expand(at.state, at.payload, edges_);
    for (std::size_t e = 0; e < edges_.size(); ++e) {
      const Rule::Edge& edge = edges_[e];
      switch (edge.kind) {
        case Rule::Edge::kScan: {
          Item item{edge.terminal, at.node, edge.payload, 0, nullptr, Terminal::kStart, edge.to};
          const bool accepting = edge.terminal->accepting(Terminal::kStart);
          if ((!accepting || !edge.terminal->exhausted(Terminal::kStart)) &&
              (!edge.terminal->labelled() ||
               at.node->rule->admits(edge.to, edge.payload, edge.terminal->range(Terminal::kStart)))) {
            add_item(out, item);
          }
          if (!edge.skip_null && accepting) finish_terminal(item, edge.terminal->label(Terminal::kStart));
          break;
        }
        case Rule::Edge::kCall:
          call(edge.rule, at.node, edge.to, edge.payload);
          if (!edge.skip_null && edge.rule->nullable) add_position(at.node, edge.to, edge.payload);
          break;
        case Rule::Edge::kToken:
          out.tokens.push_back({edge.tokens, at.node, edge.payload, edge.to});
          break;
        case Rule::Edge::kDone:
          done(at.node, out);
          break;
      }
    }
  }
}

}  // namespace ag
