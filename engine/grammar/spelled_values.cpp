#include "grammar/spelled_values.h"

#include <algorithm>
#include <bitset>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>
#include <unordered_set>

#include "regular/codepoints.h"
#include "regular/decimal.h"

namespace ag {

namespace {

// What two spellings of one value have in common: 1, 1.0 and 10e-1; "a" and "\u0061".
std::string value_of(std::string_view spelling) {
  if (spelling.starts_with('"')) {
    if (spelling.size() < 2 || !spelling.ends_with('"')) return {};
    return "s" + regular::json_unescape(spelling.substr(1, spelling.size() - 2));
  }
  const std::optional<regular::Decimal> number = regular::read_decimal(spelling);
  if (!number) return {};
  if (number->zero()) return "0";
  return (number->negative ? "-" : "+") + number->digits + "e" + std::to_string(number->exponent);
}

std::uint64_t hash_of(std::string_view text) { return ~std::hash<std::string_view>{}(text); }

std::string_view value(const SeenKey& key) {
  return std::string_view(key.text, key.size).substr(SpelledValues::spelling(key).size() + 1);
}

bool is_taken(std::string_view wanted, const SeenKey* taken) {
  for (; taken; taken = taken->previous)
    if (SpelledValues::kept_here(*taken) && value(*taken) == wanted) return true;
  return false;
}

}  // namespace

SpelledValues::SpelledValues(std::vector<TerminalPtr> kinds) : kinds_(std::move(kinds)) {
  constexpr std::size_t kMostStates = 4'000;  // of a terminal that is looked at; beyond, every byte may occur
  std::bitset<256> occur;
  for (const TerminalPtr& kind : kinds_) {
    std::vector<Terminal::State> todo{Terminal::kStart};
    std::unordered_set<Terminal::State> seen(todo.begin(), todo.end());
    for (std::size_t i = 0; i < todo.size() && !occur.all(); ++i) {
      if (seen.size() > kMostStates) occur.set();
      for (unsigned b = 0; b < 256; ++b) {
        const Terminal::State to = kind->next(todo[i], static_cast<std::uint8_t>(b)) & Terminal::kStateMask;
        if (to == Terminal::kDead) continue;
        occur.set(b);
        if (seen.insert(to).second) todo.push_back(to);
      }
    }
  }
  for (unsigned b = 0; b < 256; ++b)
    if (occur[b]) alphabet_.push_back(static_cast<char>(b));
}

const SeenKey* SpelledValues::keep(std::string_view spelling, const SeenKey* before, Arena& arena) {
  std::string text(spelling);
  text.push_back('\0');
  text += value_of(spelling);
  char* copy = arena.array<char>(text.size());
  std::copy(text.begin(), text.end(), copy);
  return arena.make<SeenKey>(before, copy, static_cast<std::uint32_t>(text.size()), hash_of(text), false);
}

bool SpelledValues::kept_here(const SeenKey& key) { return key.hash == hash_of({key.text, key.size}); }

std::string_view SpelledValues::spelling(const SeenKey& key) {
  const std::string_view text(key.text, key.size);
  return text.substr(0, text.find('\0'));
}

bool SpelledValues::step(Place* place, std::uint8_t byte) const {
  Terminal& kind = *kinds_[place->kind];
  const std::uint32_t next = kind.next(place->state, byte);
  place->state = next & Terminal::kStateMask;
  place->units += next & Terminal::kUnit ? 1 : 0;
  return place->state != Terminal::kDead && place->units <= kind.max_units() &&
         !((next & Terminal::kClose) && place->units < kind.min_units());
}

std::vector<SpelledValues::Place> SpelledValues::read(std::string_view prefix) const {
  std::vector<Place> out;
  for (std::uint32_t k = 0; k < kinds_.size(); ++k) {
    Place place{k, Terminal::kStart, 0};
    if (std::all_of(prefix.begin(), prefix.end(), [&](char c) { return step(&place, static_cast<std::uint8_t>(c)); }))
      out.push_back(place);
  }
  return out;
}

bool SpelledValues::alive(std::string_view prefix, const SeenKey* taken) const {
  for (const Place& place : read(prefix)) {
    if (!taken) return true;
    const std::string text = std::string(prefix) + kinds_[place.kind]->shortest(place.state, place.units);
    if (!is_taken(value_of(text), taken)) return true;
  }
  return taken && !fresh(prefix, taken, 1).empty();
}

bool SpelledValues::complete(std::string_view spelling, const SeenKey* taken) const {
  const std::vector<Place> places = read(spelling);
  return std::any_of(places.begin(), places.end(),
                     [&](const Place& p) { return kinds_[p.kind]->accepting(p.state); }) &&
         !is_taken(value_of(spelling), taken);
}

// Best first. The search may give up, but never on a completion's way that it has been allowed before: what follows a
// prefix is looked at in the same order from each longer one.
std::vector<std::string> SpelledValues::fresh(std::string_view prefix, const SeenKey* taken, std::uint64_t wanted,
                                              const std::vector<std::string>& avoided) const {
  struct Node {
    std::string text;
    Place place;
    std::uint64_t length;
    bool operator<(const Node& other) const {
      return std::tie(length, text, place.kind) > std::tie(other.length, other.text, other.place.kind);
    }
  };
  std::unordered_set<std::string> known;
  for (const std::string& text : avoided) known.insert(value_of(text));
  std::uint64_t seen = avoided.size();
  for (; taken; taken = taken->previous) {
    if (!kept_here(*taken)) continue;
    known.emplace(value(*taken));
    ++seen;
  }
  std::vector<std::string> out;
  std::priority_queue<Node> queue;
  const auto push = [&](std::string text, const Place& place) {
    const std::uint32_t rest = kinds_[place.kind]->min_rest(place.state, place.units);
    const std::uint64_t length = text.size() + rest;
    queue.push({std::move(text), place, length});
  };
  for (const Place& place : read(prefix)) push(std::string(prefix), place);
  constexpr std::uint64_t kStepsForOne = 64;
  for (std::uint64_t steps = kStepsForOne * (seen + wanted + 8); steps > 0 && out.size() < wanted && !queue.empty();
       --steps) {
    const Node at = queue.top();
    queue.pop();
    if (kinds_[at.place.kind]->accepting(at.place.state) && known.insert(value_of(at.text)).second)
      out.push_back(at.text);
    bool escapes_only = true;
    for (const char c : alphabet_) {
      if (c == '\\' && !escapes_only) continue;  // a last resort; it stands behind the quote and the digits
      Place to = at.place;
      if (!step(&to, static_cast<std::uint8_t>(c))) continue;
      escapes_only = false;
      push(at.text + c, to);
    }
  }
  return out;
}

}  // namespace ag
