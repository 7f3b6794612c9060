// Errors that cross the engine's own layers. Everything thrown inside the engine derives from one of these; the
// bindings turn them into Python exceptions, so nothing else ever reaches the interpreter.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

namespace ag {

// A schema, regular expression or grammar that cannot be enforced exactly (agentgram.errors.GrammarError).
struct GrammarError : std::exception {
  std::string message;  // what is wrong, without a full stop
  std::string pointer;  // JSON pointer (RFC 6901) or position in a text
  std::string keyword;  // the keyword or construct refused; may be empty
  std::string hint;     // what to do about it; a sentence

  explicit GrammarError(std::string message_, std::string pointer_ = {}, std::string keyword_ = {},
                        std::string hint_ = {})
      : message(std::move(message_)),
        pointer(std::move(pointer_)),
        keyword(std::move(keyword_)),
        hint(std::move(hint_)) {}
  const char* what() const noexcept override { return message.c_str(); }
};

// A grammar that is understood, and that nothing satisfies.
struct Unsatisfiable : GrammarError {
  explicit Unsatisfiable(GrammarError error) : GrammarError(std::move(error)) {}
};

// A bad argument from the caller (a ValueError in Python).
struct ValueError : std::exception {
  std::string message;
  explicit ValueError(std::string message_) : message(std::move(message_)) {}
  const char* what() const noexcept override { return message.c_str(); }
};

// Bounds on one grammar (engine.md, "Limits"). Reaching one is a GrammarError, never a hang.
struct Limits {
  std::uint64_t max_nodes = 1'000'000;     // expression nodes
  std::uint64_t max_dfa_states = 100'000;  // states of one terminal
  std::uint32_t max_depth = 10'000;        // nesting
  std::uint64_t max_shortest = 1 << 20;    // bytes of the shortest text
};

inline constexpr std::uint64_t kNoMax = ~std::uint64_t{0};  // an absent upper bound

}  // namespace ag
