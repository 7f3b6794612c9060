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
  ByteTrie() { clear(); }
  // `sorted`: strings and values, by string bytewise; equal strings share a node. Strings are not kept.
  explicit ByteTrie(const std::vector<std::pair<std::string_view, std::uint32_t>>& sorted);

  std::uint32_t nodes() const { return static_cast<std::uint32_t>(byte_.size()); }
  std::uint8_t byte(std::uint32_t node) const { return byte_[node]; }
  std::uint32_t depth(std::uint32_t node) const { return depth_[node]; }
  std::uint32_t skip(std::uint32_t node) const { return skip_[node]; }
  std::uint32_t max_depth() const { return max_depth_; }
  const std::uint32_t* begin(std::uint32_t node) const { return values_.data() + first_[node]; }
  const std::uint32_t* end(std::uint32_t node) const { return values_.data() + first_[node + 1]; }
  bool has_values(std::uint32_t node) const { return first_[node] != first_[node + 1]; }
  const std::vector<std::uint32_t>& values() const { return values_; }
  std::uint32_t child(std::uint32_t node, std::uint8_t byte) const;  // 0: none
  // Lists each node's children, so that child() need not pass over them.
  void index_children();
  std::size_t memory() const {
    return sizeof *this + byte_.capacity() + depth_.capacity() * 2 + child_byte_.capacity() +
           (skip_.capacity() + first_.capacity() + values_.capacity() + children_.capacity() + child_.capacity()) * 4;
  }

  // The part of this trie that keep(node) admits: a node is left out with its whole subtree where it says no. All
  // values of kept nodes for which wanted(value) holds are kept.
  template <class Keep, class Wanted>
  ByteTrie part(Keep keep, Wanted wanted) const;

 private:
  void clear();
  std::vector<std::uint8_t> byte_;
  std::vector<std::uint16_t> depth_;
  std::vector<std::uint32_t> skip_, first_, values_;
  std::vector<std::uint32_t> children_, child_;  // node -> where its children are listed; and they, in order
  std::vector<std::uint8_t> child_byte_;
  std::uint32_t max_depth_ = 0;
};

template <class Keep, class Wanted>
ByteTrie ByteTrie::part(Keep keep, Wanted wanted) const {
  ByteTrie out;
  out.skip_.clear();
  out.first_.clear();
  out.byte_.clear();
  out.depth_.clear();
  std::vector<std::uint32_t> path;
  auto close_to = [&](std::uint32_t depth) {
    while (path.size() > depth) {
      out.skip_[path.back()] = out.nodes();
      path.pop_back();
    }
  };
  for (std::uint32_t n = 0; n < nodes();) {
    if (n && !keep(n)) {
      n = skip_[n];
      continue;
    }
    close_to(depth_[n]);
    path.push_back(out.nodes());
    out.byte_.push_back(byte_[n]);
    out.depth_.push_back(depth_[n]);
    out.skip_.push_back(0);
    out.first_.push_back(static_cast<std::uint32_t>(out.values_.size()));
    if (depth_[n] > out.max_depth_) out.max_depth_ = depth_[n];
    for (auto v = begin(n); v != end(n); ++v) {
      if (wanted(*v)) out.values_.push_back(*v);
    }
    ++n;
  }
  close_to(0);
  out.first_.push_back(static_cast<std::uint32_t>(out.values_.size()));
  return out;
}

}  // namespace ag
