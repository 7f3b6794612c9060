#include "regular/names.h"

#include <algorithm>

namespace ag::regular {

NameAutomaton::NameAutomaton(std::vector<std::string> names, std::vector<std::string> forbidden, CpAutomatonPtr others)
    : names_(std::move(names)), forbidden_(std::move(forbidden)), others_(std::move(others)) {
  for (const std::vector<std::string>* list : {&names_, &forbidden_})
    for (const std::string& name : *list) bytes_ += sizeof name + name.size();
  bytes_ += others_->bytes();
  places_.emplace_back();  // dead
  Place first;
  first.names = {0, static_cast<std::uint32_t>(names_.size())};
  first.forbidden = {0, static_cast<std::uint32_t>(forbidden_.size())};
  first.others = others_->start();
  start_ = intern(std::move(first));
}

std::uint32_t NameAutomaton::label_of(const Place& p) {
  if (!p.names.empty() && names_[p.names.lo].size() == p.depth) return p.names.lo;
  if (!p.forbidden.empty() && forbidden_[p.forbidden.lo].size() == p.depth) return kNone;
  if (p.others == kDead || !others_->accepting(p.others)) return kNone;
  return static_cast<std::uint32_t>(names_.size()) + others_->label(p.others);
}

CpAutomaton::State NameAutomaton::intern(Place place) {
  if (place.others == kDead) place.forbidden = {};  // nothing left for them to forbid
  if (place.names.empty() && place.others == kDead) return kDead;
  if (place.names.empty()) place.names = {};
  if (place.forbidden.empty()) place.forbidden = {};
  if (place.names.empty() && place.forbidden.empty()) place.depth = 0;
  const auto mix = [](std::uint64_t h, std::uint64_t v) { return (h ^ v) * 0x9e3779b97f4a7c15u + (h >> 31); };
  std::uint64_t key = mix(mix(place.names.lo, place.names.hi), place.depth);
  key = mix(mix(mix(key, place.forbidden.lo), place.forbidden.hi), place.others);
  std::vector<State>& bucket = index_[key];
  for (const State s : bucket) {
    const Place& p = places_[s];
    if (p.names.lo == place.names.lo && p.names.hi == place.names.hi && p.depth == place.depth &&
        p.forbidden.lo == place.forbidden.lo && p.forbidden.hi == place.forbidden.hi && p.others == place.others)
      return s;
  }
  place.label = label_of(place);
  const auto state = static_cast<State>(places_.size());
  bucket.push_back(state);
  bytes_ += sizeof(Place) + 80;
  places_.push_back(std::move(place));
  return state;
}

std::vector<NameAutomaton::Child> NameAutomaton::children(const std::vector<std::string>& names, Span span,
                                                          std::uint32_t depth) {
  std::vector<Child> out;
  std::uint32_t i = span.lo;
  if (i < span.hi && names[i].size() == depth) ++i;  // the prefix itself sorts first
  while (i < span.hi) {
    std::size_t at = depth;
    Cp cp = 0;
    decode_utf8(names[i], &at, &cp);
    const std::string_view head = std::string_view(names[i]).substr(depth, at - depth);
    std::uint32_t j = i + 1;
    while (j < span.hi && std::string_view(names[j]).substr(depth, head.size()) == head) ++j;
    out.push_back({cp, {i, j}, static_cast<std::uint32_t>(at)});
    i = j;
  }
  return out;
}

const CpAutomaton::Pieces& NameAutomaton::row(State state) {
  if (places_[state].has_row) return places_[state].row;
  const Place here = places_[state];
  const std::vector<Child> names = children(names_, here.names, here.depth);
  const std::vector<Child> forbidden = children(forbidden_, here.forbidden, here.depth);

  std::vector<Cp> cuts{0, kSurrogateLo, kSurrogateHi + 1};
  for (const std::vector<Child>* list : {&names, &forbidden})
    for (const Child& c : *list) {
      cuts.push_back(c.cp);
      cuts.push_back(c.cp + 1);
    }
  const Pieces others = here.others == kDead ? Pieces{} : others_->row(here.others);
  for (const Piece& piece : others) {
    cuts.push_back(piece.lo);
    cuts.push_back(piece.hi + 1);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());

  Pieces out;
  std::size_t n = 0, f = 0, o = 0;
  for (std::size_t i = 0; i < cuts.size() && cuts[i] <= kMaxCp; ++i) {
    const Cp lo = cuts[i], hi = i + 1 < cuts.size() ? cuts[i + 1] - 1 : kMaxCp;
    if (lo == kSurrogateLo) continue;
    Place to;
    while (n < names.size() && names[n].cp < lo) ++n;
    while (f < forbidden.size() && forbidden[f].cp < lo) ++f;
    if (n < names.size() && names[n].cp == lo) {
      to.names = names[n].span;
      to.depth = names[n].depth;
    }
    if (f < forbidden.size() && forbidden[f].cp == lo) {
      to.forbidden = forbidden[f].span;
      to.depth = forbidden[f].depth;
    }
    while (o < others.size() && others[o].hi < lo) ++o;
    if (o < others.size() && others[o].lo <= lo) to.others = others[o].to;
    append_piece(&out, lo, hi, intern(std::move(to)));
  }
  bytes_ += out.size() * sizeof(Piece);
  places_[state].row = std::move(out);
  places_[state].has_row = true;
  return places_[state].row;
}

Terminal::Range NameAutomaton::range(State state) {
  const Place& p = places_[state];
  return {p.names.lo, p.names.hi, p.others != kDead};
}

std::uint32_t NameAutomaton::min_cost(State state, std::uint32_t want, bool quoted) {
  const Place& p = places_[state];
  const auto rest = [&](std::uint32_t i) {
    std::uint32_t cost = 0;
    Cp cp = 0;
    for (std::size_t at = p.depth; at < names_[i].size();) {
      decode_utf8(names_[i], &at, &cp);
      cost += cost_of(cp, quoted);
    }
    return cost;
  };
  if (want < names_.size()) return want >= p.names.lo && want < p.names.hi ? rest(want) : kNoRest;
  if (p.others != kDead) return search(state, want, quoted);
  std::uint32_t best = kNoRest;
  if (want == kAnyLabel)
    for (std::uint32_t i = p.names.lo; i < p.names.hi; ++i) best = std::min(best, rest(i));
  return best;
}

}  // namespace ag::regular
