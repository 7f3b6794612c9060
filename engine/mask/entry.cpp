#include "mask/entry.h"

#include <algorithm>
#include <atomic>
#include <unordered_map>

namespace ag {

namespace {

class EntryBuilder {
 public:
  EntryBuilder(const Vocabulary& vocab, const ByteTrie* rests, Slices& slices, Terminal& terminal,
               Terminal::State state, CounterClass counter)
      : vocab_(vocab),
        trie_(rests ? *rests : vocab.trie()),
        whole_(!rests),
        slices_(slices),
        terminal_(terminal),
        start_(state),
        counter_(counter),
        counted_(terminal.counted()),
        ranged_(terminal.labelled() && !terminal.transient()) {}

  std::shared_ptr<const Entry> build() {
    out_ = std::make_shared<Entry>();
    path_.resize(trie_.max_depth() + 2);
    path_[0] = {start_, 0, 0, 0, terminal_.accepting(start_), false};
    SliceKey loop;
    SliceKey first;  // ASCII bytes (and other characters) that lead to the loop state
    Terminal::State to = whole_ && terminal_.loops() ? find_loop(&first, &loop) : Terminal::kDead;
    loop_ = loop;
    loop_state_ = to;
    if (to != Terminal::kDead && loop.count() >= kPlanFrom) {
      by_slices(to, first, loop);
    } else {
      descend(trie_, 0);
      run(trie_);
    }
    finish();
    return out_;
  }

 private:
  static constexpr int kWorthIt = 8;    // characters in a loop from which looking for it pays
  static constexpr int kPlanFrom = 64;  // characters from which what is outside the loop is the smaller part

  struct Step {
    Terminal::State state;
    std::uint32_t units;
    std::uint32_t chars;  // UTF-8 characters begun
    std::uint8_t byte;
    bool accepting;
    bool exits;  // the terminal could have ended here or earlier in the token
  };
  struct Group {
    Terminal::Range range;
    std::vector<std::uint32_t> bits, ids;
  };
  struct Leaf {
    std::uint32_t label;
    std::string_view whole;  // of what the terminal was given
    std::uint32_t depth;     // at which it ended
    std::uint32_t id;
    std::string_view rest() const { return whole.substr(depth); }
  };
  struct Siblings {  // subtrees [from, until) of equal depth
    std::uint32_t from, until;
  };

  // The state on which most characters loop, seen from the start: itself or one step away.
  Terminal::State find_loop(SliceKey* first, SliceKey* loop) {
    Terminal::State best = Terminal::kDead;
    int most = 0;
    for (int probe : {-1, int{'e'}, int{' '}, int{'0'}, int{'n'}}) {
      Terminal::State s = start_;
      if (probe >= 0) s = terminal_.next(start_, static_cast<std::uint8_t>(probe)) & Terminal::kStateMask;
      if (s == Terminal::kDead || s == best) continue;
      SliceKey l = loop_set(s, s);
      if (l.count() < kWorthIt) continue;
      SliceKey f = s == start_ ? l : loop_set(start_, s);
      if (f.count() * 2 + l.count() > most) {
        most = f.count() * 2 + l.count();
        best = s;
        *first = f;
        *loop = l;
      }
    }
    return best;
  }

  // Characters that lead from `from` to `to`, one unit each where units are counted.
  SliceKey loop_set(Terminal::State from, Terminal::State to) {
    SliceKey out;
    for (int b = 0; b < 0x80; ++b) {
      if (leads(terminal_.next(from, static_cast<std::uint8_t>(b)), to)) out.set(static_cast<std::uint8_t>(b));
    }
    out.other = others_lead(from, to);
    return out;
  }

  bool leads(std::uint32_t next, Terminal::State to) const {
    return (next & Terminal::kStateMask) == to && !(next & Terminal::kClose) && (!counted_ || (next & Terminal::kUnit));
  }

