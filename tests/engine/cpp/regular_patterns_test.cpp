// Regular expressions and formats: cases with known answers, refusals with positions, hostile input, threads.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "regular/effort.h"

namespace {

using namespace ag;

struct Cases {
  const char* pattern;
  std::vector<const char*> found, not_found;
};

const std::vector<Cases> kSearches{
    {"", {"", "x"}, {}},
    {"^a|b$", {"a", "axx", "xb", "b"}, {"xa", "bx", ""}},
    {"(^a)?b$", {"b", "ab", "xb", "xab"}, {"a", "ba"}},
    {"a^b", {}, {"ab", "a", "b", ""}},
    {"^$", {""}, {"a", "\n"}},
    {"$^", {""}, {"a"}},
    {"(?:^|,)a(?:,|$)", {"a", "b,a", "a,b", "x,a,y"}, {"ba", "ab", ""}},
    {"\\Aab\\Z", {"ab"}, {"abc", "xab", "ab\n"}},
    {"^.$", {"a", "\xc3\xa9", "\xf0\x9f\x98\x80"}, {"\n", "\r", "\xe2\x80\xa8", "ab", ""}},
    {"^[^a]$", {"\n", "b"}, {"a"}},
    {"^[^]$", {"a", "\n"}, {""}},
    {"[]", {}, {"", "a"}},
    {"^\\d\\D\\w\\W\\s\\S$",
     {"1a_-\xc2\xa0x", "0 Z\xc3\xa9\xef\xbb\xbf."},
     {"\xd9\xa1"
      "aa- x",
      "1a_- \t"}},
    {"^[\\d\\-x]+$", {"1-x"}, {"y", "/"}},
    {"^[a-c-e]+$", {"abc-e"}, {"d"}},
    {"^[\\w-z]+$", {"a-z"}, {"."}},
    {"^\\u0061\\x62\\u{63}\\u{1F600}\\ud83d\\ude00\\cJ\\/\\.$", {"abc\xf0\x9f\x98\x80\xf0\x9f\x98\x80\n/."}, {"abc"}},
    {"^\\p{Lu}\\p{Ll}\\P{L}\\p{gc=Nd}\\p{Letter}$",
     {"\xc3\x89\xc3\xa9-\xd9\xa1\xe4\xb8\xad", "Aa11a"},
     {"aa11a", "AA11a"}},
    {"^\\p{ASCII}\\p{Any}$",
     {"a\xc3\xa9"},
     {"\xc3\xa9"
      "a"}},
    {"^[\\p{L}\\d]+$",
     {"a\xc3\xa9"
      "1"},
     {"-"}},
    {"^a{2}$", {"aa"}, {"a", "aaa"}},
    {"^a{2,}$", {"aa", "aaaa"}, {"a"}},
    {"^(?:ab){0,2}?c$", {"c", "abc", "ababc"}, {"abababc"}},
    {"^a{,$", {"a{,"}, {"a"}},
    {"^x{}y{z}$", {"x{}y{z}"}, {"x"}},
    {"^(?<year>\\d{4})-(?P<month>\\d\\d)$", {"2024-01"}, {"2024-1"}},
    {"^\\-\\_\\@\\ \\\"$", {"-_@ \""}, {"-"}},
    {"^[\\b\\n\\]\\\\^]+$", {"\b\n]\\^"}, {"b"}},
    {"^([a-z]{1,64}\\.){1,64}$", {"a.", "abc.def."}, {"a", ".", "a..b."}},
    {"^(a?){50}a{50}$", {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}, {"a", "b"}},
    {"^(([a-z])+.)+[A-Z]([a-z])+$", {"abXyz", "abcXyz"}, {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}},
};

void searches(TerminalPool& pool) {
  for (const Cases& c : kSearches) {
    StringLanguage s;
    s.patterns = {c.pattern};
    const TerminalPtr t = pool.json_string(s);
    for (const char* text : c.found) {
      CHECK_TEXT(contains(s, text), std::string(c.pattern) + " in " + text);
      if (t && std::string_view(text).find_first_of("\"\\\n\r\b\t") == std::string_view::npos)
        CHECK_TEXT(accepts(*t, std::string("\"") + text + "\""), c.pattern);
    }
    for (const char* text : c.not_found) {
      CHECK_TEXT(!contains(s, text), std::string(c.pattern) + " in " + text);
      if (t) CHECK_TEXT(!accepts(*t, std::string("\"") + text + "\""), c.pattern);
    }
    CHECK_TEXT(t || c.found.empty(), c.pattern);
    if (t) check_terminal(*t, 400);
  }
}

void whole(TerminalPool& pool) {
  const TerminalPtr t = pool.regex("a|bc*|\xc3\xa9+");
  CHECK(accepts(*t, "a") && accepts(*t, "bcc") && accepts(*t, "\xc3\xa9\xc3\xa9") && !accepts(*t, "ab") &&
        !accepts(*t, ""));
  CHECK(!accepts(*t, "\xc3"));
  check_terminal(*t);
  check_terminal(*pool.regex("[^a]{2,5}x?"));
  CHECK(pool.regex("a^") == nullptr);
  CHECK(pool.regex("")->nullable());
}

void refused(TerminalPool& pool) {
  const std::vector<std::pair<const char*, const char*>> patterns{
      {"(?=a)", "0"},  {"x(?<!a)", "1"}, {"(a)\\1", "3"},      {"\\k<a>", "0"},
      {"a\\bc", "1"},  {"(?i)a", "0"},   {"a**", "2"},         {"a++", "2"},
      {"*a", "0"},     {"a{2}{3}", "6"}, {"^*", "1"},          {"(a", "0"},
      {"a)", "1"},     {"[a", "0"},      {"[b-a]", "3"},       {"\\", "0"},
      {"\\q", "0"},    {"\\ud800", "6"}, {"\\p{Greek}", "9"},  {"\\p{Script=Greek}", "16"},
      {"a{3,2}", "1"}, {"(^a)*", "4"},   {"(?P=x)", "0"},      {"\\x1", "3"},
      {"a{,3}", "2"},  {"{2}", "0"},     {"\\u{110000}", "9"}, {"a{99999999999999999999}", "18"}};
  for (const auto& [pattern, position] : patterns) {
    try {
      pool.regex(pattern);
      CHECK_TEXT(false, pattern);
    } catch (const GrammarError& error) {
      CHECK_TEXT(error.message.find(std::string("at position ") + error.pointer) != std::string::npos, error.message);
      CHECK_TEXT(error.pointer == position, std::string(pattern) + " at " + error.pointer);
      CHECK_TEXT(!error.hint.empty() && error.keyword == "pattern", pattern);
    }
  }
}

// Nothing here may hang, crash, or recurse without bound; each is accepted or refused with a GrammarError.
void hostile(TerminalPool& pool) {
  std::vector<std::string> patterns{std::string(100'000, 'a'),
                                    std::string(60'000, '('),
                                    std::string(60'000, '['),
                                    std::string(60'000, '\\'),
                                    std::string(150, '(') + "a" + std::string(150, ')') + "{2}",
                                    "((((a{1,1000}){1,1000}){1,1000}){1,1000}){1,1000}",
                                    "^(a|aa|aaa|aaaa)*(b|bb|bbb)*$",
                                    "(.*.*.*.*.*.*.*.*.*.*a){20}",
                                    "^([\\s\\S]*a[\\s\\S]{60})$",
                                    "(a*)*(b*)*(c*)*$",
                                    "x{0,9007199254740992}y",
                                    "^(.|\\n|a|b|[^a]){0,500}$",
                                    "[\\p{L}-\\p{N}\\p{S}]+\\P{C}"};
  std::string deep;
  for (int i = 0; i < 190; ++i) deep += "(a(";
  deep += "b";
  for (int i = 0; i < 190; ++i) deep += ")?)*";
  patterns.push_back(deep);
  std::string options;
  for (int i = 0; i < 3000; ++i) options += (i ? "|" : "") + std::string("name") + std::to_string(i * 7919);
  patterns.push_back("^(" + options + ")$");
  std::string prefix, alternating;
  for (int i = 0; i < 4'000; ++i) prefix += i % 2 ? "b" : "a";
  patterns.push_back(prefix + "c|" + prefix + "d");
  patterns.push_back("^(" + prefix + "c|" + prefix + "d|" + prefix + "*)$");
  for (int i = 0; i < 3'000; ++i) alternating += i % 2 ? "b?" : "a?";
  patterns.push_back(alternating);
  patterns.push_back("^" + alternating + "$");
  patterns.push_back("(^|x)" + alternating + "($|y)");
  patterns.push_back("^" + alternating.substr(0, 200) + "$");
  std::string nullable;
  for (int i = 0; i < 2000; ++i) nullable += "[a-z]?";
  patterns.push_back(nullable);
  for (const std::string& pattern : patterns)
    for (const int mode : {0, 1, 2}) {
      StringLanguage s;
      (mode == 1 ? s.not_patterns : s.patterns) = {pattern};
      if (mode == 2) s.max_length = 40;
      try {
        const TerminalPtr t = pool.json_string(s);
        if (!t) continue;
        Position at;
        for (const char c : std::string("\"aaaa bbb name7919 xyz")) {
          Position next = at;
          if (advance(*t, &next, static_cast<std::uint8_t>(c))) at = next;
        }
        CHECK(t->min_rest(at.state, at.counter) > 0);
      } catch (const GrammarError& error) {
        CHECK(!error.message.empty());
      }
    }
}

const std::vector<Cases> kFormats{
    {"date",
     {"2024-02-29", "2000-02-29", "0004-02-29", "9999-12-31", "0001-01-01"},
     {"2023-02-29", "1900-02-29", "0000-01-01", "2023-04-31", "2023-13-01", "2023-00-10", "23-01-01", "2024-02-30"}},
    {"time",
     {"12:00:00Z", "23:59:59.5+01:30", "00:00:00z"},
     {"24:00:00Z", "12:00:60Z", "12:00:00", "12:60:00Z", "1:00:00Z"}},
    {"date-time",
     {"2024-02-29T12:00:00Z", "2024-02-29t12:00:00.123-08:00"},
     {"2023-02-29T12:00:00Z", "2024-02-29 12:00:00Z"}},
    {"duration",
     {"P1D", "P1Y2M3DT4H5M6S", "P1W", "PT36H", "P1YT1S"},
     {"P", "PT", "P1W1D", "P2D1Y", "P1D2H", "PT1D", "1D", "P1YT"}},
    {"uuid",
     {"2EB8AA08-aa98-11ea-b4aa-73b441d16380"},
     {"2eb8aa08-aa98-11ea-b4aa-73b441d1638", "2eb8aa08aa9811eab4aa73b441d16380"}},
    {"email", {"joe.bloggs@example.com", "te~st+x@a.b", "a@b"}, {".a@x", "a..b@x", "a@", "@x", "a@-x", "a b@x"}},
    {"hostname", {"www.example.com", "a", "1x"}, {"-a", "a-", "a..b", "", "a_b", "a."}},
    {"ipv4", {"127.0.0.1", "255.255.255.255"}, {"256.1.1.1", "01.1.1.1", "1.2.3", "1.2.3.4.5"}},
    {"ipv6",
     {"::1", "::", "1::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::1:2:3:4:5:6:7", "::ffff:192.168.0.1",
      "1:2:3:4:5:6:1.2.3.4", "1::2:3:4:5:6:7", "1:2:3::1.2.3.4"},
     {"1:2:3:4:5:6:7", "1::2::3", "1:2:3:4:5:6:7:1.2.3.4", "12345::", "::1:2:3:4:5:6:7:8", "1:2::3:4:5:6:7:8",
      "fe80::a%1", ":1"}},
    {"uri",
     {"http://foo.bar/?baz=qux#quux", "urn:oasis:names:x:1", "http://[::1]:80/", "mailto:J@x.com", "a:"},
     {"//foo.bar/", "abc", "http://a b", "http://[::1", "1a:b", "http://x/%zz"}},
    {"uri-reference", {"/abc", "abc", "", "//a/b?c", "#f", "a:b"}, {"1:2", "a\\b", "#a#b"}},
    {"json-pointer", {"/foo/bar~0/baz~1/%a", "", "/"}, {"/foo/bar~", "foo", "/~2"}},
    {"relative-json-pointer", {"1", "0/foo", "2#", "10"}, {"01", "/foo", "0##", "-1"}},
};

void formats(TerminalPool& pool) {
  for (const Cases& c : kFormats) {
    CHECK(known_format(c.pattern));
    StringLanguage s;
    s.formats = {c.pattern};
    const TerminalPtr t = pool.json_string(s);
    for (const char* text : c.found)
      CHECK_TEXT(contains(s, text) && accepts(*t, "\"" + std::string(text) + "\""), text);
    for (const char* text : c.not_found)
      CHECK_TEXT(!contains(s, text) && !accepts(*t, "\"" + std::string(text) + "\""), text);
    check_terminal(*t, 300);
  }
  StringLanguage host;
  host.formats = {"hostname"};
  const std::string label(63, 'a');
  CHECK(contains(host, label + "." + label + "." + label + "." + std::string(61, 'b')));
  CHECK(!contains(host, label + "." + label + "." + label + "." + std::string(62, 'b')) &&
        !contains(host, label + "a"));
  StringLanguage mail;
  mail.formats = {"email"};
  CHECK(contains(mail, std::string(64, 'a') + "@b") && !contains(mail, std::string(65, 'a') + "@b"));
  for (const char* format : {"date", "ipv4", "uuid"}) {
    StringLanguage other;
    other.not_formats = {format};
    const TerminalPtr t = pool.json_string(other);
    for (const Cases& c : kFormats)
      for (const std::vector<const char*>* list : {&c.found, &c.not_found})
        for (const std::string text : *list) {
          StringLanguage own;
          own.formats = {format};
          CHECK_TEXT(contains(other, text) != contains(own, text), text);
          if (text.find('\\') == std::string::npos)
            CHECK_TEXT(accepts(*t, "\"" + text + "\"") == contains(other, text), text);
        }
    check_terminal(*t, 300);
  }
  CHECK(!known_format("colour"));
  StringLanguage colour;
  colour.formats = {"colour"};
  CHECK_THROWS(GrammarError, pool.json_string(colour));
}

// Several threads walk the same fresh terminals; each must see what one thread alone sees.
void threads() {
  for (int round = 0; round < 20; ++round) {
    TerminalPool pool;
    StringLanguage s;
    s.patterns = {"^([a-z]{1,8}-?){1,6}$"};
    KeyLanguage k{{"alpha", "alphabet", "beta"}, {}, {{}}};
    std::atomic<int> wrong{0};
    const auto work = [&] {
      const TerminalPtr t = pool.json_string(s), key = pool.json_key(k);
      NumberLanguage bounded;
      bounded.minimum = "-5";
      bounded.maximum = "99.5";
      const TerminalPtr number = pool.json_number(bounded);
      for (const char* text : {"\"abc-def\"", "\"a-b-c-d-e-f\"", "\"\\u0061\""}) wrong += !accepts(*t, text);
      for (const char* text : {"\"\"", "\"-\"", "\"A\""}) wrong += accepts(*t, text);
      wrong += label_of(*key, "\"alphabet\"") != 1 || label_of(*key, "\"alph\"") != 3;
      wrong += !accepts(*number, "99.50") || accepts(*number, "99.51");
      wrong += t->min_rest(Terminal::kStart, 0) != 3 || key->shortest(Terminal::kStart, 0) != "\"\"";
    };
    std::vector<std::thread> all;
    for (int i = 0; i < 4; ++i) all.emplace_back(work);
    for (std::thread& one : all) one.join();
    CHECK(wrong == 0);
  }
}

// Steps that a language takes in a pool of its own, at most `most`.
std::uint64_t steps(const StringLanguage& s, std::uint64_t most) {
  TerminalPool pool;
  const regular::Effort effort(most);
  CHECK(pool.json_string(s) != nullptr);
  return most - regular::Effort::left();
}

// What combined patterns cost is bounded by what each costs, and all of one compilation's together.
void effort() {
  constexpr std::uint64_t kPlenty = 1'000'000;
  StringLanguage one, many;
  one.patterns = {"a.*b"};
  one.not_patterns = {"c.*d"};
  for (char a = 'a'; a < 'g'; ++a)
    for (char b = 'a'; b < 'g'; ++b)
      if (a != b) many.not_patterns.push_back(std::string{a, '.', '*', b});
  CHECK(steps(one, kPlenty) < 500);
  CHECK(steps(many, kPlenty) < 40'000);  // 30 patterns
  StringLanguage counted = one;
  counted.patterns.push_back("x{3,60}");
  counted.not_patterns.push_back("^.{0,40}y");
  CHECK(steps(counted, kPlenty) < 60'000);
  StringLanguage formats;
  formats.formats = {"uri"};
  formats.not_formats = {"hostname"};
  CHECK(is_empty(formats) == false);
  formats.formats = {"uri", "hostname"};
  formats.not_formats.clear();
  CHECK(is_empty(formats) == true);  // though lengths are bounded

  // Whoever meets a terminal that is there already pays for it as well.
  TerminalPool pool;
  std::uint64_t first = 0;
  for (int round = 0; round < 3; ++round) {
    const regular::Effort limit(kPlenty);
    CHECK(pool.json_string(counted) != nullptr);
    const std::uint64_t spent = kPlenty - regular::Effort::left();
    first = round == 0 ? spent : first;
    CHECK(spent == first && spent > 0);
  }
  {
    const regular::Effort limit(first - 1);
    CHECK_THROWS(GrammarError, pool.json_string(counted));
    CHECK(regular::Effort::left() == 0);
    CHECK_THROWS(GrammarError, TerminalPool().json_string(counted));
  }
  // Numbers: states are those of the remainders that matter.
  NumberLanguage n;
  n.multiple_of = {"429"};
  n.not_multiple_of = {"8", "12", "77", "6"};
  const regular::Effort limit(kPlenty);
  const TerminalPtr t = TerminalPool().json_number(n);
  CHECK(kPlenty - regular::Effort::left() < 100'000);
  for (const char* text : {"429", "-429", "429.0", "1287"}) CHECK_TEXT(accepts(*t, text), text);
  for (const char* text : {"858", "3003", "1716", "430", "0", "429.5"}) CHECK_TEXT(!accepts(*t, text), text);
}

}  // namespace

int main() {
  TerminalPool pool;
  searches(pool);
  whole(pool);
  refused(pool);
  formats(pool);
  hostile(pool);
  effort();
  threads();
  std::printf("%s\n", failures == 0 ? "ok" : "failed");
  return failures == 0 ? 0 : 1;
}
