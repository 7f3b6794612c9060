#include "regular/text.h"

#include <algorithm>
#include <queue>

#include "regular/codepoints.h"

namespace ag::regular {

TextTerminal::TextTerminal(const TextLanguage& language) : patterns_(language.patterns), longest_(language.longest) {
  for (std::size_t i = 0; i < patterns_.size(); ++i) insert(patterns_[i], true, static_cast<std::uint32_t>(i));
  for (const std::string& text : language.excludes) insert(text, false, 0);
  link();
  check(language);
  require_neutral(language);
  intern({});
  charge(nodes_.size() * sizeof(Node));
}

void TextTerminal::insert(const std::string& text, bool pattern, std::uint32_t index) {
  const char* what = pattern ? "a trigger" : "an excluded text";
  if (text.empty()) throw ValueError(std::string(what) + " is empty");
  require_utf8(text, what);
  std::uint32_t node = 0;
  for (const char c : text) {
    const auto byte = static_cast<std::uint8_t>(c);
    std::uint32_t to = child(node, byte);
    if (to == 0) {
      to = static_cast<std::uint32_t>(nodes_.size());
      nodes_.emplace_back().depth = nodes_[node].depth + 1;
      auto& children = nodes_[node].children;
      children.insert(std::upper_bound(children.begin(), children.end(), std::pair{byte, to}), {byte, to});
    }
    node = to;
    if (pattern) nodes_[node].towards = true;
  }
  if (!pattern) {
    nodes_[node].excluded = true;
  } else if (nodes_[node].pattern != kNone) {
    throw ValueError("the trigger '" + text + "' is given twice");
  } else {
    nodes_[node].pattern = index;
  }
}

void TextTerminal::link() {
  std::vector<std::uint32_t> order{0};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint32_t node = order[i];
    Node& here = nodes_[node];
    here.output = here.pattern != kNone ? here.pattern : nodes_[here.fail].output;
    here.excluded = here.excluded || nodes_[here.fail].excluded;
    for (const auto& [byte, to] : here.children) {
      nodes_[to].fail = node == 0 ? 0 : delta(here.fail, byte);
      order.push_back(to);
    }
  }
}

void TextTerminal::check(const TextLanguage& language) const {
  for (const std::string& text : patterns_) {
    std::uint32_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      node = child(node, static_cast<std::uint8_t>(text[i]));
      const Node& here = nodes_[node];
      if (here.excluded)
        throw GrammarError("the trigger '" + text + "' contains an excluded text", "", "excludes",
                           "Remove the excluded text, or the trigger.");
      const std::uint32_t inner = i + 1 < text.size() ? here.output : nodes_[here.fail].output;
      if (inner != kNone && !language.longest)
        throw GrammarError("the trigger '" + text + "' contains the trigger '" + patterns_[inner] + "'", "", "triggers",
                           "Remove one of them, or set longest=True.");
    }
  }
}

// A character that occurs in no pattern and no exclude brings any text back to the root; with one, every pattern can be
// reached from every text, which is what range() says.
void TextTerminal::require_neutral(const TextLanguage& language) const {
  std::bitset<256> used;
  for (const std::vector<std::string>* list : {&language.patterns, &language.excludes})
    for (const std::string& text : *list)
      for (const char c : text) used[static_cast<std::uint8_t>(c)] = true;
  for (std::size_t b = 0; b < 0xf5; ++b)
    if (!used[b] && (b < 0x80 || b >= 0xc2)) return;
  throw GrammarError("triggers and excluded texts use every character there is", "", "triggers", "Use fewer of them.");
}

std::uint32_t TextTerminal::child(std::uint32_t node, std::uint8_t byte) const {
  const auto& children = nodes_[node].children;
  const auto it = std::lower_bound(children.begin(), children.end(), std::pair{byte, std::uint32_t{0}});
  return it != children.end() && it->first == byte ? it->second : 0;
}

std::uint32_t TextTerminal::delta(std::uint32_t node, std::uint8_t byte) const {
  for (;;) {
    if (const std::uint32_t to = child(node, byte)) return to;
    if (node == 0) return 0;
    node = nodes_[node].fail;
  }
}

