"""Bytes as they arrive, and how to read along them.

Every reader here is a generator that yields when it has used up what there is. It decides nothing by how the bytes
were cut: a decision that needs more bytes waits for them, or for the end. So every split gives the same result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from functools import lru_cache
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Wait: TypeAlias = Generator[None, None, T]
"""Yields while it waits for bytes, then returns."""

BLANKS = b" \t\r\n"
_BLANK = re.compile(rb"[ \t\r\n]+")
_SCALAR = re.compile(rb"[-+.\w]+")
_BETWEEN = re.compile(rb"[-+.\w\s:,]+")
INSIDE = {quote: re.compile(rb"(?:[^\\%c]+|\\.)*+" % quote, re.DOTALL) for quote in b"\"'"}
"""For each quote: what stands inside of its strings, escapes whole."""
_CLOSERS = {0x7B: 0x7D, 0x5B: 0x5D}
_TRIM = 1 << 14


class Mismatch(Exception):
    """What stands here is not what was expected; caught inside the parser, always."""


class Truncated(Mismatch):
    """The output ended too early."""


class Source:
    """A growing buffer with a reading position.

    Positions are offsets from the turn's first byte. What lies before ``keep`` may be dropped.
    """

    def __init__(self, waiting: Callable[[], None]) -> None:
        self.data = bytearray()
        self.base = 0
        self.at = 0
        self.closed = False
        self.held: int | None = None
        """Where a reader looks ahead from, that may yet come back: nothing behind it is certain."""
        self.plain: re.Pattern[bytes] | None = None
        """While a reader waits that would pass all that this matches as a whole: such bytes need no reader."""
        self._waiting = waiting

    @property
    def pos(self) -> int:
        """The reading position."""
        return self.base + self.at

    @pos.setter
    def pos(self, value: int) -> None:
        self.at = value - self.base

    @property
    def end(self) -> int:
        """The offset behind the last byte so far."""
        return self.base + len(self.data)

    def take(self, start: int, end: int) -> bytes:
        """The bytes between two offsets."""
        return bytes(self.data[start - self.base : end - self.base])

    def trim(self) -> None:
        """Drops what has been read, now and then."""
        if self.at > _TRIM:
            del self.data[: self.at]
            self.base += self.at
            self.at = 0

    def wait(self) -> Wait[None]:
        """Lets the parser show what is certain, and comes back with more bytes or at the end."""
        self._waiting()
        yield

    def more(self) -> Wait[bool]:
        """Waits for at least one byte; False at the end."""
        while self.at >= len(self.data):
            if self.closed:
                return False
            self._waiting()
            yield
        return True

    def peek(self) -> Wait[int]:
        """The next byte, which stays; -1 at the end."""
        if self.at < len(self.data) or (yield from self.more()):
            return self.data[self.at]
        return -1

    def skip_blanks(self) -> Wait[None]:
        """Moves past whitespace."""
        while True:
            match = _BLANK.match(self.data, self.at)
            if match:
                self.at = match.end()
            if self.at < len(self.data) or not (yield from self.more()):
                return

    def literal(self, options: Sequence[bytes], *, move: bool = True) -> Wait[int]:
        """The length of the option that stands here (the longest of several), 0 for none; moves past it."""
        for option in sorted(options, key=len, reverse=True):
            while True:
                have = bytes(self.data[self.at : self.at + len(option)])
                if have == option or not option.startswith(have) or self.closed:
                    break
                yield from self.wait()
            if have == option:
                if move:
                    self.at += len(option)
                return len(option)
        return 0

    def until(self, pattern: re.Pattern[bytes], hold: Holder) -> Wait[re.Match[bytes] | None]:
        """Looks for a pattern, with ``at`` moving over what is surely before it; None at the end.

        ``hold`` is of all texts that the pattern may match.
        """
        while True:
            match = pattern.search(self.data, self.at)
            if match:
                self.at = match.start()
                return match
            held = 0 if self.closed else hold(self.data, self.at)
            self.at = len(self.data) - held
            if self.closed:
                return None
            self._waiting()
            self.plain = None if held else hold.others
            yield
            self.plain = None

    def json_string(self) -> Wait[bytes]:
        """Moves past a quoted string, single quotes too, and returns it with its quotes.

        Raises:
            Truncated: The output ended inside.
        """
        start = self.pos
        inside = INSIDE[self.data[self.at]]
        self.at += 1
        yield from self.rest_of_string(inside)
        return self.take(start, self.pos)

    def rest_of_string(self, inside: re.Pattern[bytes]) -> Wait[None]:
        """Moves behind the quote that ends the string; ``inside`` is one of :data:`INSIDE`.

        Raises:
            Truncated: The output ended before.
        """
        while True:
            match = inside.match(self.data, self.at)
            assert match is not None  # at least an empty one
            self.at = match.end()
            left = len(self.data) - self.at
            if left and self.data[self.at] != 0x5C:
                self.at += 1
                return
            if self.closed:
                raise Truncated("the output ended inside a string")
            self._waiting()
            self.plain = None if left else inside
            yield
            self.plain = None

    def json_value(self) -> Wait[bytes]:
        """Moves past one JSON value, judging only its brackets and quotes, and returns it.

        Raises:
            Truncated: The output ended inside.
            Mismatch: Something stands here that no JSON value holds.
        """
        start = self.pos
        first = yield from self.peek()
        if first in INSIDE:
            yield from self.json_string()
        elif first in _CLOSERS:
            yield from self._brackets()
        else:
            while match := _SCALAR.match(self.data, self.at):
                self.at = match.end()
                if self.at < len(self.data) or not (yield from self.more()):
                    break
            if self.pos == start:
                raise Truncated("the output ended where a value belongs") if first < 0 else Mismatch("no value")
        return self.take(start, self.pos)

    def _brackets(self) -> Wait[None]:
        open_: list[int] = []
        while True:
            match = _BETWEEN.match(self.data, self.at)
            if match:
                self.at = match.end()
            if self.at >= len(self.data):
                if not (yield from self.more()):
                    raise Truncated("the output ended inside the JSON")
                continue
            byte = self.data[self.at]
            if byte in INSIDE:
                yield from self.json_string()
                continue
            if byte in _CLOSERS:
                open_.append(_CLOSERS[byte])
            elif open_[-1] == byte:
                open_.pop()
            else:
                raise Mismatch(f"{chr(byte)!r} does not belong where it stands in the JSON")
            self.at += 1
            if not open_:
                return


class Holder:
    """Says how many bytes at the end of a buffer may begin one of some texts."""

    def __init__(self, texts: Sequence[bytes]) -> None:
        self._prefixes = {text[:length] for text in texts for length in range(1, len(text))}
        self._longest = max((len(p) for p in self._prefixes), default=0)
        firsts = bytes(sorted({text[0] for text in texts if text}))
        self.first = re.compile(b"[" + re.escape(firsts) + b"]" if firsts else rb"(?!)")
        """Finds what the texts begin with."""
        self.others = re.compile(b"[^" + re.escape(firsts) + b"]*+" if firsts else rb"[\s\S]*")
        """Matches what none of them begins with."""

    def __call__(self, data: bytearray, start: int) -> int:
        """How many bytes, not looking before ``start``."""
        at = max(start, len(data) - self._longest)
        while match := self.first.search(data, at):
            at = match.start()
            if bytes(data[at:]) in self._prefixes:
                return len(data) - at
            at += 1
        return 0


@lru_cache(maxsize=256)
def holder(texts: tuple[bytes, ...]) -> Holder:
    """The :class:`Holder` of these texts."""
    return Holder(texts)
