// From the keywords of one schema object to what it allows.
#include <algorithm>

#include "schema/compiler.h"

namespace ag::schema {

using json::Member;
using json::Type;

namespace {

enum TypeBit : std::uint32_t {
  kNullBit = 1,
  kBoolBit = 2,
  kNumberBit = 4,
  kIntegerBit = 8,
  kStringBit = 16,
  kArrayBit = 32,
  kObjectBit = 64
};
constexpr std::uint32_t kAllTypes = kNullBit | kBoolBit | kNumberBit | kStringBit | kArrayBit | kObjectBit;

constexpr std::uint64_t bits(std::initializer_list<Keyword> words) {
  std::uint64_t out = 0;
  for (Keyword k : words) out |= KeywordSet::bit(k);
  return out;
}

constexpr std::uint64_t kNumberWords = bits({Keyword::kMinimum, Keyword::kMaximum, Keyword::kExclusiveMinimum,
                                             Keyword::kExclusiveMaximum, Keyword::kMultipleOf});
constexpr std::uint64_t kStringWords = bits({Keyword::kMinLength, Keyword::kMaxLength, Keyword::kPattern,
                                             Keyword::kFormat, Keyword::kContentEncoding, Keyword::kContentMediaType});
constexpr std::uint64_t kArrayWords =
    bits({Keyword::kItems, Keyword::kPrefixItems, Keyword::kAdditionalItems, Keyword::kContains, Keyword::kMinContains,
          Keyword::kMaxContains, Keyword::kMinItems, Keyword::kMaxItems, Keyword::kUniqueItems});
constexpr std::uint64_t kObjectWords =
    bits({Keyword::kProperties, Keyword::kRequired, Keyword::kAdditionalProperties, Keyword::kPatternProperties,
          Keyword::kPropertyNames, Keyword::kMinProperties, Keyword::kMaxProperties, Keyword::kDependentRequired});
constexpr std::uint64_t kPlainWords = kNumberWords | kStringWords | kArrayWords | kObjectWords | bits({Keyword::kType});
constexpr std::uint64_t kAppliedWords = bits(
    {Keyword::kEnum, Keyword::kConst, Keyword::kAllOf, Keyword::kAnyOf, Keyword::kOneOf, Keyword::kNot, Keyword::kIf,
     Keyword::kRef, Keyword::kDynamicRef, Keyword::kRecursiveRef, Keyword::kDependentSchemas, Keyword::kDependencies});
constexpr std::uint64_t kBranchWords = bits({Keyword::kThen, Keyword::kElse});
constexpr std::uint64_t kUnevaluatedWords = bits({Keyword::kUnevaluatedItems, Keyword::kUnevaluatedProperties});

// How the strings that are written differ from all strings of a format.
std::string_view narrowing_of(std::string_view format) {
  if (format == "time" || format == "date-time") return "leap seconds are not written";
  if (format == "email" || format == "idn-email") return "quoted local parts and address literals are not written";
  if (format == "hostname") return "labels in Punycode (xn--) are not written";
  if (format == "idn-hostname")
    return "only scripts without rules about neighbouring letters are written, in short labels";
  if (format == "uri-template") return "the operators that RFC 6570 keeps for later are not written";
  if (format == "regex") return "groups nest at most three deep; names and references are not written";
  return {};
}

// The first draft that knows the keyword.
Draft first_draft(Keyword k) {
  switch (k) {
    case Keyword::kConst:
    case Keyword::kContains:
    case Keyword::kPropertyNames:
      return Draft::k6;
    case Keyword::kIf:
    case Keyword::kThen:
    case Keyword::kElse:
      return Draft::k7;
    case Keyword::kDependentRequired:
    case Keyword::kDependentSchemas:
    case Keyword::kMinContains:
    case Keyword::kMaxContains:
    case Keyword::kUnevaluatedItems:
    case Keyword::kUnevaluatedProperties:
    case Keyword::kRecursiveRef:
      return Draft::k2019;
    case Keyword::kPrefixItems:
    case Keyword::kDynamicRef:
      return Draft::k2020;
    default:
      return Draft::k4;
  }
}

}  // namespace

void Compiler::read_keywords(const Value& schema, KeywordSet& set) {
  set.schema = &schema;
  bool ref_alone = draft_ <= Draft::k7 && schema.find("$ref");
  for (const Member& m : schema.members()) {
    Keyword k = keyword_of(m.key);
    if (ref_alone && k != Keyword::kRef) {
      if (coverage_ && (KeywordSet::bit(k) & (kPlainWords | kAppliedWords))) {
        note(Note::kWarning, schema, m.key, "up to draft 7, keywords beside $ref do not count");
      }
      continue;
    }
    if (draft_ < Draft::k2020 && first_draft(k) > draft_) {
      if (coverage_) note(Note::kWarning, schema, m.key, "the draft that $schema names does not know this keyword");
      continue;
    }
    if ((k == Keyword::kContentEncoding || k == Keyword::kContentMediaType) && !asserts_content(m.value)) continue;
    set.set(k, m.value);
    if (coverage_ && (KeywordSet::bit(k) & (kPlainWords | kAppliedWords | kBranchWords | kUnevaluatedWords))) {
      note(Note::kEnforced, schema, m.key);
    }
    if (coverage_ && k == Keyword::kUnknown) {
      std::string_view near = nearest_keyword(m.key);
      if (!near.empty()) note(Note::kWarning, schema, m.key, "unknown; did you mean \"" + std::string(near) + "\"?");
    }
    if (coverage_ && m.key == "nullable") {
      note(Note::kWarning, schema, m.key, "OpenAPI's word, which JSON Schema ignores; add \"null\" to the type");
    }
  }
}

const Shape* Compiler::schema_shape(const Value& schema) {
  const Inside inside(*this, schema);
  if (depth_ > kMaxInPlace) {
    fail(schema, "", "schemas are applied in place more than " + std::to_string(kMaxInPlace) + " levels deep",
         "Flatten allOf, anyOf and $ref.");
  }
  KeywordSet set;
  read_keywords(schema, set);
  const Shape* out = any_;
  if (set.present & (kAppliedWords | kUnevaluatedWords)) {
    out = combined_shape(set);
  } else if (set.present & kPlainWords) {
    out = plain_shape(set);
  }
  return out;
}

// Keywords in the order of the text, which is the order of the merged properties. What belongs to the object itself
// counts where `properties` stands.
const Shape* Compiler::combined_shape(const KeywordSet& set) {
  bool plain_done = !(set.present & kPlainWords);
  Keyword plain_place = set.has(Keyword::kProperties) ? Keyword::kProperties : Keyword::kUnknown;
  const Shape* out = any_;
  for (const Member& m : set.schema->members()) {
    Keyword k = keyword_of(m.key);
    std::uint64_t bit = KeywordSet::bit(k) & set.present;
    if (!plain_done && (bit & kPlainWords) && (plain_place == Keyword::kUnknown || k == plain_place)) {
      plain_done = true;
      out = intersect(out, plain_shape(set));
    } else if (bit & kAppliedWords) {
      if (k != Keyword::kNot) out = intersect(out, applied(set, k, m.value, out));
    }
  }
  if (const Value* v = set[Keyword::kNot]) out = applied(set, Keyword::kNot, *v, out);
  if (const Value* v = set[Keyword::kUnevaluatedItems]) out = unevaluated_items(out, at(*v));
  if (const Value* v = set[Keyword::kUnevaluatedProperties]) out = unevaluated_properties(out, at(*v));
  if (out->empty() && conflicts_.empty()) conflict("", "its keywords contradict each other");
  return out;
}

// What a keyword with schemas in it allows; of `so_far`, for `not`, which is small only where there is something to
// rule out.
const Shape* Compiler::applied(const KeywordSet& set, Keyword keyword, const Value& value, const Shape* so_far) {
  const Value& schema = *set.schema;
  switch (keyword) {
    case Keyword::kEnum:
      return enum_shape(value);
    case Keyword::kConst:
      return constant_shape(value);
    case Keyword::kRef:
    case Keyword::kDynamicRef:
    case Keyword::kRecursiveRef:
      return shape(at(referenced(schema, keyword, value)));
    case Keyword::kAllOf: {
      const Shape* out = any_;
      for (const Value& branch : schema_list(set, "allOf", value)) out = intersect(out, shape(at(branch)));
      return out;
    }
    case Keyword::kAnyOf: {
      std::vector<const Shape*> branches;
      for (const Value& branch : schema_list(set, "anyOf", value)) branches.push_back(shape(at(branch)));
      return tracks_evaluated_ ? unite(with_meetings(branches)) : unite(branches);
    }
    case Keyword::kOneOf:
      return one_of(schema_list(set, "oneOf", value));
    case Keyword::kNot:
      if (at(value) == kAny) conflict("not", "everything is ruled out");
      return so_far == any_ ? shape(negate(at(value))) : subtract(so_far, shape(at(value)));
    case Keyword::kIf: {
      const Value *then = set[Keyword::kThen], *otherwise = set[Keyword::kElse];
      if (!then && !otherwise && !tracks_evaluated_) return any_;
      NodeId condition = at(value);
      const Shape* branches[] = {shape(both(condition, then ? at(*then) : kAny)),
                                 shape(both(negate(condition), otherwise ? at(*otherwise) : kAny))};
      return unite(branches);
    }
    case Keyword::kDependentSchemas:
      return dependents(value, "dependentSchemas");
    case Keyword::kDependencies:
      return dependents(value, "dependencies");
    default:
      return any_;
  }
}

const Value& Compiler::referenced(const Value& schema, Keyword keyword, const Value& value) {
  std::string_view word = keyword == Keyword::kRef          ? "$ref"
                          : keyword == Keyword::kDynamicRef ? "$dynamicRef"
                                                            : "$recursiveRef";
  if (!value.is(Type::kString))
    fail(schema, word, std::string(word) + " must be a string", "Write a reference such as \"#/$defs/x\".");
  if (!references_) references_ = std::make_unique<References>(*root_, text_, draft_);
  std::string why;
  const Value* target = keyword == Keyword::kDynamicRef ? references_->find_dynamic(schema, value.text(), &why)
                                                        : references_->find(schema, value.text(), &why);
  if (target && keyword == Keyword::kRecursiveRef && target->find("$recursiveAnchor")) {
    target = nullptr;
    why = "which $recursiveAnchor it means depends on the way that led there";
  }
  if (target) return *target;
  fail(schema, word, "\"" + std::string(value.text()) + "\" leads nowhere: " + why,
       value.text().starts_with('/') ? "A pointer into this document starts with \"#/\"."
                                     : "Put what is referred to under $defs and refer to it as \"#/$defs/name\".");
}

// A key brings a list of other keys along, or a schema for the whole object.
const Shape* Compiler::dependents(const Value& value, std::string_view word) {
  if (!value.is(Type::kObject)) fail(*here_, word, std::string(word) + " must be an object", "");
  const Shape* out = any_;
  std::vector<Dependency> lists;
  for (const Member& m : value.members()) {
    if (m.value.is(Type::kArray)) {
      for (const Value& other : m.value.items()) {
        if (!other.is(Type::kString))
          fail(*here_, word, "a list of keys holds " + json::excerpt(other), "Write strings.");
        lists.push_back({m.key, other.text()});
      }
      continue;
    }
    NodeId schema = at(m.value);
    if (schema == kAny) continue;
    const Shape* branches[] = {shape_with_key(m.key, kNever, false),
                               intersect(shape_with_key(m.key, kAny, true), shape(schema))};
    out = intersect(out, unite(branches));
  }
  if (lists.empty()) return out;
  ObjectPart part = kAnyObject;
  part.dependencies = keep(lists);
  Shape all = any_->copy();
  all.objects = one<const ObjectPart*>(arena_.make<ObjectPart>(part));
  return intersect(out, arena_.make<Shape>(all));
}

// Objects where `key` has such a value; anything else is allowed only when the key is not required.
const Shape* Compiler::shape_with_key(std::string_view key, NodeId value, bool required) {
  ObjectPart part = kAnyObject;
  part.properties = one(Property{key, value, required, false});
  Shape out = required ? Shape{} : any_->copy();
  out.objects = one<const ObjectPart*>(arena_.make<ObjectPart>(part));
  return arena_.make<Shape>(out);
}

// Exactly one of the branches: each of them without the others, which costs nothing where they cannot meet.
const Shape* Compiler::one_of(std::span<const Value> branches) {
  std::vector<const Shape*> shapes;
  for (const Value& branch : branches) shapes.push_back(shape(at(branch)));
  if (told_apart(shapes)) return unite(shapes);
  std::vector<const Shape*> alone;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Shape* rest = shapes[i];
    for (std::size_t j = 0; j < shapes.size() && !rest->empty(); ++j) {
      if (j != i) rest = subtract(rest, shapes[j]);
    }
    alone.push_back(rest);
  }
  const Shape* out = unite(alone);
  if (out->empty()) conflict("oneOf", "no value is in exactly one of the branches");
  return out;
}

