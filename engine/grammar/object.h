// A JSON object, in declared or in any order, as one rule.
//
// The payload says what may still come: in declared order the next member's index and the number of properties; in any
// order (or with dependencies) also the set of members seen; with undeclared keys the keys seen, which must not repeat.
// Guards: '}' needs all that is required and enough properties; ',' needs a possible next key; a key needs room for the
// required ones under maxProperties and must leave enough members to reach minProperties.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "grammar/rule.h"

namespace ag {

class ObjectRule final : public Rule {
 public:
  // What is declared is said in one way only: normal() comes before describe(), and before a rule is made.
  static void normal(ObjectSpec& spec);
  static void describe(const ObjectSpec& spec, Parts& out);
  ObjectRule(ObjectSpec spec, TerminalPool& pool);

  bool parts(Parts& out) const override {
    describe(spec_, out);
    return true;
  }
  void expand(std::uint32_t state, const Payload& payload, Edges& out) const override;
  bool on_label(std::uint32_t to, const Payload& payload, std::uint32_t label, const KeyByte* key, Arena& arena,
                std::uint32_t* state, Payload* out) const override;
  bool outlook(std::uint32_t to, const Payload& payload, const Ahead& ahead,
               std::vector<std::uint64_t>& out) const override;
  bool has_outlook() const override { return spec_.needs == 0; }
  bool admits(std::uint32_t to, const Payload& payload, const Terminal::Range& range) const override;
  std::pair<std::uint32_t, std::uint32_t> other_labels(std::uint32_t) const override {
    return {static_cast<std::uint32_t>(by_label_.size()), static_cast<std::uint32_t>(spec_.others.size())};
  }
  bool reads_key(std::uint32_t to) const override {
    return to == kOtherColon || (to == kColon && !other_key_ && !spec_.others.empty());
  }
  bool needs_key(std::uint32_t to, std::uint32_t label) const override {
    return to == kOtherColon || (to == kColon && label >= by_label_.size());
  }
  bool key_is_new(const Payload& payload, const KeyByte* key, std::string_view rest) const override;
  bool taken_keys(const Payload& payload, const KeyByte* key, std::vector<std::string_view>* rests) const override;
  bool is_tail(std::uint32_t to) const override { return to == kEnd; }
  std::uint64_t min_cost(std::uint32_t state, const Payload& payload) const override;
  void write_min(std::uint32_t state, const Payload& payload, Ending& out) const override;
  bool compute_nullable() const override { return false; }
  void settle() override;
  std::size_t bytes() const override;

  static std::string quoted(const std::string& key);  // a shortest JSON spelling
  bool is_new(const SeenKey* keys, const std::string& text) const;
  static bool unquote(const KeyByte* key, std::string_view rest, std::string* out);

 private:
  enum State : std::uint32_t { kOpen, kFirst, kColon, kValue, kAfter, kKey, kEnd, kOtherColon };
  static constexpr std::uint64_t kMask = (1u << 20) - 1;

  // The payload's word, unpacked.
  struct Word {
    std::uint32_t next = 0;     // declared order: the first member that may still come
    std::uint32_t count = 0;    // properties so far, clipped
    std::uint32_t pending = 0;  // member (or members.size() + class) whose value is due
    std::uint32_t met = 0;      // the needs that are met
    explicit Word(std::uint64_t w)
        : next(w & kMask),
          count((w >> 20) & kMask),
          pending(static_cast<std::uint32_t>((w >> 40) & kMask)),
          met(static_cast<std::uint32_t>(w >> 60)) {}
    std::uint64_t pack() const {
      return std::uint64_t{next} | std::uint64_t{count} << 20 | std::uint64_t{pending} << 40 | std::uint64_t{met} << 60;
    }
  };
  // What each member needs, directly or by what it needs; empty when none needs any.
  static std::vector<std::vector<std::uint32_t>> needs_of(const ObjectSpec& spec);

  // A value that may be due now, and the needs that are met after it.
  struct Way {
    Symbol value;
    std::uint32_t met;
  };

