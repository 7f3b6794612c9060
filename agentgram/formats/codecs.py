"""Codecs: how a call's arguments are written. A format refers to a codec by its name."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Protocol, runtime_checkable

from agentgram.engine.spec import JsonSchema, Spec
from agentgram.errors import DefinitionError, nearest
from agentgram.tools.definition import ToolDefinition

_MAX_EXPONENT = 4000


@runtime_checkable
class Codec(Protocol):
    """Writes arguments, describes what a model may write, and reads it back."""

    def encode(self, arguments: Mapping[str, Any], avoid: tuple[str, ...]) -> str:
        """The canonical text of the arguments, with none of ``avoid`` in it where the codec can escape."""
        ...

    def grammar(self, tool: ToolDefinition, *, lenient: bool) -> Spec:
        """What a model may write as arguments of this tool."""
        ...

    def decode(self, text: str) -> dict[str, Any]:
        """The arguments that the text spells.

        Raises:
            ValueError: The text spells no arguments; the message says why.
        """
        ...


def dumps(value: Any, avoid: tuple[str, ...] = ()) -> str:
    """JSON text as ``json.dumps`` spaces it, in which none of ``avoid`` occurs outside of escapes.

    A marker can only occur inside a string, and there its first character has an escaped spelling.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    for marker in avoid:
        if marker and marker in text:
            text = text.replace(marker, f"\\u{ord(marker[0]):04x}{marker[1:]}")
    return text


def loads(text: str) -> Any:
    """Reads JSON as a model may write it: raw newlines in strings, and Python's literals, are understood.

    Raises:
        ValueError: Not JSON, a key twice in an object, NaN or Infinity, half a surrogate pair, nested too deep.
    """
    try:
        try:
            value = _DECODER.decode(text)
        except json.JSONDecodeError:
            value = _DECODER.decode(python_to_json(text))
    except RecursionError:
        raise ValueError("nested too deep") from None
    if "\\" in text:
        _refuse_surrogates(value)
    return value


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        seen: set[str] = set()
        twice = next(k for k, _ in pairs if k in seen or seen.add(k))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice!r} occurs twice")
    return out


def _float(text: str) -> float | int:
    value = float(text)
    if math.isfinite(value):
        return value
    number = Decimal(text)
    if number.adjusted() > _MAX_EXPONENT:
        raise ValueError(f"the number {text[:40]} is too large")
    return int(number)


def _constant(text: str) -> Any:
    raise ValueError(f"{text} is not a JSON value")


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_float=_float, parse_constant=_constant, strict=False)


def _refuse_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("a string holds half of a surrogate pair") from None


_PYTHON = re.compile(r"""("(?:[^"\\]|\\.)*")|'((?:[^'\\]|\\.)*)'|\b(True|False|None)\b""", re.DOTALL)
_QUOTES = re.compile(r"""\\(.)|(")""", re.DOTALL)
_WORDS = {"True": "true", "False": "false", "None": "null"}


def python_to_json(text: str) -> str:
    """Rewrites single-quoted strings and Python's constants as JSON; all else stays as it is."""

    def requote(match: re.Match[str]) -> str:
        if match.group(2):
            return '\\"'
        return match.group(1) if match.group(1) == "'" else match.group(0)

    def token(match: re.Match[str]) -> str:
        if match.group(1) is not None:
            return match.group(1)
        if match.group(3):
            return _WORDS[match.group(3)]
        return '"' + _QUOTES.sub(requote, match.group(2)) + '"'

    return _PYTHON.sub(token, text)


class JsonCodec:
    """The arguments as one JSON object."""

    def encode(self, arguments: Mapping[str, Any], avoid: tuple[str, ...] = ()) -> str:
        """See :class:`Codec`."""
        return dumps(dict(arguments), avoid)

    def grammar(self, tool: ToolDefinition, *, lenient: bool = False) -> Spec:
        """See :class:`Codec`."""
        return JsonSchema(tool.schema, whitespace="flexible" if lenient else "canonical", unsupported=tool.unsupported)

    def decode(self, text: str) -> dict[str, Any]:
        """See :class:`Codec`. An empty text and ``null`` mean no arguments; a string is read once more."""
        value = loads(text) if text.strip() else {}
        if isinstance(value, str):
            value = loads(value) if value.strip() else {}
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise ValueError(f"the arguments are not an object but {_kind(value)}")
        return value


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "a boolean"
    return {list: "an array", str: "a string", int: "a number", float: "a number"}.get(type(value), "something else")


_CODECS: dict[str, Codec] = {"json": JsonCodec()}


def register_codec(name: str, codec: Codec) -> None:
    """Makes a codec known under a name, for :class:`agentgram.formats.Args`.

    Raises:
        DefinitionError: The name is taken, or the object lacks one of ``encode``, ``grammar`` and ``decode``.
    """
    if name in _CODECS:
        raise DefinitionError(f"a codec is named {name!r} already: choose another name.")
    if not isinstance(codec, Codec):
        raise DefinitionError(f"the codec {name!r} needs the methods encode, grammar and decode.")
    _CODECS[name] = codec


def get_codec(name: str) -> Codec:
    """The codec of this name.

    Raises:
        DefinitionError: There is none; the nearest name is suggested.
    """
    if name not in _CODECS:
        raise DefinitionError(
            f"there is no argument codec named {name!r}. {nearest(name, _CODECS)} register_codec adds one."
        )
    return _CODECS[name]
