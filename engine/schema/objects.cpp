// Objects: their keywords, and what happens to keys when objects are combined.
#include <algorithm>
#include <bit>
#include <functional>

#include "schema/compiler.h"

namespace ag::schema {

using json::Member;
using json::Type;

namespace {

// Finds properties by name; small lists are searched, long ones hashed.
class NameIndex {
 public:
  explicit NameIndex(List<Property> properties) : properties_(properties) {
    if (properties.size() <= kShort) return;
    slots_.assign(std::bit_ceil(properties.size() * 2), -1);
    for (std::size_t i = 0; i < properties.size(); ++i) {
      int& slot = slots_[slot_of(properties[i].name)];
      if (slot < 0) slot = static_cast<int>(i);
    }
  }
  // The index, or -1.
  int find(std::string_view name) const {
    if (!slots_.empty()) return slots_[slot_of(name)];
    for (std::size_t i = 0; i < properties_.size(); ++i) {
      if (properties_[i].name == name) return static_cast<int>(i);
    }
    return -1;
  }

 private:
  static constexpr std::size_t kShort = 12;
  // Where the name stands, or would.
  std::size_t slot_of(std::string_view name) const {
    std::size_t mask = slots_.size() - 1, at = std::hash<std::string_view>{}(name)&mask;
    while (slots_[at] >= 0 && properties_[static_cast<std::size_t>(slots_[at])].name != name) at = (at + 1) & mask;
    return at;
  }
  List<Property> properties_;
  std::vector<int> slots_;  // open addressing; -1 where free
};

bool same(const KeyClass& a, const KeyClass& b) { return a.keys == b.keys && a.value == b.value; }
bool same(const Need& a, const Need& b) { return a.keys == b.keys && a.value == b.value; }
bool same(const Dependency& a, const Dependency& b) { return a.key == b.key && a.other == b.other; }

bool same(const Evaluated& a, const Evaluated& b) {
  return a.all == b.all && std::equal(a.names.begin(), a.names.end(), b.names.begin(), b.names.end()) &&
         std::equal(a.classes.begin(), a.classes.end(), b.classes.begin(), b.classes.end());
}

template <class T>
bool same(List<T> a, List<T> b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](const T& x, const T& y) { return same(x, y); });
}

}  // namespace

