// Terminals that need no tables: a literal's state is its offset, punctuation's state is what the gap has used.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "regular/terminal.h"
#include "regular/terminals.h"

namespace ag::regular {

// Exactly these bytes. State = bytes read + 1.
class Literal final : public Terminal {
 public:
  explicit Literal(std::string_view text) : text_(text) {}
  const std::string& text() const { return text_; }

  std::uint32_t next(State state, std::uint8_t byte) override {
    if (state == kDead || state > text_.size() || static_cast<std::uint8_t>(text_[state - 1]) != byte) return kDead;
    return state + 1;
  }
  bool accepting(State state) override { return state == text_.size() + 1; }
  bool exhausted(State state) override { return state > text_.size(); }
  std::uint32_t min_rest(State state, std::uint64_t) override {
    return static_cast<std::uint32_t>(text_.size() + 1 - state);
  }
  std::string shortest(State state, std::uint64_t) override { return text_.substr(state - 1); }
  std::bitset<256> live(State state) override;
  std::uint32_t few_live(State state, std::uint8_t* out) override {
    if (exhausted(state)) return 0;
    *out = static_cast<std::uint8_t>(text_[state - 1]);
    return 1;
  }
  bool loops() const override { return false; }
  std::size_t bytes() const override { return sizeof(*this) + text_.capacity(); }

 private:
  std::string text_;
};

// One structural character of JSON with the blanks allowed around it.
// State = 1 + phase * kGap + newlines * (kBlanks + 1) + other blanks; phase 0 is before the character, 1 after it.
class Punctuation final : public Terminal {
 public:
  Punctuation(char text, bool before, bool after, Whitespace whitespace)
      : text_(static_cast<std::uint8_t>(text)), before_(before), after_(after), whitespace_(whitespace) {}

  static constexpr std::uint32_t kNewlines = 2, kBlanks = 64;

  std::uint32_t next(State state, std::uint8_t byte) override;
  bool accepting(State state) override;
  std::bitset<256> live(State state) override;
  std::uint32_t few_live(State state, std::uint8_t* out) override;
  bool exhausted(State state) override;
  std::uint32_t min_rest(State state, std::uint64_t) override;
  std::string shortest(State state, std::uint64_t) override;
  bool loops() const override { return false; }
  std::size_t bytes() const override { return sizeof(*this); }

 private:
  static constexpr std::uint32_t kGap = (kNewlines + 1) * (kBlanks + 1);
  // json.dumps writes one blank after these.
  bool spaced() const { return whitespace_ == Whitespace::kCanonical && after_ && (text_ == ',' || text_ == ':'); }

  std::uint8_t text_;
  bool before_, after_;
  Whitespace whitespace_;
};

}  // namespace ag::regular
