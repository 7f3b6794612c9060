"""What a model has to know of a tool. Everything else about it stays with :class:`agentgram.Tool`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

from agentgram.errors import DefinitionError
from agentgram.tools.sensitive import is_sensitive

Unsupported: TypeAlias = Literal["error", "relax"]
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,127}\Z")


@dataclass(frozen=True, kw_only=True)
class ToolDefinition:
    """A tool's name, description and argument schema.

    Raises:
        DefinitionError: The name is not ASCII letters, digits, ``_``, ``-`` and ``.`` (at most 128), or the schema
            is not an object schema, or ``unsupported`` is another word.
    """

    name: str
    """Qualified name: ASCII letters, digits, ``_``, ``-``, ``.``."""
    description: str = ""
    """What the tool does, for the model."""
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    """JSON Schema of the arguments: of type ``object``, also where what was given does not say so."""
    tags: frozenset[str] = frozenset()
    """Words that policies select by; never shown to the model."""
    unsupported: Unsupported = "error"
    """Whether keywords that the grammar cannot enforce are refused or loosened."""
    source: str = ""
    """Who else offers the tool, such as an MCP server's name; empty for the host's own."""

    fills_defaults: bool = True
    """Whether an argument that is left out is what the schema says under ``default``, since validation puts that in its
    place; else ``default`` only describes, and nobody but the tool knows what it takes."""

    @cached_property
    def sensitive(self) -> bool:
        """Whether some argument is marked as sensitive; found once, since every run asks it of every tool."""
        return is_sensitive(self.schema)

    def with_schema(self, schema: Mapping[str, Any]) -> ToolDefinition:
        """The same tool with other arguments; ``schema`` is of type ``object`` and says so."""
        made = object.__new__(ToolDefinition)  # nothing else has changed, so nothing else is looked at again
        made.__dict__.update(self.__dict__, schema=schema)
        made.__dict__.pop("sensitive", None)
        return made

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.match(self.name):
            raise DefinitionError(
                f"{self.name!r} cannot name a tool: use 1 to 128 ASCII letters, digits, '_', '-' or '.', "
                "beginning with a letter, a digit or '_'."
            )
        kind = self.schema.get("type", "object") if isinstance(self.schema, Mapping) else None
        if kind != "object":
            raise DefinitionError(
                f"the arguments of tool {self.name!r} must be described by a schema of type 'object', not {kind!r}."
            )
        if "type" not in self.schema:  # JSON Schema would then admit what is no object at all
            object.__setattr__(self, "schema", {"type": "object", **self.schema})
        if self.unsupported not in ("error", "relax"):
            raise DefinitionError(f"tool {self.name!r} has unsupported={self.unsupported!r}: use 'error' or 'relax'.")
