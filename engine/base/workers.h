// The process's worker threads: one pool, whatever the number of engines. Batches of masks are spread over it, and masks
// are built ahead on it while a model reads its prompt.
//
// The threads are started when they are first of use, and never touch Python. A forked child starts with none.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace ag {

class Workers {
 public:
  static Workers& instance();

  // Runs work(0) .. work(n - 1), on this thread and, where it pays, on up to `threads` - 1 others; returns when all are
  // done. What `work` throws first is thrown here then. Small batches stay on this thread: waking another costs more than
  // they do. Where batches come in quick succession, the others stay awake between them, for some microseconds.
  void parallel(std::size_t n, unsigned threads, const std::function<void(std::size_t)>& work);
  // Runs a task some time later, after tasks given before; what it throws is dropped.
  void later(std::function<void()> task);
  // Ends the threads; tasks that have not begun are dropped. For the end of the process.
  void stop();

 private:
  Workers();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ag
