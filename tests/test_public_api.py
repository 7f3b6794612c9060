"""The public door: what it promises is there, and nothing else is."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import re
from pathlib import Path

import pytest

import agentgram

# The names that other people's code is written against.
PROMISED = {
    "agentgram": (
        "Agent AgentgramError ContextOverflow DefinitionError GrammarError LimitExceeded Limits ModelError "
        "ModelRetry ModelSettings Only Policy PolicyError Principal RunCancelled RunContext RunError Tool ToolFailed "
        "Toolset allow ask bind deny tool"
    ),
    "agentgram.events": (
        "ApprovalNeeded ArgumentsDelta CallDenied FinalOutput MalformedCall ReasoningDelta StepEnd TextDelta "
        "ToolCallEnd ToolCallStart ToolProgress ToolResult"
    ),
    "agentgram.policy": "Decision Policy Principal allow ask deny",
    "agentgram.testing": "ScriptedModel call no_models",
    "agentgram.tools": "ModelRetry RunContext Tool ToolDefinition ToolFailed Toolset bind tool",
}


@pytest.mark.parametrize(("module", "name"), [(m, n) for m, names in PROMISED.items() for n in names.split()])
def test_promised_names_are_there(module: str, name: str) -> None:
    assert getattr(importlib.import_module(module), name) is not None


@pytest.mark.parametrize("name", agentgram.__all__)
def test_every_public_name_has_one_home_and_a_docstring(name: str) -> None:
    value = getattr(agentgram, name)
    if name == "__version__":
        return
    if inspect.isclass(value) or inspect.isfunction(value):
        assert value.__module__.startswith("agentgram.")
        assert inspect.getdoc(value), f"{name} has no docstring"
    assert name in dir(agentgram)


def test_all_is_complete_and_has_no_doubles() -> None:
    assert len(set(agentgram.__all__)) == len(agentgram.__all__)
    assert set(agentgram._HOME) | {"__version__"} == set(agentgram.__all__)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Agnet'"):
        _ = agentgram.Agnet


def test_the_version_is_the_distributions() -> None:
    try:
        installed = importlib.metadata.version("agentgram-sdk")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("run from a source tree that is not installed")
    assert agentgram.__version__ == installed


def test_every_error_is_in_the_tree() -> None:
    errors = [getattr(agentgram, n) for n in agentgram.__all__ if inspect.isclass(getattr(agentgram, n))]
    for error in errors:
        if issubclass(error, Exception) and error not in (agentgram.ModelRetry, agentgram.ToolFailed):
            assert issubclass(error, agentgram.AgentgramError), error


def reference() -> dict[str, list[str]]:
    """The names that the page of public names lists, by module."""
    page = (Path(__file__).parents[1] / "docs" / "reference.md").read_text(encoding="utf-8")
    sections = re.split(r"^## `([\w.]+)`$", page, flags=re.MULTILINE)[1:]
    return {
        m: re.findall(r"^\| `(\w+)` \| .*\S.* \|$", text, re.MULTILINE)
        for m, text in zip(sections[::2], sections[1::2], strict=True)
    }


@pytest.mark.parametrize(("module", "names"), reference().items())
def test_the_page_of_public_names_agrees(module: str, names: list[str]) -> None:
    here = importlib.import_module(module)
    public = getattr(here, "__all__", None) or [
        name
        for name, value in vars(here).items()
        if not name.startswith("_") and inspect.getmodule(value) is here and callable(value)
    ]
    assert len(set(names)) == len(names)
    assert set(names) == set(public)
