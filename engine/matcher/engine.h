// The engine: one vocabulary, one pool of everything that grammars share.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "dispatch/dispatch.h"
#include "matcher/matcher.h"
#include "matcher/spec.h"
#include "regular/terminals.h"
#include "vocab/vocabulary.h"

namespace ag {

// When masks are built (JIT): in compile, all that can be foreseen; when they are first asked for; or those that take
// longest as soon as a grammar is compiled, on another thread.
enum class Jit : std::uint8_t { kOff, kLazy, kWarm };

struct EngineOptions {
  std::uint64_t cache_bytes = 256u << 20;
  unsigned threads = 1;
  Jit jit = Jit::kLazy;
  bool cross_grammar_cache = true;     // off: each grammar is compiled for itself
  bool repetition_compression = true;  // off: each value of a counter has masks of its own
  bool adaptive_masks = true;          // off: each mask is a walk of the vocabulary
  Limits limits;
};

struct EngineStats {
  std::uint64_t cache_bytes = 0, entries = 0, fragments = 0, terminals = 0, nodes_walked = 0;
  std::uint64_t perfect_hits = 0, partial_hits = 0, misses = 0, builds = 0, evictions = 0;
  std::uint64_t rules = 0, shared_rules = 0;
};

class EngineCore : public std::enable_shared_from_this<EngineCore> {
 public:
  EngineCore(std::shared_ptr<const Vocabulary> vocab, EngineOptions options);

  // Throws GrammarError.
  std::shared_ptr<const Grammar> compile(const SpecPtr& spec);
  // What the schemas in a compiled specification enforce.
  std::vector<std::shared_ptr<const Coverage>> coverage(const SpecPtr& spec);
  // Builds masks of a grammar of this engine ahead of time: of the `top` states that take longest, until `seconds` have
  // passed. Gives the number of states that were looked at.
  std::size_t warm(const Grammar& grammar, std::size_t top, double seconds);
  EngineStats stats() const;
  void clear();
  // For tests, before anything is compiled: see Interner.
  void truncate_hashes(unsigned bits) { pool_.interner()->truncate(bits); }
  const std::shared_ptr<const Vocabulary>& vocab() const { return vocab_; }
  MaskCache& masks() { return masks_; }
  const EngineOptions& options() const { return options_; }

 private:
  // What of a grammar is to be warmed: fragments that none before it had; and those that it shares with others.
  struct News {
    std::vector<const Rule*> roots, known;
  };
  static bool has_news(const Fragment& fragment);
  static News news(const Fragment& fragment);
  std::size_t build(const News& news, std::size_t top, double seconds);

  std::shared_ptr<const Compiled> fragment(const SpecPtr& spec, int depth);
  std::shared_ptr<const Compiled> make(const Spec& spec, int depth);
  Symbol build(Builder& b, const SpecPtr& spec, int depth);
  Symbol build_dispatch(Builder& b, const Spec& spec, int depth, std::shared_ptr<const Coverage>* coverage);
  std::vector<Ref<const DeclaredTag>> known_tags(const std::vector<SpecPtr>& tags) const;
  Ref<const DeclaredTag> declare(const Spec& tag, int depth, std::shared_ptr<const Compiled>* content);
  std::vector<std::uint32_t> token_ids(const Spec::Mark& mark) const;
  Mark mark(const Spec::Mark& mark) const;
  std::shared_ptr<const Compiled> schema(const Spec& spec);
  std::shared_ptr<const Coverage> coverage(const Spec& schema);
  void trim();

  const std::uint64_t id_;  // never reused, unlike an address
  std::shared_ptr<const Vocabulary> vocab_;
  EngineOptions options_;
  TerminalPool pool_;
  MaskCache masks_;

  // Compiled schemas by content, least recently used last; bounded by cache_bytes.
  struct Entry {
    std::string key;
    std::shared_ptr<const Compiled> compiled;
    std::size_t bytes;  // without rules that others may share
  };
  // What they hold is counted, shared rules once for all of them.
  void add(Entry entry);
  void drop_last();

  mutable std::mutex mutex_;
  std::list<Entry> recent_;
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_key_;
  std::size_t bytes_ = 0, rule_bytes_ = 0, since_trim_ = 0;
  std::uint64_t hits_ = 0, misses_ = 0, evictions_ = 0;
};

}  // namespace ag
