// The Python face of the engine: the only place that sees Python. No exception but the three translated below leaves
// it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "base/workers.h"
#include "matcher/engine.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

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

// A row of an int32 mask, checked once per array object and remembered.
struct MaskRow {
  std::uint32_t* data = nullptr;
  std::size_t rows = 0, words = 0;
};

MaskRow view(nb::handle array, Py_buffer* buffer) {
  if (PyObject_GetBuffer(array.ptr(), buffer, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    throw nb::type_error("the mask must be a writable, C-contiguous array of int32: use allocate_mask()");
  }
  MaskRow out;
  bool ok = buffer->itemsize == 4 && (buffer->ndim == 1 || buffer->ndim == 2);
  if (ok) {
    out.data = static_cast<std::uint32_t*>(buffer->buf);
    out.rows = buffer->ndim == 2 ? static_cast<std::size_t>(buffer->shape[0]) : 1;
    out.words = static_cast<std::size_t>(buffer->shape[buffer->ndim - 1]);
    return out;
  }
  PyBuffer_Release(buffer);
  throw nb::type_error("the mask must be an array of int32 with one or two dimensions: use allocate_mask()");
}

class PyMask {
 public:
  PyMask() = default;
  PyMask(const PyMask&) = delete;
  PyMask& operator=(const PyMask&) = delete;
  ~PyMask() { release(); }

  std::uint32_t* row(nb::handle array, std::int64_t row, std::size_t words) {
    if (array.ptr() != array_) {
      release();
      view_ = view(array, &buffer_);
      array_ = array.ptr();  // the buffer keeps the array alive, so that its address is not used again
    }
    if (view_.words != words) {
      std::string message = "the mask has " + std::to_string(view_.words) + " words a row; this vocabulary needs " +
                            std::to_string(words) + ": use allocate_mask(batch, vocab.size)";
      throw nb::value_error(message.c_str());
    }
    if (row < 0 || static_cast<std::size_t>(row) >= view_.rows) {
      std::string message =
          "row " + std::to_string(row) + " is outside the mask's " + std::to_string(view_.rows) + " rows";
      throw nb::index_error(message.c_str());
    }
    return view_.data + static_cast<std::size_t>(row) * words;
  }
  std::size_t rows() const { return view_.rows; }

 private:
  void release() {
    if (array_) PyBuffer_Release(&buffer_);
    array_ = nullptr;
  }
  PyObject* array_ = nullptr;
  Py_buffer buffer_{};
  MaskRow view_;
};

struct PyMatcher {
  explicit PyMatcher(std::shared_ptr<const ag::Grammar> g) : matcher(std::move(g)) {}
  explicit PyMatcher(ag::Matcher m) : matcher(std::move(m)) {}
  ag::Matcher matcher;
  std::unique_ptr<PyMask> mask;
  PyMask& rows() {
    if (!mask) mask = std::make_unique<PyMask>();
    return *mask;
  }
};

// Token ids come as any integers: what is no id is refused, not wrapped around.
std::uint32_t token_id(std::int64_t id) {
  return id < 0 || id > 0xffff'fffe ? 0xffff'ffffu : static_cast<std::uint32_t>(id);
}

std::vector<std::uint32_t> token_ids(const std::vector<std::int64_t>& ids) {
  std::vector<std::uint32_t> out;
  for (auto id : ids) out.push_back(token_id(id));
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

// Whether a pointer is in there twice.
template <class T>
bool repeats(const std::vector<T*>& pointers) {
  if (pointers.size() <= 8) {
    for (auto i = pointers.begin(); i != pointers.end(); ++i) {
      if (std::find(pointers.begin(), i, *i) != i) return true;
    }
    return false;
  }
  std::vector<T*> seen(std::bit_ceil(2 * pointers.size()), nullptr);
  for (T* p : pointers) {
    std::size_t at = reinterpret_cast<std::uintptr_t>(p) * 0x9E3779B97F4A7C15ull >> 32;
    while (seen[at &= seen.size() - 1]) {
      if (seen[at++] == p) return true;
    }
    seen[at] = p;
  }
  return false;
}

struct PyGrammar {
  std::shared_ptr<const ag::Grammar> grammar;
  SpecPtr spec;
};

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "The structured-generation engine. Use agentgram.engine, which is typed and documented.";
  nb::set_leak_warnings(false);

  m.def("set_grammar_error", [](nb::object cls) {
    Py_XDECREF(grammar_error);
    grammar_error = cls.release().ptr();
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
            for (const auto& [name, id] : special) names.emplace_back(name, token_id(id));
            nb::gil_scoped_release release;
            new (self) ag::Vocabulary(std::move(bytes), std::move(names), token_ids(end));
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
      .def("stats", [](const ag::EngineCore& e) {
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
        return out;
      });

  nb::class_<PyMatcher>(m, "Matcher")
      .def(
          "__init__", [](PyMatcher* self, const PyGrammar& g) { new (self) PyMatcher(g.grammar); }, "grammar"_a)
      .def(
          "__init__", [](PyMatcher* self, const PyMatcher& p) { new (self) PyMatcher(p.matcher.fork()); }, "matcher"_a)
      .def(
          "fill_mask",
          [](PyMatcher& p, nb::handle mask, std::int64_t row) {
            return p.matcher.fill(p.rows().row(mask, row, p.matcher.vocab().words()));
          },
          "mask"_a, "row"_a = 0,
          "Writes which tokens may come next into a row of what allocate_mask made; False: all of them may.\n\n"
          "Raises:\n    ValueError: The mask has another type or width.\n    IndexError: It has no such row.\n"
          "    GrammarError: A pattern turned out to need more states than the engine makes.")
      .def(
          "fill_by_walk",
          [](PyMatcher& p, nb::handle mask, std::int64_t row) {
            p.matcher.fill_by_walk(p.rows().row(mask, row, p.matcher.vocab().words()));
          },
          "mask"_a, "row"_a = 0,
          "The same mask as fill_mask, by a walk of the whole vocabulary: slow, to check the other.")
      .def(
          "accept", [](PyMatcher& p, std::int64_t token) { return p.matcher.accept(token_id(token)); }, "token"_a,
          "Goes on with a token; False, and nothing changed, when it may not come.")
      .def(
          "accept_bytes",
          [](PyMatcher& p, nb::bytes text) { return p.matcher.accept_bytes({text.c_str(), text.size()}); }, "text"_a,
          "Goes on with bytes, as one step; False, and nothing changed, when they may not come.")
      .def(
          "rollback",
          [](PyMatcher& p, std::int64_t n) {
            if (n < 0) throw nb::value_error("rollback takes a number of steps, not a negative one");
            p.matcher.rollback(static_cast<std::uint64_t>(n));
          },
          "n"_a = 1, "Takes back the last n steps.\n\nRaises:\n    ValueError: There are fewer.")
      .def(
          "reset", [](PyMatcher& p) { p.matcher.reset(); }, "Takes back all steps.")
      .def_prop_ro(
          "can_end", [](const PyMatcher& p) { return p.matcher.can_end(); }, "Whether an end token is allowed now.")
      .def_prop_ro(
          "ended", [](const PyMatcher& p) { return p.matcher.ended(); }, "Whether an end token was accepted.")
      .def_prop_ro(
          "depth", [](const PyMatcher& p) { return p.matcher.depth(); }, "How many steps were taken.")
      .def(
          "forced_bytes",
          [](const PyMatcher& p) {
            auto s = p.matcher.forced_bytes();
            return nb::bytes(s.data(), s.size());
          },
          "What every legal continuation begins with, at most 4,096 bytes.")
      .def(
          "forced_tokens_by",
          [](const PyMatcher& p, nb::object tokenize) {
            std::function<std::vector<std::uint32_t>(const std::string&)> call;
            if (!tokenize.is_none()) {
              call = [&](const std::string& text) {
                return token_ids(nb::cast<std::vector<std::int64_t>>(tokenize(nb::bytes(text.data(), text.size()))));
              };
            }
            return p.matcher.forced_tokens(call);
          },
          "tokenize"_a.none())
      .def("shortest_end_units",
           [](const PyMatcher& p) {
             nb::list out;
             for (const auto& unit : p.matcher.shortest_end().units) out.append(nb::make_tuple(unit.token, unit.value));
             return out;
           })
      .def(
          "validate",
          [](const PyMatcher& p, const std::vector<std::int64_t>& tokens) {
            return p.matcher.validate(token_ids(tokens));
          },
          "tokens"_a, "How many of these tokens would be accepted one after another; the state stays as it is.")
      .def(
          "fill_draft",
          [](PyMatcher& p, nb::handle mask, const std::vector<std::int64_t>& tokens,
             const std::vector<std::int64_t>& parents) {
            if (tokens.empty()) return;
            std::uint32_t* first = p.rows().row(mask, 0, p.matcher.vocab().words());
            p.rows().row(mask, static_cast<std::int64_t>(tokens.size()) - 1, p.matcher.vocab().words());
            p.matcher.fill_draft(first, token_ids(tokens), parents);
          },
          "mask"_a, "tokens"_a, "parents"_a,
          "Masks of a draft tree: row i is what may follow node i.\n\nParent -1 is the current state; parents come "
          "before their children. Rows at and under a refused node are zero.\n\nRaises:\n    ValueError: The tree or "
          "the mask's shape is wrong.");

  m.def(
      "fill_masks",
      [](const nb::tuple& matchers, nb::handle mask, const std::optional<std::vector<std::int64_t>>& rows,
         unsigned threads) {
        const std::size_t n = matchers.size();
        if (rows && rows->size() != n) throw nb::value_error("fill_masks needs one row for each matcher");
        std::vector<const ag::Matcher*> all(n);
        std::vector<std::uint32_t*> at(n);
        PyMask view_of;
        for (std::size_t i = 0; i < n; ++i) {
          all[i] = &nb::cast<const PyMatcher&>(matchers[i]).matcher;
          at[i] = view_of.row(mask, rows ? (*rows)[i] : static_cast<std::int64_t>(i), all[i]->vocab().words());
        }
        // A matcher and a row belong to one thread at a time.
        if (threads > 1 && (repeats(all) || (rows && repeats(at)))) threads = 1;
        nb::gil_scoped_release release;
        ag::Workers::instance().parallel(n, threads, [&](std::size_t i) { all[i]->fill(at[i]); });
      },
      "matchers"_a, "mask"_a, "rows"_a.none(), "threads"_a);
  m.def("stop_workers", [] {
    nb::gil_scoped_release release;
    ag::Workers::instance().stop();
  });
}
