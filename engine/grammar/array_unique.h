// JSON arrays of distinct scalars (JSON Schema's uniqueItems).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "grammar/rule.h"
#include "grammar/spelled_values.h"

namespace ag {

struct UniqueArraySpec {
  std::vector<std::string> strings;  // the strings that an item may be, when they are finitely many
  // Or the language that they are of: any state of it has infinitely many completions, but for a greatest length. Then
  // any start of a string can be completed to one of that length or of a lesser one, and min_items is at most kLengths
  // and at most the number of lengths.
  std::optional<StringLanguage> open;
  std::vector<Symbol> literals;  // terminals of the other values, one for each value; at most kMaxLiterals
  // Terminals of values that may run out, or be spelled in several ways. Strings only where `open` is not there.
  std::vector<TerminalPtr> spelled;
  std::uint64_t min_items = 0;
  std::uint64_t max_items = kNoMax;
  Whitespace whitespace = Whitespace::kFlexible;
};

// The payload's word is the number of items (low bits) and the literals seen (high bits); its blob has the listed
// strings seen (bits) or all strings and spelled values seen (keys; while one is spelled, it is the newest of them). What
// was seen is not offered again, so there is always a way on while values are left.
class UniqueArrayRule final : public Rule {
 public:
  static constexpr std::size_t kMaxLiterals = 40, kLengths = 8;

  // min_items must not be above the number of values (see enough()).
  UniqueArrayRule(UniqueArraySpec spec, TerminalPool& pool);
  bool parts(Parts& out) const override;
  bool enough() const { return fresh({}, spec_.min_items).size() >= spec_.min_items; }
  void expand(std::uint32_t state, const Payload& payload, Edges& out) const override;
  bool on_label(std::uint32_t to, const Payload& payload, std::uint32_t label, const KeyByte* key, Arena& arena,
                std::uint32_t* state, Payload* out) const override;
  bool admits(std::uint32_t to, const Payload& payload, const Terminal::Range& range) const override;
  bool reads_key(std::uint32_t to) const override { return to == kOpenString; }
  bool needs_key(std::uint32_t to, std::uint32_t) const override { return to == kOpenString; }
  bool key_is_new(const Payload& payload, const KeyByte* key, std::string_view rest) const override;
  bool taken_keys(const Payload& payload, const KeyByte* key, std::vector<std::string_view>* rests) const override;
  bool is_tail(std::uint32_t to) const override { return to == kEnd; }
  std::uint64_t min_cost(std::uint32_t state, const Payload& payload) const override;
  void write_min(std::uint32_t state, const Payload& payload, Ending& out) const override;
  bool compute_nullable() const override { return false; }
  std::size_t bytes() const override;

 private:
  enum State : std::uint32_t {
    kOpen,
    kFirst,
    kAfter,
    kItem,
    kEnd,
    kListedString,
    kOpenString,
    kSpelled,
    kFirstByte,
    kNextByte
  };
  static constexpr std::uint32_t kCountBits = 24;
  static constexpr std::uint64_t kCountMask = (std::uint64_t{1} << kCountBits) - 1;

  std::uint64_t count(const Payload& p) const { return p.word & kCountMask; }
  std::uint64_t next_word(const Payload& p) const;
  bool literal_seen(const Payload& p, std::size_t i) const { return p.word >> (kCountBits + i) & 1; }
  bool string_seen(const Payload& p, std::size_t i) const { return p.blob && p.blob->bits[i / 64] >> (i % 64) & 1; }
  // Which terminal reads the next string. Of bounded strings the one whose greatest length no string seen has: where a
  // string has come so far, it is new. Null when there is none.
  Terminal* string(const Payload& p) const;
  bool string_left(const Payload& p) const;
  bool literal_left(const Payload& p) const;
  bool more(const Payload& p) const;
  void expand_after(const Payload& p, Edges& out) const;
  // The spelling so far, on the way to kFirstByte or kNextByte, and what was taken before it.
  static std::pair<std::string_view, const SeenKey*> spelling(std::uint32_t to, const Payload& p);
  // Shortest spellings of `wanted` values that are not there yet, nor among `avoided`.
  std::vector<std::string> fresh(const Payload& p, std::uint64_t wanted,
                                 const std::vector<std::string>& avoided = {}) const;

  UniqueArraySpec spec_;
  SpelledValues spelled_;
  TerminalPtr open_, close_first_, close_, comma_, byte_;
  std::vector<TerminalPtr> strings_;  // more than one: each is for strings that are shorter by one
};

}  // namespace ag
