// Shortest ends of objects: which keys are still to come, and the cheapest of them.
#include <algorithm>

#include "grammar/object.h"

namespace ag {

std::uint64_t ObjectRule::member_cost(std::uint32_t k) const {
  return add_cost(quoted(spec_.members[k].name).size() + colon_->min_rest(Terminal::kStart, 0),
                  min_of(spec_.members[k].value));
}

bool ObjectRule::fresh_key(const Payload& p, const std::vector<Pick>& taken, std::uint32_t cls,
                           std::string* out) const {
  const std::uint32_t label = static_cast<std::uint32_t>(by_label_.size()) + cls;
  const SeenKey* keys = p.blob ? p.blob->keys : nullptr;
  Terminal& terminal = other_key_ ? *other_key_ : *key_;
  std::string base = "\"\"";
  if (!other_key_ && !terminal.shortest_label(Terminal::kStart, label, &base)) return false;
  base.pop_back();  // the closing quote
  static const std::string alphabet = "abcdefghijklmnopqrstuvwxyz0123456789_ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (std::size_t n = 0; n < 100'000; ++n) {
    std::string spelled = base;
    for (std::size_t i = n; i > 0; i = (i - 1) / alphabet.size()) spelled += alphabet[(i - 1) % alphabet.size()];
    spelled += '"';
    Terminal::State s = Terminal::kStart;
    for (unsigned char c : spelled) s = s ? terminal.next(s, c) & Terminal::kStateMask : 0;
    if (!s || !terminal.accepting(s) || (!other_key_ && terminal.label(s) != label)) continue;
    bool used = std::any_of(taken.begin(), taken.end(), [&](const Pick& t) { return t.key == spelled; });
    if (used) continue;
    Arena scratch;
    const KeyByte* chain = nullptr;
    std::uint32_t length = 0;
    for (unsigned char c : spelled) chain = scratch.make<KeyByte>(chain, ++length, c, false);
    std::string text;
    if (unquote(chain, {}, &text) && is_new(keys, text)) {
      *out = spelled;
      return true;
    }
  }
  return false;
}

bool ObjectRule::plan(const Payload& p, const Word& w, bool at_least_one, std::vector<Pick>* picks) const {
  const std::uint32_t m = static_cast<std::uint32_t>(spec_.members.size());
  std::vector<std::uint32_t> chosen, spare;
  auto is_free = [&](std::uint32_t k) {
    return tracked() ? !seen(p, k) && (spec_.any_order || k >= w.next) : k >= w.next;
  };
  for (std::uint32_t k = 0; k < m; ++k) {
    if (!is_free(k)) continue;
    if (needed(p, k)) {
      if (!usable_[k]) return false;
      chosen.push_back(k);
    } else if (usable_[k]) {
      spare.push_back(k);
    }
  }
  std::vector<Pick> extra;
  for (std::uint32_t needs = unmet(w.met);
       needs;) {  // keys that meet as many needs as it takes to need the fewest keys
    Pick best;
    std::uint32_t meets = 0;
    for (std::uint32_t set = 1; set < keys_for_.size(); ++set) {
      Pick pick;
      if (!(set & needs) || keys_for_[needs & ~set] + 1 != keys_for_[needs] || keys_for_[needs] >= kNever) continue;
      auto fit = [&](const ObjectSpec::Other& other) {
        for (const auto& [m, symbol] : other.meeting) {
          if (m == set) return symbol;
        }
        return Symbol{};
      };
      if (cheapest_other(p, extra, fit, &pick) && (!meets || pick.cost < best.cost)) best = pick, meets = set;
    }
    if (!meets) return false;
    extra.push_back(best);
    needs &= ~meets;
  }
  const std::uint64_t sure = w.count + chosen.size() + extra.size();
  std::uint64_t want = spec_.min_properties > sure ? spec_.min_properties - sure : 0;
  if (at_least_one && chosen.empty() && extra.empty() && want == 0) want = 1;
  if (want) {
    if (!closure_.empty()) {
      // A spare member costs all that it needs, too; those without needs come first.
      std::stable_partition(spare.begin(), spare.end(), [&](std::uint32_t k) { return closure_[k].empty(); });
    } else {
      std::stable_sort(spare.begin(), spare.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return member_cost(a) < member_cost(b); });
    }
  }
  while (want) {
    std::uint32_t best = ~0u;
    Pick other{{}, {}, kInfinite};
    cheapest_other(p, extra, [](const ObjectSpec::Other& o) { return o.value; }, &other);
    if (!spare.empty()) best = spare.front();
    if (best != ~0u && member_cost(best) <= other.cost) {
      spare.erase(spare.begin());
      chosen.push_back(best);
      if (!closure_.empty()) {
        for (std::uint32_t d : closure_[best]) {
          if (!seen(p, d) && std::find(chosen.begin(), chosen.end(), d) == chosen.end()) {
            chosen.push_back(d);
            spare.erase(std::remove(spare.begin(), spare.end(), d), spare.end());
            if (want > 1) --want;
          }
        }
      }
    } else if (other.cost != kInfinite) {
      extra.push_back(other);
    } else {
      return false;
    }
    --want;
  }
  if (spec_.max_properties != kNoMax && w.count + chosen.size() + extra.size() > spec_.max_properties) return false;
  std::sort(chosen.begin(), chosen.end());
  for (std::uint32_t k : chosen)
    picks->push_back({quoted(spec_.members[k].name), spec_.members[k].value, member_cost(k)});
  picks->insert(picks->end(), extra.begin(), extra.end());
  return true;
}

