#include <algorithm>
#include <utility>

#include "grammar/ebnf_tree.h"

namespace ag::ebnf {

void fail_at(std::string_view text, std::size_t offset, std::string message, std::string hint) {
  std::size_t line = 1, start = 0;
  for (std::size_t i = 0; i < offset && i < text.size(); ++i) {
    if (text[i] == '\n') ++line, start = i + 1;
  }
  throw GrammarError(std::move(message), std::to_string(line) + ":" + std::to_string(offset - start + 1), "ebnf",
                     std::move(hint));
}

void append_regex(std::string& out, std::uint32_t cp) {
  bool plain = (cp >= '0' && cp <= '9') || (cp >= 'a' && cp <= 'z') || (cp >= 'A' && cp <= 'Z');
  if (plain) {
    out += static_cast<char>(cp);
    return;
  }
  static constexpr char kHex[] = "0123456789abcdef";
  out += "\\u{";
  bool started = false;
  for (int shift = 20; shift >= 0; shift -= 4) {
    std::uint32_t digit = cp >> shift & 15;
    started = started || digit || shift == 0;
    if (started) out += kHex[digit];
  }
  out += '}';
}

namespace {

void append_utf8(std::string& out, std::uint32_t cp) {
  auto put = [&](std::uint32_t b) { out += static_cast<char>(b); };
  if (cp < 0x80) {
    put(cp);
  } else if (cp < 0x800) {
    put(0xC0 | cp >> 6), put(0x80 | (cp & 0x3F));
  } else if (cp < 0x10000) {
    put(0xE0 | cp >> 12), put(0x80 | (cp >> 6 & 0x3F)), put(0x80 | (cp & 0x3F));
  } else {
    put(0xF0 | cp >> 18), put(0x80 | (cp >> 12 & 0x3F)), put(0x80 | (cp >> 6 & 0x3F)), put(0x80 | (cp & 0x3F));
  }
}

bool name_start(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool name_part(char c) { return name_start(c) || (c >= '0' && c <= '9') || c == '-' || c == '.'; }

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Grammar grammar() {
    blanks();
    if (at_ == text_.size()) fail("the grammar is empty", "Write at least: root ::= \"text\"");
    while (at_ < text_.size()) definition();
    for (const RuleDef& r : out_.rules) {
      if (!r.defined) fail_at(text_, r.at, "the rule \"" + r.name + "\" is used but not defined", near(r.name));
    }
    auto root = index_.find("root");
    if (root == index_.end()) fail_at(text_, 0, "there is no rule \"root\"", "Call the first rule root.");
    out_.root = root->second;
    return std::move(out_);
  }

 private:
  void definition() {
    std::size_t start = at_;
    std::string name = this->name();
    if (name.empty() || !definition_sign()) fail_at(text_, start, "expected a rule: name ::= ...");
    std::uint32_t rule = rule_of(name, start);
    if (out_.rules[rule].defined)
      fail_at(text_, start, "the rule \"" + name + "\" is defined twice", "Join the two with '|'.");
    out_.rules[rule].defined = true;
    Expr body = choice();
    out_.rules[rule].body = std::move(body);
    if (at_ < text_.size() && !at_definition()) fail("expected '|', a rule, or the end of the grammar");
  }

  Expr choice() {
    if (++nesting_ > kMaxNesting) fail("groups are nested more than " + std::to_string(kMaxNesting) + " deep");
    Expr out;
    out.kind = Expr::kChoice;
    out.children.push_back(sequence());
    while (eat('|')) out.children.push_back(sequence());
    --nesting_;
    return out.children.size() == 1 ? Expr(std::move(out.children[0])) : out;
  }

  Expr sequence() {
    Expr out;
    out.kind = Expr::kSeq;
    for (;;) {
      blanks();
      if (at_ == text_.size() || text_[at_] == '|' || text_[at_] == ')' || at_definition()) break;
      out.children.push_back(quantified());
    }
    return out.children.size() == 1 ? Expr(std::move(out.children[0])) : out;
  }

  Expr quantified() {
    Expr item = atom();
    for (;;) {
      blanks();
      if (at_ == text_.size()) return item;
      std::uint64_t min = 0, max = kNoMax;
      switch (text_[at_]) {
        case '*':
          break;
        case '+':
          min = 1;
          break;
        case '?':
          max = 1;
          break;
        case '{':
          counts(min, max);
          break;
        default:
          return item;
      }
      ++at_;
      Expr repeat;
      repeat.kind = Expr::kRepeat;
      repeat.min = min, repeat.max = max;
      if (++quantifiers_ > kMaxNesting) fail("too many quantifiers follow each other");
      repeat.children.push_back(std::move(item));
      item = std::move(repeat);
    }
  }

  // At '{'; leaves at_ on '}'.
  void counts(std::uint64_t& min, std::uint64_t& max) {
    std::size_t start = at_++;
    auto number = [&](std::uint64_t otherwise) {
      blanks();
      std::size_t first = at_;
      std::uint64_t n = 0;
      for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
        if (at_ - first >= 18) fail_at(text_, first, "the count is too large");
        n = n * 10 + static_cast<std::uint64_t>(text_[at_] - '0');
      }
      bool none = at_ == first;
      blanks();
      return none ? otherwise : n;
    };
    min = max = number(kNoMax);
    bool comma = eat(',');
    if (comma) max = number(kNoMax);
    if (min == kNoMax && !comma) fail_at(text_, start, "expected a count such as {2}, {2,} or {2,5}");
    if (min == kNoMax) min = 0;
    if (at_ == text_.size() || text_[at_] != '}') fail_at(text_, start, "a count lacks its '}'");
    if (min > max) fail_at(text_, start, "the least count is above the greatest", "Swap the two numbers.");
  }

