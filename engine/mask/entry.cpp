#include "mask/entry.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <span>
#include <unordered_map>

#include "base/bits.h"
#include "base/hash.h"
#include "base/head.h"
#include "regular/codepoints.h"
#include "regular/name_set.h"

namespace ag {

namespace {

class EntryBuilder {
 public:
  EntryBuilder(const Vocabulary& vocab, const Rests* rests, Slices& slices, SharedEnds& ends, Terminal& terminal,
               Terminal::State state, CounterClass counter)
      : vocab_(vocab),
        rests_(rests),
        slices_(slices),
        shared_(ends),
        terminal_(terminal),
        start_(state),
        counter_(counter),
        counted_(terminal.counted()),
        ranged_(terminal.labelled() && !terminal.transient()),
        key_(!terminal.names() && terminal.next(Terminal::kStart, '"') != Terminal::kDead) {
    const std::size_t depths = vocab.trie().max_depth() + 2;
    if (path_.size() < depths) path_.resize(depths);
    leaves_.clear();
    ambiguous_.clear();
  }

  std::shared_ptr<Entry> build() {
    out_ = std::make_shared<Entry>();
    const ByteTrie& all = vocab_.trie();
    if (!rests_) {
      start_at(0, 0);
      Slice slice;
      if (terminal_.loops()) slice = find_slice();
      if (slice.length == kEndless) {
        Known& k = known(slice.to);
        k.loops = true;
        k.on = slice.key;
      }
      bool pays = slice.length && slices_.pays(slice.key);
      if (terminal_.loops() && !terminal_.transient() && !(pays && holds_all(slice))) {
        region_ = slices_.regions().find(terminal_, start_);
        if (region_ && (!pays || wider(region_->characters, slice.key)) && slices_.pays(region_->characters)) {
          slice = {start_, region_->characters, region_->characters, kEndless, region_->states};
          pays = true;
        }
      }
      if (pays) {
        plan_ = slices_.plan(slice.key);
        by_slices(slice);
      } else {  // what loops is found on the way
        walk_below(all, 0);
      }
    } else {
      if (rests_->trie.nodes() > 1) {
        start_at(0, 0);
        walk_below(rests_->trie, 0);
      }
      if (!rests_->pieces.empty()) walk_pieces();
    }
    finish();
    return out_;
  }

 private:
  static constexpr int kWorthIt = 8;               // characters of a slice from which it pays
  static constexpr std::uint32_t kLongEnough = 4;  // steps of a chain from which it pays
  static constexpr std::size_t kFewSteps = 48;     // of a chain, each looked at for characters beyond ASCII
  static constexpr std::uint32_t kEndless = ~0u;

  // Characters that all do the same: after one of `first`, which leads to `to`, up to `length` - 1 of `key`. Tokens made
  // of them need no walk.
  struct Slice {
    Terminal::State to = Terminal::kDead;
    Characters first, key;
    std::uint32_t length = 0;            // 0: there is none
    std::vector<Terminal::State> after;  // where one is after characters of the slice
  };

  struct Step {
    const std::uint32_t* row;  // of the state; null where it is not kept
    Terminal::State state;
    std::uint32_t units;
    std::uint32_t chars;  // UTF-8 characters begun
    std::uint32_t node;   // of the trie that is walked
    std::uint8_t byte;
    bool accepting;
    bool exits;  // the terminal could have ended here or earlier in the token
  };
  struct Group {
    Terminal::Range range;
    std::vector<std::uint32_t> bits, ids;
  };
  struct Leaf {  // tokens of nodes [from, until) for which the terminal ended after `depth` bytes
    std::uint32_t label;
    std::uint32_t from, until, depth, base, parent;
    const ByteTrie* trie;
    bool slash;  // among the bytes that the terminal was given
  };
  using Spelled = std::pair<std::string_view, std::uint32_t>;  // and the token's id
  struct Rest {
    std::uint64_t head;  // its first eight bytes, as a number
    std::uint32_t at, size, id;
  };
  struct Siblings {  // subtrees [from, until) of equal depth
    std::uint32_t from, until;
  };
  struct Known {  // of a state, while an entry is built
    std::uint64_t build = 0;
    Terminal::State state = Terminal::kDead;
    std::uint32_t met = 0;
    bool accepting = false, exhausted = false;
    bool loops = false, has_row = false;
    const std::uint32_t* row = nullptr;
    Characters on;  // what it loops on
  };
  static constexpr std::uint32_t kOften = 32, kKnown = 128;
  struct Names {  // what a node of a trie begins
    std::uint32_t node;
    regular::NameSet::Span span;
  };
  struct Scratch {  // the thread's, from entry to entry
    std::vector<Step> path;
    std::vector<Group> groups;
    std::vector<Siblings> pending;
    std::vector<Leaf> leaves, ambiguous;
    std::vector<Spelled> spelled;
    std::array<Known, kKnown> known;
    std::uint64_t builds = 0;
    std::vector<Rest> rests;
    std::string text;  // of the rests
    std::vector<char> below;
    std::vector<Names> names;
  };
  static Scratch& scratch() {
    thread_local Scratch out;
    return out;
  }

