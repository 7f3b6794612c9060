// The way through: text, values, shapes, symbols; and what is said when there is no way.
#include <algorithm>
#include <unordered_set>

#include "regular/effort.h"
#include "schema/compiler.h"

namespace ag::schema {

using json::Type;

Compiler::Compiler(std::string_view text, const SchemaOptions& options, TerminalPool& pool, const Limits& limits,
                   Coverage* coverage)
    : text_(text), options_(options), pool_(pool), limits_(limits), coverage_(coverage), builder_(pool, limits) {
  nodes_.resize(3);  // none, never, any
  Shape any;
  any.scalars = Shape::kScalars;
  any.numbers = one<const NumberPart*>(&kAnyNumber);
  any.strings = one<const StringPart*>(&kAnyString);
  any.arrays = one<const ArrayPart*>(&kAnyArray);
  any.objects = one<const ObjectPart*>(&kAnyObject);
  any_ = nodes_[kAny].shape = arena_.make<Shape>(any);
  never_ = nodes_[kNever].shape = arena_.make<Shape>();
}

std::shared_ptr<const Fragment> Compiler::run() {
  root_ = here_ = &json::parse(text_, arena_, limits_.max_depth);
  draft_ = draft_of(root_->find("$schema"), Draft::k2020);
  const Draft named = draft_of(root_->find("$schema"), Draft::k4);
  content_describes_ = named >= Draft::k2019;
  tracks_evaluated_ = text_.find("unevaluated") != std::string_view::npos;
  NodeId root = at(*root_);
  Symbol symbol = lower(root);
  lower_rest();
  if (!symbol) explain_empty(root);
  std::shared_ptr<const Fragment> out;
  try {
    out = builder_.finish(symbol);
  } catch (const GrammarError& e) {
    if (!e.pointer.empty()) throw;
    explain_empty(root, e.message);
  }
  if (coverage_) write_coverage();
  return out;
}

void Compiler::fail(const Value& at, std::string_view keyword, std::string message, std::string hint) {
  std::string pointer = json::pointer_to(*root_, at);
  if (!keyword.empty() && at.find(keyword)) pointer.append("/").append(json::escape_token(keyword));
  throw GrammarError(std::move(message), std::move(pointer), std::string(keyword), std::move(hint));
}

void Compiler::unsupported(const Value& at, std::string_view keyword, std::string message, std::string hint) {
  if (!options_.relax) {
    fail(at, keyword, std::move(message), std::move(hint) + " Or compile with unsupported=\"relax\".");
  }
  note(Note::kRelaxed, at, keyword, message);
}

void Compiler::note(Note::Kind kind, const Value& at, std::string_view keyword, std::string_view why) {
  if (coverage_) notes_.push_back({kind, &at, keyword, std::string(why)});
}

void Compiler::conflict(const char* keyword, const char* why) {
  constexpr std::size_t kEnough = 64;
  if (conflicts_.size() < kEnough) conflicts_.push_back({here_, keyword, why});
}

void Compiler::check_room() {
  if (arena_.capacity() <= kRoom + kRoomPerByte * text_.size()) return;
  fail(*here_, "", "its alternatives combine to more than there is room for",
       "Split the schema, or tell the alternatives apart by one property.");
}

void Compiler::check_unicode(const Value& string, std::string_view keyword) {
  if (string.lone_surrogate) {
    fail(*here_, keyword, "a string holds half a surrogate pair, which no text can contain",
         "Remove the lone \\ud800-\\udfff escape.");
  }
}

std::string_view Compiler::keep_text(std::string_view text) {
  char* out = arena_.array<char>(text.size());
  std::copy(text.begin(), text.end(), out);
  return {out, text.size()};
}

// Follows what is demanded down to the schema that cannot be met.
void Compiler::explain_empty(NodeId root, std::string_view built) {
  NodeId id = root;
  const Value* where = root_;
  for (int depth = 0; depth < 100; ++depth) {
    if (nodes_[id].at) where = nodes_[id].at;
    const Shape* s = nodes_[id].shape;
    NodeId next = 0;
    if (s && s->objects.size() == 1) {
      for (const Property& p : s->objects[0]->properties) {
        if (p.required && !next && nodes_[p.value].shape && nodes_[p.value].shape->empty()) next = p.value;
      }
    }
    if (!next) break;
    id = next;
  }
  // The first conflict there that names its keyword, or the first of all.
  auto at_keyword = [&](const Conflict& c) { return c.here == where && *c.keyword; };
  auto found = std::find_if(conflicts_.begin(), conflicts_.end(), at_keyword);
  if (found == conflicts_.end()) {
    found = std::find_if(conflicts_.begin(), conflicts_.end(), [&](const Conflict& c) { return c.here == where; });
  }
  if (found == conflicts_.end() && where == root_ && !conflicts_.empty()) found = conflicts_.begin();
  std::string message = "nothing satisfies this schema";
  const bool other_reason = !built.empty() && built.find("nothing") == std::string_view::npos;
  if (found == conflicts_.end() && other_reason) throw GrammarError(std::string(built));
  try {
    if (found != conflicts_.end()) {
      fail(*found->here, found->keyword, message + ": " + found->why,
           "Loosen one of the keywords that contradict each other.");
    }
    fail(*where, "", message,
         where == root_ ? "Check for a property that requires the whole schema again." : "Loosen it.");
  } catch (GrammarError& e) {
    throw Unsatisfiable(std::move(e));
  }
}

void Compiler::write_coverage() {
  std::vector<Coverage::Row>* lists[] = {&coverage_->enforced, &coverage_->narrowed, &coverage_->relaxed,
                                         &coverage_->warnings};
  std::unordered_map<const Value*, std::vector<const Note*>> by_place;
  for (const Note& n : notes_) by_place[n.at].push_back(&n);
  std::unordered_set<std::string> known, not_enforced;
  json::for_each_value(*root_, [&](const Value& v, const std::string& pointer) {
    auto it = by_place.find(&v);
    if (it == by_place.end()) return;
    for (const Note* n : it->second) {
      std::string place = pointer;
      if (!n->keyword.empty()) place.append("/").append(json::escape_token(n->keyword));
      if (!known.insert(std::string(1, static_cast<char>(n->kind)).append(place).append("\n").append(n->why)).second)
        continue;
      if (n->kind == Note::kRelaxed || n->kind == Note::kWarning) not_enforced.insert(place);
      lists[n->kind]->push_back({std::move(place), std::string(n->keyword), n->why});
    }
  });
  // What only describes, or was loosened, is not enforced.
  if (not_enforced.empty()) return;
  std::erase_if(coverage_->enforced, [&](const Coverage::Row& r) { return not_enforced.contains(r.pointer); });
}

}  // namespace ag::schema

namespace ag {

std::shared_ptr<const Fragment> compile_schema(std::string_view json_text, const SchemaOptions& options,
                                               TerminalPool& pool, const Limits& limits, Coverage* coverage) {
  constexpr std::uint64_t kMaxEffort = 500'000;
  const regular::Effort effort(kMaxEffort);
  return schema::Compiler(json_text, options, pool, limits, coverage).run();
}

}  // namespace ag
