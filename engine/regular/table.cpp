#include "regular/table.h"

#include <algorithm>

namespace ag::regular {

namespace {

// The order in which equally short completions are preferred: closing first, then what reads best.
constexpr auto kPreferred = [] {
  std::array<std::uint8_t, 256> order{};
  std::size_t n = 0;
  std::array<bool, 256> seen{};
  const auto put = [&](int b) {
    if (!seen[static_cast<std::size_t>(b)]) {
      seen[static_cast<std::size_t>(b)] = true;
      order[n++] = static_cast<std::uint8_t>(b);
    }
  };
  put('"');
  for (int b = 'a'; b <= 'z'; ++b) put(b);
  for (int b = '0'; b <= '9'; ++b) put(b);
  for (int b = 'A'; b <= 'Z'; ++b) put(b);
  for (int b = 0; b < 256; ++b) put(b);
  return order;
}();

}  // namespace

std::string walk_shortest(Terminal& terminal, Terminal::State state, std::uint64_t counter) {
  std::string out;
  std::uint32_t rest = terminal.min_rest(state, counter);
  if (rest == kNoRest) throw GrammarError("no completion of a reasonable length", "", "", "Lower the minimum length.");
  out.reserve(rest);
  while (rest > 0) {
    bool moved = false;
    for (const std::uint8_t b : kPreferred) {
      const std::uint32_t step = terminal.next(state, b);
      const Terminal::State to = step & Terminal::kStateMask;
      if (to == Terminal::kDead) continue;
      const bool unit = step & Terminal::kUnit;
      if (unit && counter >= terminal.max_units()) continue;
      if ((step & Terminal::kClose) && counter < terminal.min_units()) continue;
      if (terminal.min_rest(to, counter + unit) != rest - 1) continue;
      out.push_back(static_cast<char>(b));
      state = to;
      counter += unit;
      --rest;
      moved = true;
      break;
    }
    if (!moved) throw GrammarError("internal error: a state without its shortest completion");
  }
  return out;
}

TableTerminal::TableTerminal() : bytes_(sizeof(TableTerminal)) { add_state(false, 0); }

TableTerminal::~TableTerminal() {
  for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    Slot* slots = chunks_[chunk].load(std::memory_order_relaxed);
    if (!slots) continue;
    for (std::size_t i = 0; i < (std::size_t{kFirst} << chunk); ++i)
      release(slots[i].row.load(std::memory_order_relaxed));
    delete[] slots;
  }
}

Terminal::State TableTerminal::add_state(bool accepting, std::uint32_t label) {
  const std::uint32_t state = count_.load(std::memory_order_relaxed);
  if (state >= (1u << 26))
    throw GrammarError("a terminal needs too many states", "", "", "Simplify the pattern or lower its bounds.");
  const std::uint32_t at = state + kFirst;
  const auto chunk = static_cast<std::uint32_t>(std::bit_width(at)) - 4;
  if (!chunks_[chunk].load(std::memory_order_relaxed)) {
    const std::size_t size = std::size_t{kFirst} << chunk;
    chunks_[chunk].store(new Slot[size], std::memory_order_release);
    charge(size * sizeof(Slot));
  }
  Slot& made = slot(state);
  made.accepting = accepting;
  made.label = label;
  count_.store(state + 1, std::memory_order_release);
  return state;
}

std::uintptr_t TableTerminal::miss(State state) {
  const std::lock_guard lock(mutex_);
  Slot& here = slot(state);
  std::uintptr_t row = here.row.load(std::memory_order_acquire);
  if (row != 0) return row;
  Row filled{};
  if (state != kDead) fill(state, filled);
  std::size_t size = 0;
  row = pack(filled, &size);
  charge(size);
  // slot() again: fill() may have added chunks, never moved them, so `here` is still the place.
  here.row.store(row, std::memory_order_release);
  return row;
}

std::uintptr_t TableTerminal::pack(const Row& row, std::size_t* size) {
  std::uint32_t live = 0;
  for (const std::uint32_t to : row) live += to != kDead;
  if (live > Sparse::kMax) {
    auto* dense = new Dense{row, {}};
    for (std::size_t b = 0; b < 256; ++b) dense->live[b] = row[b] != kDead;
    *size = sizeof(Dense);
    return reinterpret_cast<std::uintptr_t>(dense);
  }
  auto* sparse = new Sparse;
  for (std::size_t b = 0; b < 256; ++b) {
    if (row[b] == kDead) continue;
    sparse->byte[sparse->size] = static_cast<std::uint8_t>(b);
    sparse->to[sparse->size++] = row[b];
  }
  *size = sizeof(Sparse);
  return reinterpret_cast<std::uintptr_t>(sparse) | 1u;
}

void TableTerminal::release(std::uintptr_t row) {
  if (row & 1u)
    delete reinterpret_cast<Sparse*>(row & ~std::uintptr_t{1});
  else
    delete reinterpret_cast<Dense*>(row);
}

std::bitset<256> TableTerminal::live(State state) {
  std::uintptr_t row = slot(state).row.load(std::memory_order_acquire);
  if (row == 0) row = miss(state);
  if (!(row & 1u)) return reinterpret_cast<const Dense*>(row)->live;
  const auto* sparse = reinterpret_cast<const Sparse*>(row & ~std::uintptr_t{1});
  std::bitset<256> out;
  for (std::uint32_t i = 0; i < sparse->size; ++i) out[sparse->byte[i]] = true;
  return out;
}

std::uint32_t TableTerminal::few_live(State state, std::uint8_t* out) {
  std::uintptr_t row = slot(state).row.load(std::memory_order_acquire);
  if (row == 0) row = miss(state);
  if (!(row & 1u)) return kMany;
  const auto* sparse = reinterpret_cast<const Sparse*>(row & ~std::uintptr_t{1});
  std::copy_n(sparse->byte.begin(), sparse->size, out);
  return sparse->size;
}

const std::uint32_t* TableTerminal::row(State state) {
  std::uintptr_t row = slot(state).row.load(std::memory_order_acquire);
  if (row == 0) row = miss(state);
  return row & 1u ? nullptr : reinterpret_cast<const Dense*>(row)->to.data();
}

Terminal::Range TableTerminal::range(State state) {
  constexpr std::uint64_t kKnown = std::uint64_t{1} << 63, kOthers = std::uint64_t{1} << 62, kPart = (1u << 31) - 1;
  Slot& here = slot(state);
  std::uint64_t packed = here.range.load(std::memory_order_relaxed);
  if (packed == 0) {
    const std::lock_guard lock(mutex_);
    const Range r = compute_range(state);
    packed = kKnown | (r.others ? kOthers : 0) | std::uint64_t{r.lo} << 31 | r.hi;
    here.range.store(packed, std::memory_order_relaxed);
  }
  return {static_cast<std::uint32_t>(packed >> 31 & kPart), static_cast<std::uint32_t>(packed & kPart),
          (packed & kOthers) != 0};
}

std::uint32_t TableTerminal::min_rest(State state, std::uint64_t) {
  Slot& here = slot(state);
  std::uint32_t rest = here.rest.load(std::memory_order_relaxed);
  if (rest != kNoRest) return rest;
  const std::lock_guard lock(mutex_);
  rest = compute_rest(state);
  here.rest.store(rest, std::memory_order_relaxed);
  return rest;
}

}  // namespace ag::regular
