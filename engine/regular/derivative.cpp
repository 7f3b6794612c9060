#include "regular/derivative.h"

#include <algorithm>

namespace ag::regular {

namespace {

constexpr std::size_t kMaxNodes = 500'000;

std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 32;
}
std::uint64_t sum(std::uint64_t a, std::uint64_t b) { return a == kNoMax || b >= kNoMax - a ? kNoMax : a + b; }
std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  if (a == 0 || b == 0) return 0;
  return a == kNoMax || b == kNoMax || a > (kNoMax - 1) / b ? kNoMax : a * b;
}

}  // namespace

RegexStore::RegexStore() : fuel_(kRowFuel) {
  intern({});
  intern({Kind::kEpsilon, true, false, 0, 0, 0, 0});
  set(CpSet::all());
  repeat(kAny, 0, kNoMax);
}

void RegexStore::refuse() {
  throw GrammarError("the pattern needs too many states", "", "pattern",
                     "Simplify it, or lower its repetition bounds.");
}

void RegexStore::spend(std::size_t work) {
  if (fuel_ < work || total_ < work || nodes_.size() > kMaxNodes) refuse();
  fuel_ -= work;
  if (total_ != kNoMax) total_ -= work;
}

std::size_t RegexStore::bytes() const {
  constexpr std::size_t kIndexed = 48;  // a hash table's node
  return nodes_.size() * (sizeof(Node) + kIndexed + sizeof memo_[0] + 3 * sizeof(std::uint32_t)) +
         clipped_.size() * 2 * sizeof(Id) + children_.size() * sizeof(Id) + set_bytes_;
}

bool RegexStore::same(const Node& a, const Node& b, const std::vector<Id>* children) const {
  if (a.kind != b.kind || a.min != b.min || a.max != b.max || a.b != b.b) return false;
  if (!children) return a.a == b.a;
  return std::equal(children->begin(), children->end(), children_.begin() + a.a);
}

RegexStore::Id RegexStore::intern(Node node, const std::vector<Id>* children) {
  std::uint64_t h = mix(mix(mix(static_cast<std::uint64_t>(node.kind), node.min), node.max), node.b);
  if (children) {
    for (const Id c : *children) h = mix(h, c);
  } else {
    h = mix(h, node.a);
  }
  const auto [from, to] = index_.equal_range(h);
  for (auto it = from; it != to; ++it)
    if (same(nodes_[it->second], node, children)) return it->second;
  spend(1 + (children ? children->size() : 0));
  if (children) {
    node.a = static_cast<std::uint32_t>(children_.size());
    children_.insert(children_.end(), children->begin(), children->end());
  }
  const auto id = static_cast<Id>(nodes_.size());
  nodes_.push_back(node);
  index_.emplace(h, id);
  return id;
}

RegexStore::Id RegexStore::set(const CpSet& members) {
  if (members.empty()) return kEmpty;
  std::uint64_t h = members.ranges().size();
  for (const CpRange r : members.ranges()) h = mix(mix(h, r.lo), r.hi);
  std::uint32_t index = static_cast<std::uint32_t>(sets_.size());
  const auto [from, to] = set_index_.equal_range(h);
  for (auto it = from; it != to; ++it)
    if (sets_[it->second] == members) index = it->second;
  if (index == sets_.size()) {
    spend(members.ranges().size());
    sets_.push_back(members);
    set_bytes_ += sizeof(CpSet) + members.ranges().size() * sizeof(CpRange) + 48;
    set_index_.emplace(h, index);
  }
  return intern({Kind::kSet, false, false, index, 0, 0, 0});
}

RegexStore::Term RegexStore::term(Id a) const {
  const Id h = head(a), t = tail(a);
  const Node& node = nodes_[h];
  if (node.kind == Kind::kRepeat) return {node.a, t, node.min, node.max};
  return {h, t, 1, 1};
}

RegexStore::Id RegexStore::prepend(Id h, Id t) {
  if (h == kEmpty || t == kEmpty) return kEmpty;
  if (h == kEpsilon) return t;
  if (t == kEpsilon) return h;
  const Term a = term(h), b = term(t);
  if (a.body == b.body) {  // r{a,b}·r{c,d} = r{a+c,b+d}
    const Id joined = repeat(a.body, sum(a.min, b.min), sum(a.max, b.max));
    return b.tail == kEpsilon ? joined : prepend(joined, b.tail);
  }
  return intern({Kind::kConcat, nullable(h) && nullable(t), boolean(h) || boolean(t), h, t, 0, 0});
}

