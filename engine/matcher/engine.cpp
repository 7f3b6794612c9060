#include "matcher/engine.h"

#include <algorithm>

#include "base/workers.h"
#include "dispatch/dispatch.h"
#include "grammar/ebnf.h"
#include "grammar/shared_rules.h"
#include "mask/warm.h"

namespace ag {

namespace {
std::atomic<std::uint64_t> next_engine{1};
constexpr std::size_t kEagerly = 4'096, kSoon = 64;  // states whose masks are built in, or soon after, compile
constexpr double kEndless = 1e9, kBudget = 0.1;      // seconds
constexpr std::size_t kTrimEvery = 64;               // new schemas
constexpr int kMaxDepth = 1'000;                     // nesting of specification nodes, which people write by hand
}  // namespace

EngineCore::EngineCore(std::shared_ptr<const Vocabulary> vocab, EngineOptions options)
    : id_(next_engine++),
      vocab_(std::move(vocab)),
      options_(options),
      masks_(vocab_, options.cache_bytes / 2, options.repetition_compression) {}

std::shared_ptr<const Grammar> EngineCore::compile(const SpecPtr& spec) {
  if (!options_.cross_grammar_cache) {
    EngineOptions alone = options_;
    alone.cross_grammar_cache = true;
    return std::make_shared<EngineCore>(vocab_, alone)->compile(spec);
  }
  auto out = std::make_shared<const Grammar>(Grammar{shared_from_this(), vocab_, fragment(spec, 0)->fragment});
  if (options_.jit == Jit::kOff) {
    warm(*out, kEagerly, kEndless);
  } else if (options_.jit == Jit::kWarm && options_.threads > 1 && has_news(*out->fragment)) {
    // Nothing is held back for it: a grammar that is dropped meanwhile is not warmed.
    Workers::instance().later([weak = std::weak_ptr<const Grammar>(out)] {
      if (auto grammar = weak.lock()) grammar->engine->build(news(*grammar->fragment), kSoon, kBudget);
    });
  }
  return out;
}

// Whether a grammar has parts that none before it had. Where all its parts are known, so is what it puts them into.
bool EngineCore::has_news(const Fragment& fragment) {
  if (fragment.embedded.empty()) return !fragment.warmed.load(std::memory_order_relaxed);
  return std::any_of(fragment.embedded.begin(), fragment.embedded.end(),
                     [](const auto& part) { return !part->warmed.load(std::memory_order_relaxed); });
}

EngineCore::News EngineCore::news(const Fragment& fragment) {
  News out;
  if (!fragment.warmed.exchange(true)) out.roots.push_back(fragment.root.rule);
  for (const auto& part : fragment.embedded)
    (part->warmed.exchange(true) ? out.known : out.roots).push_back(part->root.rule);
  return out;
}

std::size_t EngineCore::warm(const Grammar& grammar, std::size_t top, double seconds) {
  return build({{grammar.fragment->root.rule}, {}}, top, seconds);
}

std::size_t EngineCore::build(const News& news, std::size_t top, double seconds) {
  const auto start = std::chrono::steady_clock::now();
  std::size_t done = 0;
  for (const WarmState& s : warm_states(*vocab_, news.roots, news.known, top)) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > seconds) break;
    try {
      masks_.get(nullptr, *s.terminal, s.state, masks_.classify(*s.terminal, 0));
      MaskCache::let_go();
    } catch (const GrammarError&) {  // a limit: whoever needs this mask is told
      continue;
    }
    ++done;
  }
  return done;
}

// Most who compile a schema never ask, so it is compiled once more for those who do: what it is made of is known.
std::shared_ptr<const Coverage> EngineCore::coverage(const Spec& schema) {
  auto out = std::make_shared<Coverage>();
  compile_schema(schema.text, schema.schema, pool_, options_.limits, out.get());
  return out;
}

