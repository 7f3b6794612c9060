#include "dispatch/dispatch.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "base/head.h"

namespace ag {

namespace {
std::string shown(const Mark& m) {
  return m.is_token() ? "token " + std::to_string(m.ids.front()) : "'" + m.text + "'";
}
}  // namespace

DispatchRule::DispatchRule(DispatchSpec spec, TerminalPool& pool) : spec_(std::move(spec)) {
  const auto& marks = spec_.triggers;
  std::vector<std::vector<std::uint32_t>> tags_of_trigger(marks.size());
  std::unordered_map<std::uint32_t, std::uint32_t> by_token;
  for (std::uint32_t t = 0; t < marks.size(); ++t) {
    if (marks[t].is_token()) {
      for (auto id : marks[t].ids) by_token.emplace(id, t);
    } else if (marks[t].text.empty()) {
      throw GrammarError("a trigger is empty", "", "triggers", "Give the text that begins a tag.");
    }
  }
  for (std::uint32_t i = 0; i < spec_.tags.size(); ++i) {
    const std::string_view text = spec_.tags[i]->text();
    std::uint32_t found = ~0u;
    if (text.empty() && spec_.tags[i]->begin().is_token()) {
      auto it = by_token.find(spec_.tags[i]->begin().ids.front());
      if (it != by_token.end()) found = it->second;
    } else {
      for (std::uint32_t t = 0; t < marks.size(); ++t) {
        if (!marks[t].is_token() && text.starts_with(marks[t].text)) {
          found = t;
          break;
        }
      }
    }
    if (found == ~0u) {
      throw GrammarError("no trigger begins the tag " + shown(spec_.tags[i]->begin()), "", "triggers",
                         "A tag's begin starts with one of the triggers.");
    }
    tags_of_trigger[found].push_back(i);
  }

  TextLanguage open, closed;
  closed.excludes = open.excludes = spec_.excludes;
  std::vector<std::uint32_t> order;
  for (std::uint32_t t = 0; t < marks.size(); ++t) {
    if (!marks[t].is_token()) order.push_back(t);
  }
  for (std::uint32_t t = 0; t < marks.size(); ++t) {
    if (marks[t].is_token()) order.push_back(t);
  }
  for (std::uint32_t t : order) {
    Trigger trigger;
    trigger.mark = t;
    auto& tags = tags_of_trigger[t];
    if (!marks[t].is_token()) {
      closed.excludes.push_back(marks[t].text);
      if (tags.empty()) {  // nothing may follow it: it is plainly excluded
        open.excludes.push_back(marks[t].text);
        continue;
      }
      text_triggers_.push_back(static_cast<std::uint32_t>(triggers_.size()));
      open.patterns.push_back(marks[t].text);
      const std::size_t skip = marks[t].text.size();
      sort_by_rest(tags, skip);
      std::vector<std::string_view> rests;
      std::vector<regular::NameTokens*> tokens;
      rests.reserve(tags.size());
      tokens.reserve(tags.size());
      for (std::size_t i = 0; i < tags.size(); ++i) {
        const DeclaredTag& tag = *spec_.tags[tags[i]];
        const std::string_view text = tag.text();
        if (i && text == spec_.tags[tags[i - 1]]->text()) {
          throw GrammarError("two tags begin with '" + std::string(text) + "'", "", "tags",
                             "Give each tag its own begin.");
        }
        rests.push_back(text.substr(skip));
        tokens.push_back(tag.tokens(skip));
      }
      if (rests.size() > 1 || !rests[0].empty()) trigger.fan = pool.fanout(std::move(rests), std::move(tokens));
    } else if (tags.empty()) {
      continue;
    }
    trigger.tags = tags;
    triggers_.push_back(std::move(trigger));
  }
  text_stops_begin_ = open.patterns.size();
  for (const auto& stop : spec_.stops) {
    if (stop.is_token()) continue;
    for (const auto& t : marks) {
      if (!t.is_token() &&
          (t.text.find(stop.text) != std::string::npos || stop.text.find(t.text) != std::string::npos)) {
        throw GrammarError("the stop '" + stop.text + "' overlaps the trigger '" + t.text + "'", "", "stops",
                           "Stops and triggers must not contain one another.");
      }
    }
    open.patterns.push_back(stop.text);
    closed.patterns.push_back(stop.text);
  }
  text_ = pool.text(open);
  if (spec_.at_most != kNoMax) closed_text_ = pool.text(closed);
  settle();
}

void DispatchRule::sort_by_rest(std::vector<std::uint32_t>& tags, std::size_t skip) const {
  struct Key {
    unsigned __int128 head;
    std::uint32_t tag;
  };
  std::vector<Key> order;
  order.reserve(tags.size());
  for (std::uint32_t tag : tags) {
    order.push_back({head_of<unsigned __int128>(spec_.tags[tag]->text().substr(skip)), tag});
  }
  std::sort(order.begin(), order.end(), [&](const Key& a, const Key& b) {
    return a.head != b.head ? a.head < b.head : spec_.tags[a.tag]->text() < spec_.tags[b.tag]->text();
  });
  for (std::size_t i = 0; i < tags.size(); ++i) tags[i] = order[i].tag;
}

std::uint64_t DispatchRule::clip(std::uint64_t n) const {
  if (spec_.at_most == kNoMax) n = std::min(n, spec_.at_least);
  return std::min<std::uint64_t>(n, 0xffff'fffe);
}

// Texts, and how a tag ends, are the format's; which tags there are is the request's own.
bool DispatchRule::describe(std::uint32_t state, const Payload& payload, std::vector<std::uint64_t>& out) const {
  if (own(state)) return false;
  const auto id = [](const TerminalPtr& t) { return t ? t->id() : 0; };
  out.insert(out.end(), {kDescribed, std::uint64_t{state} << 1 | (spec_.stop_after_first ? 1u : 0u), tags_of(payload),
                         spec_.at_least, spec_.at_most, id(text_), id(closed_text_), text_stops_begin_});
  if (state != kTagEnd) return true;
  const DeclaredTag& tag = *spec_.tags[tag_of(payload)];
  out.push_back(id(tag.end_text()));
  out.push_back(tag.end().ids.size());
  out.insert(out.end(), tag.end().ids.begin(), tag.end().ids.end());
  return true;
}

void DispatchRule::expand(std::uint32_t state, const Payload& payload, Edges& out) const {
  if (state >= kFan) {
    const Trigger& trigger = triggers_[state - kFan];
    if (trigger.fan) {
      add_edge(out, {trigger.fan.get()}, state, payload);
    } else {
      for (std::uint32_t tag : trigger.tags) {
        add_edge(out, spec_.tags[tag]->content, kTagEnd, {tags_of(payload) | std::uint64_t{tag} << 32});
      }
    }
    return;
  }
  switch (state) {
    case kText: {
      const auto& text = full(payload) ? closed_text_ : text_;
      // The empty text is in the language, so that kTextEnd's edges are reached at once.
      if (text) add_edge(out, {text.get()}, kAfterText, payload);
      break;
    }
    case kTextEnd:  // the text ends here: with it the dispatch, or before a token that begins a tag
      if (enough(payload)) add_done(out);
      if (!full(payload)) {
        for (std::uint32_t t = static_cast<std::uint32_t>(text_triggers_.size()); t < triggers_.size(); ++t) {
          out.push_back(
              {Edge::kToken, false, kFan + t, nullptr, nullptr, &spec_.triggers[triggers_[t].mark].ids, payload});
        }
      }
      if (enough(payload)) {
        for (const auto& stop : spec_.stops) {
          if (stop.is_token()) out.push_back({Edge::kToken, false, kEnd, nullptr, nullptr, &stop.ids, {}});
        }
      }
      break;
    case kContent:
      add_edge(out, spec_.tags[tag_of(payload)]->content, kTagEnd, payload);
      break;
    case kTagEnd: {
      const auto& end = spec_.tags[tag_of(payload)]->end();
      Payload after{clip(tags_of(payload) + 1)};
      if (end.is_token()) {
        out.push_back({Edge::kToken, false, kAfterTag, nullptr, nullptr, &end.ids, after});
      } else if (const auto& text = spec_.tags[tag_of(payload)]->end_text()) {
        add_edge(out, {text.get()}, kAfterTag, after);
      } else {
        expand(kAfterTag, after, out);
      }
      break;
    }
    case kAfterTag:
      if (spec_.stop_after_first) {
        add_done(out);
      } else {
        expand(kText, payload, out);
      }
      break;
    default:
      add_done(out);
  }
}

bool DispatchRule::on_label(std::uint32_t to, const Payload& payload, std::uint32_t label, const KeyByte*, Arena&,
                            std::uint32_t* state, Payload* out) const {
  *out = payload;
  if (to >= kFan) {
    *state = kContent;
    out->word = tags_of(payload) | std::uint64_t{triggers_[to - kFan].tags[label]} << 32;
    return true;
  }
  if (to != kAfterText) {
    *state = to;
    return true;
  }
  if (label == TerminalPool::kText) {
    *state = kTextEnd;
    return true;
  }
  const bool closed = full(payload);
  const std::size_t stops_begin = closed ? 0 : text_stops_begin_;
  if (label >= stops_begin) {
    *state = kEnd;
    return enough(payload);
  }
  *state = kFan + text_triggers_[label];
  return true;
}

void DispatchRule::settle() {
  cheapest_cost_ = kInfinite;
  for (std::uint32_t i = 0; i < spec_.tags.size() && spec_.at_least; ++i) {
    std::uint64_t cost =
        add_cost(spec_.tags[i]->begin().is_token() ? 1 : spec_.tags[i]->begin().text.size(), tag_cost(i));
    if (cost < cheapest_cost_) {
      cheapest_cost_ = cost;
      cheapest_ = i;
    }
  }
}

std::uint64_t DispatchRule::tag_cost(std::uint32_t i) const {
  const DeclaredTag& tag = *spec_.tags[i];
  return add_cost(min_of(tag.content), tag.end().is_token() ? 1 : tag.end().text.size());
}

std::uint64_t DispatchRule::rest_cost(std::uint64_t done) const {
  return done >= spec_.at_least ? 0 : mul_cost(cheapest_cost_, spec_.at_least - done);
}

std::uint64_t DispatchRule::min_cost(std::uint32_t state, const Payload& payload) const {
  const std::uint64_t n = tags_of(payload);
  auto after = [&] { return spec_.stop_after_first ? 0 : rest_cost(n + 1); };
  if (state >= kFan) {
    const Trigger& trigger = triggers_[state - kFan];
    const auto& mark = spec_.triggers[trigger.mark];
    std::uint64_t least = kInfinite;
    for (std::uint32_t tag : trigger.tags) {
      std::uint64_t rest = mark.is_token() ? 0 : spec_.tags[tag]->begin().text.size() - mark.text.size();
      least = std::min(least, add_cost(rest, tag_cost(tag)));
    }
    return add_cost(least, after());
  }
  switch (state) {
    case kText:
    case kTextEnd:
      return rest_cost(n);
    case kContent:
      return add_cost(tag_cost(tag_of(payload)), after());
    case kTagEnd: {
      const auto& end = spec_.tags[tag_of(payload)]->end();
      return add_cost(end.is_token() ? 1 : end.text.size(), after());
    }
    case kAfterTag:
      return spec_.stop_after_first ? 0 : rest_cost(n);
    default:
      return 0;
  }
}

void DispatchRule::write_mark(const Mark& mark, Ending& out) const {
  if (mark.is_token()) {
    out.units.push_back({mark.ids.front(), true});
  } else {
    out.append(mark.text);
  }
}

void DispatchRule::write_rest(std::uint64_t done, Ending& out) const {
  for (; done < spec_.at_least; ++done) {
    write_mark(spec_.tags[cheapest_]->begin(), out);
    out.append(spec_.tags[cheapest_]->content);
    write_mark(spec_.tags[cheapest_]->end(), out);
  }
}

void DispatchRule::write_min(std::uint32_t state, const Payload& payload, Ending& out) const {
  std::uint64_t n = tags_of(payload);
  if (state == kText || state == kTextEnd) return write_rest(n, out);
  if (state == kAfterTag) {
    if (!spec_.stop_after_first) write_rest(n, out);
    return;
  }
  std::uint32_t tag = tag_of(payload);
  if (state >= kFan) {
    const Trigger& trigger = triggers_[state - kFan];
    const auto& mark = spec_.triggers[trigger.mark];
    auto rest = [&](std::uint32_t t) {
      return mark.is_token() ? 0 : spec_.tags[t]->begin().text.size() - mark.text.size();
    };
    tag = *std::min_element(trigger.tags.begin(), trigger.tags.end(), [&](std::uint32_t a, std::uint32_t b) {
      return add_cost(rest(a), tag_cost(a)) < add_cost(rest(b), tag_cost(b));
    });
    if (!mark.is_token()) out.append(std::string_view(spec_.tags[tag]->begin().text).substr(mark.text.size()));
  }
  if (state >= kFan || state == kContent) out.append(spec_.tags[tag]->content);
  if (state >= kFan || state == kContent || state == kTagEnd) {
    write_mark(spec_.tags[tag]->end(), out);
    if (!spec_.stop_after_first) write_rest(n + 1, out);
  }
}

std::size_t DispatchRule::bytes() const {
  std::size_t total = sizeof *this;
  total += spec_.tags.size() * (sizeof(Ref<const DeclaredTag>) + 8);
  return total;
}

}  // namespace ag
