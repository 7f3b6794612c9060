"""What a type checker says of programs that use agentgram.

Files in ``passes/`` are checked without a complaint. In ``fails/`` each line that ends in ``# error: CODE`` is one that
mypy must object to, with this code, and no other line is.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PASSES = sorted((HERE / "passes").glob("*.py"))
FAILS = sorted((HERE / "fails").glob("*.py"))

Errors = dict[str, set[tuple[int, str]]]


@pytest.fixture(scope="module")
def errors() -> Errors:
    """What mypy says of every file: its lines and codes."""
    pytest.importorskip("mypy")
    files = [str(path) for path in (*PASSES, *FAILS)]
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--no-pretty"]
    done = subprocess.run([*command, *files], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found: Errors = {}
    for line in done.stdout.splitlines():
        if match := re.fullmatch(r"(.+?):(\d+): error: .*\[([\w-]+)\]", line):
            found.setdefault(Path(match[1]).name, set()).add((int(match[2]), match[3]))
    return found


@pytest.mark.parametrize("path", PASSES, ids=lambda path: path.stem)
def test_passes(path: Path, errors: Errors) -> None:
    assert errors.get(path.name, set()) == set()


@pytest.mark.parametrize("path", FAILS, ids=lambda path: path.stem)
def test_fails_where_it_says(path: Path, errors: Errors) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    expected = {(n, match[1]) for n, line in enumerate(lines, 1) if (match := re.search(r"# error: ([\w-]+)$", line))}
    assert expected, "a file in fails/ marks at least one line"
    assert errors.get(path.name, set()) == expected


def test_names_are_unique() -> None:
    names = [path.name for path in (*PASSES, *FAILS)]
    assert len(names) == len(set(names)), "mypy takes all files in one run, so no two share a name"
