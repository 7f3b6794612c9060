#include "vocab/vocabulary.h"

#include <algorithm>

#include "base/error.h"

namespace ag {

namespace {
std::uint64_t fnv(std::uint64_t h, std::string_view text) {
  for (unsigned char c : text) h = (h ^ c) * 0x100000001B3ull;
  return (h ^ text.size()) * 0x100000001B3ull;
}
}  // namespace

Vocabulary::Vocabulary(std::vector<std::string> tokens, std::vector<std::pair<std::string, std::uint32_t>> special,
                       std::vector<std::uint32_t> end)
    : size_(static_cast<std::uint32_t>(tokens.size())), special_(std::move(special)), end_(std::move(end)) {
  std::size_t total = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].size() > 0xffff) {
      throw ValueError("token " + std::to_string(i) + " is " + std::to_string(tokens[i].size()) +
                       " bytes long; at most 65535 are supported");
    }
    total += tokens[i].size();
  }
  if (total > 0xffff'ffffu) throw ValueError("the vocabulary's tokens hold more than 4 GiB");
  blob_.reserve(total);
  offset_.reserve(tokens.size() + 1);
  offset_.push_back(0);
  ordinary_.resize(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    blob_ += tokens[i];
    offset_.push_back(static_cast<std::uint32_t>(blob_.size()));
    ordinary_[i] = !tokens[i].empty();
  }
  for (const auto& [name, id] : special_) {
    if (id >= size_) {
      throw ValueError("special token '" + name + "' has id " + std::to_string(id) + ", but the vocabulary has " +
                       std::to_string(size_) + " tokens");
    }
    ordinary_[id] = 0;
  }
  std::sort(end_.begin(), end_.end());
  end_.erase(std::unique(end_.begin(), end_.end()), end_.end());
  for (std::uint32_t id : end_) {
    if (id >= size_) {
      throw ValueError("end token " + std::to_string(id) + " is outside the vocabulary of " + std::to_string(size_));
    }
    ordinary_[id] = 0;
  }
  fingerprint_ = 0xCBF29CE484222325ull;
  for (std::uint32_t i = 0; i < size_; ++i) fingerprint_ = (fnv(fingerprint_, bytes(i)) ^ ordinary_[i]) * 0x100000001B3ull;
  for (const auto& [name, id] : special_) fingerprint_ = fnv(fingerprint_, name) + id;
  for (std::uint32_t id : end_) fingerprint_ = (fingerprint_ ^ id) * 0x100000001B3ull;
  build_trie();
}

void Vocabulary::build_trie() {
  order_.reserve(size_);
  for (std::uint32_t i = 0; i < size_; ++i) {
    if (ordinary_[i]) order_.push_back(i);
  }
  // The first eight bytes as a number decide nearly every comparison.
  std::vector<std::uint64_t> head(size_);
  for (std::uint32_t i : order_) {
    std::string_view b = bytes(i);
    std::uint64_t h = 0;
    for (std::size_t k = 0; k < 8; ++k) h = h << 8 | (k < b.size() ? static_cast<unsigned char>(b[k]) : 0);
    head[i] = h;
  }
  std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (head[a] != head[b]) return head[a] < head[b];
    std::string_view x = bytes(a), y = bytes(b);
    return x != y ? x < y : a < b;
  });
  byte_.push_back(0);
  depth_.push_back(0);
  skip_.push_back(0);
  first_.push_back(0);
  std::vector<std::uint32_t> path{0};
  std::string_view previous;
  for (std::uint32_t k = 0; k < order_.size(); ++k) {
    std::string_view b = bytes(order_[k]);
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
  while (!path.empty()) {
    skip_[path.back()] = static_cast<std::uint32_t>(byte_.size());
    path.pop_back();
  }
  // first_[n + 1] bounds node n's own tokens: the next node in preorder begins where they end.
  first_.push_back(static_cast<std::uint32_t>(order_.size()));
}

bool Vocabulary::is_end(std::uint32_t id) const { return std::binary_search(end_.begin(), end_.end(), id); }

std::uint32_t Vocabulary::special_id(std::string_view name) const {
  for (const auto& [n, id] : special_) {
    if (n == name) return id;
  }
  return size_;
}

std::uint32_t Vocabulary::child(std::uint32_t node, std::uint8_t byte) const {
  for (std::uint32_t n = node + 1; n < skip_[node]; n = skip_[n]) {
    if (byte_[n] == byte) return n;
    if (byte_[n] > byte) break;
  }
  return 0;
}

std::vector<std::uint32_t> Vocabulary::longest_match(std::string_view text) const {
  std::vector<std::uint32_t> out;
  std::size_t at = 0;
  while (at < text.size()) {
    std::uint32_t node = 0, best = size_;
    std::size_t length = 0;
    for (std::size_t i = at; i < text.size(); ++i) {
      node = child(node, static_cast<std::uint8_t>(text[i]));
      if (!node) break;
      if (tokens_begin(node) != tokens_end(node)) {
        best = *tokens_begin(node);
        length = i + 1 - at;
      }
    }
    if (best == size_) break;
    out.push_back(best);
    at += length;
  }
  return out;
}

std::size_t Vocabulary::memory() const {
  return blob_.capacity() + offset_.capacity() * 4 + ordinary_.capacity() + byte_.capacity() + depth_.capacity() * 2 +
         skip_.capacity() * 4 + first_.capacity() * 4 + order_.capacity() * 4;
}

}  // namespace ag
