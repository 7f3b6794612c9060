#include "regular/regex_reader.h"

#include <array>
#include <optional>
#include <string>

#include "regular/anchored.h"
#include "regular/unicode.h"

namespace ag::regular {

namespace {

constexpr std::size_t kMaxPattern = 65'536;  // scalars
constexpr std::uint32_t kMaxDepth = 200;
constexpr Cp kEnd = 0xffff'ffff;

class Reader {
 public:
  Reader(RegexStore& store, std::string_view pattern) : store_(store), anchors_(store), pattern_(pattern) {
    for (std::size_t at = 0; at < pattern.size();) {
      Cp cp = 0;
      if (!decode_utf8(pattern, &at, &cp)) fail("bytes that are not UTF-8", "Write the pattern in UTF-8.");
      text_.push_back(cp);
      if (text_.size() > kMaxPattern) fail("a pattern of more than 65,536 characters", "Split it.");
    }
  }

  Anchored read() {
    const Anchored out = alternatives(0);
    if (peek() == ')') fail("a ')' that closes nothing", "Escape it as \\).");
    return out;
  }

  Anchors& anchors() { return anchors_; }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& hint, std::size_t back = 0) const {
    const std::size_t at = at_ >= back ? at_ - back : 0;
    std::string shown(pattern_.substr(0, 80));
    if (!valid_utf8(shown)) shown = "...";
    throw GrammarError("the pattern '" + shown + "' has " + what + " at position " + std::to_string(at),
                       std::to_string(at), "pattern", hint);
  }

  Cp peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : kEnd; }
  bool eat(Cp cp) {
    if (peek() != cp) return false;
    ++at_;
    return true;
  }
  bool eat(std::string_view ascii) {
    for (std::size_t i = 0; i < ascii.size(); ++i)
      if (peek(i) != static_cast<std::uint8_t>(ascii[i])) return false;
    at_ += ascii.size();
    return true;
  }

  Anchored alternatives(std::uint32_t depth) {
    if (depth > kMaxDepth) fail("groups nested deeper than 200", "Flatten the pattern.");
    std::vector<Anchored> options{sequence(depth)};
    while (eat('|')) options.push_back(sequence(depth));
    return anchors_.alt(options);
  }

  Anchored sequence(std::uint32_t depth) {
    std::vector<Anchored> parts;
    while (peek() != kEnd && peek() != '|' && peek() != ')') parts.push_back(quantified(depth));
    return anchors_.concat(parts);
  }

  Anchored quantified(std::uint32_t depth) {
    bool anchor = false;
    const Anchored item = atom(depth, &anchor);
    std::uint64_t min = 1, max = 1;
    const std::size_t before = at_;
    if (!quantifier(&min, &max)) return item;
    if (anchor) fail("a quantifier after an anchor", "Remove the quantifier.", at_ - before);
    eat('?');  // lazy: the same language
    if (peek() == '+') fail("a possessive quantifier", "Use a greedy one.");
    if (peek() == '*' || peek() == '?') fail("a quantifier after a quantifier", "Put the first into a group.");
    std::uint64_t unused_min = 0, unused_max = 0;
    if (quantifier(&unused_min, &unused_max)) fail("a quantifier after a quantifier", "Put the first into a group.", 1);
    if (max != 0 && item.plain()) return anchors_.plain(store_.repeat(item.id(), min, max));
    if (max == 0) return anchors_.plain(RegexStore::kEpsilon);
    if (max == 1) return min == 1 ? item : anchors_.alt({anchors_.plain(RegexStore::kEpsilon), item});
    fail("an anchor inside a repetition", "Move ^ and $ out of the repeated group.", at_ - before);
  }

  bool quantifier(std::uint64_t* min, std::uint64_t* max) {
    const std::size_t from = at_;
    if (eat('*')) return *min = 0, *max = kNoMax, true;
    if (eat('+')) return *min = 1, *max = kNoMax, true;
    if (eat('?')) return *min = 0, *max = 1, true;
    if (!eat('{')) return false;
    const bool digits = number(min);
    if (!digits && peek() == ',' && is_digit(peek(1))) fail("a quantifier without its lower bound", "Write {0,n}.");
    bool closed = false;
    if (digits && eat(',')) {
      if (!number(max)) *max = kNoMax;
      closed = eat('}');
    } else if (digits) {
      *max = *min;
      closed = eat('}');
    }
    if (!closed) {  // a brace that is no quantifier stands for itself
      at_ = from;
      return false;
    }
    if (*min > *max) fail("a quantifier whose bounds are out of order", "Put the smaller bound first.", at_ - from);
    return true;
  }

