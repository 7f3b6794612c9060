"""How prompts list the tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from agentgram.errors import DefinitionError, nearest
from agentgram.formats.json_text import dumps
from agentgram.formats.typescript import namespace
from agentgram.tools.definition import ToolDefinition

if TYPE_CHECKING:
    from agentgram.formats.template import Format


def openai_tool(definition: ToolDefinition) -> dict[str, Any]:
    """A tool as chat templates expect it."""
    function = {"name": definition.name, "description": definition.description, "parameters": dict(definition.schema)}
    return {"type": "function", "function": function}


def _json_lines(tools: Sequence[ToolDefinition], avoid: tuple[str, ...]) -> str:
    return "\n".join(dumps(openai_tool(t), avoid) for t in tools)


def _json_functions(tools: Sequence[ToolDefinition], avoid: tuple[str, ...]) -> str:
    return "\n".join(dumps(openai_tool(t)["function"], avoid) for t in tools)


def _json_array(tools: Sequence[ToolDefinition], avoid: tuple[str, ...]) -> str:
    return dumps([openai_tool(t) for t in tools], avoid)


TOOL_LISTS: dict[str, Callable[[Sequence[ToolDefinition], tuple[str, ...]], str]] = {
    "json-lines": _json_lines,
    "json-functions": _json_functions,
    "json-array": _json_array,
    "typescript": namespace,
}
"""How tools are listed, by the name that :class:`agentgram.formats.ToolList` gives."""


def tool_list(fmt: Format, tools: Sequence[ToolDefinition]) -> str:
    """The part of the prompt that shows the tools; empty where there are none.

    Raises:
        DefinitionError: The format names a way of listing tools that does not exist.
    """
    tools = [t for t in tools if t.name not in fmt.claimed]
    if not tools:
        return ""
    if fmt.tools.codec not in TOOL_LISTS:
        raise DefinitionError(f"there is no tool list {fmt.tools.codec!r}. {nearest(fmt.tools.codec, TOOL_LISTS)}")
    return fmt.tools.before + TOOL_LISTS[fmt.tools.codec](tools, fmt.markers) + fmt.tools.after
