#include "grammar/object.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

#include "grammar/parts.h"
#include "regular/codepoints.h"

namespace ag {

namespace {

std::uint64_t hash_text(std::string_view text) { return std::hash<std::string_view>{}(text); }

bool contains_key(const SeenKey* keys, std::string_view text) {
  std::uint64_t h = hash_text(text);
  for (; keys; keys = keys->previous) {
    if (keys->hash == h && std::string_view(keys->text, keys->size) == text) return true;
  }
  return false;
}

}  // namespace

std::string ObjectRule::quoted(const std::string& key) {
  static const char* hex = "0123456789abcdef";
  std::string out = "\"";
  for (unsigned char c : key) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (c < 0x20) {
          out += "\\u00";
          out += hex[c >> 4];
          out += hex[c & 15];
        } else {
          out += static_cast<char>(c);
        }
    }
  }
  return out + "\"";
}

// The key terminal has checked the spelling; only decoding is left.
bool ObjectRule::unquote(const KeyByte* key, std::string_view rest, std::string* out) {
  std::string raw(key ? key->length : 0, '\0');
  for (const KeyByte* k = key; k; k = k->previous) raw[k->length - 1] = static_cast<char>(k->byte);
  raw += rest;
  if (raw.size() < 2) return false;
  *out = regular::json_unescape(std::string_view(raw).substr(1, raw.size() - 2));
  return true;
}

std::vector<std::vector<std::uint32_t>> ObjectRule::needs_of(const ObjectSpec& spec) {
  if (spec.dependent_required.empty()) return {};
  std::vector<std::vector<std::uint32_t>> closure(spec.members.size());
  for (const auto& [member, needs] : spec.dependent_required) {
    closure[member].insert(closure[member].end(), needs.begin(), needs.end());
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (auto& needs : closure) {
      for (std::size_t i = 0; i < needs.size(); ++i) {
        for (std::uint32_t more : closure[needs[i]]) {
          if (std::find(needs.begin(), needs.end(), more) == needs.end()) {
            needs.push_back(more);
            changed = true;
          }
        }
      }
    }
  }
  return closure;
}

void ObjectRule::normal(ObjectSpec& spec) {
  if (spec.max_properties != kNoMax) spec.max_properties = std::min<std::uint64_t>(spec.max_properties, kMask - 1);
  const auto closure = needs_of(spec);
  for (std::size_t i = 0; i < closure.size(); ++i) {  // what a required member needs is required as well
    if (!spec.members[i].required) continue;
    for (std::uint32_t d : closure[i]) spec.members[d].required = true;
  }
}

void ObjectRule::describe(const ObjectSpec& spec, Parts& out) {
  out.number(Parts::kObject).number(spec.any_order ? 1 : 0).number(static_cast<std::uint64_t>(spec.whitespace));
  out.number(spec.min_properties).number(spec.max_properties).number(spec.needs);
  out.number(spec.members.size());
  for (const auto& member : spec.members) out.text(member.name).number(member.required).symbol(member.value);
  out.number(spec.others.size());
  for (const auto& other : spec.others) {
    out.language(other.keys).symbol(other.value).number(other.meeting.size());
    for (const auto& [needs, value] : other.meeting) out.number(needs).symbol(value);
  }
  out.number(spec.dependent_required.size());
  for (const auto& [member, needed] : spec.dependent_required) {
    out.number(member).number(needed.size());
    for (const std::uint32_t other : needed) out.number(other);
  }
}