RegexStore::Id RegexStore::concat(Id a, Id b) {
  std::vector<Id> heads;
  for (; nodes_[a].kind == Kind::kConcat; a = nodes_[a].b) heads.push_back(nodes_[a].a);
  spend(heads.size());
  Id out = prepend(a, b);
  for (auto it = heads.rbegin(); it != heads.rend(); ++it) out = prepend(*it, out);
  return out;
}

RegexStore::Id RegexStore::repeat(Id body, std::uint64_t min, std::uint64_t max) {
  if (max == 0 || body == kEpsilon) return kEpsilon;
  if (body == kEmpty) return min == 0 ? kEpsilon : kEmpty;
  if (nullable(body)) min = 0;
  if (min == 1 && max == 1) return body;
  const Node& node = nodes_[body];
  if (node.kind == Kind::kRepeat && node.min <= 1)  // the counts in between leave no gap
    return repeat(node.a, node.min * min, product(node.max, max));
  constexpr std::uint64_t kFew = 8;
  counts_ = counts_ || min > kFew || (max != kNoMax && max > kFew);
  return intern({Kind::kRepeat, min == 0, node.boolean, body, 0, min, max});
}

RegexStore::Id RegexStore::text(std::string_view utf8) {
  std::vector<Cp> cps;
  for (std::size_t at = 0; at < utf8.size();) {
    Cp cp = 0;
    if (!decode_utf8(utf8, &at, &cp)) return kEmpty;
    cps.push_back(cp);
  }
  Id out = kEpsilon;
  for (auto it = cps.rbegin(); it != cps.rend(); ++it) out = prepend(set(CpSet::one(*it)), out);
  return out;
}

void RegexStore::flatten(Kind kind, const std::vector<Id>& parts, std::vector<Id>* out) const {
  for (const Id part : parts) {
    const Node& node = nodes_[part];
    if (node.kind == kind)
      out->insert(out->end(), children_.begin() + node.a, children_.begin() + node.a + node.b);
    else
      out->push_back(part);
  }
  std::sort(out->begin(), out->end());
  out->erase(std::unique(out->begin(), out->end()), out->end());
}

void RegexStore::join_sets(std::vector<Id>* options) {
  const auto is_set = [&](Id a) { return nodes_[a].kind == Kind::kSet; };
  if (std::count_if(options->begin(), options->end(), is_set) < 2) return;
  std::vector<CpRange> ranges;
  for (const Id a : *options) {
    if (!is_set(a)) continue;
    const auto& more = sets_[nodes_[a].a].ranges();
    ranges.insert(ranges.end(), more.begin(), more.end());
  }
  spend(ranges.size());
  std::erase_if(*options, is_set);
  options->push_back(set(CpSet(std::move(ranges))));
}

// r{a,b}·t | r{c,d}·t = r{min,max}·t where the intervals touch.
void RegexStore::join_counters(std::vector<Id>* options) {
  std::vector<Term> terms;
  for (const Id a : *options) terms.push_back(term(a));
  std::sort(terms.begin(), terms.end(), [](const Term& x, const Term& y) {
    return std::tie(x.body, x.tail, x.min, x.max) < std::tie(y.body, y.tail, y.min, y.max);
  });
  options->clear();
  for (std::size_t i = 0; i < terms.size();) {
    Term one = terms[i++];
    while (i < terms.size() && terms[i].body == one.body && terms[i].tail == one.tail &&
           terms[i].min <= sum(one.max, 1)) {
      one.max = std::max(one.max, terms[i].max);
      ++i;
    }
    options->push_back(prepend(repeat(one.body, one.min, one.max), one.tail));
  }
}

// h·t | h·u = h·(t|u)
void RegexStore::join_heads(std::vector<Id>* options) {
  std::stable_sort(options->begin(), options->end(), [&](Id x, Id y) { return head(x) < head(y); });
  std::vector<Id> out;
  for (std::size_t i = 0; i < options->size();) {
    const Id first = (*options)[i], h = head(first);
    std::vector<Id> tails;
    for (; i < options->size() && head((*options)[i]) == h; ++i) tails.push_back(tail((*options)[i]));
    out.push_back(tails.size() == 1 ? first : concat(h, alt(std::move(tails))));
  }
  *options = std::move(out);
}

void RegexStore::join_epsilon(std::vector<Id>* options) {
  const auto at = std::find(options->begin(), options->end(), kEpsilon);
  if (at == options->end()) return;
  options->erase(at);
  for (const Id a : *options)
    if (nullable(a)) return;
  for (Id& a : *options) {
    const Term t = term(a);
    if (t.tail != kEpsilon || t.min != 1) continue;
    a = repeat(t.body, 0, t.max);
    return;
  }
  if (options->size() == 1)
    options->front() = repeat(options->front(), 0, 1);
  else
    options->push_back(kEpsilon);
}