std::vector<std::shared_ptr<const Coverage>> EngineCore::coverage(const SpecPtr& spec) {
  std::vector<std::shared_ptr<const Coverage>> out;
  std::vector<SpecPtr> pending{spec};
  while (!pending.empty()) {
    SpecPtr s = std::move(pending.back());
    pending.pop_back();
    if (s->kind == Spec::kSchema || s->kind == Spec::kDispatch) {
      try {
        auto own = s->kind == Spec::kSchema ? coverage(*s) : fragment(s, 0)->coverage;
        if (own) out.push_back(std::move(own));
      } catch (const GrammarError&) {  // of a tag that was left out
        continue;
      }
    }
    pending.insert(pending.end(), s->children.rbegin(), s->children.rend());
  }
  return out;
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
  auto out = std::make_shared<Compiled>();
  Symbol root = spec.kind == Spec::kDispatch ? build_dispatch(builder, spec, depth, &out->coverage)
                                             : build(builder, spec.shared_from_this(), depth);
  out->fragment = builder.finish(root);
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
  auto out = std::make_shared<Compiled>();
  out->fragment = compile_schema(spec.text, spec.schema, pool_, options_.limits, nullptr);
  std::size_t bytes = sizeof(Entry) + 2 * key.size() + out->fragment->bytes();
  std::lock_guard lock(mutex_);
  if (auto it = by_key_.find(key); it != by_key_.end()) return it->second->compiled;
  add({std::move(key), out, bytes});
  trim();
  return out;
}

// These are called with the mutex held.
void EngineCore::add(Entry entry) {
  bytes_ += entry.bytes;
  for (const auto& rules : entry.compiled->fragment->shared) rule_bytes_ += rules->count(1);
  recent_.push_front(std::move(entry));
  by_key_.emplace(recent_.front().key, recent_.begin());
}

// What is dropped lives on in the grammars that use it.
void EngineCore::drop_last() {
  const Entry& last = recent_.back();
  bytes_ -= last.bytes;
  for (const auto& rules : last.compiled->fragment->shared) rule_bytes_ -= rules->count(-1);
  by_key_.erase(last.key);
  recent_.pop_back();
}

void EngineCore::trim() {
  while (bytes_ + rule_bytes_ > options_.cache_bytes / 4 && recent_.size() > 1) {
    drop_last();
    ++evictions_;
  }
  // Terminals go when nothing is left that uses them; looking at them all is paid by those that came since.
  if (++since_trim_ >= kTrimEvery) {
    since_trim_ = 0;
    if (pool_.stats().bytes > options_.cache_bytes / 4) pool_.clear();
  }
}

Symbol EngineCore::build(Builder& b, const SpecPtr& spec, int depth) {
  if (depth > kMaxDepth) {
    throw GrammarError("the specification is nested more than " + std::to_string(kMaxDepth) + " deep", "", "",
                       "Flatten it, or write it as Ebnf.");
  }
  auto all = [&](const std::vector<SpecPtr>& specs) {
    std::vector<Symbol> out;
    for (const auto& s : specs) out.push_back(build(b, s, depth + 1));
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
      Symbol content = build(b, spec->children[0], depth + 1);
      auto border = [&](const Spec::Mark& m) { return m.token ? b.token(token_ids(m)) : b.literal(m.text); };
      return b.seq({border(spec->begin), content, border(spec->end)});
    }
    case Spec::kDispatch:
      return b.embed(fragment(spec, depth + 1)->fragment);
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
      return b.embed(fragment(spec, depth + 1)->fragment);
    }
  }
  return {};
}

