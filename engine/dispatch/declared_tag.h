// What an engine makes of a tag, once: shared by all requests that have it. A request of hundreds of known tags reads
// little more of each than the first bytes of this.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/builder.h"
#include "regular/name_set.h"

namespace ag {

struct Compiled;

// A trigger, stop or tag border: text, or token ids.
struct Mark {
  std::string text;
  std::vector<std::uint32_t> ids;
  bool is_token() const { return !ids.empty(); }
};

class DeclaredTag {
 public:
  DeclaredTag(std::uint64_t engine, Mark begin, Mark end, TerminalPtr end_text, Symbol content,
              const std::shared_ptr<const Compiled>& compiled);

  const std::uint64_t engine;
  const Symbol content;
  const std::weak_ptr<const Compiled> compiled;                         // the content's; the cache may drop it
  std::string_view text() const { return {begin_text_, begin_size_}; }  // of the beginning; empty: a token
  const Mark& begin() const { return begin_; }
  const Mark& end() const { return end_; }
  const TerminalPtr& end_text() const { return end_text_; }  // null: a token, or empty
  // What a vocabulary makes of the beginning after its first `skip` bytes.
  regular::NameTokens* tokens(std::size_t skip) const;

  // What the next steps of a request read, while others are looked at.
  void prefetch() const {
    __builtin_prefetch(begin_text_);
    __builtin_prefetch(static_cast<const char*>(compiled_at_) - 16);  // its count comes before it
  }

  void add_ref() const { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release() const {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  ~DeclaredTag() = default;
  static constexpr std::size_t kInline = 64;
  static constexpr std::uint32_t kUnused = ~0u;

  mutable std::atomic<std::uint32_t> refs_{1};
  mutable std::atomic<std::uint32_t> skip_{kUnused};  // of first_
  const void* const compiled_at_;
  const char* begin_text_;
  std::size_t begin_size_;
  char inline_[kInline];
  const Mark begin_, end_;
  const TerminalPtr end_text_;
  mutable regular::NameTokens first_;
  mutable std::mutex mutex_;
  mutable std::map<std::size_t, std::unique_ptr<regular::NameTokens>> others_;
};

}  // namespace ag
