// Token masks: which tokens a configuration can take.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "mask/cache.h"
#include "parser/parser.h"
#include "vocab/vocabulary.h"

namespace ag {

// Scratch space of one thread for filling masks and for looking ahead.
class MaskWorkspace {
 public:
  Parser parser;

  // Writes the bits of all ordinary tokens that `config` can take into `row` (words() words), by the entries of its
  // items' terminal states; what follows a terminal is decided by the parser on what is left of the tokens that end it.
  void fill(const Vocabulary& vocab, MaskCache& cache, const Config& config, std::uint32_t* row);
  // The same by walking the whole trie with the parser: slow, and obviously right.
  void fill_by_walk(const Vocabulary& vocab, const Config& config, std::uint32_t* row);
  // Whether some token strictly below `node` of the vocabulary's trie can be taken.
  bool any(const Vocabulary& vocab, std::uint32_t node, const Config& config);

 private:
  template <class Found>
  void visit(const ByteTrie& trie, std::uint32_t node, const Config& config, Found found);
  void fill_group(const Vocabulary& vocab, MaskCache& cache, const Item* items, std::size_t count, std::uint32_t* row);
  void leaves_of(const Vocabulary& vocab, const Item* items, std::size_t count, const Entry::Leaves& leaves,
                 std::uint32_t* row);
  void leaves_by_key(const Vocabulary& vocab, const Item& item, const Entry::Leaves& leaves, std::uint32_t* row);

  std::vector<Config> stack_;
  std::vector<Arena::Mark> marks_;
  std::vector<Item> sorted_;
  std::vector<std::string_view> taken_;
  std::vector<char> allowed_;
  Config after_, group_;
  bool row_empty_ = false;  // the row has not been written yet
};

}  // namespace ag
