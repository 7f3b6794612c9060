// From object parts to the builder's objects.
#include <algorithm>

#include "schema/compiler.h"

namespace ag::schema {

// What is demanded of some key is demanded of each key in turn that could be it.
Symbol Compiler::lower(const ObjectPart& part) {
  if (part.needs.empty()) return lower_object(part);
  constexpr std::size_t kMaxWays = 256;
  std::vector<const ObjectPart*> todo{&part};
  std::vector<Symbol> ways;
  while (!todo.empty()) {
    const ObjectPart& p = *todo.back();
    todo.pop_back();
    if (p.needs.empty()) {
      ways.push_back(lower_object(p));
      continue;
    }
    Need need = p.needs[0];
    if (todo.size() + ways.size() > kMaxWays) {
      fail(*need.at, "not", "too many properties could be the one that is demanded", "Say what is allowed instead of what is not.");
    }
    ObjectPart way = p;
    way.needs = p.needs.subspan(1);
    auto add = [&](ObjectPart one_way) {
      if (const ObjectPart* done = finish_object(one_way)) todo.push_back(done);
    };
    for (std::size_t i = 0; i < p.properties.size(); ++i) {
      NodeId value = both(p.properties[i].value, need.value);
      if (value == kNever || (need.keys && !contains(*need.keys, p.properties[i].name))) continue;
      std::vector<Property> properties(p.properties.begin(), p.properties.end());
      properties[i].value = value;
      properties[i].required = true;
      way.properties = keep(properties);
      add(way);
    }
    way.properties = p.properties;
    if (std::all_of(p.others.begin(), p.others.end(), [](const KeyClass& c) { return c.value == kNever; })) continue;
    if (const ObjectPart* counted = needs_one_more(way, need)) {
      todo.push_back(counted);
    } else {
      unsupported(*need.at, "not", "the opposite of a rule about further properties cannot be enforced",
                  "Say what is allowed instead of what is not.");
      add(way);
    }
  }
  return builder_.choice(std::move(ways));
}

// The object with some further key, where counting the properties can say so; else nullptr.
const ObjectPart* Compiler::needs_one_more(ObjectPart part, const Need& need) {
  std::uint64_t required = 0;
  for (const Property& p : part.properties) {
    if (!p.required && p.value != kNever) return nullptr;
    required += p.required;
  }
  for (const KeyClass& c : part.others) {
    if (c.value != kNever && both(c.value, need.value) != c.value) return nullptr;
  }
  bool any_key = !need.keys || (need.keys->patterns.empty() && need.keys->not_patterns.empty() && need.keys->formats.empty() &&
                                need.keys->not_formats.empty() && !need.keys->finite && need.keys->min_length == 0 &&
                                need.keys->max_length == kNoMax);
  if (!any_key) return nullptr;
  for (std::string_view name : need.keys ? need.keys->excluded : List<std::string_view>{}) {
    bool property = std::any_of(part.properties.begin(), part.properties.end(), [&](const Property& p) { return p.name == name; });
    if (!property && value_for(part, name) != kNever) return nullptr;
  }
  part.min_properties = std::max(part.min_properties, required + 1);
  return finish_object(part);
}

Symbol Compiler::lower_object(const ObjectPart& part) {
  ObjectSpec spec;
  spec.whitespace = options_.whitespace;
  spec.any_order = options_.any_order;
  spec.min_properties = part.min_properties;
  spec.max_properties = part.max_properties;
  spec.members.reserve(part.properties.size());
  for (const Property& p : part.properties) spec.members.push_back({std::string(p.name), lower(p.value), p.required});
  auto member = [&](std::string_view name) {
    for (std::size_t i = 0; i < spec.members.size(); ++i) {
      if (spec.members[i].name == name) return static_cast<std::uint32_t>(i);
    }
    spec.members.push_back({std::string(name), lower(value_for(part, name)), false});
    return static_cast<std::uint32_t>(spec.members.size() - 1);
  };
  for (const Dependency& d : part.dependencies) {
    std::uint32_t key = member(d.key), other = member(d.other);
    auto it = std::find_if(spec.dependent_required.begin(), spec.dependent_required.end(),
                           [&](const auto& e) { return e.first == key; });
    if (it == spec.dependent_required.end()) {
      spec.dependent_required.push_back({key, {other}});
    } else {
      it->second.push_back(other);
    }
  }
  // Keys of a finite list are members, so that what is left of them is known; they may still come in any order.
  bool listed = false;
  for (const KeyClass& c : part.others) {
    if (!c.keys || !c.keys->finite) continue;
    listed = true;
    for (std::string_view name : c.keys->values) member(name);
  }
  bool declared = std::any_of(part.properties.begin(), part.properties.end(), [](const Property& p) { return p.declared; });
  if (listed && !declared) spec.any_order = true;
  for (const KeyClass& c : part.others) {
    if (c.keys && c.keys->finite) continue;
    Symbol value = lower(c.value);
    if (!value && !c.keys) continue;  // nothing more: the default
    spec.others.push_back({c.keys ? language(*c.keys) : StringLanguage{}, value});
  }
  while (!spec.others.empty() && !spec.others.back().value) spec.others.pop_back();
  try {
    return builder_.object(std::move(spec));
  } catch (const GrammarError& e) {
    for (const KeyClass& c : part.others) {
      if (c.keys) blame_pattern(e, *c.keys);
    }
    throw;
  }
}

}  // namespace ag::schema
