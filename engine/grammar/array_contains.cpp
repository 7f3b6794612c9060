#include "grammar/array_contains.h"

#include <algorithm>

#include "grammar/parts.h"

namespace ag {

std::uint64_t CountedArrayRule::last_count(const CountedArraySpec& spec) {
  if (spec.max_items != kNoMax) return spec.max_items;
  return std::max<std::uint64_t>({spec.min_items, spec.prefix.size(), 1});  // 1: whether a comma comes before the next
}

std::uint64_t CountedArrayRule::places(const CountedArraySpec& spec) {
  std::uint64_t total = std::min(last_count(spec), kMaxPlaces) + 1;
  for (const auto& b : spec.bounds)
    total = std::min(mul_cost(total, std::min(last_of(b), kMaxPlaces) + 1), kMaxPlaces + 1);
  return total;
}

CountedArrayRule::CountedArrayRule(CountedArraySpec spec, TerminalPool& pool)
    : spec_(std::move(spec)), last_count_(last_count(spec_)) {
  for (const auto& b : spec_.bounds) per_count_ *= last_of(b) + 1;
  rest_.assign((last_count_ + 1) * per_count_, kInfinite);
  open_ = pool.punctuation('[', false, true, spec_.whitespace);
  close_first_ = pool.punctuation(']', false, false, spec_.whitespace);
  close_ = pool.punctuation(']', true, false, spec_.whitespace);
  comma_ = pool.punctuation(',', true, true, spec_.whitespace);
}

bool CountedArrayRule::parts(Parts& out) const {
  out.number(Parts::kCountedArray).number(static_cast<std::uint64_t>(spec_.whitespace));
  out.number(spec_.min_items).number(spec_.max_items).number(spec_.bounds.size());
  for (const auto& b : spec_.bounds) out.number(b.min).number(b.max);
  const auto cells = [&](const std::vector<Cell>& list) {
    out.number(list.size());
    for (const Cell& c : list) out.number(c.counts).symbol(c.value);
  };
  out.number(spec_.prefix.size());
  for (const auto& list : spec_.prefix) cells(list);
  cells(spec_.item);
  return true;
}

const std::vector<CountedArraySpec::Cell>& CountedArrayRule::cells_at(std::uint64_t place) const {
  std::uint64_t n = items_at(place);
  return n < spec_.prefix.size() ? spec_.prefix[n] : spec_.item;
}

bool CountedArrayRule::may_close(std::uint64_t place) const {
  if (items_at(place) < spec_.min_items) return false;
  std::uint64_t counts = place % per_count_;
  for (auto b = spec_.bounds.rbegin(); b != spec_.bounds.rend(); ++b) {
    if (counts % (last_of(*b) + 1) < b->min) return false;
    counts /= last_of(*b) + 1;
  }
  return true;
}

std::uint64_t CountedArrayRule::after(std::uint64_t place, const Cell& cell) const {
  std::uint64_t n = items_at(place), counts = place % per_count_, step = 1, next = 0;
  if (n >= spec_.max_items) return kInfinite;
  for (std::size_t j = spec_.bounds.size(); j-- > 0;) {
    const auto& b = spec_.bounds[j];
    std::uint64_t size = last_of(b) + 1, count = counts % size;
    counts /= size;
    if (cell.counts >> j & 1) {
      // Counted at its maximum: one too many. Without a maximum, the cell that does not count says the same.
      if (count == last_of(b)) return kInfinite;
      ++count;
    }
    next += count * step;
    step *= size;
  }
  return std::min(n + 1, last_count_) * per_count_ + next;
}

// A cell's item, the comma before it, and the shortest end after it.
std::uint64_t CountedArrayRule::item_cost(std::uint64_t place, const Cell& cell) const {
  std::uint64_t to = after(place, cell);
  if (to == kInfinite || to == place) return kInfinite;  // an item that changes nothing is no step towards an end
  std::uint64_t comma = items_at(place) == 0 ? 0 : comma_->min_rest(Terminal::kStart, 0);
  return add_cost(comma, add_cost(min_of(cell.value), rest_[to]));
}

const CountedArraySpec::Cell* CountedArrayRule::cheapest(std::uint64_t place) const {
  const Cell* best = nullptr;
  for (const Cell& c : cells_at(place)) {
    std::uint64_t cost = item_cost(place, c);
    if (cost != kInfinite && (!best || cost < item_cost(place, *best))) best = &c;
  }
  return best;
}

// Items only lead to places with larger numbers, so one pass from the end settles all.
void CountedArrayRule::settle() {
  for (std::uint64_t place = rest_.size(); place-- > 0;) {
    const Cell* best = may_close(place) ? nullptr : cheapest(place);
    rest_[place] = may_close(place) ? 1 : best ? item_cost(place, *best) : kInfinite;
  }
}

void CountedArrayRule::expand(std::uint32_t state, const Payload& payload, Edges& out) const {
  std::uint64_t place = payload.word;
  auto items = [&](auto take) {
    for (const Cell& c : cells_at(place)) {
      std::uint64_t to = after(place, c);
      if (to != kInfinite && rest_[to] != kInfinite && is_productive(c.value) && !take(c, to)) return;
    }
  };
  auto add_items = [&] {
    items([&](const Cell& c, std::uint64_t to) {
      add_edge(out, c.value, 2, {to});
      return true;
    });
  };
  switch (state) {
    case 0:
      add_edge(out, {open_.get()}, 1, {0});
      break;
    case 1:
      if (may_close(place)) add_edge(out, {close_first_.get()}, 4, payload);
      add_items();
      break;
    case 2:
      if (may_close(place)) add_edge(out, {close_.get()}, 4, payload);
      items([&](const Cell&, std::uint64_t) {
        add_edge(out, {comma_.get()}, 3, payload);
        return false;
      });
      break;
    case 3:
      add_items();
      break;
    default:
      add_done(out);
  }
}

std::uint64_t CountedArrayRule::min_cost(std::uint32_t state, const Payload& payload) const {
  std::uint64_t place = payload.word;
  switch (state) {
    case 0:
      return add_cost(1, rest_[0]);
    case 1:
    case 2:
      return rest_[place];
    case 3: {
      std::uint64_t best = kInfinite;
      for (const Cell& c : cells_at(place)) {
        std::uint64_t to = after(place, c);
        if (to != kInfinite) best = std::min(best, add_cost(min_of(c.value), rest_[to]));
      }
      return best;
    }
    default:
      return 0;
  }
}

void CountedArrayRule::write_min(std::uint32_t state, const Payload& payload, Ending& out) const {
  if (state == 4) return;
  std::uint64_t place = payload.word;
  if (state == 0) out.append({open_.get()});
  if (state == 3) {  // the item that is due may be one that changes nothing
    const Cell* best = nullptr;
    std::uint64_t best_cost = kInfinite;
    for (const Cell& c : cells_at(place)) {
      std::uint64_t to = after(place, c);
      std::uint64_t cost = to == kInfinite ? kInfinite : add_cost(min_of(c.value), rest_[to]);
      if (cost < best_cost) best = &c, best_cost = cost;
    }
    if (!best) return;
    out.append(best->value);
    place = after(place, *best);
  }
  while (!may_close(place)) {
    const Cell* best = cheapest(place);
    if (!best) return;
    if (items_at(place) > 0) out.append({comma_.get()});
    out.append(best->value);
    place = after(place, *best);
  }
  out.append({close_first_.get()});
}

std::size_t CountedArrayRule::bytes() const {
  std::size_t cells = spec_.item.size();
  for (const auto& p : spec_.prefix) cells += p.size();
  return sizeof *this + cells * sizeof(Cell) + rest_.size() * sizeof(std::uint64_t);
}

}  // namespace ag
