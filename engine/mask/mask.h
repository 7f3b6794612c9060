// Token masks: which tokens a configuration can take.
#pragma once

#include <cstdint>
#include <vector>

#include "parser/parser.h"
#include "vocab/vocabulary.h"

namespace ag {

// Scratch space of one thread for filling masks and for looking ahead.
class MaskWorkspace {
 public:
  Parser parser;

  // Sets the bits of all ordinary tokens in the trie below `node` (which stands for what was read already) that `config` can
  // take, by walking the trie with the parser. `row` has words() words and is only added to.
  void walk(const Vocabulary& vocab, std::uint32_t node, const Config& config, std::uint32_t* row);
  // Whether some token strictly below `node` can be taken.
  bool any(const Vocabulary& vocab, std::uint32_t node, const Config& config);

  std::uint64_t nodes_walked = 0;

 private:
  template <class Found>
  void visit(const Vocabulary& vocab, std::uint32_t node, const Config& config, Found found);
  std::vector<Config> stack_;
  std::vector<Arena::Mark> marks_;
};

}  // namespace ag
