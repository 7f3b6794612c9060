// Slices: tokens that are made only of characters on which a state loops need no walk at all.
//
// A plan belongs to a set of characters: the mask of the tokens made only of them, and tries of the other tokens that
// begin with one of them, which are left to walk, by what comes first that is none of them. A string's interior leaves
// some 6,000 of 128,000.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "mask/regions.h"
#include "regular/terminal.h"
#include "vocab/vocabulary.h"

namespace ag {

inline bool covers(const Characters& key, const Vocabulary::Below& b) {
  return !(b.ascii[0] & ~key.ascii[0]) && !(b.ascii[1] & ~key.ascii[1]) && !b.partial && (!b.other || key.other) &&
         (!b.separator || key.separators);
}

struct SlicePlan {
  std::vector<std::uint32_t> bits;   // tokens made only of the slice's characters
  struct Part {                      // other tokens that begin with one of them
    bool any = false;                // nothing is known of them, or:
    std::uint8_t byte = 0;           // begins the first character that is not one of them
    std::vector<std::uint32_t> ids;  // in the order of their bytes
    // Made when it is first asked for: most bytes may never come.
    const ByteTrie& trie(const Vocabulary& vocab) const;

   private:
    mutable std::once_flag made_;
    mutable ByteTrie trie_;
  };
  std::deque<Part> parts;
  struct Top {  // a byte that some token begins with
    std::uint32_t node;
    std::uint8_t byte;
  };
  std::vector<Top> tops;
};

class Slices final : public Runs {
 public:
  explicit Slices(std::shared_ptr<const Vocabulary> vocab) : vocab_(std::move(vocab)) {}
  // Whether few tokens begin with such characters and go on with others: by some of them.
  bool pays(const Characters& key);
  std::shared_ptr<const SlicePlan> plan(const Characters& key);
  // Tokens of at most n characters.
  const std::vector<std::uint32_t>& at_most(std::uint32_t chars);
  std::uint32_t max_chars() const { return vocab_->max_chars(); }
  // Of a JSON string: the greatest of the numbers of characters that some token may add which is at most `room`, and the
  // least of those after which some token may close which is at least `need`; max_chars() + 1 where there is none.
  // Tokens cannot tell what lies between.
  std::uint32_t room(std::uint64_t room);
  std::uint32_t need(std::uint64_t need);
  // Bytes before the last quote of some token: longer rests of a key are ended by none.
  std::uint32_t longest_key();
  std::uint32_t longest_run(const Characters& key, bool escaped) override;
  std::uint32_t longest() const override { return max_chars(); }
  Regions& regions() { return regions_; }
  std::size_t memory() const;
  void clear();

 private:
  void look_at_lengths();
  void part(const std::vector<std::uint32_t>& rest, const Characters& key, SlicePlan* out) const;
  static constexpr std::size_t kMostPlans = 48, kMostKept = 4096;
  static constexpr std::uint32_t kSurelyRuns = 16;  // below it nobody looks
  std::shared_ptr<const Vocabulary> vocab_;
  Regions regions_;
  mutable std::mutex mutex_;
  struct Kept {
    std::shared_ptr<const SlicePlan> plan;
    std::uint64_t used;  // when
  };
  std::map<Characters, Kept> plans_;
  std::uint64_t uses_ = 0;
  std::map<std::uint32_t, std::unique_ptr<const std::vector<std::uint32_t>>> lengths_;
  std::once_flag looked_;
  std::map<Characters, bool> pays_;
  std::map<std::pair<Characters, bool>, std::uint32_t> runs_;
  std::vector<std::uint32_t> longest_first_;  // tokens of more than kSurelyRuns characters
  std::vector<std::uint32_t> rooms_, needs_;  // sorted
  std::uint32_t longest_key_ = 0;
};

}  // namespace ag
