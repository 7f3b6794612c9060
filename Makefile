PYTHON ?= python3
BUILD ?= build/native

.PHONY: native stubs
native: ## Build the engine into agentgram/engine (incremental)
	@$(PYTHON) -m cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release -DAGENTGRAM_IN_TREE=ON \
	  -DCMAKE_MAKE_PROGRAM="$$($(PYTHON) -c 'import ninja; print(ninja.BIN_DIR)')/ninja" \
	  -DPython_EXECUTABLE="$$($(PYTHON) -c 'import sys; print(sys.executable)')" \
	  $$(command -v ccache >/dev/null && echo -DCMAKE_CXX_COMPILER_LAUNCHER=ccache) \
	  $(CMAKE_FLAGS) --log-level=WARNING
	@$(PYTHON) -m cmake --build $(BUILD)

stubs: native ## Write agentgram/engine/_core.pyi from the built module
	@PYTHONPATH=. $(PYTHON) -m nanobind.stubgen -q -m agentgram.engine._core -o agentgram/engine/_core.pyi
