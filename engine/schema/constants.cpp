// const and enum: values become shapes of one value each.
#include "schema/compiler.h"

namespace ag::schema {

using json::Member;
using json::Type;

const Shape* Compiler::constant_shape(const Value& value) {
  Shape s;
  switch (value.type) {
    case Type::kNull:
      s.scalars = Shape::kNull;
      break;
    case Type::kTrue:
      s.scalars = Shape::kTrue;
      break;
    case Type::kFalse:
      s.scalars = Shape::kFalse;
      break;
    case Type::kNumber: {
      NumberPart part;
      part.finite = true;
      part.values = one(value.text());
      s.numbers = one<const NumberPart*>(arena_.make<NumberPart>(part));
      break;
    }
    case Type::kString: {
      check_unicode(value, "const");
      StringPart part;
      part.finite = true;
      part.values = one(value.text());
      s.strings = one<const StringPart*>(arena_.make<StringPart>(part));
      break;
    }
    case Type::kArray: {
      ArrayPart part;
      std::vector<NodeId> items;
      for (const Value& v : value.items()) items.push_back(constant(v));
      part.prefix = keep(items);
      part.item = kNever;
      part.min_items = part.max_items = value.size;
      s.arrays = one<const ArrayPart*>(arena_.make<ArrayPart>(part));
      break;
    }
    case Type::kObject:
      s.objects = one(constant_object(value));
      break;
  }
  return arena_.make<Shape>(s);
}

const Shape* Compiler::enum_shape(const Value& values) {
  if (!values.is(Type::kArray)) fail(*here_, "enum", "enum must be a list of values, not " + json::excerpt(values), "");
  if (values.size == 0) conflict("enum", "the list of values is empty");
  Shape s;
  NumberPart numbers;
  StringPart strings;
  std::vector<std::string_view> number_values, string_values;
  std::vector<const Shape*> containers;
  for (const Value& v : values.items()) {
    switch (v.type) {
      case Type::kNumber:
        number_values.push_back(v.text());
        break;
      case Type::kString:
        check_unicode(v, "enum");
        string_values.push_back(v.text());
        break;
      case Type::kArray:
      case Type::kObject:
        containers.push_back(shape(constant(v)));
        break;
      default:
        s.scalars |= constant_shape(v)->scalars;
    }
  }
  if (!number_values.empty()) {
    numbers.finite = true;
    numbers.values = keep(number_values);
    s.numbers = one<const NumberPart*>(arena_.make<NumberPart>(numbers));
  }
  if (!string_values.empty()) {
    strings.finite = true;
    strings.values = keep(string_values);
    s.strings = one<const StringPart*>(arena_.make<StringPart>(strings));
  }
  containers.push_back(arena_.make<Shape>(s));
  return unite(containers);
}

const ObjectPart* Compiler::constant_object(const Value& value) {
  ObjectPart part;
  std::vector<Property> properties;
  for (const Member& m : value.members()) properties.push_back({m.key, constant(m.value), true, true});
  part.properties = keep(properties);
  part.others = kNoOthers;
  return arena_.make<ObjectPart>(part);
}

}  // namespace ag::schema