  // Whether every character beyond ASCII leads from `from` to `to`.
  bool others_lead(Terminal::State from, Terminal::State to) {
    struct Span {
      std::uint8_t first, last, low, high;
      int more;
    };
    static constexpr Span kSpans[] = {{0xC2, 0xDF, 0x80, 0xBF, 1}, {0xE0, 0xE0, 0xA0, 0xBF, 2},
                                      {0xE1, 0xEC, 0x80, 0xBF, 2}, {0xED, 0xED, 0x80, 0x9F, 2},
                                      {0xEE, 0xEF, 0x80, 0xBF, 2}, {0xF0, 0xF0, 0x90, 0xBF, 3},
                                      {0xF1, 0xF3, 0x80, 0xBF, 3}, {0xF4, 0xF4, 0x80, 0x8F, 3}};
    for (const Span& span : kSpans) {
      for (int lead = span.first; lead <= span.last; ++lead) {
        std::uint32_t next = terminal_.next(from, static_cast<std::uint8_t>(lead));
        if (next == Terminal::kDead || (counted_ && !(next & Terminal::kUnit))) return false;
        std::vector<Terminal::State> level{next & Terminal::kStateMask};
        for (int k = 0; k < span.more; ++k) {
          std::vector<Terminal::State> after;
          for (Terminal::State s : level) {
            for (int c = k == 0 ? span.low : 0x80; c <= (k == 0 ? span.high : 0xBF); ++c) {
              std::uint32_t n = terminal_.next(s, static_cast<std::uint8_t>(c));
              if (n == Terminal::kDead || (n & ~Terminal::kStateMask)) return false;
              if (std::find(after.begin(), after.end(), n) == after.end()) after.push_back(n);
              if (after.size() > 8) return false;
            }
          }
          level = std::move(after);
        }
        if (level.size() != 1 || level[0] != to) return false;
      }
    }
    return true;
  }

  void by_slices(Terminal::State to, const SliceKey& first, const SliceKey& loop) {
    auto plan = slices_.plan(loop);
    const ByteTrie& all = vocab_.trie();
    const ByteTrie& rest = plan->rest;
    std::vector<std::uint32_t> bits = plan->bits;
    auto sliced = [&](std::uint8_t b) { return b < 0x80 ? first.has(b) && loop.has(b) : first.other && loop.other; };
    if (counted_ && counter_.room < slices_.max_chars()) {
      const auto& fits = slices_.at_most(counter_.room);
      for (std::size_t w = 0; w < bits.size(); ++w) bits[w] &= fits[w];
    }
    for (std::uint32_t n = 1; n < all.nodes(); n = all.skip(n)) {
      if (sliced(all.byte(n))) continue;
      // The plan's tokens below this byte do not loop from here: they are walked one by one.
      for (const std::uint32_t* t = all.begin(n); t != all.end(all.skip(n) - 1); ++t)
        bits[*t / 32] &= ~(1u << (*t % 32));
      walk(all, n, all.skip(n));
    }
    for (std::uint32_t n = 1; n < rest.nodes(); n = rest.skip(n)) {
      if (sliced(rest.byte(n))) walk(rest, n, rest.skip(n));
    }
    if (counted_ && counter_.room == 0) return;
    Group& g = group(ranged_ ? terminal_.range(to) : Terminal::Range{});
    if (g.bits.empty()) g.bits.assign(vocab_.words(), 0);
    for (std::size_t w = 0; w < bits.size(); ++w) g.bits[w] |= bits[w];
  }

  // Queues the children of a node whose path is walked: those that can matter.
  void descend(const ByteTrie& trie, std::uint32_t node) {
    const Step& at = path_[trie.depth(node)];
    std::uint8_t bytes[Terminal::kFew];
    const std::uint32_t few = at.exits ? Terminal::kMany : terminal_.few_live(at.state, bytes);
    if (few == Terminal::kMany) {
      if (node + 1 < trie.skip(node)) pending_.push_back({node + 1, trie.skip(node)});
      return;
    }
    // All others are refused, and nothing else is to be said of them.
    for (std::uint32_t i = 0; i < few; ++i) {
      if (const std::uint32_t c = trie.child(node, bytes[i])) pending_.push_back({c, trie.skip(c)});
    }
  }

  void walk(const ByteTrie& trie, std::uint32_t from, std::uint32_t until) {
    pending_.push_back({from, until});
    run(trie);
  }

  // Depth first, so that the path above what is queued stays as it is.
  void run(const ByteTrie& trie) {
    while (!pending_.empty()) {
      const Siblings range = pending_.back();
      pending_.pop_back();
      for (std::uint32_t n = range.from; n < range.until;) {
        if (!step(trie, n)) {
          n = trie.skip(n);
          continue;
        }
        if (trie.skip(n) < range.until) pending_.push_back({trie.skip(n), range.until});
        descend(trie, n);
        break;
      }
    }
  }

