#include "regular/codepoints.h"

#include <algorithm>

#include "base/error.h"

namespace ag::regular {

bool decode_utf8(std::string_view text, std::size_t* at, Cp* out) {
  const auto byte = [&](std::size_t i) -> Cp { return i < text.size() ? static_cast<std::uint8_t>(text[i]) : 0u; };
  const Cp b = byte(*at);
  if (*at >= text.size()) return false;
  if (b < 0x80) {
    *out = b;
    ++*at;
    return true;
  }
  const std::size_t tail = b >= 0xf0 ? 3 : b >= 0xe0 ? 2 : 1;
  if (b < 0xc2 || b > 0xf4) return false;
  Cp cp = b & (0x3fu >> tail);
  for (std::size_t i = 1; i <= tail; ++i) {
    if ((byte(*at + i) & 0xc0) != 0x80) return false;
    cp = cp << 6 | (byte(*at + i) & 0x3f);
  }
  if ((tail == 2 && cp < 0x800) || (tail == 3 && cp < 0x10000) || cp > kMaxCp) return false;
  if (cp >= kSurrogateLo && cp <= kSurrogateHi) return false;
  *out = cp;
  *at += tail + 1;
  return true;
}

bool valid_utf8(std::string_view text) {
  Cp cp = 0;
  for (std::size_t at = 0; at < text.size();)
    if (!decode_utf8(text, &at, &cp)) return false;
  return true;
}

void require_utf8(std::string_view text, const char* what) {
  if (!valid_utf8(text)) throw ValueError(std::string(what) + " is not UTF-8 (lone surrogates cannot be written)");
}

namespace {
std::uint32_t hex4(std::string_view text) {
  std::uint32_t v = 0;
  for (char c : text) v = v * 16 + static_cast<std::uint32_t>(hex_value(static_cast<std::uint8_t>(c)));
  return v;
}
}  // namespace

int hex_value(std::uint8_t byte) {
  if (byte >= '0' && byte <= '9') return byte - '0';
  if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
  if (byte >= 'A' && byte <= 'F') return byte - 'A' + 10;
  return -1;
}

std::string json_unescape(std::string_view inside) {
  std::string out;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] != '\\' || i + 1 == inside.size()) {
      out.push_back(inside[i]);
      continue;
    }
    const char letter = inside[++i];
    if (letter != 'u') {
      for (const SimpleEscape& e : kSimpleEscapes)
        if (e.letter == letter) out.push_back(e.character);
      continue;
    }
    if (inside.size() - i < 5) return out;
    Cp cp = hex4(inside.substr(i + 1, 4));
    i += 4;
    if (cp >= 0xD800 && cp < 0xDC00) {
      if (inside.size() - i < 7) return out;
      cp = 0x10000 + ((cp - 0xD800) << 10) + (hex4(inside.substr(i + 3, 4)) - 0xDC00);
      i += 6;
    }
    append_utf8(&out, cp);
  }
  return out;
}

void append_utf8(std::string* out, Cp cp) {
  const auto put = [&](Cp b) { out->push_back(static_cast<char>(b)); };
  if (cp < 0x80) {
    put(cp);
  } else if (cp < 0x800) {
    put(0xc0 | cp >> 6);
    put(0x80 | (cp & 0x3f));
  } else if (cp < 0x10000) {
    put(0xe0 | cp >> 12);
    put(0x80 | (cp >> 6 & 0x3f));
    put(0x80 | (cp & 0x3f));
  } else {
    put(0xf0 | cp >> 18);
    put(0x80 | (cp >> 12 & 0x3f));
    put(0x80 | (cp >> 6 & 0x3f));
    put(0x80 | (cp & 0x3f));
  }
}

std::uint32_t utf8_cost(Cp cp) { return cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4; }

std::uint32_t quoted_cost(Cp cp) {
  if (cp == '"' || cp == '\\' || cp == '\b' || cp == '\f' || cp == '\n' || cp == '\r' || cp == '\t') return 2;
  return cp < 0x20 ? 6 : utf8_cost(cp);
}

CpSet::CpSet(std::vector<CpRange> ranges) {
  std::vector<CpRange> clean;
  clean.reserve(ranges.size() + 1);
  for (CpRange r : ranges) {
    r.hi = std::min(r.hi, kMaxCp);
    if (r.lo > r.hi) continue;
    if (r.hi < kSurrogateLo || r.lo > kSurrogateHi) {
      clean.push_back(r);
      continue;
    }
    if (r.lo < kSurrogateLo) clean.push_back({r.lo, kSurrogateLo - 1});
    if (r.hi > kSurrogateHi) clean.push_back({kSurrogateHi + 1, r.hi});
  }
  std::sort(clean.begin(), clean.end(), [](CpRange a, CpRange b) { return a.lo < b.lo; });
  for (const CpRange r : clean) {
    if (!ranges_.empty() && r.lo <= ranges_.back().hi + 1)
      ranges_.back().hi = std::max(ranges_.back().hi, r.hi);
    else
      ranges_.push_back(r);
  }
}

CpSet CpSet::all() { return CpSet({{0, kMaxCp}}); }

bool CpSet::contains(Cp cp) const {
  const auto it = std::upper_bound(ranges_.begin(), ranges_.end(), cp, [](Cp c, CpRange r) { return c < r.lo; });
  return it != ranges_.begin() && cp <= std::prev(it)->hi;
}

CpSet CpSet::united(const CpSet& other) const {
  std::vector<CpRange> both = ranges_;
  both.insert(both.end(), other.ranges_.begin(), other.ranges_.end());
  return CpSet(std::move(both));
}

CpSet CpSet::intersected(const CpSet& other) const {
  CpSet out;
  std::size_t i = 0, j = 0;
  while (i < ranges_.size() && j < other.ranges_.size()) {
    const Cp lo = std::max(ranges_[i].lo, other.ranges_[j].lo), hi = std::min(ranges_[i].hi, other.ranges_[j].hi);
    if (lo <= hi) out.ranges_.push_back({lo, hi});
    if (ranges_[i].hi < other.ranges_[j].hi)
      ++i;
    else
      ++j;
  }
  return out;
}

CpSet CpSet::complement() const {
  std::vector<CpRange> gaps;
  Cp from = 0;
  for (const CpRange r : ranges_) {
    if (r.lo > from) gaps.push_back({from, r.lo - 1});
    from = r.hi + 1;
  }
  if (from <= kMaxCp) gaps.push_back({from, kMaxCp});
  return CpSet(std::move(gaps));
}

Cp cheapest(Cp lo, Cp hi, bool quoted) {
  if (!quoted || lo > '\\') return lo;  // costs only rise above the quote and the backslash
  Cp best = lo;
  for (Cp cp = lo; cp <= hi && cp <= 0x7f && quoted_cost(best) > 1; ++cp)
    if (quoted_cost(cp) < quoted_cost(best)) best = cp;
  return best;
}

}  // namespace ag::regular
