// Strings, keys, free text: every short text against an independent JSON decoder and plain string search.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "check.h"

namespace {

using namespace ag;
using Texts = std::vector<std::string>;

// The scalars of UTF-8 text; nothing when it is not valid (RFC 3629).
std::optional<std::vector<std::uint32_t>> scalars(std::string_view t) {
  std::vector<std::uint32_t> out;
  for (std::size_t i = 0; i < t.size();) {
    const auto b = static_cast<std::uint8_t>(t[i]);
    const std::size_t n = b < 0x80                ? 1
                          : b >= 0xc2 && b < 0xe0 ? 2
                          : b >= 0xe0 && b < 0xf0 ? 3
                          : b >= 0xf0 && b < 0xf5 ? 4
                                                  : 0;
    if (n == 0 || i + n > t.size()) return std::nullopt;
    std::uint32_t cp = n == 1 ? b : b & (0xffu >> (n + 1));
    for (std::size_t k = 1; k < n; ++k) {
      if ((static_cast<std::uint8_t>(t[i + k]) & 0xc0) != 0x80) return std::nullopt;
      cp = cp << 6 | (static_cast<std::uint8_t>(t[i + k]) & 0x3f);
    }
    if ((n == 3 && cp < 0x800) || (n == 4 && (cp < 0x10000 || cp > 0x10ffff)) || (cp >= 0xd800 && cp < 0xe000))
      return std::nullopt;
    out.push_back(cp);
    i += n;
  }
  return out;
}

std::string utf8(std::uint32_t cp) {
  std::string out;
  const auto put = [&](std::uint32_t b) { out.push_back(static_cast<char>(b)); };
  if (cp < 0x80) return put(cp), out;
  if (cp < 0x800) return put(0xc0 | cp >> 6), put(0x80 | (cp & 0x3f)), out;
  if (cp < 0x10000) return put(0xe0 | cp >> 12), put(0x80 | (cp >> 6 & 0x3f)), put(0x80 | (cp & 0x3f)), out;
  return put(0xf0 | cp >> 18), put(0x80 | (cp >> 12 & 0x3f)), put(0x80 | (cp >> 6 & 0x3f)), put(0x80 | (cp & 0x3f)),
         out;
}

// What a JSON string stands for, in UTF-8; nothing when it is none, or has half a surrogate pair.
std::optional<std::string> decoded(std::string_view t) {
  if (t.size() < 2 || t.front() != '"' || t.back() != '"' || !scalars(t)) return std::nullopt;
  std::string out;
  const auto unit = [&](std::size_t i) -> std::int64_t {
    if (i + 6 >= t.size() || t[i] != '\\' || t[i + 1] != 'u') return -1;
    std::int64_t v = 0;
    for (std::size_t k = i + 2; k < i + 6; ++k) {
      const std::size_t digit =
          std::string_view("0123456789abcdef").find(static_cast<char>(t[k] >= 'A' && t[k] <= 'F' ? t[k] + 32 : t[k]));
      if (digit == std::string_view::npos) return -1;
      v = v * 16 + static_cast<std::int64_t>(digit);
    }
    return v;
  };
  for (std::size_t i = 1; i + 1 < t.size();) {
    const char c = t[i];
    if (c == '"' || static_cast<std::uint8_t>(c) < 0x20) return std::nullopt;
    if (c != '\\') {
      out.push_back(c);
      ++i;
      continue;
    }
    if (i + 2 >= t.size()) return std::nullopt;
    const std::size_t plain = std::string_view("\"\\/bfnrt").find(t[i + 1]);
    if (plain != std::string_view::npos) {
      out.push_back("\"\\/\b\f\n\r\t"[plain]);
      i += 2;
      continue;
    }
    const std::int64_t high = unit(i);
    if (high < 0 || (high >= 0xdc00 && high < 0xe000)) return std::nullopt;
    i += 6;
    if (high < 0xd800 || high >= 0xe000) {
      out += utf8(static_cast<std::uint32_t>(high));
      continue;
    }
    const std::int64_t low = unit(i);
    if (low < 0xdc00 || low >= 0xe000) return std::nullopt;
    i += 6;
    out += utf8(static_cast<std::uint32_t>(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)));
  }
  return out;
}

