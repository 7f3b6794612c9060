"""Sets of tools: joined, filtered, renamed; one name, one tool."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from agentgram.errors import DefinitionError, nearest
from agentgram.tools.decorator import Tool, as_tool
from agentgram.tools.definition import ToolDefinition


class Toolset:
    """Tools in order, each with a name of its own. Immutable: every method returns a new set."""

    def __init__(self, tools: Iterable[Any] = ()) -> None:
        """Args:
            tools: Tools, functions, Pydantic models, or other toolsets.

        Raises:
            DefinitionError: Something is not a tool, or two tools share a name.
        """
        self._tools: dict[str, Tool[..., Any]] = {}
        for item in tools:
            for each in item if isinstance(item, Toolset) else (as_tool(item),):
                if self._tools.setdefault(each.name, each) is not each:
                    raise DefinitionError(
                        f"two tools are named {each.name!r}: give one another name=, or prefix its toolset."
                    )

    @functools.cached_property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """What a model is told of each, in order."""
        return tuple(tool.definition for tool in self)

    def __iter__(self) -> Iterator[Tool[..., Any]]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __getitem__(self, name: str) -> Tool[..., Any]:
        """The tool of this name.

        Raises:
            DefinitionError: There is none; the nearest name is suggested.
        """
        try:
            return self._tools[name]
        except KeyError:
            raise DefinitionError(f"no tool is named {name!r}. {nearest(name, self._tools)}") from None

    def __add__(self, other: Iterable[Any]) -> Toolset:
        return Toolset([*self, *other])

    def __repr__(self) -> str:
        return f"Toolset({', '.join(self._tools)})"

    def get(self, name: str) -> Tool[..., Any] | None:
        """The tool of this name, or None."""
        return self._tools.get(name)

    def filtered(self, keep: Callable[[Tool[..., Any]], bool]) -> Toolset:
        """The tools for which ``keep`` is true."""
        return Toolset(t for t in self if keep(t))

    def prefixed(self, prefix: str) -> Toolset:
        """Every tool with ``prefix`` before its name, as in ``crm.``."""
        return Toolset(t.renamed(prefix + t.name) for t in self)

    def renamed(self, names: Mapping[str, str]) -> Toolset:
        """The tools with new names: old name to new.

        Raises:
            DefinitionError: An old name is not in the set.
        """
        for old in names:
            self[old]
        return Toolset(t.renamed(names.get(t.name, t.name)) for t in self)
