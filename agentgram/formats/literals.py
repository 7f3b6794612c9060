"""Literals of programming languages, read as models write them: Python's, JSON's and those between marker quotes.

A reader of its own rather than ``ast``: reserved words as names, raw newlines in strings, zero-padded numbers and
unescaped quotes occur, and what ``ast`` refuses is mostly clear enough.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from agentgram.formats.json_text import loads
from agentgram.formats.scanning import BLANKS, INSIDE, Mismatch, Source, Truncated, Wait, holder
from agentgram.formats.schemas import ALL

_WORDS = {"True": True, "true": True, "False": False, "false": False, "None": None, "null": None}
_NUMBER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|(?:\d[\d_]*)?\.?\d[\d_]*\.?(?:[eE][-+]?\d+)?)")
_NAME = re.compile(r"[^\s()\[\]{},:=\"']+")
_PLAIN = re.compile(r"[^()\[\]{},=\"']+")
_PREFIX = re.compile(r"[fFrRbBuU]{1,2}(?=[\"'])")
_INSIDE = {quote: re.compile(rf"(?:[^\\{quote}]+|\\.)*+{quote}", re.DOTALL) for quote in "\"'"}
_SPACE = re.compile(r"[ \t\r\n]*")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "0": "\0", "\n": "", "/": "/"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_AS_JSON = re.compile(r"(?:[^\\\"]+|\\[\"\\/bfnrt])*+")
"""Strings that mean the same to Python and to JSON, as most do."""
_JSON = json.JSONDecoder(strict=False)
_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_ENDS_STRING = ",)]}:="
_DEEP = 200


class Literals:
    """Reads a text of literals from left to right.

    Args:
        text: What to read.
        quote: A marker that stands before and after strings; empty for quotes only.
        types: The JSON types of arguments: those that may be strings are read without quotes, too.
    """

    def __init__(self, text: str, quote: str = "", types: Mapping[str, frozenset[str]] | None = None) -> None:
        self.text = text
        self.at = 0
        self.quote = quote
        self.depth = 0
        self._types = types or {}

    def arguments(self, assign: str, closer: str = "") -> dict[str, Any]:
        """Named values up to the closer, or to the end.

        Raises:
            ValueError: The text is none, or a value has no name, or a name occurs twice.
        """
        out: dict[str, Any] = {}
        unquoted = False
        while True:
            self._blanks()
            if self.at == len(self.text) and not closer:
                return out
            if closer and self._take(closer):
                return out
            if self._take(","):
                continue
            key = self._key()
            self._blanks()
            if not (self._take(assign) or self._take(":") or self._take("=")):
                raise ValueError(
                    f"the argument {key[:40]!r} has no name" if assign == "=" else f"{assign!r} is missing"
                )
            if key in out:
                raise ValueError(f"the key {key!r} occurs twice")
            bare = None if self.depth else self._bare(key)
            unquoted = unquoted or bare is not None
            if unquoted and key not in self._types:  # this may be a part of that string
                raise ValueError("a string has quotes, unless it is clear where it ends")
            out[key] = self.value() if bare is None else bare
            self._blanks()
            if not self._take(",") and self.at < len(self.text) and not (closer and self.text[self.at] == closer):
                raise ValueError(f"',' is missing before {self.text[self.at : self.at + 20]!r}")

    def _bare(self, key: str) -> str | None:
        """The string without quotes that stands here; None where there is none, or something else by its look."""
        types = self._types.get(key, frozenset())
        match = _PLAIN.match(self.text, self.at) if "string" in types and len(types) < len(ALL) else None
        text = match.group().strip(" \t\r\n") if match else ""
        if not match or not text or self.text[match.end() : match.end() + 1] not in ("", ","):
            return None
        try:
            value = _word(text)
        except ValueError:
            pass
        else:
            if types != {"string"} or not isinstance(value, int | float) or isinstance(value, bool):
                return None
        self.at = match.end()
        return text

    def value(self) -> Any:
        """One value.

        Raises:
            ValueError: There is none.
        """
        self._blanks()
        self.depth += 1
        if self.depth > _DEEP:
            raise ValueError("nested too deep")
        try:
            return self._value()
        finally:
            self.depth -= 1

    def _value(self) -> Any:
        if self.quote and self.text.startswith(self.quote, self.at):
            return self._between_quotes()
        here = self.text[self.at : self.at + 1]
        if here == "{":
            return self._braces()
        if here and here in "([":
            self.at += 1
            return self._list(_CLOSERS[here])
        prefix = _PREFIX.match(self.text, self.at)
        if prefix:
            self.at = prefix.end()
            here = self.text[self.at]
        if here and here in "\"'":
            return self._string()
        word = _NAME.match(self.text, self.at)
        if word is None:
            raise ValueError(f"a value is missing before {self.text[self.at : self.at + 20]!r}")
        self.at = word.end()
        return _word(word.group())

    def _between_quotes(self) -> str:
        start = self.at + len(self.quote)
        end = self.text.find(self.quote, start)
        if end < 0:
            raise ValueError("a string does not end")
        self.at = end + len(self.quote)
        return self.text[start:end]

    def _braces(self) -> Any:
        """An object; or a set, which is a list."""
        self.at += 1
        start = self.at
        self._blanks()
        if not self.text.startswith("}", self.at):
            before = self.at
            self._key()
            self._blanks()
            pairs = self.text[self.at : self.at + 1] in ("=", ":")
            self.at = before
            if not pairs:
                self.at = start
                return self._list("}")
        return self.arguments(":", "}")

    def _list(self, closer: str) -> list[Any]:
        out: list[Any] = []
        while True:
            self._blanks()
            if self._take(closer):
                return out
            if self._take(","):
                continue
            out.append(self.value())
            self._blanks()
            if self.text[self.at : self.at + 1] not in (",", closer):
                raise ValueError(f"{closer!r} is missing before {self.text[self.at : self.at + 20]!r}")

    def _key(self) -> str:
        if self.quote and self.text.startswith(self.quote, self.at):
            return self._between_quotes()
        if self.text[self.at : self.at + 1] in ('"', "'"):
            return self._string()
        word = _NAME.match(self.text, self.at)
        if word is None:
            raise ValueError(f"a name is missing before {self.text[self.at : self.at + 20]!r}")
        self.at = word.end()
        return word.group()

    def _string(self) -> str:
        start = self.at + 1
        self.at = string_end(self.text, self.at)
        return unescaped(self.text[start : self.at - 1])

    def _blanks(self) -> None:
        match = _SPACE.match(self.text, self.at)
        assert match is not None
        self.at = match.end()

    def _take(self, text: str) -> bool:
        if self.text.startswith(text, self.at):
            self.at += len(text)
            return True
        return False


def _word(word: str) -> Any:
    if word in _WORDS:
        return _WORDS[word]
    if _NUMBER.fullmatch(word):
        plain = word.replace("_", "").lstrip("+")
        if plain.lower().lstrip("-").startswith("0x"):
            return int(plain, 16)
        sign, digits = ("-", plain[1:]) if plain.startswith("-") else ("", plain)
        digits = digits.lstrip("0") or "0"
        digits = "0" + digits if digits[0] in ".eE" else digits
        return loads(sign + digits.replace(".e", "e").replace(".E", "E").rstrip("."))
    raise ValueError(f"{word[:40]!r} is no value: a string has quotes")


def unescaped(text: str) -> str:
    """What a string's inside spells, by Python's and JSON's escapes.

    Raises:
        ValueError: Half of a surrogate pair.
    """
    if "\\" not in text:
        return text
    if _AS_JSON.fullmatch(text):
        spelled: str = _JSON.decode(f'"{text}"')
        return spelled

    def one(match: re.Match[str]) -> str:
        code = match.group(1)
        if code[0] in "uUx" and len(code) > 1:
            point = int(code[1:], 16)
            return chr(point) if point <= 0x10FFFF else "\ufffd"
        return _ESCAPES.get(code, code if code in "\"'\\" else "\\" + code)

    made = _ESCAPE.sub(one, text)
    try:
        return made.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError("a string holds half of a surrogate pair") from None


def string_end(text: str, at: int) -> int:
    """Behind the string that begins here, by its first closing quote that something follows which may follow a string.

    Other quotes stand inside the string.

    Raises:
        ValueError: It does not end.
    """
    inside = _INSIDE[text[at]]
    here = at + 1
    while match := inside.match(text, here):
        here = match.end()
        after = _SPACE.match(text, here)
        assert after is not None
        if after.end() >= len(text) or text[after.end()] in _ENDS_STRING:
            return here
    raise ValueError("a string does not end")


def balanced(src: Source, quote: bytes, closer: int) -> Wait[bytes]:
    """Moves to the closing bracket that belongs to nothing before it, and returns what is passed.

    Raises:
        Truncated: The output ended before.
        Mismatch: A bracket closes what was not opened.
    """
    start, open_ = src.pos, bytearray()
    plain = re.compile(rb"[^\"'(){}\[\]" + re.escape(quote[:1]) + rb"]+")
    while True:
        match = plain.match(src.data, src.at)
        if match:
            src.at = match.end()
        byte = yield from src.peek()
        if byte < 0:
            raise Truncated("the output ended inside the arguments")
        if quote and (yield from src.literal((quote,))):
            if (yield from src.until(re.compile(re.escape(quote)), holder((quote,)))) is None:
                raise Truncated("the output ended inside a string")
            src.at += len(quote)
        elif byte in b"\"'":
            yield from _past_string(src)
        elif byte in b"([{":
            open_.append({0x28: 0x29, 0x5B: 0x5D, 0x7B: 0x7D}[byte])
            src.at += 1
        elif byte in b")]}":
            if not open_ and byte == closer:
                return src.take(start, src.pos)
            if not open_ or open_.pop() != byte:
                raise Mismatch(f"{chr(byte)!r} does not belong where it stands in the arguments")
            src.at += 1
        else:
            src.at += 1


def _past_string(src: Source) -> Wait[None]:
    """Moves past a string in quotes. Looks at each byte once: quotes that end nothing are passed for good."""
    inside = INSIDE[src.data[src.at]]
    src.at += 1
    while True:
        yield from src.rest_of_string(inside)
        after = src.at
        while True:
            while after < len(src.data) and src.data[after] in BLANKS:
                after += 1
            if after < len(src.data) or src.closed:
                break
            yield from src.wait()
            # nothing is dropped from the buffer inside of a call, so the index stays
        if after >= len(src.data) or chr(src.data[after]) in _ENDS_STRING:
            return
