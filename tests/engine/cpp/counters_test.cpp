// What work costs, in numbers that are the same on every machine: nodes a build, bytes stepped a mask, allocations a
// token. A change that makes one of them larger has to say why.
#include <cstdlib>
#include <new>

#include "check.h"
#include "specs.h"

namespace {
std::uint64_t allocations = 0;
}

void* operator new(std::size_t size) {
  ++allocations;
  if (void* p = std::malloc(size ? size : 1)) return p;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size ? size : 1);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace {

using namespace ag;

SpecPtr tools(int n) {
  std::vector<SpecPtr> tags;
  for (int i = 0; i < n; ++i) {
    const std::string k = "key" + std::to_string(i);
    const std::string text = R"({"type":"object","properties":{")" + k +
                             R"(":{"type":"string"},"e":{"enum":["on","off"]},"n":{"type":"integer"}},"required":[")" +
                             k + R"("],"additionalProperties":false})";
    tags.push_back(test::tag("<f" + std::to_string(i) + ">", test::schema(text), "</f>"));
  }
  return test::dispatch(std::move(tags), "<f");
}

struct Engine {
  std::shared_ptr<EngineCore> core;
  std::vector<std::uint32_t> row;
  explicit Engine(const std::shared_ptr<const Vocabulary>& vocab)
      : core(std::make_shared<EngineCore>(vocab, EngineOptions{.threads = 1})), row(vocab->words()) {}

  void follow(Matcher& m, std::string_view text) {
    for (const char c : text) {
      m.fill(row.data());
      CHECK(m.accept(static_cast<std::uint8_t>(c)));
    }
  }
};

std::uint64_t steps_of(const std::function<void()>& work) {
  const std::uint64_t before = bytes_stepped();
  work();
  return bytes_stepped() - before;
}

// A reply costs some builds the first time, none the second, and none for another tool's like parts.
void builds() {
  Engine engine(test::vocabulary());
  const SpecPtr spec = tools(3);
  const auto grammar = engine.core->compile(spec);
  const std::string reply = R"(so <f1>{"key1": "ab", "e": "on", "n": 12}</f> ab)";
  Matcher first(grammar);
  engine.follow(first, reply);
  const EngineStats cold = engine.core->stats();
  CHECK_TEXT(cold.builds <= 75, std::to_string(cold.builds));
  CHECK_TEXT(cold.nodes_walked <= 6'500, std::to_string(cold.nodes_walked));
  Matcher again(engine.core->compile(spec));
  engine.follow(again, reply);
  const EngineStats warm = engine.core->stats();
  CHECK(warm.builds == cold.builds);
  Matcher other(grammar);
  engine.follow(other, R"(so <f2>{"key2": "ab", "e": "on", "n": 12}</f> ab)");
  const std::uint64_t like = engine.core->stats().builds - warm.builds;
  CHECK_TEXT(like <= cold.builds / 3, std::to_string(like));
}

// A mask is put together from entries: the parser steps no byte for it.
void pushes() {
  Engine engine(test::vocabulary());
  Matcher m(engine.core->compile(tools(50)));
  const std::string reply = R"(so <f17>{"key17": "ab", "e": "off", "n": 12}</f> ab)";
  std::uint64_t filling = 0;
  for (const char c : reply) {
    filling += steps_of([&] { m.fill(engine.row.data()); });
    CHECK(steps_of([&] { CHECK(m.accept(static_cast<std::uint8_t>(c))); }) <= 1);
  }
  CHECK_TEXT(filling == 0, std::to_string(filling));
}

// Where nothing changes from token to token, a mask costs no allocation, and a token its step of the history.
void steady() {
  Engine engine(test::vocabulary());
  Matcher m(engine.core->compile(tools(3)));
  const auto count = [](const std::function<void()>& work) {
    const std::uint64_t before = allocations;
    work();
    return allocations - before;
  };
  for (const std::string_view start : {R"(a b a)", R"( <f0>{"key0": "ab)"}) {
    engine.follow(m, start);
    engine.follow(m, "aaaa");
    for (int i = 0; i < 100; ++i) {
      CHECK(count([&] { m.fill(engine.row.data()); }) == 0);
      CHECK(count([&] { CHECK(m.accept('a')); }) == 1);
      CHECK(steps_of([&] { CHECK(m.accept('a')); }) == 0);
    }
  }
  // And no more than its configuration where it does.
  const std::string rest = R"(", "e": "off", "n": 12}</f> ab)";
  for (int i = 0; i < 2; ++i) {  // a mask is kept when it is asked for again
    Matcher warm = m.fork();
    engine.follow(warm, rest);
  }
  for (const char c : rest) {
    const std::uint64_t filled = count([&] { m.fill(engine.row.data()); });
    CHECK_TEXT(filled == 0, std::to_string(filled) + " for a mask before " + c);
    const std::uint64_t taken = count([&] { CHECK(m.accept(static_cast<std::uint8_t>(c))); });
    CHECK_TEXT(taken <= 2, std::to_string(taken) + " for " + c);
  }
}

// What one reply gives back, the next one takes: no allocation but for what is kept of masks.
void replies() {
  Engine engine(test::vocabulary());
  const auto grammar = engine.core->compile(tools(3));
  const std::string reply = R"(so <f1>{"key1": "ab", "e": "on", "n": 12}</f> ab)";
  const auto once = [&] {
    Matcher m(grammar);
    for (const char c : reply) CHECK(m.accept(static_cast<std::uint8_t>(c)));
  };
  once();
  const std::uint64_t before = allocations;
  once();
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK_TEXT(allocations == before, std::to_string(allocations - before));
#endif
}

// A fork is one object; its history is shared.
void forks() {
  CHECK(sizeof(Matcher) <= 64);
  CHECK(sizeof(HistoryState) <= 64);
  Engine engine(test::vocabulary());
  Matcher m(engine.core->compile(tools(3)));
  engine.follow(m, "some text");
  const std::uint64_t before = allocations;
  Matcher fork = m.fork();
  fork.rollback(3);
  CHECK(allocations == before);
}

}  // namespace

int main() {
  builds();
  pushes();
  steady();
  replies();
  forks();
  return failures ? 1 : 0;
}
