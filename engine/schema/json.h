// A reader for the JSON of schemas (RFC 8259): numbers stay text, members keep their order, duplicate keys are refused.
//
// Everything lives in the document's arena and nothing has a destructor, so that a schema of a kilobyte is read in a
// few microseconds and nesting costs no stack. Strings without escapes are views of the text, which must outlive the
// document.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/error.h"

namespace ag::json {

enum class Type : std::uint8_t { kNull, kFalse, kTrue, kNumber, kString, kArray, kObject };

struct Member;

struct Value {
  Type type = Type::kNull;
  bool lone_surrogate = false;  // a string that is no Unicode text; it has U+FFFD where the surrogates were
  std::uint32_t size = 0;       // items, members, or bytes of text
  union {
    const char* text_data;  // kNumber: as spelled; kString: decoded
    const Value* item_data;
    const Member* member_data;
  };
  // For the compiler: the node of this value read as a schema, and as a constant; 0 when it has none yet.
  mutable std::uint32_t node = 0, constant = 0;

  Value() : text_data(nullptr) {}
  bool is(Type t) const { return type == t; }
  bool boolean() const { return type == Type::kFalse || type == Type::kTrue; }
  std::string_view text() const { return {text_data, size}; }
  std::span<const Value> items() const { return {item_data, size}; }
  inline std::span<const Member> members() const;
  // The member's value, or nullptr.
  inline const Value* find(std::string_view key) const;
};

struct Member {
  std::string_view key;
  Value value;
};

inline std::span<const Member> Value::members() const { return {member_data, size}; }
inline const Value* Value::find(std::string_view key) const {
  if (type != Type::kObject) return nullptr;
  for (const Member& m : members()) {
    if (m.key == key) return &m.value;
  }
  return nullptr;
}

// Reads a whole document into `arena`. Throws GrammarError whose pointer is "line:column".
const Value& parse(std::string_view text, Arena& arena, std::uint32_t max_depth);

// Calls `visit` with every value and its pointer, parents first.
void for_each_value(const Value& root, const std::function<void(const Value&, const std::string&)>& visit);
// RFC 6901 pointer of `value` inside `root`, found by search; "" when it is the root or not in it.
std::string pointer_to(const Value& root, const Value& value);
// A pointer's reference token, escaped.
std::string escape_token(std::string_view key);

// One line for messages: compact JSON, cut after about `limit` bytes.
std::string excerpt(const Value& value, std::size_t limit = 40);

}  // namespace ag::json
