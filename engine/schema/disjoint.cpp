// Proofs that nothing is in a shape, or that two shapes have nothing in common. "false" only means: not proved.
#include <algorithm>
#include <unordered_map>

#include "schema/compiler.h"

namespace ag::schema {

namespace {
constexpr int kProofDepth = 6;  // how far below a schema a contradiction is looked for

// Nothing but patterns that no anchor or look-around ties to a place: a text with a match of each after the other is
// such a string, unless one of them has no match at all.
bool all_found_anywhere(const StringPart& part) {
  auto tied = [](const Pattern& p) {
    return p.text.find_first_of("^$") != std::string_view::npos || p.text.find("(?") != std::string_view::npos ||
           p.text.find("\\b") != std::string_view::npos || p.text.find("\\B") != std::string_view::npos;
  };
  return part.not_patterns.empty() && part.formats.empty() && part.not_formats.empty() && part.excluded.empty() &&
         part.max_length == kNoMax && std::none_of(part.patterns.begin(), part.patterns.end(), tied);
}
}  // namespace

bool Compiler::surely_empty(NodeId id, int depth) {
  if (id == kNever || id == kAny || depth == 0) return id == kNever;
  struct Probe {
    std::uint32_t& count;
    explicit Probe(std::uint32_t& c) : count(c) { ++count; }
    ~Probe() { --count; }
  } probe(probing_);
  try {
    return surely_empty(*shape(id), depth - 1);
  } catch (const Circular&) {
    return false;
  }
}

bool Compiler::surely_empty(const Shape& s, int depth) {
  return !s.scalars && std::all_of(s.numbers.begin(), s.numbers.end(), [&](auto p) { return surely_empty(*p); }) &&
         std::all_of(s.strings.begin(), s.strings.end(), [&](auto p) { return surely_empty(*p); }) &&
         std::all_of(s.arrays.begin(), s.arrays.end(), [&](auto p) { return surely_empty(*p, depth); }) &&
         std::all_of(s.objects.begin(), s.objects.end(), [&](auto p) { return surely_empty(*p, depth); });
}

bool Compiler::surely_empty(const NumberPart& part) {
  if (part.finite) return part.values.empty();
  bool bounded = part.integer && (!part.minimum.empty() || !part.exclusive_minimum.empty()) &&
                 (!part.maximum.empty() || !part.exclusive_maximum.empty());
  bool hard = !part.multiple_of.empty() || !part.not_multiple_of.empty() || !part.excluded.empty() || bounded;
  if (!hard) return false;
  try {
    if (std::optional<bool> known = is_empty(language(part))) return *known;
  } catch (const GrammarError&) {  // said again, with its place, where the terminal is made
  }
  if (searches_left_ == 0) return false;
  --searches_left_;
  return !number_terminal(part);
}

bool Compiler::surely_empty(const StringPart& part) {
  if (part.finite) return part.values.empty();
  std::size_t constraints = part.patterns.size() + part.not_patterns.size() + part.formats.size() +
                            part.not_formats.size() + part.excluded.size() + (part.max_length != kNoMax);
  if (constraints < 2 || searches_left_ == 0 || all_found_anywhere(part)) return false;
  --searches_left_;
  try {
    return is_empty(language(part)).value_or(false);
  } catch (const GrammarError&) {  // what is wrong with a pattern is said where the pattern is used
    return false;
  }
}

bool Compiler::surely_empty(const ArrayPart& part, int depth) {
  for (std::size_t i = 0; i < part.min_items && i <= part.prefix.size(); ++i) {
    if (surely_empty(i < part.prefix.size() ? part.prefix[i] : part.item, depth)) return true;
  }
  constexpr std::size_t kFewItems = 16;
  return std::any_of(part.contains.begin(), part.contains.end(), [&](const Contains& c) {
    if (c.min > 0 && surely_empty(c.value, depth)) return true;
    std::uint64_t counted = 0;  // items that must be there and can only be such as count
    for (std::size_t i = c.from; c.max < kFewItems && i < part.min_items && i < kFewItems; ++i) {
      NodeId item = i < part.prefix.size() ? part.prefix[i] : part.item;
      counted += surely_empty(both(item, negate(c.value)), depth);
    }
    return counted > c.max;
  });
}

bool Compiler::surely_empty(const ObjectPart& part, int depth) {
  return std::any_of(part.properties.begin(), part.properties.end(),
                     [&](const Property& p) { return p.required && surely_empty(p.value, depth); });
}

template <class Part>
bool Compiler::hopeless(const Part& part) {
  constexpr int kShallow = 2;
  if constexpr (requires { surely_empty(part, kShallow); }) {
    return surely_empty(part, kShallow);
  } else {
    return surely_empty(part);
  }
}
template bool Compiler::hopeless(const NumberPart&);
template bool Compiler::hopeless(const StringPart&);
template bool Compiler::hopeless(const ArrayPart&);
template bool Compiler::hopeless(const ObjectPart&);

bool Compiler::surely_disjoint(const Shape& a, const Shape& b) {
  if (a.scalars & b.scalars) return false;
  auto apart = [&](auto list_a, auto list_b, auto empty) {
    for (auto x : list_a) {
      for (auto y : list_b) {
        auto meet = intersect(x, y);
        if (meet && !empty(*meet)) return false;
      }
    }
    return true;
  };
  return apart(a.numbers, b.numbers, [&](const NumberPart& p) { return surely_empty(p); }) &&
         apart(a.strings, b.strings, [&](const StringPart& p) { return surely_empty(p); }) &&
         apart(a.arrays, b.arrays, [&](const ArrayPart& p) { return surely_empty(p, kProofDepth); }) &&
         apart(a.objects, b.objects, [&](const ObjectPart& p) { return surely_empty(p, kProofDepth); });
}

// Whether every value is in at most one of the branches, for the usual reasons: types, or a property that tells them
// apart.
bool Compiler::told_apart(const std::vector<const Shape*>& branches) {
  std::uint8_t scalars = 0;
  std::size_t numbers = 0, strings = 0, arrays = 0, objects = 0;
  for (const Shape* s : branches) {
    if (s->scalars & scalars) return false;
    scalars |= s->scalars;
    numbers += !s->numbers.empty(), strings += !s->strings.empty();
    arrays += !s->arrays.empty(), objects += !s->objects.empty();
  }
  if (numbers > 1 || strings > 1 || arrays > 1) return false;
  return objects <= 1 || discriminated(branches);
}

bool Compiler::discriminated(const std::vector<const Shape*>& branches) {
  const ObjectPart* first = nullptr;
  for (const Shape* s : branches) {
    if (!first && !s->objects.empty()) first = s->objects[0];
  }
  ++probing_;
  bool found = false;
  try {
    for (std::size_t p = 0; p < first->properties.size() && !found; ++p) {
      found = first->properties[p].required && discriminates(branches, first->properties[p].name);
    }
  } catch (const Circular&) {
  } catch (...) {
    --probing_;
    throw;
  }
  --probing_;
  return found;
}

// Whether each branch requires the property and no two give it a common value, all of them being listed strings.
bool Compiler::discriminates(const std::vector<const Shape*>& branches, std::string_view name) {
  std::unordered_map<std::string_view, const Shape*> seen;
  for (const Shape* branch : branches) {
    for (const ObjectPart* part : branch->objects) {
      auto property = std::find_if(part->properties.begin(), part->properties.end(),
                                   [&](const Property& p) { return p.name == name && p.required; });
      if (property == part->properties.end()) return false;
      const Shape& value = *shape(property->value);
      if (value.scalars || !value.numbers.empty() || !value.arrays.empty() || !value.objects.empty()) return false;
      for (const StringPart* s : value.strings) {
        if (!s->finite) return false;
        for (std::string_view text : s->values) {
          if (seen.try_emplace(text, branch).first->second != branch) return false;
        }
      }
    }
  }
  return true;
}

}  // namespace ag::schema
