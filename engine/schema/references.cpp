#include "schema/references.h"

#include <charconv>
#include <vector>

#include "schema/keywords.h"

namespace ag::schema {

using json::Member;
using json::Type;
using json::Value;

Draft draft_of(const Value* dollar_schema, Draft otherwise) {
  if (!dollar_schema || !dollar_schema->is(Type::kString)) return otherwise;
  std::string_view uri = dollar_schema->text();
  if (uri.ends_with('#')) uri.remove_suffix(1);
  for (std::string_view scheme : {"http://", "https://"}) {
    if (uri.starts_with(scheme)) uri.remove_prefix(scheme.size());
  }
  if (uri == "json-schema.org/draft-04/schema") return Draft::k4;
  if (uri == "json-schema.org/draft-06/schema") return Draft::k6;
  if (uri == "json-schema.org/draft-07/schema") return Draft::k7;
  if (uri == "json-schema.org/draft/2019-09/schema") return Draft::k2019;
  if (uri == "json-schema.org/draft/2020-12/schema") return Draft::k2020;
  return otherwise;
}

namespace {

struct Uri {
  std::string_view scheme, authority, path, query;
  bool has_authority = false, has_query = false;

  explicit Uri(std::string_view text) {
    text = text.substr(0, text.find('#'));
    if (auto q = text.find('?'); q != std::string_view::npos) {
      query = text.substr(q + 1), has_query = true;
      text = text.substr(0, q);
    }
    auto colon = text.find(':');
    if (colon != std::string_view::npos && colon > 0 && text.find('/') > colon) {
      scheme = text.substr(0, colon);
      text.remove_prefix(colon + 1);
    }
    if (text.starts_with("//")) {
      has_authority = true;
      text.remove_prefix(2);
      auto slash = text.find('/');
      authority = text.substr(0, slash);
      text = slash == std::string_view::npos ? std::string_view{} : text.substr(slash);
    }
    path = text;
  }
};

std::string without_dots(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    if (path.starts_with("../")) {
      path.remove_prefix(3);
    } else if (path.starts_with("./")) {
      path.remove_prefix(2);
    } else if (path.starts_with("/./")) {
      path.remove_prefix(2);
    } else if (path == "/.") {
      path = "/";
    } else if (path.starts_with("/../") || path == "/..") {
      path = path.size() > 3 ? path.substr(3) : std::string_view("/");
      auto slash = out.rfind('/');
      out.erase(slash == std::string::npos ? 0 : slash);
    } else if (path == "." || path == "..") {
      path = {};
    } else {
      auto slash = path.find('/', 1);
      out += path.substr(0, slash);
      path = slash == std::string_view::npos ? std::string_view{} : path.substr(slash);
    }
  }
  return out;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16).ptr == text.data() + i + 3) {
      out += static_cast<char>(byte);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

std::string resolve_uri(std::string_view base_text, std::string_view reference) {
  Uri base(base_text), r(reference);
  std::string_view scheme = base.scheme, authority = base.authority, query = r.query;
  bool has_authority = base.has_authority, has_query = r.has_query;
  std::string path;
  if (!r.scheme.empty() || r.has_authority) {
    if (!r.scheme.empty()) scheme = r.scheme;
    authority = r.authority, has_authority = r.has_authority;
    path = without_dots(r.path);
  } else if (r.path.empty()) {
    path = base.path;
    if (!r.has_query) query = base.query, has_query = base.has_query;
  } else if (r.path.starts_with('/')) {
    path = without_dots(r.path);
  } else {
    auto slash = base.path.rfind('/');
    std::string joined(slash == std::string_view::npos ? std::string_view{} : base.path.substr(0, slash + 1));
    if (joined.empty() && base.has_authority) joined.push_back('/');
    joined += r.path;
    path = without_dots(joined);
  }
  std::string out;
  if (!scheme.empty()) out.append(scheme).append(":");
  if (has_authority) out.append("//").append(authority);
  out += path;
  if (has_query) out.append("?").append(query);
  return out;
}

References::References(const Value& root, std::string_view text, Draft draft) : root_(root), draft_(draft) {
  // An escaped spelling of a key is rare enough to make the index for.
  auto has = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
  plain_ = !(has(draft == Draft::k4 ? "\"id\"" : "\"$id\"") || has("nchor\"") || has("\\u00"));
}

void References::index() {
  indexed_ = true;
  struct Item {
    const Value* schema;
    std::string base;
  };
  std::vector<Item> todo{{&root_, ""}};
  resources_.emplace("", &root_);
  while (!todo.empty()) {
    Item item = std::move(todo.back());
    todo.pop_back();
    if (!item.schema->is(Type::kObject)) continue;
    auto string_of = [&](std::string_view key) -> std::string_view {
      const Value* v = item.schema->find(key);
      return v && v->is(Type::kString) ? v->text() : std::string_view{};
    };
    std::string_view id = string_of(draft_ == Draft::k4 ? "id" : "$id");
    bool ignored = draft_ <= Draft::k7 && item.schema->find("$ref");  // $ref stands alone in these drafts
    if (!id.empty() && !ignored) {
      auto hash = id.find('#');
      if (hash != 0) {
        item.base = resolve_uri(item.base, id);
        resources_.emplace(item.base, item.schema);
      }
      if (hash != std::string_view::npos && hash + 1 < id.size()) {
        anchors_.emplace(item.base + "#" + std::string(id.substr(hash + 1)), item.schema);
      }
    }
    bases_.emplace(item.schema, item.base);
    if (draft_ >= Draft::k2019) {
      for (std::string_view key : {"$anchor", "$dynamicAnchor"}) {
        std::string_view name = string_of(key);
        if (name.empty()) continue;
        anchors_.emplace(item.base + "#" + std::string(name), item.schema);
        if (key == "$dynamicAnchor") ++dynamic_[std::string(name)];
      }
    }
    for (const Member& m : item.schema->members()) {
      switch (keyword_of(m.key)) {
        case Keyword::kProperties:
        case Keyword::kPatternProperties:
        case Keyword::kDependentSchemas:
        case Keyword::kDependencies:
        case Keyword::kDefs:
        case Keyword::kDefinitions:
          if (m.value.is(Type::kObject)) {
            for (const Member& child : m.value.members()) todo.push_back({&child.value, item.base});
          }
          break;
        case Keyword::kAllOf:
        case Keyword::kAnyOf:
        case Keyword::kOneOf:
        case Keyword::kPrefixItems:
        case Keyword::kItems:
          if (m.value.is(Type::kArray)) {
            for (const Value& child : m.value.items()) todo.push_back({&child, item.base});
          } else {
            todo.push_back({&m.value, item.base});
          }
          break;
        case Keyword::kAdditionalProperties:
        case Keyword::kPropertyNames:
        case Keyword::kAdditionalItems:
        case Keyword::kContains:
        case Keyword::kUnevaluatedItems:
        case Keyword::kUnevaluatedProperties:
        case Keyword::kNot:
        case Keyword::kIf:
        case Keyword::kThen:
        case Keyword::kElse:
          todo.push_back({&m.value, item.base});
          break;
        default:
          break;
      }
    }
  }
}

const Value* References::follow(const Value& start, std::string_view pointer, std::string* why) const {
  std::string decoded;
  if (pointer.find('%') != std::string_view::npos) decoded = percent_decoded(pointer), pointer = decoded;
  const Value* v = &start;
  std::string unescaped;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);  // '/'
    auto slash = pointer.find('/');
    std::string_view token = pointer.substr(0, slash);
    pointer = slash == std::string_view::npos ? std::string_view{} : pointer.substr(slash);
    if (token.find('~') != std::string_view::npos) {
      unescaped.clear();
      for (std::size_t i = 0; i < token.size(); ++i) {
        if (token[i] == '~' && i + 1 < token.size() && (token[i + 1] == '0' || token[i + 1] == '1')) {
          unescaped += token[++i] == '0' ? '~' : '/';
        } else {
          unescaped += token[i];
        }
      }
      token = unescaped;
    }
    const Value* next = nullptr;
    if (v->is(Type::kArray)) {
      std::uint32_t i = 0;
      auto r = std::from_chars(token.data(), token.data() + token.size(), i);
      bool whole =
          r.ec == std::errc{} && r.ptr == token.data() + token.size() && (token.size() == 1 || token[0] != '0');
      if (whole && i < v->size) next = &v->item_data[i];
    } else {
      next = v->find(token);
    }
    if (!next) {
      *why = "there is no \"" + std::string(token) + "\" on the way";
      return nullptr;
    }
    v = next;
  }
  return v;
}

