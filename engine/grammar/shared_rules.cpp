#include "grammar/shared_rules.h"

#include <algorithm>

#include "grammar/parts.h"

namespace ag {

Parts& Parts::text(std::string_view text) {
  number(text.size());
  for (std::size_t i = 0; i < text.size(); i += 8) {
    std::uint64_t part = 0;
    for (std::size_t k = i; k < std::min(i + 8, text.size()); ++k)
      part = part << 8 | static_cast<std::uint8_t>(text[k]);
    number(part);
  }
  return *this;
}

Parts& Parts::texts(const std::vector<std::string>& list) {
  number(list.size());
  for (const std::string& one : list) text(one);
  return *this;
}

Parts& Parts::language(const StringLanguage& s) {
  texts(s.patterns).texts(s.not_patterns).texts(s.formats).texts(s.not_formats).texts(s.excluded);
  return number(s.min_length).number(s.max_length);
}

std::uint64_t Parts::of(Symbol symbol) {
  if (symbol.terminal) return symbol.terminal->id() << 2 | 1;
  return symbol.rule ? symbol.rule->id << 2 | 2 : 0;
}

std::size_t SharedRules::bytes() const {
  std::size_t total = sizeof *this + rules.size() * (sizeof(void*) + 48) + terminals.size() * sizeof(TerminalPtr) +
                      below.size() * sizeof(void*);
  for (const auto& rule : rules) total += rule->bytes();
  return total;
}

std::size_t SharedRules::count(int holders) const {
  std::size_t total = 0;
  std::vector<const SharedRules*> todo{this};
  while (!todo.empty()) {
    const SharedRules* at = todo.back();
    todo.pop_back();
    if (holders > 0 ? at->cached_++ != 0 : --at->cached_ != 0) continue;
    total += at->bytes();
    for (const auto& other : at->below) todo.push_back(other.get());
  }
  return total;
}

// Asked while others wait, and by one thread at a time.
bool SharedRules::has(std::uint32_t way, Description description) const {
  const auto begins = [&](Description rest, const Rule& rule, auto code) {
    Parts& parts = Parts::scratch(Parts::kCompare);
    rule.parts(parts);
    const auto& own = parts.describe(code);
    return own.size() <= rest.size() && std::equal(own.begin(), own.end(), rest.begin()) ? own.size() : 0;
  };
  if (way != kTogether) return begins(description, *rules[way], Parts::of) == description.size();
  if (description[0] != Parts::kComponent || description[1] != rules.size()) return false;
  std::size_t done = 2;
  for (const auto& rule : rules) {
    const std::size_t size = begins(description.subspan(done), *rule, [&](Symbol s) {
      return s.rule && s.rule->home == this ? Parts::of_place(s.rule->place) : Parts::of(s);
    });
    if (size == 0) return false;
    done += size;
  }
  return done == description.size();
}

}  // namespace ag