// Takes the heads off that all options begin with (a loop, where join_heads would recurse).
std::vector<RegexStore::Id> RegexStore::common_heads(std::vector<Id>* options) {
  std::vector<Id> out;
  for (;;) {
    const Id h = head(options->front());
    for (const Id a : *options)
      if (nodes_[a].kind != Kind::kConcat || head(a) != h) return out;
    spend(options->size());
    out.push_back(h);
    for (Id& a : *options) a = tail(a);
  }
}

RegexStore::Id RegexStore::alt(std::vector<Id> parts) {
  std::vector<Id> options;
  flatten(Kind::kAlt, parts, &options);
  std::erase(options, kEmpty);
  if (options.empty()) return kEmpty;
  if (options.size() == 1) return options.front();
  const std::vector<Id> heads = common_heads(&options);
  Id out = alternatives(std::move(options));
  for (auto it = heads.rbegin(); it != heads.rend(); ++it) out = concat(*it, out);
  return out;
}

RegexStore::Id RegexStore::alternatives(std::vector<Id> parts) {
  const Nested nested(*this);
  std::vector<Id> options;
  flatten(Kind::kAlt, parts, &options);
  spend(options.size());
  if (std::find(options.begin(), options.end(), kAll) != options.end()) return kAll;
  if (options.size() > 1) {
    join_sets(&options);
    if (options.size() > 1) {
      join_counters(&options);
      join_heads(&options);
    }
    join_epsilon(&options);
  }
  if (options.empty()) return kEmpty;
  if (options.size() == 1) return options.front();
  // What was joined may be an alternative itself.
  std::vector<Id> flat;
  flatten(Kind::kAlt, options, &flat);
  if (std::find(flat.begin(), flat.end(), kAll) != flat.end()) return kAll;
  if (flat.size() == 1) return flat.front();
  Node node{Kind::kAlt, false, false, 0, static_cast<std::uint32_t>(flat.size()), 0, 0};
  for (const Id a : flat) {
    node.nullable |= nullable(a);
    node.boolean |= boolean(a);
  }
  return intern(node, &flat);
}

RegexStore::Id RegexStore::both(std::vector<Id> parts) {
  std::vector<Id> all;
  flatten(Kind::kAnd, parts, &all);
  std::erase(all, kAll);
  spend(all.size());
  if (all.empty()) return kAll;
  if (all.front() == kEmpty) return kEmpty;  // sorted: kEmpty is first
  bool nulls = true;
  for (const Id a : all) nulls = nulls && nullable(a);
  if (all.front() == kEpsilon) return nulls ? kEpsilon : kEmpty;
  std::vector<Id> rest;
  CpSet members = CpSet::all();
  bool sets = false;
  for (const Id a : all) {
    const Node& node = nodes_[a];
    if (node.kind == Kind::kNot && std::binary_search(all.begin(), all.end(), node.a)) return kEmpty;
    if (node.kind != Kind::kSet) {
      rest.push_back(a);
      continue;
    }
    members = members.intersected(sets_[node.a]);
    sets = true;
  }
  if (sets) {
    const Id one = set(members);
    if (one == kEmpty) return kEmpty;
    rest.push_back(one);
    std::sort(rest.begin(), rest.end());
  }
  if (rest.size() == 1) return rest.front();
  return intern({Kind::kAnd, nulls, true, 0, static_cast<std::uint32_t>(rest.size()), 0, 0}, &rest);
}

RegexStore::Id RegexStore::negate(Id a) {
  if (nodes_[a].kind == Kind::kNot) return nodes_[a].a;
  if (a == kEmpty) return kAll;
  if (a == kAll) return kEmpty;
  return intern({Kind::kNot, !nullable(a), true, a, 0, 0, 0});
}

RegexStore::Id RegexStore::nonempty(Id a) {
  if (!nullable(a)) return a;
  const Node node = nodes_[a];
  switch (node.kind) {
    case Kind::kConcat: {
      std::vector<Id> options;  // by the first part that is not empty
      for (; nodes_[a].kind == Kind::kConcat; a = nodes_[a].b) options.push_back(concat(nonempty(head(a)), tail(a)));
      options.push_back(nonempty(a));
      return alt(std::move(options));
    }
    case Kind::kAlt: {
      std::vector<Id> options(children_.begin() + node.a, children_.begin() + node.a + node.b);
      for (Id& option : options) option = nonempty(option);
      return alt(std::move(options));
    }
    case Kind::kRepeat:
      return repeat(nonempty(node.a), 1, node.max);
    default:
      return kEmpty;
  }
}

}  // namespace ag::regular
