#include "regular/cp_automaton.h"

#include <algorithm>
#include <queue>

namespace ag::regular {

CpAutomaton::State CpAutomaton::step(State state, Cp cp) {
  const Pieces& pieces = row(state);
  const auto it = std::upper_bound(pieces.begin(), pieces.end(), cp, [](Cp c, const Piece& p) { return c < p.lo; });
  if (it == pieces.begin() || cp > std::prev(it)->hi) return kDead;
  return std::prev(it)->to;
}

std::uint32_t CpAutomaton::search(State from, std::uint32_t want, bool quoted) {
  using Item = std::pair<std::uint32_t, State>;
  std::priority_queue<Item, std::vector<Item>, std::greater<>> queue;
  std::unordered_map<State, std::uint32_t> best{{from, 0}};
  queue.push({0, from});
  while (!queue.empty()) {
    const auto [cost, state] = queue.top();
    queue.pop();
    if (cost > best[state]) continue;
    if (accepting(state) && (want == kAnyLabel || label(state) == want)) return cost;
    for (const Piece& piece : row(state)) {
      const std::uint32_t to = add_rest(cost, cost_of(cheapest(piece.lo, piece.hi, quoted), quoted));
      const auto [it, fresh] = best.try_emplace(piece.to, to);
      if (!fresh && it->second <= to) continue;
      it->second = to;
      queue.push({to, piece.to});
    }
  }
  return kNoRest;
}

void append_piece(CpAutomaton::Pieces* row, Cp lo, Cp hi, CpAutomaton::State to) {
  if (to == CpAutomaton::kDead || lo > hi) return;
  if (!row->empty() && row->back().to == to && row->back().hi + 1 == lo)
    row->back().hi = hi;
  else
    row->push_back({lo, hi, to});
}

}  // namespace ag::regular
