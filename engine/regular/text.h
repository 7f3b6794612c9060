// Free text with triggers and excludes: an Aho-Corasick automaton over bytes, times UTF-8 validity.
//
// A state is a node of the automaton and what the current character still needs. Text may end wherever a character may,
// also inside a partial trigger. When a pattern is completed the state is final (label: its index) and nothing follows;
// with `longest`, a pattern that could still grow into a longer one goes on, but only towards such a one.
#pragma once

#include <unordered_map>
#include <vector>

#include "regular/table.h"
#include "regular/terminals.h"

namespace ag::regular {

class TextTerminal final : public TableTerminal {
 public:
  explicit TextTerminal(const TextLanguage& language);

  bool labelled() const override { return true; }
  std::uint32_t others_begin() const override { return static_cast<std::uint32_t>(patterns_.size()); }
  bool shortest_label(State state, std::uint32_t label, std::string* out) override;

 private:
  static constexpr std::uint32_t kNone = 0xffff'ffff;
  struct Node {
    std::vector<std::pair<std::uint8_t, std::uint32_t>> children;  // sorted
    std::uint32_t fail = 0, depth = 0;
    std::uint32_t pattern = kNone;  // the pattern spelled by the path to this node
    std::uint32_t output = kNone;   // the longest pattern that ends here, links included
    bool excluded = false;          // an exclude ends here, links included
    bool towards = false;           // a pattern is spelled at or below this node
  };
  // Utf8: kWhole between characters, otherwise the bytes to come and how the next is restricted.
  enum class Utf8 : std::uint8_t { kWhole, kOne, kTwo, kThree, kE0, kEd, kF0, kF4, kBad };
  // since > 0: a pattern has been completed and `since` bytes were read from its start; only a longer one may end it.
  struct Place {
    std::uint32_t node = 0, since = 0;
    Utf8 utf8 = Utf8::kWhole;
    bool done = false;
    std::uint32_t label = 0;
  };

  void check(const TextLanguage& language) const;
  void require_neutral(const TextLanguage& language) const;
  void insert(const std::string& text, bool pattern, std::uint32_t index);
  void link();
  std::uint32_t child(std::uint32_t node, std::uint8_t byte) const;
  std::uint32_t delta(std::uint32_t node, std::uint8_t byte) const;
  static Utf8 follow(Utf8 at, std::uint8_t byte);
  bool finishable(std::uint32_t node, Utf8 utf8) const;
  bool grows(std::uint32_t node, std::uint32_t since) const;
  State intern(const Place& place);
  State after(const Place& at, std::uint8_t byte);
  State after_pattern(std::uint32_t node, std::uint32_t label, Utf8 utf8);
  void fill(State state, Row& row) override;
  Range compute_range(State state) override;
  std::uint32_t compute_rest(State state) override;

  std::vector<std::string> patterns_;
  bool longest_;
  std::vector<Node> nodes_{1};
  std::vector<Place> places_{1};
  std::unordered_map<std::uint64_t, State> index_;
};

}  // namespace ag::regular
