#include "schema/json.h"

#include <cstring>
#include <unordered_set>
#include <vector>

namespace ag::json {
namespace {

constexpr std::uint32_t kManyKeys = 16;  // above this, duplicates are found by hashing

// 1: ends a run of plain bytes inside a string (quote, backslash, control, or not ASCII).
struct PlainTable {
  bool stop[256] = {};
  constexpr PlainTable() {
    for (int i = 0; i < 0x20; ++i) stop[i] = true;
    for (int i = 0x80; i < 256; ++i) stop[i] = true;
    stop['"'] = stop['\\'] = true;
  }
};
constexpr PlainTable kPlain;

class Reader {
 public:
  Reader(std::string_view text, Arena& arena, std::uint32_t max_depth)
      : begin_(text.data()), at_(begin_), end_(begin_ + text.size()), arena_(arena), max_depth_(max_depth) {}

  const Value& document() {
    Value* root = arena_.make<Value>();
    *root = value();
    blanks();
    if (at_ != end_) fail("more text after the end of the JSON value");
    return *root;
  }

 private:
  struct Frame {
    bool object;
    std::uint32_t first;  // index of the frame's first pending child
  };

  // Children of open arrays and objects wait in one stack and are copied to the arena when theirs closes.
  Value value() {
    Value done;
    for (;;) {
      blanks();
      if (at_ == end_) fail("the text ends inside a JSON value");
      char c = *at_;
      if (c == '{' || c == '[') {
        ++at_;
        if (frames_.size() >= max_depth_) fail("nested more than " + std::to_string(max_depth_) + " levels deep");
        frames_.push_back({c == '{', static_cast<std::uint32_t>(pending_.size())});
        blanks();
        if (at_ != end_ && *at_ == (c == '{' ? '}' : ']')) {
          ++at_;
          done = close();
        } else {
          if (c == '{') key();
          continue;
        }
      } else {
        done = scalar(c);
      }
      // `done` is complete: put it where it belongs, and close what ends after it.
      for (;;) {
        if (frames_.empty()) return done;
        if (frames_.back().object) {
          pending_.back().value = done;
        } else {
          pending_.push_back({{}, done});
        }
        blanks();
        char close_mark = frames_.back().object ? '}' : ']';
        if (at_ != end_ && *at_ == ',') {
          ++at_;
          if (frames_.back().object) key();
          break;
        }
        if (at_ == end_ || *at_ != close_mark) fail(std::string("expected ',' or '") + close_mark + "'");
        ++at_;
        done = close();
      }
    }
  }

  void key() {
    blanks();
    if (at_ == end_ || *at_ != '"') fail("expected a key in quotes");
    Value k = string();
    if (k.lone_surrogate) fail("a key holds half a surrogate pair");
    blanks();
    if (at_ == end_ || *at_ != ':') fail("expected ':' after a key");
    ++at_;
    pending_.push_back({k.text(), {}});
  }

  Value close() {
    Frame f = frames_.back();
    frames_.pop_back();
    std::span<const Member> children(pending_.data() + f.first, pending_.size() - f.first);
    Value out;
    out.size = static_cast<std::uint32_t>(children.size());
    if (f.object) {
      check_unique(children);
      out.type = Type::kObject;
      Member* members = arena_.array<Member>(children.size());
      std::uninitialized_copy(children.begin(), children.end(), members);
      out.member_data = members;
    } else {
      out.type = Type::kArray;
      Value* items = arena_.array<Value>(children.size());
      for (std::size_t i = 0; i < children.size(); ++i) new (items + i) Value(children[i].value);
      out.item_data = items;
    }
    pending_.resize(f.first);
    return out;
  }

  void check_unique(std::span<const Member> members) {
    if (members.size() > kManyKeys) {
      std::unordered_set<std::string_view> seen;
      for (const Member& m : members) {
        if (!seen.insert(m.key).second) fail_duplicate(m.key);
      }
      return;
    }
    for (std::size_t i = 1; i < members.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (members[i].key == members[j].key) fail_duplicate(members[i].key);
      }
    }
  }

  Value scalar(char c) {
    Value out;
    switch (c) {
      case '"':
        return string();
      case 't':
        return word("true", Type::kTrue);
      case 'f':
        return word("false", Type::kFalse);
      case 'n':
        return word("null", Type::kNull);
      default:
        if (c == '-' || (c >= '0' && c <= '9')) return number();
        if (c == 'N' || c == 'I') fail("NaN and Infinity are no JSON numbers");
        fail("expected a JSON value");
    }
  }

