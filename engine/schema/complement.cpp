// Not, of shapes: a part is a conjunction, so its complement is the union of what breaks each of its constraints.
#include <algorithm>

#include "schema/compiler.h"

namespace ag::schema {

const Shape* Compiler::complement(const Shape* shape) {
  if (shape == any_) return never_;
  Shape out = any_->copy();
  out.scalars = static_cast<std::uint8_t>(Shape::kScalars & ~shape->scalars);
  auto without = [&](auto& list, auto parts) {
    for (auto part : parts) list = product(list, complement(*part));
  };
  without(out.numbers, shape->numbers);
  without(out.strings, shape->strings);
  without(out.arrays, shape->arrays);
  without(out.objects, shape->objects);
  if (out.objects.size() > 1) out.objects = merged({out.objects.begin(), out.objects.end()});
  if (out.empty()) conflict("not", "everything is ruled out");
  return arena_.make<Shape>(out);
}

List<const NumberPart*> Compiler::complement(const NumberPart& part) {
  std::vector<const NumberPart*> out;
  auto add = [&](auto set) {
    NumberPart p;
    set(p);
    out.push_back(arena_.make<NumberPart>(p));
  };
  if (part.finite) {
    add([&](NumberPart& p) { p.excluded = part.values; });
    return keep(out);
  }
  if (part.integer) add([&](NumberPart& p) { p.not_multiple_of = one(std::string_view("1")); });
  if (!part.minimum.empty()) add([&](NumberPart& p) { p.exclusive_maximum = part.minimum; });
  if (!part.exclusive_minimum.empty()) add([&](NumberPart& p) { p.maximum = part.exclusive_minimum; });
  if (!part.maximum.empty()) add([&](NumberPart& p) { p.exclusive_minimum = part.maximum; });
  if (!part.exclusive_maximum.empty()) add([&](NumberPart& p) { p.minimum = part.exclusive_maximum; });
  for (std::string_view d : part.multiple_of) add([&](NumberPart& p) { p.not_multiple_of = one(d); });
  for (std::string_view d : part.not_multiple_of) {
    add([&](NumberPart& p) { d == "1" ? void(p.integer = true) : void(p.multiple_of = one(d)); });
  }
  if (!part.excluded.empty()) {
    add([&](NumberPart& p) {
      p.finite = true;
      p.values = part.excluded;
    });
  }
  return keep(out);
}

List<const StringPart*> Compiler::complement(const StringPart& part) {
  std::vector<const StringPart*> out;
  auto add = [&](auto set) {
    StringPart p;
    set(p);
    out.push_back(arena_.make<StringPart>(p));
  };
  if (part.finite) {
    add([&](StringPart& p) { p.excluded = part.values; });
    return keep(out);
  }
  for (const Pattern& x : part.patterns) add([&](StringPart& p) { p.not_patterns = one(x); });
  for (const Pattern& x : part.not_patterns) add([&](StringPart& p) { p.patterns = one(x); });
  for (std::string_view x : part.formats) add([&](StringPart& p) { p.not_formats = one(x); });
  for (std::string_view x : part.not_formats) add([&](StringPart& p) { p.formats = one(x); });
  if (part.min_length > 0) add([&](StringPart& p) { p.max_length = part.min_length - 1; });
  if (part.max_length != kNoMax) add([&](StringPart& p) { p.min_length = part.max_length + 1; });
  if (!part.excluded.empty()) {
    add([&](StringPart& p) {
      p.finite = true;
      p.values = part.excluded;
    });
  }
  return keep(out);
}

List<const ArrayPart*> Compiler::complement(const ArrayPart& part) {
  std::vector<const ArrayPart*> out;
  auto add = [&](auto set) {
    ArrayPart p;
    set(p);
    if (const ArrayPart* done = finish_array(p)) out.push_back(done);
  };
  for (std::size_t i = 0; i < part.prefix.size(); ++i) {
    if (part.prefix[i] == kAny) continue;
    std::vector<NodeId> prefix(i, kAny);
    prefix.push_back(negate(part.prefix[i]));
    add([&](ArrayPart& p) {
      p.prefix = keep(prefix);
      p.min_items = i + 1;
    });
  }
  if (part.min_items > 0) add([&](ArrayPart& p) { p.max_items = part.min_items - 1; });
  bool closed = part.item == kNever;
  std::uint64_t longest = closed ? std::min<std::uint64_t>(part.max_items, part.prefix.size()) : part.max_items;
  if (longest != kNoMax) add([&](ArrayPart& p) { p.min_items = longest + 1; });
  if (!closed && part.item != kAny) {
    // Some item after the prefix is no such item.
    add([&](ArrayPart& p) { p.contains = one(Contains{negate(part.item), 1, kNoMax, here_, part.prefix.size()}); });
  }
  if (part.unique) {
    fail(*here_, "not", "the opposite of uniqueItems cannot be enforced",
         "Say what is allowed instead of what is not.");
  }
  for (const Contains& c : part.contains) {
    if (c.min > 0) add([&](ArrayPart& p) { p.contains = one(Contains{c.value, 0, c.min - 1, c.at, c.from}); });
    if (c.max != kNoMax)
      add([&](ArrayPart& p) { p.contains = one(Contains{c.value, c.max + 1, kNoMax, c.at, c.from}); });
  }
  return keep(out);
}

List<const ObjectPart*> Compiler::complement(const ObjectPart& part) {
  std::vector<const ObjectPart*> out;
  auto add = [&](auto set) {
    ObjectPart p = kAnyObject;
    set(p);
    if (const ObjectPart* done = finish_object(p)) out.push_back(done);
  };
  for (const Property& x : part.properties) {
    if (x.required) add([&](ObjectPart& p) { p.properties = one(Property{x.name, kNever, false, false}); });
    if (x.value != kAny)
      add([&](ObjectPart& p) { p.properties = one(Property{x.name, negate(x.value), true, false}); });
  }
  if (part.min_properties > 0) add([&](ObjectPart& p) { p.max_properties = part.min_properties - 1; });
  if (part.max_properties != kNoMax) add([&](ObjectPart& p) { p.min_properties = part.max_properties + 1; });
  for (const Dependency& d : part.dependencies) {
    Property pair[] = {{d.key, kAny, true, false}, {d.other, kNever, false, false}};
    if (d.key == d.other) continue;
    add([&](ObjectPart& p) { p.properties = keep(std::vector<Property>(pair, pair + 2)); });
  }
  std::vector<std::string_view> names;
  for (const Property& x : part.properties) names.push_back(x.name);
  StringPart others;
  others.excluded = keep(names);
  std::vector<const StringPart*> earlier;
  for (const KeyClass& c : part.others) {
    if (c.value != kAny) {
      // Keys of this class alone, as the union of the ways not to be of an earlier one.
      const StringPart* own = arena_.make<StringPart>(others);
      if (c.keys) own = intersect(c.keys, own);
      List<const StringPart*> keys = own ? one(own) : List<const StringPart*>{};
      for (const StringPart* e : earlier) keys = product(keys, complement(*e));
      for (const StringPart* k : keys) add([&](ObjectPart& p) { p.needs = one(Need{k, negate(c.value), here_}); });
    }
    if (c.keys) earlier.push_back(c.keys);
  }
  for (const Need& n : part.needs) {
    KeyClass classes[] = {{n.keys, negate(n.value)}, {nullptr, kAny}};
    if (!n.keys) {
      add([&](ObjectPart& p) { p.others = one(KeyClass{nullptr, negate(n.value)}); });
    } else {
      add([&](ObjectPart& p) { p.others = keep(std::vector<KeyClass>(classes, classes + 2)); });
    }
  }
  return keep(out);
}

}  // namespace ag::schema