  Slice find_slice() {
    Slice best = find_loop();
    if (best.length == 0 && !counted_) best = find_chain();
    return best;
  }

  static bool wider(const Characters& a, const Characters& b) {
    const auto size = [](const Characters& c) { return c.count() + (c.other ? 64 : 0); };
    return size(a) > size(b);
  }

  // Whether no character that may come is left out.
  bool holds_all(const Slice& slice) {
    for (int b = 0; b < 0x80; ++b) {
      const auto byte = static_cast<std::uint8_t>(b);
      if (!slice.key.has(byte) && terminal_.next(start_, byte) != Terminal::kDead && byte != '"' && byte != '\\')
        return false;
    }
    return slice.key.other || terminal_.next(start_, 0xC3) == Terminal::kDead;
  }

  // The state on which most characters loop, seen from the start: itself or one step away.
  Slice find_loop() {
    Slice best;
    int most = 0;
    for (int probe : {-1, int{'e'}, int{' '}, int{'0'}, int{'n'}}) {
      Terminal::State s = start_;
      if (probe >= 0) s = terminal_.next(start_, static_cast<std::uint8_t>(probe)) & Terminal::kStateMask;
      if (s == Terminal::kDead || s == best.to) continue;
      Characters l = steps_.between(s, s);
      if (l.count() < kWorthIt) continue;
      Characters f = s == start_ ? l : steps_.between(start_, s);
      if (f.count() * 2 + l.count() > most) {
        most = f.count() * 2 + l.count();
        best = {s, f, l, kEndless, {s}};
      }
    }
    return best;
  }

  // States of a counted repetition follow one another, by the same characters.
  Slice find_chain() {
    for (int probe : {int{'e'}, int{'0'}, int{'E'}, int{' '}}) {
      const auto byte = static_cast<std::uint8_t>(probe);
      Terminal::State at = terminal_.next(start_, byte) & Terminal::kStateMask;
      if (at == Terminal::kDead || at == start_) continue;
      Slice found{at, {}, {}, 1, {at}};
      for (int b = 0; b < 0x80; ++b) {
        if (steps_.leads(terminal_.next(start_, static_cast<std::uint8_t>(b)), at))
          found.key.set(static_cast<std::uint8_t>(b));
      }
      if (found.key.count() < kWorthIt) continue;
      while (found.length < slices_.max_chars()) {
        const Terminal::State to = terminal_.next(at, byte) & Terminal::kStateMask;
        if (to == Terminal::kDead || !all_lead(at, to, found.key)) break;
        if (ranged_ && terminal_.range(to) != terminal_.range(at)) break;  // of the tokens' labels
        at = to;
        found.after.push_back(at);
        ++found.length;
      }
      found.key.other = found.after.size() < kFewSteps && steps_.others_lead(start_, found.to);
      for (std::size_t i = 1; found.key.other && i < found.after.size(); ++i)
        found.key.other = steps_.others_lead(found.after[i - 1], found.after[i]);
      found.first = found.key;
      if (terminal_.exhausted(at)) --found.length;  // its tokens are leaves
      if (found.length >= kLongEnough) return found;
    }
    return {};
  }

  bool all_lead(Terminal::State from, Terminal::State to, const Characters& key) {
    return key.all([&](std::uint8_t b) { return steps_.leads(terminal_.next(from, b), to); });
  }

  void by_slices(const Slice& slice) {
    const Characters &first = slice.first, &loop = slice.key;
    const ByteTrie& all = vocab_.trie();
    std::vector<std::uint32_t> bits = plan_->bits;
    // The separators begin like others, which may be in the slice without them.
    const bool apart = loop.separators && !first.separators;
    auto sliced = [&](std::uint8_t b) { return first.has_lead(b) && loop.has_lead(b) && !(apart && b == 0xE2); };
    if (counted_ && counter_.room < slices_.max_chars()) {
      const auto& fits = slices_.at_most(counter_.room);
      for (std::size_t w = 0; w < bits.size(); ++w) bits[w] &= fits[w];
    }
    if (slice.length < slices_.max_chars()) {
      const auto& fits = slices_.at_most(slice.length);
      if (!loop.other) walk_longer(slice);
      for (std::size_t w = 0; w < bits.size(); ++w) {
        for (std::uint32_t longer = loop.other ? bits[w] & ~fits[w] : 0; longer; longer &= longer - 1)
          walk_token(static_cast<std::uint32_t>(w * 32) + static_cast<std::uint32_t>(std::countr_zero(longer)));
        bits[w] &= fits[w];
      }
    }
    for (const SlicePlan::Top& top : plan_->tops) {
      if (sliced(top.byte)) continue;
      // The plan's tokens below this byte do not loop from here: they are walked one by one.
      const std::uint32_t end = all.skip(top.node);
      for (auto t = all.begin(top.node); loop.has_lead(top.byte) && t != all.end(end - 1); ++t)
        clear_bit(bits.data(), *t);
      walk(all, top.node, end);
    }
    const std::bitset<256> after = after_slice(slice);
    for (const SlicePlan::Part& part : plan_->parts) {
      if (!part.any && !after[part.byte]) continue;
      const ByteTrie& rest = part.trie(vocab_);
      for (std::uint32_t n = 1; n < rest.nodes(); n = rest.skip(n)) {
        if (sliced(rest.byte(n))) walk(rest, n, rest.skip(n));
      }
    }
    if (counted_ && counter_.room == 0) return;
    Group& g = group(ranged_ ? terminal_.range(slice.to) : Terminal::Range{});
    g.bits = std::move(bits);
  }