  // One node; false where there is nothing to do below it.
  bool step(const ByteTrie& trie, std::uint32_t n) {
    ++out_->nodes;
    const std::uint32_t depth = trie.depth(n);
    const std::uint8_t byte = trie.byte(n);
    const Step& before = path_[depth - 1];
    std::uint32_t next = terminal_.next(before.state, byte);
    Step at{
        next & Terminal::kStateMask, before.units, before.chars + ((byte & 0xC0) != 0x80), byte, false, before.exits};
    if (next & Terminal::kUnit) next = ++at.units > counter_.room && counted_ ? Terminal::kDead : next;
    if ((next & Terminal::kClose) && before.units < counter_.need) next = Terminal::kDead;
    if (next == Terminal::kDead) {
      path_[depth].byte = byte;
      refused(trie, n, depth);
      return false;
    }
    at.accepting = terminal_.accepting(at.state);
    at.exits = at.exits || at.accepting;
    path_[depth] = at;
    if (trie.has_values(n)) {
      if (!at.accepting || !terminal_.exhausted(at.state)) {
        Group& g = group(ranged_ ? terminal_.range(at.state) : Terminal::Range{});
        g.ids.insert(g.ids.end(), trie.begin(n), trie.end(n));
      } else {
        for (const std::uint32_t* t = trie.begin(n); t != trie.end(n); ++t) leaf(at.state, depth, depth, *t);
        inner_exits(trie, n, n + 1, depth - 1);
      }
    }
    if (whole_ && at.state == loop_state_ && &trie == &vocab_.trie() && loop_.covers(vocab_.below(n))) {
      loops_below(trie, n, at);
      return false;
    }
    return true;
  }

  // Everything below this node only loops: all of it is accepted, as far as the counter goes.
  void loops_below(const ByteTrie& trie, std::uint32_t node, const Step& at) {
    Group& g = group(ranged_ ? terminal_.range(at.state) : Terminal::Range{});
    for (const std::uint32_t* t = trie.end(node); t != trie.end(trie.skip(node) - 1); ++t) {
      if (!counted_ || at.units + (vocab_.chars(*t) - at.chars) <= counter_.room) g.ids.push_back(*t);
    }
  }

  // The terminal does not go on into this subtree.
  void refused(const ByteTrie& trie, std::uint32_t node, std::uint32_t depth) {
    if (!path_[depth - 1].exits || depth < 2) return;
    if (path_[depth - 1].accepting) {
      for (std::uint32_t n = node; n < trie.skip(node); ++n) {
        for (const std::uint32_t* t = trie.begin(n); t != trie.end(n); ++t)
          leaf(path_[depth - 1].state, depth - 1, trie.depth(n), *t);
      }
    }
    if (depth >= 3) inner_exits(trie, node, trie.skip(node), depth - 2);
  }

  // What of a token is in a trie: all of it, or its rest.
  std::string_view given(std::uint32_t id, std::uint32_t size) const {
    const std::string_view bytes = vocab_.bytes(id);
    return bytes.substr(bytes.size() - size);
  }

  void leaf(Terminal::State state, std::uint32_t depth, std::uint32_t size, std::uint32_t id) {
    leaves_.push_back({terminal_.labelled() ? terminal_.label(state) : 0, given(id, size), depth, id});
  }

  // Tokens of [node, until) that passed an accepting state at depth 1..deepest, from which the terminal went on.
  void inner_exits(const ByteTrie& trie, std::uint32_t node, std::uint32_t until, std::uint32_t deepest) {
    if (deepest == 0 || !path_[deepest].exits) return;
    for (std::uint32_t k = 1; k <= deepest; ++k) {
      if (path_[k].accepting) out_->inner[path_[k + 1].byte] = true;
    }
    for (std::uint32_t n = node; n < until; ++n) {
      for (const std::uint32_t* t = trie.begin(n); t != trie.end(n); ++t)
        ambiguous_.emplace_back(given(*t, trie.depth(n)), *t);
    }
  }

