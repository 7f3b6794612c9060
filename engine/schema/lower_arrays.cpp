// From array parts to the builder's arrays, and to the rules for contains and uniqueItems.
#include <algorithm>
#include <map>

#include "grammar/array_contains.h"
#include "grammar/array_unique.h"
#include "schema/compiler.h"

namespace ag::schema {

namespace {

constexpr std::size_t kMaxListed = 2000;        // states looked at to find a language's strings
constexpr std::uint64_t kMaxDistinct = 10'000;  // minItems beside uniqueItems

// Whether from every state of a string's terminal there are infinitely many ways on, so that a new value is always
// left.
bool endless(Terminal& terminal) {
  if (terminal.counted() && terminal.max_units() != kNoMax) return false;
  std::vector<std::vector<std::uint32_t>> from{{}, {}};  // state -> states that lead to it
  std::vector<std::uint32_t> ways{0, 0};                 // state -> bytes that lead on
  std::vector<std::uint32_t> todo{Terminal::kStart};
  while (!todo.empty()) {
    std::uint32_t state = todo.back();
    todo.pop_back();
    for (unsigned b = 0; b < 256; ++b) {
      std::uint32_t to = terminal.next(state, static_cast<std::uint8_t>(b)) & Terminal::kStateMask;
      if (to == Terminal::kDead) continue;
      if (to >= from.size()) {
        from.resize(to + 1);
        ways.resize(to + 1);
      }
      if (from.size() > kMaxListed) return false;
      if (from[to].empty() && to != Terminal::kStart) todo.push_back(to);
      from[to].push_back(state);
      ++ways[state];
    }
  }
  // What is taken away from the ends on has finitely many completions: that may be nothing but the closing quote.
  for (std::uint32_t s = 1; s < from.size(); ++s) {
    if (ways[s] == 0 && !from[s].empty()) todo.push_back(s);
  }
  while (!todo.empty()) {
    std::uint32_t state = todo.back();
    todo.pop_back();
    if (!terminal.accepting(state)) return false;
    for (std::uint32_t before : from[state]) {
      if (--ways[before] == 0) todo.push_back(before);
    }
  }
  return true;
}

// The integers of a part with two near bounds, as text.
std::optional<std::vector<std::string>> few_integers(const NumberPart& part) {
  std::string_view low = part.minimum.empty() ? part.exclusive_minimum : part.minimum;
  std::string_view high = part.maximum.empty() ? part.exclusive_maximum : part.maximum;
  if (!part.integer || low.empty() || high.empty()) return std::nullopt;
  Decimal a = Decimal::parse(low), b = Decimal::parse(high);
  if (a.plain_size() > 15 || b.plain_size() > 15) return std::nullopt;
  long long first = std::stoll(a.plain()) - 1, last = std::stoll(b.plain()) + 1;
  if (last - first > static_cast<long long>(UniqueArrayRule::kMaxLiterals) + 2) return std::nullopt;
  std::vector<std::string> out;
  for (long long i = first; i <= last; ++i) out.push_back(std::to_string(i));
  return out;
}

}  // namespace

Symbol Compiler::lower(const ArrayPart& part) {
  if (part.unique) {
    std::string why;
    if (std::optional<Symbol> distinct = lower_distinct(part, &why)) return *distinct;
    unsupported(*part.unique, "uniqueItems", "distinct items cannot be enforced here: " + why,
                "List the items in an enum, make them strings, set maxItems to 1, or drop uniqueItems.");
  }
  if (!part.contains.empty()) return lower_counted(part);
  ArraySpec spec;
  for (NodeId id : part.prefix) spec.prefix.push_back(lower(id));
  spec.item = lower(part.item);
  spec.min_items = part.min_items;
  spec.max_items = part.max_items;
  spec.whitespace = options_.whitespace;
  return builder_.array(std::move(spec));
}

// contains: each item is taken as one that counts or as one that does not.
Symbol Compiler::lower_counted(const ArrayPart& part) {
  constexpr std::size_t kMaxContains = 4;
  const Value& schema = *part.contains[0].at;
  CountedArraySpec spec;
  for (const Contains& c : part.contains) spec.bounds.push_back({c.min, c.max});
  spec.min_items = part.min_items;
  spec.max_items = part.max_items;
  spec.whitespace = options_.whitespace;
  std::size_t prefix = part.prefix.size();
  for (const Contains& c : part.contains)
    prefix = std::max<std::size_t>(prefix, std::min<std::uint64_t>(c.from, part.max_items));
  spec.prefix.resize(prefix);
  if (part.contains.size() > kMaxContains || CountedArrayRule::places(spec) > CountedArrayRule::kMaxPlaces) {
    fail(schema, "contains", "the bounds of contains and of the array's length are too large together",
         "Lower maxItems, minContains or maxContains.");
  }
  auto cells = [&](std::size_t index, NodeId item) {
    std::vector<CountedArraySpec::Cell> out;
    for (std::uint32_t counts = 0; counts < 1u << part.contains.size(); ++counts) {
      NodeId value = item;
      for (std::size_t j = 0; j < part.contains.size(); ++j) {
        const Contains& c = part.contains[j];
        if (index < c.from) {
          if (counts >> j & 1) value = kNever;
        } else if (counts >> j & 1) {
          value = both(value, c.value);
        } else if (c.max != kNoMax) {
          value = both(value, negate(c.value));
        }
      }
      if (Symbol s = lower(value)) out.push_back({s, counts});
    }
    return out;
  };
  for (std::size_t i = 0; i < prefix; ++i)
    spec.prefix[i] = cells(i, i < part.prefix.size() ? part.prefix[i] : part.item);
  spec.item = cells(prefix, part.item);
  return builder_.rule(std::make_unique<CountedArrayRule>(std::move(spec), pool_));
}

// uniqueItems, for items whose values can be told apart as they are read: listed values, and strings. Nothing, with the
// reason, for others.
std::optional<Symbol> Compiler::lower_distinct(const ArrayPart& part, std::string* why) {
  auto refuse = [&](const char* reason) {
    *why = reason;
    return std::nullopt;
  };
  if (!part.contains.empty()) return refuse("the array has contains as well");
  if (part.min_items > kMaxDistinct) return refuse("minItems is too large");
  const Shape& item = *shape(part.item);
  for (NodeId id : part.prefix) {
    if (shape(id) != &item) return refuse("the items at the start have schemas of their own");
  }
  if (!item.arrays.empty() || !item.objects.empty()) return refuse("an item may be an array or an object");
  UniqueArraySpec spec;
  spec.min_items = part.min_items;
  spec.max_items = part.max_items;
  spec.whitespace = options_.whitespace;

  std::map<Decimal, std::vector<std::string>> numbers;  // by value: its spellings
  for (const NumberPart* p : item.numbers) {
    std::optional<std::vector<std::string>> few = p->finite ? std::nullopt : few_integers(*p);
    if (!p->finite && !few) return refuse("an item may be any of many numbers");
    if (few) {
      for (const std::string& n : *few) {
        if (contains(*p, n)) numbers[Decimal::parse(n)] = {n};
      }
    }
    for (std::string_view v : p->values) {
      for (std::string& spelling : spellings(*p, v)) numbers[Decimal::parse(v)].push_back(std::move(spelling));
    }
  }
  auto literal = [&](std::vector<std::string> texts) { spec.literals.push_back(one_of_texts(std::move(texts))); };
  if (item.scalars & Shape::kNull) literal({"null"});
  if (item.scalars & Shape::kTrue) literal({"true"});
  if (item.scalars & Shape::kFalse) literal({"false"});
  for (auto& [value, texts] : numbers) literal(std::move(texts));
  if (spec.literals.size() > UniqueArrayRule::kMaxLiterals) return refuse("an item may be any of many numbers");

  for (const StringPart* p : item.strings) {
    if (p->finite) {
      spec.strings.insert(spec.strings.end(), p->values.begin(), p->values.end());
      continue;
    }
    if (item.strings.size() > 1) return refuse("an item may be a string of several kinds");
    TerminalPtr terminal = string_terminal(*p);
    bool plain = p == &kAnyString;
    if (!terminal || (!plain && !endless(*terminal))) return refuse("the strings that an item may be could run out");
    spec.open = language(*p);
  }
  std::sort(spec.strings.begin(), spec.strings.end());
  spec.strings.erase(std::unique(spec.strings.begin(), spec.strings.end()), spec.strings.end());
  if (!spec.open && spec.strings.size() + spec.literals.size() < spec.min_items) {
    conflict("uniqueItems", "there are fewer values than minItems asks for");
    return Symbol{};
  }
  return builder_.rule(std::make_unique<UniqueArrayRule>(std::move(spec), pool_));
}

}  // namespace ag::schema