TextTerminal::Utf8 TextTerminal::follow(Utf8 at, std::uint8_t b) {
  const auto within = [&](int lo, int hi, Utf8 to) { return b >= lo && b <= hi ? to : Utf8::kBad; };
  switch (at) {
    case Utf8::kWhole:
      if (b < 0x80) return Utf8::kWhole;
      if (b < 0xc2 || b > 0xf4) return Utf8::kBad;
      if (b < 0xe0) return Utf8::kOne;
      if (b < 0xf0) return b == 0xe0 ? Utf8::kE0 : b == 0xed ? Utf8::kEd : Utf8::kTwo;
      return b == 0xf0 ? Utf8::kF0 : b == 0xf4 ? Utf8::kF4 : Utf8::kThree;
    case Utf8::kOne:
      return within(0x80, 0xbf, Utf8::kWhole);
    case Utf8::kTwo:
      return within(0x80, 0xbf, Utf8::kOne);
    case Utf8::kThree:
      return within(0x80, 0xbf, Utf8::kTwo);
    case Utf8::kE0:
      return within(0xa0, 0xbf, Utf8::kOne);
    case Utf8::kEd:
      return within(0x80, 0x9f, Utf8::kOne);
    case Utf8::kF0:
      return within(0x90, 0xbf, Utf8::kTwo);
    case Utf8::kF4:
      return within(0x80, 0x8f, Utf8::kTwo);
    default:
      return Utf8::kBad;
  }
}

// Whether a character begun in text can be finished without spelling an exclude.
bool TextTerminal::finishable(std::uint32_t node, Utf8 utf8) const {
  if (utf8 == Utf8::kWhole) return true;
  for (int b = 0x80; b <= 0xbf; ++b) {
    const auto byte = static_cast<std::uint8_t>(b);
    const Utf8 next = follow(utf8, byte);
    if (next == Utf8::kBad) continue;
    const std::uint32_t to = delta(node, byte);
    if (nodes_[to].excluded) continue;
    if (nodes_[to].output != kNone || finishable(to, next)) return true;
  }
  return false;
}

// Whether a pattern that covers the last `since` bytes and at least one more can still be completed.
bool TextTerminal::grows(std::uint32_t node, std::uint32_t since) const {
  for (std::uint32_t at = node; nodes_[at].depth >= since; at = nodes_[at].fail) {
    for (const auto& [byte, below] : nodes_[at].children) {
      if (!nodes_[below].towards) continue;
      const std::uint32_t to = delta(node, byte);
      if (nodes_[to].excluded || nodes_[to].depth <= since) continue;
      const std::uint32_t out = nodes_[to].output;
      if ((out != kNone && patterns_[out].size() > since) || grows(to, since + 1)) return true;
    }
    if (at == 0) break;
  }
  return false;
}

Terminal::State TextTerminal::intern(const Place& p) {
  const std::uint64_t key = std::uint64_t{p.node} | std::uint64_t{p.since} << 28 |
                            static_cast<std::uint64_t>(p.utf8) << 56 | std::uint64_t{p.done} << 61;
  const std::uint64_t full = p.done && p.since == 0 ? key ^ std::uint64_t{p.label} << 1 : key;
  const auto [it, fresh] = index_.try_emplace(full, 0);
  if (!fresh) return it->second;
  const bool text = !p.done && p.since == 0 && p.utf8 == Utf8::kWhole;
  it->second = add_state(text || p.done, p.done ? p.label : text ? TerminalPool::kText : 0);
  places_.push_back(p);
  charge(sizeof(Place) + 48);
  return it->second;
}

Terminal::State TextTerminal::after_pattern(std::uint32_t node, std::uint32_t label, Utf8 utf8) {
  const auto since = static_cast<std::uint32_t>(patterns_[label].size());
  if (longest_ && grows(node, since)) return intern({node, since, utf8, true, label});
  return intern({0, 0, Utf8::kWhole, true, label});
}