  static bool is_digit(Cp cp) { return cp >= '0' && cp <= '9'; }

  bool number(std::uint64_t* out) {
    if (!is_digit(peek())) return false;
    *out = 0;
    for (; is_digit(peek()); ++at_) {
      if (*out > (std::uint64_t{1} << 53)) fail("a bound above 2^53", "Lower it.");
      *out = *out * 10 + (peek() - '0');
    }
    return true;
  }

  Anchored atom(std::uint32_t depth, bool* anchor) {
    const Cp cp = peek();
    ++at_;
    *anchor = cp == '^' || cp == '$';
    switch (cp) {
      case '^':
        return anchors_.begin();
      case '$':
        return anchors_.end();
      case '.':
        return members(line_ends_set().complement());
      case '(':
        return group(depth);
      case '[':
        return members(bracket());
      case '\\':
        if (eat('A')) return *anchor = true, anchors_.begin();
        if (eat('Z')) return *anchor = true, anchors_.end();
        if (peek() == 'b' || peek() == 'B') fail("a word boundary", "Spell out what may stand beside the word.", 1);
        return members(escape(false));
      case '*':
      case '+':
      case '?':
        fail("a quantifier with nothing before it", "Escape it with a backslash.", 1);
      case '{': {
        const std::size_t from = --at_;
        std::uint64_t min = 0, max = 0;
        if (quantifier(&min, &max))
          fail("a quantifier with nothing before it", "Escape it with a backslash.", at_ - from);
        ++at_;
        return members(CpSet::one('{'));
      }
      default:
        return members(CpSet::one(cp));
    }
  }

  Anchored members(const CpSet& set) { return anchors_.plain(store_.set(set)); }

  Anchored group(std::uint32_t depth) {
    const std::size_t from = at_ - 1;
    if (eat('?')) {
      const std::size_t back = at_ - from;
      if (eat("=") || eat("!") || eat("<=") || eat("<!"))
        fail("look-around", "Say it with the other keywords (format, not, allOf).", at_ - from);
      if (eat("P=")) fail("a back-reference", "Repeat the group itself.", at_ - from);
      if (eat("P<") || eat("<")) {
        while (peek() != '>' && peek() != kEnd && peek() != ')') ++at_;
        if (!eat('>')) fail("a group name that does not end", "Close it with '>'.");
      } else if (!eat(':')) {
        fail("an unknown kind of group (?" + shown(peek()) + "...", "Use (...), (?:...) or (?<name>...).", back);
      }
    }
    const Anchored out = alternatives(depth + 1);
    if (!eat(')')) fail("a group that is not closed", "Add the missing ')'.", at_ - from);
    return out;
  }

  static std::string shown(Cp cp) {
    std::string out;
    if (cp != kEnd) append_utf8(&out, cp);
    return out;
  }

  CpSet bracket() {
    const std::size_t from = at_ - 1;
    const bool inverse = eat('^');
    std::vector<CpRange> ranges;
    const auto add = [&](const CpSet& set) { ranges.insert(ranges.end(), set.ranges().begin(), set.ranges().end()); };
    while (!eat(']')) {
      if (peek() == kEnd) fail("a class that is not closed", "Add the missing ']'.", at_ - from);
      std::optional<Cp> lo, hi;
      const CpSet first = class_item(&lo);
      if (peek() != '-' || peek(1) == ']' || peek(1) == kEnd || !lo) {
        add(first);
        continue;
      }
      ++at_;
      const CpSet second = class_item(&hi);
      if (!hi) {  // as in [a-\d]: the hyphen stands for itself
        add(first);
        add(CpSet::one('-'));
        add(second);
        continue;
      }
      if (*lo > *hi) fail("a class range whose ends are out of order", "Put the smaller end first.", 1);
      ranges.push_back({*lo, *hi});
    }
    const CpSet set(std::move(ranges));
    return inverse ? set.complement() : set;
  }

  // One member of a class; `single` when it is one scalar, which may begin or end a range.
  CpSet class_item(std::optional<Cp>* single) {
    const Cp cp = peek();
    ++at_;
    if (cp != '\\') {
      *single = cp;
      return CpSet::one(cp);
    }
    if (eat('b')) {
      *single = '\b';
      return CpSet::one('\b');
    }
    const CpSet set = escape(true);
    if (set.ranges().size() == 1 && set.ranges()[0].lo == set.ranges()[0].hi) *single = set.ranges()[0].lo;
    return set;
  }

