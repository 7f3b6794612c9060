// Matchers as Python objects.
//
// Their type is made by hand: an instance of a type of nanobind's has an entry in a table of all instances beside it,
// which takes as much memory as a matcher, and a fork is to be small. The methods are nanobind's.
#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <bit>
#include <new>
#include <optional>

#include "base/workers.h"
#include "bindings/bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

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

struct MatcherObject {
  PyObject_HEAD ag::Matcher matcher;
  std::unique_ptr<PyMask> mask;
  PyObject* vocab;  // agentgram.engine.Vocabulary
  PyMask& rows() {
    if (!mask) mask = std::make_unique<PyMask>();
    return *mask;
  }
};

PyTypeObject* matcher_type = nullptr;

bool is_matcher(nb::handle object) { return PyObject_TypeCheck(object.ptr(), matcher_type); }

MatcherObject& matcher_of(nb::handle object) {
  if (!is_matcher(object)) throw nb::type_error("fill_masks takes matchers");
  return *reinterpret_cast<MatcherObject*>(object.ptr());
}

// An object of `type`, which is the matchers' or a subclass.
nb::object make(PyTypeObject* type, ag::Matcher matcher, PyObject* vocab) {
  auto* self = reinterpret_cast<MatcherObject*>(type->tp_alloc(type, 0));
  if (!self) nb::raise_python_error();
  new (&self->matcher) ag::Matcher(std::move(matcher));
  new (&self->mask) std::unique_ptr<PyMask>;
  self->vocab = Py_NewRef(vocab);
  return nb::steal(reinterpret_cast<PyObject*>(self));
}

void destroy(PyObject* object) {
  auto* self = reinterpret_cast<MatcherObject*>(object);
  PyTypeObject* type = Py_TYPE(object);
  std::destroy_at(&self->matcher);
  std::destroy_at(&self->mask);
  Py_DECREF(self->vocab);
  type->tp_free(object);
  Py_DECREF(type);
}