ObjectRule::ObjectRule(ObjectSpec spec, TerminalPool& pool) : spec_(std::move(spec)) {
  const std::uint32_t m = static_cast<std::uint32_t>(spec_.members.size());
  if (m >= kMask - 1024)
    throw GrammarError("an object declares more properties than the engine supports", "", "properties");
  if (spec_.min_properties > kMask - 1) throw GrammarError("minProperties is too large", "", "minProperties");
  open_ = pool.punctuation('{', false, true, spec_.whitespace);
  close_first_ = pool.punctuation('}', false, false, spec_.whitespace);
  close_ = pool.punctuation('}', true, false, spec_.whitespace);
  comma_ = pool.punctuation(',', true, true, spec_.whitespace);
  colon_ = pool.punctuation(':', true, true, spec_.whitespace);

  std::vector<std::uint32_t> order(m);
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return spec_.members[a].name < spec_.members[b].name; });
  KeyLanguage keys;
  for (std::uint32_t i : order) {
    if (spec_.members[i].value) {
      keys.names.push_back(spec_.members[i].name);
      by_label_.push_back(i);
    } else {
      keys.forbidden.push_back(spec_.members[i].name);
    }
  }
  if (spec_.others.size() == 1 && spec_.others[0].keys == StringLanguage{}) {
    other_key_ = pool.json_string({});
    for (std::uint32_t i : order) names_.push_back(spec_.members[i].name);
    keys.forbidden.clear();
  } else {
    for (const auto& other : spec_.others) {
      if (!other.value) keys.barred.push_back(static_cast<std::uint32_t>(keys.classes.size()));
      keys.classes.push_back(other.keys);
    }
  }
  if (spec_.whitespace == Whitespace::kCanonical && keys.classes.empty()) {
    // Declared keys as json.dumps spells them, so that they are forced byte by byte.
    std::vector<std::pair<std::string, std::uint32_t>> spelled;
    for (std::uint32_t i : by_label_) spelled.emplace_back(quoted(spec_.members[i].name), i);
    std::sort(spelled.begin(), spelled.end());
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < spelled.size(); ++i) {
      by_label_[i] = spelled[i].second;
      texts.push_back(std::move(spelled[i].first));
    }
    if (!texts.empty()) key_ = pool.spellings(std::move(texts));
  } else if (!keys.names.empty() || !keys.classes.empty()) {
    key_ = pool.json_key(keys);
  }
  for (std::size_t j = 0; j < spec_.others.size(); ++j) {
    const auto label = static_cast<std::uint32_t>(by_label_.size() + j);
    other_has_keys_.push_back(other_key_ || (key_ && key_->has_label(label)));  // a class may be left without any key
  }

  closure_ = needs_of(spec_);
  settle();
  if (spec_.needs && spec_.max_properties != kNoMax && !other_key_) {
    pool_ = &pool;
    keys_ = std::move(keys);
  }
}

void ObjectRule::settle() {
  const std::size_t m = spec_.members.size();
  usable_.assign(m, 0);
  for (std::size_t i = 0; i < m; ++i) usable_[i] = is_productive(spec_.members[i].value);
  if (!closure_.empty()) {  // a member is of no use when one that it needs can never be
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = 0; i < m; ++i) {
        if (!usable_[i]) continue;
        for (std::uint32_t d : closure_[i]) {
          if (!usable_[d]) {
            usable_[i] = 0;
            changed = true;
          }
        }
      }
    }
  }
  other_usable_.assign(spec_.others.size(), 0);
  any_other_ = false;
  for (std::size_t j = 0; j < spec_.others.size(); ++j) {
    other_usable_[j] = other_has_keys_[j] && is_productive(spec_.others[j].value);
    any_other_ = any_other_ || other_usable_[j];
  }
  keys_for_.assign(std::size_t{1} << spec_.needs, kNever);
  keys_for_[0] = 0;
  for (std::uint32_t needs = 1; needs < keys_for_.size(); ++needs) {
    for (std::size_t j = 0; j < spec_.others.size(); ++j) {
      for (const auto& [meets, symbol] : spec_.others[j].meeting) {
        if (other_usable_[j] && (meets & needs) && is_productive(symbol)) {
          keys_for_[needs] = std::min(keys_for_[needs], keys_for_[needs & ~meets] + 1);
        }
      }
    }
  }
  required_bits_.assign((m + 63) / 64, 0);
  usable_bits_.assign((m + 63) / 64, 0);
  for (std::size_t i = 0; i < m; ++i) {
    required_bits_[i / 64] |= std::uint64_t{spec_.members[i].required} << (i % 64);
    usable_bits_[i / 64] |= std::uint64_t{usable_[i] != 0} << (i % 64);
  }
  next_required_.assign(m + 1, static_cast<std::uint32_t>(m));
  required_from_.assign(m + 1, 0);
  usable_from_.assign(m + 1, 0);
  for (std::size_t i = m; i-- > 0;) {
    next_required_[i] = spec_.members[i].required ? static_cast<std::uint32_t>(i) : next_required_[i + 1];
    required_from_[i] = required_from_[i + 1] + (spec_.members[i].required ? 1 : 0);
    usable_from_[i] = usable_from_[i + 1] + (usable_[i] ? 1 : 0);
  }
  if (pool_) make_last_keys();
}