  // After a backslash.
  CpSet escape(bool in_class) {
    const Cp cp = peek();
    if (cp == kEnd) fail("a backslash at its end", "Escape the backslash.", 1);
    ++at_;
    switch (cp) {
      case 'd':
        return digit_set();
      case 'D':
        return digit_set().complement();
      case 'w':
        return word_set();
      case 'W':
        return word_set().complement();
      case 's':
        return space_set();
      case 'S':
        return space_set().complement();
      case 't':
        return CpSet::one('\t');
      case 'n':
        return CpSet::one('\n');
      case 'v':
        return CpSet::one('\v');
      case 'f':
        return CpSet::one('\f');
      case 'r':
        return CpSet::one('\r');
      case '0':
        if (is_digit(peek())) fail("an octal escape", "Write \\xHH.", 2);
        return CpSet::one(0);
      case 'c':
        if (const Cp letter = peek() | 0x20; letter >= 'a' && letter <= 'z' && peek() < 0x80) {
          ++at_;
          return CpSet::one(letter & 0x1f);
        }
        fail("an incomplete \\c escape", "Follow it by a letter.", 2);
      case 'x':
        return CpSet::one(hex(2));
      case 'u':
        return CpSet::one(unicode_escape());
      case 'p':
      case 'P':
        return property(cp == 'P');
      case 'k':
        fail("a back-reference", "Repeat the group itself.", 2);
      default:
        break;
    }
    if (cp >= '1' && cp <= '9') fail("a back-reference", "Repeat the group itself.", 2);
    const bool letter = (cp >= 'a' && cp <= 'z') || (cp >= 'A' && cp <= 'Z');
    if (letter) fail("an unknown escape \\" + shown(cp), in_class ? "Remove the backslash." : "Check its spelling.", 2);
    return CpSet::one(cp);
  }

  Cp hex(std::size_t digits) {
    Cp out = 0;
    for (std::size_t i = 0; i < digits; ++i, ++at_) {
      const Cp cp = peek(), lower = cp | 0x20;
      if (is_digit(cp))
        out = out << 4 | (cp - '0');
      else if (cp < 0x80 && lower >= 'a' && lower <= 'f')
        out = out << 4 | (lower - 'a' + 10);
      else
        fail("an incomplete hexadecimal escape", "Give all its digits.");
    }
    return out;
  }

  Cp unicode_escape() {
    Cp cp = 0;
    if (eat('{')) {
      std::size_t digits = 0;
      for (; peek() != '}'; ++digits) {
        cp = cp << 4 | hex(1);
        if (cp > kMaxCp) fail("a code point above 10FFFF", "Lower it.");
      }
      ++at_;
      if (digits == 0) fail("an empty \\u{} escape", "Give its digits.");
    } else {
      cp = hex(4);
      if (cp >= 0xd800 && cp <= 0xdbff && peek() == '\\' && peek(1) == 'u') {
        at_ += 2;
        const Cp low = hex(4);
        if (low < 0xdc00 || low > 0xdfff) fail("half a surrogate pair", "Write the whole code point.");
        return 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
      }
    }
    if (cp >= kSurrogateLo && cp <= kSurrogateHi) fail("half a surrogate pair", "Write the whole code point.");
    return cp;
  }

  CpSet property(bool inverse) {
    std::string name;
    if (eat('{')) {
      while (peek() != '}' && peek() != kEnd) {
        append_utf8(&name, peek());
        ++at_;
      }
      if (!eat('}')) fail("a \\p escape that is not closed", "Add the missing '}'.");
    } else {
      fail("a \\p escape without braces", "Write \\p{L}.");
    }
    const std::optional<CpSet> set = property_set(name);
    if (!set)
      fail("the Unicode property '" + name + "', which is not known here",
           "General categories are: \\p{L}, \\p{Lu}, \\p{Nd}, ...; list the ranges of scripts.");
    return inverse ? set->complement() : *set;
  }

  RegexStore& store_;
  Anchors anchors_;
  std::string_view pattern_;
  std::vector<Cp> text_;
  std::size_t at_ = 0;
};

}  // namespace

RegexStore::Id read_regex(RegexStore& store, std::string_view pattern, Match match) {
  Reader reader(store, pattern);
  const Anchored read = reader.read();
  return match == Match::kWhole ? reader.anchors().whole(read) : reader.anchors().search(read);
}

}  // namespace ag::regular
