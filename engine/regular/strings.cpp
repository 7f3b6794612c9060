#include "regular/strings.h"

#include <algorithm>
#include <unordered_set>

#include "regular/combined.h"
#include "regular/effort.h"
#include "regular/explored.h"
#include "regular/formats.h"
#include "regular/regex_reader.h"

namespace ag::regular {

namespace {

using Id = RegexStore::Id;

constexpr std::uint64_t kMaxWork = 500'000;
constexpr std::uint64_t kMaxCounted = 1'000'000;  // characters; a minimum above this with a pattern is refused

bool plain(const StringLanguage& s) {
  return s.patterns.empty() && s.not_patterns.empty() && s.formats.empty() && s.not_formats.empty() &&
         s.excluded.empty();
}
bool bounded(const StringLanguage& s) { return s.min_length > 0 || s.max_length != kNoMax; }

Id texts(RegexStore& store, const std::vector<std::string>& values) {
  std::vector<Id> ids;
  for (const std::string& value : values) ids.push_back(store.text(value));
  return store.alt(std::move(ids));
}

// All but the bounds on the length, which formats may narrow.
Id language(RegexStore& store, const StringLanguage& s, std::uint64_t* max_length) {
  std::vector<Id> parts;
  for (const std::string& p : s.patterns) parts.push_back(read_regex(store, p, Match::kSearch));
  for (const std::string& p : s.not_patterns) parts.push_back(store.negate(read_regex(store, p, Match::kSearch)));
  for (const std::string& f : s.formats) parts.push_back(format_language(store, f, max_length));
  for (const std::string& f : s.not_formats) {
    std::uint64_t longest = kNoMax;
    const Id id = format_language(store, f, &longest);
    parts.push_back(store.negate(longest == kNoMax ? id : store.both({id, store.length(0, longest)})));
  }
  if (!s.excluded.empty()) parts.push_back(store.negate(texts(store, s.excluded)));
  return store.both(std::move(parts));
}

// "the pattern '...'", for messages about what cannot be explored.
std::string named(const StringLanguage& s) {
  if (!s.patterns.empty()) return "the pattern '" + s.patterns.front() + "'";
  if (!s.not_patterns.empty()) return "the negated pattern '" + s.not_patterns.front() + "'";
  if (!s.formats.empty()) return "the format '" + s.formats.front() + "'";
  if (!s.not_formats.empty()) return "the opposite of the format '" + s.not_formats.front() + "'";
  return "the set of excluded strings";
}

std::unique_ptr<ExploredDfa> explored(PartTable& parts, const std::vector<Id>& languages, const StringLanguage& s,
                                      std::size_t max_states = kMaxStates) {
  const PartTable::Allowance allowance(parts, kMaxWork);
  try {
    CombinedAutomaton lazy(parts, languages);
    return ExploredDfa::explore(lazy, max_states);
  } catch (GrammarError& error) {
    error.message = named(s) + ", with the other keywords, needs too many states";
    throw;
  }
}

}  // namespace

StringPlan plan_string(const StringLanguage& s, std::size_t max_states) {
  if (s.min_length > s.max_length) return {};
  if (plain(s)) return {std::make_unique<AnyString>(), bounded(s)};
  RegexStore store;
  std::uint64_t max = s.max_length;
  const Id root = language(store, s, &max);
  if (root == RegexStore::kEmpty || s.min_length > max) return {};
  if (!store.boolean(root) && max == kNoMax && s.min_length <= 1) {
    const Id all = s.min_length == 1 ? store.nonempty(root) : root;
    if (all == RegexStore::kEmpty) return {};
    return {std::make_unique<DerivativeAutomaton>(std::move(store), all), false};
  }
  PartTable parts(store, {root});
  std::unique_ptr<ExploredDfa> dfa = explored(parts, {root}, s, max_states);
  if (s.min_length == 0 && max == kNoMax) return {std::move(dfa), false};
  if (!dfa) return {};
  if (max == s.max_length && dfa->free_length(true)) {
    if (max == 0 && !dfa->accepting(dfa->start())) return {};
    return {std::move(dfa), true};
  }
  if (s.min_length > kMaxCounted)
    throw GrammarError("a minimum length above 1,000,000 beside " + named(s), "", "minLength", "Lower it.");
  auto out = std::make_unique<BoundedDfa>(std::move(dfa), s.min_length, max);
  if (out->start() == CpAutomaton::kDead) return {};
  return {std::move(out), false};
}

CpAutomatonPtr plan_keys(const std::vector<std::string>& names, const std::vector<std::string>& forbidden,
                         const std::vector<StringLanguage>& classes, std::vector<std::uint32_t> barred) {
  if (classes.empty()) return ExploredDfa::nothing();
  if (plain(classes[0]) && !bounded(classes[0]) && barred.empty()) return std::make_unique<AnyString>();
  RegexStore store;
  std::vector<Id> languages;
  for (const StringLanguage& one : classes) {
    std::uint64_t max = one.max_length;
    const Id own = language(store, one, &max);
    const bool none = one.min_length > max;
    languages.push_back(none ? RegexStore::kEmpty : store.both({own, store.length(one.min_length, max)}));
  }
  PartTable parts(store, languages);
  std::unique_ptr<ExploredDfa> dfa = explored(parts, languages, classes[0]);
  if (dfa) dfa->drop(barred);
  if (dfa && !(names.empty() && forbidden.empty()) && !dfa->endless()) {
    // Finitely many keys may be left somewhere: whether one is, depends on the names then. Labels begin after theirs.
    languages.insert(languages.begin(), store.alt({texts(store, names), texts(store, forbidden)}));
    PartTable with_names(store, languages);
    dfa = explored(with_names, languages, classes[0]);
    for (std::uint32_t& label : barred) ++label;
    barred.push_back(0);
    if (dfa) dfa->drop(barred);
    if (dfa) dfa->shift_labels();
  }
  return dfa ? std::move(dfa) : ExploredDfa::nothing();
}

CpAutomatonPtr whole_pattern(std::string_view pattern) {
  RegexStore store;
  const Id root = read_regex(store, pattern, Match::kWhole);
  if (root == RegexStore::kEmpty) return nullptr;
  return std::make_unique<DerivativeAutomaton>(std::move(store), root);
}

}  // namespace ag::regular

