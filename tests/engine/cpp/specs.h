// Specifications and a small vocabulary for the engine's own C++ tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "matcher/engine.h"

namespace ag::test {

inline std::shared_ptr<Spec> node(Spec::Kind kind, std::string text = {}) {
  auto out = std::make_shared<Spec>();
  out->kind = kind;
  out->text = std::move(text);
  return out;
}

inline SpecPtr schema(std::string text, bool any_order = false) {
  auto out = node(Spec::kSchema, std::move(text));
  out->schema = {Whitespace::kFlexible, any_order, false};
  return out;
}

inline SpecPtr tag(const std::string& begin, SpecPtr content, const std::string& end) {
  auto out = node(Spec::kTag);
  out->begin.text = begin;
  out->end.text = end;
  out->children = {std::move(content)};
  return out;
}

inline SpecPtr dispatch(std::vector<SpecPtr> tags, const std::string& trigger) {
  auto out = node(Spec::kDispatch);
  out->children = std::move(tags);
  Spec::Mark mark;
  mark.text = trigger;
  out->triggers = {mark};
  return out;
}

// All bytes, pairs and triples of some of them, and an end; and, if asked, some tokens with whole keys in them.
inline std::shared_ptr<const Vocabulary> vocabulary(bool keys = false) {
  std::vector<std::string> tokens;
  for (int b = 0; b < 256; ++b) tokens.emplace_back(1, static_cast<char>(b));
  const std::string some = "ab{}\":,<>\\u0 \n";
  for (char a : some) {
    for (char b : some) {
      tokens.push_back({a, b});
      for (char c : some) tokens.push_back({a, b, c});
    }
  }
  for (const char* token :
       {"a\":1,\"a\":", "\"a\":1,\"b\":1,\"a\":", "{\"a\":1,\"b\":1}", "ab\", \"ab\"", ",\"a\":{\"a\":\"",
        "\\u0061\":1,\"a\"", "b\"],\"b\":[\"b\",\"a\"]", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"})
    if (keys) tokens.push_back(token);
  tokens.push_back("");
  const auto end = static_cast<std::uint32_t>(tokens.size() - 1);
  return std::make_shared<Vocabulary>(std::move(tokens),
                                      std::vector<std::pair<std::string, std::uint32_t>>{{"<end>", end}},
                                      std::vector<std::uint32_t>{end});
}

}  // namespace ag::test
