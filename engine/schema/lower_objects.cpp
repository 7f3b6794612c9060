// From object parts to the builder's objects.
#include <algorithm>

#include "schema/compiler.h"

namespace ag::schema {

// What is demanded of some key is demanded of each property in turn that could be it, or of a key that is none.
Symbol Compiler::lower(const ObjectPart& given) {
  const ObjectPart& part = with_named_keys(given);
  if (part.needs.empty()) return lower_object(part, {});
  constexpr std::size_t kMaxWays = 256, kMaxNeeds = 4;
  struct Todo {
    const ObjectPart* part;
    std::vector<Need> others;  // demanded of keys that are no property's
  };
  std::vector<Todo> todo{{&part, {}}};
  std::vector<Symbol> ways;
  while (!todo.empty()) {
    Todo t = std::move(todo.back());
    todo.pop_back();
    if (t.part->needs.empty()) {
      ways.push_back(lower_object(*t.part, t.others));
      continue;
    }
    Need need = t.part->needs[0];
    check_room();
    if (todo.size() + ways.size() > kMaxWays || t.others.size() > kMaxNeeds) {
      fail(*need.at, "not", "too many properties could be the one that is demanded",
           "Say what is allowed instead of what is not.");
    }
    ObjectPart way = *t.part;
    way.needs = t.part->needs.subspan(1);
    for (std::size_t i = 0; i < t.part->properties.size(); ++i) {
      const Property& p = t.part->properties[i];
      NodeId value = both(p.value, need.value);
      if (value == kNever || (need.keys && !contains(*need.keys, p.name))) continue;
      std::vector<Property> properties(t.part->properties.begin(), t.part->properties.end());
      properties[i].value = value;
      properties[i].required = true;
      way.properties = keep(properties);
      if (const ObjectPart* done = finish_object(way)) todo.push_back({done, t.others});
    }
    way.properties = t.part->properties;
    if (need.keys && is_listed(*need.keys)) continue;
    if (std::all_of(way.others.begin(), way.others.end(), [](const KeyClass& c) { return c.value == kNever; }))
      continue;
    if (need.keys) {  // the properties' names are no other keys anyway
      StringPart keys = *need.keys;
      std::vector<std::string_view> excluded;
      for (std::string_view name : keys.excluded) {
        bool property = std::any_of(way.properties.begin(), way.properties.end(),
                                    [&](const Property& p) { return p.name == name; });
        if (!property) excluded.push_back(name);
      }
      keys.excluded = keep(excluded);
      bool any = excluded.empty() && keys.patterns.empty() && keys.not_patterns.empty() && keys.formats.empty() &&
                 keys.not_formats.empty() && keys.min_length == 0 && keys.max_length == kNoMax;
      need.keys = any ? nullptr : arena_.make<StringPart>(keys);
    }
    t.others.push_back(need);
    if (const ObjectPart* done = finish_object(way)) todo.push_back({done, std::move(t.others)});
  }
  return builder_.choice(std::move(ways));
}

// Keys that are named somewhere else than in the properties become properties, so that what is left of them is known:
// the keys of finite classes, and those of dependencies.
const ObjectPart& Compiler::with_named_keys(const ObjectPart& part) {
  std::vector<Property> properties(part.properties.begin(), part.properties.end());
  std::size_t before = properties.size();
  auto add = [&](std::string_view name) {
    bool known = std::any_of(properties.begin(), properties.end(), [&](const Property& p) { return p.name == name; });
    if (!known) properties.push_back({name, value_for(part, name), false, false});
  };
  auto add_all = [&](const StringPart* keys) {
    if (!keys || !is_listed(*keys)) return;
    List<std::string_view> values = keys->finite ? keys->values : few_strings(*keys);
    std::for_each(values.begin(), values.end(), add);
  };
  for (const KeyClass& c : part.others) add_all(c.keys);
  for (const Need& n : part.needs) add_all(n.keys);
  for (const Dependency& d : part.dependencies) add(d.key), add(d.other);
  if (properties.size() == before) return part;
  ObjectPart out = part;
  out.properties = keep(properties);
  return *arena_.make<ObjectPart>(out);
}

// The strings of a language that has only a few; none when it has none or many.
List<std::string_view> Compiler::few_strings(const StringPart& part) {
  constexpr std::size_t kFew = 16;
  if (part.patterns.empty() && part.formats.empty() && part.max_length > 1) return {};
  auto [it, fresh] = few_.try_emplace(&part);
  if (!fresh) return it->second;
  try {
    const std::optional<std::vector<std::string>> values = finite_values(language(part), kFew);
    if (!values) return {};
    std::vector<std::string_view> found;
    for (const std::string& value : *values) found.push_back(keep_text(value));
    return it->second = keep(found);
  } catch (const GrammarError&) {  // what is wrong with a pattern is said where the keys are made
    return {};
  }
}

// The classes of further keys, split so that each class is inside or outside of what each need is about.
std::vector<Compiler::Others> Compiler::split_by_needs(List<KeyClass> others, const std::vector<Need>& needs) {
  std::vector<Others> out;
  for (const KeyClass& c : others) out.push_back({c, 0, c.keys && is_listed(*c.keys)});
  for (std::size_t i = 0; i < needs.size(); ++i) {
    std::vector<Others> split;
    for (const Others& o : out) {
      const StringPart* inside = !needs[i].keys ? o.keys.keys
                                 : o.keys.keys  ? intersect(o.keys.keys, needs[i].keys)
                                                : needs[i].keys;
      bool some = inside || !needs[i].keys;
      bool listed = o.listed || (needs[i].keys && is_listed(*needs[i].keys));
      if (some) split.push_back({{inside, o.keys.value}, o.meets | 1u << i, listed});
      if (needs[i].keys) split.push_back(o);
    }
    out = std::move(split);
  }
  return out;
}

Symbol Compiler::lower_object(const ObjectPart& part, const std::vector<Need>& needs) {
  ObjectSpec spec;
  spec.whitespace = options_.whitespace;
  spec.any_order = options_.any_order;
  spec.min_properties = part.min_properties;
  spec.max_properties = part.max_properties;
  spec.members.reserve(part.properties.size());
  for (const Property& p : part.properties) spec.members.push_back({std::string(p.name), lower(p.value), p.required});
  auto member = [&](std::string_view name) {
    auto at = std::find_if(spec.members.begin(), spec.members.end(), [&](const auto& m) { return m.name == name; });
    return static_cast<std::uint32_t>(at - spec.members.begin());
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
  // Keys that a class lists may come in any order, as further keys do, where nothing was declared.
  bool listed = std::any_of(part.others.begin(), part.others.end(),
                            [&](const KeyClass& c) { return c.keys && is_listed(*c.keys); });
  bool declared =
      std::any_of(part.properties.begin(), part.properties.end(), [](const Property& p) { return p.declared; });
  if (listed && !declared) spec.any_order = true;
  spec.needs = static_cast<std::uint32_t>(needs.size());
  for (const Others& o : split_by_needs(part.others, needs)) {
    if (o.listed) continue;  // its keys are members
    // A class without values must be known as such here: its keys are then never begun.
    constexpr int kDeep = 4;
    Symbol plain = part.others.size() > 1 && surely_empty(o.keys.value, kDeep) ? Symbol{} : lower(o.keys.value);
    ObjectSpec::Other other{o.keys.keys ? language(*o.keys.keys) : StringLanguage{}, plain};
    if (!other.value && !o.keys.keys) continue;  // nothing more: the default
    for (std::uint32_t meets = 1; other.value && meets <= o.meets; ++meets) {
      if ((meets & o.meets) != meets) continue;
      NodeId value = o.keys.value;
      for (std::size_t i = 0; i < needs.size(); ++i) {
        if (meets >> i & 1) value = both(value, needs[i].value);
      }
      if (Symbol s = lower(value)) other.meeting.push_back({meets, s});
    }
    spec.others.push_back(std::move(other));
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
