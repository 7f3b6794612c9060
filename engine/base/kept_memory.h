// Memory of small objects that come and go with every token: what a thread gives back it takes again, without asking the
// allocator. At most kMost bytes a thread are kept so.
#pragma once

#include <array>
#include <cstddef>
#include <new>

namespace ag {

class KeptMemory {
 public:
  // As operator new and operator delete; any thread may give back what another has taken.
  static void* take(std::size_t size) {
    const std::size_t c = class_of(size);
    if (c >= kClasses) return ::operator new(size);
    Lists& here = lists_;
    if (Free* found = here.first[c]) {
      here.first[c] = found->next;
      here.held -= (c + 1) * kStep;
      return found;
    }
    return ::operator new((c + 1) * kStep);
  }
  static void give(void* memory, std::size_t size) noexcept {
    const std::size_t c = class_of(size);
    Lists& here = lists_;
    if (c >= kClasses || here.held >= kMost || here.over) return ::operator delete(memory);
    here.first[c] = new (memory) Free{here.first[c]};
    here.held += (c + 1) * kStep;
    watch_end();
  }

 private:
  static constexpr std::size_t kStep = 16, kMost = 128 << 10;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr std::size_t kClasses = 0;  // so that they see every use of what was given back
#else
  static constexpr std::size_t kClasses = 32;
#endif
  static std::size_t class_of(std::size_t size) { return (size - 1) / kStep; }

  struct Free {
    Free* next;
  };
  struct Lists {  // needs no constructor and no destructor: it can be used until the thread is gone
    std::array<Free*, kClasses> first;
    std::size_t held;
    bool watched, over;
  };
  // Has the lists emptied at the thread's end; what comes later is not kept.
  static void watch_end() noexcept {
    if (!lists_.watched) watch_end_now();
  }
  static void watch_end_now() noexcept;

  static constinit thread_local Lists lists_;
};

}  // namespace ag
