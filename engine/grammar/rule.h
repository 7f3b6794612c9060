// Rules: small state machines whose edges are terminals, calls of other rules, and token sets.
//
// A rule's position is (state, payload). The payload carries what a finite automaton would have to unroll: how many
// items were seen, which members of an object are left. Guards on it keep one invariant: from every position that a
// rule lets the parser reach, the rule's end can be reached. The running parser therefore never searches for dead ends.
//
// Rules are immutable once settled and safe to read from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "base/interned.h"
#include "grammar/builder.h"
#include "regular/terminal.h"

namespace ag {

// A byte of an object's key as it was spelled, newest first; lives in an arena.
struct KeyByte {
  const KeyByte* previous;
  std::uint32_t length;
  std::uint8_t byte;
  bool committed;
};

// An undeclared key that an object has already, decoded; newest first; lives in an arena.
struct SeenKey {
  const SeenKey* previous;
  const char* text;
  std::uint32_t size;
  std::uint64_t hash;
  bool committed;
};

// An object's payload beyond one word: the members seen (any order) and the undeclared keys seen.
struct Blob {
  const SeenKey* keys;
  std::uint32_t words;
  bool committed;
  std::uint64_t* bits;  // `words` of them
};

struct Payload {
  std::uint64_t word = 0;
  const Blob* blob = nullptr;
};

bool equal(const Blob* a, const Blob* b);
inline bool equal(const Payload& a, const Payload& b) {
  return a.word == b.word && (a.blob == b.blob || (a.blob && b.blob && equal(a.blob, b.blob)));
}
inline std::uint64_t hash(const Payload& p) { return p.word * 0x9E3779B97F4A7C15ull + (p.blob ? 0x51ED270Bull : 0); }

// A shortest way to the end: bytes, and tokens where only a token will do.
struct Ending {
  struct Unit {
    std::uint32_t value;  // a byte, or a token id
    bool token;
  };
  std::vector<Unit> units;
  void append(std::string_view bytes) {
    for (char c : bytes) units.push_back({static_cast<std::uint8_t>(c), false});
  }
  void append(Symbol symbol);
};

class Parts;        // grammar/parts.h
class SharedRules;  // grammar/shared_rules.h

class Rule {
 public:
  static constexpr std::uint64_t kInfinite = ~std::uint64_t{0};

  struct Edge {
    enum Kind : std::uint8_t { kScan, kCall, kToken, kDone } kind;
    bool skip_null;  // the edge's empty match is already covered by another edge
    std::uint32_t to;
    Terminal* terminal;
    const Rule* rule;
    const std::vector<std::uint32_t>* tokens;  // sorted ids
    Payload payload;                           // after the edge
  };
  using Edges = std::vector<Edge>;

  virtual ~Rule() = default;

  // Never given twice in a process, unlike an address.
  const std::uint64_t id = next_id();
  // What the rule is, for equal ones to be shared. False: it is of one request only, and never shared.
  virtual bool parts(Parts& /*out*/) const { return false; }
  // A rule of one request only may say itself what it is like at a position, as numbers that begin with kDescribed: equal
  // ones take and refuse the same, as far as own() is not asked. False: only its id says it.
  virtual bool describe(std::uint32_t /*state*/, const Payload&, std::vector<std::uint64_t>& /*out*/) const {
    return false;
  }
  // What of a terminal has been read and may still come, for outlook().
  struct Ahead {
    Terminal::Range left{};                     // labels that it may still end with
    std::uint32_t read = 0;                     // bytes of a name so far, decoded
    std::uint32_t longest = ~std::uint32_t{0};  // no token ends a name after more bytes
  };
  // What can be told of a payload on the way to `to` before the rule has told another key apart (the parser says when it
  // does). Equal numbers of one rule mean equal masks as far as that. Where a key is spelled on the way, the keys that may
  // not come are not among them. False: the payload has to be told whole.
  virtual bool outlook(std::uint32_t /*to*/, const Payload&, const Ahead&, std::vector<std::uint64_t>& /*out*/) const {
    return false;
  }
  virtual bool has_outlook() const { return false; }
  static constexpr std::uint64_t kDescribed = ~std::uint64_t{0} - 1;
  // Whether what comes at a state is the request's own, and not in the description.
  virtual bool own(std::uint32_t /*state*/) const { return false; }

  virtual void expand(std::uint32_t state, const Payload& payload, Edges& out) const = 0;