  // Tokens of the slice's characters, ASCII ones, that are longer than the slice: where they are after so many is known,
  // and those that share these are walked together.
  void walk_longer(const Slice& slice) {
    const ByteTrie& all = vocab_.trie();
    for (std::uint32_t n = 1; n < all.nodes();) {
      const std::uint32_t depth = all.depth(n);
      const std::uint8_t byte = all.byte(n);
      bool goes_on = depth == 1 ? slice.first.has(byte) : slice.key.has(byte);
      if (goes_on && depth > slice.length) {
        goes_on = step(all, n);
      } else if (goes_on && (goes_on = depth + vocab_.below(n).deepest > slice.length)) {
        ++out_->nodes;
        const Known& state = known(slice.after[depth - 1]);
        path_[depth] = {
            nullptr, state.state, 0, depth, n, byte, state.accepting, path_[depth - 1].exits || state.accepting};
      }
      n = goes_on ? n + 1 : all.skip(n);
    }
  }

  // Bytes that may come after characters of the slice; all where that is not known, or the terminal may end there.
  std::bitset<256> after_slice(const Slice& slice) {
    const std::vector<Terminal::State>& states = slice.after;
    // Nothing is known of where rows of them lead that are longer than a chain, unless they lead nowhere.
    bool known = slice.length == kEndless || states.size() >= slices_.max_chars() ||
                 slice.key.all([&](std::uint8_t b) { return terminal_.next(states.back(), b) == Terminal::kDead; });
    std::bitset<256> out;
    for (std::size_t i = 0; known && i < states.size(); ++i) {
      known = !terminal_.accepting(states[i]);
      out |= terminal_.live(states[i]);
    }
    return known ? out : ~std::bitset<256>();
  }

  void start_at(std::uint32_t depth, std::uint32_t node) {
    base_ = depth;
    path_[depth] = {terminal_.row(start_), start_, 0, 0, node, 0, terminal_.accepting(start_), false};
  }

  void walk_below(const ByteTrie& trie, std::uint32_t node) {
    if (const auto* names = terminal_.names()) {
      regular::NameSet::Span span;
      if (names->open(start_, &span)) {
        if (!rests_ && span.depth == 0 && !names->tokens().empty()) return known_names(*names);
        return walk_names(trie, *names, node, span);
      }
    }
    descend(trie, node);
    run(trie);
  }

  void walk_pieces() {
    const ByteTrie& all = vocab_.trie();
    std::uint8_t bytes[Terminal::kFew];
    const std::uint32_t few = terminal_.few_live(start_, bytes);
    std::bitset<256> live;
    if (few == Terminal::kMany) live.set();
    for (std::uint32_t i = 0; few != Terminal::kMany && i < few; ++i) live[bytes[i]] = true;
    for (const Rests::Piece& piece : rests_->pieces) {
      if (all.depth(piece.from) == piece.depth) {
        start_at(piece.depth, piece.from);
        if (piece.until > piece.from + 1) walk_below(all, piece.from);
        continue;
      }
      start_at(piece.depth, piece.parent);
      if (few != Terminal::kMany && piece.parent != Rests::kUnknown) {  // brothers are many, and lie far apart
        for (std::uint32_t i = 0; i < few; ++i) {
          const std::uint32_t n = all.child(piece.parent, bytes[i]);
          if (piece.from <= n && n < piece.until) walk(all, n, all.skip(n));
        }
        continue;
      }
      for (std::uint32_t n = piece.from; n < piece.until; n = all.skip(n)) {
        if (live[all.byte(n)]) walk(all, n, all.skip(n));
      }
    }
  }

