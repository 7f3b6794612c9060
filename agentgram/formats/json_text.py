"""JSON as formats write it, and as models do."""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any

_MAX_EXPONENT = 4000


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
