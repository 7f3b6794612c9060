// The pool: canonical keys, interning, and what each factory is made of.

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "regular/coded.h"
#include "regular/effort.h"
#include "regular/name_set.h"
#include "regular/names.h"
#include "regular/number.h"
#include "regular/numbers.h"
#include "regular/simple.h"
#include "regular/strings.h"
#include "regular/terminals.h"
#include "regular/text.h"

namespace ag {

using namespace regular;

namespace {

// Length-prefixed fields, so that distinct definitions have distinct keys.
class Key {
 public:
  explicit Key(char kind) : text_(1, kind) {}
  Key& add(std::string_view field) {
    number(field.size());
    text_ += field;
    return *this;
  }
  Key& add(const std::vector<std::string>& fields) {
    number(fields.size());
    for (const std::string& field : fields) add(field);
    return *this;
  }
  Key& number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_.push_back(static_cast<char>(value | 0x80));
    text_.push_back(static_cast<char>(value));
    return *this;
  }
  Key& add(const StringLanguage& s) {
    return add(s.patterns)
        .add(s.not_patterns)
        .add(s.formats)
        .add(s.not_formats)
        .number(s.min_length)
        .number(s.max_length)
        .add(s.excluded);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void canonical(std::vector<std::string>* list) {
  std::sort(list->begin(), list->end());
  list->erase(std::unique(list->begin(), list->end()), list->end());
}

StringLanguage canonical(StringLanguage s) {
  for (std::vector<std::string>* list : {&s.patterns, &s.not_patterns, &s.formats, &s.not_formats, &s.excluded})
    canonical(list);
  return s;
}

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  std::size_t operator()(const std::shared_ptr<Literal>& l) const { return (*this)(l->text()); }
};
struct TextEqual {
  using is_transparent = void;
  static std::string_view text(std::string_view t) { return t; }
  static std::string_view text(const std::shared_ptr<Literal>& l) { return l->text(); }
  template <class A, class B>
  bool operator()(const A& a, const B& b) const {
    return text(a) == text(b);
  }
};

}  // namespace

struct TerminalPool::Impl {
  mutable std::mutex mutex;
  std::unordered_set<std::shared_ptr<Literal>, TextHash, TextEqual> literals;
  struct Kept {
    TerminalPtr terminal;      // null: known to be empty
    std::uint64_t effort = 0;  // that making it took
  };
  std::unordered_map<std::string, Kept> others;

