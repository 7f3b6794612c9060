"""Codecs: how a call's arguments are written. A format refers to a codec by its name, with options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from agentgram.engine.spec import Choice, JsonSchema, Lit, Spec, Text, Whitespace
from agentgram.errors import DefinitionError, GrammarError, nearest
from agentgram.formats.json_text import dumps, loads
from agentgram.formats.scanning import Source, Wait
from agentgram.formats.schemas import constraints, kinds, resolved
from agentgram.formats.slots import Slot
from agentgram.formats.surface import SurfaceCodec
from agentgram.formats.tagged import TaggedCodec

__all__ = ["Codec", "JsonCodec", "RawCodec", "Slot", "dumps", "get_codec", "loads", "register_codec"]


@runtime_checkable
class Codec(Protocol):
    """Writes arguments, describes what a model may write, and reads it back."""

    def encode(self, arguments: Mapping[str, Any], slot: Slot) -> str:
        """The canonical text of the arguments, with none of ``slot.avoid`` in it where the codec can escape."""
        ...

    def grammar(self, slot: Slot) -> Spec:
        """What a model may write as arguments of this tool."""
        ...

    def decode(self, text: str, slot: Slot) -> dict[str, Any]:
        """The arguments that the text spells.

        Raises:
            ValueError: The text spells no arguments; the message says why.
        """
        ...


@runtime_checkable
class Reading(Protocol):
    """What a codec has besides, if its arguments do not end at the first text that may follow them."""

    def read(self, src: Source, until: tuple[bytes, ...], slot: Slot) -> Wait[bytes]:
        """Moves past the arguments and returns them. ``until`` are the texts that may follow."""
        ...


class JsonCodec:
    """The arguments as one JSON object."""

    def encode(self, arguments: Mapping[str, Any], slot: Slot) -> str:
        """See :class:`Codec`."""
        return dumps(dict(arguments), slot.avoid)

    def grammar(self, slot: Slot) -> Spec:
        """See :class:`Codec`."""
        whitespace: Whitespace = "flexible" if slot.lenient else "canonical"
        return JsonSchema(slot.schema, whitespace=whitespace, unsupported=slot.unsupported)

    def decode(self, text: str, slot: Slot) -> dict[str, Any]:  # noqa: ARG002
        """See :class:`Codec`. An empty text and ``null`` mean no arguments; a string is read once more."""
        value = loads(text) if text.strip() else {}
        if isinstance(value, str):
            value = loads(value) if value.strip() else {}
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise ValueError(f"the arguments are not an object but {_kind(value)}")
        return value

    def read(self, src: Source, until: tuple[bytes, ...], slot: Slot) -> Wait[bytes]:  # noqa: ARG002
        """See :class:`Reading`. Where something follows at once, there are no arguments."""
        start = src.pos
        yield from src.skip_blanks()
        if until and (yield from src.literal(until, move=False)):
            return src.take(start, src.pos)
        return (yield from src.json_value())


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "a boolean"
    return {list: "an array", str: "a string", int: "a number", float: "a number"}.get(type(value), "something else")


@dataclass(frozen=True)
class RawCodec:
    """One argument as the text that it is, without any quoting: source code, say."""

    key: str = "code"
    """The argument's name."""

    def encode(self, arguments: Mapping[str, Any], slot: Slot) -> str:
        """See :class:`Codec`. Markers cannot be escaped here, so they are broken up by a space."""
        text = str(arguments.get(self.key, ""))
        for marker in slot.avoid:
            while marker in text:
                text = text.replace(marker, f"{marker[0]} {marker[1:]}")
        return text

    def grammar(self, slot: Slot) -> Spec:
        """See :class:`Codec`. Of what a schema says of the text, a list of texts can be held to, and nothing else.

        Raises:
            DefinitionError: The tool takes other arguments than one string of this name.
            GrammarError: The schema says more of the text than which it may be.
        """
        options = [self._text(each) for each in slot.variants()]
        return options[0] if len(options) == 1 else Choice(options)

    def _text(self, slot: Slot) -> Spec:
        properties = dict(slot.schema.get("properties", {}))
        required = set(slot.schema.get("required", ()))
        name = "?" if slot.tool is None else slot.tool.name
        if (
            set(properties) != {self.key}
            or required - {self.key}
            or kinds(properties[self.key], slot.schema) != {"string"}
        ):
            raise DefinitionError(
                f"tool {name!r} is called with raw text here, so it takes one string named {self.key!r} and nothing "
                "else. Give it another name, or that argument."
            )
        here = resolved(properties[self.key], slot.schema)
        texts = _listed(here)
        says = constraints(here) - ({"pattern"} if here.get("pattern") == "^" else set())  # which says nothing
        if texts is not None:
            plain = [text for text in texts if not any(marker in text for marker in slot.avoid)]
            return Choice([Lit(text) for text in plain]) if plain else JsonSchema(False)
        if says and slot.unsupported == "error":
            keyword = min(says)
            raise GrammarError(
                f"argument {self.key!r} of tool {name!r} is written as plain text here, which no grammar holds to "
                f"{keyword!r}",
                pointer=f"/properties/{self.key}",
                keyword=keyword,
                hint="List the texts that it may be (one_of, enum), give the tool another name, with which its "
                "arguments are JSON, or declare it with unsupported='relax': then it is asked before the call only.",
            )
        return Text(slot.avoid)

    def decode(self, text: str, slot: Slot) -> dict[str, Any]:  # noqa: ARG002
        """See :class:`Codec`."""
        return {self.key: text}


