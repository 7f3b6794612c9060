#include "dispatch/declared_tag.h"

#include <algorithm>

namespace ag {

DeclaredTag::DeclaredTag(std::uint64_t engine_id, Mark begin, Mark end, TerminalPtr end_text, Symbol symbol,
                         const std::shared_ptr<const Compiled>& made)
    : engine(engine_id),
      content(symbol),
      compiled(made),
      compiled_at_(made.get()),
      begin_(std::move(begin)),
      end_(std::move(end)),
      end_text_(std::move(end_text)) {
  begin_text_ = begin_.text.data();
  begin_size_ = begin_.text.size();
  if (begin_size_ > kInline) return;
  std::copy_n(begin_text_, begin_size_, inline_);
  begin_text_ = inline_;
}

regular::NameTokens* DeclaredTag::tokens(std::size_t skip) const {
  const auto wanted = static_cast<std::uint32_t>(skip);
  std::uint32_t unused = kUnused;
  if (skip_.load(std::memory_order_relaxed) == wanted) return &first_;
  if (skip_.compare_exchange_strong(unused, wanted, std::memory_order_relaxed) || unused == wanted) return &first_;
  std::lock_guard lock(mutex_);
  auto& slot = others_[skip];
  if (!slot) slot = std::make_unique<regular::NameTokens>();
  return slot.get();
}

}  // namespace ag
