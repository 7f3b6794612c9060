// A model's vocabulary: token bytes by id, special tokens, end tokens, and a byte trie over the ordinary tokens.
//
// Tokens with equal bytes share a node of the trie. Special ids and empty tokens are in no node.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "vocab/trie.h"

namespace ag {

class Vocabulary {
 public:
  // Throws ValueError: an id outside the vocabulary, a token longer than 65,535 bytes, no end token usable.
  Vocabulary(std::vector<std::string> tokens, std::vector<std::pair<std::string, std::uint32_t>> special,
             std::vector<std::uint32_t> end);

  std::uint32_t size() const { return size_; }
  std::size_t words() const { return (size_ + 31) / 32; }
  std::string_view bytes(std::uint32_t id) const {
    const Text& t = texts_[id];
    return {t.size <= kShort ? t.bytes : blob_.data() + t.offset, t.size};
  }
  bool ordinary(std::uint32_t id) const { return texts_[id].ordinary; }  // can match bytes
  bool is_end(std::uint32_t id) const;
  const std::vector<std::uint32_t>& end() const { return end_; }
  const std::vector<std::pair<std::string, std::uint32_t>>& special() const { return special_; }
  std::uint64_t fingerprint() const { return fingerprint_; }
  std::size_t memory() const;

  // The id of a special token by name, or size() when there is none.
  std::uint32_t special_id(std::string_view name) const;
  // Longest-match tokenisation of bytes by ordinary tokens; stops where no token fits.
  std::vector<std::uint32_t> longest_match(std::string_view text) const;

  const ByteTrie& trie() const { return trie_; }                      // ordinary tokens; values are ids
  std::uint32_t chars(std::uint32_t id) const { return chars_[id]; }  // UTF-8 characters, begun ones included
  std::uint32_t max_chars() const { return max_chars_; }              // of any token
  // Tokens whose byte string is whole UTF-8 characters only.
  bool whole(std::uint32_t id) const { return whole_[id]; }
  // Tokens with a line or paragraph separator (U+2028, U+2029), which a pattern's dot does not match.
  bool separator(std::uint32_t id) const { return separator_[id]; }
  // What the bytes strictly below a node of the trie are, and how many there are at most one below another; `partial`:
  // some token there is not whole characters; `separator`: some has one.
  struct Below {
    std::uint64_t ascii[2];
    std::uint16_t deepest;
    bool other, partial, separator;
  };
  const Below& below(std::uint32_t node) const { return below_[node]; }
  const std::vector<std::uint32_t>& all_bits() const { return all_bits_; }  // every ordinary token
  // Tokens that hold an ASCII character; that hold bytes beyond ASCII; of these, those that are not whole characters; and
  // those with a separator. As bits; empty where there are none.
  enum Holds : std::uint32_t { kOther = 0x80, kPartial, kSeparator, kHolds };
  const std::vector<std::uint32_t>& holding(std::uint32_t what) const { return holding_[what]; }

 private:
  void build_trie();
  void classify();

  std::uint32_t size_;
  // What accepting a token reads first, in one place where the token is short.
  static constexpr std::uint32_t kShort = 13;
  struct Text {
    std::uint16_t size;
    bool ordinary;
    union {
      char bytes[kShort];
      std::uint32_t offset;  // in blob_
    };
  };
  std::string blob_;  // longer tokens
  std::vector<Text> texts_;
  std::vector<std::pair<std::string, std::uint32_t>> special_;
  std::vector<std::uint32_t> end_;
  std::uint64_t fingerprint_ = 0;
  ByteTrie trie_;
  std::vector<std::uint16_t> chars_;
  std::uint32_t max_chars_ = 0;
  std::vector<std::uint8_t> whole_, separator_;
  std::vector<Below> below_;
  std::vector<std::uint32_t> all_bits_;
  std::array<std::vector<std::uint32_t>, kHolds> holding_;
};

}  // namespace ag
