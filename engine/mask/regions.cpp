#include "mask/regions.h"

#include <algorithm>

namespace ag {

namespace {
constexpr int kMany = 24;                 // characters from which a region pays
constexpr std::size_t kMostStates = 128;  // of one region
}  // namespace

bool CharacterSteps::others_lead(Terminal::State from, Terminal::State to) {
  struct Span {
    std::uint8_t first, last, low, high;
    int more;
  };
  static constexpr Span kSpans[] = {{0xC2, 0xDF, 0x80, 0xBF, 1}, {0xE0, 0xE0, 0xA0, 0xBF, 2},
                                    {0xE1, 0xEC, 0x80, 0xBF, 2}, {0xED, 0xED, 0x80, 0x9F, 2},
                                    {0xEE, 0xEF, 0x80, 0xBF, 2}, {0xF0, 0xF0, 0x90, 0xBF, 3},
                                    {0xF1, 0xF3, 0x80, 0xBF, 3}, {0xF4, 0xF4, 0x80, 0x8F, 3}};
  const std::uint32_t e2 = terminal_.next(from, 0xE2);
  if (e2 == Terminal::kDead) return false;
  const Terminal::State separators =  // all that begin so, and more
      terminal_.after_character(e2 & Terminal::kStateMask) ? Terminal::kDead
                                                           : terminal_.next(e2 & Terminal::kStateMask, 0x80);
  std::vector<Terminal::State> level, after;
  for (const Span& span : kSpans) {
    for (int lead = span.first; lead <= span.last; ++lead) {
      const std::uint32_t next = terminal_.next(from, static_cast<std::uint8_t>(lead));
      if (!fits(next)) return false;
      if (const Terminal::State all = terminal_.after_character(next & Terminal::kStateMask)) {
        if (all != to) return false;
        continue;
      }
      level.assign(1, next & Terminal::kStateMask);
      for (int k = 0; k < span.more; ++k) {
        after.clear();
        for (Terminal::State s : level) {
          const bool skips = lead == 0xE2 && k == 1 && s == separators && separators_apart(e2, separators);
          for (int c = k == 0 ? span.low : 0x80; c <= (k == 0 ? span.high : 0xBF); ++c) {
            if (skips && (c == 0xA8 || c == 0xA9)) continue;
            const std::uint32_t n = terminal_.next(s, static_cast<std::uint8_t>(c));
            if (n == Terminal::kDead || (n & ~Terminal::kStateMask)) return false;
            if (std::find(after.begin(), after.end(), n) == after.end()) after.push_back(n);
            if (after.size() > 8) return false;
          }
        }
        std::swap(level, after);
      }
      if (level.size() != 1 || level[0] != to) return false;
    }
  }
  return true;
}

// Whether no other two bytes lead to where E2 80 does: what is asked of that state is asked of the separators' alone.
bool CharacterSteps::separators_apart(std::uint32_t e2, Terminal::State separators) {
  for (int c = 0x81; c <= 0xBF; ++c) {
    if (terminal_.next(e2 & Terminal::kStateMask, static_cast<std::uint8_t>(c)) == separators) return false;
  }
  return true;
}

bool CharacterSteps::separators_lead(Terminal::State from, Terminal::State to) {
  for (std::uint8_t last : {std::uint8_t{0xA8}, std::uint8_t{0xA9}}) {
    std::uint32_t at = terminal_.next(from, 0xE2);
    if (!fits(at)) return false;
    if (const Terminal::State all = terminal_.after_character(at & Terminal::kStateMask)) return all == to;
    for (std::uint8_t byte : {std::uint8_t{0x80}, last}) {
      at = terminal_.next(at & Terminal::kStateMask, byte);
      if (at == Terminal::kDead || (at & ~Terminal::kStateMask)) return false;
    }
    if (at != to) return false;
  }
  return true;
}

Characters CharacterSteps::between(Terminal::State from, Terminal::State to) {
  Characters out;
  for (int b = 0; b < 0x80; ++b) {
    if (leads(terminal_.next(from, static_cast<std::uint8_t>(b)), to)) out.set(static_cast<std::uint8_t>(b));
  }
  out.other = others_lead(from, to);
  out.separators = out.other && separators_lead(from, to);
  return out;
}

void CharacterSteps::ascii(Terminal::State from, Terminal::State (&to)[0x80]) {
  for (int b = 0; b < 0x80; ++b) {
    const std::uint32_t next = terminal_.next(from, static_cast<std::uint8_t>(b));
    to[b] = fits(next) ? next & Terminal::kStateMask : Terminal::kDead;
  }
}

Terminal::State CharacterSteps::example(Terminal::State from) {
  const std::uint32_t lead = terminal_.next(from, 0xC3);
  if (lead == Terminal::kDead) return Terminal::kDead;
  if (const Terminal::State all = terminal_.after_character(lead & Terminal::kStateMask)) return all;
  return terminal_.next(lead & Terminal::kStateMask, 0xA9) & Terminal::kStateMask;
}

// A character that leads to where much fewer may follow is none of the region's; else what may not follow is none.
std::shared_ptr<const Region> Regions::look(Terminal& terminal, Terminal::State start) {
  CharacterSteps steps(terminal);
  auto out = std::make_shared<Region>();
  Characters& key = out->characters;
  Terminal::State to[0x80];
  const auto alive = [&](Terminal::State state) {
    Characters live;
    steps.ascii(state, to);
    for (int b = 0; b < 0x80; ++b) {
      if (to[b] != Terminal::kDead) live.set(static_cast<std::uint8_t>(b));
    }
    return live;
  };
  const Terminal::Range range = terminal.labelled() ? terminal.range(start) : Terminal::Range{};
  const auto alike = [&](Terminal::State state) { return !terminal.labelled() || terminal.range(state) == range; };
  key = alive(start);
  std::vector<Terminal::State>& states = out->states;
  states.push_back(start);
  const auto joins = [&](Terminal::State state) {
    if (std::find(states.begin(), states.end(), state) != states.end()) return true;
    Characters both = alive(state);
    both.ascii[0] &= key.ascii[0];
    both.ascii[1] &= key.ascii[1];
    if (both.count() * 4 < key.count() * 3 || !alike(state)) return false;
    key = both;
    states.push_back(state);
    return true;
  };
  for (std::size_t i = 0; i < states.size(); ++i) {
    Terminal::State from[0x80];
    steps.ascii(states[i], from);
    if (const Terminal::State after = steps.example(states[i]); after != Terminal::kDead) joins(after);
    for (int b = 0; b < 0x80; ++b) {
      if (!key.has(static_cast<std::uint8_t>(b))) continue;
      if (!joins(from[b])) key.ascii[b >> 6] &= ~(std::uint64_t{1} << (b & 63));
      if (key.count() >= kMany && states.size() <= kMostStates) continue;
      key = {};  // nobody needs to look again
      std::sort(states.begin(), states.end());
      return out;
    }
  }
  std::sort(states.begin(), states.end());
  // Characters beyond ASCII: where a state does as one that was looked at, nothing is new.
  key.other = key.separators = true;
  Terminal::State like = Terminal::kDead;
  for (Terminal::State state : states) {
    bool same = like != Terminal::kDead;
    for (int lead = 0xC2; same && lead <= 0xF4; ++lead)
      same =
          terminal.next(state, static_cast<std::uint8_t>(lead)) == terminal.next(like, static_cast<std::uint8_t>(lead));
    if (same) continue;
    const Terminal::State after = steps.example(state);
    key.other = after != Terminal::kDead && std::binary_search(states.begin(), states.end(), after) &&
                steps.others_lead(state, after);
    if (!key.other) break;
    key.separators = key.separators && steps.separators_lead(state, after);
    like = state;
  }
  key.separators = key.separators && key.other;
  return out;
}

std::shared_ptr<const Region> Regions::find(Terminal& terminal, Terminal::State state) {
  const std::lock_guard lock(mutex_);
  if (known_ >= kMost) {
    of_.clear();
    known_ = 0;
  }
  auto& known = of_[terminal.table()->id()];
  for (const auto& region : known) {
    if (std::binary_search(region->states.begin(), region->states.end(), state)) {
      return region->characters.count() ? region : nullptr;
    }
  }
  ++known_;
  known.push_back(look(terminal, state));
  return known.back()->characters.count() ? known.back() : nullptr;
}

void Regions::clear() {
  const std::lock_guard lock(mutex_);
  of_.clear();
  known_ = 0;
}

}  // namespace ag
