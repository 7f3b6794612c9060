#include "regular/numbers.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "regular/decimal.h"
#include "regular/number_avoiding.h"
#include "regular/number_real.h"
#include "regular/number_scaled.h"

namespace ag::regular {

namespace {

constexpr std::int64_t kMaxScale = 400;

struct End {
  Decimal value;
  bool open = false;
};
struct Interval {
  std::optional<End> low, high;  // absent: unbounded
};

Decimal parse(const std::string& text, const char* keyword) {
  const std::optional<Decimal> value = read_decimal(text);
  if (!value) throw ValueError("'" + text + "' (" + keyword + ") is not a number");
  return *value;
}

// The tighter of an inclusive and an exclusive end; `side` 1 for lower ends, -1 for upper ones.
std::optional<End> end_of(const std::string& closed, const std::string& open, int side, const char* keyword) {
  std::optional<End> out;
  if (!closed.empty()) out = End{parse(closed, keyword), false};
  if (open.empty()) return out;
  const End other{parse(open, keyword), true};
  if (!out || compare(other.value, out->value) * side >= 0) out = other;
  return out;
}

bool empty(const Interval& i) {
  if (!i.low || !i.high) return false;
  const int order = compare(i.low->value, i.high->value);
  return order > 0 || (order == 0 && (i.low->open || i.high->open));
}

bool within(const Interval& i, const Decimal& v) {
  const auto beyond = [&](const End& e, int side) {
    const int order = compare(v, e.value) * side;
    return order > 0 || (order == 0 && !e.open);
  };
  return (!i.low || beyond(*i.low, 1)) && (!i.high || beyond(*i.high, -1));
}

Interval bounds(const NumberLanguage& n) {
  return {end_of(n.minimum, n.exclusive_minimum, 1, "minimum"), end_of(n.maximum, n.exclusive_maximum, -1, "maximum")};
}

// The intervals left between the excluded values.
std::vector<Interval> intervals(const NumberLanguage& n) {
  std::vector<Decimal> excluded;
  for (const std::string& text : n.excluded) excluded.push_back(parse(text, "excluded value"));
  std::sort(excluded.begin(), excluded.end(), [](const Decimal& a, const Decimal& b) { return compare(a, b) < 0; });
  excluded.erase(std::unique(excluded.begin(), excluded.end()), excluded.end());
  std::vector<Interval> out;
  Interval rest = bounds(n);
  for (const Decimal& value : excluded) {
    if (!within(rest, value)) continue;
    Interval below = rest;
    below.high = End{value, true};
    rest.low = End{value, true};
    if (!empty(below)) out.push_back(below);
  }
  if (!empty(rest)) out.push_back(rest);
  return out;
}

// The values of an interval that have one sign, as magnitudes; zero has both.
std::optional<Magnitudes> magnitudes(const Interval& i, bool negative) {
  const Decimal zero;
  Interval side = i;
  std::optional<End>& near = negative ? side.high : side.low;
  if (!near || compare(near->value, zero) * (negative ? -1 : 1) < 0) near = End{zero, false};
  if (empty(side)) return std::nullopt;
  const std::optional<End>& far = negative ? side.low : side.high;
  Magnitudes out;
  out.low = near->value.magnitude();
  out.low_open = near->open;
  out.unbounded = !far;
  if (far) {
    out.high = far->value.magnitude();
    out.high_open = far->open;
  }
  return out;
}

// The divisor and scale of all multipleOf together: their least common multiple.
Grid grid_of(const NumberLanguage& n) {
  const auto refuse = [](const std::string& text) {
    throw GrammarError("multipleOf " + text + " has too many digits to be enforced exactly", "", "multipleOf",
                       "Round it, or leave it out.");
  };
  std::vector<Decimal> parts;
  std::int64_t scale = 0;
  for (const std::string& text : n.multiple_of) {
    parts.push_back(parse(text, "multipleOf"));
    if (parts.back().negative || parts.back().zero())
      throw ValueError("multipleOf must be greater than 0, not " + text);
    scale = std::max(scale, -parts.back().exponent);
    if (scale > kMaxScale) refuse(text);
  }
  Grid grid;
  for (const Decimal& part : parts) {
    std::uint64_t value = 0;
    const std::string digits =
        part.digits +
        std::string(static_cast<std::size_t>(std::min<std::int64_t>(part.exponent + scale, kMaxScale)), '0');
    for (const char c : digits) {
      value = value * 10 + static_cast<std::uint64_t>(c - '0');
      if (value >= kMaxDivisor) refuse(n.multiple_of.front());
    }
    const std::uint64_t factor = value / std::gcd(value, grid.divisor);
    if (factor > kMaxDivisor / grid.divisor / 10) refuse(n.multiple_of.front());
    grid.divisor *= factor;
  }
  if (n.integer) {  // whole numbers bring all the factors of ten themselves
    for (; scale > 0; --scale) grid.divisor /= std::gcd<std::uint64_t, std::uint64_t>(grid.divisor, 10);
  } else if (scale == 0) {
    scale = 1;  // so that "5.0" has its place
    grid.divisor *= 10;
  }
  grid.scale = static_cast<std::uint32_t>(scale);
  return grid;
}

// value·10^scale as digits, rounded up or down to an integer.
std::string scaled(const Decimal& value, std::uint32_t scale, bool up, bool open) {
  const Positional p = positional(value);
  std::string fraction = p.fraction;
  const bool exact = fraction.size() <= scale;
  fraction.resize(scale, '0');
  std::string out = p.whole + fraction;
  const auto change = [&](char from, char to, int by) {  // adds or takes one
    std::size_t i = out.size();
    while (i > 0 && out[i - 1] == from) out[--i] = to;
    if (i == 0)
      out.insert(0, 1, '1');
    else
      out[i - 1] = static_cast<char>(out[i - 1] + by);
  };
  if (up && (!exact || open)) change('9', '0', 1);
  if (!up && exact && open) change('0', '9', -1);
  const std::size_t zeros = std::min(out.find_first_not_of('0'), out.size());
  if (out.size() > scale + 1) out.erase(0, std::min(zeros, out.size() - scale - 1));
  return out;
}

bool less(const std::string& a, const std::string& b) { return a.size() != b.size() ? a.size() < b.size() : a < b; }

// Integers and multiples.
void add_grid(const Magnitudes& m, bool negative, bool integer, Grid grid, std::vector<NumberPartPtr>* out) {
  if (!m.unbounded && m.high_open && m.high.zero()) return;
  grid.low = scaled(m.low, grid.scale, true, m.low_open);
  if (negative && integer && grid.low == "0") grid.low = "1";  // an integer is never "-0"
  grid.unbounded = m.unbounded;
  if (!m.unbounded) {
    grid.high = scaled(m.high, grid.scale, false, m.high_open);
    if (less(grid.high, grid.low)) return;
  }
  auto part = std::make_unique<ScaledNumber>(negative, std::move(grid));
  if (part->start() != NumberPart::kDead) out->push_back(std::move(part));
}

void add_real(const Magnitudes& m, bool negative, std::vector<NumberPartPtr>* out) {
  if (m.unbounded && m.low.zero() && !m.low_open) {
    out->push_back(std::make_unique<FreeNumber>(negative, false));
    return;
  }
  out->push_back(std::make_unique<PositionalNumber>(negative, m));
  auto scientific = std::make_unique<ScientificNumber>(negative, m);
  if (scientific->start() != NumberPart::kDead) out->push_back(std::move(scientific));
}

// Numbers that are no multiples: in positional notation, and in scientific notation below every divisor.
void avoid(const NumberLanguage& n, const Magnitudes& m, bool negative, const Grid* grid,
           std::vector<NumberPartPtr> bases, std::vector<NumberPartPtr>* out) {
  std::vector<Decimal> divisors;
  for (const std::string& text : n.not_multiple_of) divisors.push_back(parse(text, "not multipleOf").magnitude());
  if (!grid) bases.push_back(std::make_unique<PositionalNumber>(negative, m));
  for (NumberPartPtr& base : bases) {
    auto part = std::make_unique<AvoidingNumber>(std::move(base), grid, divisors);
    if (part->start() != NumberPart::kDead) out->push_back(std::move(part));
  }
  if (grid) return;
  Magnitudes small = m;
  if (small.low.zero()) small.low_open = true;
  for (const Decimal& d : divisors) {
    if (!small.unbounded && compare(small.high, d) < 0) continue;
    small.high = d;
    small.high_open = true;
    small.unbounded = false;
  }
  if (compare(small.low, small.high) >= 0) return;
  auto scientific = std::make_unique<ScientificNumber>(negative, small);
  if (scientific->start() != NumberPart::kDead) out->push_back(std::move(scientific));
}

}  // namespace

std::vector<NumberPartPtr> number_parts(const NumberLanguage& n) {
  std::vector<NumberPartPtr> out;
  const bool on_grid = n.integer || !n.multiple_of.empty();
  const Grid grid = on_grid ? grid_of(n) : Grid{};
  for (const Interval& interval : intervals(n))
    for (const bool negative : {false, true}) {
      const std::optional<Magnitudes> m = magnitudes(interval, negative);
      if (!m) continue;
      const bool all = m->unbounded && m->low.zero() && !m->low_open;
      if (!n.not_multiple_of.empty()) {
        std::vector<NumberPartPtr> bases;
        if (on_grid) add_grid(*m, negative, n.integer, grid, &bases);
        avoid(n, *m, negative, on_grid ? &grid : nullptr, std::move(bases), &out);
      } else if (n.integer && grid.divisor == 1 && all)
        out.push_back(std::make_unique<FreeNumber>(negative, true));
      else if (on_grid)
        add_grid(*m, negative, n.integer, grid, &out);
      else
        add_real(*m, negative, &out);
    }
  return out;
}

}  // namespace ag::regular

