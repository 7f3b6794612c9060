"""The codecs ``py-kwargs`` and ``gemma-dict``: arguments as literals of another language than JSON.

Where a schema says what only JSON text can be held to, the value is JSON text: both languages have it inside them, and
so every schema is enforced.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

from agentgram.engine import spec as e
from agentgram.formats.json_text import dumps
from agentgram.formats.literals import Literals, balanced
from agentgram.formats.memo import Memo
from agentgram.formats.raw import bare_strings
from agentgram.formats.scanning import Mismatch, Source, Wait
from agentgram.formats.schemas import (
    ALL,
    Schema,
    alternatives,
    as_json,
    constraints,
    kinds,
    kinds_of,
    members,
    resolved,
)
from agentgram.formats.sequences import sequence, spelled
from agentgram.formats.slots import Slot

_BARE = re.compile(r"[^\s()\[\]{},:=\"'<>|\\]+\Z")
_ARRAY = {"items", "minItems", "maxItems"}
_OBJECT = {"properties", "required", "additionalProperties"}
_DEEP = 12
_Pair: TypeAlias = tuple[bool, str, Any, int]
"""A named value: whether it is required, its name, its schema, and how deep it stands."""
_Place: TypeAlias = Literal["first", "before", "after"]
"""Where a pair stands, beside the first that is required: that decides on which side its separator is."""
_BARE_ENDS = "\"'()[]{},="
"""What no string without quotes has inside."""
_SINGLE = r"'(?:[^'\\\x00-\x1f]|\\['\"\\nrtbf]|\\u(?:[0-9a-cefA-CEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}))*'"
"""A string in single quotes, with the escapes that Python and JSON share, and no half of a surrogate pair."""


@dataclass(frozen=True)
class SurfaceCodec:
    """Arguments as named literals; the defaults are Python's keyword arguments."""

    around: tuple[str, str] = ("", "")
    """What stands around all arguments."""
    assign: str = "="
    """Between an argument's name and its value."""
    sep: str = ", "
    colon: str = ": "
    """Between key and value of a nested object."""
    bare_keys: bool = False
    """Whether keys of nested objects stand without quotes."""
    words: tuple[str, str, str] = ("True", "False", "None")
    quote: str = ""
    """A marker around strings, inside of which nothing is escaped; empty for JSON's quotes."""
    ordered: bool = False
    """Whether keys are written in alphabetical order, rather than in that of the schema."""

    # writing

    def encode(self, arguments: Mapping[str, Any], slot: Slot) -> str:
        """See :class:`agentgram.formats.Codec`."""
        properties = slot.schema.get("properties", {})
        pairs = [
            self._key(key, slot) + self.assign + self._encode(value, properties.get(key, {}), slot, 0)
            for key, value in self._in_order(arguments)
        ]
        return self.around[0] + self.sep.join(pairs) + self.around[1]

    def _in_order(self, members: Mapping[str, Any]) -> Sequence[tuple[str, Any]]:
        return sorted(members.items()) if self.ordered else list(members.items())

    def _key(self, key: str, slot: Slot) -> str:
        return key if _BARE.match(key) else dumps(key, slot.avoid)

    def _encode(self, value: Any, schema: Any, slot: Slot, depth: int) -> str:
        option = self._option(value, schema, slot)
        how = self._how(option, slot.schema, depth)
        if how == "words":
            return self.words[(True, False, None).index(value)]
        if how == "text" and self.quote and isinstance(value, str) and self._may_stand(value, slot):
            return self.quote + value + self.quote
        if how == "array" and isinstance(value, list | tuple):
            items = option.get("items", {})
            return "[" + self.sep.join(self._encode(v, items, slot, depth + 1) for v in value) + "]"
        if how == "object" and isinstance(value, Mapping):
            properties = option.get("properties", {})
            pairs = (
                (self._key(k, slot) if self.bare_keys else dumps(k, slot.avoid))
                + self.colon
                + self._encode(v, properties.get(k, {}), slot, depth + 1)
                for k, v in self._in_order(value)
            )
            return "{" + self.sep.join(pairs) + "}"
        return dumps(value, slot.avoid)

    def _option(self, value: Any, schema: Any, slot: Slot) -> Schema:
        """The alternative of a schema that a value belongs to, by its type."""
        options = alternatives(schema, slot.schema)
        return next((o for o in options if kinds_of(value) & kinds(o, slot.schema)), options[0])

    def _may_stand(self, text: str, slot: Slot) -> bool:
        return not any(m in text for m in self._excludes(slot))

    def _excludes(self, slot: Slot) -> tuple[str, ...]:
        wanted = (self.quote, *slot.avoid)
        return tuple(m for m in wanted if not any(o != m and o in m for o in wanted))

    def _how(self, schema: Schema, root: Schema, depth: int) -> str:
        """How a value is written: ``words``, ``text``, ``array``, ``object``, or ``json``."""
        here = resolved(schema, root)
        says, types = constraints(here), kinds(here, root)
        if types and types <= {"boolean", "null"} and says <= {"enum", "const"}:
            return "words"
        if types == {"string"} and not says:
            return "text"
        if depth < _DEEP and types == {"array"} and says <= _ARRAY and isinstance(here.get("items"), Mapping):
            return "array"
        closed = here.get("additionalProperties", False) is False and here.get("properties")
        if depth < _DEEP and types == {"object"} and says <= _OBJECT and closed:
            return "object"
        return "json"

    # what a model may write

    def grammar(self, slot: Slot) -> e.Spec:
        """See :class:`agentgram.formats.Codec`."""
        options = [self._variant(each) for each in slot.variants()]
        return options[0] if len(options) == 1 else e.Choice(options)

    def _variant(self, slot: Slot) -> e.Spec:
        name = "?" if slot.tool is None else slot.tool.name
        properties, required, others = members(slot.schema, name, slot.unsupported)
        pairs = self._pairs(properties, required, 0)
        more = None
        if isinstance(others, Mapping) or others is True:
            value = self._spec(others, slot, 1)
            more = sequence([_other_names(properties), e.Lit(self.assign), value])
        return sequence([e.Lit(self.around[0]), *self._listed(pairs, more, slot), e.Lit(self.around[1])])

    def _pairs(self, properties: Mapping[str, Any], required: set[str], depth: int) -> list[_Pair]:
        every = self._in_order(properties)
        return [(key in required, key, schema, depth) for key, schema in every if schema is not False]

    def _pair(self, pair: _Pair, place: _Place, slot: Slot) -> e.Spec:
        """A named value where it stands; the same for equal ones, so that neither we nor the engine look twice."""
        needed, key, schema, depth = pair
        return self._memo.once((place, needed, key, depth), schema, slot, lambda: self._pair_anew(pair, place, slot))

    def _pair_anew(self, pair: _Pair, place: _Place, slot: Slot) -> e.Spec:
        needed, key, schema, depth = pair
        assign = self.colon if depth else self.assign
        names = self._quoted_keys(key, slot) if depth > 0 and not self.bare_keys else [self._key(key, slot)]
        name = e.Choice([e.Lit(n + assign) for n in names]) if len(names) > 1 else e.Lit(names[0] + assign)
        pieces = [name, self._spec(schema, slot, depth)]
        if place != "first":
            pieces.insert(0 if place == "after" else 2, self._sep(slot))
        out = sequence(pieces)
        return out if needed or place == "first" else e.Opt(out)

    def _quoted_keys(self, key: str, slot: Slot) -> list[str]:
        return [dumps(key, slot.avoid), *([f"'{key}'"] if key.isidentifier() else [])]

    def _sep(self, slot: Slot) -> e.Spec:
        return e.Seq([e.Lit(self.sep.strip()), e.Regex("[ \\t\\r\\n]{0,64}")]) if slot.lenient else e.Lit(self.sep)

    def _listed(self, pairs: Sequence[_Pair], more: e.Spec | None, slot: Slot) -> list[e.Spec]:
        """The pairs in their order with separators between, without those that are not required."""
        sep = self._sep(slot)
        tail: list[e.Spec] = [] if more is None else [e.Rep(e.Seq([sep, more]))]
        first = next((i for i, pair in enumerate(pairs) if pair[0]), None)
        if first is not None:
            before = [self._pair(pair, "before", slot) for pair in pairs[:first]]
            after = [self._pair(pair, "after", slot) for pair in pairs[first + 1 :]]
            return [*before, self._pair(pairs[first], "first", slot), *after, *tail]
        after = [self._pair(pair, "after", slot) for pair in pairs[1:]]
        starts: list[e.Spec] = [
            sequence([self._pair(pair, "first", slot), *after[i:], *tail]) for i, pair in enumerate(pairs)
        ]
        if more is not None:
            starts.append(e.Rep(more, 1, None, sep))
        return [e.Opt(e.Choice(starts))] if starts else []

    @cached_property
    def _memo(self) -> Memo:
        return Memo()

    def _spec(self, schema: Any, slot: Slot, depth: int) -> e.Spec:
        """What a model may write as a value."""
        return self._memo.once((depth,), schema, slot, lambda: self._spec_anew(schema, slot, depth))

    def _spec_anew(self, schema: Any, slot: Slot, depth: int) -> e.Spec:
        root = slot.schema
        options = []
        for option in alternatives(schema, root):
            here = resolved(option, root)
            how = self._how(here, root, depth)
            if how == "words":
                options.append(self._words(here, root))
            elif how == "text":
                options += self._strings(here, slot)
            elif how == "array":
                items = self._spec(here["items"], slot, depth + 1)
                many = e.Rep(items, here.get("minItems", 0), here.get("maxItems"), self._sep(slot))
                options.append(e.Seq([e.Lit("["), many, e.Lit("]")]))
            elif how == "object":
                required = set(here.get("required", ()))
                properties = {**here["properties"], **{k: {} for k in required if k not in here["properties"]}}
                pairs = self._pairs(properties, required, depth + 1)
                options.append(e.Seq([e.Lit("{"), *self._listed(pairs, None, slot), e.Lit("}")]))
            else:
                options += [*self._listed_strings(here, root, slot), self._json(here, slot)]
        if slot.lenient and not self.quote and depth == 0:
            options += self._tolerated(schema, slot)
        return options[0] if len(options) == 1 else e.Choice(options)

    def _tolerated(self, schema: Any, slot: Slot) -> list[e.Spec]:
        """What is read beside Python: strings without quotes, and other values with quotes around them."""
        types = kinds(schema, slot.schema)
        if types == {"string"}:
            return bare_strings(_BARE_ENDS, slot.avoid) if self._how(schema, slot.schema, 0) == "text" else []
        if "string" in types:
            return []
        try:
            return [e.Seq([e.Lit('"'), _InQuotes()._spec(schema, replace(slot, lenient=False), 0), e.Lit('"')])]
        except _Unsaid:
            return []

    def _strings(self, schema: Schema, slot: Slot) -> list[e.Spec]:
        """Strings in other quotes than JSON's, and in these."""
        whole = self._json(schema, slot)
        if not self.quote:
            return [e.Regex(_SINGLE), whole]
        quote = spelled(self.quote, slot.tokens)
        return [e.Seq([quote, e.Text(self._excludes(slot)), quote]), whole]

    def _json(self, schema: Schema, slot: Slot) -> e.Spec:
        return as_json(schema, slot.schema, slot.unsupported)

    def _listed_strings(self, schema: Schema, root: Schema, slot: Slot) -> list[e.Spec]:
        """Strings of a list in the quotes that any other string may have."""
        if kinds(schema, root) != {"string"} or constraints(schema) not in ({"const"}, {"enum"}):
            return []
        listed = [schema["const"]] if "const" in schema else schema["enum"]
        strings = list(dict.fromkeys(v for v in listed if isinstance(v, str)))
        if not self.quote:
            return [e.Lit(f"'{v}'") for v in strings if re.fullmatch(_SINGLE, f"'{v}'") and "\\" not in v]
        quote = spelled(self.quote, slot.tokens)
        return [e.Seq([quote, e.Lit(v), quote]) for v in strings if v and self._may_stand(v, slot)]

    def _words(self, schema: Schema, root: Schema) -> e.Spec:
        listed = [schema["const"]] if "const" in schema else schema.get("enum", [True, False, None])
        types = kinds(schema, root)
        values = [v for v in (True, False, None) if any(v is w for w in listed) and kinds_of(v) & types]
        return e.Choice([e.Lit(self.words[(True, False, None).index(v)]) for v in values])

    # reading

    def decode(self, text: str, slot: Slot) -> dict[str, Any]:
        """See :class:`agentgram.formats.Codec`.

        Where a schema tells them apart, Python's values are read in two spellings that are none of its own: a string
        without quotes, and another value with quotes around it.
        """
        types = {} if self.quote else {k: kinds(s, slot.schema) for k, s in slot.schema.get("properties", {}).items()}
        reader = Literals(text, self.quote, types)
        try:
            if self.around[0] and reader.text.lstrip().startswith(self.around[0]):
                reader.at = reader.text.index(self.around[0]) + len(self.around[0])
            out = reader.arguments(self.assign.strip(), self.around[1])
        except Mismatch as problem:
            raise ValueError(str(problem)) from None
        return {key: _without_quotes(value, types.get(key, ALL)) for key, value in out.items()}

    def read(self, src: Source, until: tuple[bytes, ...], slot: Slot) -> Wait[bytes]:  # noqa: ARG002
        """See :class:`agentgram.formats.codecs.Reading`."""
        start = src.pos
        opener, closer = self.around
        if opener:
            yield from src.skip_blanks()
            if not (yield from src.literal((opener.encode(),))):
                raise Mismatch(f"{opener!r} is missing")
            yield from balanced(src, self.quote.encode(), ord(closer))
            src.at += 1
        else:
            yield from balanced(src, self.quote.encode(), 0x29)
        return src.take(start, src.pos)


