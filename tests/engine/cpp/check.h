// A few lines of test framework, and brute-force checks that any terminal must pass.
#pragma once

#include <cstdio>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "regular/terminals.h"

inline int failures = 0;

#define CHECK(condition)                                                           \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                                  \
    }                                                                              \
  } while (false)

#define CHECK_TEXT(condition, text)                                                                                \
  do {                                                                                                             \
    if (!(condition)) {                                                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s [%s]\n", __FILE__, __LINE__, #condition, std::string(text).c_str()); \
      ++failures;                                                                                                  \
    }                                                                                                              \
  } while (false)

#define CHECK_THROWS(type, expression)                                                        \
  do {                                                                                        \
    bool thrown = false;                                                                      \
    try {                                                                                     \
      (void)(expression);                                                                     \
    } catch (const type&) {                                                                   \
      thrown = true;                                                                          \
    }                                                                                         \
    if (!thrown) {                                                                            \
      std::fprintf(stderr, "%s:%d: no %s from %s\n", __FILE__, __LINE__, #type, #expression); \
      ++failures;                                                                             \
    }                                                                                         \
  } while (false)

// A position inside a terminal: its state and counter.
struct Position {
  ag::Terminal::State state = ag::Terminal::kStart;
  std::uint64_t counter = 0;
  auto operator<=>(const Position&) const = default;
};

// One byte on, obeying the counter's rules; false when it may not follow.
inline bool advance(ag::Terminal& t, Position* at, std::uint8_t byte) {
  const std::uint32_t step = t.next(at->state, byte);
  const ag::Terminal::State to = step & ag::Terminal::kStateMask;
  if (to == ag::Terminal::kDead) return false;
  if ((step & ag::Terminal::kUnit) && at->counter >= t.max_units()) return false;
  if ((step & ag::Terminal::kClose) && at->counter < t.min_units()) return false;
  at->state = to;
  at->counter += (step & ag::Terminal::kUnit) ? 1 : 0;
  return true;
}

inline bool walk(ag::Terminal& t, std::string_view text, Position* at) {
  for (const char c : text)
    if (!advance(t, at, static_cast<std::uint8_t>(c))) return false;
  return true;
}

inline bool accepts(ag::Terminal& t, std::string_view text) {
  Position at;
  return walk(t, text, &at) && t.accepting(at.state);
}

// The label of a text: -1 when it leads nowhere, -2 when it may only go on.
inline std::int64_t label_of(ag::Terminal& t, std::string_view text) {
  Position at;
  if (!walk(t, text, &at)) return -1;
  return t.accepting(at.state) ? static_cast<std::int64_t>(t.label(at.state)) : -2;
}

// Explores the whole terminal and checks what the interface promises of every state: it is live, min_rest() is the true
// distance, shortest() has that length and is accepted, live() agrees with next(), range() and shortest_label() are
// exact.
inline void check_terminal(ag::Terminal& t, std::size_t max_positions = 20'000) {
  std::vector<Position> order{{}};
  std::map<Position, std::size_t> index{{Position{}, 0}};
  std::vector<std::vector<std::size_t>> before(1);
  for (std::size_t i = 0; i < order.size() && order.size() < max_positions; ++i) {
    const std::bitset<256> live = t.live(order[i].state);
    for (int b = 0; b < 256; ++b) {
      CHECK(live[static_cast<std::size_t>(b)] ==
            (t.next(order[i].state, static_cast<std::uint8_t>(b)) != ag::Terminal::kDead));
      Position to = order[i];
      if (!advance(t, &to, static_cast<std::uint8_t>(b))) continue;
      const auto [it, fresh] = index.try_emplace(to, order.size());
      if (fresh) {
        order.push_back(to);
        before.emplace_back();
      }
      before[it->second].push_back(i);
    }
  }
  const bool whole = order.size() < max_positions;
  // Distances to acceptance, in all and by label, backwards.
  const auto distances = [&](auto wanted) {
    std::vector<std::uint32_t> distance(order.size(), 0xffff'ffff);
    std::queue<std::size_t> queue;
    for (std::size_t i = 0; i < order.size(); ++i)
      if (t.accepting(order[i].state) && wanted(t.label(order[i].state))) {
        distance[i] = 0;
        queue.push(i);
      }
    for (; !queue.empty(); queue.pop())
      for (const std::size_t p : before[queue.front()])
        if (distance[p] == 0xffff'ffff) {
          distance[p] = distance[queue.front()] + 1;
          queue.push(p);
        }
    return distance;
  };
  const std::vector<std::uint32_t> any = distances([](std::uint32_t) { return true; });
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Position at = order[i];
    const std::uint32_t rest = t.min_rest(at.state, at.counter);
    if (whole) CHECK_TEXT(rest == any[i], std::to_string(rest) + " for " + std::to_string(any[i]));
    const std::string text = t.shortest(at.state, at.counter);
    CHECK_TEXT(text.size() == rest, text);
    Position end = at;
    CHECK_TEXT(walk(t, text, &end) && t.accepting(end.state), text);
  }
  if (!t.labelled() || !whole) return;
  std::set<std::uint32_t> labels;
  for (const Position& at : order)
    if (t.accepting(at.state)) labels.insert(t.label(at.state));
  std::vector<bool> others(order.size(), false);
  for (const std::uint32_t label : labels) {
    const std::vector<std::uint32_t> distance = distances([&](std::uint32_t l) { return l == label; });
    for (std::size_t i = 0; i < order.size(); ++i) {
      const bool reached = distance[i] != 0xffff'ffff;
      if (label >= t.others_begin()) {
        others[i] = others[i] || reached;
      } else {
        const ag::Terminal::Range r = t.range(order[i].state);
        CHECK(reached == (label >= r.lo && label < r.hi));
      }
      std::string text;
      CHECK(t.shortest_label(order[i].state, label, &text) == reached);
      if (!reached) continue;
      Position end = order[i];
      CHECK_TEXT(
          text.size() == distance[i] && walk(t, text, &end) && t.accepting(end.state) && t.label(end.state) == label,
          text);
    }
  }
  for (std::size_t i = 0; i < order.size(); ++i) CHECK(t.range(order[i].state).others == others[i]);
}

// Calls f with every text over the alphabet (items may be several bytes long) of at most `length` items.
template <class F>
void each_text(const std::vector<std::string>& alphabet, std::size_t length, F f, const std::string& prefix = "") {
  f(prefix);
  if (length == 0) return;
  for (const std::string& item : alphabet) each_text(alphabet, length - 1, f, prefix + item);
}
