// One shape without another, in pieces that do not overlap: a \ (c1 and c2) is (a and not c1) or (a and c1 and not c2),
// and what is empty is dropped at once. Products of complements would overlap and multiply.
#include "schema/compiler.h"

namespace ag::schema {

namespace {

// An empty piece does no harm but that it is carried along. For strings a proof is an intersection of automata, so it is
// made only where pieces are many.
template <class Part>
bool is_worth_a_proof(std::size_t pieces) {
  constexpr std::size_t kFew = 8;
  return !std::is_same_v<Part, StringPart> || pieces >= kFew;
}

}  // namespace

const Shape* Compiler::subtract(const Shape* a, const Shape* b) {
  if (b->empty()) return a;
  Shape out;
  out.scalars = static_cast<std::uint8_t>(a->scalars & ~b->scalars);
  out.numbers = subtract(a->numbers, b->numbers);
  out.strings = subtract(a->strings, b->strings);
  out.arrays = subtract(a->arrays, b->arrays);
  out.objects = subtract(a->objects, b->objects);
  if (out.objects.size() > 1) out.objects = merged({out.objects.begin(), out.objects.end()});
  return arena_.make<Shape>(out);
}

template <class Part>
List<const Part*> Compiler::subtract(List<const Part*> from, List<const Part*> what) {
  if (from.empty() || what.empty()) return from;
  std::vector<const Part*> pieces(from.begin(), from.end());
  for (const Part* q : what) {
    std::vector<const Part*> left;
    for (const Part* p : pieces) {
      check_room();
      const Part* rest = intersect(p, q);
      if (!rest || hopeless(*rest)) {
        left.push_back(p);
        continue;
      }
      rest = p;
      for (const Part* atom : atoms(*q)) {
        for (const Part* opposite : complement(*atom)) {
          const Part* piece = intersect(rest, opposite);
          if (piece && !(is_worth_a_proof<Part>(left.size()) && hopeless(*piece))) left.push_back(piece);
        }
        rest = intersect(rest, atom);
        if (!rest) break;
      }
      if (left.size() > kMaxParts) {
        fail(*here_, "", "its alternatives combine to more than " + std::to_string(kMaxParts) + " cases",
             "Split the schema, or tell the alternatives apart by one property.");
      }
    }
    pieces = std::move(left);
  }
  return keep(pieces);
}

std::vector<const NumberPart*> Compiler::atoms(const NumberPart& part) {
  if (part.finite) return {&part};
  std::vector<const NumberPart*> out;
  auto add = [&](auto set) {
    NumberPart p;
    set(p);
    out.push_back(arena_.make<NumberPart>(p));
  };
  if (part.integer) out.push_back(&kAnyInteger);
  if (!part.minimum.empty()) add([&](NumberPart& p) { p.minimum = part.minimum; });
  if (!part.exclusive_minimum.empty()) add([&](NumberPart& p) { p.exclusive_minimum = part.exclusive_minimum; });
  if (!part.maximum.empty()) add([&](NumberPart& p) { p.maximum = part.maximum; });
  if (!part.exclusive_maximum.empty()) add([&](NumberPart& p) { p.exclusive_maximum = part.exclusive_maximum; });
  for (std::string_view d : part.multiple_of) add([&](NumberPart& p) { p.multiple_of = one(d); });
  for (std::string_view d : part.not_multiple_of) add([&](NumberPart& p) { p.not_multiple_of = one(d); });
  if (!part.excluded.empty()) add([&](NumberPart& p) { p.excluded = part.excluded; });
  return out;
}

std::vector<const StringPart*> Compiler::atoms(const StringPart& part) {
  if (part.finite) return {&part};
  std::vector<const StringPart*> out;
  auto add = [&](auto set) {
    StringPart p;
    set(p);
    out.push_back(arena_.make<StringPart>(p));
  };
  if (part.min_length > 0) add([&](StringPart& p) { p.min_length = part.min_length; });
  if (part.max_length != kNoMax) add([&](StringPart& p) { p.max_length = part.max_length; });
  for (const Pattern& x : part.patterns) add([&](StringPart& p) { p.patterns = one(x); });
  for (const Pattern& x : part.not_patterns) add([&](StringPart& p) { p.not_patterns = one(x); });
  for (std::string_view x : part.formats) add([&](StringPart& p) { p.formats = one(x); });
  for (std::string_view x : part.not_formats) add([&](StringPart& p) { p.not_formats = one(x); });
  if (!part.excluded.empty()) add([&](StringPart& p) { p.excluded = part.excluded; });
  return out;
}

std::vector<const ArrayPart*> Compiler::atoms(const ArrayPart& part) {
  std::vector<const ArrayPart*> out;
  auto add = [&](auto set) {
    ArrayPart p;
    set(p);
    out.push_back(arena_.make<ArrayPart>(p));
  };
  if (part.min_items > 0) add([&](ArrayPart& p) { p.min_items = part.min_items; });
  if (part.max_items != kNoMax) add([&](ArrayPart& p) { p.max_items = part.max_items; });
  for (std::size_t i = 0; i < part.prefix.size(); ++i) {
    if (part.prefix[i] == kAny) continue;
    std::vector<NodeId> prefix(i, kAny);
    prefix.push_back(part.prefix[i]);
    add([&](ArrayPart& p) { p.prefix = keep(prefix); });
  }
  if (part.item != kAny) {
    std::vector<NodeId> prefix(part.prefix.size(), kAny);
    add([&](ArrayPart& p) {
      p.prefix = keep(prefix);
      p.item = part.item;
    });
  }
  if (part.unique) add([&](ArrayPart& p) { p.unique = part.unique; });
  for (const Contains& c : part.contains) add([&](ArrayPart& p) { p.contains = one(c); });
  return out;
}

std::vector<const ObjectPart*> Compiler::atoms(const ObjectPart& part) {
  std::vector<const ObjectPart*> out;
  auto add = [&](auto set) {
    ObjectPart p = kAnyObject;
    set(p);
    out.push_back(arena_.make<ObjectPart>(p));
  };
  for (const Property& x : part.properties) {
    if (x.required) add([&](ObjectPart& p) { p.properties = one(Property{x.name, kAny, true, false}); });
    if (x.value != kAny) add([&](ObjectPart& p) { p.properties = one(Property{x.name, x.value, false, false}); });
  }
  if (part.min_properties > 0) add([&](ObjectPart& p) { p.min_properties = part.min_properties; });
  if (part.max_properties != kNoMax) add([&](ObjectPart& p) { p.max_properties = part.max_properties; });
  for (const Dependency& d : part.dependencies) add([&](ObjectPart& p) { p.dependencies = one(d); });
  std::vector<Property> names;
  for (const Property& x : part.properties) names.push_back({x.name, kAny, false, false});
  for (std::size_t i = 0; i < part.others.size(); ++i) {
    if (part.others[i].value == kAny) continue;
    std::vector<KeyClass> classes;
    for (std::size_t j = 0; j < part.others.size(); ++j) {
      classes.push_back({part.others[j].keys, i == j ? part.others[j].value : kAny});
    }
    add([&](ObjectPart& p) {
      p.properties = keep(names);
      p.others = keep(classes);
    });
  }
  for (const Need& n : part.needs) add([&](ObjectPart& p) { p.needs = one(n); });
  return out;
}

template List<const NumberPart*> Compiler::subtract(List<const NumberPart*>, List<const NumberPart*>);
template List<const StringPart*> Compiler::subtract(List<const StringPart*>, List<const StringPart*>);
template List<const ArrayPart*> Compiler::subtract(List<const ArrayPart*>, List<const ArrayPart*>);
template List<const ObjectPart*> Compiler::subtract(List<const ObjectPart*>, List<const ObjectPart*>);

}  // namespace ag::schema
