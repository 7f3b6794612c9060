"""The one description of a turn that rendering, grammar and parser share, so that they cannot disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from agentgram.errors import DefinitionError, nearest
from agentgram.messages import Message
from agentgram.tools.definition import ToolDefinition


@dataclass(frozen=True, slots=True, init=False)
class Only:
    """A ``tool_choice``: of one tool, exactly one call; of several, at least one call, and of these tools only."""

    names: tuple[str, ...]

    def __init__(self, *names: str) -> None:
        if not names:
            raise DefinitionError("Only() names no tool: give it one name or more, or use tool_choice='none'.")
        object.__setattr__(self, "names", tuple(dict.fromkeys(names)))

    @property
    def name(self) -> str:
        """The tool's name, or the first of several."""
        return self.names[0]


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
    """``auto``, ``required`` (at least one call), ``none``, or :class:`Only` one tool or some."""
    parallel: bool = True
    """Whether one turn may hold several calls."""
    output_schema: Mapping[str, Any] | None = None
    """JSON Schema of a typed answer; None for text."""
    reasoning: bool | None = None
    """Whether the model reasons first: True, it does; False, it does not; None, as its prompt has it."""
    _by_name: Mapping[str, ToolDefinition] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", _by_name(self.tools))
        if isinstance(self.tool_choice, Only):
            for name in self.tool_choice.names:
                if name not in self._by_name:
                    raise DefinitionError(
                        f"tool_choice names {name!r}, which is not among the tools. {nearest(name, self._by_name)}"
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


_KNOWN: dict[int, tuple[tuple[ToolDefinition, ...], Mapping[str, ToolDefinition]]] = {}
"""Tuples of tools by their identity, and the tools by name: every step of a run asks about the same hundreds."""
_MOST_KNOWN = 256


def _by_name(tools: Sequence[ToolDefinition]) -> Mapping[str, ToolDefinition]:
    known = _KNOWN.get(id(tools))
    if known is not None and known[0] is tools:
        return known[1]
    found = {tool.name: tool for tool in tools}
    for tool in tools if len(found) != len(tools) else ():
        if found[tool.name] is not tool:
            raise DefinitionError(f"two tools are named {tool.name!r}: rename one, or prefix its toolset.")
    if isinstance(tools, tuple):  # what may change is looked at each time
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[id(tools)] = (tools, found)
    return found


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A rendered prompt, ready for the model."""

    text: str
    """The whole prompt as text, ending where the model continues."""
    tokens: tuple[int, ...] | None = None
    """Token ids, where a tokenizer was given."""
    prefill: str = ""
    """The tail of ``text`` that already belongs to the assistant's turn: the parser is fed it first."""
    reasons: bool = False
    """Whether it leaves to the model whether to reason first."""
