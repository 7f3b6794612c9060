#include "regular/explored.h"

#include <algorithm>
#include <map>
#include <queue>

#include "regular/effort.h"

namespace ag::regular {

namespace {
constexpr std::uint64_t kMaxEdges = 10'000'000;  // edges looked at for the lengths of a pattern's strings
}

std::unique_ptr<ExploredDfa> ExploredDfa::explore(CpAutomaton& source, std::size_t max_states) {
  auto out = std::unique_ptr<ExploredDfa>(new ExploredDfa);
  if (source.start() == kDead) return nullptr;
  std::unordered_map<State, State> number{{source.start(), 1}};
  std::vector<State> order{kDead, source.start()};
  for (std::size_t i = 1; i < order.size(); ++i) {
    Place place;
    if (source.accepting(order[i])) place.label = source.label(order[i]);
    place.row = source.row(order[i]);
    for (Piece& piece : place.row) {
      const auto [it, fresh] = number.try_emplace(piece.to, static_cast<State>(order.size()));
      if (fresh) order.push_back(piece.to);
      piece.to = it->second;
    }
    if (order.size() > max_states + 1)
      throw GrammarError("the string's keywords together need more than " + std::to_string(max_states) + " states", "",
                         "pattern", "Simplify the pattern, or lower its repetition bounds.");
    out->states_.push_back(std::move(place));
  }
  out->start_ = 1;
  out->prune();
  if (out->start_ == kDead) return nullptr;
  return out;
}

// Keeps what reaches an accepting state.
void ExploredDfa::prune() {
  std::vector<std::vector<State>> before(states_.size());
  std::vector<bool> live(states_.size(), false);
  std::vector<State> todo;
  for (State s = 1; s < states_.size(); ++s) {
    for (const Piece& piece : states_[s].row) before[piece.to].push_back(s);
    if (accepting(s)) {
      live[s] = true;
      todo.push_back(s);
    }
  }
  while (!todo.empty()) {
    const State s = todo.back();
    todo.pop_back();
    for (const State p : before[s])
      if (!live[p]) {
        live[p] = true;
        todo.push_back(p);
      }
  }
  std::vector<State> number(states_.size(), kDead);
  std::vector<Place> kept(1);
  for (State s = 1; s < states_.size(); ++s)
    if (live[s]) {
      number[s] = static_cast<State>(kept.size());
      kept.push_back(std::move(states_[s]));
    }
  for (Place& place : kept) {
    Pieces row;
    for (const Piece& piece : place.row) append_piece(&row, piece.lo, piece.hi, number[piece.to]);
    place.row = std::move(row);
    bytes_ += sizeof(Place) + place.row.size() * sizeof(Piece) + 2 * sizeof(std::uint32_t);
  }
  start_ = number[start_];
  states_ = std::move(kept);
}

const std::vector<std::uint32_t>& ExploredDfa::costs(bool quoted) {
  std::vector<std::uint32_t>& cost = cost_[quoted];
  if (!cost.empty()) return cost;
  cost.assign(states_.size(), kNoRest);
  std::vector<std::vector<std::pair<State, std::uint32_t>>> before(states_.size());
  using Item = std::pair<std::uint32_t, State>;
  std::priority_queue<Item, std::vector<Item>, std::greater<>> queue;
  for (State s = 1; s < states_.size(); ++s) {
    for (const Piece& p : states_[s].row) before[p.to].push_back({s, cost_of(cheapest(p.lo, p.hi, quoted), quoted)});
    if (!accepting(s)) continue;
    cost[s] = 0;
    queue.push({0, s});
  }
  while (!queue.empty()) {
    const auto [c, s] = queue.top();
    queue.pop();
    if (c > cost[s]) continue;
    for (const auto& [p, step] : before[s]) {
      if (add_rest(c, step) >= cost[p]) continue;
      cost[p] = add_rest(c, step);
      queue.push({cost[p], p});
    }
  }
  return cost;
}

std::uint32_t ExploredDfa::min_cost(State state, std::uint32_t, bool quoted) { return costs(quoted)[state]; }

bool ExploredDfa::free_length(bool quoted) {
  bool start_again = false;  // whether the start is met again after a character
  for (State s = 1; s < states_.size(); ++s)
    for (const Piece& piece : states_[s].row) start_again |= piece.to == start_;
  for (State s = 1; s < states_.size(); ++s) {
    if (!accepting(s) && (s != start_ || start_again)) return false;
    const Pieces& row = states_[s].row;
    if (std::none_of(row.begin(), row.end(),
                     [&](const Piece& p) { return cost_of(cheapest(p.lo, p.hi, quoted), quoted) == 1; }))
      return false;
  }
  return true;
}

bool ExploredDfa::has_label(std::uint32_t label) const {
  return std::any_of(states_.begin(), states_.end(), [&](const Place& place) { return place.label == label; });
}

void ExploredDfa::shift_labels() {
  for (Place& place : states_)
    if (place.label != kNoLabel) --place.label;
}

void ExploredDfa::drop(const std::vector<std::uint32_t>& labels) {
  for (Place& place : states_)
    if (std::find(labels.begin(), labels.end(), place.label) != labels.end()) place.label = kNoLabel;
  bytes_ = 0;
  prune();
}

// Tarjan's components (1972) come out behind all that they lead to. A label is met infinitely often from where a cycle
// leads to it.
bool ExploredDfa::endless() const {
  const std::size_t n = states_.size();
  std::uint32_t labels = 0;
  for (const Place& place : states_)
    if (place.label != kNoLabel) labels = std::max(labels, place.label + 1);
  const std::size_t words = labels / 64 + 1;
  std::vector<std::uint64_t> some(n * words, 0), many(n * words, 0);  // by state
  std::vector<std::uint32_t> index(n, 0), low(n, 0), next(n, 0);
  std::vector<bool> open(n, false);
  std::vector<State> path, stack;
  std::uint32_t count = 0;
  const auto finish = [&](std::size_t from) {  // stack[from..] is a component
    std::vector<std::uint64_t> one(words, 0), often(words, 0);
    bool cycle = stack.size() - from > 1;
    for (std::size_t i = from; i < stack.size(); ++i) {
      const Place& place = states_[stack[i]];
      if (place.label != kNoLabel) one[place.label / 64] |= std::uint64_t{1} << place.label % 64;
      for (const Piece& piece : place.row) {
        cycle = cycle || piece.to == stack[i];
        for (std::size_t w = 0; w < words; ++w) {
          one[w] |= some[piece.to * words + w];
          often[w] |= many[piece.to * words + w];
        }
      }
    }
    if (cycle) often = one;
    for (std::size_t i = from; i < stack.size(); ++i) {
      std::copy(one.begin(), one.end(), some.begin() + static_cast<std::ptrdiff_t>(stack[i] * words));
      std::copy(often.begin(), often.end(), many.begin() + static_cast<std::ptrdiff_t>(stack[i] * words));
      open[stack[i]] = false;
    }
    stack.resize(from);
    return one == often;
  };
  const auto enter = [&](State s) {
    index[s] = low[s] = ++count;
    open[s] = true;
    stack.push_back(s);
    path.push_back(s);
  };
  if (start_ != kDead) enter(start_);
  while (!path.empty()) {
    const State s = path.back();
    const Pieces& row = states_[s].row;
    if (next[s] < row.size()) {
      const State to = row[next[s]++].to;
      if (index[to] == 0) {
        enter(to);
      } else if (open[to]) {
        low[s] = std::min(low[s], index[to]);
      }
      continue;
    }
    path.pop_back();
    if (!path.empty()) low[path.back()] = std::min(low[path.back()], low[s]);
    if (low[s] != index[s]) continue;
    const auto from = static_cast<std::size_t>(std::find(stack.rbegin(), stack.rend(), s).base() - stack.begin()) - 1;
    if (!finish(from)) return false;
  }
  return true;
}

BoundedDfa::BoundedDfa(std::unique_ptr<ExploredDfa> base, std::uint64_t min, std::uint64_t max)
    : base_(std::move(base)), min_(min), max_(max) {
  measure();
  start_ = intern(base_->start(), 0);
}

void BoundedDfa::measure() {
  const std::size_t n = base_->size(), words = n / 64 + 1;
  edges_.resize(n);
  std::vector<std::uint32_t> at(n, 0);  // by state: its place among the edges, plus one
  for (State s = 1; s < n; ++s) {
    std::vector<Edge>& edges = edges_[s];
    for (const Piece& piece : base_->row(s)) {
      for (Cp c = piece.lo; c <= std::min<Cp>(piece.hi, 0x7f); ++c) characters_.set(static_cast<std::uint8_t>(c));
      characters_.other = characters_.other || piece.hi > 0x7f;
      if (at[piece.to] == 0) {
        edges.push_back({piece.to, {kNoRest, kNoRest}});
        at[piece.to] = static_cast<std::uint32_t>(edges.size());
      }
      for (const bool quoted : {false, true}) {
        std::uint32_t& cost = edges[at[piece.to] - 1].cost[quoted];
        cost = std::min(cost, cost_of(cheapest(piece.lo, piece.hi, quoted), quoted));
      }
    }
    for (const Edge& edge : edges) at[edge.to] = 0;
    bytes_ += sizeof edges + edges.size() * sizeof(Edge);
  }
  Bits row(words, 0);
  for (State s = 1; s < n; ++s)
    if (base_->accepting(s)) row[s / 64] |= std::uint64_t{1} << s % 64;
  std::map<Bits, std::uint64_t> known;
  std::uint64_t work = 0;
  for (;;) {
    const auto [it, fresh] = known.try_emplace(row, lengths_.size());
    if (!fresh) {
      transient_ = it->second;
      period_ = lengths_.size() - it->second;
      return;
    }
    lengths_.push_back(row);
    bytes_ += sizeof(Bits) + words * sizeof(std::uint64_t);
    Bits next(words, 0);
    for (State s = 1; s < n; ++s)
      for (const Edge& edge : edges_[s]) {
        ++work;
        if (row[edge.to / 64] >> edge.to % 64 & 1) {
          next[s / 64] |= std::uint64_t{1} << s % 64;
          break;
        }
      }
    row = std::move(next);
    if (work > kMaxEdges || !Effort::spend(n / 16 + 1))
      throw GrammarError("the lengths of the pattern's strings are too irregular to bound", "", "maxLength",
                         "Put the bounds into the pattern.");
  }
}

bool BoundedDfa::completes(State base, std::uint64_t length) const {
  const std::uint64_t l = length < lengths_.size() ? length : transient_ + (length - transient_) % period_;
  return lengths_[l][base / 64] >> base % 64 & 1;
}

bool BoundedDfa::live(State base, std::uint64_t count) const {
  if (base == kDead || count > max_) return false;
  const std::uint64_t from = count < min_ ? min_ - count : 0;
  std::uint64_t to = std::max<std::uint64_t>(from, transient_) + period_;
  if (max_ != kNoMax) to = std::min(to, max_ - count);
  for (std::uint64_t l = from; l <= to; ++l)
    if (completes(base, l)) return true;
  return false;
}

CpAutomaton::State BoundedDfa::intern(State base, std::uint64_t count) {
  if (max_ == kNoMax) count = std::min(count, min_);
  if (!live(base, count)) return kDead;
  const std::uint64_t key = count << 20 ^ base;
  const auto [it, fresh] = index_.try_emplace(key, static_cast<State>(places_.size()));
  if (fresh) {
    places_.push_back({base, count, false, {}});
    bytes_ += sizeof(Place) + 48;
  }
  return it->second;
}

// Enough room for a whole token (and a character begun before it, and one after it), and then for some completion of
// each state: the least ones are among the first transient_ + period_ lengths.
CpAutomaton::State BoundedDfa::alike(State state, Runs& runs, bool escaped) {
  const Place& here = places_[state];
  if (here.count <= min_ || max_ == kNoMax) return state;
  const std::uint64_t room = std::uint64_t{runs.longest_run(characters_, escaped)} + 2 + transient_ + period_;
  return max_ - here.count >= room ? intern(here.base, min_) : state;
}

bool BoundedDfa::accepting(State state) {
  const Place& p = places_[state];
  return p.count >= min_ && base_->accepting(p.base);
}

const CpAutomaton::Pieces& BoundedDfa::row(State state) {
  if (places_[state].has_row) return places_[state].row;
  const Place here = places_[state];
  Pieces out;
  for (const Piece& piece : base_->row(here.base))
    append_piece(&out, piece.lo, piece.hi, intern(piece.to, here.count + 1));
  bytes_ += out.size() * sizeof(Piece);
  places_[state].row = std::move(out);
  places_[state].has_row = true;
  return places_[state].row;
}

// By state: bytes of the cheapest completion with exactly `length` characters.
const std::vector<std::uint32_t>& BoundedDfa::exact_costs(std::uint64_t length, bool quoted) {
  auto& rows = exact_[quoted];
  while (rows.size() <= length) {
    std::vector<std::uint32_t> row(base_->size(), kNoRest);
    for (State s = 1; s < row.size(); ++s) {
      if (rows.empty()) {
        if (base_->accepting(s)) row[s] = 0;
        continue;
      }
      for (const Edge& e : edges_[s]) row[s] = std::min(row[s], add_rest(rows.back()[e.to], e.cost[quoted]));
    }
    bytes_ += row.size() * sizeof(std::uint32_t);
    rows.push_back(std::move(row));
  }
  return rows[length];
}

std::uint32_t BoundedDfa::min_cost(State state, std::uint32_t, bool quoted) {
  const Place& here = places_[state];
  const std::uint64_t from = here.count < min_ ? min_ - here.count : 0;
  const std::uint64_t to = max_ == kNoMax ? kNoMax : max_ - here.count;
  std::uint32_t best = kNoRest;
  // A character costs a byte at least, so longer strings than `best` cannot be cheaper.
  for (std::uint64_t l = from; l <= to && l < best; ++l)
    if (completes(here.base, l)) best = std::min(best, exact_costs(l, quoted)[here.base]);
  return best;
}

}  // namespace ag::regular