namespace ag {

std::optional<bool> is_empty(const NumberLanguage& n) {
  using namespace regular;
  const Interval range = bounds(n);
  if (range.low && range.high) return std::nullopt;
  if (!n.integer && n.multiple_of.empty()) return false;
  const Grid grid = grid_of(n);
  // Without end there are values that are multiples of nothing but what the grid's unit is a multiple of.
  const Decimal unit = *read_decimal(std::to_string(grid.divisor) + "e-" + std::to_string(grid.scale));
  return std::any_of(n.not_multiple_of.begin(), n.not_multiple_of.end(),
                     [&](const std::string& of) { return is_multiple(unit, parse(of, "not multipleOf")); });
}

bool contains(const NumberLanguage& n, std::string_view text) {
  using namespace regular;
  const std::optional<Decimal> value = read_decimal(text);
  if (!value || (n.integer && !value->zero() && value->exponent < 0) || !within(bounds(n), *value)) return false;
  for (const std::string& of : n.multiple_of)
    if (!is_multiple(*value, parse(of, "multipleOf"))) return false;
  for (const std::string& of : n.not_multiple_of)
    if (is_multiple(*value, parse(of, "not multipleOf"))) return false;
  for (const std::string& excluded : n.excluded)
    if (parse(excluded, "excluded value") == *value) return false;
  return true;
}

}  // namespace ag
