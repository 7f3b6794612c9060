"""From a model's bytes, or tokens, to events and a message: the streaming parser of a format.

It is a coroutine over the format's tree (:mod:`agentgram.formats.reading`) and never raises on what a model wrote.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agentgram.errors import DefinitionError
from agentgram.events import ParserEvent
from agentgram.formats.assembly import Run
from agentgram.formats.reading import read
from agentgram.formats.request import Request
from agentgram.formats.scanning import Mismatch, Wait
from agentgram.messages import Message

if TYPE_CHECKING:
    from agentgram.formats.template import Format


class TokenBytes(Protocol):
    """What the parser has to know of a vocabulary."""

    @property
    def special(self) -> Mapping[str, int]:
        """The special tokens by name."""
        ...

    def token_bytes(self, token: int, /) -> bytes:
        """The bytes of a token."""
        ...


@dataclass(frozen=True, kw_only=True)
class OpenCall:
    """A call that has begun and not ended."""

    offset: int
    """Where it began: bytes from the turn's first one. Cutting the turn here takes the whole call away."""
    name: str
    """The tool's name, once it is complete; else empty."""
    text: str
    """What has been written of the call, marker included."""


class Parser:
    """Reads one assistant turn. Made by :meth:`agentgram.formats.Format.parser`."""

    def __init__(self, fmt: Format, request: Request, vocabulary: TokenBytes | None = None, prefill: str = "") -> None:
        self._run = Run(fmt, request)
        self._vocabulary = vocabulary
        self._special = {} if vocabulary is None else {token: name for name, token in vocabulary.special.items()}
        self._turn = _turn(self._run)
        self._message: Message | None = None
        next(self._turn)
        self.feed_bytes(prefill.encode())

    def feed_bytes(self, data: bytes) -> list[ParserEvent]:
        """More of the turn; what has become certain by it.

        Raises:
            DefinitionError: The parser has been closed.
        """
        run = self._run
        src = run.src
        if src.plain is not None and src.plain.fullmatch(data):  # most of a turn is passed as it comes
            src.data += data
            src.at = len(src.data)
            run.settle()
        elif src.closed:
            raise DefinitionError("this parser is closed: make one for each turn.")
        elif data and not run.stopped:
            src.data += data
            next(self._turn, None)
        return run.drain()

    def feed_token(self, token_id: int) -> list[ParserEvent]:
        """One more token of the turn; a special token counts as its name. Needs the vocabulary.

        Raises:
            DefinitionError: The parser was made without a vocabulary, or has been closed.
        """
        if self._vocabulary is None:
            raise DefinitionError("feed_token needs a vocabulary: fmt.parser(request, vocabulary).")
        name = self._special.get(token_id)
        return self.feed_bytes(self._vocabulary.token_bytes(token_id) if name is None else name.encode())

    def finish(self) -> list[ParserEvent]:
        """Ends the turn: the events that only its end makes certain. May be called more than once."""
        run = self._run
        if not run.src.closed:
            run.src.closed = True
            next(self._turn, None)
            run.end_text()
        return run.drain()

    def close(self) -> Message:
        """Ends the turn and returns the message."""
        if self._message is None:
            self.finish()
            self._message = Message(role="assistant", parts=tuple(self._run.parts()))
        return self._message

    @property
    def open_call(self) -> OpenCall | None:
        """The call that the turn is in, or None."""
        run = self._run
        if run.opened is None:
            return None
        text = run.src.take(run.opened, run.src.end).decode("utf-8", "replace")
        return OpenCall(offset=run.opened, name=run.draft.name or "" if run.draft else "", text=text)

    @property
    def commit_offset(self) -> int:
        """How many bytes of the turn are settled: the rest is an open call, or may yet become a trigger.

        A denied intent is rolled back to here.
        """
        return self._run.src.pos if self._run.opened is None else self._run.opened

    @property
    def stopped(self) -> bool:
        """Whether an end-of-turn marker has been read; what follows it is ignored."""
        return self._run.stopped


def _turn(run: Run) -> Wait[None]:
    with contextlib.suppress(Mismatch):
        yield from read(run.fmt.output, run, ())
    run.opened = run.draft = None
    while not run.stopped and (run.src.at < len(run.src.data) or not run.src.closed):
        run.begin_text()
        run.src.pos = run.src.end
        yield from run.src.wait()
    run.end_text()
