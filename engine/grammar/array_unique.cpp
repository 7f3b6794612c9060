#include "grammar/array_unique.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <queue>

#include "grammar/object.h"
#include "grammar/parts.h"

namespace ag {

namespace {

bool contains_key(const SeenKey* keys, std::string_view text) {
  std::uint64_t h = std::hash<std::string_view>{}(text);
  for (; keys; keys = keys->previous) {
    if (keys->hash == h && std::string_view(keys->text, keys->size) == text) return true;
  }
  return false;
}

const SeenKey* seen_keys(const Payload& p) { return p.blob ? p.blob->keys : nullptr; }

}  // namespace

UniqueArrayRule::UniqueArrayRule(UniqueArraySpec spec, TerminalPool& pool)
    : spec_(std::move(spec)), spelled_(spec_.spelled) {
  std::sort(spec_.strings.begin(), spec_.strings.end());
  spec_.strings.erase(std::unique(spec_.strings.begin(), spec_.strings.end()), spec_.strings.end());
  if (!spec_.open && spelled_.empty())
    spec_.max_items = std::min<std::uint64_t>(spec_.max_items, spec_.strings.size() + spec_.literals.size());
  open_ = pool.punctuation('[', false, true, spec_.whitespace);
  close_first_ = pool.punctuation(']', false, false, spec_.whitespace);
  close_ = pool.punctuation(']', true, false, spec_.whitespace);
  comma_ = pool.punctuation(',', true, true, spec_.whitespace);
  if (spec_.open) {
    StringLanguage shorter = *spec_.open;
    strings_.push_back(pool.json_string(shorter));
    while (shorter.max_length != kNoMax && strings_.size() < kLengths &&
           shorter.max_length > std::max<std::uint64_t>(shorter.min_length, 1)) {
      --shorter.max_length;
      strings_.push_back(pool.json_string(shorter));
    }
  } else if (!spec_.strings.empty()) {
    KeyLanguage values;
    values.names = spec_.strings;
    strings_.push_back(pool.json_key(values));
  }
  std::vector<std::string> bytes;
  for (const char c : spelled_.alphabet()) bytes.emplace_back(1, c);
  byte_ = pool.spellings(std::move(bytes));
}

bool UniqueArrayRule::parts(Parts& out) const {
  out.number(Parts::kUniqueArray).number(static_cast<std::uint64_t>(spec_.whitespace));
  out.number(spec_.min_items).number(spec_.max_items).texts(spec_.strings).number(spec_.open ? 1 : 0);
  if (spec_.open) out.language(*spec_.open);
  out.number(spec_.literals.size());
  for (const Symbol& s : spec_.literals) out.symbol(s);
  out.number(spec_.spelled.size());
  for (const TerminalPtr& t : spec_.spelled) out.number(t->id());
  return true;
}

std::uint64_t UniqueArrayRule::next_word(const Payload& p) const {
  std::uint64_t limit = spec_.max_items == kNoMax ? spec_.min_items : spec_.max_items;
  return (p.word & ~kCountMask) | std::min(count(p) + 1, std::min(limit, kCountMask));
}

Terminal* UniqueArrayRule::string(const Payload& p) const {
  if (strings_.empty()) return nullptr;
  if (!spec_.open || spec_.open->max_length == kNoMax) return strings_[0].get();
  std::uint32_t met = 0;  // bit i: a string of the i-th terminal's greatest length
  for (const SeenKey* key = seen_keys(p); key; key = key->previous) {
    if (SpelledValues::kept_here(*key)) continue;
    const std::string_view text(key->text, key->size);
    const auto length = static_cast<std::uint64_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<std::uint8_t>(c) & 0xc0) != 0x80; }));
    const std::uint64_t below = spec_.open->max_length - length;
    if (below < strings_.size()) met |= 1u << below;
  }
  const auto i = static_cast<std::size_t>(std::countr_one(met));
  return i < strings_.size() ? strings_[i].get() : nullptr;
}

bool UniqueArrayRule::string_left(const Payload& p) const {
  if (spec_.open) return string(p) != nullptr;
  for (std::size_t i = 0; i < spec_.strings.size(); ++i) {
    if (!string_seen(p, i)) return true;
  }
  return false;
}

bool UniqueArrayRule::literal_left(const Payload& p) const {
  for (std::size_t i = 0; i < spec_.literals.size(); ++i) {
    if (!literal_seen(p, i)) return true;
  }
  return false;
}

bool UniqueArrayRule::more(const Payload& p) const {
  return count(p) < spec_.max_items && (literal_left(p) || string_left(p) || spelled_.alive({}, seen_keys(p)));
}

