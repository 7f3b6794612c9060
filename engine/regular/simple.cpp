#include "regular/simple.h"

#include <algorithm>

namespace ag::regular {

std::bitset<256> Literal::live(State state) {
  std::bitset<256> out;
  if (state != kDead && state <= text_.size()) out[static_cast<std::uint8_t>(text_[state - 1])] = true;
  return out;
}

std::uint32_t Punctuation::next(State state, std::uint8_t byte) {
  if (state == kDead) return kDead;
  const std::uint32_t at = state - 1, phase = at / kGap, used = at % kGap;
  if (phase == 0 && byte == text_) return 1 + kGap;
  if (whitespace_ == Whitespace::kCanonical)
    return spaced() && phase == 1 && used == 0 && byte == ' ' ? state + 1 : kDead;
  if (whitespace_ != Whitespace::kFlexible || !(phase == 0 ? before_ : after_)) return kDead;
  const std::uint32_t newlines = used / (kBlanks + 1), blanks = used % (kBlanks + 1);
  if (byte == '\n') return newlines < kNewlines ? state + kBlanks + 1 : kDead;
  if (byte == ' ' || byte == '\t' || byte == '\r') return blanks < kBlanks ? state + 1 : kDead;
  return kDead;
}

std::bitset<256> Punctuation::live(State state) {
  std::bitset<256> out;
  for (std::uint8_t b : {text_, std::uint8_t{' '}, std::uint8_t{'\n'}, std::uint8_t{'\t'}, std::uint8_t{'\r'}})
    out[b] = next(state, b) != kDead;
  return out;
}

bool Punctuation::accepting(State state) {
  if (state <= kGap) return false;
  return !spaced() || state == kGap + 2;
}

std::uint32_t Punctuation::min_rest(State state, std::uint64_t) {
  if (state <= kGap) return spaced() ? 2 : 1;
  return accepting(state) ? 0 : 1;
}

std::string Punctuation::shortest(State state, std::uint64_t) {
  std::string out;
  if (state <= kGap) out.push_back(static_cast<char>(text_));
  if (spaced() && state != kGap + 2) out.push_back(' ');
  return out;
}

Fanout::Fanout(std::vector<std::string> texts) : texts_(std::move(texts)) {
  for (std::size_t i = 1; i < texts_.size(); ++i)
    if (!(texts_[i - 1] < texts_[i])) throw ValueError("the texts of a fan-out must be distinct and sorted by bytes");
  places_.push_back({0, 0, 0});
  add({0, static_cast<std::uint32_t>(texts_.size()), 0});
  for (const std::string& text : texts_) charge(sizeof(std::string) + text.capacity());
}

Terminal::State Fanout::add(Place place) {
  const bool whole = texts_[place.lo].size() == place.depth;  // the shortest sorts first
  places_.push_back(place);
  charge(sizeof(Place));
  return add_state(whole, place.lo);
}

void Fanout::fill(State state, Row& row) {
  const Place here = places_[state];
  std::uint32_t i = here.lo + slot_accepting(state);
  while (i < here.hi) {
    const char c = texts_[i][here.depth];
    std::uint32_t j = i + 1;
    while (j < here.hi && texts_[j][here.depth] == c) ++j;
    row[static_cast<std::uint8_t>(c)] = add({i, j, here.depth + 1});
    i = j;
  }
}

Fanout::Place Fanout::place(State state) {
  const std::lock_guard lock(mutex_);
  return places_[state];
}

std::uint32_t Fanout::compute_rest(State state) {
  const Place here = places_[state];
  std::uint32_t best = kNoRest;
  for (std::uint32_t i = here.lo; i < here.hi; ++i)
    best = std::min(best, static_cast<std::uint32_t>(texts_[i].size()) - here.depth);
  return best;
}

bool Fanout::shortest_label(State state, std::uint32_t label, std::string* out) {
  const Place here = place(state);
  if (label < here.lo || label >= here.hi) return false;
  *out = texts_[label].substr(here.depth);
  return true;
}

}  // namespace ag::regular
