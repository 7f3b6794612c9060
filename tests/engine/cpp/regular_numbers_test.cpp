// Numbers: every text over a small alphabet against an exact comparison, and every state against the interface.
#include <string>
#include <vector>

#include "check.h"

namespace {

using namespace ag;

// JSON's number grammar (RFC 8259), written out. *plain: no exponent; *canonical: as json.dumps would write it.
bool is_number(std::string_view t, bool* plain, bool* canonical) {
  std::size_t i = 0;
  const auto digits = [&] {
    const std::size_t from = i;
    while (i < t.size() && t[i] >= '0' && t[i] <= '9') ++i;
    return i - from;
  };
  if (i < t.size() && t[i] == '-') ++i;
  const std::size_t first = i, whole = digits();
  if (whole == 0 || (t[first] == '0' && whole > 1)) return false;
  *plain = *canonical = true;
  if (i < t.size() && t[i] == '.') {
    ++i;
    if (digits() == 0) return false;
  }
  if (i < t.size() && (t[i] == 'e' || t[i] == 'E')) {
    *plain = false;
    ++i;
    if (i < t.size() && (t[i] == '+' || t[i] == '-')) ++i;
    const std::size_t from = i, size = digits();
    if (size == 0) return false;
    *canonical = whole == 1 && t[first] != '0' && (t[from] != '0' || size <= 2) && size < 3;  // the range of doubles
  }
  return i == t.size();
}

NumberLanguage number(std::string min, std::string xmin, std::string max, std::string xmax,
                      std::vector<std::string> of = {}, std::vector<std::string> excluded = {}) {
  NumberLanguage n;
  n.minimum = std::move(min);
  n.exclusive_minimum = std::move(xmin);
  n.maximum = std::move(max);
  n.exclusive_maximum = std::move(xmax);
  n.multiple_of = std::move(of);
  n.excluded = std::move(excluded);
  return n;
}
NumberLanguage integer(NumberLanguage n) {
  n.integer = true;
  return n;
}

void compare_all(TerminalPool& pool, const NumberLanguage& n, const std::vector<std::string>& alphabet,
                 std::size_t length) {
  const TerminalPtr t = pool.json_number(n);
  std::size_t found = 0;
  each_text(alphabet, length, [&](const std::string& text) {
    bool plain = false, canonical = false;
    const bool grammatical = is_number(text, &plain, &canonical);
    bool expected = grammatical && contains(n, text);
    if (n.integer && (text == "-0" || text.find_first_of(".eE") != std::string::npos)) expected = false;
    if (!n.multiple_of.empty() && !plain) expected = false;
    const bool got = t && accepts(*t, text);
    found += got;
    if (grammatical && !plain && (!canonical || !n.not_multiple_of.empty())) {
      CHECK_TEXT(!got || expected, text);  // unusual exponent forms may be left out, never wrongly let in
    } else {
      CHECK_TEXT(got == expected, text);
    }
    if (!t || got) return;
    Position at;  // what is not dead must be completable
    if (walk(*t, text, &at)) CHECK_TEXT(accepts(*t, text + t->shortest(at.state, 0)), text);
  });
  if (t) check_terminal(*t, 1500);
  CHECK(t != nullptr || found == 0);
}

void small_worlds(TerminalPool& pool) {
  const std::vector<std::string> digits{"0", "1", "2", "5", "9", "-", "."};
  const std::vector<std::string> marks{"0", "1", "2", "9", "-", ".", "e", "+"};
  const std::vector<std::string> ends{"", "0", "1", "-1", "0.5", "-1.25", "9", "10", "19.5", "99", "-20", "120"};
  for (const std::string& low : ends)
    for (const std::string& high : ends) {
      for (int open = 0; open < 4; ++open) {
        const NumberLanguage n =
            number(open & 1 ? "" : low, open & 1 ? low : "", open & 2 ? "" : high, open & 2 ? high : "");
        compare_all(pool, integer(n), digits, 4);
        compare_all(pool, n, digits, 4);
        compare_all(pool, n, marks, 4);
      }
    }
}

void multiples(TerminalPool& pool) {
  const std::vector<std::string> digits{"0", "1", "2", "5", "7", "-", "."};
  for (const std::vector<std::string>& of : std::vector<std::vector<std::string>>{
           {"2"}, {"3"}, {"0.5"}, {"0.25"}, {"0.1"}, {"2", "3"}, {"1.5"}, {"7"}, {"20"}, {"0.05", "0.2"}})
    for (const auto& [low, high] : std::vector<std::pair<std::string, std::string>>{{"", ""},
                                                                                    {"0", "100"},
                                                                                    {"-7", "7"},
                                                                                    {"1", "1"},
                                                                                    {"0.3", "2.2"},
                                                                                    {"-0.25", ""},
                                                                                    {"50", "52"},
                                                                                    {"11", "13"}}) {
      compare_all(pool, number(low, "", high, "", of), digits, 5);
      compare_all(pool, integer(number(low, "", high, "", of)), digits, 5);
      compare_all(pool, number("", low, "", high, of, {"0", "1.5", "12"}), digits, 4);
      compare_all(pool, integer(number("", low, "", high, of, {"0", "1.5", "12"})), digits, 4);
    }
}

void opposites(TerminalPool& pool) {
  const std::vector<std::string> digits{"0", "1", "2", "5", "7", "-", ".", "e"};
  for (const std::vector<std::string>& of : std::vector<std::vector<std::string>>{{"1"}, {"2"}, {"0.5"}, {"2", "3"}})
    for (const auto& [low, high] :
         std::vector<std::pair<std::string, std::string>>{{"", ""}, {"-7", "7"}, {"2", "2"}}) {
      NumberLanguage n = number(low, "", high, "");
      n.not_multiple_of = of;
      compare_all(pool, n, digits, 5);
      compare_all(pool, integer(n), digits, 5);
      n.multiple_of = {"0.25"};
      compare_all(pool, n, digits, 4);
    }
}

void excluded(TerminalPool& pool) {
  const std::vector<std::string> marks{"0", "1", "5", "-", ".", "e"};
  for (const auto& out :
       std::vector<std::vector<std::string>>{{"0"}, {"1"}, {"1", "5", "0.5"}, {"-1.50"}, {"1e1", "10"}}) {
    compare_all(pool, number("", "", "", "", {}, out), marks, 5);
    compare_all(pool, number("-1", "", "11", "", {}, out), marks, 5);
    compare_all(pool, integer(number("", "", "", "", {}, out)), marks, 5);
  }
}

// What json.dumps writes of doubles inside the bounds is allowed; nothing outside is.
void exponents(TerminalPool& pool) {
  const TerminalPtr t = pool.json_number(number("", "1e-10", "", "1e20"));
  for (const char* text :
       {"1e-07", "1e+16", "9.999999999e+19", "1.0000000001e-10", "1", "99999999999999999999", "5e-9"})
    CHECK_TEXT(accepts(*t, text), text);
  for (const char* text : {"1e-10", "1e20", "1e+20", "1.1e20", "9.9e-11", "1e-11", "1e21", "1e-0100", "0", "-1"})
    CHECK_TEXT(!accepts(*t, text), text);
  const TerminalPtr positive = pool.json_number(number("", "0", "", ""));
  for (const char* text : {"5e-324", "1.7976931348623157e+308", "0.1", "123456789012345678901234567890"})
    CHECK_TEXT(accepts(*positive, text), text);
  for (const char* text : {"0", "0.0", "-1", "-0", "0e5", "1e-400", "1e309"})
    CHECK_TEXT(!accepts(*positive, text), text);
  const TerminalPtr narrow = pool.json_number(number("1.25e-5", "", "1.26e-5", ""));
  for (const char* text : {"1.25e-05", "1.255e-5", "0.0000125", "0.00001259"}) CHECK_TEXT(accepts(*narrow, text), text);
  for (const char* text : {"1.24e-05", "1.261e-5", "0.0000124", "1e-5", "0.00001261"})
    CHECK_TEXT(!accepts(*narrow, text), text);
  check_terminal(*narrow, 3000);
}

void large(TerminalPool& pool) {
  const std::string big = "123456789012345678901234567890";
  const TerminalPtr t = pool.json_number(integer(number(big, "", big, "")));
  CHECK(accepts(*t, big));
  CHECK(!accepts(*t, "123456789012345678901234567891"));
  CHECK(t->shortest(Terminal::kStart, 0) == big);
  const TerminalPtr thousand = pool.json_number(integer(number("1e300", "", "", "", {"7"})));
  const std::string least = thousand->shortest(Terminal::kStart, 0);
  CHECK(least.size() == 301 && accepts(*thousand, least) &&
        contains(integer(number("1e300", "", "", "", {"7"})), least));
  const TerminalPtr coarse = pool.json_number(integer(number("", "", "", "", {"4000000007"})));
  CHECK(accepts(*coarse, "4000000007") && accepts(*coarse, "-8000000014") && !accepts(*coarse, "4000000008"));
  CHECK(pool.json_number(integer(number("1", "", "4000000006", "", {"4000000007"}))) == nullptr);
  CHECK(pool.json_number(number("2", "", "1", "")) == nullptr);
  CHECK(pool.json_number(number("", "1", "1", "")) == nullptr);
  CHECK(pool.json_number(integer(number("0.1", "", "0.9", ""))) == nullptr);
  CHECK_THROWS(ValueError, pool.json_number(number("abc", "", "", "")));
  CHECK_THROWS(ValueError, pool.json_number(number("", "", "", "", {"0"})));
  CHECK_THROWS(GrammarError, pool.json_number(number("", "", "", "", {"0.12345678901234567890123"})));
  CHECK_THROWS(GrammarError, pool.json_number(number("1e999999999999", "", "", "")));
}

}  // namespace

int main() {
  TerminalPool pool;
  small_worlds(pool);
  multiples(pool);
  opposites(pool);
  excluded(pool);
  exponents(pool);
  large(pool);
  std::printf("%s\n", failures == 0 ? "ok" : "failed");
  return failures == 0 ? 0 : 1;
}