std::pair<std::string_view, const SeenKey*> UniqueArrayRule::spelling(std::uint32_t to, const Payload& p) {
  const SeenKey* keys = seen_keys(p);
  if (to == kFirstByte) return {{}, keys};
  return {SpelledValues::spelling(*keys), keys->previous};
}

void UniqueArrayRule::expand_after(const Payload& p, Edges& out) const {
  if (count(p) >= spec_.min_items) add_edge(out, {close_.get()}, kEnd, {});
  if (more(p)) add_edge(out, {comma_.get()}, kItem, p);
}

void UniqueArrayRule::expand(std::uint32_t state, const Payload& payload, Edges& out) const {
  switch (state) {
    case kOpen:
      add_edge(out, {open_.get()}, kFirst, {});
      break;
    case kFirst:
      if (spec_.min_items == 0) add_edge(out, {close_first_.get()}, kEnd, {});
      if (spec_.max_items == 0) break;
      [[fallthrough]];
    case kItem:
      if (spelled_.alive({}, seen_keys(payload))) add_edge(out, {byte_.get()}, kFirstByte, payload);
      if (Terminal* strings = string(payload); strings && string_left(payload))
        add_edge(out, {strings}, spec_.open ? kOpenString : kListedString, payload);
      for (std::size_t i = 0; i < spec_.literals.size(); ++i) {
        if (literal_seen(payload, i)) continue;
        add_edge(out, spec_.literals[i], kAfter,
                 {next_word(payload) | std::uint64_t{1} << (kCountBits + i), payload.blob});
      }
      break;
    case kAfter:
      expand_after(payload, out);
      break;
    case kSpelled: {
      const auto [text, taken] = spelling(kNextByte, payload);
      if (spelled_.complete(text, taken)) expand_after({next_word(payload), payload.blob}, out);
      add_edge(out, {byte_.get()}, kNextByte, payload);
      break;
    }
    default:
      add_done(out);
  }
}

bool UniqueArrayRule::admits(std::uint32_t to, const Payload& payload, const Terminal::Range& range) const {
  if (to == kFirstByte || to == kNextByte) {
    const auto [text, taken] = spelling(to, payload);
    for (std::uint32_t i = range.lo; i < range.hi; ++i)
      if (spelled_.alive(std::string(text) + spelled_.alphabet()[i], taken)) return true;
    return false;
  }
  if (to != kListedString) return true;
  for (std::uint32_t i = range.lo; i < range.hi; ++i) {
    if (!string_seen(payload, i)) return true;
  }
  return false;
}

bool UniqueArrayRule::on_label(std::uint32_t to, const Payload& payload, std::uint32_t label, const KeyByte* key,
                               Arena& arena, std::uint32_t* state, Payload* out) const {
  const bool byte = to == kFirstByte || to == kNextByte;
  if (!byte && to != kListedString && to != kOpenString)
    return Rule::on_label(to, payload, label, key, arena, state, out);
  const SeenKey* keys = seen_keys(payload);
  std::uint32_t words = spec_.open ? 0 : static_cast<std::uint32_t>((spec_.strings.size() + 63) / 64);
  std::uint64_t* bits = words ? arena.array<std::uint64_t>(words) : nullptr;
  for (std::uint32_t i = 0; i < words; ++i) bits[i] = payload.blob ? payload.blob->bits[i] : 0;
  if (byte) {
    const auto [text, taken] = spelling(to, payload);
    const std::string longer = std::string(text) + spelled_.alphabet()[label];
    if (!spelled_.alive(longer, taken)) return false;
    *state = kSpelled;
    *out = {payload.word, arena.make<Blob>(SpelledValues::keep(longer, taken, arena), words, false, bits)};
    return true;
  }
  if (to == kListedString) {
    if (string_seen(payload, label)) return false;
    bits[label / 64] |= std::uint64_t{1} << (label % 64);
  } else {
    std::string text;
    if (!ObjectRule::unquote(key, {}, &text) || contains_key(keys, text)) return false;
    char* copy = arena.array<char>(text.size() + 1);
    std::copy(text.begin(), text.end(), copy);
    keys = arena.make<SeenKey>(keys, copy, static_cast<std::uint32_t>(text.size()), std::hash<std::string_view>{}(text),
                               false);
  }
  *state = kAfter;
  *out = {next_word(payload), arena.make<Blob>(keys, words, false, bits)};
  return true;
}

bool UniqueArrayRule::key_is_new(const Payload& payload, const KeyByte* key, std::string_view rest) const {
  if (!seen_keys(payload)) return true;
  std::string text;
  return ObjectRule::unquote(key, rest, &text) && !contains_key(seen_keys(payload), text);
}

