"""Ends loops: a model that makes the same calls again and again, and learns nothing new."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from agentgram.errors import LimitExceeded
from agentgram.executor import CallRecord
from agentgram.messages import ToolCall


class Breaker:
    """Counts in how many turns a call was made since anything new was learned. One run's own.

    Calls of one turn do not count against each other: the model could not know what they would give.
    """

    def __init__(self, limit: int | None) -> None:
        """Args:
        limit: How often the same call may be made; None is no limit.
        """
        self.limit = limit
        self._counts: dict[str, int] = {}
        self._latest: dict[str, CallRecord] = {}
        self._seen: set[tuple[str, str, str]] = set()
        """Every call with its outcome."""

    def before(self, records: list[CallRecord]) -> bool:
        """Marks the calls of a turn that are not to be made again, in place.

        Returns:
            Whether that is all of them: the model goes round in circles.

        Raises:
            LimitExceeded: It does, and what it repeats has failed each time: an answer would be made up.
        """
        if self.limit is None:
            return False
        for index, record in enumerate(records):
            key = _key(record.call)
            if self._counts.get(key, 0) >= self.limit:
                told = f"Not made again. Its result was: {self._latest[key].content}"
                records[index] = replace(record, status="repeated", content=told)
        if not records or any(record.status != "repeated" for record in records):
            return False
        failed = [latest for record in records if (latest := self._latest[_key(record.call)]).error]
        if failed:
            raise LimitExceeded(
                f"the model made the same call of {failed[0].name!r} {self.limit} times, and each time it failed: "
                f"{failed[0].content} Let the tool say what to do instead, or raise "
                "Limits(identical_calls=...)."
            )
        return True

    def after(self, records: Sequence[CallRecord]) -> None:
        """Takes note of what became of a turn's calls."""
        made = [(record, _key(record.call)) for record in records if record.status in ("done", "failed", "unknown")]
        outcomes = {(key, record.status, record.content) for record, key in made}
        if outcomes - self._seen:
            self._counts.clear()
        self._seen |= outcomes
        self._latest |= {key: record for record, key in made}
        for key in {key for _, key in made}:
            self._counts[key] = self._counts.get(key, 0) + 1


def _key(call: ToolCall) -> str:
    return json.dumps([call.name, call.arguments], sort_keys=True, ensure_ascii=False, default=str)
