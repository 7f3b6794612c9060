// A byte-level Earley parser over rules, in the shape of a graph-structured stack.
//
// A configuration is the set of items that scan: (terminal state, counter, where to resume, in which activation). A
// Node is one activation of a rule at a position; its links say where its callers resume. Links are added while the
// node's byte is being processed and never after: nodes take the place of Earley's row origins, and completion visits
// links, never a row. Empty matches are settled at prediction, from the rules' nullable sets (Aycock and Horspool
// 2002). A call in tail position links to the caller's own callers (Leo 1991), so right recursion costs O(1) a byte.
//
// A Parser is scratch space for one thread. What it makes lives in its arena until commit() copies what a configuration
// still reaches.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "grammar/rule.h"

namespace ag {

struct Node;

struct Link {
  Payload payload;
  const Node* parent;
  std::uint32_t state;
};

struct Node {
  const Rule* rule;
  Link* links;
  std::uint32_t count, capacity;
  std::uint64_t epoch;        // the byte at which it was made; links grow only while it lasts
  mutable const Node* moved;  // where commit() has put it
  bool root;                  // its end is the grammar's end
  bool committed;
};

struct Item {
  Terminal* terminal;
  const Node* node;
  Payload payload;        // after the terminal
  std::uint64_t counter;  // units read, for counted terminals
  const KeyByte* key;     // the key's spelling so far, where the rule tracks it
  std::uint32_t state;    // the terminal's
  std::uint32_t to;       // the rule's state after the terminal
};

struct TokenItem {
  const std::vector<std::uint32_t>* ids;
  const Node* node;
  Payload payload;
  std::uint32_t to;
};

// A configuration to read, wherever it is kept.
struct ConfigView {
  std::span<const Item> items;
  std::span<const TokenItem> tokens;
  bool complete = false;  // the grammar may end here
  bool dead() const { return items.empty() && tokens.empty() && !complete; }
};

struct Config {
  std::vector<Item> items;
  std::vector<TokenItem> tokens;
  bool complete = false;
  operator ConfigView() const { return {items, tokens, complete}; }
  bool dead() const { return items.empty() && tokens.empty() && !complete; }
  void clear() {
    items.clear();
    tokens.clear();
    complete = false;
  }
};

class Parser {
 public:
  void start(const Rule* root, Config& out);
  // The configuration after some bytes. `spare` is scratch; all three differ.
  bool step_all(const ConfigView& in, std::string_view bytes, Config& out, Config& spare);
  // The configuration after a byte; false (and `out` dead) when the byte cannot follow. `in` and `out` differ.
  bool step(const ConfigView& in, std::uint8_t byte, Config& out);
  bool step_token(const ConfigView& in, std::uint32_t id, Config& out);
  // The configuration when the terminals of these items end here, with this label where they have labels. `bytes` are
  // the terminal's last bytes, which the items have not seen (keys are spelled by them).
  // `beyond`: they are no items of the watched configuration.
  void complete(const Item* items, std::size_t count, std::uint32_t label, const std::uint8_t* bytes,
                std::size_t length, Config& out, bool beyond = true);
  // A rule is asked which labels may come.
  void asks(const Item& item) {
    if (reads_ && item.node->committed && item.node->rule->has_outlook()) reads_->beyond = true;
  }
  void asks(const Item& item, const Terminal::Range& labels) {
    if (reads_ && item.node->committed && labels != item.terminal->range(Terminal::kStart)) asks(item);
  }

  // What of a committed configuration was followed: its callers, in order; whether rules came to what is their own; and
  // whether one of its rules has told apart a key (or another label) that came after what the configuration is in.
  struct Reads {
    std::vector<const Node*> nodes;
    bool own = false, beyond = false;
    void clear() {
      nodes.clear();
      own = beyond = false;
    }
  };
  void watch(Reads* reads) { reads_ = reads; }

  Arena& arena() { return arena_; }

  std::uint64_t pushes = 0;  // bytes stepped so far

 private:
  struct Position {
    const Node* node;
    Payload payload;
    std::uint32_t state;
  };

  // Takes bytes while nothing but the terminals' states changes; false when one cannot follow.
  bool stretch(std::vector<Item>& items, std::string_view& bytes);
  static constexpr std::size_t kFew = 4;
  static bool apart(std::span<const Item> items);
  void begin(Config& out);
  void run(Config& out);
  void add_item(Config& out, const Item& item);
  void finish_terminal(const Item& item, std::uint32_t label, bool beyond = true);
  void add_position(const Node* node, std::uint32_t state, const Payload& payload);
  void add_link(Node* node, std::uint32_t state, const Payload& payload, const Node* parent);
  void call(const Rule* rule, const Node* from, std::uint32_t to, const Payload& payload);
  Node* activation(const Rule* rule);
  void done(const Node* node, Config& out);
  void follow(const Node* node);
  const KeyByte* extend_key(const KeyByte* key, std::uint8_t byte);

  // Set membership over a growing vector, by index: linear while small, hashed above.
  class Seen {
   public:
    void clear() {
      if (used_) ++stamp_;
      used_ = false;
    }
    template <class Equal, class HashAt>
    bool insert(std::size_t size, std::uint64_t hash, Equal equal, HashAt hash_at);

   private:
    struct Slot {
      std::uint64_t stamp = 0;
      std::uint32_t index = 0;
    };
    void put(std::uint64_t hash, std::uint32_t index);
    std::vector<Slot> slots_;
    std::uint64_t stamp_ = 1;
    std::size_t filled_ = 0;
    bool used_ = false;
  };

  Arena arena_;
  std::uint64_t epoch_ = 0;
  std::vector<Position> positions_;
  std::vector<Node*> nodes_;  // made at this byte
  Rule::Edges edges_;
  Reads* reads_ = nullptr;
  Seen seen_items_, seen_positions_, seen_nodes_;
};

}  // namespace ag