  Expr atom() {
    quantifiers_ = 0;
    char c = text_[at_];
    if (c == '(') {
      std::size_t start = at_++;
      Expr inner = choice();
      if (!eat(')')) fail_at(text_, start, "a group lacks its ')'");
      return inner;
    }
    Expr out;
    if (c == '"' || c == '\'') {
      out.text = literal();
      return out;
    }
    out.kind = Expr::kRegex;
    if (c == '[') {
      out.text = char_class();
      return out;
    }
    if (c == '.') {
      ++at_;
      out.text = "[\\u{0}-\\u{10ffff}]";
      return out;
    }
    std::size_t start = at_;
    std::string word = name();
    if (word.empty()) fail(std::string("unexpected '") + c + "'");
    blanks();
    if (word == "Regex" && eat('(')) {
      blanks();
      if (at_ == text_.size() || (text_[at_] != '"' && text_[at_] != '\''))
        fail("Regex(...) takes a pattern in quotes");
      out.text = pattern();
      if (!eat(')')) fail_at(text_, start, "Regex lacks its ')'");
      return out;
    }
    out.kind = Expr::kRef;
    out.rule = rule_of(word, start);
    return out;
  }

  std::string literal() {
    std::size_t start = at_;
    char quote = text_[at_++];
    std::string out;
    for (;;) {
      if (at_ == text_.size() || text_[at_] == '\n') fail_at(text_, start, "a literal lacks its closing quote");
      if (text_[at_] == quote) break;
      if (text_[at_] == '\\') {
        append_utf8(out, escape());
      } else {
        append_utf8(out, character());
      }
    }
    ++at_;
    return out;
  }

  // The text between quotes as it stands: escapes belong to the regular expression, save that of the quote itself.
  std::string pattern() {
    std::size_t start = at_;
    char quote = text_[at_++];
    std::string out;
    for (;; ++at_) {
      if (at_ == text_.size() || text_[at_] == '\n') fail_at(text_, start, "a pattern lacks its closing quote");
      if (text_[at_] == quote) break;
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        if (text_[at_ + 1] != quote) out += '\\';
        ++at_;
      }
      out += text_[at_];
    }
    ++at_;
    return out;
  }

  std::string char_class() {
    std::size_t start = at_++;
    std::string out = "[";
    if (at_ < text_.size() && text_[at_] == '^') out += '^', ++at_;
    bool empty = true;
    for (;;) {
      if (at_ == text_.size() || text_[at_] == '\n') fail_at(text_, start, "a character class lacks its ']'");
      if (text_[at_] == ']') break;
      empty = false;
      if (text_[at_] == '\\' && at_ + 1 < text_.size() &&
          std::string_view("dDwWsS").find(text_[at_ + 1]) != std::string_view::npos) {
        out += text_.substr(at_, 2);
        at_ += 2;
        continue;
      }
      std::size_t first = at_;
      std::uint32_t lo = member(), hi = lo;
      if (at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
        ++at_;
        hi = member();
      }
      if (hi < lo) fail_at(text_, first, "the range in the character class is reversed");
      append_regex(out, lo);
      if (hi != lo) out += '-', append_regex(out, hi);
    }
    ++at_;
    if (empty) {
      if (out == "[") fail_at(text_, start, "the character class is empty, so nothing matches it");
      return "[\\u{0}-\\u{10ffff}]";
    }
    return out + "]";
  }

  std::uint32_t member() { return text_[at_] == '\\' ? escape() : character(); }

