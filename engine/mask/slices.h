// Slices: tokens that are made only of characters on which a state loops need no walk at all.
//
// A plan belongs to a set of characters (ASCII ones by bit, all others together): the mask of the tokens made only of
// them, and a trie of the other tokens that begin with one of them, which are left to walk. A string's interior leaves
// some 6,000 of 128,000.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "vocab/vocabulary.h"

namespace ag {

struct SliceKey {
  std::uint64_t ascii[2] = {0, 0};
  bool other = false;  // every character beyond ASCII
  bool has(std::uint8_t b) const { return b < 0x80 && (ascii[b >> 6] >> (b & 63) & 1); }
  void set(std::uint8_t b) { ascii[b >> 6] |= std::uint64_t{1} << (b & 63); }
  int count() const;
  bool covers(const Vocabulary::Below& b) const {
    return !(b.ascii[0] & ~ascii[0]) && !(b.ascii[1] & ~ascii[1]) && !b.partial && (!b.other || other);
  }
  bool has_lead(std::uint8_t b) const { return b < 0x80 ? has(b) : other; }
  auto operator<=>(const SliceKey&) const = default;
};

struct SlicePlan {
  std::vector<std::uint32_t> bits;  // tokens made only of the slice's characters
  ByteTrie rest;                    // other tokens that begin with one of them
  struct Top {                      // a byte that some token begins with
    std::uint32_t all, rest;        // its node in the vocabulary's trie, and in `rest`; 0: it has none
    std::uint8_t byte;
  };
  std::vector<Top> tops;
};

class Slices {
 public:
  explicit Slices(std::shared_ptr<const Vocabulary> vocab) : vocab_(std::move(vocab)) {}
  std::shared_ptr<const SlicePlan> plan(const SliceKey& key);
  // Tokens of at most n characters.
  const std::vector<std::uint32_t>& at_most(std::uint32_t chars);
  std::uint32_t max_chars() const { return max_chars_; }
  std::size_t memory() const;
  void clear();

 private:
  static constexpr std::size_t kMostPlans = 16;
  std::shared_ptr<const Vocabulary> vocab_;
  mutable std::mutex mutex_;
  std::map<SliceKey, std::shared_ptr<const SlicePlan>> plans_;
  std::vector<std::unique_ptr<std::vector<std::uint32_t>>> lengths_ =
      std::vector<std::unique_ptr<std::vector<std::uint32_t>>>(256);
  std::uint32_t max_chars_ = 255;
};

}  // namespace ag
