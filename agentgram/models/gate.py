"""What may be appended, made exact for a tool when a call of it begins.

A policy may narrow hundreds of tools for one user alone, of which a turn calls one or two. So the gate begins with the
grammar that all users of the same rights share, in which such tools stand as they are declared. Where a call of one
begins, its own grammar is put in the place of the shared one, and all that the turn holds is read again with it, the
token by which the tool became known included: nothing is passed on before the exact grammar has accepted it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from agentgram.engine import Grammar, Matcher
from agentgram.errors import GrammarError
from agentgram.formats.request import Request
from agentgram.tools.definition import ToolDefinition

Compile = Callable[[Request, bool], Grammar]
"""The grammar of a request, and whether the request may come again."""


class Gate:
    """A matcher of what is permitted. Single-threaded, as matchers are."""

    def __init__(self, permitted: Request, common: Request | None, compile: Compile) -> None:
        """Args:
        permitted: What may be written.
        common: More than that, to begin with, of the same tools in the same order; None to begin with what is
            permitted.
        compile: Makes grammars.
        """
        self._permitted = permitted
        self._request = permitted if common is None else common
        self._compile = compile
        pairs = zip(self._request.tools, permitted.tools, strict=True)
        self.unsure = {tool.name for tool, exact in pairs if tool is not exact}
        """Tools whose calls may still be wider than is permitted."""
        self.matcher: Matcher = compile(self._request, True).matcher()
        """At the end of what has been written. Wider than is permitted in calls of ``unsure`` tools only."""

    def enter(self, names: set[str], written: Sequence[int]) -> int:
        """Makes tools exact.

        Args:
            names: Their names.
            written: The turn's tokens so far, all of which the gate has accepted.

        Returns:
            How many of them are permitted: where it is not all, the gate stands before the first one that is not.

        Raises:
            GrammarError: The tools as they are permitted cannot be compiled.
        """
        mine = self.unsure & names
        if not mine:
            return len(written)
        self.unsure -= mine
        pairs = zip(self._request.tools, self._permitted.tools, strict=True)
        tools = tuple(exact if tool.name in mine else tool for tool, exact in pairs)
        self._request = replace(self._request, tools=tools) if self.unsure else self._permitted
        self.matcher = self._compile(self._request, not self.unsure).matcher()
        for number, token in enumerate(written):
            if not self.matcher.accept(token):
                return number
        return len(written)

    def instead(self, definition: ToolDefinition) -> Matcher | None:
        """A matcher at the start, were a tool this one; None where such calls cannot be compiled."""
        tools = tuple(definition if tool.name == definition.name else tool for tool in self._request.tools)
        try:
            return self._compile(replace(self._request, tools=tools), False).matcher()
        except GrammarError:
            return None
