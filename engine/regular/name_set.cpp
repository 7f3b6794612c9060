#include "regular/name_set.h"

#include <algorithm>

#include "base/error.h"
#include "regular/codepoints.h"

namespace ag::regular {

namespace {

constexpr std::uint32_t kMostPlaces = 1u << 24;
char simple_escape(unsigned char c) {
  for (const SimpleEscape& e : kSimpleEscapes)
    if (c == static_cast<unsigned char>(e.character)) return e.letter;
  return 0;
}

bool needs_escape(unsigned char c) { return c < 0x20 || c == '"' || c == '\\'; }

struct Character {
  Cp cp;
  std::uint32_t size;      // bytes of UTF-8
  std::uint16_t units[2];  // of UTF-16
  bool pair() const { return cp > 0xffff; }
  std::uint32_t digit(std::uint32_t i) const { return units[i / 4] >> (12 - 4 * (i % 4)) & 15; }
};

Character character(std::string_view text, std::uint32_t depth) {
  Character out{};
  std::size_t at = depth;
  decode_utf8(text, &at, &out.cp);
  out.size = static_cast<std::uint32_t>(at) - depth;
  out.units[0] = static_cast<std::uint16_t>(out.cp);
  if (out.pair()) {
    out.units[0] = static_cast<std::uint16_t>(0xd800 + ((out.cp - 0x10000) >> 10));
    out.units[1] = static_cast<std::uint16_t>(0xdc00 + ((out.cp - 0x10000) & 0x3ff));
  }
  return out;
}

}  // namespace

NameSet::NameSet(std::vector<std::string> texts, Options options)
    : own_(std::move(texts)), texts_(own_.begin(), own_.end()), options_(options) {
  settle();
}

NameSet::NameSet(std::vector<std::string_view> texts, std::vector<NameTokens*> tokens, Options options)
    : texts_(std::move(texts)), tokens_(std::move(tokens)), options_(options) {
  settle();
}

void NameSet::settle() {
  std::size_t total = 0;
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    total += texts_[i].size() + 2;
    if (i == 0) continue;
    if (!(texts_[i - 1] < texts_[i])) throw ValueError("a set of names must be distinct and sorted by bytes");
    if (texts_[i].starts_with(texts_[i - 1])) tokens_.clear();
  }
  if (total > kMostPlaces) throw ValueError("a set of names holds more than 16 MiB");
  base_.reserve(texts_.size() + 1);
  base_.push_back(0);
  bytes_ = sizeof *this + (texts_.size() + 1) * 4 + texts_.size() * 24;
  for (const std::string& text : own_) bytes_ += sizeof(std::string) + (text.capacity() > 15 ? text.capacity() : 0);
  for (std::uint32_t i = 0; i < texts_.size(); ++i) {
    base_.push_back(base_.back() + static_cast<std::uint32_t>(texts_[i].size()) + 2);
  }
}

// The start of a quoted set is before the quote; it is nobody's place.
NameSet::Place NameSet::place(State state) const {
  if (state <= kStart) return {0, 0};
  const std::uint32_t n = state - kStart - 1;
  const bool escaped = n >= base_.back();
  const std::uint32_t at = escaped ? (n - base_.back()) / kEscapes : n;
  const std::uint32_t text = owner(at);
  return {text, at - base_[text], escaped ? (n - base_.back()) % kEscapes : std::uint32_t{kNone}};
}

std::uint32_t NameSet::owner(std::uint32_t place) const {
  return static_cast<std::uint32_t>(std::upper_bound(base_.begin(), base_.end(), place) - base_.begin()) - 1;
}

std::uint32_t NameSet::end(std::uint32_t first, std::uint32_t depth) const {
  const auto n = static_cast<std::uint32_t>(texts_.size());
  if (depth == 0) return n;
  const std::string_view prefix = texts_[first].substr(0, depth);
  std::uint32_t in = first, width = 1;
  while (in + width < n && texts_[in + width].starts_with(prefix)) {
    in += width;
    width *= 2;
  }
  std::uint32_t out = std::min(in + width, n);
  while (out - in > 1) {
    const std::uint32_t middle = in + (out - in) / 2;
    (texts_[middle].starts_with(prefix) ? in : out) = middle;
  }
  return out;
}

