// Token masks: which tokens a configuration can take.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/bits.h"
#include "mask/cache.h"
#include "mask/memo.h"
#include "parser/parser.h"
#include "regular/name_set.h"
#include "vocab/vocabulary.h"

namespace ag {

// Scratch space of one thread for filling masks and for looking ahead.
class MaskWorkspace {
 public:
  Parser parser;

  // Writes the bits of all ordinary tokens that `config` can take into `row` (words() words), by the entries of its
  // items' terminal states; what follows a terminal is decided by the parser on what is left of the tokens that end it.
  void fill(const Vocabulary& vocab, MaskCache& cache, const ConfigView& config, std::uint32_t* row);
  std::uint32_t entries() const { return entries_; }  // that the last mask was made of
  // The same by walking the whole trie with the parser: slow, and obviously right.
  void fill_by_walk(const Vocabulary& vocab, const ConfigView& config, std::uint32_t* row);
  // Whether some token strictly below `node` of the vocabulary's trie can be taken.
  bool any(const Vocabulary& vocab, std::uint32_t node, const ConfigView& config);

 private:
  template <class Found>
  void visit(const ByteTrie& trie, std::uint32_t from, std::uint32_t until, std::uint32_t base,
             const ConfigView& config, Found found);
  // Tokens that the configuration can take: all, or of the given rests.
  void fill_config(const Rests* rests, const ConfigView& config, std::size_t level);
  // The same for items at one state of one terminal.
  void fill_group(const Rests* rests, const Item* items, std::size_t count, std::size_t level);
  void fill_entry(const Rests* rests, const Entry& entry, const Item* items, std::size_t count, std::size_t level);
  bool fill_alone(const Item& item);
  // The same where few of a request's names are left, without an entry; false where they are not.
  bool fill_names(const Item& item, std::size_t level);
  void clear_row();
  // Tokens that end the terminal, by what the rules make of their rests.
  void leaves_of(const Item* items, std::size_t count, std::uint32_t label, const Rests& rests, std::size_t level,
                 bool beyond);
  void leaves_by_key(const Rests* rests, const Item& item, const Entry::Leaves& leaves, std::size_t level);
  std::string_view new_key(const Item& item, const Entry::Leaves& leaves) const;
  std::string_view new_key(const Entry::Leaves& leaves) const;
  void refuse(std::string_view quote, std::string_view rest);
  void take_rests(const Rests& rests, const ConfigView& config, std::size_t level);
  void walk(const Rests& rests, const ConfigView& config);
  void walk_tokens(const Rests& tokens, const ConfigView& config);
  bool takes_token(const ConfigView& config, std::uint32_t id);
  void set(const std::uint32_t* from, const std::uint32_t* until);
  void set_one(std::uint32_t id);
  bool has(std::uint32_t id) const { return has_bit(row_, id); }

  // Where a grammar is so ambiguous that entries are put together more often than this for one mask, the rest is
  // walked by the parser, which merges what is equal.
  static constexpr std::uint32_t kMostCompletions = 512;
  struct Level {
    Config after;
    std::vector<Item> sorted;
    std::vector<std::uint32_t> refused;
  };

  struct Names {  // of a set of names, those that go on as a node of the vocabulary's trie
    std::uint32_t node;
    regular::NameSet::Span span;
  };

  std::vector<Names> names_;
  std::vector<Config> stack_;
  std::vector<Arena::Mark> marks_;
  std::vector<std::unique_ptr<Level>> levels_;
  std::vector<std::string_view> taken_;
  std::vector<std::uint32_t> refused_;
  bool known_ = false;  // taken_ says all about keys that may not come
  Config group_, begun_;
  const Vocabulary* vocab_ = nullptr;
  MaskCache* cache_ = nullptr;
  std::uint32_t* row_ = nullptr;
  std::uint32_t completions_ = 0, entries_ = 0;
  static constexpr std::uint32_t kMemorable = 3;  // entries from which a mask is worth keeping as a whole
  Memo memo_;
  Parser::Reads reads_;
  Steps steps_;
  bool row_empty_ = false;  // the row has not been written yet
};

}  // namespace ag
