#include "regular/number_avoiding.h"

#include <algorithm>

#include "base/error.h"

namespace ag::regular {

namespace {
constexpr std::uint64_t kMaxDivisor = std::uint64_t{1} << 59;
constexpr std::size_t kMaxStates = 20'000;
}  // namespace

AvoidingNumber::AvoidingNumber(NumberPartPtr base, const std::vector<Decimal>& divisors) : base_(std::move(base)) {
  for (const Decimal& d : divisors)
    scale_ = std::max<std::uint32_t>(scale_, static_cast<std::uint32_t>(std::max<std::int64_t>(-d.exponent, 0)));
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
    divisors_.push_back(value);
  }
  explore();
  measure();
}

AvoidingNumber::Place AvoidingNumber::read(const Place& place, char byte) const {
  Place out = place;
  out.base = base_->step(place.base, byte);
  if (byte == '.') out.point = true;
  if (byte < '0' || byte > '9') return out;
  if (out.point && out.fraction == scale_) {
    out.finer = out.finer || byte != '0';
    return out;
  }
  out.fraction += out.point;
  for (std::size_t i = 0; i < divisors_.size(); ++i)
    out.rests[i] = (out.rests[i] * 10 + static_cast<std::uint64_t>(byte - '0')) % divisors_[i];
  return out;
}

bool AvoidingNumber::avoids(const Place& place) const {
  if (place.finer) return true;
  for (std::size_t i = 0; i < divisors_.size(); ++i) {
    std::uint64_t rest = place.rests[i];
    for (std::uint32_t f = place.fraction; f < scale_; ++f) rest = rest * 10 % divisors_[i];
    if (rest == 0) return false;
  }
  return true;
}

void AvoidingNumber::explore() {
  std::map<Place, State> index;
  std::vector<Place> places(1);
  const auto intern = [&](const Place& place) -> State {
    if (place.base == kDead) return kDead;
    const auto [it, fresh] = index.try_emplace(place, static_cast<State>(places.size()));
    if (fresh) {
      places.push_back(place);
      rows_.emplace_back();
      rows_.back().accepting = base_->accepting(place.base) && avoids(place);
    }
    return it->second;
  };
  start_ = intern({base_->start(), false, false, 0, std::vector<std::uint64_t>(divisors_.size())});
  for (State s = 1; s < places.size(); ++s) {
    if (places.size() > kMaxStates)
      throw GrammarError("the opposite of multipleOf needs too many states", "", "multipleOf",
                         "Use a smaller divisor.");
    const Place here = places[s];
    for (std::size_t i = 0; i < kBytes.size(); ++i) {
      const State to = intern(read(here, kBytes[i]));
      rows_[s].to[i] = to;
    }
  }
}

// Distances from the ends backwards, until nothing gets shorter; then the way to what reaches no end is closed.
void AvoidingNumber::measure() {
  std::vector<std::vector<State>> from(rows_.size());
  std::vector<State> wave;
  for (State s = 1; s < rows_.size(); ++s) {
    for (const State to : rows_[s].to) from[to].push_back(s);
    if (rows_[s].accepting) rows_[s].distance = 0, wave.push_back(s);
  }
  for (std::size_t i = 0; i < wave.size(); ++i)
    for (const State before : from[wave[i]])
      if (rows_[before].distance == kFar) rows_[before].distance = rows_[wave[i]].distance + 1, wave.push_back(before);
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