std::span<const Value> Compiler::schema_list(const KeywordSet& set, std::string_view word, const Value& value) {
  if (!value.is(Type::kArray) || value.size == 0) {
    fail(*set.schema, word, std::string(word) + " must be a list of schemas, and not an empty one", "");
  }
  return value.items();
}

std::uint32_t Compiler::types_of(const KeywordSet& set) {
  const Value* type = set[Keyword::kType];
  if (!type) return kAllTypes;
  auto one_type = [&](const Value& v) -> std::uint32_t {
    if (v.is(Type::kString)) {
      std::string_view t = v.text();
      if (t == "string") return kStringBit;
      if (t == "integer") return kIntegerBit;
      if (t == "number") return kNumberBit;
      if (t == "boolean") return kBoolBit;
      if (t == "null") return kNullBit;
      if (t == "array") return kArrayBit;
      if (t == "object") return kObjectBit;
    }
    fail(*set.schema, "type", json::excerpt(v) + " is no JSON type",
         "The types are string, number, integer, boolean, null, array and object.");
  };
  std::uint32_t out = 0;
  if (type->is(Type::kArray)) {
    for (const Value& v : type->items()) out |= one_type(v);
  } else {
    out = one_type(*type);
  }
  if (out & kNumberBit) out &= ~std::uint32_t{kIntegerBit};
  if (!out) conflict("type", "the list of types is empty");
  return out;
}