StringLanguage language(Texts patterns, std::uint64_t min = 0, std::uint64_t max = kNoMax, Texts not_patterns = {},
                        Texts excluded = {}) {
  StringLanguage s;
  s.patterns = std::move(patterns);
  s.not_patterns = std::move(not_patterns);
  s.min_length = min;
  s.max_length = max;
  s.excluded = std::move(excluded);
  return s;
}

// Every text over the alphabet between quotes: accepted iff it decodes to a string of the language.
void compare_all(TerminalPool& pool, const StringLanguage& s, const Texts& alphabet, std::size_t length) {
  const TerminalPtr t = pool.json_string(s);
  std::size_t found = 0;
  each_text(alphabet, length, [&](const std::string& inner) {
    const std::string text = "\"" + inner + "\"";
    const std::optional<std::string> value = decoded(text);
    const bool expected = value && contains(s, *value);
    const bool got = t && accepts(*t, text);
    found += expected;
    CHECK_TEXT(got == expected, text);
  });
  CHECK(t || found == 0);
  if (t) check_terminal(*t, 600);
}

const Texts kBytes{"\"",   "\\",   "a",    "\x1f", "\x7f", "\x80", "\x8f", "\x90", "\x9f", "\xa0", "\xbf",
                   "\xc1", "\xc2", "\xdf", "\xe0", "\xe1", "\xed", "\xee", "\xf0", "\xf1", "\xf4", "\xf5"};
const Texts kEscapes{"\\u", "\\", "d", "D8", "00", "dc", "C", "0", "f", "n", "/", "a", "\xc3\xa9"};
const Texts kLetters{"a", "b", "\\u0061", "\\n", "\xc3\xa9", "\xf0\x9f\x98\x80", "\\ud83d\\ude00", "\""};

void decoding(TerminalPool& pool) {
  compare_all(pool, {}, kBytes, 4);
  compare_all(pool, {}, kEscapes, 5);
  compare_all(pool, language({}, 1, 2), kEscapes, 4);
  const TerminalPtr any = pool.json_string({});
  for (std::uint32_t cp = 0; cp <= 0x10ffff; cp += cp < 0x3000 ? 1 : 97) {
    if (cp >= 0xd800 && cp < 0xe000) continue;
    char escaped[16];
    if (cp < 0x10000)
      std::snprintf(escaped, sizeof escaped, "\\u%04X", cp);
    else
      std::snprintf(escaped, sizeof escaped, "\\u%04x\\u%04X", 0xd800 + ((cp - 0x10000) >> 10), 0xdc00 + (cp & 0x3ff));
    CHECK(accepts(*any, std::string("\"") + escaped + "\""));
    const TerminalPtr one = cp % 31 == 0 ? pool.json_strings({utf8(cp)}) : nullptr;
    if (one) CHECK(accepts(*one, std::string("\"") + escaped + "\"") && !accepts(*one, "\"\\u0041\\u0042\""));
    if (cp >= 0x20 && cp != '"' && cp != '\\') CHECK(accepts(*any, "\"" + utf8(cp) + "\""));
  }
}

