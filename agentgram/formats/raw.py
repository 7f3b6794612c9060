"""Values without quotes, between two markers: what a string may be there, and how other values are told from it.

Most strings stand there as they are. One that holds a marker, or that would be read as something else, is written as
a JSON string instead, and only a JSON string that had to be one is read as one. So every value has a spelling, and a
spelling one value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, TypeAlias

from agentgram.engine import spec as e
from agentgram.formats.json_text import dumps, loads
from agentgram.formats.schemas import (
    ALL,
    Schema,
    alternatives,
    as_json,
    constraints,
    kinds,
    kinds_of,
    resolved,
)
from agentgram.tools.definition import Unsupported

Style: TypeAlias = Literal["text", "choice", "sized", "quoted", "mixed", "json"]
"""How the values of a schema are spelled: any text; one of a few; text of a bounded length; a string that only JSON's
quotes let the grammar hold to its constraints; text beside other types; no text at all."""

_WORDS = {"True": True, "False": False, "None": None}
_MADE: dict[tuple[object, ...], e.Spec] = {}
_MOST = 4096
"""How many grammars of values are kept."""
_JSON_WORDS = ("null", "true", "false", *_WORDS)


@dataclass(frozen=True)
class RawValue:
    """The spelling of one value."""

    schema: Schema
    root: Schema
    closers: tuple[str, ...]
    """What may not occur in a value as it stands."""
    python: bool = False
    """Whether ``True``, ``False`` and ``None`` are written as Python does."""

    @cached_property
    def style(self) -> Style:
        """See :data:`Style`."""
        here = resolved(self.schema, self.root)
        types = kinds(here, self.root)
        if "string" not in types:
            return "json"
        if types == {"string"}:
            says = constraints(here)
            if not says:
                return "text"
            if says <= {"enum", "const"} and "enum" in says:
                return "choice"
            if says == {"const"}:
                return "choice"
            return "sized" if says <= {"minLength", "maxLength"} else "quoted"
        options = alternatives(here, self.root)
        text = [o for o in options if "string" in kinds(o, self.root)]
        free = all(
            not constraints(o) and (kinds(o, self.root) == {"string"} or kinds(o, self.root) == ALL) for o in text
        )
        return "mixed" if free else "quoted"

    # text to value and back

    def encode(self, value: Any) -> tuple[str, bool]:
        """The canonical spelling, and whether it is the string itself."""
        if isinstance(value, str) and self._may_stand(value) and self._same(self.decode(value), value):
            return value, True
        for word, meant in _WORDS.items():
            if self.python and value is meant:
                return word, False
        return dumps(value, self.closers), False

    def _may_stand(self, text: str) -> bool:
        if self.style == "quoted" or any(c in text for c in self.closers):
            return False
        if self.style == "mixed":
            short, begun = _unlike_json("".join(sorted({c[0] for c in self._excludes()})))
            return text in short or re.match(begun, text) is not None
        return self.style != "sized" or not (text.startswith('"') or "<" in text)

    @staticmethod
    def _same(a: Any, b: Any) -> bool:
        return type(a) is type(b) and bool(a == b)

    def decode(self, text: str) -> Any:
        """The value that a text spells.

        Raises:
            ValueError: A value that is no string is spelled wrongly.
        """
        style = self.style
        if style == "text":
            return _unescaped(text, self.closers)
        if style == "quoted" and kinds(self.schema, self.root) != {"string"}:
            return self._mixed(text)
        if style in ("choice", "sized", "quoted"):
            if style == "choice" and text in self._choices():
                return text
            literal = _literal(text)
            return text if literal is None else literal
        if style == "mixed":
            return self._mixed(text)
        stripped = text.strip()
        return _WORDS[stripped] if stripped in _WORDS else loads(stripped)

    def _mixed(self, text: str) -> Any:
        try:
            value = _WORDS[text.strip()] if text.strip() in _WORDS else loads(text)
        except ValueError:
            return text
        return value if kinds_of(value) & kinds(self.schema, self.root) else text

    def _choices(self) -> list[Any]:
        here = resolved(self.schema, self.root)
        return [here["const"]] if "const" in here else list(here["enum"])

    # what a model may write

    def grammar(self, unsupported: Unsupported) -> e.Spec:
        """What a model may write here; the same for equal schemas, so that the engine need not look at it twice."""
        text = repr(self.schema)
        if "$" in text:  # what a reference stands for is said elsewhere
            return self._grammar(unsupported)
        key = (text, self.closers, self.python, unsupported, self.root.get("$schema"))
        made = _MADE.get(key)
        if made is None:
            if len(_MADE) >= _MOST:
                _MADE.clear()
            made = _MADE[key] = self._grammar(unsupported)
        return made

    def _grammar(self, unsupported: Unsupported) -> e.Spec:
        style = self.style
        if style == "text":
            return e.Text(self._excludes())
        if style == "choice":
            values = [v for v in self._choices() if isinstance(v, str)]
            return e.Choice([e.Lit(self.encode(v)[0]) for v in dict.fromkeys(values)])
        whole = as_json(self.schema, self.root, unsupported)
        if style == "sized":
            return e.Choice([whole, e.Regex(_sized(resolved(self.schema, self.root)))])
        if style == "mixed":
            return e.Choice([whole, *self._words(), *_no_json(self._excludes())])
        words = self._words() if style == "json" else []
        return e.Choice([whole, *words]) if words else whole

    def _excludes(self) -> tuple[str, ...]:
        return tuple(c for c in self.closers if not any(o != c and o in c for o in self.closers))

    def _words(self) -> list[e.Spec]:
        """Python's words, where the schema lets through what they mean."""
        words: list[e.Spec] = []
        if not self.python:
            return words
        for option in alternatives(self.schema, self.root):
            here = resolved(option, self.root)
            says = constraints(here)
            if says - {"enum", "const"} or not kinds(here, self.root) & {"boolean", "null"}:
                continue
            for word, meant in _WORDS.items():
                listed = [here["const"]] if "const" in here else here.get("enum", [meant])
                if kinds_of(meant) & kinds(here, self.root) and any(v is meant for v in listed):
                    words.append(e.Lit(word))
        return words


