// Regular expressions of schemas: look-ahead at the start is taken apart, and patterns that cannot meet are told apart.
#include <optional>

#include "schema/compiler.h"

namespace ag::schema {

namespace {

// Past one escape, class, or plain character at `i`; groups are the caller's.
std::size_t after_atom(std::string_view p, std::size_t i) {
  if (p[i] == '\\') return std::min(i + 2, p.size());
  if (p[i] != '[') return i + 1;
  for (++i; i < p.size() && p[i] != ']'; ++i) {
    if (p[i] == '\\') ++i;
  }
  return std::min(i + 1, p.size());
}

// The index of the ')' that closes the group opened at `open`; npos when there is none.
std::size_t closing(std::string_view p, std::size_t open) {
  std::size_t depth = 0;
  for (std::size_t i = open; i < p.size();) {
    if (p[i] == '(') ++depth;
    if (p[i] == ')' && --depth == 0) return i;
    i = after_atom(p, i);
  }
  return std::string_view::npos;
}

bool has_top_level_bar(std::string_view p) {
  std::size_t depth = 0;
  for (std::size_t i = 0; i < p.size(); i = after_atom(p, i)) {
    if (p[i] == '(') ++depth;
    if (p[i] == ')' && depth) --depth;
    if (p[i] == '|' && depth == 0) return true;
  }
  return false;
}

struct Literal {
  std::string text;
  bool whole = false;  // nothing but this text, between ^ and $
};

// What every match of an anchored pattern starts with.
std::optional<Literal> literal_start(std::string_view p) {
  if (!p.starts_with('^') || has_top_level_bar(p)) return std::nullopt;
  Literal out;
  for (std::size_t i = 1; i < p.size(); ++i) {
    char c = p[i];
    if (c == '$' && i + 1 == p.size()) {
      out.whole = true;
      return out;
    }
    std::size_t next = i + 1;
    if (c == '\\') {
      if (next >= p.size() || std::isalnum(static_cast<unsigned char>(p[next]))) return out;
      c = p[next++];
    } else if (std::string_view("^$.[]()*+?{}|").find(c) != std::string_view::npos) {
      return out;
    }
    if (next < p.size() && std::string_view("*+?{").find(p[next]) != std::string_view::npos) return out;
    if (static_cast<unsigned char>(c) >= 0x80) return out;  // a quantifier may follow the character's last byte
    out.text += c;
    i = next - 1;
  }
  return out;
}

// JSON text with arrays and objects at most three deep, which is as far as a pattern can count.
std::string json_text() {
  const std::string blank = R"([ \t\n\r]*)";
  const std::string text = R"x("(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")x";
  const std::string scalar = text + R"(|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)";
  std::string value = scalar;
  for (int depth = 0; depth < 3; ++depth) {
    const std::string item = blank + "(?:" + value + ")" + blank, member = blank + text + blank + ":" + item;
    value = scalar + R"(|\[(?:)" + blank + "|" + item + "(?:," + item + R"()*)\]|\{(?:)" + blank + "|" + member +
            "(?:," + member + R"()*)\})";
  }
  return "^" + blank + "(?:" + value + ")" + blank + "$";
}

constexpr std::string_view kBase64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$";
constexpr std::string_view kJson = "application/json";

}  // namespace

// Up to draft 7 a validator may hold a string to what it says it contains; since then it only describes. Without
// $schema it is held to it: what is written so satisfies either reading.
bool Compiler::asserts_content(const Value& value) {
  return !content_describes_ && value.is(json::Type::kString) && (value.text() == "base64" || value.text() == kJson);
}

void Compiler::add_content(const KeywordSet& set, StringPart* part) {
  const Value *encoding = set[Keyword::kContentEncoding], *media = set[Keyword::kContentMediaType];
  std::vector<Pattern> patterns(part->patterns.begin(), part->patterns.end());
  if (encoding) patterns.push_back({kBase64, encoding});
  if (media && encoding) {
    unsupported(*set.schema, "contentMediaType", "JSON inside of base64 cannot be enforced",
                "Drop one of contentEncoding and contentMediaType.");
  } else if (media) {
    static const std::string kJsonText = json_text();
    patterns.push_back({kJsonText, media});
    note(Note::kNarrowed, *set.schema, "contentMediaType", "arrays and objects nest at most three deep in the text");
  }
  part->patterns = keep(patterns);
}

// "^(?!A)(?=B)C" holds where ^(?:B) and ^C are found and ^(?:A) is not: regular, where look-ahead elsewhere is refused.
void Compiler::add_pattern(const Value& at, std::string_view text, std::vector<Pattern>& patterns,
                           std::vector<Pattern>& not_patterns) {
  if (!text.starts_with("^(?") || has_top_level_bar(text)) {
    patterns.push_back({text, &at});
    return;
  }
  std::size_t i = 1;
  while (text.substr(i).starts_with("(?!") || text.substr(i).starts_with("(?=")) {
    std::size_t end = closing(text, i);
    bool quantified = end != std::string_view::npos && end + 1 < text.size() &&
                      std::string_view("*+?{").find(text[end + 1]) != std::string_view::npos;
    if (end == std::string_view::npos || quantified) break;
    std::string inner = "^(?:";
    inner.append(text.substr(i + 3, end - i - 3)).append(")");
    (text[i + 2] == '!' ? not_patterns : patterns).push_back({keep_text(inner), &at});
    i = end + 1;
  }
  if (i == 1) {
    patterns.push_back({text, &at});
  } else if (i < text.size()) {
    std::string rest = "^";
    patterns.push_back({keep_text(rest.append(text.substr(i))), &at});
  }
}

// The same few keys meet the same few patterns again and again while objects are combined.
bool Compiler::matches(const Pattern& pattern, std::string_view text) {
  auto [it, fresh] = matched_.try_emplace({pattern.text.data(), pattern.text.size(), text.data(), text.size()}, false);
  if (!fresh) return it->second;
  auto test = tests_.find(pattern.text);
  if (test == tests_.end()) {
    StringLanguage language;
    language.patterns.emplace_back(pattern.text);
    try {
      test = tests_.emplace(pattern.text, language).first;
    } catch (const GrammarError& e) {
      StringPart part;
      part.patterns = {&pattern, 1};
      blame_pattern(e, part);
    }
  }
  return it->second = test->second(text);
}

bool Compiler::has_format(std::string_view format, std::string_view text) {
  auto [it, fresh] = matched_.try_emplace({format.data(), format.size(), text.data(), text.size()}, false);
  if (fresh) {
    StringLanguage language;
    language.formats.emplace_back(format);
    it->second = ag::contains(language, text);
  }
  return it->second;
}

bool Compiler::surely_disjoint(const StringPart& a, const StringPart& b) {
  for (const Pattern& p : a.patterns) {
    std::optional<Literal> x = literal_start(p.text);
    if (!x) continue;
    for (const Pattern& q : b.patterns) {
      std::optional<Literal> y = literal_start(q.text);
      if (!y) continue;
      std::size_t common = std::min(x->text.size(), y->text.size());
      if (x->text.compare(0, common, y->text, 0, common) != 0) return true;
      if (x->whole && y->text.size() > common) return true;
      if (y->whole && x->text.size() > common) return true;
    }
  }
  const StringPart* meet = intersect(&a, &b);
  return !meet || surely_empty(*meet);
}

}  // namespace ag::schema