const ObjectPart* Compiler::object_part(const KeywordSet& set) {
  const Value& schema = *set.schema;
  auto object_at = [&](Keyword k, std::string_view word) -> std::span<const Member> {
    const Value* v = set[k];
    if (!v) return {};
    if (!v->is(Type::kObject))
      fail(schema, word, std::string(word) + " must be an object, not " + json::excerpt(*v), "");
    return v->members();
  };
  ObjectPart part;
  part.min_properties = count_of(set, Keyword::kMinProperties, "minProperties", 0);
  part.max_properties = count_of(set, Keyword::kMaxProperties, "maxProperties", kNoMax);

  std::vector<KeyClass> patterns;
  for (const Member& m : object_at(Keyword::kPatternProperties, "patternProperties")) {
    StringPart keys;
    std::vector<Pattern> found, not_found;
    add_pattern(m.value, m.key, found, not_found);
    keys.patterns = keep(found);
    keys.not_patterns = keep(not_found);
    patterns.push_back({arena_.make<StringPart>(keys), at(m.value)});
  }
  const Value* additional = set[Keyword::kAdditionalProperties];
  NodeId rest = additional ? at(*additional) : kAny;
  auto with_patterns = [&](std::string_view name, NodeId value, NodeId otherwise) {
    bool found = false;
    for (const KeyClass& p : patterns) {
      if (contains(*p.keys, name)) value = both(value, p.value), found = true;
    }
    return found ? value : both(value, otherwise);
  };

  std::vector<Property> properties;
  for (const Member& m : object_at(Keyword::kProperties, "properties")) {
    properties.push_back({m.key, with_patterns(m.key, at(m.value), kAny), false, true});
  }
  if (const Value* required = set[Keyword::kRequired]) {
    if (!required->is(Type::kArray)) {
      fail(schema, "required", "required must be a list of property names, not " + json::excerpt(*required),
           "Write the list in the object that has the properties.");
    }
    NameIndex index(properties);
    std::size_t declared = properties.size();
    std::vector<Property> undeclared;
    for (const Value& name : required->items()) {
      if (!name.is(Type::kString))
        fail(schema, "required", "required holds " + json::excerpt(name) + ", which is no name", "");
      check_unicode(name, "required");
      int i = index.find(name.text());
      if (i >= 0) {
        properties[static_cast<std::size_t>(i)].required = true;
      } else if (std::none_of(undeclared.begin(), undeclared.end(),
                              [&](const Property& p) { return p.name == name.text(); })) {
        undeclared.push_back({name.text(), with_patterns(name.text(), kAny, rest), true, false});
      }
    }
    properties.reserve(declared + undeclared.size());  // keeps the index's view valid until here
    properties.insert(properties.end(), undeclared.begin(), undeclared.end());
  }
  if (set.has(Keyword::kDependentRequired)) {
    std::vector<Dependency> dependencies;
    for (const Member& m : object_at(Keyword::kDependentRequired, "dependentRequired")) {
      if (!m.value.is(Type::kArray))
        fail(schema, "dependentRequired", "each entry must be a list of property names", "");
      for (const Value& other : m.value.items()) {
        if (!other.is(Type::kString))
          fail(schema, "dependentRequired", json::excerpt(other) + " is no property name", "");
        dependencies.push_back({m.key, other.text()});
      }
    }
    part.dependencies = keep(dependencies);
  }
  for (const KeyClass& p : patterns) {
    if (p.value == rest) contains(*p.keys, "");  // makes no difference below, but has to be an expression
  }
  std::vector<KeyClass> others = key_classes(schema, patterns, rest);
  if (const Value* names = set[Keyword::kPropertyNames]) restrict_names(others, properties, *names);
  if (tracks_evaluated_) {
    std::vector<std::string_view> names;
    std::vector<const StringPart*> classes;
    for (const Property& p : properties) {
      if (p.declared) names.push_back(p.name);
    }
    for (const KeyClass& p : patterns) classes.push_back(p.keys);
    part.evaluated = {additional != nullptr, keep(names), keep(classes)};
  }
  part.properties = keep(properties);
  part.others = others.size() == 1 && !others[0].keys && others[0].value == kAny ? kAnyOthers : keep(others);
  return finish_object(part);
}

// patternProperties overlap: a key obeys every pattern that it matches. One class for each set of patterns that can
// match together, larger sets first, so that the first class that holds a key is the set of exactly the patterns it
// matches.
std::vector<KeyClass> Compiler::key_classes(const Value& schema, const std::vector<KeyClass>& patterns, NodeId rest) {
  std::vector<std::vector<KeyClass>> by_size{{}};
  struct Group {
    KeyClass made;
    std::vector<std::size_t> members;
  };
  std::vector<Group> groups;
  for (std::size_t i = 0; i < patterns.size(); ++i) groups.push_back({patterns[i], {i}});
  std::vector<std::vector<bool>> meets(patterns.size(), std::vector<bool>(patterns.size()));
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    for (std::size_t j = i + 1; j < patterns.size(); ++j)
      meets[i][j] = !surely_disjoint(*patterns[i].keys, *patterns[j].keys);
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t j = groups[g].members.back() + 1; j < patterns.size(); ++j) {
      bool all =
          std::all_of(groups[g].members.begin(), groups[g].members.end(), [&](std::size_t i) { return meets[i][j]; });
      const StringPart* keys = all ? intersect(groups[g].made.keys, patterns[j].keys) : nullptr;
      if (!keys || (groups[g].members.size() > 1 && surely_empty(*keys))) continue;
      Group larger{{keys, both(groups[g].made.value, patterns[j].value)}, groups[g].members};
      larger.members.push_back(j);
      groups.push_back(std::move(larger));
      if (groups.size() > kMaxClasses) {
        fail(schema, "patternProperties", "its patterns overlap in more than " + std::to_string(kMaxClasses) + " ways",
             "Anchor the patterns with ^ and $, so that fewer of them match one key.");
      }
    }
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.members.size() > b.members.size(); });
  std::vector<KeyClass> out;
  for (const Group& g : groups) out.push_back(g.made);
  out.push_back({nullptr, rest});
  return out;
}