  // After a labelled terminal on the way to state `to`: where to go on. False: this label is not allowed here.
  virtual bool on_label(std::uint32_t to, const Payload& payload, std::uint32_t /*label*/, const KeyByte* /*key*/,
                        Arena&, std::uint32_t* state, Payload* out) const {
    *state = to;
    *out = payload;
    return true;
  }
  // Whether some label in the range is allowed.
  virtual bool admits(std::uint32_t /*to*/, const Payload&, const Terminal::Range&) const { return true; }
  // Whether on_label needs the spelling of the terminal on the way to state `to` (undeclared keys, which must not
  // repeat). It is then called for a terminal without labels, too.
  virtual bool reads_key(std::uint32_t /*to*/) const { return false; }
  // Whether a key with this label must be compared with those seen; and whether one is new: the spelling so far, and
  // the bytes that complete it.
  virtual bool needs_key(std::uint32_t /*to*/, std::uint32_t /*label*/) const { return false; }
  virtual bool key_is_new(const Payload&, const KeyByte* /*key*/, std::string_view /*rest*/) const { return true; }
  // What is left of the keys that may not come (again) and that begin as spelled so far, decoded and sorted. False: the
  // spelling ends inside an escape, where key_is_new has to be asked.
  virtual bool taken_keys(const Payload&, const KeyByte* /*key*/, std::vector<std::string_view>* /*rests*/) const {
    return true;
  }
  // Labels behind Terminal::Range::others on the way to state `to`: the first, and how many.
  virtual std::pair<std::uint32_t, std::uint32_t> other_labels(std::uint32_t /*to*/) const {
    return {TerminalPool::kText, 1};
  }
  // True when nothing but the rule's end follows state `to` (a tail call).
  virtual bool is_tail(std::uint32_t to) const = 0;

  // Length of a shortest way from a position to this rule's end, in bytes and tokens; and such a way.
  virtual std::uint64_t min_cost(std::uint32_t state, const Payload& payload) const = 0;
  virtual void write_min(std::uint32_t state, const Payload& payload, Ending& out) const = 0;

  // Least fixpoints, computed by the builder.
  virtual bool compute_nullable() const = 0;
  std::uint64_t compute_min() const { return min_cost(0, {}); }
  virtual void settle() {}  // once min lengths are known
  virtual std::size_t bytes() const = 0;

  bool nullable = false;
  std::uint64_t min_length = kInfinite;
  // When min_length was found: what it rests on was found earlier, and what the rule calls and is not called by, earlier
  // still. A shortest way that follows earlier ones comes to an end, also where rules call each other without a byte
  // between.
  std::uint32_t found = 0;
  // The rules that it is shared with, and which of them it is; until it is shared: null, and a number of the builder's.
  const SharedRules* home = nullptr;
  std::uint32_t place = 0;
  std::uint64_t effort = 0;  // that making it took, in the steps of regular/effort.h
  // Of a placeholder: what it stands for.
  virtual Symbol* stands_for() { return nullptr; }
  bool productive() const { return min_length != kInfinite; }

 private:
  static std::uint64_t next_id() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }
};

inline bool is_nullable(Symbol s) { return s.terminal ? s.terminal->nullable() : s.rule && s.rule->nullable; }
inline bool is_productive(Symbol s) { return s.terminal || (s.rule && s.rule->productive()); }
inline std::uint64_t min_of(Symbol s) {
  if (s.terminal) return s.terminal->min_rest(Terminal::kStart, 0);
  return s.rule ? s.rule->min_length : Rule::kInfinite;
}
inline std::uint32_t found_at(Symbol s) { return s.rule ? s.rule->found : 0; }
inline std::uint64_t add_cost(std::uint64_t a, std::uint64_t b) {
  return a == Rule::kInfinite || b == Rule::kInfinite || a + b < a ? Rule::kInfinite : a + b;
}
inline std::uint64_t mul_cost(std::uint64_t a, std::uint64_t times) {
  if (times == 0) return 0;
  if (a == Rule::kInfinite || (a && times > (Rule::kInfinite - 1) / a)) return Rule::kInfinite;
  return a * times;
}

// Adds the edge for a symbol; nothing when it is unproductive.
inline void add_edge(Rule::Edges& out, Symbol s, std::uint32_t to, const Payload& payload, bool skip_null = false) {
  if (s.terminal) {
    out.push_back({Rule::Edge::kScan, skip_null, to, s.terminal, nullptr, nullptr, payload});
  } else if (s.rule && s.rule->productive()) {
    out.push_back({Rule::Edge::kCall, skip_null, to, nullptr, s.rule, nullptr, payload});
  }
}
inline void add_done(Rule::Edges& out) { out.push_back({Rule::Edge::kDone, false, 0, nullptr, nullptr, nullptr, {}}); }

// A compiled grammar, or a part of one: immutable. Its rules are shared with other grammars as far as they can be.
struct Fragment {
  std::shared_ptr<Interner> interner;  // outlives what is shared
  std::vector<Ref<const SharedRules>> shared;
  std::vector<std::unique_ptr<Rule>> rules;  // its own, and the terminals of these
  std::vector<TerminalPtr> terminals;
  std::vector<std::shared_ptr<const Fragment>> embedded;
  Symbol root;
  mutable std::atomic<bool> warmed{false};  // its masks have been built ahead, or soon are
  ~Fragment();
  std::size_t bytes() const;  // without what is shared
};

}  // namespace ag
