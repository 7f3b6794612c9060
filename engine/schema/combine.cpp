// And and or of shapes, type by type.
#include <algorithm>

#include "schema/compiler.h"

namespace ag::schema {

namespace {
const KeyClass kAnyClass[] = {{nullptr, kAny}};
const KeyClass kNoClass[] = {{nullptr, kNever}};

NumberPart any_integer() {
  NumberPart part;
  part.integer = true;
  return part;
}

ObjectPart any_object() {
  ObjectPart part;
  part.others = kAnyClass;
  return part;
}

// A product above this is rid of what nothing can be in. For strings that is an intersection of automata each time.
template <class Part>
constexpr std::size_t kFewParts = std::is_same_v<Part, StringPart> ? 256 : 8;

// The union of two short lists, first a's.
template <class T>
std::vector<T> joined(List<T> a, List<T> b, bool (*same)(const T&, const T&)) {
  std::vector<T> out(a.begin(), a.end());
  for (const T& x : b) {
    if (std::none_of(a.begin(), a.end(), [&](const T& y) { return same(x, y); })) out.push_back(x);
  }
  return out;
}

bool same_text(const std::string_view& a, const std::string_view& b) { return a == b; }
bool same_pattern(const Pattern& a, const Pattern& b) { return a.text == b.text; }
bool same_number(const std::string_view& a, const std::string_view& b) {
  return a == b || Decimal::parse(a) == Decimal::parse(b);
}

// Whether every string of `a` is one of `b` because b's constraints are among a's.
bool narrower(const StringPart& a, const StringPart& b) {
  if (a.finite || b.finite || a.min_length < b.min_length || a.max_length > b.max_length) return false;
  auto among = [](auto some, auto all, auto same) {
    return std::all_of(some.begin(), some.end(), [&](const auto& x) {
      return std::any_of(all.begin(), all.end(), [&](const auto& y) { return same(x, y); });
    });
  };
  return among(b.patterns, a.patterns, same_pattern) && among(b.not_patterns, a.not_patterns, same_pattern) &&
         among(b.formats, a.formats, same_text) && among(b.not_formats, a.not_formats, same_text) &&
         among(b.excluded, a.excluded, same_text);
}

// Without what is in another part anyway: (x or y) and (x or z) is x or (y and z).
void absorb(std::vector<const StringPart*>* parts) {
  constexpr std::size_t kMost = 512;  // each is held against each
  if (parts->size() < 2 || parts->size() > kMost) return;
  std::vector<const StringPart*> kept;
  for (const StringPart* p : *parts) {
    if (std::any_of(kept.begin(), kept.end(), [&](const StringPart* k) { return narrower(*p, *k); })) continue;
    std::erase_if(kept, [&](const StringPart* k) { return narrower(*k, *p); });
    kept.push_back(p);
  }
  *parts = std::move(kept);
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

const List<KeyClass> kAnyOthers = kAnyClass, kNoOthers = kNoClass;
const NumberPart kAnyNumber, kAnyInteger = any_integer();
const StringPart kAnyString;
const ArrayPart kAnyArray;
const ObjectPart kAnyObject = any_object();

template <class Part>
List<const Part*> Compiler::product(List<const Part*> a, List<const Part*> b) {
  if (a.size() == 1 && b.size() == 1) {
    const Part* p = intersect(a[0], b[0]);
    return p == a[0] ? a : p == b[0] ? b : p ? one(p) : List<const Part*>{};
  }
  std::vector<const Part*> out;
  for (const Part* x : a) {
    check_room();
    for (const Part* y : b) {
      const Part* p = intersect(x, y);
      if (p && !(a.size() * b.size() > kFewParts<Part> && hopeless(*p))) out.push_back(p);
      if (out.size() > kMaxParts) {
        fail(*here_, "", "its alternatives combine to more than " + std::to_string(kMaxParts) + " cases",
             "Split the schema, or tell the alternatives apart by one property.");
      }
    }
  }
  if constexpr (std::is_same_v<Part, StringPart>) absorb(&out);
  return keep(out);
}

const Shape* Compiler::intersect(const Shape* a, const Shape* b) {
  if (a == any_ || a == b) return b;
  if (b == any_) return a;
  Shape s;
  s.scalars = a->scalars & b->scalars;
  s.numbers = product(a->numbers, b->numbers);
  s.strings = product(a->strings, b->strings);
  s.arrays = product(a->arrays, b->arrays);
  s.objects = product(a->objects, b->objects);
  if (s.objects.size() > 1) s.objects = merged({s.objects.begin(), s.objects.end()});
  if (s.empty() && !a->empty() && !b->empty()) conflict("", "its keywords contradict each other");
  return arena_.make<Shape>(s);
}

const Shape* Compiler::unite(std::span<const Shape* const> shapes) {
  const Shape* only = nullptr;
  for (const Shape* s : shapes) {
    if (s == any_ && !tracks_evaluated_) return any_;
    if (s->empty() || s == only) continue;
    if (only) {
      only = nullptr;
      break;
    }
    only = s;
  }
  if (only) {
    bool alone = std::all_of(shapes.begin(), shapes.end(), [&](const Shape* s) { return s->empty() || s == only; });
    if (alone) return only;
  }
  Shape out;
  std::vector<const NumberPart*> numbers;
  std::vector<const StringPart*> strings;
  std::vector<const ArrayPart*> arrays;
  std::vector<const ObjectPart*> objects;
  auto gather = [&](auto& all, auto list, auto any) {
    bool absorbs = !tracks_evaluated_;  // what a schema has looked at is lost in the part that allows all
    if (absorbs && !all.empty() && all[0] == any) return;
    for (auto part : list) {
      if (part == any && absorbs) {
        all.assign(1, any);
        return;
      }
      if (std::find(all.begin(), all.end(), part) == all.end()) all.push_back(part);
    }
  };
  for (const Shape* s : shapes) {
    out.scalars |= s->scalars;
    gather(numbers, s->numbers, &kAnyNumber);
    gather(strings, s->strings, &kAnyString);
    gather(arrays, s->arrays, &kAnyArray);
    gather(objects, s->objects, &kAnyObject);
  }
  out.numbers = keep(numbers);
  out.strings = keep(strings);
  out.arrays = keep(arrays);
  out.objects = objects.size() > 1 ? merged(std::move(objects)) : keep(objects);
  return arena_.make<Shape>(out);
}

// ---- numbers

bool Compiler::contains(const NumberPart& part, std::string_view number) {
  Decimal d = Decimal::parse(number);
  if (part.finite) {
    return std::any_of(part.values.begin(), part.values.end(),
                       [&](std::string_view v) { return Decimal::parse(v) == d; });
  }
  if (part.integer && !d.integer()) return false;
  if (!part.minimum.empty() && d < Decimal::parse(part.minimum)) return false;
  if (!part.maximum.empty() && d > Decimal::parse(part.maximum)) return false;
  if (!part.exclusive_minimum.empty() && d <= Decimal::parse(part.exclusive_minimum)) return false;
  if (!part.exclusive_maximum.empty() && d >= Decimal::parse(part.exclusive_maximum)) return false;
  for (std::string_view v : part.excluded) {
    if (Decimal::parse(v) == d) return false;
  }
  auto multiple = [&](std::string_view of) { return d.multiple_of(Decimal::parse(of)); };
  return std::all_of(part.multiple_of.begin(), part.multiple_of.end(), multiple) &&
         std::none_of(part.not_multiple_of.begin(), part.not_multiple_of.end(), multiple);
}

const NumberPart* Compiler::finish_number(NumberPart part) {
  bool low = !part.minimum.empty() || !part.exclusive_minimum.empty();
  bool high = !part.maximum.empty() || !part.exclusive_maximum.empty();
  if (low && high) {
    auto crossed = [](std::string_view lo, std::string_view hi, bool open) {
      if (lo.empty() || hi.empty()) return false;
      Decimal a = Decimal::parse(lo), b = Decimal::parse(hi);
      return open ? a >= b : a > b;
    };
    if (crossed(part.minimum, part.maximum, false) || crossed(part.exclusive_minimum, part.maximum, true) ||
        crossed(part.minimum, part.exclusive_maximum, true) ||
        crossed(part.exclusive_minimum, part.exclusive_maximum, true)) {
      conflict("minimum", "the lower bound is above the upper one");
      return nullptr;
    }
  }
  for (std::string_view d : part.not_multiple_of) {
    auto brings = [&](std::string_view of) { return Decimal::parse(of).multiple_of(Decimal::parse(d)); };
    bool always =
        std::any_of(part.multiple_of.begin(), part.multiple_of.end(), brings) || (part.integer && brings("1"));
    if (always) return nullptr;
  }
  return arena_.make<NumberPart>(part);
}

const NumberPart* Compiler::intersect(const NumberPart* a, const NumberPart* b) {
  if (a == &kAnyNumber || a == b) return b;
  if (b == &kAnyNumber) return a;
  if (a->finite || b->finite) {
    if (!a->finite) std::swap(a, b);
    std::vector<std::string_view> values;
    for (std::string_view v : a->values) {
      if (contains(*b, v)) values.push_back(v);
    }
    if (values.empty()) return nullptr;
    if (values.size() == a->values.size() && (a->integer || !b->integer)) return a;
    NumberPart part;
    part.finite = true;
    part.integer = a->integer || b->integer;
    part.values = keep(values);
    return arena_.make<NumberPart>(part);
  }
  NumberPart part = *a;
  part.integer |= b->integer;
  auto tighter = [](std::string_view x, std::string_view y, bool greater) {
    if (x.empty() || y.empty()) return x.empty() ? y : x;
    return (Decimal::parse(y) > Decimal::parse(x)) == greater ? y : x;
  };
  part.minimum = tighter(a->minimum, b->minimum, true);
  part.exclusive_minimum = tighter(a->exclusive_minimum, b->exclusive_minimum, true);
  part.maximum = tighter(a->maximum, b->maximum, false);
  part.exclusive_maximum = tighter(a->exclusive_maximum, b->exclusive_maximum, false);
  part.multiple_of = keep(joined(a->multiple_of, b->multiple_of, same_number));
  part.not_multiple_of = keep(joined(a->not_multiple_of, b->not_multiple_of, same_number));
  part.excluded = keep(joined(a->excluded, b->excluded, same_number));
  return finish_number(part);
}

// ---- strings

bool Compiler::contains(const StringPart& part, std::string_view text) {
  if (part.finite) return std::find(part.values.begin(), part.values.end(), text) != part.values.end();
  std::size_t length = characters(text);
  if (length < part.min_length || length > part.max_length) return false;
  if (std::find(part.excluded.begin(), part.excluded.end(), text) != part.excluded.end()) return false;
  auto found = [&](const Pattern& p) { return matches(p, text); };
  auto of_format = [&](std::string_view format) { return has_format(format, text); };
  return std::all_of(part.patterns.begin(), part.patterns.end(), found) &&
         std::none_of(part.not_patterns.begin(), part.not_patterns.end(), found) &&
         std::all_of(part.formats.begin(), part.formats.end(), of_format) &&
         std::none_of(part.not_formats.begin(), part.not_formats.end(), of_format);
}

const StringPart* Compiler::finish_string(StringPart part) {
  if (part.min_length > part.max_length) {
    conflict("minLength", "the least length is above the greatest");
    return nullptr;
  }
  return arena_.make<StringPart>(part);
}

const StringPart* Compiler::intersect(const StringPart* a, const StringPart* b) {
  if (a == &kAnyString || a == b) return b;
  if (b == &kAnyString) return a;
  if (a->finite || b->finite) {
    if (!a->finite) std::swap(a, b);
    std::vector<std::string_view> values;
    for (std::string_view v : a->values) {
      if (contains(*b, v)) values.push_back(v);
    }
    if (values.empty()) return nullptr;
    if (values.size() == a->values.size()) return a;
    StringPart part;
    part.finite = true;
    part.values = keep(values);
    return arena_.make<StringPart>(part);
  }
  StringPart part;
  part.patterns = keep(joined(a->patterns, b->patterns, same_pattern));
  part.not_patterns = keep(joined(a->not_patterns, b->not_patterns, same_pattern));
  part.formats = keep(joined(a->formats, b->formats, same_text));
  part.not_formats = keep(joined(a->not_formats, b->not_formats, same_text));
  part.excluded = keep(joined(a->excluded, b->excluded, same_text));
  part.min_length = std::max(a->min_length, b->min_length);
  part.max_length = std::min(a->max_length, b->max_length);
  for (const Pattern& p : part.not_patterns) {
    for (const Pattern& q : part.patterns) {
      if (p.text == q.text) return nullptr;
    }
  }
  return finish_string(part);
}

// ---- arrays

const ArrayPart* Compiler::finish_array(ArrayPart part) {
  for (std::size_t i = 0; i < part.prefix.size() && i < part.max_items; ++i) {
    if (part.prefix[i] == kNever) part.max_items = i;
  }
  if (part.item == kNever) part.max_items = std::min<std::uint64_t>(part.max_items, part.prefix.size());
  if (part.prefix.size() > part.max_items) part.prefix = part.prefix.first(part.max_items);
  if (part.max_items <= part.prefix.size()) part.item = kNever;
  if (part.max_items <= 1) part.unique = nullptr;
  std::vector<Contains> contains;
  for (const Contains& c : part.contains) {
    auto plus_from = [&](std::uint64_t n) { return n > kNoMax - c.from ? kNoMax : n + c.from; };
    if (c.value == kAny) {
      if (c.min > 0) part.min_items = std::max(part.min_items, plus_from(c.min));
      part.max_items = std::min(part.max_items, plus_from(c.max));
      continue;
    }
    if (c.min > c.max || (c.min > 0 && (c.value == kNever || plus_from(c.min) > part.max_items))) {
      conflict("contains", "no array can hold that many such items");
      return nullptr;
    }
    if (c.min > 0 || (c.max < part.max_items && c.value != kNever)) contains.push_back(c);
  }
  part.contains = keep(contains);
  if (part.min_items > part.max_items) {
    conflict("minItems", "more items are demanded than can be there");
    return nullptr;
  }
  return arena_.make<ArrayPart>(part);
}

const ArrayPart* Compiler::intersect(const ArrayPart* a, const ArrayPart* b) {
  if (a == &kAnyArray || a == b) return b;
  if (b == &kAnyArray) return a;
  ArrayPart part;
  std::vector<NodeId> prefix;
  for (std::size_t i = 0; i < std::max(a->prefix.size(), b->prefix.size()); ++i) {
    prefix.push_back(
        both(i < a->prefix.size() ? a->prefix[i] : a->item, i < b->prefix.size() ? b->prefix[i] : b->item));
  }
  part.prefix = keep(prefix);
  part.item = both(a->item, b->item);
  part.min_items = std::max(a->min_items, b->min_items);
  part.max_items = std::min(a->max_items, b->max_items);
  part.unique = a->unique ? a->unique : b->unique;
  std::vector<Contains> contains(a->contains.begin(), a->contains.end());
  contains.insert(contains.end(), b->contains.begin(), b->contains.end());
  part.contains = keep(contains);
  part.evaluated = std::max(a->evaluated, b->evaluated);
  std::vector<NodeId> evaluated_if(a->evaluated_if.begin(), a->evaluated_if.end());
  evaluated_if.insert(evaluated_if.end(), b->evaluated_if.begin(), b->evaluated_if.end());
  part.evaluated_if = keep(evaluated_if);
  return finish_array(part);
}

template List<const NumberPart*> Compiler::product(List<const NumberPart*>, List<const NumberPart*>);
template List<const StringPart*> Compiler::product(List<const StringPart*>, List<const StringPart*>);
template List<const ArrayPart*> Compiler::product(List<const ArrayPart*>, List<const ArrayPart*>);
template List<const ObjectPart*> Compiler::product(List<const ObjectPart*>, List<const ObjectPart*>);

}  // namespace ag::schema
