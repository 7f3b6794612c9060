// From shapes to the builder's symbols.
#include <algorithm>

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

Symbol Compiler::lower(NodeId id) {
  if (id == kNever) return {};
  const Value* outer = here_;
  if (nodes_[id].at) here_ = nodes_[id].at;
  Symbol out = lower(shape(id));
  here_ = outer;
  return out;
}

Symbol Compiler::lower(const Shape* s) {
  if (s->state == Shape::kDone) return s->symbol;
  if (s->state == Shape::kOpen) {
    if (!s->symbol) s->symbol = builder_.reserve();
    return s->symbol;
  }
  // The value of any kind is part of most schemas.
  const std::uint64_t name =
      s == any_ ? 1 + 2 * static_cast<std::uint64_t>(options_.whitespace) + (options_.any_order ? 1 : 0) : 0;
  if (name && !s->symbol && (s->symbol = builder_.known(name))) {
    s->state = Shape::kDone;
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
    builder_.define(s->symbol, body, name);
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

// How json.dumps may spell a listed number: 1 for the integer, 1.0 for the float.
std::vector<std::string> Compiler::spellings(const NumberPart& part, std::string_view value) {
  std::vector<std::string> out;
  Decimal d = Decimal::parse(value);
  bool as_float = value.find_first_of(".eE") != std::string_view::npos && !part.integer;
  if (d.plain_size() > kMaxDigits && !as_float) {
    fail(*root_, "", "the number " + std::string(value.substr(0, 20)) + " is too long to be written out",
         "Use a shorter number.");
  }
  if (d.integer() && d.plain_size() <= kMaxDigits) out.push_back(d.plain());
  if (as_float) out.push_back(d.as_float());
  return out;
}

Symbol Compiler::one_of_texts(std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  if (texts.size() == 1) return builder_.literal(texts[0]);
  return builder_.terminal(pool_.regex(one_of_pattern(texts)));
}

std::string Compiler::one_of_pattern(const std::vector<std::string>& texts) {
  std::string pattern;
  for (const std::string& t : texts) pattern.append(pattern.empty() ? "" : "|").append(regex_escaped(t));
  return pattern;
}

// null, true, false and listed numbers: one terminal for all of them.
void Compiler::lower_literals(const Shape& s, std::vector<Symbol>& out) {
  std::vector<std::string> texts;
  if (s.scalars & Shape::kNull) texts.push_back("null");
  if (s.scalars & Shape::kTrue) texts.push_back("true");
  if (s.scalars & Shape::kFalse) texts.push_back("false");
  for (const NumberPart* p : s.numbers) {
    for (std::string_view value : p->values) {
      for (std::string& spelling : spellings(*p, value)) texts.push_back(std::move(spelling));
    }
  }
  if (!texts.empty()) out.push_back(one_of_texts(std::move(texts)));
}

// ---- terminals

StringLanguage Compiler::language(const StringPart& part) {
  StringLanguage out;
  for (const Pattern& p : part.patterns) out.patterns.emplace_back(p.text);
  for (const Pattern& p : part.not_patterns) out.not_patterns.emplace_back(p.text);
  out.formats = strings(part.formats);
  out.not_formats = strings(part.not_formats);
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
      std::string place =
          e.pointer.empty() ? "" : " (at character " + e.pointer + " of \"" + std::string(p.text) + "\")";
      throw GrammarError(e.message + place, json::pointer_to(*root_, *p.at), e.keyword.empty() ? "pattern" : e.keyword,
                         e.hint);
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
  out.not_multiple_of = strings(part.not_multiple_of);
  out.excluded = strings(part.excluded);
  return out;
}

TerminalPtr Compiler::number_terminal(const NumberPart& part) {
  try {
    return pool_.json_number(language(part));
  } catch (const GrammarError& e) {
    throw GrammarError(e.message, json::pointer_to(*root_, *here_), e.keyword, e.hint);
  }
}

}  // namespace ag::schema
