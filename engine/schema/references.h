// Where $ref leads: pointers, anchors and identifiers within one document (RFC 6901, RFC 3986).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "schema/json.h"

namespace ag::schema {

enum class Draft : std::uint8_t { k4, k6, k7, k2019, k2020 };

// The draft that a $schema value names; `otherwise` when it is none that is known.
Draft draft_of(const json::Value* dollar_schema, Draft otherwise);

// Base with a reference applied (RFC 3986, section 5.2), without the fragment.
std::string resolve_uri(std::string_view base, std::string_view reference);

class References {
 public:
  // `text` is the document's text: it tells cheaply whether there are any identifiers.
  References(const json::Value& root, std::string_view text, Draft draft);

  // The schema that `reference`, found in the schema object `from`, names; nullptr when there is none in the document.
  // `why` then says what is missing.
  const json::Value* find(const json::Value& from, std::string_view reference, std::string* why);
  // The schema that a $dynamicRef leads to when only one answer is possible, else nullptr.
  const json::Value* find_dynamic(const json::Value& from, std::string_view reference, std::string* why);

 private:
  void index();
  const json::Value* follow(const json::Value& start, std::string_view pointer, std::string* why) const;
  const json::Value* lookup(const json::Value& from, std::string_view reference, std::string* why);

  const json::Value& root_;
  Draft draft_;
  bool plain_;  // no identifiers and no anchors: only pointers from the root
  bool indexed_ = false;
  std::unordered_map<std::string, const json::Value*> resources_;   // absolute URI -> schema
  std::unordered_map<std::string, const json::Value*> anchors_;     // URI '#' name -> schema
  std::unordered_map<std::string, std::uint32_t> dynamic_;          // name -> how many $dynamicAnchor have it
  std::unordered_map<const json::Value*, std::string> bases_;       // schema -> base URI
  std::unordered_map<std::string_view, const json::Value*> found_;  // for plain documents
};

}  // namespace ag::schema
