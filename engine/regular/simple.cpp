#include "regular/simple.h"

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

std::uint32_t Punctuation::few_live(State state, std::uint8_t* out) {
  std::uint32_t n = 0;
  for (std::uint8_t b : {text_, std::uint8_t{' '}, std::uint8_t{'\n'}, std::uint8_t{'\t'}, std::uint8_t{'\r'}})
    if (next(state, b) != kDead) out[n++] = b;
  return n;
}

bool Punctuation::exhausted(State state) {
  if (state <= kGap) return false;
  return whitespace_ == Whitespace::kFlexible && after_ ? live(state).none() : !spaced() || state != kGap + 1;
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

}  // namespace ag::regular
