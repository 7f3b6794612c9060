#include "mask/entry.h"

#include <algorithm>

namespace ag {

namespace {

class EntryBuilder {
 public:
  EntryBuilder(const Vocabulary& vocab, Slices& slices, Terminal& terminal, Terminal::State state, CounterClass counter)
      : vocab_(vocab),
        slices_(slices),
        terminal_(terminal),
        start_(state),
        counter_(counter),
        counted_(terminal.counted()) {}

  std::shared_ptr<const Entry> build() {
    out_ = std::make_shared<Entry>();
    path_.resize(vocab_.trie().max_depth() + 2);
    path_[0] = {start_, 0, 0, terminal_.accepting(start_)};
    SliceKey loop;
    SliceKey first;  // ASCII bytes (and other characters) that lead to the loop state
    Terminal::State to = find_loop(&first, &loop);
    loop_ = loop;
    loop_state_ = to;
    if (to != Terminal::kDead && loop.count() >= kPlanFrom) {
      by_slices(to, first, loop);
    } else {
      const ByteTrie& trie = vocab_.trie();
      for (std::uint32_t n = 1; n < trie.nodes(); n = trie.skip(n)) walk(trie, n, trie.skip(n));
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
    bool accepting;
  };
  struct Group {
    Terminal::Range range;
    std::vector<std::uint32_t> bits, ids;
  };
  struct Leaf {
    std::uint32_t label;
    std::string_view rest;
    std::uint32_t id;
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
    Group& g = group(terminal_.labelled() ? terminal_.range(to) : Terminal::Range{});
    if (g.bits.empty()) g.bits.assign(vocab_.words(), 0);
    for (std::size_t w = 0; w < bits.size(); ++w) g.bits[w] |= bits[w];
  }

  // Walks the subtree [from, until) of a trie; `from` has depth 1.
  void walk(const ByteTrie& trie, std::uint32_t from, std::uint32_t until) {
    const bool whole_tree = &trie == &vocab_.trie();
    for (std::uint32_t n = from; n < until;) {
      ++out_->nodes;
      const std::uint32_t depth = trie.depth(n);
      const Step& before = path_[depth - 1];
      std::uint32_t next = terminal_.next(before.state, trie.byte(n));
      Step step{next & Terminal::kStateMask, before.units, before.chars + ((trie.byte(n) & 0xC0) != 0x80), false};
      if (next & Terminal::kUnit) next = ++step.units > counter_.room && counted_ ? Terminal::kDead : next;
      if ((next & Terminal::kClose) && before.units < counter_.need) next = Terminal::kDead;
      if (next == Terminal::kDead) {
        refused(trie, n, depth);
        n = trie.skip(n);
        continue;
      }
      step.accepting = terminal_.accepting(step.state);
      path_[depth] = step;
      if (trie.has_values(n)) {
        if (!step.accepting || !terminal_.exhausted(step.state)) {
          Group& g = group(terminal_.labelled() ? terminal_.range(step.state) : Terminal::Range{});
          g.ids.insert(g.ids.end(), trie.begin(n), trie.end(n));
        } else {
          for (const std::uint32_t* t = trie.begin(n); t != trie.end(n); ++t) leaf(step.state, depth, *t);
          inner_exits(trie, n, n + 1, depth - 1);
        }
      }
      if (whole_tree && step.state == loop_state_ && loop_.covers(vocab_.below(n))) {
        loops_below(trie, n, step);
        n = trie.skip(n);
        continue;
      }
      ++n;
    }
  }

  // Everything below this node only loops: all of it is accepted, as far as the counter goes.
  void loops_below(const ByteTrie& trie, std::uint32_t node, const Step& at) {
    Group& g = group(terminal_.labelled() ? terminal_.range(at.state) : Terminal::Range{});
    for (const std::uint32_t* t = trie.end(node); t != trie.end(trie.skip(node) - 1); ++t) {
      if (!counted_ || at.units + (vocab_.chars(*t) - at.chars) <= counter_.room) g.ids.push_back(*t);
    }
  }

  // The terminal does not go on into this subtree.
  void refused(const ByteTrie& trie, std::uint32_t node, std::uint32_t depth) {
    const std::uint32_t last = trie.skip(node) - 1;
    if (depth >= 2 && path_[depth - 1].accepting) {
      for (const std::uint32_t* t = trie.begin(node); t != trie.end(last); ++t)
        leaf(path_[depth - 1].state, depth - 1, *t);
    }
    if (depth >= 3) inner_exits(trie, node, trie.skip(node), depth - 2);
  }

  void leaf(Terminal::State state, std::uint32_t depth, std::uint32_t id) {
    leaves_.push_back({terminal_.labelled() ? terminal_.label(state) : 0, vocab_.bytes(id).substr(depth), id});
  }

  // Tokens of [node, until) that passed an accepting state at depth 1..deepest, from which the terminal went on.
  void inner_exits(const ByteTrie& trie, std::uint32_t node, std::uint32_t until, std::uint32_t deepest) {
    bool any = false;
    const std::string_view bytes = vocab_.bytes(*trie.begin(node));  // all of the subtree share the path
    for (std::uint32_t k = 1; k <= deepest; ++k) {
      if (!path_[k].accepting) continue;
      out_->inner[static_cast<std::uint8_t>(bytes[k])] = true;
      any = true;
    }
    if (any) ambiguous_.insert(ambiguous_.end(), trie.begin(node), trie.end(until - 1));
  }

  Group& group(const Terminal::Range& range) {
    for (Group& g : groups_) {
      if (g.range.lo == range.lo && g.range.hi == range.hi && g.range.others == range.others) return g;
    }
    groups_.push_back({range, {}, {}});
    return groups_.back();
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
    std::sort(leaves_.begin(), leaves_.end(), [](const Leaf& a, const Leaf& b) {
      return a.label != b.label ? a.label < b.label : a.rest != b.rest ? a.rest < b.rest : a.id < b.id;
    });
    std::vector<std::pair<std::string_view, std::uint32_t>> sorted;
    for (std::size_t i = 0; i < leaves_.size();) {
      sorted.clear();
      const std::uint32_t label = leaves_[i].label;
      for (; i < leaves_.size() && leaves_[i].label == label; ++i) sorted.emplace_back(leaves_[i].rest, leaves_[i].id);
      out_->leaves.push_back({label, ByteTrie(sorted)});
    }
    sorted.clear();
    for (std::uint32_t id : ambiguous_) sorted.emplace_back(vocab_.bytes(id), id);
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    out_->ambiguous = ByteTrie(sorted);
  }

  const Vocabulary& vocab_;
  Slices& slices_;
  Terminal& terminal_;
  const Terminal::State start_;
  const CounterClass counter_;
  const bool counted_;
  SliceKey loop_;
  Terminal::State loop_state_ = Terminal::kDead;
  std::shared_ptr<Entry> out_;
  std::vector<Step> path_;
  std::vector<Group> groups_;
  std::vector<Leaf> leaves_;
  std::vector<std::uint32_t> ambiguous_;
};

}  // namespace

std::size_t Entry::memory() const {
  std::size_t total = sizeof *this + ambiguous.memory();
  for (const auto& a : accepted) total += sizeof a + (a.bits.capacity() + a.ids.capacity()) * 4;
  for (const auto& l : leaves) total += sizeof l + l.rests.memory();
  return total;
}

std::shared_ptr<const Entry> build_entry(const Vocabulary& vocab, Slices& slices, Terminal& terminal,
                                         Terminal::State state, CounterClass counter) {
  return EntryBuilder(vocab, slices, terminal, state, counter).build();
}

}  // namespace ag
