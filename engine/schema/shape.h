// What a schema allows, sorted by type: a Shape is a union of parts, one list a type, and each part is a conjunction.
//
// Children (the schemas of properties and items) stay symbolic, as nodes: Boolean expressions over places in the
// schema. A node is turned into a Shape only when something needs it, so recursion through children costs nothing, and
// whatever combines schemas (allOf, siblings of $ref, oneOf, not, if) is intersection, union or complement of Shapes,
// one level deep.
//
// All of it lives in the compiler's arena: nothing here has a destructor.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"
#include "grammar/builder.h"
#include "schema/json.h"

namespace ag::schema {

using NodeId = std::uint32_t;
inline constexpr NodeId kNever = 1, kAny = 2;

template <class T>
using List = std::span<const T>;

// A regular expression, and the value that holds it, for messages.
struct Pattern {
  std::string_view text;
  const json::Value* at;
};

struct NumberPart {
  bool finite = false;
  List<std::string_view> values;  // finite: just these, as spelled in the schema
  bool integer = false;
  std::string_view minimum{}, exclusive_minimum{}, maximum{}, exclusive_maximum{};
  List<std::string_view> multiple_of{};
  List<std::string_view> not_multiple_of{};  // "1": not an integer
  List<std::string_view> excluded{};
};

struct StringPart {
  bool finite = false;
  List<std::string_view> values;  // finite: just these
  List<Pattern> patterns{}, not_patterns{};
  List<std::string_view> formats{}, not_formats{}, excluded{};
  std::uint64_t min_length = 0, max_length = kNoMax;
};

// From min to max of the items at index `from` and later have such a value.
struct Contains {
  NodeId value;
  std::uint64_t min, max;
  const json::Value* at;
  std::uint64_t from = 0;
};

struct ArrayPart {
  List<NodeId> prefix;
  NodeId item = kAny;  // after the prefix
  std::uint64_t min_items = 0, max_items = kNoMax;
  const json::Value* unique = nullptr;  // the schema that says so
  List<Contains> contains{};
  // For unevaluatedItems: items below this index were looked at by a schema, and so were those of such values.
  std::uint64_t evaluated = 0;
  List<NodeId> evaluated_if{};
};

struct Property {
  std::string_view name;
  NodeId value;
  bool required;
  bool declared;  // by `properties`: comes before what is only required
};

// Keys that are no property's. The first class that holds a key decides; the last class holds every key.
struct KeyClass {
  const StringPart* keys;  // nullptr: every key
  NodeId value;
};

// Some key of these, a property's or another, has such a value.
struct Need {
  const StringPart* keys;  // nullptr: any key
  NodeId value;
  const json::Value* at;
};

// `key` brings `other` along.
struct Dependency {
  std::string_view key, other;
};

// For unevaluatedProperties: the keys whose values some schema has looked at.
struct Evaluated {
  bool all = false;
  List<std::string_view> names{};
  List<const StringPart*> classes{};
};

struct ObjectPart {
  List<Property> properties;
  List<KeyClass> others;
  std::uint64_t min_properties = 0, max_properties = kNoMax;
  List<Dependency> dependencies{};
  List<Need> needs{};
  Evaluated evaluated{};
};

struct Shape {
  enum Scalar : std::uint8_t { kNull = 1, kTrue = 2, kFalse = 4, kScalars = 7 };
  std::uint8_t scalars = 0;
  List<const NumberPart*> numbers{};
  List<const StringPart*> strings{};
  List<const ArrayPart*> arrays{};
  List<const ObjectPart*> objects{};

  // Lowering: not begun, begun (a reference was made when `symbol` is set), done.
  enum State : std::uint8_t { kNew, kOpen, kDone };
  mutable State state = kNew;
  mutable Symbol symbol{};

  Shape copy() const {
    Shape s = *this;
    s.state = kNew;
    s.symbol = {};
    return s;
  }
  bool empty() const { return !scalars && numbers.empty() && strings.empty() && arrays.empty() && objects.empty(); }
};

// Unconstrained parts; compared by address.
extern const NumberPart kAnyNumber, kAnyInteger;
extern const StringPart kAnyString;
extern const ArrayPart kAnyArray;
extern const ObjectPart kAnyObject;
extern const List<KeyClass> kAnyOthers, kNoOthers;

}  // namespace ag::schema