  Group& group(const Terminal::Range& range) {
    if (!ranged_) {
      if (groups_.empty()) groups_.push_back({range, {}, {}});
      return groups_[0];
    }
    const std::uint64_t key = std::uint64_t{range.lo} << 32 | std::uint64_t{range.hi} << 1 | range.others;
    const auto [it, fresh] = by_range_.try_emplace(key, static_cast<std::uint32_t>(groups_.size()));
    if (fresh) groups_.push_back({range, {}, {}});
    return groups_[it->second];
  }

  void finish() {
    for (Group& g : groups_) {
      if (g.bits.empty() && g.ids.empty()) continue;
      if (!g.bits.empty() || g.ids.size() > vocab_.words() / 4) {
        if (g.bits.empty()) g.bits.assign(vocab_.words(), 0);
        for (std::uint32_t id : g.ids) g.bits[id / 32] |= 1u << (id % 32);
        g.ids.clear();
      }
      g.ids.shrink_to_fit();
      out_->accepted.push_back({g.range, std::move(g.bits), std::move(g.ids)});
    }
    finish_leaves();
    if (ambiguous_.empty()) return;
    std::sort(ambiguous_.begin(), ambiguous_.end());
    ambiguous_.erase(std::unique(ambiguous_.begin(), ambiguous_.end()), ambiguous_.end());
    out_->ambiguous = ByteTrie(ambiguous_);
  }

  void finish_leaves() {
    static std::atomic<std::uint64_t> next_id{1};
    std::sort(leaves_.begin(), leaves_.end(), [](const Leaf& a, const Leaf& b) {
      if (a.label != b.label) return a.label < b.label;
      const int order = a.rest().compare(b.rest());
      return order != 0 ? order < 0 : a.id < b.id;
    });
    std::vector<std::pair<std::string_view, std::uint32_t>> sorted;
    for (std::size_t i = 0; i < leaves_.size();) {
      Entry::Leaves made;
      made.label = leaves_[i].label;
      made.id = next_id.fetch_add(1, std::memory_order_relaxed);
      const std::size_t from = i;
      sorted.clear();
      for (; i < leaves_.size() && leaves_[i].label == made.label; ++i) {
        const Leaf& l = leaves_[i];
        sorted.emplace_back(l.rest(), l.id);
        if (l.whole.substr(0, l.depth).find('\\') != std::string_view::npos) made.escaped.emplace_back(l.id, l.depth);
      }
      made.rests = ByteTrie(sorted);
      if (!whole_) {
        sorted.clear();
        for (std::size_t k = from; k < i; ++k) sorted.emplace_back(leaves_[k].whole, leaves_[k].id);
        std::sort(sorted.begin(), sorted.end());
        made.whole = ByteTrie(sorted);
      }
      out_->leaves.push_back(std::move(made));
    }
  }

  const Vocabulary& vocab_;
  const ByteTrie& trie_;
  const bool whole_;  // the trie is the vocabulary's
  Slices& slices_;
  Terminal& terminal_;
  const Terminal::State start_;
  const CounterClass counter_;
  const bool counted_;
  const bool ranged_;  // accepted tokens are told apart by the labels that are left
  SliceKey loop_;
  Terminal::State loop_state_ = Terminal::kDead;
  std::shared_ptr<Entry> out_;
  std::vector<Step> path_;
  std::vector<Group> groups_;
  std::unordered_map<std::uint64_t, std::uint32_t> by_range_;
  std::vector<Siblings> pending_;
  std::vector<Leaf> leaves_;
  std::vector<std::pair<std::string_view, std::uint32_t>> ambiguous_;
};

}  // namespace

std::size_t Entry::memory() const {
  std::size_t total = sizeof *this + ambiguous.memory();
  for (const auto& a : accepted) total += sizeof a + (a.bits.capacity() + a.ids.capacity()) * 4;
  for (const auto& l : leaves) total += sizeof l + l.rests.memory() + l.whole.memory() + l.escaped.capacity() * 8;
  return total;
}

std::shared_ptr<const Entry> build_entry(const Vocabulary& vocab, const ByteTrie* rests, Slices& slices,
                                         Terminal& terminal, Terminal::State state, CounterClass counter) {
  return EntryBuilder(vocab, rests, slices, terminal, state, counter).build();
}

}  // namespace ag
