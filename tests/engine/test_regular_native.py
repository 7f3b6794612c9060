"""The regular layer's own C++ tests: every short text against independent checks. Needs a C++20 compiler."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENGINE = ROOT / "engine"
TESTS = ROOT / "tests" / "engine" / "cpp"
COMPILER = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
FLAGS = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-pthread", f"-I{ENGINE}"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        COMPILER is None or not (ENGINE / "regular").is_dir(), reason="needs a C++ compiler and the engine's sources"
    ),
]


def library(cache: Path) -> Path:
    """Compile engine/regular into an archive, kept for as long as its sources stay as they are."""
    sources = sorted((ENGINE / "regular").glob("*.cpp"))
    headers = sorted(ENGINE.rglob("*.h")) + sorted((ENGINE / "regular").glob("*.inc"))
    digest = hashlib.sha256(" ".join([str(COMPILER), *FLAGS]).encode())
    for path in [*sources, *headers]:
        digest.update(path.read_bytes())
    archive = cache / f"regular-{digest.hexdigest()[:16]}.a"
    if archive.exists():
        return archive
    for old in cache.glob("regular-*"):
        old.unlink()

    def build(source: Path) -> str:
        target = cache / f"{source.stem}.o"
        subprocess.run([str(COMPILER), *FLAGS, "-c", str(source), "-o", str(target)], check=True)
        return str(target)

    with ThreadPoolExecutor(os.cpu_count() or 1) as workers:
        objects = list(workers.map(build, sources))
    subprocess.run([os.environ.get("AR", "ar"), "rcs", str(archive), *objects], check=True)
    return archive


@pytest.mark.parametrize("name", ["numbers", "patterns", "strings"])
def test_regular(name: str, pytestconfig: pytest.Config, tmp_path: Path) -> None:
    archive = library(Path(pytestconfig.cache.mkdir("regular_native")))
    program = tmp_path / name
    source = TESTS / f"regular_{name}_test.cpp"
    subprocess.run([str(COMPILER), *FLAGS, str(source), str(archive), "-o", str(program)], check=True)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.strip() == "ok"
