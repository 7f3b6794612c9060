// Rules that call one another: what settles them, and what makes equal ones one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "grammar/sharing.h"

namespace ag {

// The rules of a builder that were made with placeholders in them, now that all of these are defined.
//
// Strongly connected components are taken bottom up, so that what is below one is shared already, and a rule that calls
// nothing of its own component is found by its description. Others are refined to classes of rules that look the same
// however far one follows them (bisimulation); one rule of each class is kept, and their canonical description is looked
// for. An indirection says nothing: a placeholder is what it stands for.
class Components {
 public:
  // More rules than this that all call one another stay as they are, and are not shared.
  static constexpr std::size_t kMostMembers = 4096;

  Components(Sharing& sharing, std::vector<std::unique_ptr<Rule>>& open) : sharing_(sharing), open_(open) {}
  // Settles all that the root reaches and shares what can be shared; gives what the root is then. A rule that turned out
  // to be equal to a shared one stays in `open` and leads there (see Sharing::now).
  Symbol run(Symbol root);

 private:
  static constexpr std::uint32_t kNone = ~0u;
  using Members = std::vector<std::uint32_t>;
  struct Node {
    std::uint32_t first = 0, count = 0;               // of symbols_
    std::uint32_t index = kNone, low = 0;             // Tarjan's
    std::uint32_t component = kNone, member = kNone;  // which component, and which of its members
    bool shareable = false, unshared = false;
    Symbol now;  // once it is shared
  };
  // A member of a cycle: its numbers, of which the last ones are of its symbols; and which members these are.
  struct Own {
    std::vector<std::uint64_t> numbers;
    std::size_t symbols = 0;
    Members calls;
  };
  static std::vector<Members> calls_of(const std::vector<Own>& all);

  Symbol resolve(Symbol symbol);
  Symbol dead();
  void read(std::uint32_t node);
  void find_components(std::uint32_t root);
  void close(const Members& members);
  void close_cycle(const Members& members);
  void settle(const Members& members);
  bool calls(std::uint32_t node, std::uint32_t component) const;
  Own own(std::uint32_t node);
  std::vector<const SharedRules*> cycles_below(const Members& members) const;
  std::vector<Rule*> unfolded(const std::vector<Own>& all, const Members& of_class, const Members& classes, Rule& as);
  Members canonical_order(const std::vector<Own>& all, const Members& initial, const Members& of_class,
                          const Members& classes, std::vector<std::uint64_t>* description) const;

  Sharing& sharing_;
  std::vector<std::unique_ptr<Rule>>& open_;
  std::vector<Node> nodes_;
  std::vector<Symbol*> symbols_;  // of nodes, where they stand; and the nodes that they were
  std::vector<std::uint32_t> targets_;
  std::uint32_t components_ = 0;
  Symbol dead_;
};

}  // namespace ag
