// Makes terminals and interns them: equal definitions give the same object, across grammars and sessions. Everything
// that tools share, and everything that mask entries hang on, is shared through here.
//
// A factory never returns a terminal of the empty language: it returns nullptr instead (the caller prunes).
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/interned.h"
#include "regular/terminal.h"

namespace ag {

namespace regular {
struct NameTokens;
}

// Strings of a JSON document, after decoding. All parts apply at once (intersection).
struct StringLanguage {
  std::vector<std::string> patterns;      // ECMA-262 with the u flag, search semantics (not anchored)
  std::vector<std::string> not_patterns;  // none of these is found
  std::vector<std::string> formats;       // date-time, date, time, duration, uuid, email, ipv4, ...
  std::vector<std::string> not_formats;   // of none of these
  std::uint64_t min_length = 0;           // in code points
  std::uint64_t max_length = kNoMax;
  std::vector<std::string> excluded;  // values ruled out
  bool operator==(const StringLanguage&) const = default;
};

// A number's bounds, as exact decimal texts ("-1.5e3" is fine); absent when empty.
struct NumberLanguage {
  bool integer = false;
  std::string minimum, exclusive_minimum, maximum, exclusive_maximum;
  std::vector<std::string> multiple_of;
  std::vector<std::string> not_multiple_of;  // of none of these; "1": no integer
  std::vector<std::string> excluded;
  bool operator==(const NumberLanguage&) const = default;
};

// Keys of an object, after decoding. Labels: i for names[i], names.size() + j for a key of class j that is none of the
// names. `forbidden` keys are no key at all. Classes are tried in order; the first that contains the key gives the
// label. `names` must be sorted bytewise and distinct (else ValueError), so that Range [lo, hi) can be exact.
struct KeyLanguage {
  std::vector<std::string> names;
  std::vector<std::string> forbidden;
  std::vector<StringLanguage> classes;
  std::vector<std::uint32_t> barred;  // classes whose keys are no key at all: of no other class, and with no label
  bool operator==(const KeyLanguage&) const = default;
};

// How much blank is allowed where JSON allows any: none, json.dumps' single blanks, or at most 2 newlines and 64
// blanks.
enum class Whitespace : std::uint8_t { kCompact, kCanonical, kFlexible };

// Free text with triggers (TagDispatch's Aho-Corasick automaton). Text is valid UTF-8. Labels of accepting states:
// kText where the text may end; i when pattern i has just been completed, after which nothing follows in this terminal.
// A text never contains a pattern or an exclude.
struct TextLanguage {
  std::vector<std::string> patterns;
  std::vector<std::string> excludes;
  bool longest = false;  // a pattern that contains another is told apart by the next byte
  bool operator==(const TextLanguage&) const = default;
};

class TerminalPool {
 public:
  TerminalPool();
  ~TerminalPool();
  TerminalPool(const TerminalPool&) = delete;
  TerminalPool& operator=(const TerminalPool&) = delete;

  static constexpr std::uint32_t kText = 0xffff'ffff;

  TerminalPtr literal(std::string_view bytes);
  // `text` with the blanks that JSON allows before and after it (either side may be off). kCanonical prints one blank
  // after
  // ',' and ':' and none elsewhere.
  TerminalPtr punctuation(char text, bool before, bool after, Whitespace whitespace);
  // The whole of a text (UTF-8), full match. Throws GrammarError whose pointer is the position in the pattern.
  TerminalPtr regex(std::string_view pattern);
  // JSON strings, quotes included, every escaped spelling of each value.
  TerminalPtr json_string(const StringLanguage&);
  TerminalPtr json_strings(const std::vector<std::string>& values);  // exactly these values (an enum)
  TerminalPtr json_number(const NumberLanguage&);
  TerminalPtr json_key(const KeyLanguage&);  // labelled; quotes included
  // Exactly these byte strings, labelled by index (labels in the given order, which the caller sorts bytewise).
  // Not interned: it is per request (tool-name fan-out). What the views show must outlive the terminal.
  TerminalPtr fanout(std::vector<std::string_view> texts, std::vector<regular::NameTokens*> tokens = {});
  TerminalPtr spellings(std::vector<std::string> texts);  // the same, interned
  TerminalPtr text(const TextLanguage&);

  struct Stats {
    std::size_t terminals = 0, bytes = 0;
  };
  Stats stats() const;
  void clear();  // forgets what nobody uses

  // Where things that are made of this pool's terminals are interned, as those are.
  const std::shared_ptr<Interner>& interner() const { return interner_; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::shared_ptr<Interner> interner_ = std::make_shared<Interner>();
};

// Whether decoded `value` is in the language (used for const/enum filtering and by tests).
bool contains(const StringLanguage&, std::string_view value_utf8);
// The same for many values. Throws GrammarError about a pattern that cannot be read.
class StringTest {
 public:
  explicit StringTest(const StringLanguage&);
  ~StringTest();
  StringTest(StringTest&&) noexcept;
  bool operator()(std::string_view value_utf8);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};
// Whether a language has no string, when that shows within a small search; nothing otherwise.
std::optional<bool> is_empty(const StringLanguage&);
bool contains(const NumberLanguage&, std::string_view decimal_text);
// Whether a language without bounds on one side has no number; nothing for others.
std::optional<bool> is_empty(const NumberLanguage&);

// All strings of a language, sorted by length and then by code points, when there are at most `limit`; nothing
// otherwise.
std::optional<std::vector<std::string>> finite_values(const StringLanguage&, std::size_t limit);

// Whether `format` is one that StringLanguage::formats may name.
bool known_format(std::string_view format);

}  // namespace ag
