#include "regular/coded.h"

#include <algorithm>

namespace ag::regular {

namespace {

constexpr Cp kSupplementary = 0x10000;

bool high_surrogates(Cp lo, Cp hi) { return lo <= kSurrogateLo && hi >= kSurrogateLo; }

}  // namespace

std::size_t CodedTerminal::PlaceHash::operator()(const Place& p) const {
  std::uint64_t h = static_cast<std::uint64_t>(p.mode) | std::uint64_t{p.left} << 8 | std::uint64_t{p.resolved} << 16 |
                    std::uint64_t{p.q} << 17;
  h ^= (std::uint64_t{p.lo} << 21 ^ p.hi) * 0x9e3779b97f4a7c15u;
  h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9u;
  return static_cast<std::size_t>(h ^ h >> 32);
}

CodedTerminal::CodedTerminal(CpAutomatonPtr automaton, Options options)
    : automaton_(std::move(automaton)), options_(options), counts_(!options.labelled && automaton_->counts()) {
  charge(sizeof(*this) - sizeof(TableTerminal));
  places_.push_back({});
  const std::uint32_t q = automaton_->start();
  intern(options_.quoted ? Place{Mode::kOpen, 0, false, q, 0, 0} : Place{Mode::kPlain, 0, false, q, 0, 0});
}

std::uint32_t CodedTerminal::intern(const Place& place) {
  const auto [it, fresh] = index_.try_emplace(place, 0);
  if (!fresh) return it->second;
  const bool ends =
      place.mode == Mode::kDone || (!options_.quoted && place.mode == Mode::kPlain && automaton_->accepting(place.q));
  const std::uint32_t label = !ends ? 0 : place.mode == Mode::kDone ? place.q : automaton_->label(place.q);
  it->second = add_state(ends, label);
  places_.push_back(place);
  charge(2 * sizeof(Place) + 32);
  return it->second;
}

std::uint32_t CodedTerminal::plain(std::uint32_t q) {
  return q == CpAutomaton::kDead ? kDead : intern({Mode::kPlain, 0, false, q, 0, 0});
}

Terminal::State CodedTerminal::alike(State state, Runs& runs) {
  if (!counts_) return state;
  const std::lock_guard lock(mutex_);
  Place place = places_[state];
  if (place.mode != Mode::kOpen && place.mode != Mode::kPlain && !place.resolved) return state;
  place.q = automaton_->alike(place.q, runs, options_.quoted);
  const State out = intern(place);
  if (const std::size_t held = automaton_->bytes(); held > charged_) {
    charge(held - charged_);
    charged_ = held;
  }
  return out;
}

Terminal::State CodedTerminal::after_character(State state) {
  const std::lock_guard lock(mutex_);
  const Place& place = places_[state];
  return place.mode == Mode::kUtf8 && place.resolved ? plain(place.q) : kDead;
}

template <class F>
void CodedTerminal::each_target(const Place& at, F f) {
  if (at.resolved) return f(at.q, std::uint32_t{at.left});
  const auto over = [&](Cp lo, Cp hi, std::uint32_t left) {
    for (const CpAutomaton::Piece& piece : automaton_->row(at.q)) {
      if (piece.lo > hi) break;
      if (piece.hi >= lo) f(piece.to, left);
    }
  };
  over(at.lo, at.hi, at.left);
  if (at.mode == Mode::kHex && high_surrogates(at.lo, at.hi)) over(kSupplementary, kMaxCp, at.left + 6u);
}

// Decides whether the character can be finished, and whether its target is settled already.
std::uint32_t CodedTerminal::pending(Place place) {
  const CpAutomaton::Pieces& row = automaton_->row(place.q);
  std::uint32_t target = CpAutomaton::kDead;
  std::uint64_t covered = 0;
  bool uniform = true;
  const auto over = [&](Cp lo, Cp hi) {
    auto it = std::lower_bound(row.begin(), row.end(), lo, [](const CpAutomaton::Piece& p, Cp c) { return p.hi < c; });
    for (; it != row.end() && it->lo <= hi; ++it) {
      if (target != CpAutomaton::kDead && it->to != target) uniform = false;
      target = it->to;
      covered += std::min(hi, it->hi) - std::max(lo, it->lo) + 1;
    }
  };
  std::uint64_t size = place.hi - place.lo + 1;
  over(place.lo, place.hi);
  if (place.mode == Mode::kHex && high_surrogates(place.lo, place.hi)) {
    over(kSupplementary, kMaxCp);
    size += kMaxCp - kSupplementary + 1 - (kSurrogateHi - kSurrogateLo + 1);
  }
  if (target == CpAutomaton::kDead) return kDead;
  if (uniform && covered == size) {
    place.resolved = true;
    place.q = target;
    if (place.mode == Mode::kHex && !high_surrogates(place.lo, place.hi)) place.lo = place.hi = 0;
    if (place.mode == Mode::kHexHigh) place.lo = place.hi = 0;
    // A UTF-8 tail whose bytes are all free needs no interval (after E0, ED, F0 and F4 some are not).
    const Cp span = Cp{1} << 6 * place.left;
    if (place.mode == Mode::kUtf8 && place.lo % span == 0 && place.hi - place.lo + 1 == span) place.lo = place.hi = 0;
  }
  return intern(place);
}

std::uint32_t CodedTerminal::finish(const Place& at, Cp cp) {
  return plain(at.resolved ? at.q : automaton_->step(at.q, cp));
}

std::uint32_t CodedTerminal::advance(const Place& at, std::uint8_t byte) {
  Place to = at;
  --to.left;
  // Narrows to the `digit`-th of the parts of size 2^bits; a free resolved interval stays as it is.
  const auto narrow = [&](Cp digit, std::uint32_t bits, bool free) -> std::uint32_t {
    if (free) return to.left == 0 ? plain(at.q) : intern(to);
    to.lo = at.lo + (digit << bits);
    to.hi = to.lo + ((Cp{1} << bits) - 1);
    return to.left == 0 ? finish(at, to.lo) : pending(to);
  };
  if (at.mode == Mode::kUtf8) {
    if ((byte & 0xc0) != 0x80) return kDead;
    const std::uint32_t bits = 6u * to.left;
    const bool free = at.resolved && at.hi == 0;
    if (free) return narrow(0, bits, true);
    const Cp span = Cp{1} << 6 * at.left, base = at.lo & ~(span - 1);
    const Cp lo = base + (Cp{byte & 0x3fu} << bits), hi = lo + ((Cp{1} << bits) - 1);
    to.lo = std::max(lo, at.lo);
    to.hi = std::min(hi, at.hi);
    if (to.lo > to.hi) return kDead;
    if (to.left == 0) return finish(at, to.lo);
    if (!at.resolved) return pending(to);
    if (to.lo == lo && to.hi == hi) to.lo = to.hi = 0;
    return intern(to);
  }
  const int digit = hex_value(byte);
  if (at.mode == Mode::kHexHigh && at.left >= 3 && at.left <= 6) {
    if (at.left == 6) return byte == '\\' ? intern(to) : kDead;
    if (at.left == 5) return byte == 'u' ? intern(to) : kDead;
    if (at.left == 4) return digit == 0xd ? intern(to) : kDead;
    return digit >= 0xc ? narrow(static_cast<Cp>(digit) - 0xc, 8, at.resolved) : kDead;
  }
  if (digit < 0) return kDead;
  const Cp d = static_cast<Cp>(digit);
  if (at.mode == Mode::kHexHigh) {
    const std::uint32_t bits = at.left == 8 ? 14 : at.left == 7 ? 10 : at.left == 2 ? 4 : 0;
    return narrow(d, bits, at.resolved);
  }
  const bool surrogates = high_surrogates(at.lo, at.hi);
  const std::uint32_t bits = 4u * to.left;
  if (!surrogates) return narrow(d, bits, at.resolved);
  if (at.left == 4) {  // any code unit: only D leads to surrogates
    if (d == 0xd) {
      to.lo = 0xd000;
      to.hi = 0xdfff;
      return at.resolved ? intern(to) : pending(to);
    }
    if (!at.resolved) return narrow(d, bits, false);
    to.lo = to.hi = 0;
    return intern(to);
  }
  if (d < 8) {
    if (!at.resolved) return narrow(d, bits, false);
    to.lo = to.hi = 0;
    return intern(to);
  }
  if (d >= 0xc) return kDead;  // a low surrogate without its high one
  to.mode = Mode::kHexHigh;
  to.left = 8;
  to.lo = kSupplementary + ((d - 8) << 18);
  to.hi = to.lo + (1u << 18) - 1;
  if (!at.resolved) return pending(to);
  to.lo = to.hi = 0;
  return intern(to);
}

void CodedTerminal::fill_plain(std::uint32_t q, Row& row) {
  const std::uint32_t unit = options_.counted ? kUnit : 0;
  const auto put = [&](std::size_t byte, std::uint32_t to) {
    if (to != kDead) row[byte] = to | unit;
  };
  for (const CpAutomaton::Piece& piece : CpAutomaton::Pieces(automaton_->row(q))) {
    if (piece.lo > 0x7f) break;
    const std::uint32_t to = plain(piece.to);
    for (Cp cp = std::max<Cp>(piece.lo, options_.quoted ? 0x20 : 0); cp <= std::min<Cp>(piece.hi, 0x7f); ++cp)
      if (!options_.quoted || (cp != '"' && cp != '\\')) put(cp, to);
  }
  for (Cp lead = 0xc2; lead <= 0xf4; ++lead) {
    Place at{Mode::kUtf8, 0, false, q, 0, 0};
    at.left = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    const Cp span = Cp{1} << 6 * at.left;
    at.lo = (lead & (0x3fu >> at.left)) * span;
    at.hi = at.lo + span - 1;
    if (lead == 0xe0) at.lo = 0x800;
    if (lead == 0xed) at.hi = kSurrogateLo - 1;
    if (lead == 0xf0) at.lo = kSupplementary;
    if (lead == 0xf4) at.hi = kMaxCp;
    put(lead, pending(at));
  }
  if (!options_.quoted) return;
  if (!automaton_->row(q).empty()) put('\\', intern({Mode::kEscape, 0, false, q, 0, 0}));
  if (automaton_->accepting(q)) {
    const std::uint32_t done = intern({Mode::kDone, 0, false, automaton_->label(q), 0, 0});
    row['"'] = done | (options_.counted ? kClose : 0);
  }
}

void CodedTerminal::fill_escape(std::uint32_t q, Row& row) {
  for (const SimpleEscape& e : kSimpleEscapes)
    row[static_cast<std::uint8_t>(e.letter)] = plain(automaton_->step(q, static_cast<std::uint8_t>(e.character)));
  row['u'] = pending({Mode::kHex, 4, false, q, 0, 0xffff});
}

void CodedTerminal::fill(State state, Row& row) {
  const Place at = places_[state];
  switch (at.mode) {
    case Mode::kOpen:
      row['"'] = plain(at.q);
      break;
    case Mode::kPlain:
      fill_plain(at.q, row);
      break;
    case Mode::kEscape:
      fill_escape(at.q, row);
      break;
    case Mode::kDone:
      break;
    default:
      for (std::uint32_t b = 0; b < 256; ++b) row[b] = advance(at, static_cast<std::uint8_t>(b));
  }
  const std::size_t bytes = automaton_->bytes();
  charge(bytes - charged_);
  charged_ = bytes;
}

// Bytes to a shortest end with `label` (kAnyLabel: any).
std::uint32_t CodedTerminal::rest_to(const Place& at, std::uint32_t label) {
  const std::uint32_t close = options_.quoted ? 1 : 0;
  const auto cost = [&](std::uint32_t q) { return automaton_->min_cost(q, label, options_.quoted); };
  switch (at.mode) {
    case Mode::kDone:
      return label == CpAutomaton::kAnyLabel || label == at.q ? 0 : kNoRest;
    case Mode::kOpen:
      return add_rest(cost(at.q), 2);
    case Mode::kPlain:
      return add_rest(cost(at.q), close);
    case Mode::kEscape: {
      std::uint32_t best = kNoRest;
      for (const char c : {'"', '\\', '/', '\b', '\f', '\n', '\r', '\t'})
        if (const std::uint32_t to = automaton_->step(at.q, static_cast<std::uint8_t>(c)))
          best = std::min(best, add_rest(cost(to), 2));
      return std::min(best, add_rest(rest_to({Mode::kHex, 4, false, at.q, 0, 0xffff}, label), 1));
    }
    default: {
      std::vector<std::pair<std::uint32_t, std::uint32_t>> targets;
      each_target(at, [&](std::uint32_t q, std::uint32_t left) { targets.push_back({q, left}); });
      std::uint32_t best = kNoRest;
      for (const auto& [q, left] : targets) best = std::min(best, add_rest(cost(q), left + close));
      return best;
    }
  }
}

std::uint32_t CodedTerminal::compute_rest(State state) { return rest_to(places_[state], CpAutomaton::kAnyLabel); }

std::uint32_t CodedTerminal::counted_rest(State state, std::uint64_t need) {
  if (need == 0) return TableTerminal::min_rest(state, 0);
  const std::lock_guard lock(mutex_);
  const Place& at = places_[state];
  if (at.mode == Mode::kDone) return 0;
  // Units are counted when they begin: those still to begin follow whatever is pending, one byte each. A state that
  // accepts nothing yet (only the start can) is no obstacle: after one unit every state accepts.
  std::uint32_t before = 0;
  if (at.mode == Mode::kOpen) before = 1;
  if (at.mode == Mode::kEscape) {
    before = 5;
    for (const char c : {'"', '\\', '/', '\b', '\f', '\n', '\r', '\t'})
      if (automaton_->step(at.q, static_cast<std::uint8_t>(c))) before = 1;
    if (before == 5) {
      std::uint32_t best = kNoRest;
      each_target({Mode::kHex, 4, false, at.q, 0, 0xffff},
                  [&](std::uint32_t, std::uint32_t left) { best = std::min(best, left); });
      before = best + 1;
    }
  }
  if (at.mode == Mode::kUtf8 || at.mode == Mode::kHex || at.mode == Mode::kHexHigh) {
    before = kNoRest;
    each_target(at, [&](std::uint32_t, std::uint32_t left) { before = std::min(before, left); });
  }
  return add_rest(add_rest(need, before), 1);
}

Terminal::Range CodedTerminal::compute_range(State state) {
  const Place at = places_[state];
  const auto of_label = [&](std::uint32_t label) -> Range {
    return label >= options_.others_begin ? Range{0, 0, true} : Range{label, label + 1, false};
  };
  if (at.mode == Mode::kDone) return of_label(at.q);
  if (at.mode == Mode::kOpen || at.mode == Mode::kPlain) return automaton_->range(at.q);
  Range out{};
  const auto join = [&](std::uint32_t q) {
    const Range r = automaton_->range(q);
    out.others |= r.others;
    if (r.lo == r.hi) return;
    const bool first = out.lo == out.hi;
    out.lo = first ? r.lo : std::min(out.lo, r.lo);
    out.hi = first ? r.hi : std::max(out.hi, r.hi);
  };
  std::vector<std::uint32_t> targets;
  if (at.mode == Mode::kEscape) {
    for (const char c : {'"', '\\', '/', '\b', '\f', '\n', '\r', '\t'})
      if (const std::uint32_t to = automaton_->step(at.q, static_cast<std::uint8_t>(c))) targets.push_back(to);
    each_target({Mode::kHex, 4, false, at.q, 0, 0xffff}, [&](std::uint32_t q, std::uint32_t) { targets.push_back(q); });
  } else {
    each_target(at, [&](std::uint32_t q, std::uint32_t) { targets.push_back(q); });
  }
  for (const std::uint32_t q : targets) join(q);
  return out;
}

bool CodedTerminal::shortest_label(State state, std::uint32_t label, std::string* out) {
  const auto rest = [&](State s) {
    const std::lock_guard lock(mutex_);
    return rest_to(places_[s], label);
  };
  std::uint32_t left = rest(state);
  if (left == kNoRest) return false;
  out->clear();
  while (left > 0) {
    bool moved = false;
    for (std::uint32_t i = 0; i < 256 && !moved; ++i) {
      const auto b = static_cast<std::uint8_t>((i + '"') % 256);  // close first
      const State to = step(state, b) & kStateMask;
      if (to == kDead || rest(to) != left - 1) continue;
      out->push_back(static_cast<char>(b));
      state = to;
      --left;
      moved = true;
    }
    if (!moved) throw GrammarError("internal error: a state without its shortest completion");
  }
  return true;
}

}  // namespace ag::regular
