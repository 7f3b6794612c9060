"""What a run has done so far, as far as rules ask for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol, runtime_checkable

from agentgram.messages import Message, ToolCall
from agentgram.policy.conditions import Per
from agentgram.principal import Principal


@runtime_checkable
class Counts(Protocol):
    """Where calls are counted for good: what a session has to be besides for ``times(per="session")`` and ``"day"``."""

    async def used(self, scope: str, rule: str) -> int:
        """How many calls a rule has let through in a scope."""
        ...

    async def reserve(self, scope: str, rule: str, most: int) -> bool:
        """Counts one more call, where fewer than ``most`` are counted; in one piece, and for good before it returns."""
        ...


def scope(per: Per, session: str, user: Principal) -> str:
    """What calls are counted together under."""
    return f"session {session}" if per == "session" else f"day {datetime.now(UTC).date()} {user.id}"


class Past:
    """A :class:`agentgram.policy.State` that a run writes."""

    def __init__(self, *, tainted: bool = False) -> None:
        self.tainted = tainted
        """Whether text of outsiders is part of the conversation."""
        self._done: dict[str, list[Mapping[str, Any]]] = {}
        self._used: dict[tuple[str, Per], int] = {}

    def used(self, rule: str, per: Per) -> int:
        """How many calls the rule has let through, as far as is known here."""
        return self._used.get((rule, per), 0)

    def done(self, tool: str) -> Iterable[Mapping[str, Any]]:
        """The arguments of the calls of a tool that have succeeded in this conversation."""
        return self._done.get(tool, ())

    def count(self, rule: str, per: Per, used: int) -> None:
        """Takes note of how many calls a rule has let through."""
        self._used[(rule, per)] = used

    def succeeded(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """Takes note of a call that has succeeded."""
        self._done.setdefault(tool, []).append(dict(arguments))

    def remember(self, messages: Sequence[Message]) -> None:
        """Takes note of a conversation: its calls that succeeded, and whether outsiders had their say."""
        calls: dict[tuple[str, str], ToolCall] = {}
        for message in messages:
            calls |= {(call.id, call.name): call for call in message.calls}
            for result in message.results:
                self.tainted = self.tainted or not result.trusted
                call = calls.get((result.call_id, result.name))
                if call is not None and not result.error:
                    self.succeeded(call.name, call.arguments)
