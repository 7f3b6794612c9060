// Many threads compile, fill, fork and evict on one engine: for the thread sanitizer. Exits with 1 when a mask differs
// from what a single thread found.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <thread>

#include "base/workers.h"
#include "specs.h"

namespace {

using namespace ag;

std::string tool(int i) {
  const std::string n = std::to_string(i);
  return R"({"type":"object","properties":{"k)" + n + R"(":{"type":"string","maxLength":)" + std::to_string(i + 3) +
         R"(},"e":{"enum":["a","b)" + n + R"("]},"n":{"type":"integer","minimum":)" + n + R"(}},"required":["e"]})";
}

std::string reply(int i) { return "so <f" + std::to_string(i) + ">{\"e\": \"a\", \"x\": [1]}</f> and <f"; }

// A digest of the masks on the way through a reply.
std::uint64_t digest(const std::shared_ptr<const Grammar>& grammar, const std::string& text) {
  Matcher m(grammar);
  std::vector<std::uint32_t> row(grammar->vocab->words());
  std::uint64_t h = 1469598103934665603ull;
  for (unsigned char c : text) {
    m.fill(row.data());
    for (std::uint32_t w : row) h = (h ^ w) * 1099511628211ull;
    Matcher fork = m.fork();
    if (!m.accept(c) || !fork.accept(c)) return 0;
    fork.rollback(1);
  }
  return h;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 200;
  const auto vocab = ag::test::vocabulary(true);
  constexpr int kTools = 12, kThreads = 8;
  std::vector<SpecPtr> tags;
  for (int i = 0; i < kTools; ++i)
    tags.push_back(ag::test::tag("<f" + std::to_string(i) + ">", ag::test::schema(tool(i)), "</f>"));

  std::map<int, std::uint64_t> expected;
  const auto alone = std::make_shared<EngineCore>(vocab, EngineOptions{});
  for (int i = 0; i < kTools; ++i) expected[i] = digest(alone->compile(ag::test::dispatch(tags, "<f")), reply(i));

  for (const auto& [i, d] : expected) {
    if (d == 0) return std::printf("the reply to tool %d is refused\n", i), 1;
  }

  EngineOptions small;
  small.cache_bytes = 300 << 10;
  small.threads = 4;
  small.jit = Jit::kWarm;
  const auto engine = std::make_shared<EngineCore>(vocab, small);
  std::atomic<int> wrong{0};
  const auto work = [&](int seed) {
    std::mt19937 rng(static_cast<unsigned>(seed));
    for (int r = 0; r < rounds; ++r) {
      const auto grammar = engine->compile(ag::test::dispatch(tags, "<f"));
      const int i = static_cast<int>(rng() % kTools);
      if (digest(grammar, reply(i)) != expected[i]) ++wrong;
      std::vector<Matcher> batch(6, Matcher(grammar));
      std::vector<std::vector<std::uint32_t>> rows(batch.size(), std::vector<std::uint32_t>(vocab->words()));
      Workers::instance().parallel(batch.size(), 4, [&](std::size_t k) {
        batch[k].accept_bytes("so <f");
        batch[k].fill_by_walk(rows[k].data());
      });
      for (const auto& row : rows) wrong += row != rows[0];
      try {
        Workers::instance().parallel(40, 4, [&](std::size_t k) {
          Matcher own(grammar);
          std::vector<std::uint32_t> row(vocab->words());
          own.fill_by_walk(row.data());
          if (k == 30) throw ValueError("thirty");
        });
        ++wrong;
      } catch (const ValueError&) {
      }
      for (int b = 0; b < 20; ++b) {  // in quick succession, so that threads watch for the next one
        std::atomic<int> count{0};
        Workers::instance().parallel(64, 4, [&](std::size_t) { ++count; });
        wrong += count != 64;
      }
      if (r % 16 == 15) engine->clear();
      engine->stats();
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(work, t);
  for (auto& t : threads) t.join();
  Workers::instance().stop();
  std::printf("%d threads, %d rounds each: %d wrong\n", kThreads, rounds, wrong.load());
  return wrong != 0;
}