void Compiler::restrict_names(std::vector<KeyClass>& others, std::vector<Property>& properties, const Value& schema) {
  List<const StringPart*> allowed = shape(at(schema))->strings;
  if (allowed.size() == 1 && allowed[0] == &kAnyString) return;
  for (Property& p : properties) {
    bool fits = std::any_of(allowed.begin(), allowed.end(), [&](const StringPart* s) { return contains(*s, p.name); });
    if (!fits) p.value = kNever;
  }
  std::vector<KeyClass> out;
  for (const KeyClass& c : others) {
    for (const StringPart* a : allowed) {
      const StringPart* keys = c.keys ? intersect(c.keys, a) : a;
      if (keys) out.push_back({keys, c.value});
    }
  }
  out.push_back({nullptr, kNever});
  others = std::move(out);
}

NodeId Compiler::value_for(const ObjectPart& part, std::string_view key) {
  for (const KeyClass& c : part.others) {
    if (!c.keys || contains(*c.keys, key)) return c.value;
  }
  return kNever;
}

std::vector<KeyClass> Compiler::cross(List<KeyClass> a, List<KeyClass> b) {
  std::vector<KeyClass> out;
  for (const KeyClass& x : a) {
    for (const KeyClass& y : b) {
      const StringPart* keys = !x.keys ? y.keys : !y.keys ? x.keys : intersect(x.keys, y.keys);
      if (!keys && (x.keys || y.keys)) continue;
      if (x.keys && y.keys && x.keys != y.keys && surely_disjoint(*x.keys, *y.keys)) continue;
      out.push_back({keys, both(x.value, y.value)});
      if (out.size() > kMaxClasses) {
        fail(*here_, "patternProperties",
             "key patterns combine to more than " + std::to_string(kMaxClasses) + " classes",
             "Use fewer patterns, or patterns that match different keys.");
      }
    }
  }
  return out;
}

const ObjectPart* Compiler::intersect(const ObjectPart* a, const ObjectPart* b) {
  if (a == &kAnyObject || a == b) return b;
  if (b == &kAnyObject) return a;
  ObjectPart part;
  std::vector<Property> declared, undeclared;
  NameIndex in_a(a->properties), in_b(b->properties);
  auto put = [&](const Property& p) { (p.declared ? declared : undeclared).push_back(p); };
  for (const Property& p : a->properties) {
    int i = in_b.find(p.name);
    if (i < 0) {
      put({p.name, both(p.value, value_for(*b, p.name)), p.required, p.declared});
      continue;
    }
    const Property& q = b->properties[static_cast<std::size_t>(i)];
    if (p.declared || !q.declared) put({p.name, both(p.value, q.value), p.required || q.required, p.declared});
  }
  for (const Property& q : b->properties) {
    int i = in_a.find(q.name);
    if (i < 0) {
      put({q.name, both(value_for(*a, q.name), q.value), q.required, q.declared});
      continue;
    }
    const Property& p = a->properties[static_cast<std::size_t>(i)];
    if (!p.declared && q.declared) put({p.name, both(p.value, q.value), p.required || q.required, true});
  }
  declared.insert(declared.end(), undeclared.begin(), undeclared.end());
  part.properties = keep(declared);
  bool simple = a->others.size() == 1 && b->others.size() == 1;
  NodeId rest = simple ? both(a->others[0].value, b->others[0].value) : kAny;
  part.others = simple ? (rest == kAny     ? kAnyOthers
                          : rest == kNever ? kNoOthers
                                           : one(KeyClass{nullptr, rest}))
                       : keep(cross(a->others, b->others));
  part.min_properties = std::max(a->min_properties, b->min_properties);
  part.max_properties = std::min(a->max_properties, b->max_properties);
  std::vector<Dependency> dependencies(a->dependencies.begin(), a->dependencies.end());
  for (const Dependency& d : b->dependencies) {
    if (std::none_of(dependencies.begin(), dependencies.end(), [&](const Dependency& e) { return same(d, e); })) {
      dependencies.push_back(d);
    }
  }
  part.dependencies = keep(dependencies);
  std::vector<Need> needs(a->needs.begin(), a->needs.end());
  needs.insert(needs.end(), b->needs.begin(), b->needs.end());
  part.needs = keep(needs);
  part.evaluated = united(a->evaluated, b->evaluated);
  return finish_object(part);
}

