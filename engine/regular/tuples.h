// Numbers tuples of equally many words as they are met: 1, 2, 3, ...
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ag::regular {

template <class Word>
class Tuples {
 public:
  explicit Tuples(std::size_t width) : width_(width), words_(width), slots_(64, 0) {}

  // The tuple's number, and whether it is new.
  std::pair<std::uint32_t, bool> intern(const Word* tuple) {
    std::size_t at = slot(tuple);
    for (; slots_[at] != 0; at = (at + 1) & (slots_.size() - 1))
      if (std::equal(tuple, tuple + width_, (*this)[slots_[at]])) return {slots_[at], false};
    const auto number = static_cast<std::uint32_t>(size_++);
    slots_[at] = number;
    words_.insert(words_.end(), tuple, tuple + width_);
    if (size_ * 2 > slots_.size()) grow();
    return {number, true};
  }
  // Good until the next call of intern().
  const Word* operator[](std::uint32_t number) const { return words_.data() + number * width_; }
  std::size_t size() const { return size_; }  // number 0 included, which no tuple has
  std::size_t width() const { return width_; }

 private:
  std::size_t slot(const Word* tuple) const {
    std::uint64_t h = 0;
    for (std::size_t i = 0; i < width_; ++i) {
      h = (h ^ tuple[i]) * 0x9e3779b97f4a7c15u;
      h ^= h >> 29;
    }
    return static_cast<std::size_t>(h ^ h >> 32) & (slots_.size() - 1);
  }
  void grow() {
    slots_.assign(slots_.size() * 4, 0);
    for (std::uint32_t i = 1; i < size_; ++i) {
      std::size_t at = slot((*this)[i]);
      while (slots_[at] != 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = i;
    }
  }

  std::size_t width_, size_ = 1;
  std::vector<Word> words_;
  std::vector<std::uint32_t> slots_;  // open addressing: numbers, 0 where free
};

}  // namespace ag::regular
