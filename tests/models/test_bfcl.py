"""The benchmark's own judge, on replies whose verdict is known."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentgram.tools.definition import ToolDefinition

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def bfcl() -> Iterator[Any]:
    sys.path.insert(0, str(FOLDER))  # the scripts there share modules
    yield importlib.import_module("bfcl_multiple")
    sys.path.remove(str(FOLDER))


def question(bfcl: Any) -> Any:
    def tool(name: str) -> ToolDefinition:
        properties = {"city": {"type": "string"}, "days": {"type": "array", "items": {"type": "number"}}}
        schema = {"type": "object", "properties": properties, "required": ["city"], "additionalProperties": False}
        return ToolDefinition(name=name, schema=schema)

    answer = {"weather.get": {"city": ["New York, NY", "NYC"], "days": ["", [1, 2]]}}
    return bfcl.Question(id="x", text="?", tools=(tool("weather.get"), tool("news.get")), answer=answer)


@pytest.mark.parametrize(
    ("text", "valid", "tool", "arguments"),
    [
        ('<tool_call>\n{"name": "weather.get", "arguments": {"city": "new york NY"}}\n</tool_call>', True, True, True),
        ('{"name": "weather.get", "arguments": {"city": "NYC", "days": [1, 2.0]}}', True, True, True),
        (
            '<tool_call>{"name": "weather.get", "arguments": {"city": "NYC", "days": [2]}}</tool_call>',
            True,
            True,
            False,
        ),
        ('<tool_call>{"name": "weather.get", "arguments": {"city": "Rome"}}</tool_call>', True, True, False),
        ('<tool_call>{"name": "news.get", "arguments": {"city": "NYC"}}</tool_call>', True, False, False),
        ('<tool_call>{"name": "sport.get", "arguments": {"city": "NYC"}}</tool_call>', False, False, False),
        ('<tool_call>{"name": "weather.get", "arguments": {"days": [1]}}</tool_call>', False, False, False),
        ('<tool_call>{"name": "weather.get", "arguments": {"city": "NYC"', False, False, False),
        ("It is raining.", False, False, False),
        ("[1]", False, False, False),
    ],
)
def test_verdicts(bfcl: Any, text: str, valid: bool, tool: bool, arguments: bool) -> None:
    verdict = bfcl.judge(question(bfcl), text, True)
    assert (verdict.valid, verdict.tool, verdict.arguments) == (valid, tool, arguments)


def test_types_become_json_schema(bfcl: Any) -> None:
    dialect = {
        "type": "dict",
        "properties": {
            "point": {"type": "tuple", "items": {"type": "float"}, "description": "Where."},
            "what": {"type": "any", "optional": True},
        },
        "required": ["point"],
    }
    assert bfcl.convert(dialect) == {
        "type": "object",
        "properties": {"point": {"type": "array", "items": {"type": "number"}, "description": "Where."}, "what": {}},
        "required": ["point"],
    }


def test_a_boolean_is_no_number(bfcl: Any) -> None:
    assert bfcl.same(1, 1.0)
    assert not bfcl.same(True, 1)
    assert bfcl.same({"a": [1]}, {"a": [[1], [2]], "b": [""]})
    assert not bfcl.same({"a": [3]}, {"a": [[1], [2]]})


def test_the_questions_are_seeded_and_their_schemas_hold(bfcl: Any) -> None:
    if importlib.util.find_spec("bfcl_eval") is None:
        pytest.skip("the questions are missing: pip install --no-deps bfcl-eval==2026.3.23")
    first, again, other = (bfcl.load_questions(20, seed) for seed in (0, 0, 1))
    assert first == again
    assert first != other
    for item in first:
        assert set(item.answer) <= {t.name for t in item.tools}
