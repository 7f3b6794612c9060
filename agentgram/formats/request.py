"""The one description of a turn that rendering, grammar and parser share, so that they cannot disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from agentgram.errors import DefinitionError, nearest
from agentgram.messages import Message
from agentgram.tools.definition import ToolDefinition


@dataclass(frozen=True, slots=True)
class Only:
    """A ``tool_choice``: exactly one call, of this tool."""

    name: str


ToolChoice: TypeAlias = Literal["auto", "required", "none"] | Only


@dataclass(frozen=True, kw_only=True)
class Request:
    """A turn that is asked of a model.

    Raises:
        DefinitionError: Two tools share a name, or ``tool_choice`` names a tool that is not there.
    """

    messages: Sequence[Message] = ()
    """The conversation so far."""
    tools: Sequence[ToolDefinition] = ()
    """The tools of this turn, already narrowed to what may be called."""
    tool_choice: ToolChoice = "auto"
    """``auto``, ``required`` (at least one call), ``none``, or :class:`Only` one tool."""
    parallel: bool = True
    """Whether one turn may hold several calls."""
    output_schema: Mapping[str, Any] | None = None
    """JSON Schema of a typed answer; None for text."""
    reasoning: bool | None = None
    """Whether the model reasons first; None for the format's habit."""
    _by_name: dict[str, ToolDefinition] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        for tool in self.tools:
            if self._by_name.setdefault(tool.name, tool) is not tool:
                raise DefinitionError(f"two tools are named {tool.name!r}: rename one, or prefix its toolset.")
        if isinstance(self.tool_choice, Only):
            if self.tool_choice.name not in self._by_name:
                raise DefinitionError(
                    f"tool_choice names {self.tool_choice.name!r}, which is not among the tools. "
                    + nearest(self.tool_choice.name, self._by_name)
                )
        elif self.tool_choice not in ("auto", "required", "none"):
            raise DefinitionError(
                f"tool_choice is {self.tool_choice!r}: use 'auto', 'required', 'none' or Only('name')."
            )
        if self.tool_choice == "required" and not self.tools:
            raise DefinitionError("tool_choice is 'required' but there are no tools to call.")

    def tool(self, name: str) -> ToolDefinition | None:
        """The tool of this name, or None."""
        return self._by_name.get(name)


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A rendered prompt, ready for the model."""

    text: str
    """The whole prompt as text, ending where the model continues."""
    tokens: tuple[int, ...] | None = None
    """Token ids, where a tokenizer was given."""
    prefill: str = ""
    """The tail of ``text`` that already belongs to the assistant's turn: the parser is fed it first."""
