#include "grammar/rules.h"

#include <algorithm>

#include "grammar/parts.h"
#include "grammar/shared_rules.h"

namespace ag {

bool equal(const Blob* a, const Blob* b) {
  if (a->words != b->words || !std::equal(a->bits, a->bits + a->words, b->bits)) return false;
  const SeenKey *x = a->keys, *y = b->keys;
  for (; x != y; x = x->previous, y = y->previous) {
    if (!x || !y || x->hash != y->hash || std::string_view(x->text, x->size) != std::string_view(y->text, y->size)) {
      return false;
    }
  }
  return true;
}

void Ending::append(Symbol symbol) {
  if (symbol.terminal) {
    append(symbol.terminal->shortest(Terminal::kStart, 0));
  } else if (symbol.rule) {
    symbol.rule->write_min(0, {}, *this);
  }
}

Fragment::~Fragment() = default;

std::size_t Fragment::bytes() const {
  std::size_t total = sizeof *this + (shared.size() + rules.size()) * sizeof(void*) +
                      terminals.size() * sizeof(TerminalPtr) +
                      embedded.size() * sizeof(std::shared_ptr<const Fragment>);
  for (const auto& r : rules) total += r->bytes();
  return total;
}

// --- SeqRule

bool SeqRule::parts(Parts& out) const {
  out.number(Parts::kSeq).number(children_.size());
  for (const Symbol& s : children_) out.symbol(s);
  return true;
}

void SeqRule::expand(std::uint32_t state, const Payload& payload, Edges& out) const {
  if (state == children_.size()) {
    add_done(out);
  } else {
    add_edge(out, children_[state], state + 1, payload);
  }
}

std::uint64_t SeqRule::min_cost(std::uint32_t state, const Payload&) const {
  std::uint64_t total = 0;
  for (std::size_t i = state; i < children_.size(); ++i) total = add_cost(total, min_of(children_[i]));
  return total;
}

void SeqRule::write_min(std::uint32_t state, const Payload&, Ending& out) const {
  for (std::size_t i = state; i < children_.size(); ++i) out.append(children_[i]);
}

bool SeqRule::compute_nullable() const {
  return std::all_of(children_.begin(), children_.end(), [](Symbol s) { return is_nullable(s); });
}

// --- ChoiceRule

bool ChoiceRule::parts(Parts& out) const {
  out.number(Parts::kChoice).number(options_.size());
  for (const Symbol& s : options_) out.symbol(s);
  return true;
}

void ChoiceRule::expand(std::uint32_t state, const Payload& payload, Edges& out) const {
  if (state == 1) {
    add_done(out);
  } else {
    for (Symbol s : options_) add_edge(out, s, 1, payload);
  }
}

std::uint64_t ChoiceRule::min_cost(std::uint32_t state, const Payload&) const {
  if (state == 1) return 0;
  std::uint64_t least = kInfinite;
  for (Symbol s : options_) least = std::min(least, min_of(s));
  return least;
}

void ChoiceRule::write_min(std::uint32_t state, const Payload&, Ending& out) const {
  if (state == 1) return;
  out.append(*std::min_element(options_.begin(), options_.end(), [](Symbol a, Symbol b) {
    return min_of(a) != min_of(b) ? min_of(a) < min_of(b) : found_at(a) < found_at(b);
  }));
}

bool ChoiceRule::compute_nullable() const {
  return std::any_of(options_.begin(), options_.end(), [](Symbol s) { return is_nullable(s); });
}

// --- RefRule

void RefRule::expand(std::uint32_t state, const Payload& payload, Edges& out) const {
  if (state == 1) {
    add_done(out);
  } else {
    add_edge(out, body, 1, payload);
  }
}

std::uint64_t RefRule::min_cost(std::uint32_t state, const Payload&) const { return state == 1 ? 0 : min_of(body); }

void RefRule::write_min(std::uint32_t state, const Payload&, Ending& out) const {
  if (state == 0) out.append(body);
}

// --- TokenRule

TokenRule::TokenRule(std::vector<std::uint32_t> ids) : ids_(std::move(ids)) {
  std::sort(ids_.begin(), ids_.end());
  ids_.erase(std::unique(ids_.begin(), ids_.end()), ids_.end());
}

bool TokenRule::parts(Parts& out) const {
  out.number(Parts::kToken).number(ids_.size());
  for (const std::uint32_t id : ids_) out.number(id);
  return true;
}

void TokenRule::expand(std::uint32_t state, const Payload& payload, Edges& out) const {
  if (state == 1) {
    add_done(out);
  } else {
    out.push_back({Edge::kToken, false, 1, nullptr, nullptr, &ids_, payload});
  }
}

void TokenRule::write_min(std::uint32_t state, const Payload&, Ending& out) const {
  if (state == 0) out.units.push_back({ids_.front(), true});
}

// --- RepeatRule

bool RepeatRule::parts(Parts& out) const {
  out.number(Parts::kRepeat).number(min_).number(max_).symbol(item_).symbol(separator_);
  return true;
}

void RepeatRule::expand(std::uint32_t state, const Payload& payload, Edges& out) const {
  std::uint64_t n = payload.word;
  if (state == 1) {
    add_edge(out, item_, 0, count(n + 1));
    return;
  }
  if (n >= min_ || (!separator_ && is_nullable(item_))) add_done(out);
  if (n < max_) {
    if (n == 0 || !separator_) {
      // Without a separator an empty item is the same as no item: skipping it keeps the count from running on.
      add_edge(out, item_, 0, count(n + 1), !separator_);
    } else {
      add_edge(out, separator_, 1, payload);
    }
  }
}

std::uint64_t RepeatRule::min_cost(std::uint32_t state, const Payload& payload) const {
  std::uint64_t left = min_ > payload.word ? min_ - payload.word : 0;
  if (state == 1 && left == 0) left = 1;
  if (left == 0) return 0;
  std::uint64_t separators = separator_ ? left - (payload.word == 0 || state == 1 ? 1 : 0) : 0;
  return add_cost(mul_cost(min_of(item_), left), separators ? mul_cost(min_of(separator_), separators) : 0);
}

void RepeatRule::write_min(std::uint32_t state, const Payload& payload, Ending& out) const {
  std::uint64_t n = payload.word;
  bool after_separator = state == 1;
  while (n < min_ || after_separator) {
    if (separator_ && n > 0 && !after_separator) out.append(separator_);
    out.append(item_);
    after_separator = false;
    ++n;
  }
}

// --- ArrayRule

ArrayRule::ArrayRule(ArraySpec spec, TerminalPool& pool) : spec_(std::move(spec)), max_(spec_.max_items) {
  open_ = pool.punctuation('[', false, true, spec_.whitespace);
  close_first_ = pool.punctuation(']', false, false, spec_.whitespace);
  close_ = pool.punctuation(']', true, false, spec_.whitespace);
  comma_ = pool.punctuation(',', true, true, spec_.whitespace);
}

void ArrayRule::describe(const ArraySpec& spec, Parts& out) {
  out.number(Parts::kArray).number(static_cast<std::uint64_t>(spec.whitespace));
  out.number(spec.min_items).number(spec.max_items).number(spec.prefix.size());
  for (const Symbol& s : spec.prefix) out.symbol(s);
  out.symbol(spec.item);
}

bool ArrayRule::parts(Parts& out) const {
  describe(spec_, out);
  return true;
}

void ArrayRule::settle() {
  // An item that can never be ends the array before it.
  max_ = spec_.max_items;
  for (std::uint64_t i = 0; i < spec_.prefix.size() && i < max_; ++i) {
    if (!is_productive(spec_.prefix[i])) max_ = i;
  }
  if (!is_productive(spec_.item) && max_ > spec_.prefix.size()) max_ = spec_.prefix.size();
}

Payload ArrayRule::count(std::uint64_t n) const {
  if (max_ != kNoMax) return {n};
  return {std::min(n, std::max<std::uint64_t>(spec_.min_items, spec_.prefix.size()) + 1)};
}

void ArrayRule::expand(std::uint32_t state, const Payload& payload, Edges& out) const {
  std::uint64_t n = payload.word;
  switch (state) {
    case 0:
      add_edge(out, {open_.get()}, 1, {0});
      break;
    case 1:
      if (spec_.min_items == 0) add_edge(out, {close_first_.get()}, 4, payload);
      if (has_item(0)) add_edge(out, item(0), 2, count(1));
      break;
    case 2:
      if (n >= spec_.min_items) add_edge(out, {close_.get()}, 4, payload);
      if (has_item(n)) add_edge(out, {comma_.get()}, 3, payload);
      break;
    case 3:
      add_edge(out, item(n), 2, count(n + 1));
      break;
    default:
      add_done(out);
  }
}

// From `from` items to the least number: items and the commas before them.
std::uint64_t ArrayRule::items_cost(std::uint64_t from) const {
  if (spec_.min_items > max_) return kInfinite;
  std::uint64_t total = 0;
  std::uint64_t n = from;
  for (; n < spec_.min_items && n < spec_.prefix.size(); ++n) total = add_cost(total, min_of(item(n)));
  if (n < spec_.min_items) total = add_cost(total, mul_cost(min_of(spec_.item), spec_.min_items - n));
  if (spec_.min_items > from) {
    std::uint64_t commas = spec_.min_items - from - (from == 0 ? 1 : 0);
    total = add_cost(total, mul_cost(comma_->min_rest(Terminal::kStart, 0), commas));
  }
  return total;
}

std::uint64_t ArrayRule::min_cost(std::uint32_t state, const Payload& payload) const {
  std::uint64_t n = payload.word;
  switch (state) {
    case 0:
      return add_cost(2, items_cost(0));
    case 1:
    case 2:
      return add_cost(1, items_cost(n));
    case 3: {
      std::uint64_t rest = n + 1 < spec_.min_items ? items_cost(n + 1) : 0;
      return add_cost(add_cost(min_of(item(n)), rest), 1);
    }
    default:
      return 0;
  }
}

void ArrayRule::write_min(std::uint32_t state, const Payload& payload, Ending& out) const {
  std::uint64_t n = payload.word;
  if (state == 4) return;
  if (state == 0) out.append({open_.get()});
  if (state == 3) out.append(item(n++));
  while (n < spec_.min_items) {
    if (n > 0) out.append({comma_.get()});
    out.append(item(n++));
  }
  out.append({close_first_.get()});
}

}  // namespace ag
