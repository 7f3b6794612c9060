// TagDispatch (XGrammar-2): free text in which triggers hand over to tags.
//
// The text's automaton belongs to the triggers, stops and excludes, so that all requests of a format share it and its
// masks. Which tag follows a trigger is the request's own: a fan-out over the rest of the tags' beginnings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ref.h"
#include "dispatch/declared_tag.h"
#include "grammar/rule.h"

namespace ag {

struct DispatchSpec {
  std::vector<Ref<const DeclaredTag>> tags;
  std::vector<Mark> triggers, stops;
  std::vector<std::string> excludes;
  std::uint64_t at_least = 0, at_most = kNoMax;
  bool stop_after_first = false;
};

class DispatchRule final : public Rule {
 public:
  // Throws GrammarError: a tag that no trigger begins, a trigger without tags, triggers that contain one another.
  DispatchRule(DispatchSpec spec, TerminalPool& pool);

  bool describe(std::uint32_t state, const Payload& payload, std::vector<std::uint64_t>& out) const override;
  bool own(std::uint32_t state) const override { return state == kContent || state >= kFan; }
  void expand(std::uint32_t state, const Payload& payload, Edges& out) const override;
  bool on_label(std::uint32_t to, const Payload& payload, std::uint32_t label, const KeyByte* key, Arena&,
                std::uint32_t* state, Payload* out) const override;
  bool is_tail(std::uint32_t to) const override { return to == kEnd; }
  std::uint64_t min_cost(std::uint32_t state, const Payload& payload) const override;
  void write_min(std::uint32_t state, const Payload& payload, Ending& out) const override;
  bool compute_nullable() const override { return spec_.at_least == 0; }
  void settle() override;
  std::size_t bytes() const override;

 private:
  // States: kText at the start and between tags, kTextEnd where the text may end, kEnd; after a trigger t the fan-out
  // kFan + t; then a tag's content, end and what follows it. The payload is tags so far (clipped) and the tag in hand.
  enum State : std::uint32_t { kText, kAfterText, kTextEnd, kContent, kTagEnd, kAfterTag, kStopped, kEnd, kFan };

  static std::uint64_t tags_of(const Payload& p) { return p.word & 0xffff'ffff; }
  static std::uint32_t tag_of(const Payload& p) { return static_cast<std::uint32_t>(p.word >> 32); }
  void sort_by_rest(std::vector<std::uint32_t>& tags, std::size_t skip) const;
  std::uint64_t clip(std::uint64_t n) const;
  bool enough(const Payload& p) const { return tags_of(p) >= spec_.at_least; }
  bool full(const Payload& p) const { return tags_of(p) >= spec_.at_most; }
  std::uint64_t tag_cost(std::uint32_t tag) const;
  std::uint64_t rest_cost(std::uint64_t tags_done) const;
  void write_rest(std::uint64_t tags_done, Ending& out) const;
  void write_mark(const Mark& mark, Ending& out) const;

  struct Trigger {
    std::uint32_t mark;               // index into spec_.triggers
    TerminalPtr fan;                  // over the rest of the beginnings; null when there is one, empty
    std::vector<std::uint32_t> tags;  // fan label -> tag
  };
  DispatchSpec spec_;
  std::vector<Trigger> triggers_;             // text triggers first, in order, then token triggers
  std::vector<std::uint32_t> text_triggers_;  // text pattern label -> trigger; stops follow
  TerminalPtr text_, closed_text_;            // with triggers; with triggers excluded
  std::size_t text_stops_begin_ = 0;
  std::uint32_t cheapest_ = 0;
  std::uint64_t cheapest_cost_ = kInfinite;
};

}  // namespace ag
