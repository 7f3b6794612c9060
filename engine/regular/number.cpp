#include "regular/number.h"

#include "regular/decimal.h"

namespace ag::regular {

namespace {
constexpr char kBytes[] = "0123456789-+.eE";
}  // namespace

NumberPart::State FreeNumber::step(State state, char c) {
  const bool digit = is_digit(c);
  switch (state) {
    case kStart:
      if (negative_) return c == '-' ? kMinus : kDead;
      [[fallthrough]];
    case kMinus:
      if (c == '0') return integer_ && negative_ ? kDead : kZero;
      return digit ? kInt : kDead;
    case kInt:
      if (digit) return kInt;
      [[fallthrough]];
    case kZero:
      if (integer_) return kDead;
      return c == '.' ? kPoint : c == 'e' || c == 'E' ? kE : kDead;
    case kPoint:
      return digit ? kFrac : kDead;
    case kFrac:
      return digit ? kFrac : c == 'e' || c == 'E' ? kE : kDead;
    case kE:
      if (c == '+' || c == '-') return c == '+' ? kESign : kEMinus;
      [[fallthrough]];
    case kESign:
    case kEMinus:
      if (!digit) return kDead;
      if (c == '3') return state == kEMinus ? kExpMinus3 : kExp3;
      return c < '3' ? kExp : kExpLast;
    case kExp:
      return digit ? kExpLast : kDead;
    case kExp3:
      return c == '0' ? kExp30 : digit ? kExpDone : kDead;
    case kExp30:
      return digit && c <= '8' ? kExpDone : kDead;
    case kExpMinus3:
      return !digit ? kDead : c < '2' ? kExpLast : c == '2' ? kExpMinus32 : kExpDone;
    case kExpMinus32:
      return digit && c <= '4' ? kExpDone : kDead;
    case kExpLast:
      return digit ? kExpDone : kDead;
    default:
      return kDead;
  }
}

std::string FreeNumber::shortest(State state) {
  if (accepting(state)) return "";
  const std::string first = integer_ && negative_ ? "1" : "0";
  if (state == kStart) return negative_ ? "-" + first : first;
  return state == kMinus ? first : "0";
}

NumberTerminal::NumberTerminal(std::vector<NumberPartPtr> parts) : parts_(std::move(parts)) {
  tuples_.push_back(Tuple(parts_.size(), NumberPart::kDead));
  index_[tuples_[0]] = kDead;
  Tuple start;
  for (const NumberPartPtr& part : parts_) start.push_back(part->start());
  intern(std::move(start));
}

Terminal::State NumberTerminal::intern(Tuple tuple) {
  const auto [it, fresh] = index_.try_emplace(tuple, 0);
  if (!fresh) return it->second;
  bool accepting = false;
  for (std::size_t i = 0; i < parts_.size(); ++i)
    accepting = accepting || (tuple[i] != NumberPart::kDead && parts_[i]->accepting(tuple[i]));
  it->second = add_state(accepting, 0);
  charge(tuple.size() * (2 * sizeof(NumberPart::State) + 64) + 96);  // the parts' own states included, about
  tuples_.push_back(std::move(tuple));
  return it->second;
}

void NumberTerminal::fill(State state, Row& row) {
  const Tuple here = tuples_[state];
  for (const char c : kBytes) {
    if (c == '\0') break;
    Tuple to(here.size(), NumberPart::kDead);
    for (std::size_t i = 0; i < here.size(); ++i)
      if (here[i] != NumberPart::kDead) to[i] = parts_[i]->step(here[i], c);
    row[static_cast<std::uint8_t>(c)] = intern(std::move(to));
  }
}

std::string NumberTerminal::completion(State state) {
  std::string best;
  bool found = false;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (tuples_[state][i] == NumberPart::kDead) continue;
    std::string one = parts_[i]->shortest(tuples_[state][i]);
    if (!found || one.size() < best.size()) best = std::move(one);
    found = true;
  }
  return best;
}

std::uint32_t NumberTerminal::compute_rest(State state) { return static_cast<std::uint32_t>(completion(state).size()); }

std::string NumberTerminal::shortest(State state, std::uint64_t) {
  const std::lock_guard lock(mutex_);
  return completion(state);
}

}  // namespace ag::regular
