#include "grammar/ebnf.h"

#include <algorithm>
#include <optional>

#include "grammar/ebnf_tree.h"

namespace ag {

namespace {

using ebnf::Expr;
using ebnf::Grammar;
using ebnf::RuleDef;

// A rule without recursion becomes part of one terminal as long as its pattern stays this short.
constexpr std::size_t kMaxPattern = 4000;
// Counts above this stay with the parser, which does not unroll them.
constexpr std::uint64_t kMaxCount = 1000;

class Lowering {
 public:
  Lowering(std::string_view text, const Grammar& grammar, TerminalPool& pool, const Limits& limits)
      : text_(text),
        grammar_(grammar),
        builder_(pool, limits),
        patterns_(grammar.rules.size()),
        symbols_(grammar.rules.size()) {}

  std::shared_ptr<const Fragment> run() {
    check_productive();
    find_patterns();
    Symbol root = use(grammar_.root);
    while (!todo_.empty()) {
      std::uint32_t r = todo_.back();
      todo_.pop_back();
      builder_.define(symbols_[r], lower(grammar_.rules[r].body));
    }
    return builder_.finish(root);
  }

 private:
  // Least fixpoint: a rule can be completed when its body can, through rules that can.
  void check_productive() const {
    std::vector<bool> good(grammar_.rules.size());
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = 0; i < good.size(); ++i) {
        if (!good[i] && productive(grammar_.rules[i].body, good)) good[i] = changed = true;
      }
    }
    for (std::size_t i = 0; i < good.size(); ++i) {
      const RuleDef& r = grammar_.rules[i];
      if (!good[i]) {
        ebnf::fail_at(text_, r.at,
                      "the rule \"" + r.name + "\" can never be completed: each way through it needs it again",
                      "Add an alternative without the recursion.");
      }
    }
  }

  bool productive(const Expr& e, const std::vector<bool>& good) const {
    auto child = [&](const Expr& c) { return productive(c, good); };
    switch (e.kind) {
      case Expr::kRef:
        return good[e.rule];
      case Expr::kChoice:
        return std::any_of(e.children.begin(), e.children.end(), child);
      case Expr::kRepeat:
        return e.min == 0 || child(e.children[0]);
      default:
        return std::all_of(e.children.begin(), e.children.end(), child);
    }
  }

  // Patterns of the rules that have no recursion, found from the leaves up.
  void find_patterns() {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = 0; i < patterns_.size(); ++i) {
        if (patterns_[i]) continue;
        if (auto p = pattern(grammar_.rules[i].body)) patterns_[i] = std::move(p), changed = true;
      }
    }
  }

  // The expression as one regular expression (a group, or a single atom), or nothing.
  std::optional<std::string> pattern(const Expr& e) const {
    std::string out;
    switch (e.kind) {
      case Expr::kText:
        for (std::size_t i = 0; i < e.text.size();) out += escaped(e.text, i);
        out.insert(0, "(?:").append(")");
        break;
      case Expr::kRegex:
        out = e.text.starts_with('[') && closes_at_end(e.text) ? e.text : std::string("(?:").append(e.text).append(")");
        break;
      case Expr::kRef:
        return patterns_[e.rule];
      case Expr::kRepeat: {
        if (e.min > kMaxCount || (e.max != kNoMax && e.max > kMaxCount)) return std::nullopt;
        auto inner = pattern(e.children[0]);
        if (!inner) return std::nullopt;
        out.append("(?:").append(*inner).append("{").append(std::to_string(e.min)).append(",");
        out.append(e.max == kNoMax ? "" : std::to_string(e.max)).append("})");
        break;
      }
      default:
        for (const Expr& c : e.children) {
          auto inner = pattern(c);
          if (!inner) return std::nullopt;
          if (e.kind == Expr::kChoice && &c != &e.children[0]) out += '|';
          out += *inner;
          if (out.size() > kMaxPattern) return std::nullopt;
        }
        out.insert(0, "(?:").append(")");
    }
    if (out.size() > kMaxPattern) return std::nullopt;
    return out;
  }

  static bool closes_at_end(const std::string& s) { return s.find(']') == s.size() - 1; }

  // The character at `i` as a regular expression has it; moves past it.
  static std::string escaped(const std::string& text, std::size_t& i) {
    auto lead = static_cast<unsigned char>(text[i]);
    std::size_t length = lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    std::string out;
    if (length == 1) {
      ebnf::append_regex(out, lead);
    } else {
      out = text.substr(i, length);
    }
    i += length;
    return out;
  }

  Symbol use(std::uint32_t rule) {
    if (!symbols_[rule]) {
      if (patterns_[rule]) {
        symbols_[rule] = builder_.terminal(builder_.pool().regex(*patterns_[rule]));
      } else {
        symbols_[rule] = builder_.reserve();
        todo_.push_back(rule);
      }
    }
    return symbols_[rule];
  }

  Symbol lower(const Expr& e) {
    if (e.kind == Expr::kText) return builder_.literal(e.text);
    if (auto p = pattern(e)) {
      Symbol s = builder_.terminal(builder_.pool().regex(*p));
      if (s) return s;
    }
    switch (e.kind) {
      case Expr::kRef:
        return use(e.rule);
      case Expr::kRegex:
        return builder_.terminal(builder_.pool().regex(e.text));
      case Expr::kRepeat:
        return builder_.repeat(lower(e.children[0]), e.min, e.max);
      default: {
        std::vector<Symbol> children;
        for (const Expr& c : e.children) children.push_back(lower(c));
        return e.kind == Expr::kChoice ? builder_.choice(std::move(children)) : builder_.seq(std::move(children));
      }
    }
  }

  std::string_view text_;
  const Grammar& grammar_;
  Builder builder_;
  std::vector<std::optional<std::string>> patterns_;
  std::vector<Symbol> symbols_;
  std::vector<std::uint32_t> todo_;
};

}  // namespace

std::shared_ptr<const Fragment> compile_ebnf(std::string_view text, TerminalPool& pool, const Limits& limits) {
  Grammar grammar = ebnf::read(text);
  return Lowering(text, grammar, pool, limits).run();
}

}  // namespace ag
