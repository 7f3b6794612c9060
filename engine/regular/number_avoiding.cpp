#include "regular/number_avoiding.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "regular/effort.h"
#include "regular/tuples.h"

namespace ag::regular {

namespace {
constexpr std::size_t kMaxPlaces = 40'000, kStepsPerPlace = 5;
// What a grid's values are multiples of, in units of 10^-scale; 0 when that is not known, or no whole number.
std::uint64_t unit(const Grid& grid, std::uint32_t scale) {
  std::uint64_t out = grid.divisor;
  for (std::uint32_t s = grid.scale; s < scale; ++s) {
    if (out > kMaxDivisor / 10) return 0;
    out *= 10;
  }
  for (std::uint32_t s = scale; s < grid.scale; ++s) {
    if (out % 10 != 0) return 0;
    out /= 10;
  }
  return out;
}

// The least number that tells the multiples of `divisor` apart among the multiples of `on`: the divisor without the
// primes that these bring as often.
std::uint64_t needed(std::uint64_t divisor, std::uint64_t on) {
  std::uint64_t out = divisor / std::gcd(divisor, on), rest = divisor / out;
  for (std::uint64_t common; (common = std::gcd(out, rest)) > 1;) {
    out *= common;
    rest /= common;
  }
  return out;
}

}  // namespace

AvoidingNumber::AvoidingNumber(NumberPartPtr base, const Grid* grid, const std::vector<Decimal>& divisors)
    : base_(std::move(base)) {
  for (const Decimal& d : divisors)
    scale_ = std::max<std::uint32_t>(scale_, static_cast<std::uint32_t>(std::max<std::int64_t>(-d.exponent, 0)));
  std::vector<std::uint64_t> values;
  for (const Decimal& d : divisors) {
    std::uint64_t value = 0;
    const std::string digits =
        d.digits + std::string(static_cast<std::size_t>(std::min<std::int64_t>(d.exponent + scale_, 20)), '0');
    for (const char c : digits) {
      value = value * 10 + static_cast<std::uint64_t>(c - '0');
      if (value >= kMaxDivisor / 10)
        throw GrammarError("the opposite of a multipleOf with that many digits", "", "multipleOf",
                           "Round it, or leave it out.");
    }
    values.push_back(value);
  }
  const std::uint64_t on = grid ? unit(*grid, scale_) : 0;
  for (std::uint64_t& value : values) {
    if (on != 0) value = needed(value, on);
    if (on != 0 && value == 1) return;  // the grid's values are all multiples of it
  }
  std::sort(values.begin(), values.end());
  for (const std::uint64_t value : values) add(value);
  for (Group& group : groups_) {
    group.moduli.assign(scale_ + 1, group.modulus);
    for (std::uint32_t f = scale_; f-- > 0;)
      group.moduli[f] = group.moduli[f + 1] / std::gcd<std::uint64_t, std::uint64_t>(group.moduli[f + 1], 10);
  }
  explore();
  measure();
}

// What is no multiple of a divisor is none of the divisor's multiples either.
void AvoidingNumber::add(std::uint64_t divisor) {
  for (const Group& group : groups_)
    for (const std::uint64_t d : group.divisors)
      if (divisor % d == 0) return;
  for (Group& group : groups_) {
    const std::uint64_t factor = divisor / std::gcd(divisor, group.modulus);
    if (factor >= kMaxDivisor / 10 / group.modulus) continue;
    group.modulus *= factor;
    group.divisors.push_back(divisor);
    return;
  }
  groups_.push_back({.modulus = divisor, .divisors = {divisor}});
}

std::uint64_t AvoidingNumber::pack(const Head& h) const {
  return std::uint64_t{h.base} << 32 | std::uint64_t{h.fraction} << 2 | std::uint64_t{h.point} << 1 | h.finer;
}

AvoidingNumber::Head AvoidingNumber::unpack(std::uint64_t word) const {
  return {static_cast<State>(word >> 32), (word >> 1 & 1) != 0, (word & 1) != 0, static_cast<std::uint32_t>(word) >> 2};
}

// The base proves of each of its states that it leads somewhere, so each step is asked for once.
const AvoidingNumber::Steps& AvoidingNumber::base_steps(State base) {
  if (base >= base_steps_.size()) {
    base_steps_.resize(base + 1);
    base_known_.resize(base + 1, false);
  }
  if (!base_known_[base]) {
    base_known_[base] = true;
    for (std::size_t i = 0; i < kBytes.size(); ++i) base_steps_[base][i] = base_->step(base, kBytes[i]);
  }
  return base_steps_[base];
}

bool AvoidingNumber::read(std::size_t byte, std::vector<std::uint64_t>* place) {
  Head head = unpack(place->front());
  head.base = base_steps(head.base)[byte];
  if (head.base == kDead) return false;
  const bool digit = byte < 10;
  if (kBytes[byte] == '.') head.point = true;
  if (digit && head.point && head.fraction == scale_) {
    if (byte != 0 && !head.finer) {
      head.finer = true;  // it is no multiple of anything now
      std::fill(place->begin() + 1, place->end(), 0);
    }
  } else if (digit) {
    head.fraction += head.point;
    for (std::size_t i = 0; i < groups_.size(); ++i)
      (*place)[i + 1] = ((*place)[i + 1] * 10 + byte) % groups_[i].moduli[head.fraction];
  }
  place->front() = pack(head);
  return true;
}

bool AvoidingNumber::accepts(const std::uint64_t* place) const {
  const Head head = unpack(place[0]);
  if (!base_->accepting(head.base)) return false;
  if (head.finer) return true;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    std::uint64_t rest = place[i + 1];
    for (std::uint32_t f = head.fraction; f < scale_; ++f) rest = rest * 10 % groups_[i].modulus;
    for (const std::uint64_t d : groups_[i].divisors)
      if (rest % d == 0) return false;
  }
  return true;
}

