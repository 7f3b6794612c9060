// From shapes to the builder's symbols.
#include <algorithm>

#include "grammar/array_contains.h"
#include "schema/compiler.h"

namespace ag::schema {

namespace {

// Children deeper than this wait in a list, so that nesting costs no stack.
constexpr std::uint32_t kDeep = 100;
// Numbers of more digits than this are not written out.
constexpr std::int64_t kMaxDigits = 4096;

// Values that mean the same text for a regular expression.
std::string regex_escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (std::string_view("\\^$.|?*+()[]{}/").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::vector<std::string> strings(List<std::string_view> list) { return {list.begin(), list.end()}; }

}  // namespace

Symbol Compiler::lower(NodeId id) { return id == kNever ? Symbol{} : lower(shape(id)); }

Symbol Compiler::lower(const Shape* s) {
  if (s->state == Shape::kDone) return s->symbol;
  if (s->state == Shape::kOpen) {
    if (!s->symbol) s->symbol = builder_.reserve();
    return s->symbol;
  }
  s->state = Shape::kOpen;
  if (nesting_ >= kDeep) {
    s->symbol = builder_.reserve();
    later_.push_back(s);
    return s->symbol;
  }
  ++nesting_;
  Symbol body = lower_parts(*s);
  --nesting_;
  if (s->symbol) {
    builder_.define(s->symbol, body);
  } else {
    s->symbol = body;
  }
  s->state = Shape::kDone;
  return s->symbol;
}

void Compiler::lower_rest() {
  while (!later_.empty()) {
    const Shape* s = later_.back();
    later_.pop_back();
    nesting_ = 1;
    builder_.define(s->symbol, lower_parts(*s));
    s->state = Shape::kDone;
  }
  nesting_ = 0;
}

Symbol Compiler::lower_parts(const Shape& s) {
  std::vector<Symbol> out;
  lower_literals(s, out);
  std::vector<std::string> values;
  for (const StringPart* p : s.strings) {
    if (p->finite) {
      values.insert(values.end(), p->values.begin(), p->values.end());
    } else {
      out.push_back(builder_.terminal(string_terminal(*p)));
    }
  }
  if (!values.empty()) out.push_back(builder_.terminal(pool_.json_strings(values)));
  for (const NumberPart* p : s.numbers) {
    if (!p->finite) out.push_back(builder_.terminal(number_terminal(*p)));
  }
  for (const ArrayPart* p : s.arrays) out.push_back(lower(*p));
  for (const ObjectPart* p : s.objects) out.push_back(lower(*p));
  std::erase_if(out, [](const Symbol& x) { return !x; });
  if (out.empty()) return {};
  return out.size() == 1 ? out[0] : builder_.choice(std::move(out));
}

// null, true, false and listed numbers: one terminal for all of them.
void Compiler::lower_literals(const Shape& s, std::vector<Symbol>& out) {
  std::vector<std::string> texts;
  if (s.scalars & Shape::kNull) texts.push_back("null");
  if (s.scalars & Shape::kTrue) texts.push_back("true");
  if (s.scalars & Shape::kFalse) texts.push_back("false");
  for (const NumberPart* p : s.numbers) {
    if (!p->finite) continue;
    for (std::string_view value : p->values) {
      Decimal d = Decimal::parse(value);
      bool as_float = value.find_first_of(".eE") != std::string_view::npos && !p->integer;
      if (d.plain_size() > kMaxDigits && !as_float) {
        fail(*root_, "", "the number " + std::string(value.substr(0, 20)) + " is too long to be written out", "Use a shorter number.");
      }
      if (d.integer() && d.plain_size() <= kMaxDigits) texts.push_back(d.plain());
      if (as_float) texts.push_back(d.as_float());  // json.dumps writes the float 1.0 so
    }
  }
  if (texts.empty()) return;
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  if (texts.size() == 1) {
    out.push_back(builder_.literal(texts[0]));
    return;
  }
  std::string pattern;
  for (const std::string& t : texts) pattern.append(pattern.empty() ? "" : "|").append(regex_escaped(t));
  out.push_back(builder_.terminal(pool_.regex(pattern)));
}

// ---- terminals

StringLanguage Compiler::language(const StringPart& part) {
  StringLanguage out;
  for (const Pattern& p : part.patterns) out.patterns.emplace_back(p.text);
  for (const Pattern& p : part.not_patterns) out.not_patterns.emplace_back(p.text);
  out.formats = strings(part.formats);
  out.excluded = strings(part.excluded);
  out.min_length = part.min_length;
  out.max_length = part.max_length;
  if (part.finite) {
    std::string any;
    for (std::string_view v : part.values) any.append(any.empty() ? "^(?:" : "|").append(regex_escaped(v));
    out.patterns.push_back(any.append(")$"));
  }
  return out;
}

TerminalPtr Compiler::string_terminal(const StringPart& part) {
  if (!part.not_formats.empty()) {
    unsupported(*here_, "not", "the opposite of a format cannot be enforced", "Say what is allowed instead of what is not.");
  }
  try {
    return pool_.json_string(language(part));
  } catch (const GrammarError& e) {
    if (!options_.relax) blame_pattern(e, part);
  }
  // Loose: without the patterns that cannot be had.
  StringPart kept = part;
  auto usable = [&](List<Pattern> list) {
    std::vector<Pattern> out;
    for (const Pattern& p : list) {
      StringLanguage alone;
      alone.patterns.emplace_back(p.text);
      try {
        pool_.json_string(alone);
        out.push_back(p);
      } catch (const GrammarError& e) {
        note(Note::kRelaxed, *p.at, "", e.message);
      }
    }
    return keep(out);
  };
  kept.patterns = usable(part.patterns);
  kept.not_patterns = usable(part.not_patterns);
  return pool_.json_string(language(kept));
}

// Says which pattern the error is about, and where it stands.
void Compiler::blame_pattern(const GrammarError& error, const StringPart& part) {
  std::vector<Pattern> all(part.patterns.begin(), part.patterns.end());
  all.insert(all.end(), part.not_patterns.begin(), part.not_patterns.end());
  for (const Pattern& p : all) {
    StringLanguage alone;
    alone.patterns.emplace_back(p.text);
    try {
      pool_.json_string(alone);
    } catch (const GrammarError& e) {
      std::string place = e.pointer.empty() ? "" : " (at character " + e.pointer + " of \"" + std::string(p.text) + "\")";
      throw GrammarError(e.message + place, json::pointer_to(*root_, *p.at), e.keyword.empty() ? "pattern" : e.keyword, e.hint);
    }
  }
  std::string pointer = all.empty() ? json::pointer_to(*root_, *here_) : json::pointer_to(*root_, *all[0].at);
  throw GrammarError(error.message, std::move(pointer), error.keyword.empty() ? "pattern" : error.keyword, error.hint);
}

NumberLanguage Compiler::language(const NumberPart& part) {
  NumberLanguage out;
  out.integer = part.integer;
  out.minimum = part.minimum;
  out.exclusive_minimum = part.exclusive_minimum;
  out.maximum = part.maximum;
  out.exclusive_maximum = part.exclusive_maximum;
  out.multiple_of = strings(part.multiple_of);
  out.excluded = strings(part.excluded);
  return out;
}

TerminalPtr Compiler::number_terminal(const NumberPart& part) {
  if (!part.not_multiple_of.empty()) {
    bool only = part.multiple_of.empty() && part.excluded.empty() && part.minimum.empty() && part.maximum.empty() &&
                part.exclusive_minimum.empty() && part.exclusive_maximum.empty() && part.not_multiple_of.size() == 1;
    if (only && part.not_multiple_of[0] == "1") {
      return part.integer ? nullptr : pool_.regex("-?(0|[1-9][0-9]*)\\.[0-9]*[1-9][0-9]*");
    }
    unsupported(*here_, "not", "the opposite of multipleOf (or of integer, with bounds) cannot be enforced",
                "Say what is allowed instead of what is not.");
  }
  try {
    return pool_.json_number(language(part));
  } catch (const GrammarError& e) {
    throw GrammarError(e.message, json::pointer_to(*root_, *here_), e.keyword, e.hint);
  }
}

// ---- arrays and objects

Symbol Compiler::lower(const ArrayPart& part) {
  if (part.unique) {
    unsupported(*part.unique, "uniqueItems", "distinct items are not enforced", "Set maxItems to 1, or drop uniqueItems.");
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
  spec.prefix.resize(part.prefix.size());
  if (part.contains.size() > kMaxContains || CountedArrayRule::places(spec) > CountedArrayRule::kMaxPlaces) {
    fail(schema, "contains", "the bounds of contains and of the array's length are too large together",
         "Lower maxItems, minContains or maxContains.");
  }
  auto cells = [&](NodeId item) {
    std::vector<CountedArraySpec::Cell> out;
    for (std::uint32_t counts = 0; counts < 1u << part.contains.size(); ++counts) {
      NodeId value = item;
      for (std::size_t j = 0; j < part.contains.size(); ++j) {
        const Contains& c = part.contains[j];
        if (counts >> j & 1) {
          value = both(value, c.value);
        } else if (c.max != kNoMax) {
          value = both(value, negate(c.value));
        }
      }
      if (Symbol s = lower(value)) out.push_back({s, counts});
    }
    return out;
  };
  for (std::size_t i = 0; i < part.prefix.size(); ++i) spec.prefix[i] = cells(part.prefix[i]);
  spec.item = cells(part.item);
  return builder_.rule(std::make_unique<CountedArrayRule>(std::move(spec), pool_));
}

// What is demanded of some key is demanded of each key in turn that could be it.
Symbol Compiler::lower(const ObjectPart& part) {
  if (part.needs.empty()) return lower_object(part);
  constexpr std::size_t kMaxWays = 256;
  std::vector<const ObjectPart*> todo{&part};
  std::vector<Symbol> ways;
  while (!todo.empty()) {
    const ObjectPart& p = *todo.back();
    todo.pop_back();
    if (p.needs.empty()) {
      ways.push_back(lower_object(p));
      continue;
    }
    Need need = p.needs[0];
    if (todo.size() + ways.size() > kMaxWays) {
      fail(*need.at, "not", "too many properties could be the one that is demanded", "Say what is allowed instead of what is not.");
    }
    ObjectPart way = p;
    way.needs = p.needs.subspan(1);
    auto add = [&](ObjectPart one_way) {
      if (const ObjectPart* done = finish_object(one_way)) todo.push_back(done);
    };
    for (std::size_t i = 0; i < p.properties.size(); ++i) {
      NodeId value = both(p.properties[i].value, need.value);
      if (value == kNever || (need.keys && !contains(*need.keys, p.properties[i].name))) continue;
      std::vector<Property> properties(p.properties.begin(), p.properties.end());
      properties[i].value = value;
      properties[i].required = true;
      way.properties = keep(properties);
      add(way);
    }
    way.properties = p.properties;
    if (std::all_of(p.others.begin(), p.others.end(), [](const KeyClass& c) { return c.value == kNever; })) continue;
    if (const ObjectPart* counted = needs_one_more(way, need)) {
      todo.push_back(counted);
    } else {
      unsupported(*need.at, "not", "the opposite of a rule about further properties cannot be enforced",
                  "Say what is allowed instead of what is not.");
      add(way);
    }
  }
  return builder_.choice(std::move(ways));
}

// The object with some further key, where counting the properties can say so; else nullptr.
const ObjectPart* Compiler::needs_one_more(ObjectPart part, const Need& need) {
  std::uint64_t required = 0;
  for (const Property& p : part.properties) {
    if (!p.required && p.value != kNever) return nullptr;
    required += p.required;
  }
  for (const KeyClass& c : part.others) {
    if (c.value != kNever && both(c.value, need.value) != c.value) return nullptr;
  }
  bool any_key = !need.keys || (need.keys->patterns.empty() && need.keys->not_patterns.empty() && need.keys->formats.empty() &&
                                need.keys->not_formats.empty() && !need.keys->finite && need.keys->min_length == 0 &&
                                need.keys->max_length == kNoMax);
  if (!any_key) return nullptr;
  for (std::string_view name : need.keys ? need.keys->excluded : List<std::string_view>{}) {
    bool property = std::any_of(part.properties.begin(), part.properties.end(), [&](const Property& p) { return p.name == name; });
    if (!property && value_for(part, name) != kNever) return nullptr;
  }
  part.min_properties = std::max(part.min_properties, required + 1);
  return finish_object(part);
}

Symbol Compiler::lower_object(const ObjectPart& part) {
  ObjectSpec spec;
  spec.whitespace = options_.whitespace;
  spec.any_order = options_.any_order;
  spec.min_properties = part.min_properties;
  spec.max_properties = part.max_properties;
  spec.members.reserve(part.properties.size());
  for (const Property& p : part.properties) spec.members.push_back({std::string(p.name), lower(p.value), p.required});
  auto member = [&](std::string_view name) {
    for (std::size_t i = 0; i < spec.members.size(); ++i) {
      if (spec.members[i].name == name) return static_cast<std::uint32_t>(i);
    }
    spec.members.push_back({std::string(name), lower(value_for(part, name)), false});
    return static_cast<std::uint32_t>(spec.members.size() - 1);
  };
  for (const Dependency& d : part.dependencies) {
    std::uint32_t key = member(d.key), other = member(d.other);
    auto it = std::find_if(spec.dependent_required.begin(), spec.dependent_required.end(),
                           [&](const auto& e) { return e.first == key; });
    if (it == spec.dependent_required.end()) {
      spec.dependent_required.push_back({key, {other}});
    } else {
      it->second.push_back(other);
    }
  }
  // Keys of a finite list are members, so that what is left of them is known; they may still come in any order.
  bool listed = false;
  for (const KeyClass& c : part.others) {
    if (!c.keys || !c.keys->finite) continue;
    listed = true;
    for (std::string_view name : c.keys->values) member(name);
  }
  bool declared = std::any_of(part.properties.begin(), part.properties.end(), [](const Property& p) { return p.declared; });
  if (listed && !declared) spec.any_order = true;
  for (const KeyClass& c : part.others) {
    if (c.keys && c.keys->finite) continue;
    Symbol value = lower(c.value);
    if (!value && !c.keys) continue;  // nothing more: the default
    spec.others.push_back({c.keys ? language(*c.keys) : StringLanguage{}, value});
  }
  while (!spec.others.empty() && !spec.others.back().value) spec.others.pop_back();
  try {
    return builder_.object(std::move(spec));
  } catch (const GrammarError& e) {
    for (const KeyClass& c : part.others) {
      if (c.keys) blame_pattern(e, *c.keys);
    }
    throw;
  }
}

}  // namespace ag::schema
