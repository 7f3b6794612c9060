// Rules that every grammar with equal ones shares: one rule, or several that call one another.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/interned.h"
#include "grammar/rule.h"

namespace ag {

// Immutable once published. Holds all that its rules are made of.
class SharedRules final : public Interned {
 public:
  // Each rule by its own description; all of them together by that of the component.
  static constexpr std::uint32_t kTogether = ~0u;

  using Interned::Interned;

  std::vector<std::unique_ptr<Rule>> rules;
  std::vector<TerminalPtr> terminals;
  std::vector<Ref<const SharedRules>> below;
  bool cyclic = false;
  std::uint32_t latest = 0;  // of when its rules, and those below, were found (see Rule::found)

  std::size_t bytes() const override;
  // Counts one more (1) or one less (-1) holder in a cache, of this and of all below, and gives the bytes of those that
  // it holds now and did not before, or the other way round. For one cache, which has a mutex around it.
  std::size_t count(int holders) const;

 protected:
  bool has(std::uint32_t way, Description description) const override;
  std::size_t things() const override { return rules.size(); }

 private:
  mutable std::uint32_t cached_ = 0;
};

}  // namespace ag
