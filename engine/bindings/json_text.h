// JSON text of plain Python values: what json.dumps(value, ensure_ascii=False) gives, several times as fast.
#pragma once

#include <Python.h>

#include <string>

namespace ag {

// Appends the text of a value made of exactly dict (with keys that are exactly str), list, tuple, str, int, float, bool
// and None. False, and no exception set, for everything else: a subclass, a number that is not finite, half a surrogate
// pair, nesting deeper than 200. json.dumps has the last word there.
bool json_text(PyObject* value, std::string& out, int depth = 0);

}  // namespace ag