class _Unsaid(Exception):
    """What a schema lets through cannot be written here."""


class _InQuotes(SurfaceCodec):
    """A value inside of double quotes, as Python's ``str`` shows it: all its strings are in single ones."""

    def _strings(self, schema: Schema, slot: Slot) -> list[e.Spec]:  # noqa: ARG002
        return [e.Regex(r"'[^'\"\\\x00-\x1f]*'")]

    def _quoted_keys(self, key: str, slot: Slot) -> list[str]:  # noqa: ARG002
        if not key.isidentifier():
            raise _Unsaid
        return [f"'{key}'"]

    def _json(self, schema: Schema, slot: Slot) -> e.Spec:
        if kinds(schema, slot.schema) & {"string", "array", "object"}:
            raise _Unsaid
        return super()._json(schema, slot)


def _without_quotes(value: Any, types: frozenset[str]) -> Any:
    """The value that a string spells where its schema lets no string through; else what is there."""
    if not isinstance(value, str) or "string" in types:
        return value
    reader = Literals(value)
    try:
        spelled_there = reader.value()
    except (ValueError, Mismatch):
        return value
    whole = not value[reader.at :].strip()
    return spelled_there if whole and kinds_of(spelled_there) & types else value


def _other_names(properties: Mapping[str, Any]) -> e.Spec:
    """Names that no declared argument has: by their beginning, where that is enough to tell."""
    taken = {k[:1] for k in properties}
    return e.Regex("[" + "".join(c for c in string.ascii_letters + "_" if c not in taken) + "][A-Za-z0-9_]{0,63}")
