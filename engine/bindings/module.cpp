// The Python face of the engine: the only place that sees Python. No exception but the three translated below leaves
// it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "base/workers.h"
#include "bindings/bindings.h"
#include "bindings/json_text.h"
#include "matcher/engine.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using ag::PyGrammar;
using ag::Spec;
using ag::SpecPtr;

PyObject* grammar_error = nullptr;  // agentgram.errors.GrammarError, set once by the package

std::shared_ptr<Spec> node(Spec::Kind kind) {
  auto out = std::make_shared<Spec>();
  out->kind = kind;
  return out;
}

// A mark as Python gives it: text, or (name or id) of a token.
using MarkArg = std::tuple<bool, std::string, std::int64_t>;
Spec::Mark mark(const MarkArg& m) { return {std::get<1>(m), std::get<0>(m), std::get<2>(m)}; }

std::vector<Spec::Mark> marks(const std::vector<MarkArg>& all) {
  std::vector<Spec::Mark> out;
  for (const auto& m : all) out.push_back(mark(m));
  return out;
}

nb::list rows_of(const std::vector<std::shared_ptr<const ag::Coverage>>& all,
                 std::vector<ag::Coverage::Row> ag::Coverage::* kind) {
  nb::list out;
  for (const auto& c : all) {
    for (const auto& r : (*c).*kind) out.append(nb::make_tuple(r.pointer, r.keyword, r.why));
  }
  return out;
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "The structured-generation engine. Use agentgram.engine, which is typed and documented.";
  nb::set_leak_warnings(false);

  m.def("set_grammar_error", [](nb::object cls) {
    Py_XDECREF(grammar_error);
    grammar_error = cls.release().ptr();
  });
  m.def("json_text", [](nb::handle value) -> std::optional<std::string> {
    std::string out;
    if (!ag::json_text(value.ptr(), out)) return std::nullopt;
    return out;
  });
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const ag::GrammarError& e) {
      nb::dict kwargs;
      kwargs["pointer"] = e.pointer;
      kwargs["keyword"] = e.keyword;
      kwargs["hint"] = e.hint;
      nb::object error = nb::handle(grammar_error)(e.message, **kwargs);
      PyErr_SetObject(grammar_error, error.ptr());
    } catch (const ag::ValueError& e) {
      PyErr_SetString(PyExc_ValueError, e.what());
    }
  });

  nb::class_<Spec>(m, "Spec")
      .def_static(
          "lit",
          [](const std::string& text) {
            auto s = node(Spec::kLit);
            s->text = text;
            return SpecPtr(s);
          },
          "text"_a)
      .def_static(
          "tok",
          [](const MarkArg& token) {
            auto s = node(Spec::kTok);
            s->mark = mark(token);
            return SpecPtr(s);
          },
          "token"_a)
      .def_static(
          "text",
          [](const std::vector<std::string>& excludes) {
            auto s = node(Spec::kText);
            s->excludes = excludes;
            return SpecPtr(s);
          },
          "excludes"_a)
      .def_static(
          "seq",
          [](const std::vector<SpecPtr>& items) {
            auto s = node(Spec::kSeq);
            s->children = items;
            return SpecPtr(s);
          },
          "items"_a)
      .def_static(
          "choice",
          [](const std::vector<SpecPtr>& options) {
            auto s = node(Spec::kChoice);
            s->children = options;
            return SpecPtr(s);
          },
          "options"_a)
      .def_static(
          "opt",
          [](const SpecPtr& item) {
            auto s = node(Spec::kOpt);
            s->children = {item};
            return SpecPtr(s);
          },
          "item"_a)
      .def_static(
          "rep",
          [](const SpecPtr& item, std::uint64_t min, std::optional<std::uint64_t> max, std::optional<SpecPtr> sep) {
            auto s = node(Spec::kRep);
            s->children = {item};
            if (sep) s->children.push_back(*sep);
            s->min = min;
            s->max = max.value_or(ag::kNoMax);
            return SpecPtr(s);
          },
          "item"_a, "min"_a, "max"_a.none(), "sep"_a.none())
      .def_static(
          "tag",
          [](const MarkArg& begin, const SpecPtr& content, const MarkArg& end) {
            auto s = node(Spec::kTag);
            s->begin = mark(begin);
            s->children = {content};
            s->end = mark(end);
            return SpecPtr(s);
          },
          "begin"_a, "content"_a, "end"_a)
      .def_static(
          "dispatch",
          [](const std::vector<SpecPtr>& tags, const std::vector<MarkArg>& triggers, const std::vector<MarkArg>& stops,
             const std::vector<std::string>& excludes, std::uint64_t at_least, std::optional<std::uint64_t> at_most,
             bool stop_after_first) {
            auto s = node(Spec::kDispatch);
            s->children = tags;
            s->triggers = marks(triggers);
            s->stops = marks(stops);
            s->excludes = excludes;
            s->min = at_least;
            s->max = at_most.value_or(ag::kNoMax);
            s->stop_after_first = stop_after_first;
            return SpecPtr(s);
          },
          "tags"_a, "triggers"_a, "stops"_a, "excludes"_a, "at_least"_a, "at_most"_a.none(), "stop_after_first"_a)
      .def_static(
          "regex",
          [](const std::string& pattern) {
            auto s = node(Spec::kRegex);
            s->text = pattern;
            return SpecPtr(s);
          },
          "pattern"_a)
      .def_static(
          "ebnf",
          [](const std::string& text) {
            auto s = node(Spec::kEbnf);
            s->text = text;
            return SpecPtr(s);
          },
          "text"_a)
      .def_static(
          "json_schema",
          [](const std::string& text, int whitespace, bool any_order, bool relax) {
            auto s = node(Spec::kSchema);
            s->text = text;
            s->schema = {static_cast<ag::Whitespace>(whitespace), any_order, relax};
            return SpecPtr(s);
          },
          "text"_a, "whitespace"_a, "any_order"_a, "relax"_a);

  nb::class_<ag::Vocabulary>(m, "Vocabulary")
      .def(
          "__init__",
          [](ag::Vocabulary* self, nb::sequence tokens,
             const std::vector<std::pair<std::string, std::int64_t>>& special, const std::vector<std::int64_t>& end) {
            std::vector<std::string> bytes;
            bytes.reserve(nb::len(tokens));
            std::size_t i = 0;
            for (nb::handle t : tokens) {
              if (!PyBytes_Check(t.ptr())) {
                std::string message = "token " + std::to_string(i) + " is not bytes";
                throw nb::type_error(message.c_str());
              }
              bytes.emplace_back(PyBytes_AS_STRING(t.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(t.ptr())));
              ++i;
            }
            std::vector<std::pair<std::string, std::uint32_t>> names;
            for (const auto& [name, id] : special) names.emplace_back(name, ag::token_id(id));
            nb::gil_scoped_release release;
            new (self) ag::Vocabulary(std::move(bytes), std::move(names), ag::token_ids(end));
          },
          "tokens"_a, "special"_a, "end"_a)
      .def_prop_ro("size", &ag::Vocabulary::size)
      .def_prop_ro("fingerprint", &ag::Vocabulary::fingerprint)
      .def_prop_ro("memory", &ag::Vocabulary::memory)
      .def(
          "token_bytes",
          [](const ag::Vocabulary& v, std::int64_t id) {
            if (id < 0 || id >= v.size()) throw nb::index_error("token id outside the vocabulary");
            auto b = v.bytes(static_cast<std::uint32_t>(id));
            return nb::bytes(b.data(), b.size());
          },
          "token"_a)
      .def(
          "longest_match",
          [](const ag::Vocabulary& v, nb::bytes text) { return v.longest_match({text.c_str(), text.size()}); },
          "text"_a);

  nb::class_<PyGrammar>(m, "Grammar").def("coverage", [](const PyGrammar& g) {
    const auto all = g.grammar->engine->coverage(g.spec);
    return nb::make_tuple(rows_of(all, &ag::Coverage::enforced), rows_of(all, &ag::Coverage::narrowed),
                          rows_of(all, &ag::Coverage::relaxed), rows_of(all, &ag::Coverage::warnings));
  });

  nb::class_<ag::EngineCore>(m, "EngineCore")
      .def_static(
          "make",
          [](std::shared_ptr<const ag::Vocabulary> vocab, std::uint64_t cache_bytes, unsigned threads, int jit,
             bool cross_grammar_cache, bool repetition_compression, bool adaptive_masks) {
            ag::EngineOptions options;
            options.cache_bytes = cache_bytes;
            options.threads = threads;
            options.jit = static_cast<ag::Jit>(jit);
            options.cross_grammar_cache = cross_grammar_cache;
            options.repetition_compression = repetition_compression;
            options.adaptive_masks = adaptive_masks;
            return std::make_shared<ag::EngineCore>(std::move(vocab), options);
          },
          "vocab"_a, "cache_bytes"_a, "threads"_a, "jit"_a, "cross_grammar_cache"_a, "repetition_compression"_a,
          "adaptive_masks"_a)
      .def(
          "warm",
          [](ag::EngineCore& e, const PyGrammar& g, std::uint64_t top, double seconds) {
            nb::gil_scoped_release release;
            return e.warm(*g.grammar, top, seconds);
          },
          "grammar"_a, "top"_a, "seconds"_a)
      .def(
          "compile",
          [](ag::EngineCore& e, const SpecPtr& spec) {
            std::shared_ptr<const ag::Grammar> grammar;
            {
              nb::gil_scoped_release release;
              grammar = e.compile(spec);
            }
            return new PyGrammar{std::move(grammar), spec};
          },
          "spec"_a)
      .def("clear", &ag::EngineCore::clear)
      .def("stats",
           [](const ag::EngineCore& e) {
             auto s = e.stats();
             nb::dict out;
             out["cache_bytes"] = s.cache_bytes;
             out["entries"] = s.entries;
             out["fragments"] = s.fragments;
             out["terminals"] = s.terminals;
             out["perfect_hits"] = s.perfect_hits;
             out["partial_hits"] = s.partial_hits;
             out["misses"] = s.misses;
             out["builds"] = s.builds;
             out["evictions"] = s.evictions;
             out["nodes_walked"] = s.nodes_walked;
             out["rules"] = s.rules;
             out["shared_rules"] = s.shared_rules;
             return out;
           })
      .def("truncate_hashes", &ag::EngineCore::truncate_hashes, "bits"_a,
           "For tests, before anything is compiled: rules are looked for by this many bits of their hashes.");

  ag::bind_matcher(m);
  m.def("stop_workers", [] {
    nb::gil_scoped_release release;
    ag::Workers::instance().stop();
  });
}
