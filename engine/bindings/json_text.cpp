#include "bindings/json_text.h"

#include <cmath>

namespace ag {

namespace {

constexpr int kDeepest = 200;

bool quoted(PyObject* text, std::string& out) {
  Py_ssize_t size = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(text, &size);
  if (!bytes) {
    PyErr_Clear();
    return false;
  }
  out += '"';
  const char* plain = bytes;  // what has no need of escapes, up to `at`
  for (const char* at = bytes; at != bytes + size; ++at) {
    const auto c = static_cast<unsigned char>(*at);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out.append(plain, at);
    plain = at + 1;
    out += '\\';
    switch (c) {
      case '"':
      case '\\':
        out += *at;
        break;
      case '\n':
        out += 'n';
        break;
      case '\r':
        out += 'r';
        break;
      case '\t':
        out += 't';
        break;
      case '\f':
        out += 'f';
        break;
      case '\b':
        out += 'b';
        break;
      default:
        out += "u00";
        out += "0123456789abcdef"[c >> 4];
        out += "0123456789abcdef"[c & 15];
    }
  }
  out.append(plain, bytes + size);
  out += '"';
  return true;
}

bool integer(PyObject* value, std::string& out) {
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow) return false;
  out += std::to_string(number);
  return true;
}

bool real(double value, std::string& out) {
  if (!std::isfinite(value)) return false;
  char* text = PyOS_double_to_string(value, 'r', 0, Py_DTSF_ADD_DOT_0, nullptr);
  if (!text) {
    PyErr_Clear();
    return false;
  }
  out += text;
  PyMem_Free(text);
  return true;
}

}  // namespace

bool json_text(PyObject* value, std::string& out, int depth) {
  if (depth > kDeepest) return false;
  if (PyUnicode_CheckExact(value)) return quoted(value, out);
  if (value == Py_None) return out += "null", true;
  if (value == Py_True) return out += "true", true;
  if (value == Py_False) return out += "false", true;
  if (PyLong_CheckExact(value)) return integer(value, out);
  if (PyFloat_CheckExact(value)) return real(PyFloat_AS_DOUBLE(value), out);
  if (PyDict_CheckExact(value)) {
    out += '{';
    PyObject *key, *item;
    bool first = true;
    for (Py_ssize_t at = 0; PyDict_Next(value, &at, &key, &item); first = false) {
      if (!first) out += ", ";
      if (!PyUnicode_CheckExact(key) || !quoted(key, out)) return false;
      out += ": ";
      if (!json_text(item, out, depth + 1)) return false;
    }
    out += '}';
    return true;
  }
  if (!PyList_CheckExact(value) && !PyTuple_CheckExact(value)) return false;
  out += '[';
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
    if (i) out += ", ";
    if (!json_text(PySequence_Fast_GET_ITEM(value, i), out, depth + 1)) return false;
  }
  out += ']';
  return true;
}

}  // namespace ag