std::uint32_t NameSet::with_byte(std::uint32_t lo, std::uint32_t hi, std::uint32_t depth, std::uint8_t byte) const {
  const auto of = [&](std::uint32_t i) { return static_cast<std::uint8_t>(texts_[i][depth]); };
  std::uint32_t from = lo, until = hi;
  while (until - from > 4) {
    const std::uint32_t middle = from + (until - from) / 2;
    if (of(middle) < byte)
      from = middle + 1;
    else
      until = middle + 1;
  }
  while (from < until && of(from) < byte) ++from;
  return from < until && of(from) == byte ? from : hi;
}

std::uint32_t NameSet::next(State state, std::uint8_t byte) {
  if (state == kDead) return kDead;
  if (state == kStart && options_.quoted) return byte == '"' ? at(0, 0) : kDead;
  const Place p = place(state);
  if (p.escape != kNone) return next_in_escape(p, byte);
  if (closed(p)) return kDead;
  const std::uint32_t hi = end(p.first, p.depth);
  const bool whole = texts_[p.first].size() == p.depth;  // the shortest sorts first
  if (options_.quoted) {
    if (byte == '"') return whole ? at(p.first, p.depth + 1) : kDead;
    if (byte < 0x20) return kDead;
    if (byte == '\\') {
      const std::uint32_t first = p.first + whole;
      const bool between = first < hi && (texts_[first][p.depth] & 0xc0) != 0x80;
      return between ? at(first, p.depth, kBackslash) : kDead;
    }
  }
  const std::uint32_t found = with_byte(p.first + whole, hi, p.depth, byte);
  return found < hi ? at(found, p.depth + 1) : kDead;
}

// Text by text, not byte by byte: most of the way one text is left.
Terminal::Advance NameSet::advance(State state, std::uint64_t counter, std::string_view bytes) {
  Span span;
  if (!open(state, &span)) return Terminal::advance(state, counter, bytes);
  Advance out{state, counter};
  while (out.taken < bytes.size()) {
    const auto byte = static_cast<std::uint8_t>(bytes[out.taken]);
    if (options_.quoted && (byte == '"' || byte == '\\')) break;
    const std::uint32_t first = with_byte(span.first + whole(span), span.end, span.depth, byte);
    out.dead = first >= span.end || (options_.quoted && byte < 0x20);
    if (out.dead) break;
    Span next{first, group_end(first, span.end, span.depth), span.depth + 1};
    if (!options_.quoted && whole(next)) break;
    span = next;
    ++out.taken;
  }
  if (out.taken) out.state = this->state(span);
  return out;
}

bool NameSet::same_digits(std::uint32_t i, std::uint32_t j, std::uint32_t depth, std::uint32_t digits) const {
  const Character a = character(texts_[i], depth), b = character(texts_[j], depth);
  if (digits > 4 && !(a.pair() && b.pair())) return false;
  for (std::uint32_t k = 0; k < digits; ++k)
    if (a.digit(k) != b.digit(k)) return false;
  return true;
}

std::uint32_t NameSet::next_in_escape(const Place& p, std::uint8_t byte) const {
  const std::uint32_t hi = end(p.first, p.depth);
  if (p.escape == kBackslash) {
    if (byte == 'u') return at(p.first, p.depth, kHex);
    for (const SimpleEscape& e : kSimpleEscapes) {
      if (byte != static_cast<std::uint8_t>(e.letter)) continue;
      const auto found = with_byte(p.first, hi, p.depth, static_cast<std::uint8_t>(e.character));
      return found < hi ? at(found, p.depth + 1) : kDead;
    }
    return kDead;
  }
  if (p.escape == kHex + 4) return byte == '\\' ? at(p.first, p.depth, kSecond) : kDead;
  if (p.escape == kSecond) return byte == 'u' ? at(p.first, p.depth, kSecond + 1) : kDead;
  const int digit = hex_value(byte);
  if (digit < 0) return kDead;
  const std::uint32_t read = digits_read(p.escape);
  for (std::uint32_t j = p.first; j < hi;) {
    const Character c = character(texts_[j], p.depth);
    if (same_digits(p.first, j, p.depth, read) && (read < 4 || c.pair()) &&
        c.digit(read) == static_cast<std::uint32_t>(digit)) {
      if (read == (c.pair() ? 7u : 3u)) return at(j, p.depth + c.size);
      return at(j, p.depth, p.escape + 1);
    }
    j = end(j, p.depth + c.size);
  }
  return kDead;
}

