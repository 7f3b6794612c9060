"""Strategies for calls: all of them valid, all of the language in reach, and small when they shrink."""

from __future__ import annotations

import datetime
import enum
from typing import Annotated, Any, Literal

import jsonschema
import pytest
from hypothesis import find, given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from agentgram import DefinitionError, Tool, Toolset, tool
from agentgram.messages import ToolCall
from agentgram.testing import arguments, calls


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Node(BaseModel):
    name: Annotated[str, Field(max_length=5)]
    children: Annotated[list[Node], Field(max_length=3)] = []


def many(a: int, b: float, c: Literal["x", "y"], d: list[int] | None = None, e: Color = Color.RED) -> None: ...
def tree(root: Node) -> None: ...
def dated(day: datetime.date, note: Annotated[str, Field(pattern="^[a-z]{1,3}$")] = "a") -> None: ...
def nothing() -> None: ...


FOREIGN = Tool.from_schema(
    "foreign",
    {
        "type": "object",
        "properties": {"p": {"type": "array", "prefixItems": [{"const": 1}, {"type": "string"}], "items": False}},
        "required": ["p"],
        "additionalProperties": {"type": "boolean"},
    },
)
TOOLS = Toolset([many, tree, dated, nothing, FOREIGN])


@given(calls(TOOLS))
def test_every_call_is_valid(call: ToolCall) -> None:
    TOOLS[call.name].parameters.read(call.arguments)
    jsonschema.validate(call.arguments, dict(TOOLS[call.name].definition.schema))


@given(calls(TOOLS, max_bytes=0))
def test_no_room_gives_the_shortest_calls(call: ToolCall) -> None:
    TOOLS[call.name].parameters.read(call.arguments)


@pytest.mark.parametrize("name", ["many", "tree", "dated", "nothing", "foreign"])
def test_every_tool_is_reached(name: str) -> None:
    assert find(calls(TOOLS), lambda c: c.name == name).name == name


def test_what_is_rare_is_reached_and_shrinks() -> None:
    deep = find(arguments(tree), lambda a: bool(a["root"].get("children")))
    assert deep == {"root": {"name": "", "children": [{"name": ""}]}}
    assert find(arguments(many), lambda a: a["c"] == "y")["c"] == "y"
    assert find(arguments(many), lambda a: bool(a.get("d")))["d"] == [0]


@given(arguments(Tool.from_schema("open", {"properties": {"x": {"type": "number"}}, "additionalProperties": False})))
def test_arguments_are_objects_also_where_the_schema_does_not_say_so(values: Any) -> None:
    assert isinstance(values, dict)


def test_mistakes() -> None:
    with pytest.raises(DefinitionError, match="at least one tool"):
        calls([])
    with pytest.raises(DefinitionError, match="3 is not a tool"):
        calls([3])
    with pytest.raises(DefinitionError, match="max_bytes is -1"):
        arguments(tool(nothing), max_bytes=-1)


@given(st.data())
def test_one_tool_may_stand_alone(data: Any) -> None:
    assert data.draw(calls(tool(nothing))) == ToolCall(name="nothing", arguments={})
    assert data.draw(arguments(nothing)) == {}