void ObjectRule::make_last_keys() {
  last_keys_.assign(keys_for_.size(), nullptr);
  for (std::uint32_t needs = 1; needs < keys_for_.size(); ++needs) {
    if (keys_for_[needs] == kNever) continue;
    KeyLanguage keys = keys_;
    for (std::uint32_t j = 0; j < spec_.others.size(); ++j) {
      const auto& meeting = spec_.others[j].meeting;
      const bool helps = other_usable_[j] && std::any_of(meeting.begin(), meeting.end(), [&](const auto& way) {
                           return is_productive(way.second) && keys_for_[needs & ~way.first] < keys_for_[needs];
                         });
      if (!helps && std::find(keys.barred.begin(), keys.barred.end(), j) == keys.barred.end()) keys.barred.push_back(j);
    }
    std::sort(keys.barred.begin(), keys.barred.end());
    last_keys_[needs] = pool_->json_key(keys);
  }
}

// A key of another class must not be begun where it could not be the last.
Terminal* ObjectRule::key(const Payload& p, const Word& w) const {
  if (last_keys_.empty() || unmet(w.met) == 0) return key_.get();
  const bool room = w.count + missing(p, w) + keys_to_come(w) < spec_.max_properties;
  return (room ? key_ : last_keys_[unmet(w.met)]).get();
}

std::size_t ObjectRule::bytes() const {
  std::size_t total = sizeof *this + by_label_.size() * 4 + required_bits_.size() * 16 +
                      spec_.members.size() * (sizeof(ObjectSpec::Member) + 14);
  for (const auto& m : spec_.members) total += m.name.capacity() > 15 ? m.name.capacity() : 0;
  return total + spec_.others.size() * sizeof(ObjectSpec::Other);
}

std::uint32_t ObjectRule::clip(std::uint64_t count) const {
  if (spec_.max_properties == kNoMax) count = std::min(count, spec_.min_properties + 1);
  return static_cast<std::uint32_t>(std::min(count, kMask));
}

bool ObjectRule::needed(const Payload& p, std::uint32_t member) const {
  if (spec_.members[member].required) return true;
  for (std::uint32_t i = 0; i < closure_.size(); ++i) {
    if (!closure_[i].empty() && seen(p, i) &&
        std::find(closure_[i].begin(), closure_[i].end(), member) != closure_[i].end()) {
      return true;
    }
  }
  return false;
}

std::uint32_t ObjectRule::missing(const Payload& p, const Word& w) const {
  if (!tracked()) return required_from_[w.next];
  std::uint32_t total = 0;
  if (closure_.empty()) {
    for (std::size_t i = 0; i < required_bits_.size(); ++i)
      total += static_cast<std::uint32_t>(std::popcount(required_bits_[i] & ~seen_bits(p, i)));
    return total;
  }
  for (std::uint32_t i = 0; i < spec_.members.size(); ++i) total += needed(p, i) && !seen(p, i);
  return total;
}