  // What `make` gives for this key; made outside the lock, and once kept for all who ask. It costs all the same.
  template <class F>
  TerminalPtr intern(const Key& key, F make) {
    {
      const std::lock_guard lock(mutex);
      const auto it = others.find(key.text());
      if (it != others.end()) {
        if (!Effort::spend(it->second.effort))
          throw GrammarError("its patterns together need too many states", "", "", "Simplify them.");
        return it->second.terminal;
      }
    }
    const std::uint64_t before = Effort::left();
    TerminalPtr made = make();
    const std::lock_guard lock(mutex);
    return others.try_emplace(key.text(), Kept{std::move(made), before - Effort::left()}).first->second.terminal;
  }
};

TerminalPool::TerminalPool() : impl_(std::make_unique<Impl>()) {}
TerminalPool::~TerminalPool() = default;

TerminalPtr TerminalPool::literal(std::string_view bytes) {
  const std::lock_guard lock(impl_->mutex);
  const auto it = impl_->literals.find(bytes);
  if (it != impl_->literals.end()) return *it;
  return *impl_->literals.insert(std::make_shared<Literal>(bytes)).first;
}

TerminalPtr TerminalPool::punctuation(char text, bool before, bool after, Whitespace whitespace) {
  const Key key = Key('P')
                      .number(static_cast<std::uint8_t>(text))
                      .number(before)
                      .number(after)
                      .number(static_cast<std::uint64_t>(whitespace));
  return impl_->intern(key, [&] { return std::make_shared<Punctuation>(text, before, after, whitespace); });
}

TerminalPtr TerminalPool::regex(std::string_view pattern) {
  return impl_->intern(Key('R').add(pattern), [&]() -> TerminalPtr {
    CpAutomatonPtr automaton = whole_pattern(pattern);
    if (!automaton) return nullptr;
    return std::make_shared<CodedTerminal>(std::move(automaton), CodedTerminal::Options{.quoted = false});
  });
}

TerminalPtr TerminalPool::json_string(const StringLanguage& given) {
  const StringLanguage s = canonical(given);
  return impl_->intern(Key('S').add(s), [&]() -> TerminalPtr {
    StringPlan plan = plan_string(s);
    if (!plan.automaton) return nullptr;
    if (!plan.counted) return std::make_shared<CodedTerminal>(std::move(plan.automaton), CodedTerminal::Options{});
    // All bounds share the states, and so the masks, of one terminal.
    StringLanguage unbounded = s;
    unbounded.min_length = 0;
    unbounded.max_length = kNoMax;
    auto core = std::static_pointer_cast<CodedTerminal>(impl_->intern(Key('C').add(unbounded), [&]() -> TerminalPtr {
      return std::make_shared<CodedTerminal>(std::move(plan.automaton), CodedTerminal::Options{.counted = true});
    }));
    return std::make_shared<CountedTerminal>(std::move(core), s.min_length, s.max_length);
  });
}

TerminalPtr TerminalPool::json_strings(const std::vector<std::string>& values) {
  std::vector<std::string> sorted = values;
  canonical(&sorted);
  if (sorted.empty()) return nullptr;
  return impl_->intern(Key('E').add(sorted), [&] {
    for (const std::string& value : sorted) require_utf8(value, "a string value");
    // A constant's masks are a search of a few steps: made anew, they cost no memory, whatever the number of users who
    // bring one of their own.
    constexpr std::size_t kShort = 256;
    const bool constant = sorted.size() == 1 && sorted[0].size() <= kShort;
    return std::make_shared<NameSet>(std::move(sorted),
                                     NameSet::Options{.quoted = true, .labelled = false, .transient = constant});
  });
}

TerminalPtr TerminalPool::json_number(const NumberLanguage& given) {
  NumberLanguage n = given;
  canonical(&n.multiple_of);
  canonical(&n.not_multiple_of);
  canonical(&n.excluded);
  const Key key = Key('N')
                      .number(n.integer)
                      .add(n.minimum)
                      .add(n.exclusive_minimum)
                      .add(n.maximum)
                      .add(n.exclusive_maximum)
                      .add(n.multiple_of)
                      .add(n.not_multiple_of)
                      .add(n.excluded);
  return impl_->intern(key, [&]() -> TerminalPtr {
    std::vector<NumberPartPtr> parts = number_parts(n);
    if (parts.empty()) return nullptr;
    return std::make_shared<NumberTerminal>(std::move(parts));
  });
}

TerminalPtr TerminalPool::json_key(const KeyLanguage& given) {
  std::vector<std::string> forbidden = given.forbidden;
  canonical(&forbidden);
  Key key = Key('K').add(given.names).add(forbidden).number(given.classes.size());
  std::vector<StringLanguage> classes;
  for (const StringLanguage& c : given.classes) key.add(classes.emplace_back(canonical(c)));
  for (const std::uint32_t barred : given.barred) key.number(barred);
  return impl_->intern(key, [&]() -> TerminalPtr {
    for (std::size_t i = 0; i < given.names.size(); ++i) {
      require_utf8(given.names[i], "a member's name");
      if (i > 0 && !(given.names[i - 1] < given.names[i]))
        throw ValueError("the names of a key terminal must be distinct and sorted by bytes");
    }
    for (const std::string& name : forbidden) require_utf8(name, "a forbidden name");
    if (classes.empty()) {
      if (given.names.empty()) return nullptr;
      return std::make_shared<NameSet>(given.names, NameSet::Options{.quoted = true});
    }
    CpAutomatonPtr others = plan_keys(given.names, forbidden, classes, given.barred);
    auto automaton = std::make_unique<NameAutomaton>(given.names, forbidden, std::move(others));
    if (automaton->start() == CpAutomaton::kDead) return nullptr;
    return std::make_shared<CodedTerminal>(
        std::move(automaton),
        CodedTerminal::Options{.labelled = true, .others_begin = static_cast<std::uint32_t>(given.names.size())});
  });
}

TerminalPtr TerminalPool::fanout(std::vector<std::string_view> texts, std::vector<NameTokens*> tokens) {
  if (texts.empty()) return nullptr;
  return std::make_shared<NameSet>(std::move(texts), std::move(tokens), NameSet::Options{.transient = true});
}

TerminalPtr TerminalPool::spellings(std::vector<std::string> texts) {
  if (texts.empty()) return nullptr;
  return impl_->intern(Key('F').add(texts),
                       [&] { return std::make_shared<NameSet>(std::move(texts), NameSet::Options{}); });
}

TerminalPtr TerminalPool::text(const TextLanguage& language) {
  std::vector<std::string> excludes = language.excludes;
  canonical(&excludes);
  const Key key = Key('T').add(language.patterns).add(excludes).number(language.longest);
  return impl_->intern(key, [&] { return std::make_shared<TextTerminal>(language); });
}

TerminalPool::Stats TerminalPool::stats() const {
  const std::lock_guard lock(impl_->mutex);
  Stats out;
  for (const auto& literal : impl_->literals) out.bytes += literal->bytes() + 48;
  for (const auto& [key, kept] : impl_->others)
    out.bytes += key.size() + 104 + (kept.terminal ? kept.terminal->bytes() : 0);
  out.terminals = impl_->literals.size() + impl_->others.size();
  return out;
}

void TerminalPool::clear() {
  const std::lock_guard lock(impl_->mutex);
  std::erase_if(impl_->literals, [](const auto& literal) { return literal.use_count() == 1; });
  // Twice: a terminal may be all that holds another.
  for (int pass = 0; pass < 2; ++pass)
    std::erase_if(impl_->others, [](const auto& entry) { return entry.second.terminal.use_count() <= 1; });
}

}  // namespace ag
