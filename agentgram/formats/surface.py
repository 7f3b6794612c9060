"""The codecs ``py-kwargs`` and ``gemma-dict``: arguments as literals of another language than JSON.

Where a schema says what only JSON text can be held to, the value is JSON text: both languages have it inside them, and
so every schema is enforced.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentgram.engine import spec as e
from agentgram.formats.json_text import dumps
from agentgram.formats.literals import Literals, balanced
from agentgram.formats.scanning import Mismatch, Source, Wait
from agentgram.formats.schemas import Schema, alternatives, as_json, constraints, kinds, kinds_of, members, resolved
from agentgram.formats.sequences import sequence, spelled
from agentgram.formats.slots import Slot
from agentgram.tools.definition import Unsupported

_BARE = re.compile(r"[^\s()\[\]{},:=\"'<>|\\]+\Z")
_ARRAY = {"items", "minItems", "maxItems"}
_OBJECT = {"properties", "required", "additionalProperties"}
_DEEP = 12
_MADE: dict[tuple[object, ...], e.Spec] = {}
_MOST = 4096
"""How many grammars of values are kept."""
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
        unsupported = slot.unsupported
        properties, required, others = members(slot.schema, "?" if slot.tool is None else slot.tool.name, unsupported)
        extra = others if isinstance(others, Mapping) or others is True else None
        pairs = self._pairs(properties, required, slot, unsupported, self.assign, 0, named=True)
        more = None
        if extra is not None:
            value = self._spec(extra, slot, unsupported, 1)
            more = sequence([_other_names(properties), e.Lit(self.assign), value])
        return sequence([e.Lit(self.around[0]), *self._listed(pairs, more), e.Lit(self.around[1])])

    def _pairs(
        self,
        properties: Mapping[str, Any],
        required: set[str],
        slot: Slot,
        unsupported: Unsupported,
        assign: str,
        depth: int,
        *,
        named: bool,
    ) -> list[tuple[bool, e.Spec]]:
        out: list[tuple[bool, e.Spec]] = []
        for key, schema in self._in_order(properties):
            if schema is False:
                continue
            names = [self._key(key, slot) if named or self.bare_keys else dumps(key, slot.avoid)]
            if not named and not self.bare_keys and key.isidentifier():
                names.append(f"'{key}'")
            value = self._spec(schema, slot, unsupported, depth + (not named))
            name = e.Choice([e.Lit(n + assign) for n in names]) if len(names) > 1 else e.Lit(names[0] + assign)
            out.append((key in required, sequence([name, value])))
        return out

    def _listed(self, pairs: Sequence[tuple[bool, e.Spec]], more: e.Spec | None) -> list[e.Spec]:
        """The pairs in their order with separators between, without those that are not required."""
        sep = e.Lit(self.sep)
        tail: list[e.Spec] = [] if more is None else [e.Rep(e.Seq([sep, more]))]
        first = next((i for i, (needed, _) in enumerate(pairs) if needed), None)
        if first is not None:
            before = [e.Opt(sequence([pair, sep])) for _, pair in pairs[:first]]
            after = [self._after(needed, pair) for needed, pair in pairs[first + 1 :]]
            return [*before, pairs[first][1], *after, *tail]
        starts: list[e.Spec] = [
            sequence([pair, *(self._after(False, p) for _, p in pairs[i + 1 :]), *tail])
            for i, (_, pair) in enumerate(pairs)
        ]
        if more is not None:
            starts.append(e.Rep(more, 1, None, sep))
        return [e.Opt(e.Choice(starts))] if starts else []

    def _after(self, needed: bool, pair: e.Spec) -> e.Spec:
        following = sequence([e.Lit(self.sep), pair])
        return following if needed else e.Opt(following)

    def _spec(self, schema: Any, slot: Slot, unsupported: Unsupported, depth: int) -> e.Spec:
        """What a model may write as a value; the same for equal schemas, so that the engine need not look twice."""
        text = json.dumps(schema)
        if '"$ref"' in text:
            return self._spec_anew(schema, slot, unsupported, depth)
        key = (self, text, slot.avoid, slot.tokens, unsupported, depth)
        made = _MADE.get(key)
        if made is None:
            if len(_MADE) >= _MOST:
                _MADE.clear()
            made = _MADE[key] = self._spec_anew(schema, slot, unsupported, depth)
        return made

    def _spec_anew(self, schema: Any, slot: Slot, unsupported: Unsupported, depth: int) -> e.Spec:
        root = slot.schema
        options = []
        for option in alternatives(schema, root):
            here = resolved(option, root)
            how = self._how(here, root, depth)
            whole = as_json(here, root, unsupported)
            if how == "words":
                options.append(self._words(here, root))
            elif how == "text":
                options += [*self._strings(slot), whole]
            elif how == "array":
                items = self._spec(here["items"], slot, unsupported, depth + 1)
                many = e.Rep(items, here.get("minItems", 0), here.get("maxItems"), e.Lit(self.sep))
                options.append(e.Seq([e.Lit("["), many, e.Lit("]")]))
            elif how == "object":
                required = set(here.get("required", ()))
                properties = {**here["properties"], **{k: {} for k in required if k not in here["properties"]}}
                pairs = self._pairs(properties, required, slot, unsupported, self.colon, depth, named=False)
                options.append(e.Seq([e.Lit("{"), *self._listed(pairs, None), e.Lit("}")]))
            else:
                options.append(whole)
        return options[0] if len(options) == 1 else e.Choice(options)

    def _strings(self, slot: Slot) -> list[e.Spec]:
        """Strings in other quotes than JSON's."""
        if not self.quote:
            return [e.Regex(_SINGLE)]
        quote = spelled(self.quote, slot.tokens)
        return [e.Seq([quote, e.Text(self._excludes(slot)), quote])]

    def _words(self, schema: Schema, root: Schema) -> e.Spec:
        listed = [schema["const"]] if "const" in schema else schema.get("enum", [True, False, None])
        types = kinds(schema, root)
        values = [v for v in (True, False, None) if any(v is w for w in listed) and kinds_of(v) & types]
        return e.Choice([e.Lit(self.words[(True, False, None).index(v)]) for v in values])

    # reading

    def decode(self, text: str, slot: Slot) -> dict[str, Any]:  # noqa: ARG002
        """See :class:`agentgram.formats.Codec`."""
        reader = Literals(text, self.quote)
        try:
            if self.around[0] and reader.text.lstrip().startswith(self.around[0]):
                reader.at = reader.text.index(self.around[0]) + len(self.around[0])
            return reader.arguments(self.assign.strip(), self.around[1])
        except Mismatch as problem:
            raise ValueError(str(problem)) from None

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


def _other_names(properties: Mapping[str, Any]) -> e.Spec:
    """Names that no declared argument has: by their beginning, where that is enough to tell."""
    taken = {k[:1] for k in properties}
    return e.Regex("[" + "".join(c for c in string.ascii_letters + "_" if c not in taken) + "][A-Za-z0-9_]{0,63}")