  // Queues the children of a node whose path is walked: those that can matter.
  void descend(const ByteTrie& trie, std::uint32_t node) {
    const Step& at = path_[trie.depth(node)];
    std::uint8_t bytes[Terminal::kFew];
    const std::uint32_t few = at.exits || at.row ? Terminal::kMany : terminal_.few_live(at.state, bytes);
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

  // One token by itself, not what is below it in the trie.
  void walk_token(std::uint32_t id) {
    const ByteTrie& all = vocab_.trie();
    std::uint32_t node = 0, depth = 0;
    bool alive = true;
    const std::string_view bytes = vocab_.bytes(id);
    for (unsigned char c : bytes) node = all.child(node, c);
    for (; alive && depth < bytes.size(); ++depth) {
      ++out_->nodes;
      const auto byte = static_cast<std::uint8_t>(bytes[depth]);
      const Step& before = path_[depth];
      const std::uint32_t next = terminal_.next(before.state, byte);
      Step& at = path_[depth + 1];
      at = {nullptr, next & Terminal::kStateMask, 0, 0, Rests::kUnknown, byte, false, before.exits};
      alive = next != Terminal::kDead;
      if (alive) at.accepting = terminal_.accepting(at.state);
      at.exits = at.exits || at.accepting;
    }
    const Step& last = path_[depth];
    if (!alive) {
      refused(all, node, node + 1, depth);
    } else if (!last.accepting || !terminal_.exhausted(last.state)) {
      group(ranged_ ? terminal_.range(last.state) : Terminal::Range{}).ids.push_back(id);
    } else {
      leaf(all, node, node + 1, last.state, depth);
      inner_exits(all, node, node + 1, depth - 1);
    }
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
    std::uint32_t next = before.row ? before.row[byte] : terminal_.next(before.state, byte);
    if (next == Terminal::kDead && !before.exits) return false;
    Step at = before;
    at.node = n;
    at.state = next & Terminal::kStateMask;
    at.row = nullptr;
    at.byte = byte;
    at.chars += (byte & 0xC0) != 0x80;
    at.accepting = false;
    if (next & Terminal::kUnit) next = ++at.units > counter_.room && counted_ ? Terminal::kDead : next;
    if ((next & Terminal::kClose) && before.units < counter_.need) next = Terminal::kDead;
    if (next == Terminal::kDead) {
      path_[depth].byte = byte;
      refused(trie, n, trie.skip(n), depth);
      return false;
    }
    Known& state = known(at.state);
    at.accepting = state.accepting;
    at.exits = at.exits || at.accepting;
    path_[depth] = at;
    if (trie.has_values(n)) {
      if (!state.accepting || !state.exhausted) {
        accept(trie, n, at.state);
      } else {
        leaf(trie, n, n + 1, at.state, depth);
        inner_exits(trie, n, n + 1, depth - 1);
      }
    }
    if (trie.skip(n) == n + 1) return false;
    if (!rests_ && &trie == &vocab_.trie() && loops(state) && covers(state.on, vocab_.below(n))) {
      loops_below(trie, n, at);
      return false;
    }
    if (!state.has_row) {
      state.row = terminal_.row(at.state);
      state.has_row = true;
    }
    path_[depth].row = state.row;
    return true;
  }

  Known& known(Terminal::State state) {
    Known& k = scratch_.known[state % kKnown];
    if (k.state == state && k.build == build_) return k;
    const bool accepting = terminal_.accepting(state);
    k = {build_, state, 0, accepting, accepting && terminal_.exhausted(state), false, false, nullptr, {}};
    if (region_ && std::binary_search(region_->states.begin(), region_->states.end(), state)) {
      k.loops = true;
      k.on = region_->characters;
    }
    return k;
  }

  // Whether it is known by which characters a state loops, or stays in its region: once it was met often enough for the
  // question to pay.
  bool loops(Known& k) {
    if (k.loops || ++k.met != kOften) return k.loops;
    if (!terminal_.loops()) return false;
    k.loops = true;
    k.on = steps_.between(k.state, k.state);
    return true;
  }

  void accept(const ByteTrie& trie, std::uint32_t node, Terminal::State state) {
    Group& g = group(ranged_ ? terminal_.range(state) : Terminal::Range{});
    g.ids.insert(g.ids.end(), trie.begin(node), trie.end(node));
  }

  // Everything below this node only loops: all of it is accepted, as far as the counter goes.
  void loops_below(const ByteTrie& trie, std::uint32_t node, const Step& at) {
    Group& g = group(ranged_ ? terminal_.range(at.state) : Terminal::Range{});
    for (const std::uint32_t* t = trie.end(node); t != trie.end(trie.skip(node) - 1); ++t) {
      if (!counted_ || at.units + (vocab_.chars(*t) - at.chars) <= counter_.room) g.ids.push_back(*t);
    }
  }

  // All names of a request: what the tokens are was found once for each name, whichever requests have it.
  void known_names(const regular::NameSet& names) {
    const ByteTrie& all = vocab_.trie();
    const auto n = static_cast<std::uint32_t>(names.texts().size());
    std::vector<std::uint32_t> path;  // nodes of `before`, byte by byte; 0 from where the trie does not have it
    std::string_view before;
    for (std::uint32_t i = 0; i < n; ++i) {
      if (i + 8 < n) __builtin_prefetch(names.tokens()[i + 8]);
      regular::NameTokens& tokens = *names.tokens()[i];
      const std::string_view text = names.texts()[i];
      std::call_once(tokens.once, [&] {
        // As far as it goes along with the one that was found before it, so does its path.
        std::size_t k = 0;
        while (k < text.size() && k < before.size() && text[k] == before[k] && path[k]) ++k;
        path.resize(text.size());
        std::uint32_t node = k ? path[k - 1] : 0;
        for (; k < text.size() && (k == 0 || node); ++k)
          path[k] = node = all.child(node, static_cast<std::uint8_t>(text[k]));
        std::fill(path.begin() + static_cast<std::ptrdiff_t>(k), path.end(), 0u);
        before = text;
        for (std::size_t d = 0; d + 1 < text.size() && path[d]; ++d)
          tokens.ids.insert(tokens.ids.end(), all.begin(path[d]), all.end(path[d]));
        tokens.end = text.empty() ? 0 : path.back();
      });
      ++out_->nodes;
      Group& g = group({});
      g.ids.insert(g.ids.end(), tokens.ids.begin(), tokens.ids.end());
      const auto depth = static_cast<std::uint32_t>(text.size());
      if (tokens.end) leaf(all, tokens.end, all.skip(tokens.end), names.state({i, i + 1, depth}), depth);
    }
  }

  // Names and tokens are both sorted: they are walked together, name by name and not byte by byte.
  void walk_names(const ByteTrie& trie, const regular::NameSet& names, std::uint32_t root,
                  const regular::NameSet::Span& from) {
    spans_.push_back({root, from});
    while (!spans_.empty()) {
      const auto [node, span] = spans_.back();
      spans_.pop_back();
      ++out_->nodes;
      const std::uint32_t depth = trie.depth(node);
      const bool whole = names.whole(span);
      if (node != root && trie.has_values(node) && (names.quoted() || !whole || span.end - span.first > 1))
        accept(trie, node, names.state(span));
      if (!names.quoted() && whole && node != root) {
        if (span.end - span.first == 1) {  // nothing goes on from here
          leaf(trie, node, trie.skip(node), names.state(span), depth);
        } else {  // one name begins another: ends and goes on, which is for the general way
          path_[depth] = {nullptr, names.state(span), 0, 0, node, trie.byte(node), true, true};
          for (std::uint32_t d = base_ + 1; d < depth; ++d) path_[d].accepting = path_[d].exits = false;
          descend(trie, node);
          run(trie);
        }
        continue;
      }
      if (names.quoted()) {
        const std::uint32_t close = whole ? trie.child(node, '"') : 0;
        if (close) leaf(trie, close, trie.skip(close), names.closed(span), depth + 1);
        if (const std::uint32_t escape = trie.child(node, '\\')) {
          path_[depth] = {nullptr, names.state(span), 0, 0, node, 0, false, false};
          walk(trie, escape, trie.skip(escape));
        }
      }
      names.each_group(span, [&](std::uint8_t byte, const regular::NameSet::Span& below) {
        if (const std::uint32_t c = trie.child(node, byte)) spans_.push_back({c, below});
      });
    }
  }

  // The terminal does not go on into this subtree.
  void refused(const ByteTrie& trie, std::uint32_t node, std::uint32_t until, std::uint32_t depth) {
    if (depth < base_ + 2 || !path_[depth - 1].exits) return;
    if (path_[depth - 1].accepting) leaf(trie, node, until, path_[depth - 1].state, depth - 1);
    if (depth >= base_ + 3) inner_exits(trie, node, until, depth - 2);
  }

  void leaf(const ByteTrie& trie, std::uint32_t from, std::uint32_t until, Terminal::State state, std::uint32_t depth) {
    const std::uint32_t label = terminal_.labelled() ? terminal_.label(state) : 0;
    bool slash = false;
    for (std::uint32_t d = base_ + 1; d <= depth; ++d) slash = slash || path_[d].byte == '\\';
    if (!leaves_.empty()) {  // siblings, one after the other
      Leaf& last = leaves_.back();
      if (last.until == from && last.label == label && last.depth == depth && last.base == base_ &&
          last.slash == slash && last.trie == &trie && trie.depth(last.from) == trie.depth(from) &&
          last.from + 1 != last.until) {
        last.until = until;
        return;
      }
    }
    const std::uint32_t parent = trie.depth(from) == depth + 1 ? path_[depth].node : Rests::kUnknown;
    leaves_.push_back({label, from, until, depth, base_, parent, &trie, slash});
  }

  // Tokens of [node, until) that passed an accepting state at depth 1..deepest, from which the terminal went on.
  void inner_exits(const ByteTrie& trie, std::uint32_t node, std::uint32_t until, std::uint32_t deepest) {
    if (deepest <= base_ || !path_[deepest].exits) return;
    for (std::uint32_t k = base_ + 1; k <= deepest; ++k) {
      if (path_[k].accepting) out_->inner[path_[k + 1].byte] = true;
    }
    ambiguous_.push_back({0, node, until, base_, base_, Rests::kUnknown, &trie, false});
  }

  Group& new_group(const Terminal::Range& range) {
    if (used_ == groups_.size()) groups_.emplace_back();
    Group& g = groups_[used_++];
    g.range = range;
    g.bits.clear();
    g.ids.clear();
    return g;
  }

  Group& group(const Terminal::Range& range) {
    if (!ranged_) return used_ ? groups_[0] : new_group(range);
    const auto same = [&](const Group& g) { return g.range == range; };
    if (used_ && same(groups_[used_ - 1])) return groups_[used_ - 1];
    if (used_ < 16) {
      for (std::uint32_t i = 0; i < used_; ++i) {
        if (same(groups_[i])) return groups_[i];
      }
      return new_group(range);
    }
    const auto key = [](const Terminal::Range& r) {
      return std::uint64_t{r.lo} << 32 | std::uint64_t{r.hi} << 1 | (r.others ? 1u : 0u);
    };
    for (; listed_ < used_; ++listed_) by_range_.emplace(key(groups_[listed_].range), listed_);
    const auto [it, fresh] = by_range_.try_emplace(key(range), used_);
    if (fresh) {
      new_group(range);
      ++listed_;
    }
    return groups_[it->second];
  }

  void finish() {
    std::size_t few = 0;
    const std::span<Group> groups(groups_.data(), used_);
    for (Group& g : groups) {
      if (g.bits.empty() && g.ids.size() > vocab_.words() / 4) g.bits.assign(vocab_.words(), 0);
      if (g.bits.empty()) few += g.ids.size();
    }
    out_->accepted.reserve(used_);
    out_->ids.reserve(few);
    for (Group& g : groups) {
      if (g.bits.empty() && g.ids.empty()) continue;
      const auto from = static_cast<std::uint32_t>(out_->ids.size());
      if (!g.bits.empty()) {
        for (std::uint32_t id : g.ids) set_bit(g.bits.data(), id);
      } else {
        out_->ids.insert(out_->ids.end(), g.ids.begin(), g.ids.end());
      }
      out_->accepted.push_back({g.range, from, static_cast<std::uint32_t>(out_->ids.size()), std::move(g.bits)});
    }
    if (!std::is_sorted(leaves_.begin(), leaves_.end(), by_label)) {
      std::stable_sort(leaves_.begin(), leaves_.end(), by_label);
    }
    for (std::size_t i = 0; i < leaves_.size();) {
      std::size_t end = i;
      while (end < leaves_.size() && leaves_[end].label == leaves_[i].label) ++end;
      const std::span<Leaf> part(leaves_.data() + i, end - i);
      Entry::Leaves& made = out_->leaves.emplace_back();
      made.label = leaves_[i].label;
      if (const std::size_t stay = keepable(part, [](const Leaf& l) { return l.trie->depth(l.from) <= l.depth + 1; })) {
        if (stay < part.size()) merge(part.subspan(stay), &made.own);
        keep(part.first(stay), &made.own.rests);
      } else if (part.size() < kWorthSharing) {
        merge(part, &made.own);
      } else {
        std::vector<std::uint32_t> exactly = describe(part);
        made.shared = shared_.find(exactly);
        if (!made.shared) {
          Entry::Ends ends;
          merge(part, &ends);
          made.shared = shared_.add(std::move(exactly), std::move(ends));
        }
      }
      i = end;
    }
    if (ambiguous_.empty()) return;
    const std::size_t stay = rests_ ? 0 : keepable(ambiguous_, [](const Leaf&) { return true; });
    if (stay < ambiguous_.size()) {
      spell(std::span(ambiguous_).subspan(stay));
      merge_whole(&out_->ambiguous);
    }
    if (stay) keep_tokens(std::span(ambiguous_).first(stay), &out_->ambiguous);
  }

  static bool by_label(const Leaf& a, const Leaf& b) { return a.label < b.label; }

  static constexpr std::size_t kWorthSharing = 16;  // leaves

  // All that merge() looks at.
  std::vector<std::uint32_t> describe(std::span<const Leaf> part) const {
    std::vector<std::uint32_t> out;
    out.reserve(part.size() * 4 + 4);
    const auto flag = [](bool value, int at) { return static_cast<std::uint32_t>(value) << at; };
    out.push_back(flag(key_, 0) | flag(start_ == Terminal::kStart, 1) | flag(rests_, 2));
    const ByteTrie* trie = nullptr;
    for (const Leaf& l : part) {
      if (l.trie != trie) {
        trie = l.trie;
        out.insert(out.end(),
                   {~0u, static_cast<std::uint32_t>(trie->id()), static_cast<std::uint32_t>(trie->id() >> 32)});
      }
      out.insert(out.end(), {l.from, l.until, l.depth << 1 | flag(l.slash, 0), l.base});
    }
    return out;
  }

  void merge(std::span<const Leaf> part, Entry::Ends* made) {
    merge_rests(part, made);
    if (key_) look_at_spelling(part, made);
  }

  // What is asked of keys alone.
  void look_at_spelling(std::span<const Leaf> part, Entry::Ends* made) {
    spelled_.clear();
    // The opening quote is part of the key where the terminal begins here.
    const std::uint32_t open = start_ == Terminal::kStart ? 1 : 0;
    for (const Leaf& l : part) {
      if ((!rests_ && !l.slash) || l.depth - l.base < open + 1) continue;
      for (std::uint32_t n = l.from; n < l.until; ++n) {
        const std::uint32_t given = l.trie->depth(n) - l.base, size = l.depth - l.base;
        for (const std::uint32_t* t = l.trie->begin(n); t != l.trie->end(n); ++t) {
          const std::string_view bytes = vocab_.bytes(*t), whole = bytes.substr(bytes.size() - given);
          if (holds_key(whole.substr(size))) {
            if (rests_) spelled_.emplace_back(whole, *t);
            continue;
          }
          const auto from = static_cast<std::uint32_t>(bytes.size() - given);
          made->keys.push_back({*t, from, size, regular::json_unescape(whole.substr(open, size - open - 1))});
        }
      }
    }
    std::sort(made->keys.begin(), made->keys.end(), [](const auto& a, const auto& b) { return a.says < b.says; });
    if (!spelled_.empty()) merge_whole(&made->whole);
  }

  static constexpr std::size_t kMany = 1024;  // tokens that are left where they are

  // How many leaves stay where they are in the vocabulary's trie, of those that can; they are put first. None, unless there
  // is nothing to merge, or too much. What is asked of the spelling of keys is asked of a trie.
  template <class Can>
  std::size_t keepable(std::span<Leaf> part, Can can) const {
    if (key_ || (terminal_.labelled() && !terminal_.names())) return 0;
    const auto stays = [&](const Leaf& l) { return l.trie == &vocab_.trie() && can(l); };
    const auto rest = std::stable_partition(part.begin(), part.end(), stays);
    std::size_t tokens = 0;
    for (auto l = part.begin(); l != rest; ++l)
      tokens += static_cast<std::size_t>(l->trie->end(l->until - 1) - l->trie->begin(l->from));
    const bool alone = terminal_.names() && part.size() == 1;
    return alone || tokens > kMany ? static_cast<std::size_t>(rest - part.begin()) : 0;
  }

  void keep(std::span<const Leaf> part, Rests* out) const {
    const Leaf& first = part.front();
    if (part.size() == 1 && first.depth == first.trie->depth(first.from) &&
        first.until == first.trie->skip(first.from)) {
      *out = Rests::below(*first.trie, first.from);
      return;
    }
    out->pieces.reserve(part.size());
    for (const Leaf& l : part) out->pieces.push_back({l.from, l.until, l.depth, l.parent});
    out->id = next_id();
  }

  // Whole tokens, in the vocabulary's order.
  void keep_tokens(std::span<Leaf> part, Rests* out) const {
    std::sort(part.begin(), part.end(), [](const Leaf& a, const Leaf& b) { return a.from < b.from; });
    for (const Leaf& l : part) out->pieces.push_back({l.from, l.until, 0, Rests::kUnknown});
    out->id = next_id();
  }

  void spell(std::span<const Leaf> part) {
    spelled_.clear();
    for (const Leaf& l : part) {
      for (std::uint32_t n = l.from; n < l.until; ++n) {
        const std::uint32_t size = l.trie->depth(n) - l.base;
        for (const std::uint32_t* t = l.trie->begin(n); t != l.trie->end(n); ++t) {
          const std::string_view bytes = vocab_.bytes(*t);
          spelled_.emplace_back(bytes.substr(bytes.size() - size), *t);
        }
      }
    }
  }

  void merge_whole(Rests* out) {
    if (!std::is_sorted(spelled_.begin(), spelled_.end())) std::sort(spelled_.begin(), spelled_.end());
    out->id = next_id();
    out->trie = ByteTrie(spelled_);
  }

  static constexpr std::string_view kBlanks = " \n\r\t";

  // Where the string ends that stands after a comma: after its closing quote. npos where no string does, or not wholly.
  static std::size_t string_after(std::string_view rest, std::size_t comma) {
    const std::size_t open = rest.find_first_not_of(kBlanks, comma + 1);
    if (open == rest.npos || rest[open] != '"') return rest.npos;
    std::size_t close = open + 1;
    while (close < rest.size() && rest[close] != '"') close += rest[close] == '\\' ? 2 : 1;
    return close < rest.size() ? close + 1 : rest.npos;
  }

  // Whether a rest may go on to another key of the same object, or item of the same array, and end it: a comma, blanks, a
  // string.
  static bool holds_key(std::string_view rest) {
    for (std::size_t comma = rest.find(','); comma != rest.npos; comma = rest.find(',', comma + 1)) {
      if (string_after(rest, comma) != rest.npos) return true;
    }
    return false;
  }

  // Whether what it goes on to first is a string that no colon follows: no key.
  static bool holds_item(std::string_view rest) {
    const std::size_t comma = rest.find_first_not_of(kBlanks);
    if (comma == rest.npos || rest[comma] != ',') return false;
    const std::size_t end = string_after(rest, comma);
    const std::size_t after = end == rest.npos ? rest.npos : rest.find_first_not_of(kBlanks, end);
    return after != rest.npos && rest[after] != ':';
  }

  // Rests are read off the trie, which lies in order, and not off the tokens, which lie anywhere.
  void merge_rests(std::span<const Leaf> part, Entry::Ends* made) {
    std::vector<Rest>& rests = scratch_.rests;
    std::string& text = scratch_.text;
    std::vector<char>& below = scratch_.below;
    rests.clear();
    text.clear();
    below.resize(path_.size());
    for (const Leaf& l : part) {
      const std::uint32_t depth = l.trie->depth(l.from);
      for (std::uint32_t d = l.depth + 1; d < depth; ++d)  // a token by itself, of the vocabulary's trie
        below[d - l.depth - 1] = vocab_.bytes(*l.trie->begin(l.from))[d - 1];
      for (std::uint32_t n = l.from; n < l.until; ++n) {
        const std::uint32_t size = l.trie->depth(n) - l.depth;
        if (size) below[size - 1] = static_cast<char>(l.trie->byte(n));
        if (!l.trie->has_values(n)) continue;
        const std::string_view rest(below.data(), size);
        if (key_ && holds_key(rest)) {
          std::vector<std::uint32_t>& apart = holds_item(rest) ? made->apart_items : made->apart;
          if (!rests_) apart.insert(apart.end(), l.trie->begin(n), l.trie->end(n));
          continue;
        }
        const auto head = head_of<std::uint64_t>(rest);
        for (const std::uint32_t* t = l.trie->begin(n); t != l.trie->end(n); ++t)
          rests.push_back({head, static_cast<std::uint32_t>(text.size()), size, *t});
        text.append(rest);
      }
    }
    const auto spelled = [&](const Rest& r) { return std::string_view(text).substr(r.at, r.size); };
    const auto order = [&](const Rest& a, const Rest& b) {
      if (a.head != b.head) return a.head < b.head;
      const int order = spelled(a).compare(spelled(b));
      return order != 0 ? order < 0 : a.id < b.id;
    };
    if (!std::is_sorted(rests.begin(), rests.end(), order)) std::sort(rests.begin(), rests.end(), order);
    spelled_.clear();
    for (const Rest& r : rests) spelled_.emplace_back(spelled(r), r.id);
    made->rests.id = next_id();
    made->rests.trie = ByteTrie(spelled_);
  }

  static std::uint64_t next_id() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }

