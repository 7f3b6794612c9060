// Boolean expressions over places in the schema, interned: equal expressions are one node, so recursion comes back to
// it.
#include <algorithm>

#include "base/hash.h"
#include "schema/compiler.h"

namespace ag::schema {

NodeId Compiler::add(Node node) {
  if (nodes_.size() >= limits_.max_nodes) {
    throw GrammarError("the schema needs more than " + std::to_string(limits_.max_nodes) + " nodes", "", "",
                       "Split the schema, or raise the limit.");
  }
  nodes_.push_back(node);
  return static_cast<NodeId>(nodes_.size() - 1);
}

NodeId Compiler::at(const Value& schema) {
  if (schema.node) return schema.node;
  switch (schema.type) {
    case json::Type::kTrue:
      return schema.node = kAny;
    case json::Type::kFalse:
      return schema.node = kNever;
    case json::Type::kObject:
      return schema.node = schema.size == 0 ? kAny : add({Node::kAt, &schema});
    default:
      fail(schema, "", "a schema must be an object or a boolean, not " + json::excerpt(schema),
           "Put {} where anything goes.");
  }
}

NodeId Compiler::constant(const Value& value) {
  if (value.constant) return value.constant;
  return value.constant = add({Node::kConstant, &value});
}

NodeId Compiler::intern(Node::Kind kind, List<NodeId> ids) {
  std::uint64_t hash = static_cast<std::uint64_t>(kind) + 1;
  for (NodeId id : ids) hash = hash_next(hash, id);
  std::vector<NodeId>& bucket = interned_[hash];
  for (NodeId id : bucket) {
    if (nodes_[id].kind == kind && std::equal(ids.begin(), ids.end(), nodes_[id].ids.begin(), nodes_[id].ids.end())) {
      return id;
    }
  }
  Node node{kind};
  node.ids = keep(std::vector<NodeId>(ids.begin(), ids.end()));
  NodeId id = add(node);
  bucket.push_back(id);
  return id;
}

// Whether the schema lists its values (enum, const), so that its shape is known at once and small.
bool Compiler::listed(NodeId id) {
  Node& n = nodes_[id];
  if (n.listed != Node::kUnknown) return n.listed == Node::kYes;
  bool yes = false;
  if (n.kind == Node::kConstant) {
    yes = !n.at->is(json::Type::kArray) && !n.at->is(json::Type::kObject);
  } else if (n.kind == Node::kAt) {
    for (const json::Member& m : n.at->members()) {
      Keyword k = keyword_of(m.key);
      if (k == Keyword::kEnum || k == Keyword::kConst) yes = true;
      bool harmless = k == Keyword::kEnum || k == Keyword::kConst || k == Keyword::kType || k == Keyword::kAnnotation ||
                      k == Keyword::kUnknown;
      if (!harmless) {
        yes = false;
        break;
      }
    }
  } else if (n.kind == Node::kOr) {
    yes = std::all_of(n.ids.begin(), n.ids.end(), [&](NodeId i) { return listed(i); });
  }
  n.listed = yes ? Node::kYes : Node::kNo;
  return yes;
}

// Works out what a list of values and the other lists in a conjunction have in common. False: nothing.
bool Compiler::simplify_listed(std::vector<NodeId>& ids) {
  auto opposite = [&](NodeId id) { return nodes_[id].kind == Node::kNot && listed(nodes_[id].ids[0]); };
  auto first = std::find_if(ids.begin(), ids.end(), [&](NodeId id) { return listed(id); });
  if (first == ids.end() || ids.size() < 2) return true;
  NodeId keeper = *first;
  const Shape* all = shape(keeper);
  const Shape* common = all;
  for (NodeId id : ids) {
    if (id != keeper && listed(id)) common = intersect(common, shape(id));
    if (opposite(id)) common = subtract(common, shape(nodes_[id].ids[0]));
  }
  if (common->empty()) return false;
  auto same = [](auto a, auto b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); };
  if (common->scalars == all->scalars && same(common->numbers, all->numbers) && same(common->strings, all->strings) &&
      same(common->arrays, all->arrays) && same(common->objects, all->objects)) {
    std::erase_if(ids, [&](NodeId id) { return id != keeper && (listed(id) || opposite(id)); });
  }
  return true;
}

