#include "vocab/trie.h"

#include <algorithm>
#include <cstring>

namespace ag {

void ByteTrie::clear() {
  byte_.assign(1, 0);
  depth_.assign(1, 0);
  skip_.assign(1, 1);
  first_.assign(2, 0);
}

ByteTrie::ByteTrie(const std::vector<std::pair<std::string_view, std::uint32_t>>& sorted) {
  byte_.push_back(0);
  depth_.push_back(0);
  skip_.push_back(0);
  first_.push_back(0);
  values_.reserve(sorted.size());
  std::vector<std::uint32_t> path{0};
  std::string_view previous;
  for (std::uint32_t k = 0; k < sorted.size(); ++k) {
    std::string_view b = sorted[k].first;
    values_.push_back(sorted[k].second);
    std::size_t common = 0;
    while (common < previous.size() && common < b.size() && previous[common] == b[common]) ++common;
    while (path.size() > common + 1) {
      skip_[path.back()] = static_cast<std::uint32_t>(byte_.size());
      path.pop_back();
    }
    for (std::size_t i = common; i < b.size(); ++i) {
      path.push_back(static_cast<std::uint32_t>(byte_.size()));
      byte_.push_back(static_cast<std::uint8_t>(b[i]));
      depth_.push_back(static_cast<std::uint16_t>(i + 1));
      skip_.push_back(0);
      first_.push_back(k);
    }
    max_depth_ = std::max<std::uint32_t>(max_depth_, static_cast<std::uint32_t>(b.size()));
    previous = b;
  }
  for (std::uint32_t n : path) skip_[n] = static_cast<std::uint32_t>(byte_.size());
  // first_[n + 1] bounds node n's own values: the next node in preorder begins where they end.
  first_.push_back(static_cast<std::uint32_t>(sorted.size()));
}

std::uint32_t ByteTrie::child(std::uint32_t node, std::uint8_t byte) const {
  if (!children_.empty()) {
    const std::uint32_t from = children_[node], until = children_[node + 1];
    if (from == until) return 0;
    const void* found = std::memchr(child_byte_.data() + from, byte, until - from);
    return found ? child_[static_cast<std::size_t>(static_cast<const std::uint8_t*>(found) - child_byte_.data())] : 0;
  }
  for (std::uint32_t n = node + 1; n < skip_[node]; n = skip_[n]) {
    if (byte_[n] == byte) return n;
    if (byte_[n] > byte) break;
  }
  return 0;
}

void ByteTrie::index_children() {
  children_.reserve(nodes() + 1);
  child_.reserve(nodes());
  child_byte_.reserve(nodes());
  for (std::uint32_t n = 0; n < nodes(); ++n) {
    children_.push_back(static_cast<std::uint32_t>(child_.size()));
    for (std::uint32_t c = n + 1; c < skip_[n]; c = skip_[c]) {
      child_.push_back(c);
      child_byte_.push_back(byte_[c]);
    }
  }
  children_.push_back(static_cast<std::uint32_t>(child_.size()));
}

}  // namespace ag