const ObjectPart* Compiler::finish_object(ObjectPart part) {
  while (part.others.size() > 1 && part.others[part.others.size() - 2].value == part.others.back().value) {
    std::vector<KeyClass> shorter(part.others.begin(), part.others.end() - 2);
    shorter.push_back(part.others.back());
    part.others = keep(shorter);
  }
  bool closed =
      std::all_of(part.others.begin(), part.others.end(), [](const KeyClass& c) { return c.value == kNever; });
  std::vector<Need> needs;
  for (const Need& n : part.needs) {
    bool met = false, possible = !closed && part.max_properties > 0;
    for (const Property& p : part.properties) {
      NodeId value = both(p.value, n.value);
      if (value == kNever || (n.keys && !contains(*n.keys, p.name))) continue;
      possible = true;
      met = met || (p.required && value == p.value);
    }
    if (!possible) {
      conflict("", "no property is left that could be what is demanded");
      return nullptr;
    }
    if (!met) needs.push_back(n);
  }
  part.needs = keep(needs);
  std::uint64_t required = 0, possible = 0;
  for (const Property& p : part.properties) {
    if (p.required && p.value == kNever) {
      conflict("required", "a property is required that may not be there");
      return nullptr;
    }
    required += p.required;
    possible += p.value != kNever;
  }
  if (part.min_properties > part.max_properties || required > part.max_properties ||
      (closed && possible < part.min_properties)) {
    conflict(required > part.max_properties ? "maxProperties" : "minProperties",
             "the number of properties cannot be met");
    return nullptr;
  }
  return arena_.make<ObjectPart>(part);
}

// Whether a demands all that b does, as far as their words show.
bool Compiler::contained(const ObjectPart& a, const ObjectPart& b) {
  if (tracks_evaluated_ || a.min_properties < b.min_properties || a.max_properties > b.max_properties) return false;
  bool open = b.others.size() == 1 && b.others[0].value == kAny;
  if (!open && !same(a.others, b.others)) return false;
  if (!b.needs.empty() && !same(a.needs, b.needs)) return false;
  if (!b.dependencies.empty() && !same(a.dependencies, b.dependencies)) return false;
  std::size_t found = 0;
  for (const Property& q : b.properties) {
    auto p =
        std::find_if(a.properties.begin(), a.properties.end(), [&](const Property& x) { return x.name == q.name; });
    if (p == a.properties.end()) {
      if (q.required || q.value != kAny || !open) return false;
      continue;
    }
    ++found;
    if ((q.required && !p->required) || (q.value != kAny && q.value != p->value)) return false;
  }
  return open || found == a.properties.size();
}

// Two objects that differ in one property are one object whose property may be either: what keeps allOf of anyOf small.
const ObjectPart* Compiler::merge(const ObjectPart& a, const ObjectPart& b) {
  if (a.properties.size() != b.properties.size() || a.min_properties != b.min_properties ||
      a.max_properties != b.max_properties) {
    return nullptr;
  }
  std::size_t differs = a.properties.size();
  for (std::size_t i = 0; i < a.properties.size(); ++i) {
    const Property &p = a.properties[i], &q = b.properties[i];
    if (p.name != q.name) return nullptr;
    if (p.value == q.value && p.required == q.required) continue;
    if (differs != a.properties.size()) return nullptr;
    differs = i;
  }
  if (!same(a.others, b.others) || !same(a.dependencies, b.dependencies) || !same(a.needs, b.needs)) return nullptr;
  if (tracks_evaluated_ && !same(a.evaluated, b.evaluated)) return nullptr;
  if (differs == a.properties.size()) return &a;
  ObjectPart part = a;
  std::vector<Property> properties(a.properties.begin(), a.properties.end());
  properties[differs].value = either(a.properties[differs].value, b.properties[differs].value);
  properties[differs].required = a.properties[differs].required && b.properties[differs].required;
  part.properties = keep(properties);
  return arena_.make<ObjectPart>(part);
}

List<const ObjectPart*> Compiler::merged(std::vector<const ObjectPart*> parts) {
  constexpr std::size_t kFew = 128;  // the search is quadratic
  bool changed = parts.size() <= kFew;
  while (changed) {
    changed = false;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      for (std::size_t j = i + 1; j < parts.size();) {
        const ObjectPart* m = contained(*parts[j], *parts[i])   ? parts[i]
                              : contained(*parts[i], *parts[j]) ? parts[j]
                                                                : merge(*parts[i], *parts[j]);
        if (m)
          parts[i] = m, parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(j)), changed = true;
        else
          ++j;
      }
    }
  }
  return keep(parts);
}

}  // namespace ag::schema