  const Vocabulary& vocab_;
  const Rests* const rests_;
  Slices& slices_;
  SharedEnds& shared_;
  Terminal& terminal_;
  const Terminal::State start_;
  const CounterClass counter_;
  const bool counted_;
  const bool ranged_;  // accepted tokens are told apart by the labels that are left
  const bool key_;     // may be an object's key, whose spelling matters
  CharacterSteps steps_{terminal_};
  std::shared_ptr<const Region> region_;
  std::shared_ptr<const SlicePlan> plan_;  // leaves point into its trie
  const std::uint64_t build_ = ++scratch().builds;
  std::shared_ptr<Entry> out_;
  Scratch& scratch_ = scratch();
  std::vector<Step>& path_ = scratch_.path;
  std::vector<Group>& groups_ = scratch_.groups;               // the first `used_`
  std::unordered_map<std::uint64_t, std::uint32_t> by_range_;  // where there are many
  std::uint32_t used_ = 0, listed_ = 0;
  std::vector<Siblings>& pending_ = scratch_.pending;
  std::vector<Leaf>& leaves_ = scratch_.leaves;
  std::vector<Leaf>& ambiguous_ = scratch_.ambiguous;
  std::vector<Spelled>& spelled_ = scratch_.spelled;
  std::vector<Names>& spans_ = scratch_.names;
  std::uint32_t base_ = 0;  // where in the trie the terminal begins
};

}  // namespace

std::size_t Entry::memory() const {
  std::size_t total = sizeof *this + ambiguous.memory() + ids.capacity() * 4;
  for (const auto& a : accepted) total += sizeof a + a.bits.capacity() * 4;
  for (const auto& l : leaves) total += sizeof l + l.own.memory();
  return total;
}

bool Entry::needs_others() const {
  return inner.any() || std::any_of(leaves.begin(), leaves.end(), [](const Leaves& l) {
           return l->rests.trie.nodes() > 1 || !l->rests.pieces.empty() || l->whole.trie.nodes() > 0 ||
                  !l->apart.empty() || !l->apart_items.empty();
         });
}

std::size_t Entry::Ends::memory() const {
  return rests.memory() + whole.memory() + keys.capacity() * (sizeof(Key) + 8) + apart.capacity() * 4 +
         apart_items.capacity() * 4;
}

std::shared_ptr<const Entry::Ends> SharedEnds::find(const std::vector<std::uint32_t>& leaves) const {
  const std::size_t hash = hash_numbers(leaves);
  std::lock_guard lock(mutex_);
  const auto [from, until] = known_.equal_range(hash);
  for (auto it = from; it != until; ++it) {
    if (it->second.leaves == leaves) {
      if (auto ends = it->second.ends.lock()) return ends;
    }
  }
  return nullptr;
}

std::shared_ptr<const Entry::Ends> SharedEnds::add(std::vector<std::uint32_t> leaves, Entry::Ends&& made) {
  const std::size_t hash = hash_numbers(leaves);
  const std::size_t size = sizeof made + made.memory() + leaves.capacity() * 4 + 128;
  std::lock_guard lock(mutex_);
  const auto [from, until] = known_.equal_range(hash);
  for (auto it = from; it != until; ++it) {
    if (it->second.leaves != leaves) continue;
    if (auto ends = it->second.ends.lock()) return ends;
  }
  if (known_.size() >= sweep_at_) {
    std::erase_if(known_, [](const auto& k) { return k.second.ends.expired(); });
    sweep_at_ = std::max<std::size_t>(64, known_.size() * 2);
  }
  bytes_->fetch_add(size, std::memory_order_relaxed);
  std::shared_ptr<const Entry::Ends> out(new Entry::Ends(std::move(made)),
                                         [bytes = bytes_, size](const Entry::Ends* e) {
                                           bytes->fetch_sub(size, std::memory_order_relaxed);
                                           delete e;
                                         });
  known_.emplace(hash, Known{std::move(leaves), out});
  return out;
}

std::shared_ptr<const Entry> build_entry(const Vocabulary& vocab, const Rests* rests, Slices& slices, SharedEnds& ends,
                                         Terminal& terminal, Terminal::State state, CounterClass counter) {
  auto out = EntryBuilder(vocab, rests, slices, ends, terminal, state, counter).build();
  out->alone = !out->needs_others();
  return out;
}

}  // namespace ag