const Shape* Compiler::simple_shape(std::uint32_t types) {
  if (types == kAllTypes) return any_;
  const Shape*& slot = simple_[types];
  if (slot) return slot;
  Shape s;
  if (types & kNullBit) s.scalars |= Shape::kNull;
  if (types & kBoolBit) s.scalars |= Shape::kTrue | Shape::kFalse;
  if (types & (kNumberBit | kIntegerBit))
    s.numbers = one<const NumberPart*>(types & kNumberBit ? &kAnyNumber : &kAnyInteger);
  if (types & kStringBit) s.strings = one<const StringPart*>(&kAnyString);
  if (types & kArrayBit) s.arrays = one<const ArrayPart*>(&kAnyArray);
  if (types & kObjectBit) s.objects = one<const ObjectPart*>(&kAnyObject);
  return slot = arena_.make<Shape>(s);
}

const Shape* Compiler::plain_shape(const KeywordSet& set) {
  std::uint32_t types = types_of(set);
  bool numbers = (types & (kNumberBit | kIntegerBit)) && (set.present & kNumberWords);
  bool strings = (types & kStringBit) && (set.present & kStringWords);
  bool arrays = (types & kArrayBit) && (set.present & kArrayWords);
  bool objects = (types & kObjectBit) && (set.present & kObjectWords);
  const Shape* simple = simple_shape(types);
  if (!numbers && !strings && !arrays && !objects) return simple;
  Shape s = simple->copy();
  auto put = [&](auto& list, auto part) { list = part ? one(part) : decltype(one(part)){}; };
  if (numbers) put(s.numbers, number_part(set, types & kIntegerBit));
  if (strings) put(s.strings, string_part(set));
  if (arrays) put(s.arrays, array_part(set));
  if (objects) put(s.objects, object_part(set));
  return arena_.make<Shape>(s);
}

