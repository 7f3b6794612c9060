// The compiler from schemas to grammars: one object per compile_schema call.
//
//   JSON text --json.cpp--> values --places.cpp--> nodes --evaluate.cpp, objects.cpp--> shapes --lower.cpp--> symbols
//                                                    combine.cpp, complement.cpp: and, or, not of shapes
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "grammar/array_unique.h"
#include "schema/decimal.h"
#include "schema/keywords.h"
#include "schema/references.h"
#include "schema/schema.h"
#include "schema/shape.h"

namespace ag::schema {

using json::Value;

// The keywords that one schema object holds.
struct KeywordSet {
  const Value* schema;
  std::uint64_t present = 0;
  const Value* slot[kKeywordCount];  // valid where the bit is set

  static constexpr std::uint64_t bit(Keyword k) { return std::uint64_t{1} << static_cast<unsigned>(k); }
  bool has(Keyword k) const { return present & bit(k); }
  const Value* operator[](Keyword k) const { return has(k) ? slot[static_cast<std::size_t>(k)] : nullptr; }
  void set(Keyword k, const Value& v) {
    present |= bit(k);
    slot[static_cast<std::size_t>(k)] = &v;
  }
};

// Schemas applied in place (allOf, $ref, ...) nest on the stack, so they nest less than children may.
inline constexpr std::uint32_t kMaxInPlace = 500;
// Alternatives of one type that a shape may have, and classes of keys that an object may have.
inline constexpr std::size_t kMaxParts = 2048, kMaxClasses = 256;
// Memory for what schemas combine to: bytes, and bytes for each byte of the schema's text.
inline constexpr std::size_t kRoom = 24 << 20, kRoomPerByte = 64;

class Compiler {
 public:
  Compiler(std::string_view text, const SchemaOptions& options, TerminalPool& pool, const Limits& limits,
           Coverage* coverage);
  std::shared_ptr<const Fragment> run();

 private:
  struct Node {
    enum Kind : std::uint8_t { kConstant, kAt, kAnd, kOr, kNot } kind;  // kConstant: the value `at`, as an enum has it
    const Value* at = nullptr;
    List<NodeId> ids{};
    const Shape* shape = nullptr;
    bool open = false;
    enum Listed : std::uint8_t { kUnknown, kYes, kNo } listed = kUnknown;  // see Compiler::listed()
  };
  // While the keywords of a schema are read.
  struct Inside {
    Compiler& compiler;
    const Value* outer;
    Inside(Compiler& c, const Value& schema) : compiler(c), outer(std::exchange(c.here_, &schema)) { ++c.depth_; }
    ~Inside() {
      compiler.here_ = outer;
      --compiler.depth_;
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
  };
  struct Circular {};  // thrown while probing, when the answer depends on itself
  struct Conflict {
    const Value* here;
    const char* keyword;
    const char* why;
  };
  struct Note {
    enum Kind : std::uint8_t { kEnforced, kNarrowed, kRelaxed, kWarning } kind;
    const Value* at;
    std::string_view keyword;
    std::string why;
  };

  // ---- nodes (nodes.cpp)
  NodeId at(const Value& schema);
  NodeId constant(const Value& value);
  NodeId both(NodeId a, NodeId b);
  NodeId either(NodeId a, NodeId b);
  NodeId negate(NodeId a);
  NodeId combine(Node::Kind kind, std::vector<NodeId> ids);
  NodeId add(Node node);
  NodeId intern(Node::Kind kind, List<NodeId> ids);
  bool listed(NodeId id);
  bool simplify_listed(std::vector<NodeId>& ids);
  const Shape* shape(NodeId id);
  const Shape* compute(const Node& node);

  // ---- schemas to shapes (evaluate.cpp)
  const Shape* schema_shape(const Value& schema);
  void read_keywords(const Value& schema, KeywordSet& set);
  const Shape* plain_shape(const KeywordSet& set);
  std::uint32_t types_of(const KeywordSet& set);
  const Shape* simple_shape(std::uint32_t types);
  const NumberPart* number_part(const KeywordSet& set, bool integer);
  const StringPart* string_part(const KeywordSet& set);
  const ArrayPart* array_part(const KeywordSet& set);
  const Shape* combined_shape(const KeywordSet& set);
  const Shape* applied(const KeywordSet& set, Keyword keyword, const Value& value, const Shape* so_far);
  const Value& referenced(const Value& schema, Keyword keyword, const Value& value);
  const Shape* dependents(const Value& value, std::string_view word);
  const Shape* shape_with_key(std::string_view key, NodeId value, bool required);
  const Shape* one_of(std::span<const Value> branches);
  std::uint64_t count_of(const KeywordSet& set, Keyword keyword, std::string_view word, std::uint64_t otherwise);
  std::span<const Value> schema_list(const KeywordSet& set, std::string_view word, const Value& value);