void lengths(TerminalPool& pool) {
  for (const std::uint64_t min : {0, 1, 2, 3})
    for (const std::uint64_t max : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{4}, kNoMax}) {
      compare_all(pool, language({}, min, max), kLetters, 4);
      for (const char* pattern : {"^[ab]+$", "^[ab]*$", "a", "^(ab)*$", "^a?b?$", "^[^a]*$", "^(ab|b){1,3}$"})
        compare_all(pool, language({pattern}, min, max), kLetters, 4);
    }
  const TerminalPtr huge = pool.json_string(language({}, 0, std::uint64_t{1} << 53));
  CHECK(huge->counted() && huge->max_units() == std::uint64_t{1} << 53);
  CHECK(huge->table() == pool.json_string(language({}, 3, 7))->table());
  CHECK(pool.json_string(language({"^[a-z]+$"}, 0, 100'000))->counted());
  CHECK(pool.json_string(language({}, 100'000, 100'000))->min_rest(Terminal::kStart, 0) == 100'002);
  const TerminalPtr pairs = pool.json_string(language({"^(ab)+$"}, 1'001, 1'003));
  CHECK(pairs->min_rest(Terminal::kStart, 0) == 1'004);
  CHECK(accepts(*pairs, pairs->shortest(Terminal::kStart, 0)));
}

void intersections(TerminalPool& pool) {
  const Texts patterns{"^a", "b$", "aa", "^[ab]*$", "^.b"};
  for (const std::string& p : patterns)
    for (const std::string& q : patterns) {
      compare_all(pool, language({p, q}), kLetters, 4);
      compare_all(pool, language({p}, 0, kNoMax, {q}), kLetters, 4);
      compare_all(pool, language({p}, 1, 3, {q}, {"ab", "aab", ""}), kLetters, 4);
    }
  compare_all(pool, language({}, 0, kNoMax, {}, {"", "a", "\xc3\xa9", "a\n"}), kLetters, 3);
  compare_all(pool, language({}, 1, 1, {}, {"a", "b", "\n"}), kLetters, 2);
  CHECK(pool.json_string(language({"^a"}, 0, kNoMax, {"^a"})) == nullptr);
  CHECK(pool.json_string(language({"^a$"}, 2)) == nullptr);
  CHECK(pool.json_string(language({"^[ab]$"}, 0, kNoMax, {}, {"a", "b"})) == nullptr);
  CHECK(pool.json_string(language({}, 2, 1)) == nullptr);
}

void enums(TerminalPool& pool) {
  const Texts values{"a", "ab", "", "\xc3\xa9", "\n", "\"", "b\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"};
  const TerminalPtr t = pool.json_strings(values);
  each_text(kLetters, 4, [&](const std::string& inner) {
    const std::optional<std::string> value = decoded("\"" + inner + "\"");
    const bool expected = value && std::find(values.begin(), values.end(), *value) != values.end();
    CHECK_TEXT(accepts(*t, "\"" + inner + "\"") == expected, inner);
  });
  check_terminal(*t);
  CHECK(pool.json_strings({}) == nullptr);
  CHECK_THROWS(ValueError, pool.json_strings({"\xed\xa0\x80"}));
}

void keys(TerminalPool& pool) {
  const Texts names{"", "a", "ab", "b\n", "\xc3\xa9"}, forbidden{"b", "aa"};
  const std::vector<std::vector<StringLanguage>> classes{{},
                                                         {{}},
                                                         {language({"^a"}), {}},
                                                         {language({"b$"}, 0, 2), language({"a"})},
                                                         {language({}, 2, 3)},
                                                         {language({"^[ab]$"}), language({"^(a|b|aa|ab|ba)$"})},
                                                         {language({"^a$"})}};
  for (const auto& others : classes)
    for (const Texts& out : {Texts{}, forbidden}) {
      KeyLanguage k{names, out, others};
      const TerminalPtr t = pool.json_key(k);
      each_text(kLetters, 3, [&](const std::string& inner) {
        const std::optional<std::string> key = decoded("\"" + inner + "\"");
        std::int64_t expected = -1;
        if (key) {
          const auto name = std::find(names.begin(), names.end(), *key);
          if (name != names.end()) {
            expected = name - names.begin();
          } else if (std::find(out.begin(), out.end(), *key) == out.end()) {
            for (std::size_t j = 0; j < others.size() && expected < 0; ++j)
              if (contains(others[j], *key)) expected = static_cast<std::int64_t>(names.size() + j);
          }
        }
        const std::int64_t got = label_of(*t, "\"" + inner + "\"");
        CHECK_TEXT((got < 0 ? -1 : got) == expected, inner);
      });
      check_terminal(*t, 3000);
    }
  CHECK(pool.json_key({{}, {}, {}}) == nullptr);
  CHECK(pool.json_key({{}, {"a"}, {language({"^a$"})}}) == nullptr);
  CHECK_THROWS(ValueError, pool.json_key({{"b", "a"}, {}, {}}));
  CHECK_THROWS(ValueError, pool.json_key({{"a", "a"}, {}, {}}));
}

void finite() {
  CHECK(finite_values(language({"^[ab]?c$"}), 10) == (Texts{"c", "ac", "bc"}));
  CHECK(finite_values(language({"^(a|\xc3\xa9){1,2}$"}, 2), 10) == (Texts{"aa", "a\xc3\xa9",
                                                                          "\xc3\xa9"
                                                                          "a",
                                                                          "\xc3\xa9\xc3\xa9"}));
  CHECK(finite_values(language({"^[ab]+$"}, 1, 2), 6) == (Texts{"a", "b", "aa", "ab", "ba", "bb"}));
  CHECK(!finite_values(language({"^[ab]+$"}, 1, 2), 5));
  CHECK(!finite_values(language({"^a*b$"}), 100) && !finite_values({}, 100) && !finite_values(language({}, 0, 1), 100));
  CHECK(finite_values(language({}, 0, 0), 1) == Texts{""});
  CHECK(finite_values(language({"^a$", "^b$"}), 1) == Texts{});
}

void fanouts(TerminalPool& pool) {
  const Texts names{"get", "get_all", "put", "x"};
  const TerminalPtr t = pool.fanout({names.begin(), names.end()});
  for (std::size_t i = 0; i < names.size(); ++i) CHECK(label_of(*t, names[i]) == static_cast<std::int64_t>(i));
  CHECK(label_of(*t, "ge") == -2 && label_of(*t, "get_") == -2 && label_of(*t, "gets") == -1);
  check_terminal(*t);
  CHECK(pool.fanout({}) == nullptr);
  CHECK_THROWS(ValueError, pool.fanout({"b", "a"}));
}

// What free text should say of a text: -1 refused, -2 cut inside a character, kText, or the pattern that ends it.
std::int64_t free_text(const TextLanguage& l, const std::string& text) {
  const auto ends_with = [](const std::string& t, const std::string& p) {
    return t.size() >= p.size() && t.compare(t.size() - p.size(), p.size(), p) == 0;
  };
  bool whole = scalars(text).has_value(), begun = whole;
  for (const std::string tail : {"\x80", "\x80\x80", "\xa0\x80", "\x80\x80\x80", "\x90\x80\x80"})
    begun = begun || scalars(text + tail);
  if (!begun) return -1;
  for (std::size_t n = 1; n <= text.size(); ++n) {
    const std::string head = text.substr(0, n);
    for (const std::string& e : l.excludes)
      if (ends_with(head, e)) return -1;
    for (std::size_t i = 0; i < l.patterns.size(); ++i)
      if (ends_with(head, l.patterns[i])) return n == text.size() ? static_cast<std::int64_t>(i) : -1;
  }
  return whole ? static_cast<std::int64_t>(TerminalPool::kText) : -2;
}

void texts(TerminalPool& pool) {
  const std::vector<TextLanguage> languages{
      {{"<a", "<b>"}, {"ab"}, false},    {{"aab"}, {}, false},
      {{}, {"\xc3\xa9"}, false},         {{"\xc3\xa9>", "a\xe2\x96\x81"}, {"b<"}, false},
      {{"abab", "bb"}, {"aba<"}, false}, {{}, {}, false}};
  const Texts alphabet{"a", "b", "<", ">", "\xc3", "\xa9", "\xe2", "\x96", "\x81", "\xf4", "\x80"};
  for (const TextLanguage& l : languages) {
    const TerminalPtr t = pool.text(l);
    each_text(alphabet, 5,
              [&](const std::string& text) { CHECK_TEXT(label_of(*t, text) == free_text(l, text), text); });
    check_terminal(*t);
  }
  CHECK_THROWS(GrammarError, pool.text({{"<tool", "<tool_call>"}, {}, false}));
  CHECK_THROWS(GrammarError, pool.text({{"<tool>"}, {"tool"}, false}));
  CHECK_THROWS(ValueError, pool.text({{""}, {}, false}));
  CHECK_THROWS(ValueError, pool.text({{"a", "a"}, {}, false}));
  CHECK_THROWS(ValueError, pool.text({{"\xff"}, {}, false}));
}

void longest(TerminalPool& pool) {
  const TerminalPtr t = pool.text({{"<tool", "<tool_call>", "call", "ol_c!"}, {"_x"}, true});
  CHECK(label_of(*t, "hi <tool") == 0);
  CHECK(label_of(*t, "hi <tool_ca") == -2);
  CHECK(label_of(*t, "hi <tool_call>") == 1);
  CHECK(label_of(*t, "hi <tool_cat") == -1);
  CHECK(label_of(*t, "hi <tool ") == -1);
  CHECK(label_of(*t, "call") == 2);
  CHECK(label_of(*t, "ol_c!") == 3);
  CHECK(label_of(*t, "<tool_c!") == -1);  // would not cover all of <tool
  CHECK(t->range(Terminal::kStart).hi == 4);
  for (const std::string head : {"", "<tool", "<tool_c", "x<t"}) {
    Position at;
    CHECK(walk(*t, head, &at));
    CHECK_TEXT(accepts(*t, head + t->shortest(at.state, 0)), head);
    std::string out;
    CHECK(t->shortest_label(at.state, 1, &out) && label_of(*t, head + out) == 1);
  }
}

void punctuation(TerminalPool& pool) {
  for (const char c : {',', ':', '{'})
    for (const bool before : {false, true})
      for (const bool after : {false, true}) {
        check_terminal(*pool.punctuation(c, before, after, Whitespace::kFlexible));
        check_terminal(*pool.punctuation(c, before, after, Whitespace::kCompact));
        check_terminal(*pool.punctuation(c, before, after, Whitespace::kCanonical));
      }
  const TerminalPtr t = pool.punctuation(',', true, true, Whitespace::kFlexible);
  CHECK(accepts(*t, "\n\t\n" + std::string(63, ' ') + ",\r\n\n"));
  CHECK(!accepts(*t, "\n\n\n,") && !accepts(*t, std::string(65, ' ') + ",") && !accepts(*t, ",\n\n\n"));
  CHECK(accepts(*t, std::string(64, ' ') + "," + std::string(64, '\t')));
  CHECK(!accepts(*pool.punctuation(',', false, true, Whitespace::kFlexible), " ,"));
  const TerminalPtr colon = pool.punctuation(':', true, true, Whitespace::kCanonical);
  CHECK(accepts(*colon, ": ") && !accepts(*colon, ":") && !accepts(*colon, ":  ") && !accepts(*colon, " : "));
  CHECK(accepts(*pool.punctuation('{', true, true, Whitespace::kCanonical), "{"));
  const TerminalPtr literal = pool.literal("\xff\x00z");
  check_terminal(*literal);
  CHECK(pool.literal("")->nullable());
}

void pooling() {
  TerminalPool pool;
  CHECK(pool.literal("ab") == pool.literal("ab") && pool.literal("ab") != pool.literal("a"));
  CHECK(pool.json_string(language({"a", "b"})) == pool.json_string(language({"b", "a", "a"})));
  CHECK(pool.json_string(language({"a"})) != pool.json_string(language({}, 0, kNoMax, {"a"})));
  CHECK(pool.json_key({{"a"}, {}, {}}) != pool.json_key({{}, {"a"}, {{}}}));
  CHECK(pool.text({{"<x>"}, {"b", "a"}, false}) == pool.text({{"<x>"}, {"a", "b"}, false}));
  const TerminalPtr kept = pool.json_string(language({}, 1, 2));
  CHECK(pool.stats().terminals > 5 && pool.stats().bytes > 0);
  pool.clear();
  CHECK(pool.stats().terminals == 2);  // the bounded string and the table it shares
  CHECK(pool.json_string(language({}, 1, 2)) == kept);
}

}  // namespace

int main() {
  TerminalPool pool;
  decoding(pool);
  lengths(pool);
  intersections(pool);
  enums(pool);
  keys(pool);
  finite();
  fanouts(pool);
  texts(pool);
  longest(pool);
  punctuation(pool);
  pooling();
  std::printf("%s\n", failures == 0 ? "ok" : "failed");
  return failures == 0 ? 0 : 1;
}
