#include "regular/combined.h"

#include <algorithm>

namespace ag::regular {

namespace {

[[noreturn]] void refuse() {
  throw GrammarError("the string's keywords together need too many states", "", "pattern",
                     "Simplify the pattern, or lower its repetition bounds.");
}

}  // namespace

PartTable::PartTable(RegexStore& store, const std::vector<RegexStore::Id>& roots) : store_(store) {
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

void PartTable::allow(std::uint64_t work) {
  store_.allow(work);
  words_left_ = work * 64;
}

void PartTable::spend_words(std::size_t words) {
  if (words > words_left_) refuse();
  words_left_ -= words;
}

CombinedAutomaton::CombinedAutomaton(PartTable& parts, RegexStore::Id root) : parts_(parts), tuples_(0) {
  read(root);
  tuples_ = Tuples<std::uint32_t>(width());
  raw_ = starts_;
  start_ = intern(raw_.data());
}

void CombinedAutomaton::read(RegexStore::Id id) {
  const RegexStore::Join kind = parts_.store().join(id);
  Join out{kind, 0, static_cast<std::uint32_t>(starts_.size()), 0};
  if (kind == RegexStore::Join::kPart) {
    if (starts_.size() == kMaxParts) refuse();
    starts_.push_back(parts_.state(id));
  } else {
    const std::vector<RegexStore::Id> children = parts_.store().joined(id);
    for (const RegexStore::Id child : children) read(child);
    out.children = static_cast<std::uint32_t>(children.size());
  }
  out.last = static_cast<std::uint32_t>(starts_.size());
  joins_.push_back(out);
}

// The value of each join, by part(state) of each part that is not settled. What is settled is neutral to its parent.
template <class Part>
CombinedAutomaton::Value CombinedAutomaton::evaluate(const std::uint32_t* tuple, Part part) {
  values_.clear();
  stack_.clear();
  for (const Join& join : joins_) {
    Value out = Value::kSettled;
    if (join.kind == RegexStore::Join::kPart) {
      if (tuple[join.first] != kSettledPart) out = part(tuple[join.first]);
    } else if (join.kind == RegexStore::Join::kNot) {
      out = stack_.back();
      stack_.pop_back();
      if (out == Value::kNone || out == Value::kAll) out = out == Value::kAll ? Value::kNone : Value::kAll;
    } else {
      const Value strong = join.kind == RegexStore::Join::kAnd ? Value::kNone : Value::kAll;
      for (std::uint32_t i = 0; i < join.children; ++i) {
        const Value child = stack_[stack_.size() - 1 - i];
        if (child == Value::kSettled || out == strong) continue;
        if (child == strong || child == Value::kOpen || out == Value::kSettled) out = child;
      }
      stack_.resize(stack_.size() - join.children);
    }
    values_.push_back(out);
    stack_.push_back(out);
  }
  return stack_.back();
}

CpAutomaton::State CombinedAutomaton::intern(std::uint32_t* tuple) {
  const Value all = evaluate(tuple, [](std::uint32_t state) {
    return state == PartTable::kNothing ? Value::kNone : state == PartTable::kEverything ? Value::kAll : Value::kOpen;
  });
  if (all == Value::kNone) return kDead;
  for (std::size_t i = 0; i < joins_.size(); ++i)
    if (values_[i] == Value::kNone || values_[i] == Value::kAll)
      std::fill(tuple + joins_[i].first, tuple + joins_[i].last, kSettledPart);
  return tuples_.intern(tuple).first;
}

bool CombinedAutomaton::accepting(State state) {
  const Value out = evaluate(tuples_[state], [&](std::uint32_t part) {
    return parts_.accepting(part) ? Value::kAll : Value::kNone;
  });
  return out != Value::kNone;
}

const CpAutomaton::Pieces& CombinedAutomaton::row(State state) {
  const std::size_t n = parts_.classes(), w = width();
  parts_.spend_words(n * w);
  columns_.assign(n * w, kSettledPart);  // by class: the tuple that follows
  for (std::size_t i = 0; i < w; ++i) {
    const std::uint32_t part = tuples_[state][i];
    if (part == kSettledPart) continue;
    const std::uint32_t* row = parts_.row(part);
    for (std::size_t c = 0; c < n; ++c) columns_[c * w + i] = row[c];
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
  return row_;
}

}  // namespace ag::regular