  Value word(std::string_view expected, Type type) {
    if (static_cast<std::size_t>(end_ - at_) < expected.size() || std::memcmp(at_, expected.data(), expected.size())) {
      fail("expected a JSON value");
    }
    at_ += expected.size();
    Value out;
    out.type = type;
    return out;
  }

  bool digits() {
    const char* start = at_;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9') ++at_;
    return at_ != start;
  }

  Value number() {
    const char* start = at_;
    if (*at_ == '-') ++at_;
    const char* first = at_;
    if (!digits()) fail("a number lacks its digits");
    if (*first == '0' && at_ - first > 1) fail("a number has a leading zero");
    if (at_ != end_ && *at_ == '.') {
      ++at_;
      if (!digits()) fail("a number lacks digits after '.'");
    }
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
      ++at_;
      if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
      if (!digits()) fail("a number lacks digits in its exponent");
    }
    Value out;
    out.type = Type::kNumber;
    out.text_data = start;
    out.size = static_cast<std::uint32_t>(at_ - start);
    return out;
  }

  Value string() {
    const char* start = ++at_;
    plain();
    Value out;
    out.type = Type::kString;
    if (at_ != end_ && *at_ == '"') {
      out.text_data = start;
      out.size = static_cast<std::uint32_t>(at_ - start);
      ++at_;
      return out;
    }
    scratch_.assign(start, at_);
    while (at_ != end_ && *at_ != '"') {
      if (*at_ == '\\') {
        escape(out);
      } else {
        const char* run = at_;
        plain();
        if (at_ == run) fail("a control character stands in a string; write it as an escape");
        scratch_.append(run, at_);
      }
    }
    if (at_ == end_) fail("a string has no closing quote");
    ++at_;
    char* text = arena_.array<char>(scratch_.size());
    std::memcpy(text, scratch_.data(), scratch_.size());
    out.text_data = text;
    out.size = static_cast<std::uint32_t>(scratch_.size());
    return out;
  }

  // Skips characters that stand for themselves.
  void plain() {
    for (;;) {
      while (at_ != end_ && !kPlain.stop[static_cast<unsigned char>(*at_)]) ++at_;
      if (at_ == end_ || static_cast<unsigned char>(*at_) < 0x80) return;
      at_ += utf8_character();
    }
  }

  std::size_t utf8_character() {
    auto byte = [&](std::size_t i) -> unsigned {
      return static_cast<std::size_t>(end_ - at_) > i ? static_cast<unsigned char>(at_[i]) : 0u;
    };
    unsigned lead = byte(0);
    std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    unsigned low = 0x80, high = 0xBF;  // of the second byte
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
    bool good = lead >= 0xC2 && lead <= 0xF4 && byte(1) >= low && byte(1) <= high;
    for (std::size_t i = 2; i < length; ++i) good = good && byte(i) >= 0x80 && byte(i) <= 0xBF;
    if (!good) fail("the text is not UTF-8");
    return length;
  }