  // ---- unevaluatedItems and unevaluatedProperties (unevaluated.cpp)
  const Shape* unevaluated_items(const Shape* s, NodeId rest);
  const Shape* unevaluated_properties(const Shape* s, NodeId rest);
  std::vector<const Shape*> with_meetings(const std::vector<const Shape*>& branches);
  Evaluated united(const Evaluated& a, const Evaluated& b);

  // ---- const and enum (constants.cpp)
  const Shape* constant_shape(const Value& value);
  const Shape* enum_shape(const Value& values);
  const ObjectPart* constant_object(const Value& value);

  // ---- patterns (patterns.cpp)
  void add_pattern(const Value& at, std::string_view text, std::vector<Pattern>& patterns,
                   std::vector<Pattern>& not_patterns);
  bool asserts_content(const Value& value);
  void add_content(const KeywordSet& set, StringPart* part);
  bool surely_disjoint(const StringPart& a, const StringPart& b);
  bool matches(const Pattern& pattern, std::string_view text);
  bool has_format(std::string_view format, std::string_view text);

  // ---- objects (objects.cpp)
  const ObjectPart* object_part(const KeywordSet& set);
  std::vector<KeyClass> key_classes(const Value& schema, const std::vector<KeyClass>& patterns, NodeId rest);
  const ObjectPart* intersect(const ObjectPart* a, const ObjectPart* b);
  std::vector<KeyClass> cross(List<KeyClass> a, List<KeyClass> b);
  void restrict_names(std::vector<KeyClass>& others, std::vector<Property>& properties, const Value& schema);
  NodeId value_for(const ObjectPart& part, std::string_view key);
  const ObjectPart* finish_object(ObjectPart part);
  List<const ObjectPart*> merged(std::vector<const ObjectPart*> parts);
  const ObjectPart* merge(const ObjectPart& a, const ObjectPart& b);
  bool contained(const ObjectPart& a, const ObjectPart& b);

  // ---- combining (combine.cpp)
  const Shape* intersect(const Shape* a, const Shape* b);
  const Shape* unite(std::span<const Shape* const> shapes);
  const NumberPart* intersect(const NumberPart* a, const NumberPart* b);
  const StringPart* intersect(const StringPart* a, const StringPart* b);
  const ArrayPart* intersect(const ArrayPart* a, const ArrayPart* b);
  const NumberPart* finish_number(NumberPart part);
  const StringPart* finish_string(StringPart part);
  const ArrayPart* finish_array(ArrayPart part);
  bool contains(const NumberPart& part, std::string_view number);
  bool contains(const StringPart& part, std::string_view text);
  template <class Part>
  List<const Part*> product(List<const Part*> a, List<const Part*> b);

  // ---- emptiness (disjoint.cpp): false also when it cannot be seen quickly
  bool surely_empty(NodeId id, int depth);
  bool surely_empty(const Shape& shape, int depth);
  bool surely_empty(const NumberPart& part);
  bool surely_empty(const StringPart& part);
  bool surely_empty(const ArrayPart& part, int depth);
  bool surely_empty(const ObjectPart& part, int depth);
  template <class Part>
  bool hopeless(const Part& part);  // surely_empty, for what is tried often: not deep
  bool surely_disjoint(const Shape& a, const Shape& b);
  bool told_apart(const std::vector<const Shape*>& branches);
  bool discriminated(const std::vector<const Shape*>& branches);
  bool discriminates(const std::vector<const Shape*>& branches, std::string_view name);

  // ---- not (complement.cpp, subtract.cpp)
  const Shape* complement(const Shape* shape);
  const Shape* subtract(const Shape* a, const Shape* b);
  template <class Part>
  List<const Part*> subtract(List<const Part*> from, List<const Part*> what);
  // A part as a conjunction of parts with one constraint each.
  std::vector<const NumberPart*> atoms(const NumberPart& part);
  std::vector<const StringPart*> atoms(const StringPart& part);
  std::vector<const ArrayPart*> atoms(const ArrayPart& part);
  std::vector<const ObjectPart*> atoms(const ObjectPart& part);
  List<const NumberPart*> complement(const NumberPart& part);
  List<const StringPart*> complement(const StringPart& part);
  List<const ArrayPart*> complement(const ArrayPart& part);
  List<const ObjectPart*> complement(const ObjectPart& part);

