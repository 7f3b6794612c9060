#include "grammar/builder.h"

#include <algorithm>

#include "grammar/object.h"
#include "grammar/rules.h"

namespace ag {

struct Builder::Impl {
  TerminalPool& pool;
  Limits limits;
  std::shared_ptr<Fragment> fragment = std::make_shared<Fragment>();
  bool recursive = false;
  std::uint32_t found = 0;
};

Builder::Builder(TerminalPool& pool, const Limits& limits) : impl_(new Impl{pool, limits}) {}
Builder::~Builder() = default;

TerminalPool& Builder::pool() { return impl_->pool; }

Symbol Builder::terminal(TerminalPtr t) {
  if (!t) return {};
  auto& all = impl_->fragment->terminals;
  Symbol out{t.get(), nullptr};
  if (all.empty() || all.back() != t) all.push_back(std::move(t));
  return out;
}

Symbol Builder::literal(std::string_view bytes) {
  if (bytes.empty()) return seq({});
  return terminal(impl_->pool.literal(bytes));
}

Symbol Builder::rule(std::unique_ptr<Rule> r) {
  auto& rules = impl_->fragment->rules;
  if (rules.size() >= impl_->limits.max_nodes) {
    throw GrammarError("the grammar has more than " + std::to_string(impl_->limits.max_nodes) + " nodes", "", "",
                       "Split it, or make its parts smaller.");
  }
  // Children come first, so that one pass settles everything that is not recursive.
  r->settle();
  r->nullable = r->compute_nullable();
  r->min_length = r->compute_min();
  r->found = ++impl_->found;
  rules.push_back(std::move(r));
  return {nullptr, rules.back().get()};
}

Symbol Builder::seq(std::vector<Symbol> children) {
  for (Symbol s : children) {
    if (!s) return {};
  }
  if (children.size() == 1) return children[0];
  return rule(std::make_unique<SeqRule>(std::move(children)));
}

Symbol Builder::choice(std::vector<Symbol> options) {
  std::vector<Symbol> kept;
  for (Symbol s : options) {
    if (s && std::find(kept.begin(), kept.end(), s) == kept.end()) kept.push_back(s);
  }
  if (kept.empty()) return {};
  if (kept.size() == 1) return kept[0];
  return rule(std::make_unique<ChoiceRule>(std::move(kept)));
}

Symbol Builder::repeat(Symbol item, std::uint64_t min, std::uint64_t max, Symbol separator) {
  if (!item) return min == 0 ? seq({}) : Symbol{};
  if (max == 0) return seq({});
  if (min == 1 && max == 1) return item;
  if (separator && is_nullable(separator) && is_nullable(item)) {
    throw GrammarError("a repetition whose item and separator may both be empty has no single meaning", "", "",
                       "Make the item or the separator match at least one byte.");
  }
  return rule(std::make_unique<RepeatRule>(item, min, max, separator));
}

Symbol Builder::object(ObjectSpec spec) {
  for (const auto& m : spec.members) {
    if (m.required && !m.value) return {};
  }
  return rule(std::make_unique<ObjectRule>(std::move(spec), impl_->pool));
}

Symbol Builder::array(ArraySpec spec) { return rule(std::make_unique<ArrayRule>(std::move(spec), impl_->pool)); }

Symbol Builder::token(std::vector<std::uint32_t> ids) {
  if (ids.empty()) return {};
  return rule(std::make_unique<TokenRule>(std::move(ids)));
}

Symbol Builder::embed(const std::shared_ptr<const Fragment>& other) {
  keep(other);
  return other->root;
}

void Builder::keep(std::shared_ptr<const Fragment> other) {
  auto& all = impl_->fragment->embedded;
  if (all.empty() || all.back() != other) all.push_back(std::move(other));
}

Symbol Builder::reserve() {
  impl_->recursive = true;
  return rule(std::make_unique<RefRule>());
}

void Builder::define(Symbol reserved, Symbol body) { static_cast<RefRule*>(reserved.rule)->body = body; }

std::shared_ptr<const Fragment> Builder::finish(Symbol root) {
  auto& rules = impl_->fragment->rules;
  for (bool changed = impl_->recursive; changed;) {
    changed = false;
    for (auto& r : rules) {
      r->settle();
      bool n = r->compute_nullable();
      std::uint64_t m = r->compute_min();
      if (n != r->nullable || m != r->min_length) {
        if (m != r->min_length) r->found = ++impl_->found;
        r->nullable = n;
        r->min_length = m;
        changed = true;
      }
    }
  }
  if (!is_productive(root)) {
    throw Unsatisfiable(GrammarError("nothing satisfies this grammar", "", "", "Remove what contradicts itself."));
  }
  if (const std::uint64_t shortest = min_of(root); shortest > impl_->limits.max_shortest) {
    throw GrammarError("its shortest text has more than " + std::to_string(impl_->limits.max_shortest) + " bytes", "",
                       "", "Lower what it asks for at least: minLength, minItems, the first number of {n,m}.");
  }
  if (root.terminal) root = rule(std::make_unique<SeqRule>(std::vector<Symbol>{root}));
  impl_->fragment->root = root;
  return std::move(impl_->fragment);
}

}  // namespace ag