  bool tracked() const { return spec_.any_order || !closure_.empty(); }
  bool seen(const Payload& p, std::uint32_t member) const {
    return p.blob && p.blob->words && (p.blob->bits[member / 64] >> (member % 64) & 1);
  }
  bool needed(const Payload& p, std::uint32_t member) const;     // required, or by a member that is there
  std::uint32_t missing(const Payload& p, const Word& w) const;  // needed members that are not there yet
  bool member_allowed(const Payload& p, const Word& w, std::uint32_t member) const;
  bool others_allowed(const Payload& p, const Word& w) const;
  bool may_close(const Payload& p, const Word& w) const;
  std::uint64_t seen_bits(const Payload& p, std::size_t word) const {
    return p.blob && p.blob->words ? p.blob->bits[word] : 0;
  }
  bool any_member(const Payload& p, const Word& w) const;
  bool any_next(const Payload& p, const Word& w) const;
  Symbol value(std::uint32_t pending) const;
  Word after_key(Word w, std::uint32_t pending) const;
  std::uint64_t may_follow(const Payload& p, const Word& w) const;
  static constexpr std::uint32_t kFewKeys = 64, kFewWords = 8;
  std::vector<Way> ways(const Payload& p, const Word& w) const;
  std::uint32_t unmet(std::uint32_t met) const { return ((1u << spec_.needs) - 1) & ~met; }
  // Keys that it takes to meet the needs that are not met yet.
  std::uint32_t keys_to_come(const Word& w) const { return spec_.needs ? keys_for_[unmet(w.met)] : 0; }
  std::uint32_t clip(std::uint64_t count) const;
  Terminal* key(const Payload& p, const Word& w) const;
  void make_last_keys();

  // A shortest rest: picks (members, or a class's fresh keys), in an order that is allowed.
  struct Pick {
    std::string key;
    Symbol value;
    std::uint64_t cost;
  };
  bool plan(const Payload& p, const Word& w, bool at_least_one, std::vector<Pick>* picks) const;
  bool fresh_key(const Payload& p, const std::vector<Pick>& taken, std::uint32_t cls, std::string* out) const;
  std::uint64_t member_cost(std::uint32_t member) const;
  // The cheapest key whose value is fit(class) and that none of `taken` has; false when there is none.
  template <class Fit>
  bool cheapest_other(const Payload& p, const std::vector<Pick>& taken, Fit fit, Pick* out) const;
  // For states where a value is due: the one on the shortest way, and the picks after it.
  bool plan_value(const Payload& p, const Word& w, Symbol* value, std::vector<Pick>* picks, std::uint64_t* cost) const;
  std::uint64_t picks_cost(const std::vector<Pick>& picks, bool first) const;

  ObjectSpec spec_;
  std::vector<std::uint32_t> by_label_;              // key label -> member index
  std::vector<std::uint32_t> next_required_;         // member index -> first required index from there on
  std::vector<std::uint32_t> required_from_;         // how many required members from an index on
  std::vector<std::uint32_t> usable_from_;           // how many usable members from an index on
  std::vector<std::vector<std::uint32_t>> closure_;  // dependentRequired, transitively; empty when there is none
  std::vector<std::uint64_t> required_bits_, usable_bits_;
  std::vector<char> usable_, other_usable_, other_has_keys_;
  bool any_other_ = false;
  std::vector<std::uint32_t> keys_for_;  // set of needs -> least number of keys that meet them all; kNever: no keys do
  static constexpr std::uint32_t kNever = 1u << 20;
  // Undeclared keys of any spelling are read by the terminal of all strings, which every object shares; that they are
  // none of the names is checked where they end. Null: the key terminal tells all classes apart.
  TerminalPtr other_key_;
  std::vector<std::string> names_;  // sorted: declared and forbidden names, where other_key_ is used
  TerminalPtr open_, close_first_, close_, comma_, colon_, key_;
  // Where there is only just room for the keys that meet what is needed: by the needs that are not met, the keys of the
  // classes that meet some of them.
  std::vector<TerminalPtr> last_keys_;
  TerminalPool* pool_ = nullptr;  // for these
  KeyLanguage keys_;
};

}  // namespace ag
