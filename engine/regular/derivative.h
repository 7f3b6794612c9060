// Regular expressions over Unicode scalar values, hash-consed, and their derivatives (Brzozowski 1964; Owens, Reppy and
// Turon 2009: derivative classes). Counts stay counters: the derivative of r{m,n} is r'·r{m-1,n-1}.
//
// Invariants: equal nodes have one id; the constructors normalise (associativity, commutativity and idempotence of
// alternatives; common heads factored; touching counters of one body joined), so that finitely many derivatives exist.
// Without And and Not every node but kEmpty denotes a language that is not empty.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "regular/cp_automaton.h"

namespace ag::regular {

class RegexStore {
 public:
  using Id = std::uint32_t;
  static constexpr Id kEmpty = 0, kEpsilon = 1, kAny = 2, kAll = 3;  // kAny: one scalar; kAll: any string

  RegexStore();

  Id set(const CpSet& members);
  Id concat(Id a, Id b);
  Id alt(std::vector<Id> options);
  Id both(std::vector<Id> parts);
  Id negate(Id a);
  Id repeat(Id body, std::uint64_t min, std::uint64_t max);  // max kNoMax: no bound
  Id text(std::string_view utf8);
  Id length(std::uint64_t min, std::uint64_t max) { return repeat(kAny, min, max); }
  // The strings of `a` but the empty one. `a` holds no And or Not.
  Id nonempty(Id a);

  bool nullable(Id a) const { return nodes_[a].nullable; }
  bool boolean(Id a) const { return nodes_[a].boolean; }  // And or Not occurs
  std::size_t size() const { return nodes_.size(); }
  std::size_t bytes() const;  // memory held, about

  // The live transitions of `a` (targets are ids), in order.
  void derive(Id a, CpAutomaton::Pieces* out);
  // How `a` is put together by And, Or and Not of others; kPart when it is not, or only further inside.
  enum class Join : std::uint8_t { kPart, kAnd, kOr, kNot };
  Join join(Id a) const;
  std::vector<Id> joined(Id a) const;
  // The sets that occur in expressions, by number.
  std::vector<std::uint32_t> sets_below(const std::vector<Id>& roots) const;
  // f(lo, hi, signature) for all scalars in order: those of one signature are in the same ones of `sets`.
  template <class F>
  void each_class(const std::vector<std::uint32_t>& sets, F f) const;
  // Cost of the cheapest string; `a` holds no And or Not.
  std::uint32_t min_cost(Id a, bool quoted);
  // Whether some repetition is counted, far enough for anybody to notice.
  bool counts() const { return counts_; }
  // An expression that agrees with `a` on all strings that a token may spell: counts that no token can reach are bounds
  // no more. `a` holds no And or Not.
  Id clipped(Id a, Runs& runs, bool escaped);
  // Bounds the work of everything done from here on; spent, a GrammarError is thrown.
  void allow(std::uint64_t work) { total_ = work; }
  std::uint64_t allowed() const { return total_; }  // what is left of it

 private:
  enum class Kind : std::uint8_t { kEmpty, kEpsilon, kSet, kConcat, kAlt, kAnd, kNot, kRepeat };
  struct Node {
    Kind kind = Kind::kEmpty;
    bool nullable = false, boolean = false;
    std::uint32_t a = 0, b = 0;  // set index | head, tail | first child, count | body
    std::uint64_t min = 0, max = 0;
  };
  // An alternative as body{min,max}·tail.
  struct Term {
    Id body, tail;
    std::uint64_t min, max;
  };