def _literal(text: str) -> str | None:
    """The string that a JSON string spells; None where the text is none."""
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return None
    try:
        value = loads(text)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _unescaped(text: str, closers: Sequence[str]) -> str:
    literal = _literal(text)
    return literal if literal is not None and _needs_quotes(literal, closers) else text


def _needs_quotes(text: str, closers: Sequence[str]) -> bool:
    if any(c in text for c in closers):
        return True
    literal = _literal(text)
    return literal is not None and _needs_quotes(literal, closers)


def _sized(schema: Schema) -> str:
    """Text of a length between bounds that begins like no JSON string and holds no marker."""
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if most == 0:
        return ""
    rest = f"[^<]{{{max(least - 1, 0)},{'' if most is None else most - 1}}}"
    return f'[^"<]{rest}' if least else f'(?:[^"<]{rest})?'


def _no_json(excludes: tuple[str, ...]) -> list[e.Spec]:
    """Texts that are no JSON value and none of the words, whatever blanks are around them."""
    short, begun = _unlike_json("".join(sorted({c[0] for c in excludes})))
    return [e.Choice([e.Lit(s) for s in short]), e.Seq([e.Regex(begun), e.Text(excludes)])]


def bare_strings(ends: str, avoid: tuple[str, ...]) -> list[e.Spec]:
    """Strings without quotes: texts that are no number, no JSON and no word, without markers and what ends them.

    Args:
        ends: Characters that they cannot hold.
        avoid: The markers.
    """
    firsts = "".join(sorted({m[0] for m in avoid}))
    short, begun = _unlike_json("".join(dict.fromkeys(firsts + ends)))
    for first in firsts:
        following = re.escape("".join({m[1:2] for m in avoid if m[0] == first}) + firsts + ends)
        begun += f"|{re.escape(first)}[^\\s{following}]"
    excludes = (*ends, *(m for m in avoid if not any(c in m for c in ends)))
    return [e.Choice([e.Lit(s) for s in short if s]), e.Seq([e.Regex(begun), e.Text(excludes)])]


@lru_cache(maxsize=64)
def _unlike_json(markers: str) -> tuple[tuple[str, ...], str]:
    """What is no JSON value and none of the words: some short texts, and the beginnings of all others, as a pattern.

    Args:
        markers: Characters that markers begin with: what is made of these is not among the beginnings.
    """
    first = "".join(map(re.escape, markers))
    short: set[str] = {""}
    leaving = [rf'[^\s{{\["\-0-9{first}{"".join(sorted({w[0] for w in _JSON_WORDS}))}]']
    for word in _JSON_WORDS:
        for length in range(1, len(word) + 1):
            head = word[:length]
            following = sorted({w[length] for w in _JSON_WORDS if w.startswith(head) and len(w) > length})
            blank = r"\s" if head in _JSON_WORDS else ""
            leaving.append(f"{head}[^{first}{blank}{''.join(following)}]")
            if head not in _JSON_WORDS:
                short.add(head)
    return tuple(sorted(short)), "|".join(dict.fromkeys(leaving))
