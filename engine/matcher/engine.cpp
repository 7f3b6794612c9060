#include "matcher/engine.h"

#include "dispatch/dispatch.h"
#include "grammar/ebnf.h"

namespace ag {

namespace {
std::atomic<std::uint64_t> next_engine{1};
constexpr int kMaxDepth = 1'000;  // nesting of specification nodes, which people write by hand
}  // namespace

EngineCore::EngineCore(std::shared_ptr<const Vocabulary> vocab, EngineOptions options)
    : id_(next_engine++), vocab_(std::move(vocab)), options_(options), masks_(vocab_, options.cache_bytes / 2) {}

std::shared_ptr<const Grammar> EngineCore::compile(const SpecPtr& spec, std::shared_ptr<const Compiled>* details) {
  auto compiled = fragment(spec, 0);
  if (details) *details = compiled;
  return std::make_shared<const Grammar>(Grammar{shared_from_this(), vocab_, compiled->fragment});
}

std::vector<std::uint32_t> EngineCore::token_ids(const Spec::Mark& mark) const {
  if (mark.id >= 0) {
    if (mark.id >= vocab_->size()) {
      throw GrammarError("token " + std::to_string(mark.id) + " is outside the vocabulary of " +
                             std::to_string(vocab_->size()) + " tokens",
                         "", "Tok", "Give an id of this vocabulary.");
    }
    return {static_cast<std::uint32_t>(mark.id)};
  }
  std::uint32_t id = vocab_->special_id(mark.text);
  if (id == vocab_->size()) {
    throw GrammarError("the vocabulary has no special token '" + mark.text + "'", "", "Tok",
                       "Name it in Vocabulary(special=...), or give its id.");
  }
  return {id};
}

std::shared_ptr<const Compiled> EngineCore::fragment(const SpecPtr& spec, int depth) {
  {
    std::lock_guard lock(spec->mutex);
    for (const auto& [engine, weak] : spec->compiled) {
      if (engine != id_) continue;
      if (auto found = weak.lock()) return found;
    }
  }
  auto made = make(*spec, depth);
  std::lock_guard lock(spec->mutex);
  std::erase_if(spec->compiled, [&](const auto& e) { return e.first == id_ || e.second.expired(); });
  spec->compiled.emplace_back(id_, made);
  return made;
}

std::shared_ptr<const Compiled> EngineCore::make(const Spec& spec, int depth) {
  if (spec.kind == Spec::kSchema) return schema(spec);
  Builder builder(pool_, options_.limits);
  std::vector<std::shared_ptr<const Coverage>> coverage;
  // A handle to the same node without owning it: build() looks at its kind only once.
  SpecPtr self(std::shared_ptr<const Spec>(), &spec);
  Symbol root = build(builder, self, &coverage, depth);
  auto out = std::make_shared<Compiled>();
  out->fragment = builder.finish(root);
  out->coverage = std::move(coverage);
  return out;
}

std::shared_ptr<const Compiled> EngineCore::schema(const Spec& spec) {
  std::string key;
  key.reserve(spec.text.size() + 3);
  key += static_cast<char>(spec.schema.whitespace);
  key += static_cast<char>(spec.schema.any_order);
  key += static_cast<char>(spec.schema.relax);
  key += spec.text;
  {
    std::lock_guard lock(mutex_);
    auto it = by_key_.find(key);
    if (it != by_key_.end()) {
      ++hits_;
      recent_.splice(recent_.begin(), recent_, it->second);
      return it->second->compiled;
    }
    ++misses_;
  }
  auto coverage = std::make_shared<Coverage>();
  auto out = std::make_shared<Compiled>();
  out->fragment = compile_schema(spec.text, spec.schema, pool_, options_.limits, coverage.get());
  std::size_t bytes = sizeof(Entry) + 2 * key.size() + out->fragment->bytes() + coverage->bytes();
  out->coverage.push_back(std::move(coverage));
  std::lock_guard lock(mutex_);
  if (auto it = by_key_.find(key); it != by_key_.end()) return it->second->compiled;
  recent_.push_front({std::move(key), out, bytes});
  by_key_.emplace(recent_.front().key, recent_.begin());
  bytes_ += bytes;
  trim();
  return out;
}

// Called with the mutex held. What is dropped lives on in the grammars that use it.
void EngineCore::trim() {
  while (bytes_ > options_.cache_bytes / 4 && recent_.size() > 1) {
    bytes_ -= recent_.back().bytes;
    by_key_.erase(recent_.back().key);
    recent_.pop_back();
    ++evictions_;
  }
}

Symbol EngineCore::build(Builder& b, const SpecPtr& spec, std::vector<std::shared_ptr<const Coverage>>* coverage,
                         int depth) {
  if (depth > kMaxDepth) {
    throw GrammarError("the specification is nested more than " + std::to_string(kMaxDepth) + " deep", "", "",
                       "Flatten it, or write it as Ebnf.");
  }
  auto all = [&](const std::vector<SpecPtr>& specs) {
    std::vector<Symbol> out;
    for (const auto& s : specs) out.push_back(build(b, s, coverage, depth + 1));
    return out;
  };
  switch (spec->kind) {
    case Spec::kLit:
      return b.literal(spec->text);
    case Spec::kTok:
      return b.token(token_ids(spec->mark));
    case Spec::kText:
      return b.terminal(b.pool().text({{}, spec->excludes, false}));
    case Spec::kSeq:
      return b.seq(all(spec->children));
    case Spec::kChoice:
      return b.choice(all(spec->children));
    case Spec::kOpt: {
      auto options = all(spec->children);
      options.push_back(b.seq({}));
      return b.choice(std::move(options));
    }
    case Spec::kRep: {
      auto parts = all(spec->children);
      return b.repeat(parts[0], spec->min, spec->max, parts.size() > 1 ? parts[1] : Symbol{});
    }
    case Spec::kTag: {
      Symbol content = build(b, spec->children[0], coverage, depth + 1);
      auto border = [&](const Spec::Mark& m) { return m.token ? b.token(token_ids(m)) : b.literal(m.text); };
      return b.seq({border(spec->begin), content, border(spec->end)});
    }
    case Spec::kDispatch:
      return build_dispatch(b, *spec, coverage, depth);
    case Spec::kRegex: {
      Symbol s = b.terminal(b.pool().regex(spec->text));
      if (!s)
        throw GrammarError("the regular expression matches nothing", "", "Regex", "Remove what contradicts itself.");
      return s;
    }
    case Spec::kEbnf: {
      return b.embed(compile_ebnf(spec->text, b.pool(), options_.limits));
    }
    case Spec::kSchema: {
      auto compiled = fragment(spec, depth + 1);
      coverage->insert(coverage->end(), compiled->coverage.begin(), compiled->coverage.end());
      return b.embed(compiled->fragment);
    }
  }
  return {};
}

Symbol EngineCore::build_dispatch(Builder& b, const Spec& spec, std::vector<std::shared_ptr<const Coverage>>* coverage,
                                  int depth) {
  auto mark = [&](const Spec::Mark& m) {
    DispatchSpec::Mark out;
    if (m.token)
      out.ids = token_ids(m);
    else
      out.text = m.text;
    return out;
  };
  DispatchSpec out;
  out.tags.reserve(spec.children.size());
  for (const auto& tag : spec.children) {
    auto compiled = fragment(tag->children[0], depth + 1);
    coverage->insert(coverage->end(), compiled->coverage.begin(), compiled->coverage.end());
    out.tags.push_back({mark(tag->begin), b.embed(compiled->fragment), mark(tag->end)});
  }
  for (const auto& t : spec.triggers) out.triggers.push_back(mark(t));
  for (const auto& s : spec.stops) out.stops.push_back(mark(s));
  out.excludes = spec.excludes;
  out.at_least = spec.min;
  out.at_most = spec.max;
  out.stop_after_first = spec.stop_after_first;
  return b.rule(std::make_unique<DispatchRule>(std::move(out), b.pool()));
}

EngineStats EngineCore::stats() const {
  EngineStats out;
  auto terminals = pool_.stats();
  std::lock_guard lock(mutex_);
  auto masks = masks_.stats();
  out.cache_bytes = bytes_ + terminals.bytes + masks.bytes;
  out.entries = masks.entries;
  out.fragments = recent_.size();
  out.terminals = terminals.terminals;
  out.hits = masks.hits;
  out.misses = masks.misses;
  out.evictions = evictions_ + masks.evictions;
  out.nodes_walked = masks.nodes;
  out.schema_hits = hits_;
  out.schema_misses = misses_;
  return out;
}

void EngineCore::clear() {
  {
    std::lock_guard lock(mutex_);
    by_key_.clear();
    recent_.clear();
    bytes_ = 0;
  }
  masks_.clear();
  pool_.clear();
}

}  // namespace ag
