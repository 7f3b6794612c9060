"""Two tools that format tests call, and what is asked of a format again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentgram.formats import Format, Request
from agentgram.messages import Message
from agentgram.tools.definition import ToolDefinition

PUT = ToolDefinition(
    name="put",
    description="Puts it.",
    schema={
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "count": {"type": "integer"},
            "share": {"type": "number"},
            "exact": {"type": "boolean"},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "at": {"type": "object", "properties": {"x": {"type": "integer"}, "deep": {"type": "boolean"}}},
        },
        "additionalProperties": False,
    },
)
"""A tool with an argument of each kind."""
NOW = ToolDefinition(
    name="now", description="The time.", schema={"type": "object", "properties": {}, "additionalProperties": False}
)
"""A tool without arguments."""
TOOLS = [PUT, NOW]


def functions(tools: Sequence[ToolDefinition] = TOOLS) -> list[dict[str, Any]]:
    """Tools as chat templates are given them."""
    return [
        {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.schema}}
        for t in tools
    ]


def parsed(fmt: Format, text: str, request: Request | None = None, *, step: int = 0) -> Message:
    """The message that a turn is read as; in pieces of so many bytes, where a step is given."""
    parser = fmt.parser(request or Request(tools=TOOLS))
    raw = text.encode()
    for start in range(0, len(raw), step or len(raw) or 1):
        parser.feed_bytes(raw[start : start + (step or len(raw))])
    return parser.close()