def _listed(schema: Mapping[str, Any]) -> list[str] | None:
    """The texts that a schema lists and admits; None where it lists none."""
    parts = [schema, *(part for part in schema.get("allOf", ()) if isinstance(part, Mapping))]
    lists = [[part["const"]] if "const" in part else part["enum"] for part in parts if part.keys() & {"const", "enum"}]
    if not lists:
        return None
    import jsonschema

    fits = jsonschema.Draft202012Validator(schema).is_valid
    return [text for text in dict.fromkeys(t for t in lists[0] if isinstance(t, str)) if fits(text)]


_GEMMA = SurfaceCodec(
    around=("{", "}"),
    assign=":",
    sep=",",
    colon=":",
    bare_keys=True,
    words=("true", "false", "null"),
    quote="<escape>",
    ordered=True,
)
_CODECS: dict[str, Codec] = {
    "json": JsonCodec(),
    "xml-params": TaggedCodec(),
    "py-kwargs": SurfaceCodec(),
    "gemma-dict": _GEMMA,
    "raw": RawCodec(),
}


def register_codec(name: str, codec: Codec) -> None:
    """Makes a codec known under a name, for :class:`agentgram.formats.Args`.

    A codec that is a dataclass is given the options of ``Args`` as fields.

    Raises:
        DefinitionError: The name is taken, or the object lacks one of ``encode``, ``grammar`` and ``decode``.
    """
    if name in _CODECS:
        raise DefinitionError(f"a codec is named {name!r} already: choose another name.")
    if not isinstance(codec, Codec):
        raise DefinitionError(f"the codec {name!r} needs the methods encode, grammar and decode.")
    _CODECS[name] = codec


_CONFIGURED: dict[tuple[str, tuple[tuple[str, Any], ...]], tuple[Codec, Codec]] = {}


def get_codec(name: str, options: Sequence[tuple[str, Any]] = ()) -> Codec:
    """The codec of this name, with these options.

    Raises:
        DefinitionError: There is none, or it has no such option; the nearest name is suggested.
    """
    if name not in _CODECS:
        raise DefinitionError(
            f"there is no argument codec named {name!r}. {nearest(name, _CODECS)} register_codec adds one."
        )
    codec = _CODECS[name]
    if not options:
        return codec
    key = (name, tuple(options))
    made = _CONFIGURED.get(key)
    if made is None or made[0] is not codec:
        known = getattr(codec, "__dataclass_fields__", {})
        for option, _ in options:
            if option not in known:
                raise DefinitionError(f"codec {name!r} has no option {option!r}. {nearest(option, known)}")
        made = _CONFIGURED[key] = (codec, replace(codec, **dict(options)))  # type: ignore[type-var]
    return made[1]
