"""Specifications as handles of the native engine, made once for each specification object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from agentgram.engine import _core
from agentgram.engine.spec import (
    Choice,
    Dispatch,
    Ebnf,
    JsonSchema,
    Lit,
    Opt,
    Regex,
    Rep,
    Seq,
    Spec,
    Tag,
    Text,
    Tok,
)
from agentgram.errors import DefinitionError


def native_spec(spec: Spec) -> _core.Spec:
    """The handle of a specification.

    Raises:
        DefinitionError: Something in it is not a specification node.
    """
    try:
        return spec._native_handle  # type: ignore[union-attr,no-any-return]
    except AttributeError:
        pass
    make = _MAKERS.get(type(spec))
    if make is None:
        raise DefinitionError(
            f"{spec!r} is not a grammar specification: use Lit, Tok, Text, Seq, Choice, Opt, Rep, Tag, Dispatch, "
            "Regex, Ebnf or JsonSchema."
        )
    handle = make(spec)
    # Not by way of __dict__, which would make a dictionary of it: requests of hundreds of tags read this of each.
    object.__setattr__(spec, "_native_handle", handle)
    return handle


def _mark(value: str | Tok) -> tuple[bool, str, int]:
    if isinstance(value, Tok):
        return (True, value.token, -1) if isinstance(value.token, str) else (True, "", value.token)
    return (False, value, -1)


def _dispatch(spec: Dispatch) -> _core.Spec:
    try:  # tags that were compiled before, as in a request whose tools are known
        tags = [t._native_handle for t in spec.tags]  # type: ignore[attr-defined]
    except AttributeError:
        tags = [native_spec(t) for t in spec.tags]
    return _core.Spec.dispatch(
        tags,
        [_mark(t) for t in spec.triggers],
        [_mark(s) for s in spec.stops],
        list(spec.excludes),
        spec.at_least,
        spec.at_most,
        spec.stop_after_first,
    )


_SCHEMA_OPTIONS = {
    (whitespace, order, unsupported): (number, order == "any", unsupported == "relax")
    for whitespace, number in (("compact", 0), ("canonical", 1), ("flexible", 2))
    for order in ("declared", "any")
    for unsupported in ("error", "relax")
}


def _json_schema(spec: JsonSchema) -> _core.Spec:
    options = _SCHEMA_OPTIONS.get((spec.whitespace, spec.property_order, spec.unsupported))
    if options is None:
        _refuse_options(spec)
    return _core.Spec.json_schema(spec.schema, *options)


def _refuse_options(spec: JsonSchema) -> NoReturn:
    names = ("whitespace", "property_order", "unsupported")
    for i, name in enumerate(names):
        known = list(dict.fromkeys(options[i] for options in _SCHEMA_OPTIONS))
        if getattr(spec, name) not in known:
            raise DefinitionError(f"{name} is {getattr(spec, name)!r}: use one of {', '.join(map(repr, known))}.")
    raise AssertionError("every combination is known")


_MAKERS: dict[type, Callable[[Any], _core.Spec]] = {
    Lit: lambda s: _core.Spec.lit(s.text),
    Tok: lambda s: _core.Spec.tok(_mark(s)),
    Text: lambda s: _core.Spec.text(list(s.excludes)),
    Seq: lambda s: _core.Spec.seq([native_spec(i) for i in s.items]),
    Choice: lambda s: _core.Spec.choice([native_spec(o) for o in s.options]),
    Opt: lambda s: _core.Spec.opt(native_spec(s.item)),
    Rep: lambda s: _core.Spec.rep(native_spec(s.item), s.min, s.max, None if s.sep is None else native_spec(s.sep)),
    Tag: lambda s: _core.Spec.tag(_mark(s.begin), native_spec(s.content), _mark(s.end)),
    Dispatch: _dispatch,
    Regex: lambda s: _core.Spec.regex(s.pattern),
    Ebnf: lambda s: _core.Spec.ebnf(s.text),
    JsonSchema: _json_schema,
}
