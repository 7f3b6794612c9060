#include "base/workers.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace ag {

namespace {

using Clock = std::chrono::steady_clock;
// What is left of a batch must take this long for another thread to be woken: it needs some 20 us to come.
constexpr double kWorthWaking = 80e-6;
constexpr double kLook = 15e-6;  // work done before the rest is estimated
constexpr double kSure = 2;      // times worth waking for, by the last batch: nothing is looked at first

struct Batch {
  std::size_t n;
  const std::function<void(std::size_t)>* work;
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> done{0};
  std::mutex mutex;
  std::exception_ptr thrown;

  std::size_t run() {  // gives how many pieces it did
    std::size_t count = 0;
    for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < n;) {
      try {
        (*work)(i);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!thrown) thrown = std::current_exception();
      }
      ++count;
      if (done.fetch_add(1, std::memory_order_acq_rel) + 1 == n) done.notify_all();
    }
    return count;
  }
};

}  // namespace

struct Workers::Impl {
  std::mutex mutex;
  std::condition_variable come;
  std::deque<std::shared_ptr<Batch>> batches;  // one entry for each helper that may come
  std::deque<std::function<void()>> tasks;
  std::vector<std::thread> threads;
  bool stopping = false;
  std::atomic<float> each{0};  // seconds that one piece of the last batch took

  void loop() {
    std::unique_lock lock(mutex);
    for (;;) {
      come.wait(lock, [&] { return stopping || !batches.empty() || !tasks.empty(); });
      if (stopping) return;
      if (!batches.empty()) {
        std::shared_ptr<Batch> batch = std::move(batches.front());
        batches.pop_front();
        lock.unlock();
        batch->run();
        batch.reset();
      } else {
        std::function<void()> task = std::move(tasks.front());
        tasks.pop_front();
        lock.unlock();
        try {
          task();
        } catch (...) {  // nobody waits for it
        }
        task = nullptr;
      }
      lock.lock();
    }
  }

  void start(std::size_t wanted) {  // under the mutex
    while (threads.size() < wanted && !stopping) threads.emplace_back([this] { loop(); });
  }
};

namespace {
std::atomic<Workers*> the_workers{nullptr};
std::mutex making;
}  // namespace

Workers::Workers() : impl_(std::make_unique<Impl>()) {}

Workers& Workers::instance() {
  if (Workers* found = the_workers.load(std::memory_order_acquire)) return *found;
  std::lock_guard lock(making);
  if (Workers* found = the_workers.load(std::memory_order_acquire)) return *found;
#if defined(__unix__) || defined(__APPLE__)
  static const bool registered = [] {
    // The threads are the parent's: the child forgets them, with whatever they had locked.
    pthread_atfork(nullptr, nullptr, [] { the_workers.store(nullptr, std::memory_order_release); });
    return true;
  }();
  (void)registered;
#endif
  auto* made = new Workers;  // lives as long as the process
  the_workers.store(made, std::memory_order_release);
  return *made;
}

void Workers::parallel(std::size_t n, unsigned threads, const std::function<void(std::size_t)>& work) {
  std::size_t i = 0;
  if (threads < 2 || n < 2) {
    for (; i < n; ++i) work(i);
    return;
  }
  const auto start = Clock::now();
  const auto since = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  const double expected = impl_->each.load(std::memory_order_relaxed) * static_cast<double>(n);
  bool wake = expected > kSure * kWorthWaking;
  if (!wake) {
    double spent = 0;
    while (i < n && spent < kLook) {
      work(i++);
      spent = since();
    }
    wake = n - i > 0 && spent / static_cast<double>(i) * static_cast<double>(n - i) > kWorthWaking;
  }
  if (!wake) {
    for (; i < n; ++i) work(i);
    impl_->each.store(static_cast<float>(since() / static_cast<double>(n)), std::memory_order_relaxed);
    return;
  }
  auto batch = std::make_shared<Batch>();
  batch->n = n;
  batch->work = &work;
  batch->next = batch->done = i;
  const std::size_t helpers = std::min<std::size_t>(threads - 1, n - i - 1);
  {
    std::lock_guard lock(impl_->mutex);
    impl_->start(threads - 1);
    for (std::size_t k = 0; k < helpers; ++k) impl_->batches.push_back(batch);
  }
  if (helpers == 1)
    impl_->come.notify_one();
  else if (helpers)
    impl_->come.notify_all();
  const std::size_t mine = batch->run();
  // What was done meanwhile on this thread says what a piece costs.
  if (mine + i > 0) {
    impl_->each.store(static_cast<float>(since() / static_cast<double>(mine + i)), std::memory_order_relaxed);
  }
  for (std::size_t done; (done = batch->done.load(std::memory_order_acquire)) < n;)
    batch->done.wait(done, std::memory_order_acquire);
  if (batch->thrown) std::rethrow_exception(batch->thrown);
}

void Workers::later(std::function<void()> task) {
  {
    std::lock_guard lock(impl_->mutex);
    if (impl_->stopping) return;
    impl_->start(1);
    impl_->tasks.push_back(std::move(task));
  }
  impl_->come.notify_one();
}

void Workers::stop() {
  std::vector<std::thread> threads;
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
    impl_->tasks.clear();
    threads.swap(impl_->threads);
  }
  impl_->come.notify_all();
  for (std::thread& t : threads) t.join();
}

}  // namespace ag
