#include "grammar/builder.h"

#include <algorithm>
#include <iterator>

#include "grammar/components.h"
#include "grammar/object.h"
#include "grammar/rules.h"
#include "regular/effort.h"

namespace ag {

struct Builder::Impl {
  TerminalPool& pool;
  Limits limits;
  Sharing sharing{pool.interner()};
  std::shared_ptr<Fragment> fragment = std::make_shared<Fragment>();
  std::vector<std::unique_ptr<Rule>> open{};    // that are of this request only, or made with placeholders in them
  std::vector<std::unique_ptr<Rule>> closed{};  // that lead to a shared rule
  std::size_t made = 0, reserved = 0, undefined = 0;

  void count(std::size_t rules = 1);
  Symbol close(Symbol symbol);
  Symbol keep_open(std::unique_ptr<Rule> rule);
  template <class Make>
  Symbol shared_or(Parts& parts, Make make);
};

Builder::Builder(TerminalPool& pool, const Limits& limits) : impl_(new Impl{pool, limits}) {}
Builder::~Builder() = default;

TerminalPool& Builder::pool() { return impl_->pool; }

Symbol Builder::terminal(TerminalPtr t) {
  Symbol out{t.get(), nullptr};
  if (t) impl_->sharing.keep(std::move(t));
  return out;
}

Symbol Builder::literal(std::string_view bytes) {
  if (bytes.empty()) return seq({});
  return terminal(impl_->pool.literal(bytes));
}

// Equal rules count as often as they are asked for, so that a limit does not depend on what others have made.
void Builder::Impl::count(std::size_t rules) {
  if ((made += rules) <= limits.max_nodes) return;
  throw GrammarError("the grammar has more than " + std::to_string(limits.max_nodes) + " nodes", "", "",
                     "Split it, or make its parts smaller.");
}

// Settled as far as its parts are; finish() does the rest.
Symbol Builder::Impl::keep_open(std::unique_ptr<Rule> rule) {
  rule->settle();
  rule->nullable = rule->compute_nullable();
  rule->min_length = rule->compute_min();
  open.push_back(std::move(rule));
  return {nullptr, open.back().get()};
}

// Settles and shares what can be by now.
Symbol Builder::Impl::close(Symbol symbol) {
  symbol = Components(sharing, open).run(Sharing::now(symbol));
  const auto from = std::partition(open.begin(), open.end(),
                                   [](const auto& r) { return !Sharing::closed(Sharing::now({nullptr, r.get()})); });
  closed.insert(closed.end(), std::move_iterator(from), std::move_iterator(open.end()));
  open.erase(from, open.end());
  return symbol;
}

// The rule with these parts: one that is there already, and else what is made.
template <class Make>
Symbol Builder::Impl::shared_or(Parts& parts, Make make) {
  using regular::Effort;
  bool settled = true;
  for (Symbol* symbol : parts.symbols()) {
    *symbol = Sharing::now(*symbol);
    settled = settled && Sharing::closed(*symbol);
  }
  std::uint64_t hash = 0;
  if (settled) {
    hash = Interner::hash(parts.describe(Parts::of));
    if (Symbol known = sharing.find(hash, parts.numbers())) {
      if (!Effort::spend(known.rule->effort))
        throw GrammarError("its patterns together need too many states", "", "", "Simplify them.");
      return known;
    }
  }
  const std::uint64_t before = Effort::left();
  std::unique_ptr<Rule> rule = make();
  rule->effort = before - Effort::left();
  return settled ? sharing.publish(std::move(rule), hash, parts.numbers()) : keep_open(std::move(rule));
}

// Children come first, so that all that is not recursive is known, or shared, as soon as it is made.
Symbol Builder::rule(std::unique_ptr<Rule> r) {
  impl_->count();
  Parts& parts = Parts::scratch(Parts::kBuild);
  if (!r->parts(parts)) return impl_->keep_open(std::move(r));
  return impl_->shared_or(parts, [&] { return std::move(r); });
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
  item = Sharing::now(item);
  separator = Sharing::now(separator);
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
  impl_->count();
  Parts& parts = Parts::scratch(Parts::kBuild);
  ObjectRule::normal(spec);
  ObjectRule::describe(spec, parts);
  return impl_->shared_or(parts, [&] { return std::make_unique<ObjectRule>(std::move(spec), impl_->pool); });
}

Symbol Builder::array(ArraySpec spec) {
  impl_->count();
  Parts& parts = Parts::scratch(Parts::kBuild);
  ArrayRule::describe(spec, parts);
  return impl_->shared_or(parts, [&] { return std::make_unique<ArrayRule>(std::move(spec), impl_->pool); });
}

Symbol Builder::token(std::vector<std::uint32_t> ids) {
  if (ids.empty()) return {};
  return rule(std::make_unique<TokenRule>(std::move(ids)));
}

Symbol Builder::embed(const std::shared_ptr<const Fragment>& other) {
  keep(other);
  impl_->sharing.keep(other->root);
  return other->root;
}

void Builder::keep(std::shared_ptr<const Fragment> other) {
  auto& all = impl_->fragment->embedded;
  if (all.empty() || all.back() != other) all.push_back(std::move(other));
}

Symbol Builder::reserve() {
  ++impl_->reserved;
  ++impl_->undefined;
  impl_->count();
  return impl_->keep_open(std::make_unique<RefRule>());
}

// What is recursive is closed as early as possible, so that what is made of it is found rather than made.
void Builder::define(Symbol reserved, Symbol body, std::uint64_t name) {
  Symbol& behind = *reserved.rule->stands_for();
  behind = body;
  if (--impl_->undefined != 0 || !body) return;
  behind = impl_->close(body);
  if (name) impl_->sharing.name(behind, name);
}

Symbol Builder::known(std::uint64_t name) {
  const Symbol symbol = impl_->sharing.find_named(name);
  if (symbol) impl_->count(symbol.rule->home->rules.size() + 1);  // with the placeholder
  return symbol;
}

std::shared_ptr<const Fragment> Builder::finish(Symbol root) {
  Impl& impl = *impl_;
  if (impl.reserved) root = impl.close(root);
  if (!is_productive(root)) {
    throw Unsatisfiable(GrammarError("nothing satisfies this grammar", "", "", "Remove what contradicts itself."));
  }
  if (const std::uint64_t shortest = min_of(root); shortest > impl.limits.max_shortest) {
    throw GrammarError("its shortest text has more than " + std::to_string(impl.limits.max_shortest) + " bytes", "", "",
                       "Lower what it asks for at least: minLength, minItems, the first number of {n,m}.");
  }
  if (root.terminal) root = rule(std::make_unique<SeqRule>(std::vector<Symbol>{root}));
  Fragment& fragment = *impl.fragment;
  fragment.interner = impl.sharing.interner();
  fragment.root = root;
  if (root.rule->home) {  // it holds all that is below it
    fragment.shared.emplace_back(root.rule->home);
  } else {
    std::erase_if(impl.open, [](const auto& r) { return !r || r->stands_for(); });
    fragment.rules = std::move(impl.open);
    fragment.shared = impl.sharing.take_shared();
    fragment.terminals = impl.sharing.take_terminals();
  }
  return std::move(impl.fragment);
}

}  // namespace ag