  // ---- shapes to symbols (lower.cpp)
  Symbol lower(NodeId id);
  Symbol lower(const Shape* shape);
  void lower_rest();
  Symbol lower_parts(const Shape& shape);
  std::vector<std::string> spellings(const NumberPart& part, std::string_view value);
  Symbol one_of_texts(std::vector<std::string> texts);
  static std::string one_of_pattern(const std::vector<std::string>& texts);
  void lower_literals(const Shape& shape, std::vector<Symbol>& out);
  Symbol lower(const ArrayPart& part);
  Symbol lower_counted(const ArrayPart& part);
  std::optional<Symbol> lower_distinct(const ArrayPart& part, std::string* why);
  bool distinct_numbers(const Shape& item, UniqueArraySpec* spec);
  bool distinct_strings(const ArrayPart& part, UniqueArraySpec* spec);
  Symbol lower(const ObjectPart& part);
  struct Others {
    KeyClass keys;
    std::uint32_t meets;  // the needs that such a key could meet
    bool listed;          // its keys are properties
  };
  List<std::string_view> few_strings(const StringPart& part);
  bool is_listed(const StringPart& keys) { return keys.finite || !few_strings(keys).empty(); }
  const ObjectPart& with_named_keys(const ObjectPart& part);
  std::vector<Others> split_by_needs(List<KeyClass> others, const std::vector<Need>& needs);
  Symbol lower_object(const ObjectPart& part, const std::vector<Need>& needs);
  StringLanguage language(const StringPart& part);
  NumberLanguage language(const NumberPart& part);
  TerminalPtr string_terminal(const StringPart& part);
  TerminalPtr number_terminal(const NumberPart& part);
  [[noreturn]] void blame_pattern(const GrammarError& error, const StringPart& part);

  // ---- messages (compile.cpp)
  [[noreturn]] void fail(const Value& at, std::string_view keyword, std::string message, std::string hint);
  // Throws, unless the caller asked for loose schemas: then notes it and returns.
  void unsupported(const Value& at, std::string_view keyword, std::string message, std::string hint);
  void note(Note::Kind kind, const Value& at, std::string_view keyword, std::string_view why = {});
  void conflict(const char* keyword, const char* why);
  void check_room();  // refuses a schema whose combinations have grown out of proportion
  void check_unicode(const Value& string, std::string_view keyword);
  [[noreturn]] void explain_empty(NodeId root, std::string_view built = {});
  void write_coverage();

  // ---- memory
  template <class T>
  List<T> keep(const std::vector<T>& items) {
    if (items.empty()) return {};
    T* out = arena_.array<T>(items.size());
    std::uninitialized_copy(items.begin(), items.end(), out);
    return {out, items.size()};
  }
  template <class T>
  List<T> one(T item) {
    return {arena_.make<T>(item), 1};
  }
  std::string_view keep_text(std::string_view text);

  std::string_view text_;
  const SchemaOptions& options_;
  TerminalPool& pool_;
  const Limits& limits_;
  Coverage* coverage_;

  Arena arena_;
  Builder builder_;
  const Value* root_ = nullptr;
  std::unique_ptr<References> references_;
  Draft draft_ = Draft::k2020;
  bool content_describes_ = false;  // $schema names a draft that makes annotations of contentEncoding and its kin
  bool tracks_evaluated_ = false;   // whether the schema has a word that asks for it

  std::vector<Node> nodes_;
  std::unordered_map<std::uint64_t, std::vector<NodeId>> interned_;
  const Shape* any_ = nullptr;
  const Shape* never_ = nullptr;
  const Shape* simple_[128] = {};      // by set of types
  const Value* here_ = nullptr;        // the schema whose keywords are being read
  std::uint32_t probing_ = 0;          // inside surely_empty()
  std::uint32_t searches_left_ = 400;  // for empty intersections of strings or numbers: proofs, never needed
  std::uint32_t depth_ = 0;            // of schemas applied in place
  std::uint32_t nesting_ = 0;          // of lower()
  std::unordered_map<std::string_view, StringTest> tests_;                                  // by pattern
  std::map<std::tuple<const char*, std::size_t, const char*, std::size_t>, bool> matched_;  // by address: all live on
  std::unordered_map<const StringPart*, List<std::string_view>> few_;
  std::vector<const Shape*> later_;
  std::vector<Conflict> conflicts_;
  std::vector<Note> notes_;
};

}  // namespace ag::schema
