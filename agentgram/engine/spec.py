"""Grammar specifications: frozen data that an :class:`agentgram.engine.Engine` compiles.

A specification describes a language of token sequences. ``Lit``, ``Text``, ``Regex``, ``Ebnf`` and ``JsonSchema``
match bytes (UTF-8); ``Tok`` matches token ids. ``Dispatch`` is the TagDispatch of the XGrammar-2 paper: free text in
which a trigger hands over to a tag's grammar, and back when the tag ends.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

from agentgram.engine import _core
from agentgram.errors import DefinitionError

Whitespace: TypeAlias = Literal["flexible", "compact", "canonical"]
PropertyOrder: TypeAlias = Literal["declared", "any"]
Unsupported: TypeAlias = Literal["error", "relax"]


class _Node:
    """What all specifications can do."""

    def to_dict(self) -> dict[str, Any]:
        """A JSON value that :func:`spec_from_dict` reads back to an equal specification."""
        names = (f.name for f in fields(self) if not f.name.startswith("_"))  # type: ignore[arg-type]  # all are dataclasses
        return {"type": type(self).__name__, **{name: _value(getattr(self, name)) for name in names}}


@dataclass(frozen=True)
class Lit(_Node):
    """Exactly this text."""

    text: str


@dataclass(frozen=True)
class Tok(_Node):
    """One token, by its special name (as in ``Vocabulary(special=...)``) or its id; never matched by bytes."""

    token: str | int


@dataclass(frozen=True)
class Text(_Node):
    """Any text (valid UTF-8), possibly empty, that contains none of ``excludes``."""

    excludes: tuple[str, ...] = ()

    def __init__(self, excludes: Sequence[str] = ()) -> None:
        object.__setattr__(self, "excludes", tuple(excludes))


@dataclass(frozen=True)
class Seq(_Node):
    """The items one after another."""

    items: tuple[Spec, ...]

    def __init__(self, items: Sequence[Spec]) -> None:
        object.__setattr__(self, "items", tuple(items))


@dataclass(frozen=True)
class Choice(_Node):
    """One of the options; of none there is no way out, so at least one is needed."""

    options: tuple[Spec, ...]

    def __init__(self, options: Sequence[Spec]) -> None:
        if not options:
            raise DefinitionError("a Choice of no options matches nothing: give it at least one.")
        object.__setattr__(self, "options", tuple(options))


@dataclass(frozen=True)
class Opt(_Node):
    """The item, or nothing."""

    item: Spec


@dataclass(frozen=True)
class Rep(_Node):
    """The item ``min`` to ``max`` times (None: without end), with ``sep`` between."""

    item: Spec
    min: int = 0
    max: int | None = None
    sep: Spec | None = None

    def __post_init__(self) -> None:
        if self.min < 0 or (self.max is not None and self.max < self.min):
            raise DefinitionError(f"Rep from {self.min} to {self.max}: use 0 <= min <= max.")


@dataclass(frozen=True)
class Tag(_Node):
    """``begin``, then ``content``, then ``end``; the branch of a :class:`Dispatch`."""

    begin: str | Tok
    content: Spec
    end: str | Tok = ""


@dataclass(frozen=True)
class Dispatch(_Node):
    """Free text with tags in it (TagDispatch).

    Text runs until one of ``triggers`` is complete; then one of the tags whose ``begin`` starts with that trigger
    follows, and after it text again. The text holds none of ``excludes``. A stop ends the dispatch and is part of it.
    """

    tags: tuple[Tag, ...]
    triggers: tuple[str | Tok, ...] = ()
    stops: tuple[str | Tok, ...] = ()
    excludes: tuple[str, ...] = ()
    at_least: int = 0
    at_most: int | None = None
    stop_after_first: bool = False

    def __init__(
        self,
        tags: Sequence[Tag],
        triggers: Sequence[str | Tok],
        stops: Sequence[str | Tok] = (),
        excludes: Sequence[str] = (),
        at_least: int = 0,
        at_most: int | None = None,
        stop_after_first: bool = False,
    ) -> None:
        if at_least < 0 or (at_most is not None and at_most < at_least):
            raise DefinitionError(
                f"Dispatch with at_least={at_least}, at_most={at_most}: use 0 <= at_least <= at_most."
            )
        # Into the dictionary at once: a request makes one of these, and __setattr__ is closed.
        self.__dict__.update(
            tags=tuple(tags),
            triggers=tuple(triggers),
            stops=tuple(stops),
            excludes=tuple(excludes),
            at_least=at_least,
            at_most=at_most,
            stop_after_first=stop_after_first,
        )


@dataclass(frozen=True)
class Regex(_Node):
    """A regular expression that matches the whole text (ECMA-262 and Python's common subset)."""

    pattern: str


@dataclass(frozen=True)
class Ebnf(_Node):
    """A grammar in EBNF; the rule named ``root`` is where it starts."""

    text: str


@dataclass(frozen=True)
class JsonSchema(_Node):
    """JSON text that satisfies a schema (JSON Schema 2020-12 unless ``$schema`` says otherwise; text by RFC 8259).

    The schema is read once, here: a mapping, its JSON text (numbers then keep their exact value), or a Pydantic
    model. Changing the mapping later changes nothing.

    ``whitespace``: ``flexible`` (at most 2 newlines and 64 blanks a gap), ``compact`` (none), or ``canonical``: the
    blanks of ``json.dumps``, and declared keys as it spells them, so that keys are forced rather than chosen.

    Numbers have exponents from -324 to 308, as far as a double reaches.
    """

    schema: str
    """The schema as JSON text."""
    whitespace: Whitespace = "flexible"
    property_order: PropertyOrder = "declared"
    unsupported: Unsupported = "error"
    _cache: dict[str, Any] = field(init=False, repr=False, compare=False, hash=False, default_factory=dict)

    def __init__(
        self,
        schema: Mapping[str, Any] | bool | str | type,
        *,
        whitespace: Whitespace = "flexible",
        property_order: PropertyOrder = "declared",
        unsupported: Unsupported = "error",
    ) -> None:
        if isinstance(schema, type):
            if not hasattr(schema, "model_json_schema"):
                raise DefinitionError(
                    f"{schema.__name__} is not a Pydantic model: pass a model, a mapping or JSON text."
                )
            schema = schema.model_json_schema()
        if not isinstance(schema, str):
            try:
                schema = _core.json_text(schema) or json.dumps(schema, ensure_ascii=False)
            except (TypeError, ValueError) as error:
                raise DefinitionError(f"the schema is not a JSON value: {error}.") from error
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "whitespace", whitespace)
        object.__setattr__(self, "property_order", property_order)
        object.__setattr__(self, "unsupported", unsupported)
        object.__setattr__(self, "_cache", {})


Spec: TypeAlias = Lit | Tok | Text | Seq | Choice | Opt | Rep | Tag | Dispatch | Regex | Ebnf | JsonSchema

_NODES: dict[str, type] = {
    c.__name__: c for c in (Lit, Tok, Text, Seq, Choice, Opt, Rep, Tag, Dispatch, Regex, Ebnf, JsonSchema)
}


def _value(value: Any) -> Any:
    if isinstance(value, _Node):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_value(v) for v in value]
    return value


def spec_from_dict(data: Mapping[str, Any]) -> Any:
    """Reads what ``to_dict`` of a specification wrote.

    Raises:
        DefinitionError: The value does not describe a specification.
    """
    try:
        values = dict(data)
        cls = _NODES[values.pop("type")]
        return cls(**{k: _read(v) for k, v in values.items()})
    except (KeyError, TypeError) as error:
        raise DefinitionError(f"not a grammar specification: {error!r}. Pass what to_dict wrote.") from error


def _read(value: Any) -> Any:
    if isinstance(value, Mapping):
        return spec_from_dict(value)
    if isinstance(value, list):
        return tuple(_read(v) for v in value)
    return value