bool ObjectRule::member_allowed(const Payload& p, const Word& w, std::uint32_t k) const {
  if (!usable_[k]) return false;
  const bool counted = spec_.max_properties != kNoMax;
  if (!tracked()) {
    return k >= w.next && k <= next_required_[w.next] &&
           (!counted || w.count + 1 + required_from_[k + 1] + keys_to_come(w) <= spec_.max_properties) &&
           (any_other_ || w.count + 1 + usable_from_[k + 1] >= spec_.min_properties);
  }
  if (seen(p, k)) return false;
  if (!spec_.any_order) {
    if (k < w.next) return false;
    for (std::uint32_t i = w.next; i < k; ++i) {
      if (needed(p, i)) return false;
    }
    if (!any_other_ && w.count + 1 + usable_from_[k + 1] < spec_.min_properties) return false;
    for (std::uint32_t d : closure_[k]) {
      if (d < k && !seen(p, d)) return false;
    }
  }
  if (counted) {
    std::uint32_t more = missing(p, w) - (needed(p, k) ? 1 : 0) + keys_to_come(w);
    if (!closure_.empty()) {
      for (std::uint32_t d : closure_[k]) more += d != k && !seen(p, d) && !needed(p, d);
    }
    if (w.count + 1 + more > spec_.max_properties) return false;
  }
  return true;
}

bool ObjectRule::others_allowed(const Payload& p, const Word& w) const {
  if (!any_other_) return false;
  std::uint32_t left = missing(p, w);
  if (!spec_.any_order && left) return false;
  return spec_.max_properties == kNoMax || w.count + left + std::max(keys_to_come(w), 1u) <= spec_.max_properties;
}

bool ObjectRule::may_close(const Payload& p, const Word& w) const {
  return w.count >= spec_.min_properties && unmet(w.met) == 0 && missing(p, w) == 0;
}

bool ObjectRule::any_next(const Payload& p, const Word& w) const { return others_allowed(p, w) || any_member(p, w); }

bool ObjectRule::any_member(const Payload& p, const Word& w) const {
  if (spec_.any_order && closure_.empty() && spec_.max_properties == kNoMax) {
    for (std::size_t i = 0; i < usable_bits_.size(); ++i) {
      if (usable_bits_[i] & ~seen_bits(p, i)) return true;
    }
    return false;
  }
  for (std::uint32_t k = spec_.any_order ? 0 : w.next; k < spec_.members.size(); ++k) {
    if (member_allowed(p, w, k)) return true;
    if (!tracked() && k >= next_required_[w.next]) return false;
  }
  return false;
}

Symbol ObjectRule::value(std::uint32_t pending) const {
  return pending < spec_.members.size() ? spec_.members[pending].value
                                        : spec_.others[pending - spec_.members.size()].value;
}

std::vector<ObjectRule::Way> ObjectRule::ways(const Payload& p, const Word& w) const {
  std::vector<Way> out;
  auto add = [&](Symbol value, std::uint32_t met) {
    Word after = w;
    after.met = met;
    bool room =
        spec_.max_properties == kNoMax || w.count + missing(p, after) + keys_to_come(after) <= spec_.max_properties;
    if (is_productive(value) && room) out.push_back({value, met});
  };
  add(value(w.pending), w.met);
  if (w.pending < spec_.members.size()) return out;
  for (const auto& [meets, symbol] : spec_.others[w.pending - spec_.members.size()].meeting) {
    if (meets & unmet(w.met)) add(symbol, w.met | meets);
  }
  return out;
}

void ObjectRule::expand(std::uint32_t state, const Payload& payload, Edges& out) const {
  Word w(payload.word);
  switch (state) {
    case kOpen:
      add_edge(out, {open_.get()}, kFirst, {0});
      break;
    case kFirst:
      if (may_close(payload, w)) add_edge(out, {close_first_.get()}, kEnd, {});
      [[fallthrough]];
    case kKey:
      if (Terminal* keys = key(payload, w); keys && any_next(payload, w)) add_edge(out, {keys}, kColon, payload);
      if (other_key_ && others_allowed(payload, w)) add_edge(out, {other_key_.get()}, kOtherColon, payload);
      break;
    case kColon:
      add_edge(out, {colon_.get()}, kValue, payload);
      break;
    case kValue:
      if (spec_.needs == 0) {
        w.pending = 0;
        add_edge(out, value(Word(payload.word).pending), kAfter, {w.pack(), payload.blob});
        break;
      }
      for (const Way& way : ways(payload, w)) {
        Word after = w;
        after.pending = 0;
        after.met = way.met;
        add_edge(out, way.value, kAfter, {after.pack(), payload.blob});
      }
      break;
    case kAfter:
      if (may_close(payload, w)) add_edge(out, {close_.get()}, kEnd, {});
      if (any_next(payload, w)) add_edge(out, {comma_.get()}, kKey, payload);
      break;
    default:
      add_done(out);
  }
}