bool UniqueArrayRule::taken_keys(const Payload& payload, const KeyByte* key,
                                 std::vector<std::string_view>* rests) const {
  rests->clear();
  if (!seen_keys(payload)) return true;
  std::string prefix(key ? key->length : 0, '\0');
  for (const KeyByte* k = key; k; k = k->previous) prefix[k->length - 1] = static_cast<char>(k->byte);
  if (prefix.find('\\') != std::string::npos) return false;
  if (!prefix.empty()) prefix.erase(0, 1);  // the quote
  for (const SeenKey* k = seen_keys(payload); k; k = k->previous) {
    if (SpelledValues::kept_here(*k)) continue;
    std::string_view text(k->text, k->size);
    if (text.starts_with(prefix)) rests->push_back(text.substr(prefix.size()));
  }
  std::sort(rests->begin(), rests->end());
  return true;
}

// ---- shortest ends

std::vector<std::string> UniqueArrayRule::fresh(const Payload& p, std::uint64_t wanted,
                                                const std::vector<std::string>& avoided) const {
  std::vector<std::string> found = spelled_.fresh({}, seen_keys(p), wanted, avoided);
  for (std::size_t i = 0; i < spec_.literals.size(); ++i) {
    if (!literal_seen(p, i)) found.push_back(spec_.literals[i].terminal->shortest(Terminal::kStart, 0));
  }
  for (std::size_t i = 0; i < spec_.strings.size(); ++i) {
    if (!string_seen(p, i)) found.push_back(ObjectRule::quoted(spec_.strings[i]));
  }
  if (Terminal* strings = spec_.open ? string(p) : nullptr) {
    // Strings of the language, shorter ones first, without escapes: from each prefix the shortest completion.
    struct Prefix {
      std::string text;
      Terminal::State state;
      std::uint64_t units;
      std::uint32_t rest;
      bool operator<(const Prefix& other) const { return text.size() + rest > other.text.size() + other.rest; }
    };
    std::priority_queue<Prefix> queue;
    queue.push({"", Terminal::kStart, 0, strings->min_rest(Terminal::kStart, 0)});
    std::uint64_t enough = 0;
    while (!queue.empty() && enough < wanted) {
      Prefix at = queue.top();
      queue.pop();
      if (strings->accepting(at.state)) {
        std::string_view value = std::string_view(at.text).substr(1, at.text.size() - 2);
        if (!contains_key(seen_keys(p), value)) found.push_back(at.text), ++enough;
        continue;
      }
      for (unsigned b = 0x20; b < 256; ++b) {
        if (b == '\\') continue;
        std::uint32_t next = strings->next(at.state, static_cast<std::uint8_t>(b)), to = next & Terminal::kStateMask;
        std::uint64_t units = at.units + (next & Terminal::kUnit ? 1 : 0);
        if (next == Terminal::kDead || ((next & Terminal::kClose) && units < strings->min_units())) continue;
        queue.push({at.text + static_cast<char>(b), to, units, strings->min_rest(to, units)});
      }
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  if (found.size() > wanted) found.resize(wanted);
  return found;
}

std::uint64_t UniqueArrayRule::min_cost(std::uint32_t state, const Payload& payload) const {
  if (state == kEnd) return 0;
  Ending way;
  write_min(state, payload, way);
  return way.units.size();
}

void UniqueArrayRule::write_min(std::uint32_t state, const Payload& payload, Ending& out) const {
  if (state == kEnd) return;
  std::uint64_t n = count(payload);
  std::uint64_t wanted = std::max<std::uint64_t>(n < spec_.min_items ? spec_.min_items - n : 0, state == kItem ? 1 : 0);
  if (state == kOpen) out.append({open_.get()});
  bool comma = state == kAfter;
  std::vector<std::string> begun;
  if (state == kSpelled) {
    const auto [text, taken] = spelling(kNextByte, payload);
    begun = spelled_.fresh(text, taken, 1);
    if (!begun.empty()) out.append(std::string_view(begun[0]).substr(text.size()));
    if (wanted) --wanted;
    comma = true;
  }
  for (const std::string& text : wanted ? fresh(payload, wanted, begun) : std::vector<std::string>{}) {
    if (comma) out.append({comma_.get()});
    comma = true;
    out.append(text);
  }
  out.append({close_first_.get()});
}

std::size_t UniqueArrayRule::bytes() const {
  std::size_t total = sizeof *this + spec_.literals.size() * sizeof(Symbol) + spelled_.bytes();
  for (const std::string& s : spec_.strings) total += sizeof s + s.capacity();
  return total;
}

}  // namespace ag