Terminal::State TextTerminal::after(const Place& at, std::uint8_t byte) {
  if (at.done && at.since == 0) return kDead;
  const Utf8 utf8 = follow(at.utf8, byte);
  if (utf8 == Utf8::kBad) return kDead;
  const std::uint32_t node = delta(at.node, byte);
  const Node& here = nodes_[node];
  if (here.excluded) return kDead;
  if (at.since > 0) {
    if (here.depth <= at.since) return kDead;
    if (here.output != kNone && patterns_[here.output].size() > at.since) return after_pattern(node, here.output, utf8);
    return grows(node, at.since + 1) ? intern({node, at.since + 1, utf8, false, 0}) : kDead;
  }
  if (here.output != kNone) return after_pattern(node, here.output, utf8);
  return finishable(node, utf8) ? intern({node, 0, utf8, false, 0}) : kDead;
}

void TextTerminal::fill(State state, Row& row) {
  const Place at = places_[state];
  for (std::uint32_t b = 0; b < 256; ++b) row[b] = after(at, static_cast<std::uint8_t>(b));
}

std::uint32_t TextTerminal::compute_rest(State state) {
  const Place at = places_[state];
  if (at.done) return 0;
  if (at.since == 0) {
    constexpr std::uint32_t kLeft[] = {0, 1, 2, 3, 2, 2, 3, 3};
    return kLeft[static_cast<std::size_t>(at.utf8)];
  }
  // Towards a longer pattern: a breadth-first search over nodes, within the longest pattern's length.
  std::vector<std::uint32_t> level{at.node};
  for (std::uint32_t since = at.since, cost = 1; !level.empty(); ++since, ++cost) {
    std::vector<std::uint32_t> next;
    for (const std::uint32_t node : level)
      for (std::uint32_t b = 0; b < 256; ++b) {
        const std::uint32_t to = delta(node, static_cast<std::uint8_t>(b));
        if (nodes_[to].excluded || nodes_[to].depth <= since) continue;
        if (nodes_[to].output != kNone && patterns_[nodes_[to].output].size() > since) return cost;
        next.push_back(to);
      }
    level = std::move(next);
  }
  return kNoRest;
}

// The patterns that may still end a text inside a longer pattern are those its nodes lead to.
Terminal::Range TextTerminal::compute_range(State state) {
  const Place at = places_[state];
  if (!at.done && at.since == 0) return {0, static_cast<std::uint32_t>(patterns_.size()), true};
  if (at.since == 0) return {at.label, at.label + 1, false};
  Range out{kNone, 0, false};
  const auto meet = [&](std::uint32_t label) {
    out.lo = std::min(out.lo, label);
    out.hi = std::max(out.hi, label + 1);
  };
  if (at.done) meet(at.label);
  std::vector<std::uint32_t> level{at.node};
  for (std::uint32_t since = at.since; !level.empty(); ++since) {
    std::vector<std::uint32_t> next;
    for (const std::uint32_t node : level)
      for (std::uint32_t b = 0; b < 256; ++b) {
        const std::uint32_t to = delta(node, static_cast<std::uint8_t>(b));
        if (nodes_[to].excluded || nodes_[to].depth <= since) continue;
        const std::uint32_t found = nodes_[to].output;
        if (found != kNone && patterns_[found].size() > since) meet(found);
        next.push_back(to);
      }
    level = std::move(next);
  }
  return out;
}

bool TextTerminal::shortest_label(State from, std::uint32_t wanted, std::string* out) {
  std::unordered_map<State, std::pair<State, std::uint8_t>> came{{from, {kDead, 0}}};
  std::queue<State> queue;
  for (queue.push(from); !queue.empty(); queue.pop()) {
    State state = queue.front();
    if (accepting(state) && label(state) == wanted) {
      out->clear();
      for (; state != from; state = came[state].first) out->push_back(static_cast<char>(came[state].second));
      std::reverse(out->begin(), out->end());
      return true;
    }
    for (std::uint32_t b = 0; b < 256; ++b) {
      const State to = step(state, static_cast<std::uint8_t>(b));
      if (to != kDead && came.try_emplace(to, state, static_cast<std::uint8_t>(b)).second) queue.push(to);
    }
  }
  return false;
}

}  // namespace ag::regular