  std::uint32_t escape() {
    std::size_t start = at_++;
    if (at_ == text_.size()) fail_at(text_, start, "the grammar ends inside an escape");
    char c = text_[at_++];
    auto hex = [&](std::size_t digits) {
      std::uint32_t value = 0;
      bool braces = digits == 4 && at_ < text_.size() && text_[at_] == '{';
      if (braces) ++at_, digits = 8;
      std::size_t n = 0;
      for (; n < digits && at_ < text_.size(); ++n, ++at_) {
        char d = text_[at_];
        std::uint32_t v = d >= '0' && d <= '9'                     ? static_cast<std::uint32_t>(d - '0')
                          : (d | 0x20) >= 'a' && (d | 0x20) <= 'f' ? static_cast<std::uint32_t>((d | 0x20) - 'a' + 10)
                                                                   : 16;
        if (v == 16) break;
        value = value << 4 | v;
      }
      bool good = braces ? n > 0 && at_ < text_.size() && text_[at_] == '}' : n == digits;
      if (braces) ++at_;
      if (!good || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) {
        fail_at(text_, start, "the escape names no character", "Use \\xHH, \\uHHHH, \\UHHHHHHHH or \\u{H...}.");
      }
      return value;
    };
    switch (c) {
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'f':
        return '\f';
      case 'b':
        return '\b';
      case 'v':
        return '\v';
      case '0':
        return 0;
      case 'x':
        return hex(2);
      case 'u':
        return hex(4);
      case 'U':
        return hex(8);
      default:
        if (std::string_view("\\\"'[]-^/|.(){}?*+$#").find(c) != std::string_view::npos)
          return static_cast<unsigned char>(c);
        fail_at(text_, start, std::string("unknown escape \\") + c, "Double the backslash to mean one.");
    }
  }

  std::uint32_t character() {
    auto lead = static_cast<unsigned char>(text_[at_]);
    if (lead < 0x80) {
      ++at_;
      return lead;
    }
    std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    std::uint32_t cp = lead & (0xFFu >> (length + 1));
    bool good = lead >= 0xC2 && lead <= 0xF4 && at_ + length <= text_.size();
    for (std::size_t i = 1; good && i < length; ++i) {
      auto b = static_cast<unsigned char>(text_[at_ + i]);
      good = (b & 0xC0) == 0x80;
      cp = cp << 6 | (b & 0x3Fu);
    }
    static constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    if (!good || cp < kLeast[length] || cp > 0x10FFFF || (cp >= 0xD800 && cp < 0xE000))
      fail("the grammar is not UTF-8");
    at_ += length;
    return cp;
  }

  std::string name() {
    std::size_t start = at_;
    if (at_ < text_.size() && name_start(text_[at_])) {
      while (at_ < text_.size() && name_part(text_[at_])) ++at_;
    }
    return std::string(text_.substr(start, at_ - start));
  }

  bool definition_sign() {
    blanks();
    if (text_.substr(at_).starts_with("::=")) {
      at_ += 3;
      return true;
    }
    return false;
  }

  // Whether the next rule's definition starts here.
  bool at_definition() {
    std::size_t mark = at_;
    bool yes = !name().empty() && definition_sign();
    at_ = mark;
    return yes;
  }

  bool eat(char c) {
    blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void blanks() {
    for (; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (c == '#') {
        while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
      } else if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
        return;
      }
    }
  }

  std::uint32_t rule_of(const std::string& name, std::size_t at) {
    auto [it, fresh] = index_.try_emplace(name, static_cast<std::uint32_t>(out_.rules.size()));
    if (fresh) out_.rules.push_back({name, at, false, {}});
    return it->second;
  }

  // A hint that names a defined rule which differs little.
  std::string near(const std::string& name) const {
    for (const RuleDef& r : out_.rules) {
      bool same_letters = r.defined && r.name.size() == name.size() &&
                          std::equal(name.begin(), name.end(), r.name.begin(), [](char a, char b) {
                            auto plain = [](char c) { return c == '-' || c == '_' ? '_' : c | 0x20; };
                            return plain(a) == plain(b);
                          });
      if (same_letters) return "Did you mean \"" + r.name + "\"?";
    }
    return "Add a line: " + name + " ::= ...";
  }

  [[noreturn]] void fail(std::string message, std::string hint = {}) const {
    fail_at(text_, at_, std::move(message), std::move(hint));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t nesting_ = 0, quantifiers_ = 0;
  Grammar out_;
  std::unordered_map<std::string, std::uint32_t> index_;
};

}  // namespace

Grammar read(std::string_view text) { return Reader(text).grammar(); }

}  // namespace ag::ebnf
