"""Where a codec is at work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentgram.formats.schemas import variants
from agentgram.tools.definition import ToolDefinition, Unsupported


@dataclass(frozen=True, kw_only=True)
class Slot:
    """Where a codec is at work. The same slot gives the same text in the prompt, the grammar and the parser."""

    tool: ToolDefinition | None = None
    """The called tool; None where it is not known any more, as in an old history."""
    avoid: tuple[str, ...] = ()
    """Texts that may not occur: the format's markers."""
    tokens: frozenset[str] = frozenset()
    """Those of the format's markers that are single tokens of the vocabulary."""
    lenient: bool = False
    """Whether the grammar lets whitespace vary."""

    @property
    def unsupported(self) -> Unsupported:
        """What becomes of what the grammar cannot enforce."""
        return "relax" if self.tool is None else self.tool.unsupported

    def variants(self) -> list[Slot]:
        """The slot for each schema that the tool's arguments may have: several where its top says ``anyOf``."""
        if self.tool is None or "anyOf" not in self.tool.schema:
            return [self]
        return [replace(self, tool=replace(self.tool, schema=each)) for each in variants(self.tool.schema)]

    @property
    def schema(self) -> Mapping[str, Any]:
        """The schema of the arguments."""
        return {"type": "object"} if self.tool is None else self.tool.schema
