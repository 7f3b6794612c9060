"""The codec ``xml-params``: each argument between an opener that names it and a closer, strings without quotes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agentgram.engine import spec as e
from agentgram.formats.json_text import loads
from agentgram.formats.loose import Found, Loose
from agentgram.formats.memo import Memo
from agentgram.formats.raw import RawValue
from agentgram.formats.scanning import BLANKS, Holder, Mismatch, Source, Truncated, Wait, holder
from agentgram.formats.schemas import members
from agentgram.formats.sequences import sequence, spelled
from agentgram.formats.slots import Slot

_JSON_STARTS = tuple(b'{["')


@dataclass(frozen=True)
class TaggedCodec:
    """Arguments as ``open value close``, one after another."""

    open: str = "<parameter={key}>\n"
    """Before a value: ``{key}`` is the argument's name, ``{string}`` says ``true`` where a string stands unquoted."""
    close: str = "\n</parameter>\n"
    """After a value. A newline that it begins with, or that ``open`` ends with, is not part of the value."""
    until: tuple[str, ...] = ("</function>", "</tool_call>")
    """What follows the arguments: a value ends there too, if its closer is missing."""
    also: tuple[str, ...] = ()
    """Other spellings of ``open`` that are read."""
    python: bool = False
    """Whether ``True``, ``False`` and ``None`` are written as Python does."""

    # what is known without arguments

    @cached_property
    def _openers(self) -> tuple[Loose, ...]:
        return tuple(map(Loose, (self.open, *self.also)))

    @cached_property
    def _closer(self) -> Loose:
        return Loose(self.close.strip("\n"))

    @cached_property
    def _enders(self) -> tuple[Loose, ...]:
        return tuple(map(Loose, self.until))

    @cached_property
    def _leads(self) -> Holder:
        return holder(tuple({m.lead for m in (*self._openers, self._closer, *self._enders)}))

    @cached_property
    def _own(self) -> tuple[str, ...]:
        return (self.open.partition("{")[0].strip(), self.close.strip(), *self.until)

    def _value(self, key: str, slot: Slot) -> RawValue:
        properties, others = slot.schema.get("properties", {}), slot.schema.get("additionalProperties", True)
        schema = properties.get(key, others if isinstance(others, Mapping) else {})
        return self._of(schema, slot)

    def _of(self, schema: Any, slot: Slot) -> RawValue:
        return RawValue(schema, slot.schema, (*self._own, *slot.avoid), self.python)

    # writing

    def encode(self, arguments: Mapping[str, Any], slot: Slot) -> str:
        """See :class:`agentgram.formats.Codec`."""
        out = []
        for key, value in arguments.items():
            text, is_string = self._value(key, slot).encode(value)
            out += [self._opening(key, is_string), text, self.close]
        return "".join(out)

    def _opening(self, key: str, is_string: bool) -> str:
        return self.open.replace("{key}", key).replace("{string}", "true" if is_string else "false")

    def grammar(self, slot: Slot) -> e.Spec:
        """See :class:`agentgram.formats.Codec`."""
        options = [self._variant(each) for each in slot.variants()]
        return options[0] if len(options) == 1 else e.Choice(options)

    def _variant(self, slot: Slot) -> e.Spec:
        name = "?" if slot.tool is None else slot.tool.name
        properties, required, others = members(slot.schema, name, slot.unsupported)
        items = [self._named(k, s, slot, k in required) for k, s in properties.items() if s is not False]
        if others is not False and others != {"not": {}}:
            before, _, after = self.open.replace("{string}", "true").partition("{key}")
            begin, end = spelled(before, slot.tokens), spelled(after, slot.tokens)
            names = e.Seq([begin, _other_names(properties), end])
            quoted = e.Seq([begin, _other_names(properties), spelled(after.replace('"true"', '"false"'), slot.tokens)])
            items.append(e.Rep(self._argument(names, quoted, others, slot)))
        return sequence(items)

    def _named(self, key: str, schema: Any, slot: Slot, needed: bool) -> e.Spec:
        """One argument of a tool; the same for equal ones, so that neither we nor the engine look twice."""

        def anew() -> e.Spec:
            raw = quoted = spelled(self._opening(key, True), slot.tokens)
            if "{string}" in self.open:
                quoted = spelled(self._opening(key, False), slot.tokens)
            one = self._argument(raw, quoted, schema, slot)
            return one if needed else e.Opt(one)

        return self._memo.once((key, needed), schema, slot, anew)

    @cached_property
    def _memo(self) -> Memo:
        return Memo()

    def _argument(self, as_text: e.Spec, as_json: e.Spec, schema: Any, slot: Slot) -> e.Spec:
        value = self._of(schema, slot)
        if "{string}" not in self.open:
            return sequence([as_text, value.grammar(slot.unsupported), spelled(self.close, slot.tokens)])
        written = value.grammar(slot.unsupported)
        spellings = [e.Seq([as_text if value.style in ("text", "choice", "sized", "mixed") else as_json, written])]
        if value.style == "mixed":
            spellings.append(e.Seq([as_json, written]))
        return e.Seq([e.Choice(spellings), spelled(self.close, slot.tokens)])

    # reading

    def decode(self, text: str, slot: Slot) -> dict[str, Any]:
        """See :class:`agentgram.formats.Codec`. All arguments as one JSON object are understood too."""
        if text.lstrip().startswith("{"):
            value = loads(text)
            if isinstance(value, dict):
                return value
        src = Source(lambda: None)
        src.data += text.encode()
        src.closed = True
        out: dict[str, Any] = {}
        steps = self._arguments(src, slot, whole=True)
        try:
            while True:
                next(steps)
        except StopIteration as done:
            found = done.value
        except Mismatch as problem:
            raise ValueError(str(problem)) from None
        if src.data[src.at :].strip():
            raise ValueError(f"{bytes(src.data[src.at : src.at + 40]).decode('utf-8', 'replace')!r} is no argument")
        for key, raw in found:
            if key in out:
                raise ValueError(f"the key {key!r} occurs twice")
            try:
                out[key] = self._value(key, slot).decode(raw.decode())
            except ValueError as problem:
                raise ValueError(f"argument {key!r}: {problem}") from None
        return out

    def read(self, src: Source, until: tuple[bytes, ...], slot: Slot) -> Wait[bytes]:  # noqa: ARG002
        """See :class:`agentgram.formats.codecs.Reading`."""
        start = src.pos
        yield from src.skip_blanks()
        if (yield from src.peek()) == 0x7B:
            yield from src.json_value()
            yield from src.skip_blanks()
        else:
            yield from self._arguments(src, slot)
        return src.take(start, src.pos)

    def _arguments(self, src: Source, slot: Slot, *, whole: bool = False) -> Wait[list[tuple[str, bytes]]]:
        found: list[tuple[str, bytes]] = []
        careful = True
        while True:
            yield from src.skip_blanks()
            opener = yield from self._opening_here(src)
            if opener is None:
                return found
            src.at = opener.end
            value = None
            if careful and self._value(opener.key, slot).style not in ("text", "sized"):
                value, careful = yield from self._json(src)
            if value is None:
                value = yield from self._text(src, whole=whole)
            found.append((opener.key, value))

    def _opening_here(self, src: Source) -> Wait[Found | None]:
        for opener in self._openers:
            if (found := (yield from opener.here(src))) is not None:
                return found
        return None

    def _json(self, src: Source) -> Wait[tuple[bytes | None, bool]]:
        """A JSON value with its closer behind it: markers inside its strings are none.

        None where it is no such value; and whether it is worth while to look for another one: what has no end is
        looked for once, so that reading takes linear time.
        """
        src.held = start = src.pos
        try:
            yield from src.skip_blanks()
            if (yield from src.peek()) in _JSON_STARTS:
                yield from src.json_value()
                end = src.pos
                yield from src.skip_blanks()
                closer = yield from self._closer.here(src)
                if closer is not None:
                    src.at = closer.end
                    return src.take(start, end), True
        except Truncated:
            src.pos = start
            return None, False
        except Mismatch:
            pass
        finally:
            src.held = None
        src.pos = start
        return None, True

    def _text(self, src: Source, *, whole: bool) -> Wait[bytes]:
        """The text up to the closer, or to what shows that it is missing; where the arguments are whole, to the end."""
        start = src.pos
        while True:
            found = yield from src.until(self._leads.first, self._leads)
            if found is None:
                if not whole:
                    raise Truncated("the output ended inside an argument")
                return self._framed(src.take(start, src.pos), closed=False)
            end = src.pos
            closer = yield from self._closer.here(src)
            if closer is not None:
                src.at = closer.end
                if (yield from self._over(src)):
                    return self._framed(src.take(start, end), closed=True)
                src.pos = end
            elif (yield from self._missing(src, start)):
                return self._framed(src.take(start, end), closed=False)
            src.at += 1

    def _framed(self, value: bytes, *, closed: bool) -> bytes:
        """The value without the newline that belongs to its closer."""
        if not closed:
            return value.rstrip(BLANKS)
        return value.removesuffix(b"\n") if self.close.startswith("\n") else value

    def _over(self, src: Source) -> Wait[bool]:
        """Whether an argument may end here: another follows, or what ends them all, or nothing."""
        while True:
            yield from src.skip_blanks()
            if (yield from src.peek()) < 0 or (yield from self._opening_here(src)) is not None:
                return True
            for ender in self._enders:
                if (yield from ender.here(src)) is not None:
                    return True
            again = yield from self._closer.here(src)
            if again is None:
                return False
            src.at = again.end

    def _missing(self, src: Source, start: int) -> Wait[bool]:
        """Whether what stands here shows that the closer of the value before it is missing."""
        here = src.pos
        if (here == start or src.data[src.at - 1] in BLANKS) and (yield from self._opening_here(src)) is not None:
            return True
        for index, ender in enumerate(self._enders):
            match = yield from ender.here(src)
            if match is None:
                continue
            if index == len(self._enders) - 1:
                return True
            src.held, src.at = here, match.end
            yield from src.skip_blanks()
            over = (yield from src.peek()) < 0
            for later in self._enders[index + 1 :]:
                over = over or (yield from later.here(src)) is not None
            src.held, src.pos = None, here
            return over
        return False


def _other_names(properties: Mapping[str, Any]) -> e.Spec:
    """Names that no declared argument has: by their beginning, where that is enough to tell."""
    firsts = "".join(sorted({re.escape(k[0]) for k in properties if k}))
    return e.Regex(rf"[^\s<>\"'={firsts}][^<>\"'=\s]{{0,63}}")