  void escape(Value& out) {
    static constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
    if (++at_ == end_) fail("the text ends inside an escape");
    if (auto i = kFrom.find(*at_); i != std::string_view::npos) {
      scratch_ += kTo[i];
      ++at_;
      return;
    }
    if (*at_ != 'u') fail("an unknown escape in a string");
    ++at_;
    std::uint32_t unit = hex();
    if (unit >= 0xD800 && unit < 0xDC00 && end_ - at_ >= 6 && at_[0] == '\\' && at_[1] == 'u') {
      const char* mark = at_;
      at_ += 2;
      std::uint32_t low = hex();
      if (low >= 0xDC00 && low < 0xE000) {
        append(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00));
        return;
      }
      at_ = mark;
    }
    if (unit >= 0xD800 && unit < 0xE000) {
      out.lone_surrogate = true;
      unit = 0xFFFD;
    }
    append(unit);
  }

  std::uint32_t hex() {
    if (end_ - at_ < 4) fail("the text ends inside an escape");
    std::uint32_t unit = 0;
    for (int i = 0; i < 4; ++i) {
      char c = *at_++;
      std::uint32_t digit = 0;
      if (c >= '0' && c <= '9') {
        digit = static_cast<std::uint32_t>(c - '0');
      } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
        digit = static_cast<std::uint32_t>((c | 0x20) - 'a' + 10);
      } else {
        fail("\\u needs four hexadecimal digits");
      }
      unit = unit << 4 | digit;
    }
    return unit;
  }

  void append(std::uint32_t cp) {
    auto put = [&](std::uint32_t b) { scratch_ += static_cast<char>(b); };
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

  void blanks() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }

  [[noreturn]] void fail_duplicate(std::string_view key) {
    fail("the key \"" + std::string(key) + "\" occurs twice in one object");
  }

  [[noreturn]] void fail(std::string what) {
    std::size_t line = 1;
    const char* line_start = begin_;
    for (const char* p = begin_; p != at_; ++p) {
      if (*p == '\n') ++line, line_start = p + 1;
    }
    throw GrammarError("the schema is not JSON: " + std::move(what),
                       std::to_string(line) + ":" + std::to_string(at_ - line_start + 1), "",
                       "Give valid JSON text (RFC 8259), or the schema as a dict.");
  }

  const char *begin_, *at_, *end_;
  Arena& arena_;
  std::uint32_t max_depth_;
  std::vector<Frame> frames_;
  std::vector<Member> pending_;
  std::string scratch_;
};

}  // namespace

const Value& parse(std::string_view text, Arena& arena, std::uint32_t max_depth) {
  return Reader(text, arena, max_depth).document();
}

std::string escape_token(std::string_view key) {
  std::string out;
  for (char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

void for_each_value(const Value& root, const std::function<void(const Value&, const std::string&)>& visit) {
  struct Step {
    const Value* at;
    std::uint32_t next;
    std::size_t length;  // of the pointer to `at`
  };
  std::string pointer;
  std::vector<Step> path{{&root, 0, 0}};
  visit(root, pointer);
  while (!path.empty()) {
    Step& s = path.back();
    pointer.resize(s.length);
    bool object = s.at->is(Type::kObject);
    if ((!object && !s.at->is(Type::kArray)) || s.next == s.at->size) {
      path.pop_back();
      continue;
    }
    std::uint32_t i = s.next++;
    const Value* child = object ? &s.at->member_data[i].value : &s.at->item_data[i];
    pointer += '/';
    pointer += object ? escape_token(s.at->member_data[i].key) : std::to_string(i);
    visit(*child, pointer);
    path.push_back({child, 0, pointer.size()});
  }
}

std::string pointer_to(const Value& root, const Value& value) {
  std::string out;
  for_each_value(root, [&](const Value& v, const std::string& pointer) {
    if (&v == &value) out = pointer;
  });
  return out;
}

std::string excerpt(const Value& value, std::size_t limit) {
  struct Step {
    const Value* at;
    std::uint32_t next;
  };
  std::string out;
  std::vector<Step> open;
  auto quoted = [&](std::string_view text) {
    out += '"';
    for (char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    out += '"';
  };
  auto begin = [&](const Value& v) {
    switch (v.type) {
      case Type::kNull:
        out += "null";
        break;
      case Type::kFalse:
        out += "false";
        break;
      case Type::kTrue:
        out += "true";
        break;
      case Type::kNumber:
        out += v.text();
        break;
      case Type::kString:
        quoted(v.text());
        break;
      case Type::kArray:
        out += '[', open.push_back({&v, 0});
        break;
      case Type::kObject:
        out += '{', open.push_back({&v, 0});
        break;
    }
  };
  begin(value);
  while (!open.empty() && out.size() <= limit) {
    Step& s = open.back();
    bool object = s.at->is(Type::kObject);
    if (s.next == s.at->size) {
      out += object ? '}' : ']';
      open.pop_back();
      continue;
    }
    std::uint32_t i = s.next++;
    if (i) out += ',';
    if (object) quoted(s.at->member_data[i].key), out += ':';
    begin(object ? s.at->member_data[i].value : s.at->item_data[i]);
  }
  if (out.size() > limit) {
    out.resize(limit);
    while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0xC0) == 0x80) out.pop_back();
    if (!out.empty() && static_cast<unsigned char>(out.back()) >= 0xC0) out.pop_back();
    out += "...";
  }
  return out;
}

}  // namespace ag::json
