#include "mask/mask.h"

namespace ag {

template <class Found>
void MaskWorkspace::visit(const Vocabulary& vocab, std::uint32_t node, const Config& config, Found found) {
  const std::uint32_t base = vocab.depth(node);
  const std::size_t levels = vocab.max_depth() - base + 1;
  if (stack_.size() < levels) stack_.resize(levels);
  if (marks_.size() < levels) marks_.resize(levels);
  const Arena::Mark entry = parser.arena().mark();
  const std::uint32_t end = node == 0 ? vocab.nodes() : vocab.skip(node);
  for (std::uint32_t n = node + 1; n < end;) {
    ++nodes_walked;
    const std::uint32_t level = vocab.depth(n) - base;
    const Config& before = level == 1 ? config : stack_[level - 1];
    parser.arena().release(level == 1 ? entry : marks_[level - 1]);
    if (!parser.step(before, vocab.byte(n), stack_[level])) {
      n = vocab.skip(n);
      continue;
    }
    marks_[level] = parser.arena().mark();
    if (vocab.tokens_begin(n) != vocab.tokens_end(n) && !found(n)) break;
    ++n;
  }
  parser.arena().release(entry);
}

void MaskWorkspace::walk(const Vocabulary& vocab, std::uint32_t node, const Config& config, std::uint32_t* row) {
  visit(vocab, node, config, [&](std::uint32_t n) {
    for (auto t = vocab.tokens_begin(n); t != vocab.tokens_end(n); ++t) row[*t / 32] |= 1u << (*t % 32);
    return true;
  });
}

bool MaskWorkspace::any(const Vocabulary& vocab, std::uint32_t node, const Config& config) {
  bool out = false;
  visit(vocab, node, config, [&](std::uint32_t) { return !(out = true); });
  return out;
}

}  // namespace ag
