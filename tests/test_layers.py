"""Imports run downwards only, and importing the package stays cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "agentgram"

# The longest prefix decides; layer 6 is the package's own door, and what lies directly in it and is not named here.
LAYERS = {
    "agentgram.closing": 0,
    "agentgram.errors": 0,
    "agentgram.messages": 0,
    "agentgram.events": 0,
    "agentgram.principal": 0,
    "agentgram.limits": 0,  # plain data: a tool sees the usage so far
    "agentgram.engine": 1,
    "agentgram.tools": 2,
    "agentgram.policy": 3,
    "agentgram.formats": 4,
    "agentgram.models": 5,
    "agentgram.testing": 7,
    "agentgram.integrations": 7,
    "agentgram.cli": 7,
    "agentgram.__main__": 7,
}
HEAVY = {"torch", "transformers", "numpy", "jsonschema", "typer", "tiktoken", "gguf", "accelerate"}


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def layer(module: str) -> int:
    parts = module.split(".")
    for length in range(len(parts), 1, -1):
        if (found := LAYERS.get(".".join(parts[:length]))) is not None:
            return found
    return 6


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Every module of the package that a file names in an import: at its top, in functions, and for types only."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name.startswith("agentgram"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("agentgram"):
            for alias in node.names:
                longer = f"{node.module}.{alias.name}"
                yield node.lineno, longer if longer in MODULES else str(node.module)


@pytest.mark.parametrize("module", [name for name in MODULES if name != "agentgram"])
def test_imports_run_downwards(module: str) -> None:
    upwards = [
        f"line {line}: {target} (layer {layer(target)})"
        for line, target in imports(MODULES[module])
        if layer(target) > layer(module)
    ]
    assert upwards == [], f"{module} is in layer {layer(module)}"


def test_formats_and_models_know_no_tool_and_no_policy() -> None:
    """Formats see definitions, never the functions behind them; who may do what is settled before."""
    known = [
        f"{module}:{line}: {target}"
        for module in MODULES
        if layer(module) in (4, 5)
        for line, target in imports(MODULES[module])
        if layer(target) in (2, 3) and target != "agentgram.tools.definition"
    ]
    assert known == []


def loaded_by(statement: str) -> set[str]:
    """The top-level names of all modules that are loaded after a statement, in a fresh interpreter."""
    program = f"import sys\n{statement}\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, cwd=PACKAGE.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_by("import agentgram") & HEAVY == set()


def test_every_public_name_can_be_reached_without_torch() -> None:
    names = loaded_by("import agentgram\nfor name in agentgram.__all__: getattr(agentgram, name)")
    assert names & {"torch", "transformers", "typer", "gguf", "accelerate"} == set()


@pytest.mark.parametrize(
    "module", ["agentgram.agent", *sorted(LAYERS.keys() & MODULES.keys() - {"agentgram.__main__"})]
)
def test_each_layer_imports_alone(module: str) -> None:
    """None counts on another having been imported before it."""
    assert "agentgram" in loaded_by(f"import {module}")
