// A model's vocabulary: token bytes by id, special tokens, end tokens, and a byte trie over the ordinary tokens.
//
// The trie is stored in preorder, which is the tokens' bytewise order: node n's subtree is [n, skip[n]), and the tokens of a
// subtree are a contiguous run. Tokens with equal bytes share a node. Special ids and empty tokens are in no node.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ag {

class Vocabulary {
 public:
  // Throws ValueError: an id outside the vocabulary, a token longer than 65,535 bytes, no end token usable.
  Vocabulary(std::vector<std::string> tokens, std::vector<std::pair<std::string, std::uint32_t>> special,
             std::vector<std::uint32_t> end);

  std::uint32_t size() const { return size_; }
  std::size_t words() const { return (size_ + 31) / 32; }
  std::string_view bytes(std::uint32_t id) const {
    return std::string_view(blob_).substr(offset_[id], offset_[id + 1] - offset_[id]);
  }
  bool ordinary(std::uint32_t id) const { return ordinary_[id]; }  // can match bytes
  bool is_end(std::uint32_t id) const;
  const std::vector<std::uint32_t>& end() const { return end_; }
  const std::vector<std::pair<std::string, std::uint32_t>>& special() const { return special_; }
  std::uint64_t fingerprint() const { return fingerprint_; }
  std::size_t memory() const;

  // The id of a special token by name, or size() when there is none.
  std::uint32_t special_id(std::string_view name) const;
  // Longest-match tokenisation of bytes by ordinary tokens; stops where no token fits.
  std::vector<std::uint32_t> longest_match(std::string_view text) const;

  // The trie. Node 0 is the root; its byte means nothing.
  std::uint32_t nodes() const { return static_cast<std::uint32_t>(byte_.size()); }
  std::uint8_t byte(std::uint32_t node) const { return byte_[node]; }
  std::uint32_t depth(std::uint32_t node) const { return depth_[node]; }
  std::uint32_t skip(std::uint32_t node) const { return skip_[node]; }
  std::uint32_t max_depth() const { return max_depth_; }
  // Tokens that end in nodes [node, until): ids in bytewise order.
  const std::uint32_t* tokens_begin(std::uint32_t node) const { return order_.data() + first_[node]; }
  const std::uint32_t* tokens_end(std::uint32_t node) const { return order_.data() + first_[node + 1]; }
  std::uint32_t first_token(std::uint32_t node) const { return first_[node]; }
  const std::vector<std::uint32_t>& order() const { return order_; }
  // The node below `node` by this byte, or 0.
  std::uint32_t child(std::uint32_t node, std::uint8_t byte) const;

 private:
  void build_trie();

  std::uint32_t size_;
  std::string blob_;
  std::vector<std::uint32_t> offset_;
  std::vector<char> ordinary_;
  std::vector<std::pair<std::string, std::uint32_t>> special_;
  std::vector<std::uint32_t> end_;
  std::uint64_t fingerprint_ = 0;
  std::vector<std::uint8_t> byte_;
  std::vector<std::uint16_t> depth_;
  std::vector<std::uint32_t> skip_, first_, order_;
  std::uint32_t max_depth_ = 0;
};

}  // namespace ag