bool NameSet::accepting(State state) {
  if (state <= kStart) return state == kStart && !options_.quoted && texts_[0].empty();
  const Place p = place(state);
  if (p.escape != kNone) return false;
  return options_.quoted ? closed(p) : p.depth == texts_[p.first].size();
}

bool NameSet::exhausted(State state) {
  if (!accepting(state)) return false;
  const Place p = place(state);
  return options_.quoted || end(p.first, p.depth) == p.first + 1;
}

Terminal::Range NameSet::range(State state) {
  const Place p = place(state);
  if (closed(p)) return {p.first, p.first + 1, false};
  std::uint32_t hi = end(p.first, p.depth);
  if (p.escape > kHex) {
    const std::uint32_t read = digits_read(p.escape);
    while (!same_digits(p.first, hi - 1, p.depth, read)) --hi;
  }
  return {p.first, hi, false};
}

// What completes text `label` from a place that it fits, one byte a time where it can be.
std::string NameSet::rest(const Place& p, std::uint32_t label) const {
  const std::string_view text = texts_[label];
  std::string out;
  if (!options_.quoted) return std::string(text.substr(p.depth));
  if (closed(p)) return out;
  constexpr char kDigits[] = "0123456789abcdef";
  const auto digits = [&](const Character& c, std::uint32_t from) {
    for (std::uint32_t i = from; i < (c.pair() ? 8u : 4u); ++i) {
      if (i == 4 && from < 4) out += "\\u";
      out += kDigits[c.digit(i)];
    }
  };
  std::uint32_t depth = p.depth;
  if (p.escape != kNone) {
    const Character c = character(text, depth);
    const char simple = c.size == 1 ? simple_escape(static_cast<unsigned char>(text[depth])) : '\0';
    if (p.escape == kBackslash && simple) {
      out += simple;
    } else if (p.escape <= kHex + 3) {
      if (p.escape == kBackslash) out += 'u';
      digits(c, p.escape == kBackslash ? 0 : p.escape - kHex);
    } else {
      if (p.escape == kHex + 4) out += '\\';
      if (p.escape <= kSecond) out += 'u';
      digits(c, p.escape <= kSecond ? 4 : 3 + p.escape - kSecond);
    }
    depth += c.size;
  }
  for (; depth < text.size(); ++depth) {
    const auto c = static_cast<unsigned char>(text[depth]);
    if (!needs_escape(c)) {
      out += text[depth];
    } else if (const char simple = simple_escape(c)) {
      (out += '\\') += simple;
    } else {
      out += "\\u00";
      (out += kDigits[c >> 4]) += kDigits[c & 15];
    }
  }
  return out += '"';
}

std::uint64_t NameSet::rest_size(const Place& p, std::uint32_t label) const {
  if (p.escape != kNone) return rest(p, label).size();
  const std::string_view text = texts_[label];
  if (!options_.quoted) return text.size() - p.depth;
  if (closed(p)) return 0;
  std::uint64_t size = text.size() - p.depth + 1;
  for (std::uint32_t i = p.depth; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (needs_escape(c)) size += simple_escape(c) ? 1 : 5;
  }
  return size;
}

std::uint32_t NameSet::min_rest(State state, std::uint64_t) {
  if (accepting(state)) return 0;
  const Place p = place(state);
  const Range r = range(state);
  std::uint64_t best = ~0ull;
  for (std::uint32_t i = r.lo; i < r.hi; ++i) {
    if (p.escape > kHex && !shortest_label(state, i, nullptr)) continue;
    best = std::min(best, rest_size(p, i));
  }
  return static_cast<std::uint32_t>(best + (state == kStart && options_.quoted));
}

