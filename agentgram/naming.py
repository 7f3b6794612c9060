"""Ids of calls: each is of one call only, for verdicts, results and the audit go by them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from agentgram.messages import Message, Part, ToolCall


class CallIds:
    """Names the calls of one conversation."""

    def __init__(self) -> None:
        self._number = 0
        self._known: set[str] = set()

    def remember(self, messages: Iterable[Message]) -> None:
        """Takes note of the conversation so far."""
        for message in messages:
            self._number += len(message.calls)
            self._known.update(call.id for call in message.calls)

    def named(self, call: ToolCall) -> ToolCall:
        """The call with an id that no other has: its own, or a new one where it has none or another call has it too."""
        if call.id and call.id not in self._known:
            self._known.add(call.id)
            return call
        # By number and not by chance: some formats show ids to the model, and a seed must give the same run again.
        while True:
            self._number += 1
            if (made := f"call_{self._number}") not in self._known:
                self._known.add(made)
                return replace(call, id=made)

    def in_message(self, message: Message, ids: Sequence[str]) -> Message:
        """The message with the ids that its calls have been given one after the other, and new ones for the rest."""
        given = iter(ids)
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolCall):
                id_ = next(given, "")
                part = replace(part, id=id_) if id_ else self.named(part)
            parts.append(part)
        return replace(message, parts=tuple(parts))
