#include "base/workers.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif
#if defined(__linux__)
#include <sched.h>
#endif
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace ag {

namespace {

using Clock = std::chrono::steady_clock;

// All in seconds. To wake a sleeping thread takes the caller 15 us, and 40 us until it is there: up to 90 us where the
// core had time to fall asleep, too. One that still watches for work is there after half a microsecond.
constexpr double kWorthWaking = 70e-6;       // what is left of a batch, where batches come quickly
constexpr double kWorthWakingLate = 120e-6;  // the same, where they do not
constexpr double kWorthSharing = 10e-6;      // what is left for a thread that watches
constexpr double kLook = 15e-6;              // work done before the rest is estimated
constexpr double kSure = 2;                  // times what is worth it, by the last batch: nothing is looked at first
constexpr double kPiece = 8e-6;              // taken at once: less, and the threads are in each other's way
// A thread that is done with a batch watches for the next one, where those before came in quick succession: for twice
// the longest pause between them, if that is short. So it costs nothing where a model computes between two masks.
constexpr double kShortPause = 1e-3;
constexpr double kWatch = 200e-6;     // at least
constexpr double kForgotten = 0.5;    // how a long pause is forgotten: its weight after each batch
constexpr double kLongPause = 4e-3;   // longer ones are no different
constexpr double kWatchEnd = 100e-6;  // how long the caller watches for the others' last pieces
constexpr int kPausesBetweenYields = 64;
// Where nobody came who was called, the core was not free: it takes so many times more work to be called again.
constexpr unsigned kMostVain = 15;

double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

void relax() {
#if defined(__x86_64__) || defined(_M_X64)
  _mm_pause();
#elif defined(__aarch64__) && (defined(__GNUC__) || defined(__clang__))
  asm volatile("yield");
#endif
}

// The core that the calling thread is on, or -1 where that is not known.
int core() {
#if defined(__linux__)
  return sched_getcpu();
#else
  return -1;
#endif
}

// Watches until `done()` or for so many seconds; whoever else wants the core gets it.
template <class Done>
bool watch(double most, const Done& done) {
  const auto start = Clock::now();
  do {
    for (int i = 0; i < kPausesBetweenYields; ++i) {
      if (done()) return true;
      relax();
    }
    std::this_thread::yield();
  } while (seconds(Clock::now() - start) < most);
  return done();
}

// Lives on its caller's stack: helpers come to it and leave it under the mutex of all.
struct Batch {
  Batch(std::size_t size, std::size_t at_once, const std::function<void(std::size_t)>& what, std::size_t first)
      : n(size), piece(at_once), work(what), next(first) {}

  const std::size_t n, piece;
  const std::function<void(std::size_t)>& work;
  alignas(64) std::atomic<std::size_t> next;
  alignas(64) std::atomic<unsigned> helping{0};
  bool asleep = false;  // the caller, until the helpers have left
  std::mutex mutex;
  std::exception_ptr thrown;

  std::size_t run() {  // gives how many it did
    std::size_t count = 0;
    for (std::size_t from; (from = next.fetch_add(piece, std::memory_order_relaxed)) < n;) {
      const std::size_t to = std::min(n, from + piece);
      for (std::size_t i = from; i < to; ++i) {
        try {
          work(i);
        } catch (...) {
          std::lock_guard lock(mutex);
          if (!thrown) thrown = std::current_exception();
        }
      }
      count += to - from;
    }
    return count;
  }
};

}  // namespace

struct Workers::Impl {
  std::mutex mutex;
  std::condition_variable come, left;
  std::deque<Batch*> seats;  // one for each helper that may come
  std::deque<std::function<void()>> tasks;
  std::vector<std::thread> threads;
  bool stopping = false;
  std::atomic<unsigned> watching{0};  // threads that need not be woken
  std::atomic<unsigned> news{0};      // counts what they watch for

  // Of batches that may be shared; two that run at once may mix theirs up, which does no harm.
  std::atomic<float> one{kLook};         // seconds that one of the last batch took
  std::atomic<float> pause{kLongPause};  // seconds between batches: the longest, slowly forgotten
  std::atomic<Clock::rep> ended{0};
  std::atomic<int> calling{-1};   // the core of who called last
  std::atomic<unsigned> vain{0};  // calls that nobody came to, one after the other

  void began(Clock::time_point now) {
    const double since = seconds(now.time_since_epoch() - Clock::duration(ended.load(std::memory_order_relaxed)));
    const double longest = std::max(since, kForgotten * pause.load(std::memory_order_relaxed));
    pause.store(static_cast<float>(std::min(longest, kLongPause)), std::memory_order_relaxed);
  }
  void over(Clock::time_point start, std::size_t count) {  // so many were done by the caller
    const auto now = Clock::now();
    if (count) {
      one.store(static_cast<float>(seconds(now - start) / static_cast<double>(count)), std::memory_order_relaxed);
    }
    ended.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  }
  double worth() const {  // how much work must be left for others to be called, in seconds
    const double times = 1 + vain.load(std::memory_order_relaxed);
    if (watching.load(std::memory_order_relaxed)) return times * kWorthSharing;
    return times * (pause.load(std::memory_order_relaxed) < kShortPause ? kWorthWaking : kWorthWakingLate);
  }
  void shared(bool helped) {
    const unsigned before = vain.load(std::memory_order_relaxed);
    const unsigned now = helped ? 0 : std::min(before + 1, kMostVain);
    if (now != before) vain.store(now, std::memory_order_relaxed);
  }
  // To watch for work on the core of who is to bring it keeps it from coming.
  bool in_the_way() const {
    const int there = calling.load(std::memory_order_relaxed);
    return there >= 0 && there == core();
  }

  void loop() {
    std::unique_lock lock(mutex);
    for (;;) {
      come.wait(lock, [&] { return stopping || !seats.empty() || !tasks.empty(); });
      if (stopping) return;
      if (!seats.empty())
        help(lock);
      else
        do_task(lock);
    }
  }

  void help(std::unique_lock<std::mutex>& lock) {
    while (!seats.empty()) {
      Batch& batch = *seats.front();
      seats.pop_front();
      batch.helping.fetch_add(1, std::memory_order_relaxed);
      // Waking takes long: each who comes wakes the next.
      if (seats.size() > watching) come.notify_one();
      lock.unlock();
      batch.run();
      lock.lock();
      const bool asleep = batch.asleep;
      const unsigned seen = news.load(std::memory_order_relaxed);
      batch.helping.fetch_sub(1, std::memory_order_release);  // the caller may be gone from here on
      if (asleep) left.notify_all();
      const double longest = pause.load(std::memory_order_relaxed);
      if (stopping || !seats.empty() || !tasks.empty() || longest > kShortPause) continue;
      watching.fetch_add(1, std::memory_order_relaxed);
      lock.unlock();
      watch(std::max(kWatch, 2 * longest),
            [&] { return news.load(std::memory_order_relaxed) != seen || in_the_way(); });
      lock.lock();
      watching.fetch_sub(1, std::memory_order_relaxed);
    }
  }

  void do_task(std::unique_lock<std::mutex>& lock) {
    std::function<void()> task = std::move(tasks.front());
    tasks.pop_front();
    lock.unlock();
    try {
      task();
    } catch (...) {  // nobody waits for it
    }
    task = nullptr;
    lock.lock();
  }

  void start(std::size_t wanted) {  // under the mutex
    try {
      while (threads.size() < wanted && !stopping) threads.emplace_back([this] { loop(); });
    } catch (const std::system_error&) {  // the process may have no more: those that there are do
    }
  }

  // Has others come to a batch that takes so many seconds on one thread.
  void call(Batch& batch, std::size_t most, double takes) {
    calling.store(core(), std::memory_order_relaxed);
    std::unique_lock lock(mutex);
    start(most);
    std::size_t wanted = std::min<std::size_t>(watching.load(std::memory_order_relaxed),
                                               static_cast<std::size_t>(takes / kWorthSharing));
    const std::size_t awake = wanted;
    while (takes > static_cast<double>(wanted + 1) * kWorthWaking) ++wanted;
    wanted = std::min(wanted, most);
    seats.insert(seats.end(), wanted, &batch);
    if (wanted) news.fetch_add(1, std::memory_order_relaxed);
    lock.unlock();
    if (wanted > awake) come.notify_one();
  }

  // Waits for those who came; the others are no longer expected.
  void finish(Batch& batch) {
    {
      std::lock_guard lock(mutex);
      std::erase(seats, &batch);
    }
    const auto alone = [&] { return batch.helping.load(std::memory_order_acquire) == 0; };
    if (watch(kWatchEnd, alone)) return;
    std::unique_lock lock(mutex);
    batch.asleep = true;
    left.wait(lock, alone);
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
  impl_->began(start);
  const double worth = impl_->worth();
  double one = impl_->one.load(std::memory_order_relaxed);
  if (one * static_cast<double>(n) < kSure * worth) {
    // The clock takes a twentieth of a microsecond.
    auto next = static_cast<std::size_t>(std::clamp(kLook / 4 / one, 1.0, static_cast<double>(n)));
    for (;; next = std::min(n, 2 * i)) {
      while (i < next) work(i++);
      if (i == n) return impl_->over(start, n);
      one = seconds(Clock::now() - start) / static_cast<double>(i);
      if (one * static_cast<double>(i) > kLook) break;
    }
  }
  const double takes = one * static_cast<double>(n - i);
  if (takes < worth) {
    for (; i < n; ++i) work(i);
    return impl_->over(start, n);
  }
  const auto piece = static_cast<std::size_t>(std::max(1.0, kPiece / one));
  Batch batch(n, std::clamp<std::size_t>((n - i) / (4 * std::min<std::size_t>(threads, n)), 1, piece), work, i);
  impl_->call(batch, std::min<std::size_t>(threads - 1, n - i - 1), takes);
  const std::size_t mine = i + batch.run();
  impl_->over(start, mine);
  impl_->finish(batch);
  impl_->shared(mine < n);
  if (batch.thrown) std::rethrow_exception(batch.thrown);
}

void Workers::later(std::function<void()> task) {
  {
    std::lock_guard lock(impl_->mutex);
    if (impl_->stopping) return;
    impl_->start(1);
    impl_->tasks.push_back(std::move(task));
    impl_->news.fetch_add(1, std::memory_order_relaxed);
  }
  impl_->come.notify_one();
}

void Workers::stop() {
  std::vector<std::thread> threads;
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
    impl_->tasks.clear();
    impl_->news.fetch_add(1, std::memory_order_relaxed);
    threads.swap(impl_->threads);
  }
  impl_->come.notify_all();
  for (std::thread& t : threads) t.join();
}

}  // namespace ag
