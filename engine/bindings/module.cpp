// The Python module agentgram.engine._core.
#include <nanobind/nanobind.h>

NB_MODULE(_core, module) { module.doc() = "The structured-generation engine."; }
