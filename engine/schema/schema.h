// JSON Schema to grammar (RFC 8259 text; JSON Schema 2020-12, 2019-09, 7, 6, 4).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/builder.h"

namespace ag {

struct SchemaOptions {
  Whitespace whitespace = Whitespace::kFlexible;
  bool any_order = false;
  bool relax = false;
};

// What became of each keyword. `relaxed` is what the grammar does not enforce (only with SchemaOptions::relax);
// `warnings` is what was ignored and may have been meant otherwise: unknown words near known ones, unknown formats,
// drafts.
struct Coverage {
  struct Row {
    std::string pointer, keyword, why;
  };
  std::vector<Row> enforced, narrowed, relaxed, warnings;

  std::size_t bytes() const {
    std::size_t total = sizeof *this;
    for (const auto* rows : {&enforced, &narrowed, &relaxed, &warnings}) {
      for (const Row& r : *rows) total += sizeof r + r.pointer.capacity() + r.why.capacity();
    }
    return total;
  }
};

// Compiles the schema given as JSON text. Throws GrammarError with pointer, keyword and hint.
std::shared_ptr<const Fragment> compile_schema(std::string_view json_text, const SchemaOptions&, TerminalPool&,
                                               const Limits&, Coverage* coverage);

}  // namespace ag
