// unevaluatedItems and unevaluatedProperties: parts remember what the schemas that made them have looked at.
#include <algorithm>

#include "schema/compiler.h"

namespace ag::schema {

namespace {

template <class T>
std::vector<T> joined(List<T> a, List<T> b) {
  std::vector<T> out(a.begin(), a.end());
  for (const T& x : b) {
    if (std::find(out.begin(), out.end(), x) == out.end()) out.push_back(x);
  }
  return out;
}

}  // namespace

Evaluated Compiler::united(const Evaluated& a, const Evaluated& b) {
  if (!tracks_evaluated_) return {};
  return {a.all || b.all, keep(joined(a.names, b.names)), keep(joined(a.classes, b.classes))};
}

// Branches of anyOf, and what is in several of them: there, all of those have looked.
std::vector<const Shape*> Compiler::with_meetings(const std::vector<const Shape*>& branches) {
  constexpr std::size_t kMaxBranches = 8;
  if (branches.size() > kMaxBranches) {
    fail(*here_, "anyOf", "anyOf has too many branches beside unevaluatedProperties or unevaluatedItems",
         "List every property, and use additionalProperties or items.");
  }
  std::vector<const Shape*> out;
  for (const Shape* branch : branches) {
    std::size_t before = out.size();
    for (std::size_t i = 0; i < before; ++i) out.push_back(intersect(out[i], branch));
    out.push_back(branch);
  }
  return out;
}

const Shape* Compiler::unevaluated_items(const Shape* s, NodeId rest) {
  Shape out = s->copy();
  std::vector<const ArrayPart*> arrays;
  for (const ArrayPart* a : s->arrays) {
    ArrayPart part = *a;
    part.evaluated = kNoMax;
    if (a->evaluated != kNoMax) {
      NodeId value = rest;
      for (NodeId looked_at : a->evaluated_if) value = either(value, looked_at);
      std::vector<NodeId> prefix(a->prefix.begin(), a->prefix.end());
      if (value != kAny) prefix.resize(std::max<std::size_t>(prefix.size(), a->evaluated), a->item);
      for (std::size_t i = a->evaluated; i < prefix.size(); ++i) prefix[i] = both(prefix[i], value);
      part.prefix = keep(prefix);
      part.item = both(a->item, value);
    }
    if (const ArrayPart* done = finish_array(part)) arrays.push_back(done);
  }
  out.arrays = keep(arrays);
  return arena_.make<Shape>(out);
}

const Shape* Compiler::unevaluated_properties(const Shape* s, NodeId rest) {
  Shape out = s->copy();
  std::vector<const ObjectPart*> objects;
  for (const ObjectPart* o : s->objects) {
    ObjectPart part = *o;
    part.evaluated.all = true;
    const Evaluated& seen = o->evaluated;
    if (!seen.all && rest != kAny) {
      auto looked_at = [&](std::string_view name) {
        return std::find(seen.names.begin(), seen.names.end(), name) != seen.names.end() ||
               std::any_of(seen.classes.begin(), seen.classes.end(),
                           [&](const StringPart* c) { return contains(*c, name); });
      };
      std::vector<Property> properties(o->properties.begin(), o->properties.end());
      for (Property& p : properties) {
        if (!looked_at(p.name)) p.value = both(p.value, rest);
      }
      std::vector<KeyClass> classes;
      for (const StringPart* c : seen.classes) classes.push_back({c, kAny});
      classes.push_back({nullptr, rest});
      part.properties = keep(properties);
      part.others = keep(cross(o->others, classes));
    }
    if (const ObjectPart* done = finish_object(part)) objects.push_back(done);
  }
  out.objects = keep(objects);
  return arena_.make<Shape>(out);
}

}  // namespace ag::schema
