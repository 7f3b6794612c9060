"""What type checkers say of programs that use agentgram.

Files in ``passes/`` are checked without a complaint. In ``fails/`` each line that ends in ``# error: CODE`` is one that
mypy must object to, with this code, and pyright too; and no other line is.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PASSES = sorted((HERE / "passes").glob("*.py"))
FAILS = sorted((HERE / "fails").glob("*.py"))
FILES = [str(path) for path in (*PASSES, *FAILS)]

Errors = dict[str, set[tuple[int, str]]]


@pytest.fixture(scope="module")
def by_mypy() -> Errors:
    """What mypy says of every file: its lines and codes."""
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--no-pretty"]
    done = subprocess.run([*command, *FILES], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found: Errors = {}
    for line in done.stdout.splitlines():
        if match := re.fullmatch(r"(.+?):(\d+): error: .*\[([\w-]+)\]", line):
            found.setdefault(Path(match[1]).name, set()).add((int(match[2]), match[3]))
    return found


@pytest.fixture(scope="module")
def by_pyright() -> Errors:
    """What pyright says of every file: its lines and rules."""
    pytest.importorskip("pyright")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run([*command, *FILES], cwd=ROOT, capture_output=True, text=True, check=False)
    if not done.stdout.startswith("{"):
        pytest.skip(f"pyright cannot run here: {(done.stdout + done.stderr).strip()[:200]}")
    found: Errors = {}
    for item in json.loads(done.stdout)["generalDiagnostics"]:
        if item["severity"] == "error":
            line = item["range"]["start"]["line"] + 1
            found.setdefault(Path(item["file"]).name, set()).add((line, item.get("rule", "")))
    return found


def marked(path: Path) -> set[tuple[int, str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    out = {(n, match[1]) for n, line in enumerate(lines, 1) if (match := re.search(r"# error: ([\w-]+)$", line))}
    assert out, "a file in fails/ marks at least one line"
    return out


@pytest.mark.parametrize("path", PASSES, ids=lambda path: path.stem)
def test_passes(path: Path, by_mypy: Errors) -> None:
    assert by_mypy.get(path.name, set()) == set()


@pytest.mark.parametrize("path", FAILS, ids=lambda path: path.stem)
def test_fails_where_it_says(path: Path, by_mypy: Errors) -> None:
    assert by_mypy.get(path.name, set()) == marked(path)


@pytest.mark.parametrize("path", PASSES, ids=lambda path: path.stem)
def test_pyright_passes(path: Path, by_pyright: Errors) -> None:
    assert by_pyright.get(path.name, set()) == set()


@pytest.mark.parametrize("path", FAILS, ids=lambda path: path.stem)
def test_pyright_fails_where_it_says(path: Path, by_pyright: Errors) -> None:
    assert {line for line, _ in by_pyright.get(path.name, set())} == {line for line, _ in marked(path)}


def test_names_are_unique() -> None:
    names = [path.name for path in (*PASSES, *FAILS)]
    assert len(names) == len(set(names)), "all files are taken in one run, so no two share a name"