namespace ag {

// One automaton for each keyword: a single text needs no intersection.
struct StringTest::Impl {
  struct Part {
    regular::DerivativeAutomaton automaton;
    std::uint64_t max_length = kNoMax;
    bool wanted = true;
  };
  std::vector<Part> parts;
  std::uint64_t min_length, max_length;
  std::vector<std::string> excluded;

  template <class Read>
  void add(bool wanted, Read read) {
    regular::RegexStore store;
    std::uint64_t max = kNoMax;
    const regular::RegexStore::Id root = read(store, &max);
    parts.push_back({regular::DerivativeAutomaton(std::move(store), root), max, wanted});
  }
};

StringTest::StringTest(const StringLanguage& s)
    : impl_(new Impl{.parts = {}, .min_length = s.min_length, .max_length = s.max_length, .excluded = s.excluded}) {
  const auto pattern = [&](const std::string& text, bool wanted) {
    impl_->add(wanted, [&](regular::RegexStore& store, std::uint64_t*) {
      return regular::read_regex(store, text, regular::Match::kSearch);
    });
  };
  const auto format = [&](const std::string& name, bool wanted) {
    impl_->add(wanted, [&](regular::RegexStore& store, std::uint64_t* max) {
      return regular::format_language(store, name, max);
    });
  };
  for (const std::string& p : s.patterns) pattern(p, true);
  for (const std::string& p : s.not_patterns) pattern(p, false);
  for (const std::string& f : s.formats) format(f, true);
  for (const std::string& f : s.not_formats) format(f, false);
}

StringTest::~StringTest() = default;
StringTest::StringTest(StringTest&&) noexcept = default;

bool StringTest::operator()(std::string_view value) {
  std::vector<regular::Cp> text;
  regular::Cp cp = 0;
  for (std::size_t at = 0; at < value.size(); text.push_back(cp))
    if (!regular::decode_utf8(value, &at, &cp)) return false;
  if (std::find(impl_->excluded.begin(), impl_->excluded.end(), value) != impl_->excluded.end()) return false;
  if (text.size() < impl_->min_length || text.size() > impl_->max_length) return false;
  return std::all_of(impl_->parts.begin(), impl_->parts.end(), [&](Impl::Part& part) {
    regular::CpAutomaton::State state = part.automaton.start();
    for (std::size_t i = 0; i < text.size() && state != regular::CpAutomaton::kDead; ++i)
      state = part.automaton.step(state, text[i]);
    const bool found = text.size() <= part.max_length && part.automaton.accepting(state);
    return found == part.wanted;
  });
}

bool contains(const StringLanguage& s, std::string_view value) { return StringTest(s)(value); }

std::optional<std::vector<std::string>> finite_values(const StringLanguage& s, std::size_t limit) {
  using namespace regular;
  constexpr std::uint64_t kMaxLength = 10'000;
  constexpr std::size_t kFewStates = 2'000;
  std::vector<std::string> out;
  const StringPlan plan = plan_string(s, kFewStates);
  if (!plan.automaton) return out;
  const std::uint64_t min = plan.counted ? s.min_length : 0, max = plan.counted ? s.max_length : kNoMax;
  // Level by level. Each prefix leads to a string of its own, so more prefixes than `limit` settle the question.
  std::vector<std::pair<CpAutomaton::State, std::string>> level{{plan.automaton->start(), ""}};
  for (std::uint64_t length = 0; !level.empty(); ++length) {
    if (length > kMaxLength) return std::nullopt;
    std::vector<std::pair<CpAutomaton::State, std::string>> next;
    for (const auto& [state, text] : level) {
      if (length >= min && plan.automaton->accepting(state)) out.push_back(text);
      if (out.size() > limit) return std::nullopt;
      if (length == max) continue;
      for (const CpAutomaton::Piece& piece : plan.automaton->row(state)) {
        if (piece.hi - piece.lo >= limit) return std::nullopt;
        for (Cp cp = piece.lo; cp <= piece.hi; ++cp) append_utf8(&next.emplace_back(piece.to, text).second, cp);
      }
      if (next.size() > limit) return std::nullopt;
    }
    level = std::move(next);
  }
  return out;
}

namespace {

// Whether an expression has no string; nothing when that does not show soon.
std::optional<bool> emptiness(regular::PartTable& parts, regular::RegexStore::Id root) {
  using namespace regular;
  constexpr std::size_t kFewStates = 2'000;
  constexpr std::uint64_t kFewSteps = 200'000;
  if (root == RegexStore::kEmpty) return true;
  const PartTable::Allowance allowance(parts, kFewSteps);
  try {
    CombinedAutomaton automaton(parts, {root});
    std::vector<CpAutomaton::State> found{automaton.start()};
    if (found[0] == CpAutomaton::kDead) return true;
    std::unordered_set<CpAutomaton::State> seen(found.begin(), found.end());
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (automaton.accepting(found[i])) return false;
      if (found.size() > kFewStates) return std::nullopt;
      for (const CpAutomaton::Piece& piece : automaton.row(found[i]))
        if (seen.insert(piece.to).second) found.push_back(piece.to);
    }
  } catch (const GrammarError&) {  // out of steps
    return std::nullopt;
  }
  return true;
}

}  // namespace

std::optional<bool> is_empty(const StringLanguage& s) {
  using namespace regular;
  if (s.min_length > s.max_length) return true;
  if (Effort::left() == 0) return std::nullopt;
  RegexStore store;
  std::uint64_t max = s.max_length;
  const Id strings = language(store, s, &max);
  if (s.min_length > max) return true;
  const bool bounded = s.min_length > 0 || max != kNoMax;
  const Id root = bounded ? store.both({strings, store.length(s.min_length, max)}) : strings;
  PartTable parts(store, {root});
  // Counting characters multiplies the states, and what is empty mostly is so for any length.
  const std::optional<bool> without = emptiness(parts, strings);
  return bounded && without != true ? emptiness(parts, root) : without;
}

}  // namespace ag