const NumberPart* Compiler::number_part(const KeywordSet& set, bool integer) {
  NumberPart part;
  part.integer = integer;
  auto number = [&](Keyword k, std::string_view word) -> std::string_view {
    const Value* v = set[k];
    if (!v) return {};
    if (!v->is(Type::kNumber))
      fail(*set.schema, word, std::string(word) + " must be a number, not " + json::excerpt(*v), "");
    return v->text();
  };
  part.minimum = number(Keyword::kMinimum, "minimum");
  part.maximum = number(Keyword::kMaximum, "maximum");
  // Draft 4 wrote `exclusiveMinimum: true` beside `minimum`.
  auto exclusive = [&](Keyword k, std::string_view word, std::string_view& plain, std::string_view& out) {
    const Value* v = set[k];
    if (!v) return;
    if (!v->boolean()) {
      out = number(k, word);
    } else if (v->is(Type::kTrue)) {
      std::swap(plain, out);
    }
  };
  exclusive(Keyword::kExclusiveMinimum, "exclusiveMinimum", part.minimum, part.exclusive_minimum);
  exclusive(Keyword::kExclusiveMaximum, "exclusiveMaximum", part.maximum, part.exclusive_maximum);
  if (std::string_view d = number(Keyword::kMultipleOf, "multipleOf"); !d.empty()) {
    Decimal divisor = Decimal::parse(d);
    if (divisor.zero() || divisor.negative) fail(*set.schema, "multipleOf", "multipleOf must be greater than 0", "");
    part.multiple_of = one(d);
    note(Note::kNarrowed, *set.schema, "multipleOf", "numbers are written without an exponent");
  }
  return finish_number(part);
}

