#include "base/kept_memory.h"

#include <utility>

namespace ag {

constinit thread_local KeptMemory::Lists KeptMemory::lists_{};

void KeptMemory::watch_end_now() noexcept {
  struct End {
    ~End() {
      lists_.over = true;
      for (Free* first : lists_.first) {
        while (first) ::operator delete(std::exchange(first, first->next));
      }
      lists_.first = {};
    }
  };
  thread_local End end;
  lists_.watched = true;
  (void)end;
}

}  // namespace ag