// Null where this engine has not met a tag, or not lately. A request of hundreds of tags waits for memory more than for
// anything else, so that what comes is fetched ahead.
std::vector<Ref<const DeclaredTag>> EngineCore::known_tags(const std::vector<SpecPtr>& tags) const {
  constexpr std::size_t kFar = 16, kNear = 8;
  const auto far = [&](std::size_t i) {
    if (i >= tags.size()) return;
    __builtin_prefetch(&tags[i]->mutex);
    __builtin_prefetch(&tags[i]->declared_at);
  };
  const auto near = [&](std::size_t i) {
    if (i < tags.size()) __builtin_prefetch(tags[i]->declared_at.load(std::memory_order_relaxed));
  };
  std::vector<Ref<const DeclaredTag>> out(tags.size());
  for (std::size_t i = 0; i < kFar; ++i) far(i);
  for (std::size_t i = 0; i < kNear; ++i) near(i);
  for (std::size_t i = 0; i < tags.size(); ++i) {
    far(i + kFar);
    near(i + kNear);
    std::lock_guard lock(tags[i]->mutex);
    if (!tags[i]->declared || tags[i]->declared->engine != id_) continue;
    out[i] = tags[i]->declared;
    out[i]->prefetch();
  }
  return out;
}

// Also gives what was compiled of its content, which the reference does not hold.
Ref<const DeclaredTag> EngineCore::declare(const Spec& tag, int depth, std::shared_ptr<const Compiled>* content) {
  *content = fragment(tag.children[0], depth);
  TerminalPtr end_text;
  if (!tag.end.token && !tag.end.text.empty()) end_text = pool_.literal(tag.end.text);
  auto made = Ref<const DeclaredTag>::adopt(
      new DeclaredTag(id_, mark(tag.begin), mark(tag.end), std::move(end_text), (*content)->fragment->root, *content));
  std::lock_guard lock(tag.mutex);
  tag.declared = made;
  tag.declared_at.store(made.get(), std::memory_order_relaxed);
  return made;
}

Mark EngineCore::mark(const Spec::Mark& m) const {
  Mark out;
  if (m.token)
    out.ids = token_ids(m);
  else
    out.text = m.text;
  return out;
}

Symbol EngineCore::build_dispatch(Builder& b, const Spec& spec, int depth, std::shared_ptr<const Coverage>* coverage) {
  DispatchSpec out;
  out.tags.reserve(spec.children.size());
  auto left_out = std::make_shared<Coverage>();
  std::vector<Ref<const DeclaredTag>> known = known_tags(spec.children);
  for (std::size_t i = 0; i < known.size(); ++i) {
    const SpecPtr& tag = spec.children[i];
    try {
      std::shared_ptr<const Compiled> content;
      if (known[i]) content = known[i]->compiled.lock();
      out.tags.push_back(content ? std::move(known[i]) : declare(*tag, depth + 1, &content));
      const Fragment* fragment = content->fragment.get();
      b.keep({std::move(content), fragment});
    } catch (const Unsatisfiable& e) {
      // A tag that can hold nothing takes nothing away from the others.
      if (left_out->warnings.size() + 1 == spec.children.size()) throw;
      left_out->warnings.push_back(
          {e.pointer, e.keyword, "the tag '" + tag->begin.text + "' is left out: " + e.message});
    }
  }
  if (!left_out->warnings.empty()) *coverage = std::move(left_out);
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
  const Interner::Stats rules = pool_.interner()->stats();
  std::lock_guard lock(mutex_);
  auto masks = masks_.stats();
  out.cache_bytes = bytes_ + rules.bytes + terminals.bytes + masks.bytes;
  out.rules = rules.things;
  out.shared_rules = rules.found;
  out.entries = masks.entries;
  out.fragments = recent_.size();
  out.terminals = terminals.terminals;
  out.perfect_hits = hits_;
  out.partial_hits = masks.hits;
  out.misses = misses_;
  out.builds = masks.misses;
  out.evictions = evictions_ + masks.evictions;
  out.nodes_walked = masks.nodes;
  return out;
}

void EngineCore::clear() {
  {
    std::lock_guard lock(mutex_);
    while (!recent_.empty()) drop_last();
  }
  masks_.clear();
  pool_.clear();
}

}  // namespace ag