bool ObjectRule::admits(std::uint32_t to, const Payload& payload, const Terminal::Range& range) const {
  if (to != kColon) return true;
  Word w(payload.word);
  if (range.others && others_allowed(payload, w)) return true;
  for (std::uint32_t label = range.lo; label < range.hi; ++label) {
    if (member_allowed(payload, w, by_label_[label])) return true;
  }
  return false;
}

ObjectRule::Word ObjectRule::after_key(Word w, std::uint32_t pending) const {
  const auto m = static_cast<std::uint32_t>(spec_.members.size());
  w.next = spec_.any_order ? 0 : std::min(pending + 1, m);
  w.count = clip(std::uint64_t{w.count} + 1);
  w.pending = pending;
  return w;
}

// All that expand() asks until the next key has begun. Where other keys may come, a member's begins as one of them does.
std::uint64_t ObjectRule::may_follow(const Payload& p, const Word& w) const {
  return (may_close(p, w) ? 1u : 0u) | (others_allowed(p, w) ? 2u : any_member(p, w) ? 4u : 0u);
}

bool ObjectRule::outlook(std::uint32_t to, const Payload& payload, const Ahead& ahead,
                         std::vector<std::uint64_t>& out) const {
  if (spec_.needs) return false;
  const Word w(payload.word);
  const auto m = static_cast<std::uint32_t>(spec_.members.size());
  switch (to) {
    case kValue: {
      const Symbol due = value(w.pending);
      out.insert(out.end(), {id, std::uint64_t{to} << 3 | may_follow(payload, w),
                             due.terminal ? due.terminal->id() : due.rule->id, due.terminal ? 1u : 0u});
      return true;
    }
    case kAfter:
    case kKey:
      out.insert(out.end(), {id, std::uint64_t{to} << 3 | may_follow(payload, w)});
      return true;
    case kColon:
    case kOtherColon:
      break;
    default:
      return false;
  }
  // A key: which ones it may still be, and what may come after each.
  const std::uint32_t words = tracked() ? (m + 63) / 64 : 0;
  const Terminal::Range& left = ahead.left;
  if (left.hi - left.lo > kFewKeys || spec_.others.size() > kFewKeys || words > kFewWords) return false;
  std::uint64_t bits[kFewWords];
  const Blob seen_then{nullptr, words, false, bits};
  const auto add = [&](std::uint32_t pending) {
    for (std::uint32_t i = 0; i < words; ++i) bits[i] = payload.blob ? payload.blob->bits[i] : 0;
    if (words && pending < m) bits[pending / 64] |= std::uint64_t{1} << (pending % 64);
    const Word then = after_key(w, pending);
    out.push_back(std::uint64_t{pending} << 3 | may_follow({then.pack(), words ? &seen_then : nullptr}, then));
  };
  const bool others = others_allowed(payload, w);
  out.insert(out.end(), {id, std::uint64_t{to} << 3 | (others ? 1u : 0u)});
  for (std::uint32_t label = left.lo; label < left.hi; ++label) {
    const std::uint32_t member = by_label_[label];
    // Where any key may come that begins so, which ones are members makes a difference where they end.
    if (other_key_ && others && spec_.members[member].name.size() > std::uint64_t{ahead.read} + ahead.longest) continue;
    if (member_allowed(payload, w, member)) add(member);
  }
  if ((to == kOtherColon || left.others) && others) {
    for (std::uint32_t j = 0; j < spec_.others.size(); ++j) {
      if (other_usable_[j]) add(m + j);
    }
  }
  out.push_back(~std::uint64_t{0});  // no more of them
  return true;
}

