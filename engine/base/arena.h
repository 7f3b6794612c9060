// Bump allocation with marks. Nothing in an arena has a destructor; release(mark) takes back all that came later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace ag {

class Arena {
 public:
  struct Mark {
    std::size_t chunk = 0, used = 0;
  };

  void* allocate(std::size_t size) {
    size = (size + 15) & ~std::size_t{15};
    if (chunks_.empty()) grow(size);
    if (used_ + size > chunks_[chunk_].size) grow(size);
    void* out = chunks_[chunk_].data.get() + used_;
    used_ += size;
    return out;
  }

  template <class T, class... Args>
  T* make(Args&&... args) {
    return new (allocate(sizeof(T))) T{std::forward<Args>(args)...};
  }

  template <class T>
  T* array(std::size_t count) {
    return static_cast<T*>(allocate(sizeof(T) * count));
  }

  Mark mark() const { return {chunk_, used_}; }
  void release(Mark m) {
    chunk_ = m.chunk;
    used_ = m.used;
  }
  void reset() { release({0, 0}); }
  std::size_t capacity() const {
    std::size_t total = 0;
    for (const auto& c : chunks_) total += c.size;
    return total;
  }

 private:
  struct Chunk {
    std::unique_ptr<std::byte[]> data;
    std::size_t size;
  };

  void grow(std::size_t size) {
    // A later chunk that was released is used again when it is large enough.
    while (!chunks_.empty() && chunk_ + 1 < chunks_.size()) {
      ++chunk_;
      used_ = 0;
      if (size <= chunks_[chunk_].size) return;
    }
    std::size_t want = chunks_.empty() ? 4096 : chunks_.back().size * 2;
    if (want > (1u << 20)) want = 1u << 20;
    if (want < size) want = size;
    chunks_.push_back({std::unique_ptr<std::byte[]>(new std::byte[want]), want});
    chunk_ = chunks_.size() - 1;
    used_ = 0;
  }

  std::vector<Chunk> chunks_;
  std::size_t chunk_ = 0, used_ = 0;
};

}  // namespace ag