template <class Fit>
bool ObjectRule::cheapest_other(const Payload& p, const std::vector<Pick>& taken, Fit fit, Pick* out) const {
  bool found = false;
  for (std::uint32_t j = 0; j < spec_.others.size(); ++j) {
    const Symbol value = fit(spec_.others[j]);
    std::string key;
    if (!other_usable_[j] || !is_productive(value) || !fresh_key(p, taken, j, &key)) continue;
    const std::uint64_t cost = add_cost(key.size() + colon_->min_rest(Terminal::kStart, 0), min_of(value));
    if (!found || cost < out->cost) *out = {key, value, cost};
    found = true;
  }
  return found;
}

bool ObjectRule::plan_value(const Payload& p, const Word& w, Symbol* value, std::vector<Pick>* picks,
                            std::uint64_t* cost) const {
  bool found = false;
  for (const Way& way : ways(p, w)) {
    Word after = w;
    after.met = way.met;
    std::vector<Pick> rest;
    if (!plan(p, after, false, &rest)) continue;
    const std::uint64_t total = add_cost(min_of(way.value), picks_cost(rest, false));
    if (found && total >= *cost) continue;
    found = true;
    *value = way.value;
    *picks = std::move(rest);
    *cost = total;
  }
  return found;
}

std::uint64_t ObjectRule::picks_cost(const std::vector<Pick>& picks, bool first) const {
  std::uint64_t total = 0;
  for (const Pick& pick : picks) {
    total = add_cost(total, add_cost(pick.cost, first ? 0 : comma_->min_rest(Terminal::kStart, 0)));
    first = false;
  }
  return total;
}

std::uint64_t ObjectRule::min_cost(std::uint32_t state, const Payload& payload) const {
  if (state == kEnd) return 0;
  Word w(payload.word);
  std::vector<Pick> picks;
  std::uint64_t total = state == kOpen ? 2 : 1;  // the braces
  if (state == kColon || state == kValue) {
    Symbol value;
    std::uint64_t cost = 0;
    if (!plan_value(payload, w, &value, &picks, &cost)) return kInfinite;
    return add_cost(total, add_cost(cost, state == kColon ? colon_->min_rest(Terminal::kStart, 0) : 0));
  }
  if (!plan(payload, w, state == kKey, &picks)) return kInfinite;
  return add_cost(total, picks_cost(picks, state != kAfter));
}

void ObjectRule::write_min(std::uint32_t state, const Payload& payload, Ending& out) const {
  if (state == kEnd) return;
  Word w(payload.word);
  std::vector<Pick> picks;
  bool first = state != kAfter;
  if (state == kOpen) out.append("{");
  if (state == kColon) out.append({colon_.get()});
  if (state == kColon || state == kValue) {
    Symbol value;
    std::uint64_t cost = 0;
    plan_value(payload, w, &value, &picks, &cost);
    out.append(value);
    first = false;
  } else {
    plan(payload, w, state == kKey, &picks);
  }
  for (const Pick& pick : picks) {
    if (!first) out.append({comma_.get()});
    first = false;
    out.append(pick.key);
    out.append({colon_.get()});
    out.append(pick.value);
  }
  out.append("}");
}

}  // namespace ag
