"""Markers as models write them: blanks inside, other quotes or none, a closing tag twice.

A pattern of ours says at any time whether it matches, cannot match, or needs more bytes to tell, which regular
expressions do not; so the way in which bytes arrive decides nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from agentgram.formats.scanning import BLANKS, Source, Wait

_PIECES = re.compile(r"\{key\}|\{string\}|</[^<>]+>|[\"']|\s+|[\w.:]+|[^\w\s]")
_LONGEST_KEY = 512
_LONGEST_GAP = 64
_QUOTES = b"\"'"


@dataclass(frozen=True, kw_only=True)
class Found:
    """A marker that stands in the text."""

    end: int
    """Where it ends, as an index into the buffer."""
    key: str = ""
    """What stands in the place of ``{key}``."""
    string: str = ""
    """What stands in the place of ``{string}``."""


Answer: TypeAlias = Found | bool
"""A match, or False for none, or True for not yet known."""


class Loose:
    """A marker with places for a key and a flag, that is found in other spellings too."""

    def __init__(self, text: str) -> None:
        self._newline = text.endswith("\n")
        self._pieces = tuple(_PIECES.findall(text.rstrip("\n") if self._newline else text))
        self.lead = text.lstrip().encode()[:1]
        """Its first byte."""

    def match(self, data: bytes | bytearray, at: int, closed: bool) -> Answer:
        """What stands at an index of a buffer; ``closed`` says that no more will come."""
        key = string = ""
        for index, piece in enumerate(self._pieces):
            if piece.isspace():
                continue
            if index:
                at = _past(data, at)
            if at >= len(data):
                return not closed
            if piece in ("{key}", "{string}"):
                end, over = at, self._over(index)
                while end < len(data) and data[end] not in over and end - at < _LONGEST_KEY:
                    end += 1
                if end == at or end - at == _LONGEST_KEY:
                    return False
                if end == len(data):
                    return not closed
                value = _unquoted(bytes(data[at:end]).decode("utf-8", "replace").strip())
                key, string = (value, string) if piece == "{key}" else (key, value)
                at = end
            elif piece in "\"'":
                at += data[at] in _QUOTES
            elif piece.startswith("</"):
                after = self._closing(piece, data, at, closed)
                if isinstance(after, bool):
                    return after
                at = after.end
            else:
                literal = piece.encode()
                have = bytes(data[at : at + len(literal)])
                if have != literal:
                    return literal.startswith(have) and not closed and at + len(have) == len(data)
                at += len(literal)
        if self._newline:
            if at >= len(data) and not closed:
                return True
            at += bytes(data[at : at + 1]) == b"\n"
        return Found(end=at, key=key, string=string)

    def _over(self, index: int) -> bytes:
        """What a key or a flag cannot hold, by what is behind it."""
        following = self._pieces[index + 1 : index + 2]
        quoted = bool(following) and following[0] in "\"'"
        return b"<>\n" + (_QUOTES if quoted else b"")

    def _closing(self, piece: str, data: bytes | bytearray, at: int, closed: bool) -> Answer:
        """A closing tag, once or more often."""
        if len(self._pieces) == 1:
            return _closer(piece).match(data, at, closed)
        found: Answer = False
        while True:
            more = _closer(piece).match(data, _past(data, at), closed)
            if not isinstance(more, Found):
                return more or found
            found, at = more, more.end

    def here(self, src: Source) -> Wait[Found | None]:
        """The marker that stands at the reading position, which stays; waits until it is certain."""
        while True:
            answer = self.match(src.data, src.at, src.closed)
            if answer is not True:
                return answer or None
            yield from src.wait()


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


@lru_cache(maxsize=64)
def _closer(piece: str) -> Loose:
    made = Loose("</")
    made._pieces = ("<", "/", *_PIECES.findall(piece[2:-1]), ">")
    return made


def _past(data: bytes | bytearray, at: int) -> int:
    """Behind the blanks that stand here, as far as a marker may have them inside."""
    end = min(len(data), at + _LONGEST_GAP)
    while at < end and data[at] in BLANKS:
        at += 1
    return at