void AvoidingNumber::explore() {
  Tuples<std::uint64_t> places(1 + groups_.size());
  const auto intern = [&](const std::vector<std::uint64_t>& place) -> State {
    const auto [state, fresh] = places.intern(place.data());
    if (fresh) {
      rows_.emplace_back();
      rows_.back().accepting = accepts(place.data());
    }
    return state;
  };
  std::vector<std::uint64_t> place(places.width(), 0);
  place[0] = pack({base_->start(), false, false, 0});
  if (base_->start() == kDead) return;
  start_ = intern(place);
  for (State s = 1; s < places.size(); ++s) {
    if (places.size() > kMaxPlaces || !Effort::spend(kStepsPerPlace))
      throw GrammarError("the opposite of multipleOf needs too many states", "", "multipleOf",
                         "Use a smaller divisor.");
    for (std::size_t i = 0; i < kBytes.size(); ++i) {
      place.assign(places[s], places[s] + places.width());
      if (!read(i, &place)) continue;
      const State to = intern(place);
      rows_[s].to[i] = to;
    }
  }
}

// Distances from the ends backwards, until nothing gets shorter; then the way to what reaches no end is closed.
void AvoidingNumber::measure() {
  std::vector<std::uint32_t> first(rows_.size() + 1, 0);  // by state: where those that lead to it stand in `from`
  for (State s = 1; s < rows_.size(); ++s)
    for (const State to : rows_[s].to) ++first[to];
  for (std::size_t s = 0, sum = 0; s < first.size(); ++s)
    sum += std::exchange(first[s], static_cast<std::uint32_t>(sum));
  std::vector<State> from(first.back());
  std::vector<std::uint32_t> at(first.begin(), first.end() - 1);
  for (State s = 1; s < rows_.size(); ++s)
    for (const State to : rows_[s].to) from[at[to]++] = s;
  std::vector<State> wave;
  for (State s = 1; s < rows_.size(); ++s)
    if (rows_[s].accepting) rows_[s].distance = 0, wave.push_back(s);
  for (std::size_t i = 0; i < wave.size(); ++i)
    for (std::uint32_t f = first[wave[i]]; f < first[wave[i] + 1]; ++f) {
      if (rows_[from[f]].distance != kFar) continue;
      rows_[from[f]].distance = rows_[wave[i]].distance + 1;
      wave.push_back(from[f]);
    }
  for (Row& row : rows_)
    for (State& to : row.to)
      if (rows_[to].distance == kFar) to = kDead;
  if (rows_[start_].distance == kFar) start_ = kDead;
}

NumberPart::State AvoidingNumber::step(State state, char byte) {
  const std::size_t i = kBytes.find(byte);
  return i == std::string_view::npos ? kDead : rows_[state].to[i];
}

std::string AvoidingNumber::shortest(State state) {
  std::string out;
  while (rows_[state].distance > 0) {
    const Row& row = rows_[state];
    std::size_t i = 0;
    while (row.to[i] == kDead || rows_[row.to[i]].distance + 1 != row.distance) ++i;
    out.push_back(kBytes[i]);
    state = row.to[i];
  }
  return out;
}

}  // namespace ag::regular