bool ObjectRule::on_label(std::uint32_t to, const Payload& payload, std::uint32_t label, const KeyByte* key,
                          Arena& arena, std::uint32_t* state, Payload* out) const {
  if (to != kColon && to != kOtherColon) return Rule::on_label(to, payload, label, key, arena, state, out);
  if (to == kOtherColon) label = static_cast<std::uint32_t>(by_label_.size());
  Word w(payload.word);
  const std::uint32_t m = static_cast<std::uint32_t>(spec_.members.size());
  const SeenKey* keys = payload.blob ? payload.blob->keys : nullptr;
  std::uint32_t pending;
  if (label < by_label_.size()) {
    pending = by_label_[label];
    if (!member_allowed(payload, w, pending)) return false;
  } else {
    std::uint32_t cls = label - static_cast<std::uint32_t>(by_label_.size());
    if (cls >= spec_.others.size() || !other_usable_[cls] || !others_allowed(payload, w)) return false;
    std::string text;
    if (!unquote(key, {}, &text) || !is_new(keys, text)) return false;
    char* copy = arena.array<char>(text.size() + 1);
    std::copy(text.begin(), text.end(), copy);
    keys = arena.make<SeenKey>(keys, copy, static_cast<std::uint32_t>(text.size()), hash_text(text), false);
    pending = m + cls;
  }
  w = after_key(w, pending);
  *state = kColon;
  out->word = w.pack();
  out->blob = nullptr;
  const bool met_later = spec_.needs && pending >= m;
  const std::uint32_t words = tracked() ? (m + 63) / 64 : 0;
  if (keys || words) {
    std::uint64_t* bits = words ? arena.array<std::uint64_t>(words) : nullptr;
    for (std::uint32_t i = 0; i < words; ++i) bits[i] = payload.blob ? payload.blob->bits[i] : 0;
    if (words && pending < m) bits[pending / 64] |= std::uint64_t{1} << (pending % 64);
    out->blob = arena.make<Blob>(keys, words, false, bits);
  }
  return !met_later || !ways(*out, w).empty();
}

bool ObjectRule::key_is_new(const Payload& payload, const KeyByte* key, std::string_view rest) const {
  const SeenKey* keys = payload.blob ? payload.blob->keys : nullptr;
  if (!keys && names_.empty()) return true;
  std::string text;
  return unquote(key, rest, &text) && is_new(keys, text);
}

bool ObjectRule::taken_keys(const Payload& payload, const KeyByte* key, std::vector<std::string_view>* rests) const {
  rests->clear();
  std::string prefix;
  if (key) {
    std::string raw(key->length, '\0');
    for (const KeyByte* k = key; k; k = k->previous) raw[k->length - 1] = static_cast<char>(k->byte);
    const std::size_t escape = raw.rfind('\\');
    if (escape == std::string::npos) {
      prefix = raw.substr(1);
    } else {
      // Decoded with a closing quote, which is sound only outside an escape: ask for the slow way near one.
      if (raw.size() - escape < 12) return false;
      if (!unquote(key, "\"", &prefix)) return false;
    }
  }
  auto from = std::lower_bound(names_.begin(), names_.end(), prefix);
  for (; from != names_.end() && from->starts_with(prefix); ++from)
    rests->push_back(std::string_view(*from).substr(prefix.size()));
  const std::size_t sorted = rests->size();
  for (const SeenKey* k = payload.blob ? payload.blob->keys : nullptr; k; k = k->previous) {
    std::string_view text(k->text, k->size);
    if (text.starts_with(prefix)) rests->push_back(text.substr(prefix.size()));
  }
  if (rests->size() > sorted) std::sort(rests->begin(), rests->end());
  return true;
}

bool ObjectRule::is_new(const SeenKey* keys, const std::string& text) const {
  return !contains_key(keys, text) && !std::binary_search(names_.begin(), names_.end(), text);
}

}  // namespace ag
