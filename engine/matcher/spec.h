// A grammar specification as the engine keeps it: an immutable tree without a vocabulary, made once when it is
// declared.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/ref.h"
#include "dispatch/declared_tag.h"
#include "schema/schema.h"

namespace ag {

struct Fragment;
struct Spec;
using SpecPtr = std::shared_ptr<const Spec>;

// A compiled specification, and what it says of its own coverage.
struct Compiled {
  std::shared_ptr<const Fragment> fragment;
  std::shared_ptr<const Coverage> coverage;  // of a dispatch that left tags out
};

struct Spec : std::enable_shared_from_this<Spec> {
  enum Kind : std::uint8_t { kLit, kTok, kText, kSeq, kChoice, kOpt, kRep, kTag, kDispatch, kRegex, kEbnf, kSchema };

  struct Mark {  // a trigger, stop or tag border
    std::string text;
    bool token = false;
    std::int64_t id = -1;  // of a token given by id; else by name in `text`
  };

  // What engines made of this handle, so that declaring is paid once.
  mutable std::mutex mutex;
  mutable Ref<const DeclaredTag> declared;                       // kTag: by the engine that met it last
  mutable std::atomic<const DeclaredTag*> declared_at{nullptr};  // to fetch it ahead, not to be read
  mutable std::vector<std::pair<std::uint64_t, std::weak_ptr<const Compiled>>> compiled;

  Kind kind = kLit;
  std::string text;                     // kLit, kRegex, kEbnf, kSchema
  Mark mark;                            // kTok
  std::vector<std::string> excludes;    // kText, kDispatch
  std::vector<SpecPtr> children;        // kSeq, kChoice, kOpt, kRep (item, separator), kTag (content), kDispatch (tags)
  std::uint64_t min = 0, max = kNoMax;  // kRep, kDispatch
  Mark begin, end;                      // kTag
  std::vector<Mark> triggers, stops;
  bool stop_after_first = false;
  SchemaOptions schema;
};

}  // namespace ag