// Order is kept: it decides the order in which the merged properties are written.
NodeId Compiler::combine(Node::Kind kind, std::vector<NodeId> ids) {
  NodeId neutral = kind == Node::kAnd ? kAny : kNever;
  NodeId absorbing = kind == Node::kAnd ? kNever : kAny;
  std::vector<NodeId> flat;
  for (NodeId id : ids) {
    List<NodeId> inner = nodes_[id].kind == kind ? nodes_[id].ids : List<NodeId>(&id, 1);
    for (NodeId i : inner) {
      if (i == absorbing) return absorbing;
      if (i != neutral && std::find(flat.begin(), flat.end(), i) == flat.end()) flat.push_back(i);
    }
  }
  for (NodeId id : flat) {  // x and not x
    if (nodes_[id].kind == Node::kNot && std::find(flat.begin(), flat.end(), nodes_[id].ids[0]) != flat.end()) {
      return absorbing;
    }
  }
  if (kind == Node::kAnd && !simplify_listed(flat)) return kNever;
  if (flat.empty()) return neutral;
  return flat.size() == 1 ? flat[0] : intern(kind, flat);
}

NodeId Compiler::both(NodeId a, NodeId b) {
  if (a == b || b == kAny) return a;
  if (a == kAny) return b;
  if (a == kNever || b == kNever) return kNever;
  return combine(Node::kAnd, {a, b});
}

NodeId Compiler::either(NodeId a, NodeId b) {
  if (a == b || b == kNever) return a;
  if (a == kNever) return b;
  if (a == kAny || b == kAny) return kAny;
  return combine(Node::kOr, {a, b});
}

NodeId Compiler::negate(NodeId a) {
  if (a == kAny) return kNever;
  if (a == kNever) return kAny;
  if (nodes_[a].kind == Node::kNot) return nodes_[a].ids[0];
  if (nodes_[a].kind == Node::kAnd || nodes_[a].kind == Node::kOr) {
    std::vector<NodeId> ids;
    for (NodeId id : nodes_[a].ids) ids.push_back(negate(id));
    return combine(nodes_[a].kind == Node::kAnd ? Node::kOr : Node::kAnd, std::move(ids));
  }
  return intern(Node::kNot, List<NodeId>(&a, 1));
}

const Shape* Compiler::shape(NodeId id) {
  if (nodes_[id].shape) return nodes_[id].shape;
  if (nodes_[id].open) {
    if (probing_) throw Circular{};
    fail(*here_, "$ref", "the schema refers to itself before it says anything of its own",
         "Let the loop pass through a property or an item.");
  }
  struct Mark {  // also taken back when working it out ends in an exception
    std::vector<Node>& nodes;
    NodeId id;
    Mark(std::vector<Node>& n, NodeId i) : nodes(n), id(i) { nodes[id].open = true; }
    ~Mark() { nodes[id].open = false; }
  } mark(nodes_, id);
  const Shape* out = compute(Node(nodes_[id]));
  nodes_[id].shape = out;
  return out;
}

const Shape* Compiler::compute(const Node& node) {
  if (node.kind == Node::kAt) return schema_shape(*node.at);
  if (node.kind == Node::kConstant) return constant_shape(*node.at);
  if (node.kind == Node::kNot) return complement(shape(node.ids[0]));
  if (node.kind == Node::kAnd) {
    const Shape* out = any_;
    for (NodeId id : node.ids) {
      if (nodes_[id].kind != Node::kNot) out = intersect(out, shape(id));
    }
    for (NodeId id : node.ids) {
      if (nodes_[id].kind == Node::kNot) out = out == any_ ? shape(id) : subtract(out, shape(nodes_[id].ids[0]));
    }
    return out;
  }
  std::vector<const Shape*> shapes;
  for (NodeId id : node.ids) shapes.push_back(shape(id));
  return unite(shapes);
}

}  // namespace ag::schema