const Value* References::lookup(const Value& from, std::string_view reference, std::string* why) {
  auto hash = reference.find('#');
  std::string_view uri = reference.substr(0, hash);
  std::string_view fragment = hash == std::string_view::npos ? std::string_view{} : reference.substr(hash + 1);
  const Value* start = &root_;
  std::string base;
  if (plain_) {
    if (!uri.empty()) {
      *why = "it is outside this document";
      return nullptr;
    }
  } else {
    if (!indexed_) index();
    auto b = bases_.find(&from);
    base = resolve_uri(b == bases_.end() ? bases_.at(&root_) : b->second, uri);
    auto r = resources_.find(base);
    if (r == resources_.end()) {
      *why = "it is outside this document";
      return nullptr;
    }
    start = r->second;
  }
  if (fragment.empty()) return start;
  if (fragment[0] == '/') return follow(*start, fragment, why);
  if (!plain_) {
    auto a = anchors_.find(base + "#" + percent_decoded(fragment));
    if (a != anchors_.end()) return a->second;
  }
  *why = "there is no anchor of this name";
  return nullptr;
}

const Value* References::find(const Value& from, std::string_view reference, std::string* why) {
  if (!plain_) return lookup(from, reference, why);
  auto [it, fresh] = found_.try_emplace(reference, nullptr);
  if (fresh) it->second = lookup(from, reference, why);
  if (!it->second && !fresh) lookup(from, reference, why);
  return it->second;
}

const Value* References::find_dynamic(const Value& from, std::string_view reference, std::string* why) {
  const Value* target = find(from, reference, why);
  auto hash = reference.find('#');
  if (!target || hash == std::string_view::npos) return target;
  std::string name(reference.substr(hash + 1));
  const Value* own = target->find("$dynamicAnchor");
  if (!own || own->text() != name || dynamic_[name] < 2) return target;
  *why = "which $dynamicAnchor it means depends on the way that led there";
  return nullptr;
}

}  // namespace ag::schema