std::string NameSet::shortest(State state, std::uint64_t) {
  const Range r = range(state);
  std::string best, out;
  bool any = false;
  for (std::uint32_t i = r.lo; i < r.hi; ++i) {
    if (!shortest_label(state, i, &out) || (any && out.size() >= best.size())) continue;
    best = out;
    any = true;
  }
  return best;
}

bool NameSet::shortest_label(State state, std::uint32_t label, std::string* out) {
  const Place p = place(state);
  const Range r = range(state);
  if (label < r.lo || label >= r.hi) return false;
  if (p.escape > kHex) {
    const std::uint32_t read = digits_read(p.escape);
    if (!same_digits(p.first, label, p.depth, read)) return false;
  }
  if (out) {
    *out = rest(p, label);
    if (state == kStart && options_.quoted) out->insert(out->begin(), '"');
  }
  return true;
}

// Near by in most sets, but a set may be large.
std::uint32_t NameSet::group_end(std::uint32_t i, std::uint32_t end, std::uint32_t depth) const {
  const char byte = texts_[i][depth];
  std::uint32_t width = 1;
  while (i + width < end && texts_[i + width][depth] == byte) {
    i += width;
    width *= 2;
  }
  std::uint32_t out = std::min(i + width, end);
  while (out - i > 1) {
    const std::uint32_t middle = i + (out - i) / 2;
    (texts_[middle][depth] == byte ? i : out) = middle;
  }
  return out;
}

bool NameSet::open(State state, Span* out) const {
  if (state == kDead || (state == kStart && options_.quoted)) return false;
  const Place p = place(state);
  if (p.escape != kNone || closed(p)) return false;
  *out = {p.first, end(p.first, p.depth), p.depth};
  return true;
}

std::bitset<256> NameSet::live(State state) {
  std::bitset<256> out;
  Span span;
  if (!open(state, &span)) {
    for (int b = '"'; b < 'v'; ++b)
      out[static_cast<std::size_t>(b)] = next(state, static_cast<std::uint8_t>(b)) != kDead;
    return out;
  }
  each_group(span, [&](std::uint8_t byte, const Span&) { out[byte] = true; });
  if (options_.quoted) {
    out['"'] = next(state, '"') != kDead;
    out['\\'] = next(state, '\\') != kDead;
  }
  return out;
}

std::uint32_t NameSet::few_live(State state, std::uint8_t* out) {
  if (state == kStart && options_.quoted) {
    out[0] = '"';
    return 1;
  }
  const Place p = place(state);
  if (state == kDead || p.escape == kNone) return Terminal::few_live(state, out);
  std::bitset<128> bytes;
  const std::uint32_t hi = end(p.first, p.depth);
  if (p.escape == kBackslash) {
    bytes['u'] = true;
    for (const SimpleEscape& e : kSimpleEscapes) {
      if (with_byte(p.first, hi, p.depth, static_cast<std::uint8_t>(e.character)) < hi)
        bytes[static_cast<std::size_t>(e.letter)] = true;
    }
  } else if (p.escape == kHex + 4) {
    bytes['\\'] = true;
  } else if (p.escape == kSecond) {
    bytes['u'] = true;
  } else {
    const std::uint32_t read = digits_read(p.escape);
    for (std::uint32_t j = p.first; j < hi;) {
      const Character c = character(texts_[j], p.depth);
      if (same_digits(p.first, j, p.depth, read) && (read < 4 || c.pair())) {
        const std::uint32_t d = c.digit(read);
        bytes[d < 10 ? '0' + d : 'a' + d - 10] = bytes[d < 10 ? '0' + d : 'A' + d - 10] = true;
      }
      j = end(j, p.depth + c.size);
    }
  }
  std::uint32_t n = 0;
  for (std::size_t b = bytes._Find_first(); b < 128; b = bytes._Find_next(b)) out[n++] = static_cast<std::uint8_t>(b);
  return n;
}

}  // namespace ag::regular
