#include "vocab/vocabulary.h"

#include <algorithm>

#include "base/bits.h"
#include "base/error.h"
#include "base/head.h"

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
    if (tokens[i].size() > kShort) total += tokens[i].size();
  }
  if (total > 0xffff'ffffu) throw ValueError("the vocabulary's tokens hold more than 4 GiB");
  blob_.reserve(total);
  texts_.resize(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    Text& text = texts_[i];
    text.size = static_cast<std::uint16_t>(tokens[i].size());
    text.ordinary = !tokens[i].empty();
    if (tokens[i].size() <= kShort) {
      std::copy(tokens[i].begin(), tokens[i].end(), text.bytes);
    } else {
      text.offset = static_cast<std::uint32_t>(blob_.size());
      blob_ += tokens[i];
    }
  }
  for (const auto& [name, id] : special_) {
    if (id >= size_) {
      throw ValueError("special token '" + name + "' has id " + std::to_string(id) + ", but the vocabulary has " +
                       std::to_string(size_) + " tokens");
    }
    texts_[id].ordinary = false;
  }
  std::sort(end_.begin(), end_.end());
  end_.erase(std::unique(end_.begin(), end_.end()), end_.end());
  for (std::uint32_t id : end_) {
    if (id >= size_) {
      throw ValueError("end token " + std::to_string(id) + " is outside the vocabulary of " + std::to_string(size_));
    }
    texts_[id].ordinary = false;
  }
  fingerprint_ = 0xCBF29CE484222325ull;
  for (std::uint32_t i = 0; i < size_; ++i)
    fingerprint_ = (fnv(fingerprint_, bytes(i)) ^ (ordinary(i) ? 1u : 0u)) * 0x100000001B3ull;
  for (const auto& [name, id] : special_) fingerprint_ = fnv(fingerprint_, name) + id;
  for (std::uint32_t id : end_) fingerprint_ = (fingerprint_ ^ id) * 0x100000001B3ull;
  build_trie();
  classify();
}

void Vocabulary::build_trie() {
  std::vector<std::uint32_t> order;
  order.reserve(size_);
  for (std::uint32_t i = 0; i < size_; ++i) {
    if (ordinary(i)) order.push_back(i);
  }
  std::vector<std::uint64_t> head(size_);
  for (std::uint32_t i : order) head[i] = head_of<std::uint64_t>(bytes(i));
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (head[a] != head[b]) return head[a] < head[b];
    std::string_view x = bytes(a), y = bytes(b);
    return x != y ? x < y : a < b;
  });
  std::vector<std::pair<std::string_view, std::uint32_t>> sorted;
  sorted.reserve(order.size());
  for (std::uint32_t i : order) sorted.emplace_back(bytes(i), i);
  trie_ = ByteTrie(sorted);
  trie_.index_children();
}

void Vocabulary::classify() {
  chars_.resize(size_);
  whole_.resize(size_);
  separator_.resize(size_);
  for (std::uint32_t i = 0; i < size_; ++i) {
    if (!ordinary(i)) continue;
    std::uint32_t chars = 0;
    bool whole = true;
    std::string_view b = bytes(i);
    int expect = 0;
    std::uint8_t low = 0x80, high = 0xBF;
    for (unsigned char c : b) {
      if (expect) {
        if (c < low || c > high) whole = false;
        low = 0x80;
        high = 0xBF;
        --expect;
        continue;
      }
      if ((c & 0xC0) != 0x80) ++chars;
      if (c < 0x80) continue;
      if (c >= 0xC2 && c <= 0xDF)
        expect = 1;
      else if (c >= 0xE0 && c <= 0xEF)
        expect = 2;
      else if (c >= 0xF0 && c <= 0xF4)
        expect = 3;
      else
        whole = false;
      if (c == 0xE0) low = 0xA0;
      if (c == 0xED) high = 0x9F;
      if (c == 0xF0) low = 0x90;
      if (c == 0xF4) high = 0x8F;
    }
    chars_[i] = static_cast<std::uint16_t>(chars);  // a token has at most 65,535 bytes
    max_chars_ = std::max(max_chars_, chars);
    whole_[i] = whole && !expect;
    separator_[i] = b.find("\u2028") != b.npos || b.find("\u2029") != b.npos;
  }
  all_bits_.assign(words(), 0);
  const auto note = [&](std::uint32_t what, std::uint32_t id) {
    std::vector<std::uint32_t>& bits = holding_[what];
    if (bits.empty()) bits.assign(words(), 0);
    set_bit(bits.data(), id);
  };
  for (std::uint32_t id = 0; id < size_; ++id) {
    if (!ordinary(id)) continue;
    set_bit(all_bits_.data(), id);
    bool other = false;
    for (unsigned char c : bytes(id)) {
      if (c < 0x80)
        note(c, id);
      else
        other = true;
    }
    if (!other) continue;
    note(kOther, id);
    if (!whole_[id]) note(kPartial, id);
    if (separator_[id]) note(kSeparator, id);
  }
  below_.resize(trie_.nodes());
  std::vector<Below> open(trie_.max_depth() + 2, Below{});  // by depth: what its nodes hold so far
  for (std::uint32_t n = trie_.nodes(); n-- > 0;) {
    const std::uint32_t d = trie_.depth(n);
    Below& mine = open[d + 1];
    below_[n] = mine;
    Below& up = open[d];
    for (int k = 0; k < 2; ++k) up.ascii[k] |= mine.ascii[k];
    up.deepest = std::max<std::uint16_t>(up.deepest, mine.deepest + 1);
    up.other = up.other || mine.other;
    up.partial = up.partial || mine.partial;
    up.separator = up.separator || mine.separator;
    mine = {};
    const std::uint8_t b = trie_.byte(n);
    if (b < 0x80)
      up.ascii[b >> 6] |= std::uint64_t{1} << (b & 63);
    else
      up.other = true;
    for (auto t = trie_.begin(n); t != trie_.end(n); ++t) {
      up.partial = up.partial || !whole_[*t];
      up.separator = up.separator || separator_[*t];
    }
  }
}

bool Vocabulary::is_end(std::uint32_t id) const { return std::binary_search(end_.begin(), end_.end(), id); }

std::uint32_t Vocabulary::special_id(std::string_view name) const {
  for (const auto& [n, id] : special_) {
    if (n == name) return id;
  }
  return size_;
}

std::vector<std::uint32_t> Vocabulary::longest_match(std::string_view text) const {
  std::vector<std::uint32_t> out;
  std::size_t at = 0;
  while (at < text.size()) {
    std::uint32_t node = 0, best = size_;
    std::size_t length = 0;
    for (std::size_t i = at; i < text.size(); ++i) {
      node = trie_.child(node, static_cast<std::uint8_t>(text[i]));
      if (!node) break;
      if (trie_.has_values(node)) {
        best = *trie_.begin(node);
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
  std::size_t bits = all_bits_.capacity() * 4;
  for (const auto& held : holding_) bits += held.capacity() * 4;
  return blob_.capacity() + texts_.capacity() * sizeof(Text) + trie_.memory() + chars_.capacity() * 2 +
         whole_.capacity() + separator_.capacity() + below_.capacity() * sizeof(Below) + bits;
}

}  // namespace ag