  // Keeps recursion from overflowing the stack.
  class Nested {
   public:
    explicit Nested(RegexStore& store) : depth_(store.depth_) {
      if (depth_ >= kMaxDepth) refuse();
      ++depth_;
    }
    ~Nested() { --depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    std::uint32_t& depth_;
  };
  static constexpr std::uint32_t kMaxDepth = 1'000;
  static constexpr std::uint64_t kRowFuel = 1'000'000;  // work for one row
  [[noreturn]] static void refuse();
  Id intern(Node node, const std::vector<Id>* children = nullptr);
  bool same(const Node& a, const Node& b, const std::vector<Id>* children) const;
  void spend(std::size_t work);
  Id prepend(Id head, Id tail);  // head is no concatenation
  Term term(Id a) const;
  Id head(Id a) const { return nodes_[a].kind == Kind::kConcat ? nodes_[a].a : a; }
  Id tail(Id a) const { return nodes_[a].kind == Kind::kConcat ? nodes_[a].b : kEpsilon; }
  void flatten(Kind kind, const std::vector<Id>& parts, std::vector<Id>* out) const;
  void join_sets(std::vector<Id>* options);
  void join_counters(std::vector<Id>* options);
  void join_heads(std::vector<Id>* options);
  std::vector<Id> common_heads(std::vector<Id>* options);
  Id alternatives(std::vector<Id> options);
  void join_epsilon(std::vector<Id>* options);
  Id derivative(Id a, Cp cp);
  void collect_sets(Id a, std::vector<std::uint32_t>* out);
  std::uint32_t node_cost(Id a, bool quoted);
  Id clip(Id a, Runs& runs, bool escaped);

  std::vector<Node> nodes_;
  std::vector<Id> children_;
  std::unordered_multimap<std::uint64_t, Id> index_;
  std::vector<CpSet> sets_;
  std::size_t set_bytes_ = 0;
  std::unordered_multimap<std::uint64_t, std::uint32_t> set_index_;
  std::vector<std::pair<std::uint32_t, Id>> memo_;  // by node: stamp, derivative
  std::vector<std::uint32_t> seen_;                 // by node: stamp of collect_sets
  std::uint32_t stamp_ = 0;
  std::vector<std::uint32_t> cost_[2];
  std::unordered_map<Id, Id> clipped_;
  bool counts_ = false;
  std::uint64_t fuel_ = 0, total_ = kNoMax;
  std::uint32_t depth_ = 0;  // of alt() and derivative() calls within each other
};

// The automaton of one node, made as it is walked. All its states are live when the node holds no And or Not.
class DerivativeAutomaton final : public CpAutomaton {
 public:
  DerivativeAutomaton(RegexStore store, RegexStore::Id root) : store_(std::move(store)), root_(root) {}
  State start() const override { return root_; }
  const Pieces& row(State state) override;
  bool accepting(State state) override { return store_.nullable(state); }
  std::uint32_t min_cost(State state, std::uint32_t, bool quoted) override { return store_.min_cost(state, quoted); }
  bool counts() const override { return store_.counts() && !store_.boolean(root_); }
  State alike(State state, Runs& runs, bool escaped) override { return store_.clipped(state, runs, escaped); }
  std::size_t bytes() const override { return sizeof(*this) + store_.bytes() + row_bytes_; }

 private:
  RegexStore store_;
  RegexStore::Id root_;
  std::size_t row_bytes_ = 0;
  std::unordered_map<State, Pieces> rows_;
};

template <class F>
void RegexStore::each_class(const std::vector<std::uint32_t>& sets, F f) const {
  std::vector<std::pair<Cp, std::uint32_t>> edges;
  for (std::uint32_t i = 0; i < sets.size(); ++i)
    for (const CpRange r : sets_[sets[i]].ranges()) {
      edges.push_back({r.lo, i});
      edges.push_back({r.hi + 1, i});
    }
  std::sort(edges.begin(), edges.end());
  std::string signature(sets.size() / 8 + 1, '\0');
  std::size_t at = 0;
  for (Cp lo = 0; lo <= kMaxCp;) {
    for (; at < edges.size() && edges[at].first <= lo; ++at)
      signature[edges[at].second / 8] = static_cast<char>(signature[edges[at].second / 8] ^ 1 << edges[at].second % 8);
    Cp hi = at < edges.size() ? edges[at].first - 1 : kMaxCp;
    if (lo < kSurrogateLo && hi >= kSurrogateLo) hi = kSurrogateLo - 1;
    if (lo >= kSurrogateLo && lo <= kSurrogateHi)
      hi = std::min(hi, kSurrogateHi);
    else
      f(lo, hi, signature);
    lo = hi + 1;
  }
}

}  // namespace ag::regular
