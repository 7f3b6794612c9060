#include "regular/combined.h"

#include <algorithm>

#include "regular/effort.h"

namespace ag::regular {

namespace {

[[noreturn]] void refuse() {
  throw GrammarError("the string's keywords together need too many states", "", "pattern",
                     "Simplify the pattern, or lower its repetition bounds.");
}

}  // namespace

PartTable::PartTable(RegexStore& store, const std::vector<RegexStore::Id>& roots) : store_(store) {
  Effort::spend(store.size());  // reading them
  std::unordered_map<std::string, std::uint32_t> known;
  store.each_class(store.sets_below(roots), [&](Cp lo, Cp hi, const std::string& signature) {
    const auto [it, fresh] = known.try_emplace(signature, static_cast<std::uint32_t>(samples_.size()));
    if (fresh) samples_.push_back(lo);
    spans_.push_back({lo, hi, it->second});
  });
  state(RegexStore::kEmpty);
  state(RegexStore::kAll);
}

std::uint32_t PartTable::state(RegexStore::Id id) {
  const auto [it, fresh] = index_.try_emplace(id, static_cast<std::uint32_t>(ids_.size()));
  if (fresh) {
    ids_.push_back(id);
    rows_.resize(ids_.size() * classes(), kUnknown);
  }
  return it->second;
}

const std::uint32_t* PartTable::row(std::uint32_t state) {
  const std::size_t n = classes(), at = state * n;
  if (rows_[at] == kUnknown) {
    CpAutomaton::Pieces pieces;
    store_.derive(ids_[state], &pieces);
    std::vector<std::uint32_t> out(n, kNothing);
    for (std::size_t c = 0; c < n; ++c) {
      const auto it = std::upper_bound(pieces.begin(), pieces.end(), samples_[c],
                                       [](Cp cp, const CpAutomaton::Piece& p) { return cp < p.lo; });
      if (it != pieces.begin() && samples_[c] <= std::prev(it)->hi) out[c] = this->state(std::prev(it)->to);
    }
    std::copy(out.begin(), out.end(), rows_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return rows_.data() + at;
}

namespace {
constexpr std::uint64_t kWordsPerStep = 16;
}

PartTable::Allowance::Allowance(PartTable& parts, std::uint64_t steps)
    : parts_(parts), steps_(std::min(steps, Effort::left())) {
  parts.store_.allow(steps_);
  parts.words_left_ = steps_ * kWordsPerStep;
}

PartTable::Allowance::~Allowance() {
  Effort::spend(steps_ - parts_.store_.allowed() + steps_ - parts_.words_left_ / kWordsPerStep);
}

void PartTable::spend_words(std::size_t words) {
  if (words > words_left_) refuse();
  words_left_ -= words;
}

CombinedAutomaton::CombinedAutomaton(PartTable& parts, const std::vector<RegexStore::Id>& languages)
    : parts_(parts), tuples_(0) {
  std::unordered_map<RegexStore::Id, std::uint32_t> known;
  for (const RegexStore::Id id : languages) languages_.push_back(read(id, &known));
  const std::size_t width = starts_.size() + (others_ + kPerWord - 1) / kPerWord;
  tuples_ = Tuples<std::uint32_t>(width);
  values_.resize(joins_.size());
  needed_.resize(joins_.size());
  raw_ = starts_;
  raw_.resize(width, 0);  // all are open
  start_ = intern(raw_.data());
}

std::uint32_t CombinedAutomaton::read(RegexStore::Id id, std::unordered_map<RegexStore::Id, std::uint32_t>* known) {
  if (const auto it = known->find(id); it != known->end()) return it->second;
  Join out{.kind = parts_.store().join(id)};
  if (out.kind == RegexStore::Join::kPart) {
    out.at = static_cast<std::uint32_t>(starts_.size());
    starts_.push_back(parts_.state(id));
  } else {
    std::vector<std::uint32_t> children;
    for (const RegexStore::Id child : parts_.store().joined(id)) children.push_back(read(child, known));
    out.at = static_cast<std::uint32_t>(others_++);
    out.first = static_cast<std::uint32_t>(children_.size());
    children_.insert(children_.end(), children.begin(), children.end());
    out.last = static_cast<std::uint32_t>(children_.size());
  }
  if (joins_.size() == kMaxJoins) refuse();
  joins_.push_back(out);
  return (*known)[id] = static_cast<std::uint32_t>(joins_.size() - 1);
}

CombinedAutomaton::Value CombinedAutomaton::join_of(const Join& join) const {
  if (join.kind == RegexStore::Join::kNot) {
    const Value of = values_[children_[join.first]];
    return of == Value::kNone ? Value::kAll : of == Value::kAll ? Value::kNone : of;
  }
  const Value strong = join.kind == RegexStore::Join::kAnd ? Value::kNone : Value::kAll;
  Value out = strong == Value::kNone ? Value::kAll : Value::kNone;
  for (std::uint32_t i = join.first; i < join.last; ++i) {
    const Value child = values_[children_[i]];
    if (child == strong) return strong;
    if (child == Value::kOpen) out = child;
  }
  return out;
}

// The value of each join, by part(state) of each part that is not settled.
template <class Part>
void CombinedAutomaton::evaluate(const std::uint32_t* tuple, Part part) {
  const std::uint32_t* decided = tuple + starts_.size();
  for (std::size_t i = 0; i < joins_.size(); ++i) {
    const Join& join = joins_[i];
    if (join.kind == RegexStore::Join::kPart) {
      const std::uint32_t state = tuple[join.at];
      values_[i] = state == kSettledPart ? Value::kSettled : part(state);
      continue;
    }
    values_[i] = static_cast<Value>(decided[join.at / kPerWord] >> 2 * (join.at % kPerWord) & 3);
    if (values_[i] == Value::kOpen) values_[i] = join_of(join);
  }
}

CpAutomaton::State CombinedAutomaton::intern(std::uint32_t* tuple) {
  evaluate(tuple, [](std::uint32_t state) {
    return state == PartTable::kNothing ? Value::kNone : state == PartTable::kEverything ? Value::kAll : Value::kOpen;
  });
  // What the languages' values depend on, from the roots down; those after one that has every string do not matter.
  std::fill(needed_.begin(), needed_.end(), false);
  bool any = false;
  for (const std::uint32_t language : languages_) {
    needed_[language] = true;
    any = any || values_[language] != Value::kNone;
    if (values_[language] == Value::kAll) break;
  }
  if (!any) return kDead;
  std::fill(tuple + starts_.size(), tuple + tuples_.width(), 0);
  for (std::size_t i = joins_.size(); i-- > 0;) {
    const Join& join = joins_[i];
    if (join.kind == RegexStore::Join::kPart) {
      if (!needed_[i]) tuple[join.at] = kSettledPart;
      continue;
    }
    const Value value = needed_[i] ? values_[i] : Value::kSettled;
    tuple[starts_.size() + join.at / kPerWord] |= static_cast<std::uint32_t>(value) << 2 * (join.at % kPerWord);
    if (value == Value::kOpen)
      for (std::uint32_t c = join.first; c < join.last; ++c) needed_[children_[c]] = true;
  }
  return tuples_.intern(tuple).first;
}

std::uint32_t CombinedAutomaton::label(State state) {
  evaluate(tuples_[state], [&](std::uint32_t part) { return parts_.accepting(part) ? Value::kAll : Value::kNone; });
  for (std::uint32_t i = 0; i < languages_.size(); ++i)
    if (values_[languages_[i]] == Value::kAll) return i;
  return kNoLabel;
}

const CpAutomaton::Pieces& CombinedAutomaton::row(State state) {
  const std::size_t n = parts_.classes(), w = tuples_.width(), parts = starts_.size();
  parts_.spend_words(n * (w + joins_.size() / 4));
  columns_.resize(n * w);  // by class: the tuple that follows
  for (std::size_t i = 0; i < w; ++i) {
    const std::uint32_t word = tuples_[state][i];
    const std::uint32_t* row = i < parts && word != kSettledPart ? parts_.row(word) : nullptr;
    for (std::size_t c = 0; c < n; ++c) columns_[c * w + i] = row ? row[c] : word;
  }
  targets_.resize(n);
  for (std::size_t c = 0; c < n; ++c) {
    const std::uint32_t* column = columns_.data() + c * w;
    std::size_t same = 0;
    while (same < c && !std::equal(column, column + w, columns_.data() + same * w)) ++same;
    if (same < c) {
      targets_[c] = targets_[same];
      continue;
    }
    raw_.assign(column, column + w);
    targets_[c] = intern(raw_.data());
  }
  row_.clear();
  for (const PartTable::Span& span : parts_.spans()) append_piece(&row_, span.lo, span.hi, targets_[span.of_class]);
  parts_.spend_words(4 * row_.size());
  return row_;
}

}  // namespace ag::regular
