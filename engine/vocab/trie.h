// A byte trie in preorder, which is the bytewise order of its strings: node n's subtree is [n, skip(n)), and the values
// of a subtree are a contiguous run. Node 0 is the root and may have values (of the empty string).
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace ag {

class ByteTrie {
 public:
  ByteTrie() = default;  // not even a root
  // `sorted`: strings and values, by string bytewise; equal strings share a node. Strings are not kept.
  explicit ByteTrie(const std::vector<std::pair<std::string_view, std::uint32_t>>& sorted);

  // Never given twice in a process: equal only for what is equal.
  std::uint64_t id() const { return id_; }
  std::uint32_t nodes() const { return nodes_.empty() ? 0 : static_cast<std::uint32_t>(nodes_.size() - 1); }
  std::uint8_t byte(std::uint32_t node) const { return nodes_[node].byte; }
  std::uint32_t depth(std::uint32_t node) const { return nodes_[node].depth; }
  std::uint32_t skip(std::uint32_t node) const { return nodes_[node].skip; }
  std::uint32_t max_depth() const { return max_depth_; }
  const std::uint32_t* begin(std::uint32_t node) const { return values_.data() + nodes_[node].first; }
  const std::uint32_t* end(std::uint32_t node) const { return values_.data() + nodes_[node + 1].first; }
  bool has_values(std::uint32_t node) const { return nodes_[node].first != nodes_[node + 1].first; }
  const std::vector<std::uint32_t>& values() const { return values_; }
  std::uint32_t child(std::uint32_t node, std::uint8_t byte) const;  // 0: none
  // Lists each node's children, so that child() need not pass over them.
  void index_children();
  std::size_t memory() const {
    return sizeof *this + nodes_.capacity() * sizeof(Node) + (values_.capacity() + children_.capacity()) * 4;
  }

 private:
  // Together, since who looks at one of these looks at the others. One node more than there are: its `first` bounds
  // the last one's values.
  struct Node {
    std::uint32_t skip, first;
    std::uint32_t children;  // where they are listed
    std::uint16_t depth;
    std::uint8_t byte;
  };
  static constexpr std::uint32_t kMostListed = 1u << 24;

  std::vector<Node> nodes_;
  std::vector<std::uint32_t> children_;  // node << 8 | byte, in order; empty where they are not listed
  std::vector<std::uint32_t> values_;
  std::uint32_t max_depth_ = 0;
  std::uint64_t id_ = 0;
};

}  // namespace ag
