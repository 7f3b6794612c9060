// A sorted set of texts as a terminal without tables: the names of tools behind a trigger (bytes as they are), an
// object's keys and an enum's values (JSON strings, in every escaped spelling).
//
// A place is a prefix: the first text that begins with it, and its length. Its number is computed from these two, and a
// step is a search among the sorted texts, so that a set costs nothing but its texts, however many requests bring one.
// Inside an escape a place also says how much of it was read; the first text whose next character fits stands for all.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "regular/terminal.h"

namespace ag::regular {

// What a vocabulary makes of one text, for sets that come with every request: the tokens that begin it and end inside
// it, and the node of the trie where it ends, if it is there as a whole. Made by the first mask that asks.
struct NameTokens {
  std::once_flag once;
  std::vector<std::uint32_t> ids;
  std::uint32_t end = 0;
};

class NameSet final : public Terminal {
 public:
  struct Options {
    bool quoted = false;     // JSON strings; the texts are UTF-8 then
    bool labelled = true;    // by index
    bool transient = false;  // of one request: nothing about it is worth keeping
  };
  // Throws ValueError: texts that are not sorted bytewise and distinct, or longer than 16 MiB together.
  NameSet(std::vector<std::string> texts, Options options);
  // Over texts that outlive the set, with a place for what their tokens are.
  NameSet(std::vector<std::string_view> texts, std::vector<NameTokens*> tokens, Options options);

  std::uint32_t next(State state, std::uint8_t byte) override;
  Advance advance(State state, std::uint64_t counter, std::string_view bytes) override;
  bool accepting(State state) override;
  bool exhausted(State state) override;
  std::uint32_t min_rest(State state, std::uint64_t) override;
  std::string shortest(State state, std::uint64_t) override;
  bool labelled() const override { return options_.labelled; }
  std::uint32_t others_begin() const override { return static_cast<std::uint32_t>(texts_.size()); }
  std::uint32_t label(State state) override { return options_.labelled ? place(state).first : 0; }
  Range range(State state) override;
  bool shortest_label(State state, std::uint32_t label, std::string* out) override;
  bool has_label(std::uint32_t label) override { return label < texts_.size(); }
  std::bitset<256> live(State state) override;
  std::uint32_t few_live(State state, std::uint8_t* out) override;
  const NameSet* names() const override { return this; }
  bool transient() const override { return options_.transient; }
  bool loops() const override { return false; }
  std::size_t bytes() const override { return bytes_; }

  // The texts [first, end) that begin with the same `depth` bytes.
  struct Span {
    std::uint32_t first, end, depth;
  };
  bool quoted() const { return options_.quoted; }
  // The span of a state between two bytes of the texts; false inside an escape and outside the quotes.
  bool open(State state, Span* out) const;
  State closed(const Span& span) const { return at(span.first, span.depth + 1); }  // after the quote
  State state(const Span& span) const { return at(span.first, span.depth); }
  const std::vector<std::string_view>& texts() const { return texts_; }
  // By text, where known and no text begins another; else empty.
  const std::vector<NameTokens*>& tokens() const { return tokens_; }
  bool whole(const Span& span) const { return texts_[span.first].size() == span.depth; }
  // f(byte, span) for each byte with which some of the texts go on as they are.
  template <class F>
  void each_group(const Span& span, F f) const {
    for (std::uint32_t i = span.first + whole(span); i < span.end;) {
      const auto byte = static_cast<std::uint8_t>(texts_[i][span.depth]);
      const std::uint32_t next = group_end(i, span.end, span.depth);
      if (!options_.quoted || (byte >= 0x20 && byte != '"' && byte != '\\')) f(byte, Span{i, next, span.depth + 1});
      i = next;
    }
  }

 private:
  // Steps inside an escape: kBackslash, then kHex + digits read; of a surrogate pair: kHex + 4 (before the second
  // backslash), kSecond (before its u), kSecond + 1 + digits read.
  enum Escape : std::uint32_t { kNone, kBackslash, kHex, kSecond = kHex + 5, kEscapes = 16 };
  struct Place {
    std::uint32_t first, depth;
    std::uint32_t escape = kNone;
  };
  static std::uint32_t digits_read(std::uint32_t escape) {
    return escape < kSecond ? escape - kHex : escape == kSecond ? 4 : 3 + escape - kSecond;
  }

  State at(std::uint32_t first, std::uint32_t depth) const { return kStart + 1 + base_[first] + depth; }
  State at(std::uint32_t first, std::uint32_t depth, std::uint32_t escape) const {
    return kStart + 1 + base_.back() + (base_[first] + depth) * kEscapes + escape;
  }
  Place place(State state) const;
  std::uint32_t owner(std::uint32_t place) const;  // the text that it is of
  bool closed(const Place& p) const { return options_.quoted && p.depth > texts_[p.first].size(); }
  std::uint32_t end(std::uint32_t first, std::uint32_t depth) const;  // of the texts that begin so
  // The first of [lo, hi) with this byte at `depth`, where all agree before it; hi when there is none.
  std::uint32_t with_byte(std::uint32_t lo, std::uint32_t hi, std::uint32_t depth, std::uint8_t byte) const;
  std::uint32_t next_in_escape(const Place& p, std::uint8_t byte) const;
  // Whether the escape of text j's character at `depth` begins with the same digits as that of text i.
  bool same_digits(std::uint32_t i, std::uint32_t j, std::uint32_t depth, std::uint32_t digits) const;
  std::string rest(const Place& p, std::uint32_t label) const;
  std::uint64_t rest_size(const Place& p, std::uint32_t label) const;
  // Where the byte at `depth` changes; all of [i, end) agree before it.
  std::uint32_t group_end(std::uint32_t i, std::uint32_t end, std::uint32_t depth) const;

  void settle();

  std::vector<std::string> own_;
  std::vector<std::string_view> texts_;
  std::vector<NameTokens*> tokens_;
  Options options_;
  std::vector<std::uint32_t> base_;  // text -> its places, text.size() + 2 of them
  std::size_t bytes_;
};

}  // namespace ag::regular
