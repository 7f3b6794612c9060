// From array parts to the builder's arrays, and to the rules for contains and uniqueItems.
#include <algorithm>
#include <map>
#include <unordered_set>

#include "grammar/array_contains.h"
#include "grammar/array_unique.h"
#include "schema/compiler.h"

namespace ag::schema {

namespace {

constexpr std::size_t kMaxListed = 2000;        // states looked at to find a language's strings
constexpr std::uint64_t kMaxDistinct = 10'000;  // minItems beside uniqueItems
constexpr std::uint64_t kMaxSpelled = 1'000;    // the same for values that are told apart as they are spelled
constexpr std::uint64_t kLong = 16;             // characters, which few strings will have if they may be shorter
constexpr std::size_t kFewValues = 256;         // of a language whose strings are listed

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

// Whether at each place in a string few characters may follow, but for escapes.
bool narrow(Terminal& terminal) {
  constexpr std::size_t kFew = 32;
  std::vector<std::uint32_t> todo{Terminal::kStart};
  std::unordered_set<std::uint32_t> seen(todo.begin(), todo.end());
  for (std::size_t i = 0; i < todo.size(); ++i) {
    std::size_t ways = 0;
    for (unsigned b = 0; b < 256; ++b) {
      if (b == '\\') continue;
      std::uint32_t to = terminal.next(todo[i], static_cast<std::uint8_t>(b)) & Terminal::kStateMask;
      if (to == Terminal::kDead) continue;
      ++ways;
      if (seen.insert(to).second) todo.push_back(to);
    }
    if (ways > kFew || seen.size() > kMaxListed) return false;
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
                "Make the items scalars without a greatest length, set maxItems to 1, or drop uniqueItems.");
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

// uniqueItems, for items whose values can be told apart as they are read: scalars. Nothing, with the reason, for others.
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

  if (!distinct_numbers(item, &spec) || !distinct_strings(part, &spec)) {
    return refuse("the strings that an item may be could run out");
  }
  if (!spec.spelled.empty() && part.min_items > kMaxSpelled) return refuse("minItems is too large");
  auto rule = std::make_unique<UniqueArrayRule>(std::move(spec), pool_);
  if (!rule->enough()) {
    conflict("uniqueItems", "there are fewer values than minItems asks for");
    return Symbol{};
  }
  return builder_.rule(std::move(rule));
}

// null, true, false and a few numbers: one literal each. Many numbers are told apart as they are spelled.
bool Compiler::distinct_numbers(const Shape& item, UniqueArraySpec* spec) {
  auto literal = [&](std::vector<std::string> texts) { spec->literals.push_back(one_of_texts(std::move(texts))); };
  if (item.scalars & Shape::kNull) literal({"null"});
  if (item.scalars & Shape::kTrue) literal({"true"});
  if (item.scalars & Shape::kFalse) literal({"false"});
  std::map<Decimal, std::vector<std::string>> listed;  // by value: its spellings
  bool many = false;
  for (const NumberPart* p : item.numbers) {
    std::optional<std::vector<std::string>> few = p->finite ? std::nullopt : few_integers(*p);
    many = many || (!p->finite && !few);
    for (const std::string& n : few.value_or(std::vector<std::string>{})) {
      if (contains(*p, n)) listed[Decimal::parse(n)] = {n};
    }
    for (std::string_view v : p->values) {
      for (std::string& spelling : spellings(*p, v)) listed[Decimal::parse(v)].push_back(std::move(spelling));
    }
  }
  if (!many && spec->literals.size() + listed.size() <= UniqueArrayRule::kMaxLiterals) {
    for (auto& [value, texts] : listed) literal(std::move(texts));
    return true;
  }
  std::vector<std::string> texts;
  for (auto& [value, more] : listed) texts.insert(texts.end(), more.begin(), more.end());
  if (!texts.empty()) spec->spelled.push_back(pool_.regex(one_of_pattern(std::move(texts))));
  for (const NumberPart* p : item.numbers) {
    if (p->finite || few_integers(*p)) continue;
    if (TerminalPtr terminal = number_terminal(*p)) spec->spelled.push_back(std::move(terminal));
  }
  return true;
}

// Listed strings; or those of one kind that always has more, but for those of a greatest length; or strings that are
// told apart as they are spelled, where few characters may follow each other. False for others: which prefix of theirs
// is used up, no mask could say.
bool Compiler::distinct_strings(const ArrayPart& part, UniqueArraySpec* spec) {
  const Shape& item = *shape(part.item);
  std::vector<const StringPart*> open;
  std::vector<std::string> listed;
  for (const StringPart* p : item.strings) {
    if (p->finite) {
      listed.insert(listed.end(), p->values.begin(), p->values.end());
    } else if (std::optional<std::vector<std::string>> values = finite_values(language(*p), kFewValues)) {
      listed.insert(listed.end(), values->begin(), values->end());
    } else {
      open.push_back(p);
    }
  }
  std::sort(listed.begin(), listed.end());
  listed.erase(std::unique(listed.begin(), listed.end()), listed.end());
  if (open.empty()) {
    spec->strings = std::move(listed);
    return true;
  }
  if (open.size() == 1) {
    std::erase_if(listed, [&](const std::string& v) { return contains(*open[0], v); });
    TerminalPtr terminal = string_terminal(*open[0]);
    const bool bounded = terminal && terminal->counted() && terminal->max_units() != kNoMax;
    StringLanguage unbounded = language(*open[0]);
    unbounded.max_length = kNoMax;
    const std::uint64_t lengths =
        std::min<std::uint64_t>(open[0]->max_length - open[0]->min_length, UniqueArrayRule::kLengths);
    const bool room =
        !bounded || (open[0]->max_length >= kLong && std::max<std::uint64_t>(spec->min_items, 1) <= lengths);
    if (listed.empty() && terminal && room &&
        (open[0] == &kAnyString || endless(*(bounded ? pool_.json_string(unbounded) : terminal)))) {
      spec->open = language(*open[0]);
      if (bounded)
        note(Note::kNarrowed, *part.unique, "uniqueItems",
             "after a string of the greatest length come shorter ones only");
      return true;
    }
  }
  std::vector<TerminalPtr> kinds;
  if (!listed.empty()) kinds.push_back(pool_.json_strings(listed));
  for (const StringPart* p : open) {
    if (TerminalPtr terminal = string_terminal(*p)) kinds.push_back(std::move(terminal));
  }
  if (!std::all_of(kinds.begin(), kinds.end(), [](const TerminalPtr& t) { return narrow(*t); })) return false;
  spec->spelled.insert(spec->spelled.end(), kinds.begin(), kinds.end());
  return true;
}

}  // namespace ag::schema