// What is called for each token takes a short way where its arguments are plain. Everything else, and whatever is thrown,
// is left to the method that nanobind makes of the same work: it begins anew, and says what is wrong.
namespace short_way {

PyObject *general_fill = nullptr, *general_accept = nullptr;

bool fill(MatcherObject& p, nb::handle mask, std::int64_t row) {
  return p.matcher.fill(p.rows().row(mask, row, p.matcher.vocab().words()));
}
bool accept(MatcherObject& p, std::int64_t token) { return p.matcher.accept(ag::token_id(token)); }

PyObject* general(PyObject* method, PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  std::vector<PyObject*> all{self};
  all.insert(all.end(), args, args + count + (names ? PyTuple_GET_SIZE(names) : 0));
  return PyObject_Vectorcall(method, all.data(), static_cast<std::size_t>(count) + 1, names);
}

// Whether it is an int that fits.
bool number(PyObject* object, std::int64_t* out) {
  if (!PyLong_CheckExact(object)) return false;
  int overflow = 0;
  *out = PyLong_AsLongLongAndOverflow(object, &overflow);
  return !overflow;
}

PyObject* fill_mask(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  std::int64_t row = 0;
  if (!names && (count == 1 || (count == 2 && number(args[1], &row)))) {
    try {
      return PyBool_FromLong(fill(*reinterpret_cast<MatcherObject*>(self), args[0], row));
    } catch (...) {
      PyErr_Clear();
    }
  }
  return general(general_fill, self, args, count, names);
}

PyObject* accept(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  std::int64_t token = 0;
  if (!names && count == 1 && number(args[0], &token)) {
    try {
      return PyBool_FromLong(accept(*reinterpret_cast<MatcherObject*>(self), token));
    } catch (...) {
      PyErr_Clear();
    }
  }
  return general(general_accept, self, args, count, names);
}

PyCFunction function(PyObject* (*f)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

PyMethodDef methods[] = {
    {"fill_mask", function(fill_mask), METH_FASTCALL | METH_KEYWORDS,
     "fill_mask($self, mask, row=0)\n--\n\n"
     "Writes which tokens may come next into a row of what allocate_mask made; False: all of them may.\n\n"
     "Raises:\n    ValueError: The mask has another type or width.\n    IndexError: It has no such row.\n"
     "    GrammarError: A pattern turned out to need more states than the engine makes."},
    {"accept", function(accept), METH_FASTCALL | METH_KEYWORDS,
     "accept($self, token)\n--\n\nGoes on with a token; False, and nothing changed, when it may not come."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace short_way

nb::object make_type(nb::module_& m) {
  PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(destroy)}, {Py_tp_methods, short_way::methods}, {0, nullptr}};
  PyType_Spec spec{"agentgram.engine._core.Matcher", sizeof(MatcherObject), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  nb::object type = nb::steal(PyType_FromSpec(&spec));
  if (!type.is_valid()) nb::raise_python_error();
  m.attr("Matcher") = type;
  return type;
}

// Adds methods to it, as nb::class_ does to its own.
class Methods {
 public:
  explicit Methods(nb::handle type) : type_(type) {}

  template <class Function, class... Extra>
  Methods& def(const char* name, Function&& function, const Extra&... extra) {
    nb::cpp_function_def(std::forward<Function>(function), nb::scope(type_), nb::name(name), nb::is_method(), extra...);
    return *this;
  }
  template <class Function, class... Extra>
  Methods& def_prop_ro(const char* name, Function&& function, const char* doc, const Extra&... extra) {
    nb::object get =
        nb::cpp_function(std::forward<Function>(function), nb::scope(type_), nb::is_method(), doc, extra...);
    nb::handle property(reinterpret_cast<PyObject*>(&PyProperty_Type));
    nb::setattr(type_, name, property(get, nb::none(), nb::none(), nb::str(doc)));
    return *this;
  }

 private:
  nb::handle type_;
};

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

}  // namespace

namespace nanobind::detail {

template <>
struct type_caster<MatcherObject> {
  using Value = MatcherObject;
  static constexpr auto Name = const_name("Matcher");
  template <class T>
  using Cast = MatcherObject&;
  template <class T>
  static constexpr bool can_cast() {
    return true;
  }
  bool from_python(handle from, std::uint32_t, cleanup_list*) noexcept {
    if (!is_matcher(from)) return false;
    value = reinterpret_cast<MatcherObject*>(from.ptr());
    return true;
  }
  operator MatcherObject&() { return *value; }

 private:
  MatcherObject* value = nullptr;
};

}  // namespace nanobind::detail

void ag::bind_matcher(nb::module_& m) {
  nb::object type = make_type(m);
  matcher_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  type.inc_ref();  // for ever
  const auto method = [](const char* name, auto function, auto... arguments) {
    return nb::cpp_function(function, nb::name(name), nb::is_method(), arguments...).release().ptr();
  };
  short_way::general_fill = method("fill_mask", short_way::fill, "mask"_a, "row"_a = 0);
  short_way::general_accept =
      method("accept", nb::overload_cast<MatcherObject&, std::int64_t>(short_way::accept), "token"_a);

  Methods(type)
      .def(
          "fork", [](MatcherObject& p) { return make(Py_TYPE(&p), p.matcher.fork(), p.vocab); },
          nb::sig("def fork(self) -> typing.Self"), "An independent matcher in the same state; O(1).")
      .def_prop_ro(
          "vocab", [](MatcherObject& p) { return nb::borrow(p.vocab); }, "The vocabulary that its tokens are of.",
          nb::sig("def vocab(self) -> typing.Any"))
      .def(
          "fill_by_walk",
          [](MatcherObject& p, nb::handle mask, std::int64_t row) {
            p.matcher.fill_by_walk(p.rows().row(mask, row, p.matcher.vocab().words()));
          },
          "mask"_a, "row"_a = 0,
          "The same mask as fill_mask, by a walk of the whole vocabulary: slow, to check the other.")
      .def(
          "accept_bytes",
          [](MatcherObject& p, nb::bytes text) { return p.matcher.accept_bytes({text.c_str(), text.size()}); },
          "text"_a, "Goes on with bytes, as one step; False, and nothing changed, when they may not come.")
      .def(
          "rollback",
          [](MatcherObject& p, std::int64_t n) {
            if (n < 0) throw nb::value_error("rollback takes a number of steps, not a negative one");
            p.matcher.rollback(static_cast<std::uint64_t>(n));
          },
          "n"_a = 1, "Takes back the last n steps.\n\nRaises:\n    ValueError: There are fewer.")
      .def(
          "reset", [](MatcherObject& p) { p.matcher.reset(); }, "Takes back all steps.")
      .def_prop_ro(
          "can_end", [](const MatcherObject& p) { return p.matcher.can_end(); }, "Whether an end token is allowed now.")
      .def_prop_ro(
          "ended", [](const MatcherObject& p) { return p.matcher.ended(); }, "Whether an end token was accepted.")
      .def_prop_ro(
          "depth", [](const MatcherObject& p) { return p.matcher.depth(); }, "How many steps were taken.")
      .def(
          "forced_bytes",
          [](const MatcherObject& p) {
            auto s = p.matcher.forced_bytes();
            return nb::bytes(s.data(), s.size());
          },
          "What every legal continuation begins with, at most 4,096 bytes.")
      .def(
          "forced_tokens_by",
          [](const MatcherObject& p, nb::object tokenize) {
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
           [](const MatcherObject& p) {
             nb::list out;
             for (const auto& unit : p.matcher.shortest_end().units) out.append(nb::make_tuple(unit.token, unit.value));
             return out;
           })
      .def(
          "validate",
          [](const MatcherObject& p, const std::vector<std::int64_t>& tokens) {
            return p.matcher.validate(token_ids(tokens));
          },
          "tokens"_a, "How many of these tokens would be accepted one after another; the state stays as it is.")
      .def(
          "fill_draft",
          [](MatcherObject& p, nb::handle mask, const std::vector<std::int64_t>& tokens,
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
      "matcher",
      [](nb::type_object of, const PyGrammar& grammar, nb::handle vocab) {
        if (!PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(of.ptr()), matcher_type)) {
          throw nb::type_error("a matcher is of the type Matcher");
        }
        return make(reinterpret_cast<PyTypeObject*>(of.ptr()), Matcher(grammar.grammar), vocab.ptr());
      },
      "of"_a, "grammar"_a, "vocab"_a, "A matcher of that type at the grammar's start.",
      nb::sig("def matcher(of: type[Matcher], grammar: Grammar, vocab: object) -> typing.Any"));
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
          all[i] = &matcher_of(matchers[i]).matcher;
          at[i] = view_of.row(mask, rows ? (*rows)[i] : static_cast<std::int64_t>(i), all[i]->vocab().words());
        }
        // A matcher and a row belong to one thread at a time.
        if (threads > 1 && (repeats(all) || (rows && repeats(at)))) threads = 1;
        nb::gil_scoped_release release;
        ag::Workers::instance().parallel(n, threads, [&](std::size_t i) { all[i]->fill(at[i]); });
      },
      "matchers"_a, "mask"_a, "rows"_a.none(), "threads"_a);
}
