#include "vocab/trie.h"

#include <algorithm>
#include <atomic>

namespace ag {

namespace {
std::atomic<std::uint64_t> last_id{0};
}

ByteTrie::ByteTrie(const std::vector<std::pair<std::string_view, std::uint32_t>>& sorted) : id_(++last_id) {
  thread_local std::vector<Node> nodes;
  thread_local std::vector<std::uint32_t> path;
  nodes.assign(1, {});
  path.assign(1, 0);
  values_.reserve(sorted.size());
  std::string_view previous;
  for (std::uint32_t k = 0; k < sorted.size(); ++k) {
    std::string_view b = sorted[k].first;
    values_.push_back(sorted[k].second);
    std::size_t common = 0;
    while (common < previous.size() && common < b.size() && previous[common] == b[common]) ++common;
    while (path.size() > common + 1) {
      nodes[path.back()].skip = static_cast<std::uint32_t>(nodes.size());
      path.pop_back();
    }
    for (std::size_t i = common; i < b.size(); ++i) {
      path.push_back(static_cast<std::uint32_t>(nodes.size()));
      nodes.push_back({0, k, 0, static_cast<std::uint16_t>(i + 1), static_cast<std::uint8_t>(b[i])});
    }
    max_depth_ = std::max<std::uint32_t>(max_depth_, static_cast<std::uint32_t>(b.size()));
    previous = b;
  }
  for (std::uint32_t n : path) nodes[n].skip = static_cast<std::uint32_t>(nodes.size());
  nodes.push_back({0, static_cast<std::uint32_t>(sorted.size()), 0, 0, 0});
  nodes_.assign(nodes.begin(), nodes.end());
}

std::uint32_t ByteTrie::child(std::uint32_t node, std::uint8_t byte) const {
  if (!children_.empty()) {
    std::uint32_t from = nodes_[node].children, until = nodes_[node + 1].children;
    while (until - from > 4) {
      const std::uint32_t middle = from + (until - from) / 2;
      if ((children_[middle] & 0xff) < byte)
        from = middle + 1;
      else
        until = middle + 1;
    }
    for (; from < until; ++from) {
      if ((children_[from] & 0xff) == byte) return children_[from] >> 8;
    }
    return 0;
  }
  for (std::uint32_t n = node + 1; n < skip(node); n = skip(n)) {
    if (nodes_[n].byte == byte) return n;
    if (nodes_[n].byte > byte) break;
  }
  return 0;
}

void ByteTrie::index_children() {
  if (nodes() >= kMostListed) return;
  children_.reserve(nodes());
  for (std::uint32_t n = 0; n < nodes(); ++n) {
    nodes_[n].children = static_cast<std::uint32_t>(children_.size());
    for (std::uint32_t c = n + 1; c < skip(n); c = skip(c)) children_.push_back(c << 8 | nodes_[c].byte);
  }
  nodes_.back().children = static_cast<std::uint32_t>(children_.size());
}

}  // namespace ag
