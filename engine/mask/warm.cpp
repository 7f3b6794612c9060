#include "mask/warm.h"

#include <algorithm>
#include <array>
#include <unordered_set>

namespace ag {

namespace {

constexpr std::size_t kAlong = 64;       // bytes of a terminal's shortest text that are followed
constexpr std::uint32_t kLabels = 4;     // labels of one terminal whose texts are followed
constexpr std::uint32_t kOutcomes = 64;  // labels of one terminal after which the rule is followed

class Search {
 public:
  Search(const Vocabulary& vocab, std::size_t most) : most_(most) {
    const ByteTrie& trie = vocab.trie();
    for (std::uint32_t n = 1; n < trie.nodes(); n = trie.skip(n))
      begins_[trie.byte(n)] = static_cast<std::uint64_t>(trie.end(trie.skip(n) - 1) - trie.begin(n));
  }

  std::vector<WarmState> run(const std::vector<const Rule*>& roots, const std::vector<const Rule*>& known) {
    known_.insert(known.begin(), known.end());
    for (const Rule* root : roots) reach(root, 0, {});
    for (std::size_t i = 0; i < positions_.size() && i < most_; ++i) {
      const Position at = positions_[i];
      edges_.clear();
      at.rule->expand(at.state, at.payload, edges_);
      const Rule::Edges edges = edges_;
      for (const Rule::Edge& edge : edges) follow(at.rule, edge);
    }
    return std::move(found_);
  }

 private:
  struct Position {
    const Rule* rule;
    std::uint32_t state;
    Payload payload;
  };

  void reach(const Rule* rule, std::uint32_t state, const Payload& payload) {
    std::uint64_t key = reinterpret_cast<std::uintptr_t>(rule) * 0x9E3779B97F4A7C15ull;
    key ^= (payload.word + state + 1) * 0xBF58476D1CE4E5B9ull;
    if (seen_.insert(key ^ key >> 29).second) positions_.push_back({rule, state, payload});
  }

  void follow(const Rule* rule, const Rule::Edge& edge) {
    if (edge.kind == Rule::Edge::kCall && !known_.contains(edge.rule)) reach(edge.rule, 0, {});
    if (edge.kind == Rule::Edge::kCall || edge.kind == Rule::Edge::kToken) reach(rule, edge.to, edge.payload);
    if (edge.kind != Rule::Edge::kScan) return;
    Terminal& t = *edge.terminal;
    look_at(t);
    if (!t.labelled() && !rule->reads_key(edge.to)) return reach(rule, edge.to, edge.payload);
    const auto outcome = [&](std::uint32_t label) {
      std::string text;
      if (t.labelled() ? !t.shortest_label(Terminal::kStart, label, &text)
                       : (text = t.shortest(Terminal::kStart, 0)).empty()) {
        return;
      }
      const KeyByte* key = nullptr;
      for (unsigned char c : text) key = arena_.make<KeyByte>(key, key ? key->length + 1 : 1, c, false);
      std::uint32_t state = 0;
      Payload payload;
      if (rule->on_label(edge.to, edge.payload, label, key, arena_, &state, &payload)) reach(rule, state, payload);
    };
    if (!t.labelled()) return outcome(0);
    const Terminal::Range range = t.range(Terminal::kStart);
    for (std::uint32_t label = range.lo; label < range.hi && label - range.lo < kOutcomes; ++label) outcome(label);
    if (range.others) {
      const auto [first, count] = rule->other_labels(edge.to);
      for (std::uint32_t i = 0; i < count; ++i) outcome(first + i);
    }
  }

  // The start, the states on the way to an end, and the inside of a string.
  void look_at(Terminal& t) {
    if (t.transient() || !terminals_.insert(t.table()->id()).second) return;
    add(t, Terminal::kStart);
    std::string text = t.nullable() ? std::string() : t.shortest(Terminal::kStart, 0);
    along(t, text);
    if (t.loops()) along(t, "\"a");
    for (std::uint32_t label = 0; t.labelled() && label < std::min(t.others_begin(), kLabels); ++label) {
      if (t.shortest_label(Terminal::kStart, label, &text)) along(t, text);
    }
  }

  void along(Terminal& t, std::string_view text) {
    Terminal::State at = Terminal::kStart;
    for (std::size_t i = 0; i < text.size() && i < kAlong; ++i) {
      at = t.next(at, static_cast<std::uint8_t>(text[i])) & Terminal::kStateMask;
      if (at == Terminal::kDead) return;
      add(t, at);
    }
  }

  void add(Terminal& t, Terminal::State state) {
    const std::uint64_t key = t.table()->id() << 32 | state;
    if (!states_.insert(key).second) return;
    std::uint64_t cost = 0;
    const std::bitset<256> live = t.live(state);
    for (std::size_t b = live._Find_first(); b < 256; b = live._Find_next(b)) cost += begins_[b];
    if (cost) found_.push_back({&t, state, cost});
  }

  const std::size_t most_;
  std::array<std::uint64_t, 256> begins_{};
  Arena arena_;
  Rule::Edges edges_;
  std::vector<Position> positions_;
  std::unordered_set<const Rule*> known_;
  std::unordered_set<std::uint64_t> seen_, terminals_, states_;
  std::vector<WarmState> found_;
};

}  // namespace

std::vector<WarmState> warm_states(const Vocabulary& vocab, const std::vector<const Rule*>& roots,
                                   const std::vector<const Rule*>& known, std::size_t top, std::size_t most) {
  std::vector<WarmState> found = Search(vocab, most).run(roots, known);
  std::stable_sort(found.begin(), found.end(), [](const WarmState& a, const WarmState& b) { return a.cost > b.cost; });
  if (found.size() > top) found.resize(top);
  return found;
}

}  // namespace ag