std::uint64_t Compiler::count_of(const KeywordSet& set, Keyword keyword, std::string_view word,
                                 std::uint64_t otherwise) {
  const Value* v = set[keyword];
  if (!v) return otherwise;
  if (v->is(Type::kNumber)) {
    Decimal d = Decimal::parse(v->text());
    if (!d.negative && d.integer()) return d.plain_size() > 18 ? kNoMax - 1 : std::stoull(d.plain());
  }
  fail(*set.schema, word, std::string(word) + " must be a non-negative integer, not " + json::excerpt(*v), "");
}

const StringPart* Compiler::string_part(const KeywordSet& set) {
  StringPart part;
  part.min_length = count_of(set, Keyword::kMinLength, "minLength", 0);
  part.max_length = count_of(set, Keyword::kMaxLength, "maxLength", kNoMax);
  if (const Value* v = set[Keyword::kPattern]) {
    if (!v->is(Type::kString)) fail(*set.schema, "pattern", "pattern must be a string, not " + json::excerpt(*v), "");
    check_unicode(*v, "pattern");
    std::vector<Pattern> patterns, not_patterns;
    add_pattern(*v, v->text(), patterns, not_patterns);
    part.patterns = keep(patterns);
    part.not_patterns = keep(not_patterns);
  }
  if (const Value* v = set[Keyword::kFormat]) {
    if (!v->is(Type::kString)) fail(*set.schema, "format", "format must be a string, not " + json::excerpt(*v), "");
    if (known_format(v->text())) {
      part.formats = one(v->text());
      std::string_view less = coverage_ ? narrowing_of(v->text()) : std::string_view{};
      if (!less.empty()) note(Note::kNarrowed, *set.schema, "format", less);
    } else if (coverage_) {
      note(Note::kWarning, *set.schema, "format",
           std::string(v->text()) + " is not a known format, so it only describes");
    }
  }
  if (set.has(Keyword::kContentEncoding) || set.has(Keyword::kContentMediaType)) add_content(set, &part);
  return finish_string(part);
}

const ArrayPart* Compiler::array_part(const KeywordSet& set) {
  ArrayPart part;
  std::vector<NodeId> prefix;
  const Value *prefix_items = set[Keyword::kPrefixItems], *items = set[Keyword::kItems];
  const Value *list = prefix_items, *rest = items;
  if (!prefix_items && items && items->is(Type::kArray)) {  // the tuples of earlier drafts
    list = items;
    rest = set[Keyword::kAdditionalItems];
  }
  if (list) {
    if (!list->is(Type::kArray)) fail(*set.schema, "prefixItems", "prefixItems must be a list of schemas", "");
    for (const Value& v : list->items()) prefix.push_back(at(v));
    part.prefix = keep(prefix);
  }
  if (rest) part.item = at(*rest);
  part.min_items = count_of(set, Keyword::kMinItems, "minItems", 0);
  part.max_items = count_of(set, Keyword::kMaxItems, "maxItems", kNoMax);
  if (const Value* v = set[Keyword::kUniqueItems]) {
    if (!v->boolean())
      fail(*set.schema, "uniqueItems", "uniqueItems must be true or false, not " + json::excerpt(*v), "");
    if (v->is(Type::kTrue)) part.unique = set.schema;
  }
  if (const Value* v = set[Keyword::kContains]) {
    Contains c{at(*v), count_of(set, Keyword::kMinContains, "minContains", 1),
               count_of(set, Keyword::kMaxContains, "maxContains", kNoMax), set.schema};
    if (c.min > 0 || c.max != kNoMax) part.contains = one(c);
    if (tracks_evaluated_ && draft_ >= Draft::k2020) part.evaluated_if = one(c.value);
  }
  if (tracks_evaluated_) part.evaluated = rest ? kNoMax : prefix.size();
  return finish_array(part);
}

}  // namespace ag::schema
