"""The sdist and the wheel: what is in them, and that they install where nothing else is."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

pytestmark = pytest.mark.packaging

ROOT = Path(__file__).parents[1]


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command} failed:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sdist")
    run(sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    (archive,) = out.glob("*.tar.gz")
    return archive


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an empty environment."""
    folder = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", folder, cwd=folder)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def wheel(sdist: Path, venv: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from the sdist, by pip, with no build tools but those that pyproject.toml names."""
    out = tmp_path_factory.mktemp("wheel")
    run(venv, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", out, sdist, cwd=out)
    (file,) = out.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def installed(wheel: Path, venv: Path) -> Path:
    """The Python of an environment that holds the distribution and its dependencies, without extras."""
    run(venv, "-m", "pip", "install", "--quiet", wheel, cwd=wheel.parent)
    return venv


def package_files(*patterns: str) -> set[str]:
    return {
        str(path.relative_to(ROOT))
        for pattern in patterns
        for path in (ROOT / "agentgram").rglob(pattern)
        if "__pycache__" not in path.parts
    }


def test_the_sdist_holds_all_sources(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    kinds = (".cpp", ".h", ".inc")
    sources = {str(path.relative_to(ROOT)) for path in (ROOT / "engine").rglob("*") if path.suffix in kinds}
    wanted = sources | package_files("*.py", "*.pyi", "*.json", "py.typed")
    assert wanted <= names
    assert {"LICENSE", "README.md", "CMakeLists.txt", "pyproject.toml"} <= names
    assert not {name for name in names if name.endswith((".so", ".gguf", ".pyc"))}


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    packaged = {name for name in names if ".dist-info/" not in name}
    modules = {name for name in packaged if name.startswith("agentgram/engine/_core.") and not name.endswith(".pyi")}
    assert len(modules) == 1
    assert packaged - modules == package_files("*.py", "*.pyi", "*.json", "py.typed")


def test_the_metadata_name_what_users_type(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode())
        (scripts,) = (n for n in archive.namelist() if n.endswith(".dist-info/entry_points.txt"))
        assert "agentgram = agentgram.cli:main" in archive.read(scripts).decode()
    assert metadata["Name"] == "agentgram-sdk"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(metadata.get_all("Provides-Extra") or ()) == set(project["optional-dependencies"])
    required = {line.split(">=")[0] for line in metadata.get_all("Requires-Dist") or () if "extra ==" not in line}
    assert required == {"docstring-parser", "jsonschema", "numpy", "pydantic", "typer"}


def test_the_engine_works_where_only_core_dependencies_are(installed: Path, tmp_path: Path) -> None:
    program = """
from pydantic import BaseModel
from agentgram.engine import Engine, JsonSchema, Vocabulary
class Point(BaseModel):
    x: int
matcher = Engine(Vocabulary.byte_level()).compile(JsonSchema(Point, whitespace="compact")).matcher()
print(matcher.accept_bytes(b'{"x":1'), matcher.accept_bytes(b'x'), matcher.shortest_end())
"""
    assert run(installed, "-c", program, cwd=tmp_path).split() == ["True", "False", "b'}'"]


def test_the_command_is_there(installed: Path, tmp_path: Path) -> None:
    assert "run" in run(installed.with_name("agentgram"), "--help", cwd=tmp_path)
    assert "run" in run(installed, "-m", "agentgram", "--help", cwd=tmp_path)


def test_a_local_model_without_its_extra_says_what_to_install(installed: Path, tmp_path: Path) -> None:
    program = """
from agentgram.errors import AgentgramError
from agentgram.models import load_model
try:
    load_model("smollm2")
except AgentgramError as error:
    print(error)
"""
    assert "pip install" in run(installed, "-c", program, cwd=tmp_path)
