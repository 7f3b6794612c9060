"""What a schema says about one value, as far as spellings other than JSON have to know it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from agentgram.engine.spec import JsonSchema, Unsupported
from agentgram.errors import GrammarError

Schema: TypeAlias = Mapping[str, Any]
ALL = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
_NUMBERS = frozenset({"number", "integer"})
_KINDS = {
    type(None): frozenset({"null"}),
    bool: frozenset({"boolean"}),
    int: _NUMBERS,
    float: _NUMBERS,
    str: frozenset({"string"}),
    list: frozenset({"array"}),
    tuple: frozenset({"array"}),
    dict: frozenset({"object"}),
}
ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "$id", "$schema",
     "$defs", "definitions", "format_description"}
)  # fmt: skip
_ROOT_ONLY = frozenset({"type", "properties", "required", "additionalProperties", *ANNOTATIONS})
_SHARED = ("$defs", "definitions", "$schema")
_TO_TEXT = json.JSONEncoder(ensure_ascii=False).encode
_DEEP = 32


def resolved(schema: Any, root: Schema) -> Schema:
    """The schema with references at its top followed; what is allowed without condition is ``{}``."""
    if type(schema) is dict and "$ref" not in schema:  # nearly all are
        return schema
    for _ in range(_DEEP):
        if schema is True:
            return {}
        if not isinstance(schema, Mapping):
            return {"not": {}}
        here: Schema = schema
        target = schema.get("$ref")
        if not isinstance(target, str) or not target.startswith("#"):
            return here
        found: Any = root
        for step in target.removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            found = found.get(name) if isinstance(found, Mapping) else None
        rest = {k: v for k, v in schema.items() if k != "$ref" and k not in ANNOTATIONS}
        if rest or found is None:
            return here
        schema = found
    return {}


def alternatives(schema: Any, root: Schema) -> list[Schema]:
    """The schema as a list of schemas one of which holds, where it is said so at its top: ``anyOf``, several types."""
    here = resolved(schema, root)
    if "anyOf" not in here and "oneOf" not in here and not isinstance(here.get("type"), list | tuple):
        return [here]
    plain = {k: v for k, v in here.items() if k not in ANNOTATIONS}
    for keyword in ("anyOf", "oneOf"):
        if set(plain) == {keyword}:
            return [a for option in plain[keyword] for a in alternatives(option, root)]
    types = plain.get("type")
    if isinstance(types, list | tuple) and len(types) > 1 and not {"enum", "const"} & set(plain):
        return [{**here, "type": t} for t in types]
    return [here]


def kinds(schema: Any, root: Schema, depth: int = 0) -> frozenset[str]:
    """The JSON types that a value may have; a guess that is never too small."""
    here = resolved(schema, root)
    if depth > _DEEP:
        return ALL
    found = ALL
    if "const" in here:
        found &= kinds_of(here["const"])
    if "enum" in here:
        found &= frozenset(k for v in here["enum"] for k in kinds_of(v))
    types = here.get("type")
    if isinstance(types, str):
        found &= _NUMBERS if types == "number" else frozenset((types,))
    elif types is not None:
        found &= frozenset(k for t in types for k in (_NUMBERS if t == "number" else (t,)))
    for keyword in ("anyOf", "oneOf"):
        if keyword in here:
            found &= frozenset(k for option in here[keyword] for k in kinds(option, root, depth + 1))
    for option in here.get("allOf", ()):
        found &= kinds(option, root, depth + 1)
    return found


def kinds_of(value: Any) -> frozenset[str]:
    """The JSON types that a value has."""
    if isinstance(value, float) and not value.is_integer():
        return frozenset({"number"})
    return _KINDS.get(type(value)) or (_NUMBERS if isinstance(value, int | float) else frozenset({"object"}))


def constraints(schema: Schema) -> set[str]:
    """The keywords at a schema's top that say something about the value, its type aside."""
    return {k for k in schema if k not in ANNOTATIONS and k != "type"}


def as_json(schema: Any, root: Schema, unsupported: Unsupported) -> JsonSchema:
    """A part of a tool's schema as a grammar of its own, for JSON text."""
    if not isinstance(schema, Mapping):
        return JsonSchema(schema, whitespace="canonical", unsupported=unsupported)
    outer = {k: root[k] for k in _SHARED if k in root and k not in schema}
    whole = {**outer, **schema} if outer else schema
    try:
        text = _TO_TEXT(whole)
    except (TypeError, ValueError):
        return JsonSchema(whole, whitespace="canonical", unsupported=unsupported)  # which says what is wrong
    return JsonSchema(text, whitespace="canonical", unsupported=unsupported)


def variants(schema: Schema) -> list[Schema]:
    """The schemas of a tool's arguments one of which holds: several where its top says ``anyOf`` of whole objects."""
    options = schema.get("anyOf")
    if not isinstance(options, list) or not all(
        isinstance(o, Mapping) and "properties" in o and o.keys() <= _ROOT_ONLY for o in options
    ):
        return [schema]
    rest = {k: v for k, v in schema.items() if k != "anyOf"}
    # One that nothing satisfies would take the others with it; where it is all of them, the engine says why.
    possible = [option for option in options if _is_possible(option)]
    return [{**rest, **option} for option in possible or options]


def _is_possible(option: Schema) -> bool:
    """Whether what several rules ask of one argument can hold together, for each that has to be written."""
    needed = (option["properties"].get(key) for key in option.get("required", ()))
    return all(_can_hold(repr(part), part) for part in needed if isinstance(part, Mapping) and "allOf" in part)


def _can_hold(key: str, schema: Schema) -> bool:
    known = _HOLDS.get(key)
    if known is None:
        if len(_HOLDS) >= _MOST:
            _HOLDS.clear()
        known = _HOLDS[key] = "$ref" in key or _compiles(schema)
    return known


def _compiles(schema: Schema) -> bool:
    from agentgram.engine import Engine, Vocabulary

    try:
        Engine.shared(Vocabulary.byte_level()).compile(JsonSchema(schema, unsupported="relax"))
    except GrammarError as error:
        return not error.unsatisfiable
    return True


_HOLDS: dict[str, bool] = {}
_MOST = 4096
"""How many schemas are remembered."""


def members(schema: Schema, tool: str, unsupported: Unsupported) -> tuple[dict[str, Any], set[str], Any]:
    """The arguments of a tool: their schemas by name, which are required, and what others may be (False for none).

    Where a schema does not speak of other arguments, the model may not write any.

    Raises:
        GrammarError: The arguments depend on each other, which only JSON text can be held to.
    """
    here = resolved(schema, schema)
    if unsupported == "error":
        for keyword in here:
            if keyword not in _ROOT_ONLY:
                raise GrammarError(
                    f"tool {tool!r} has {keyword!r} at the top of its schema, and this format writes each argument on "
                    "its own",
                    pointer="",
                    keyword=keyword,
                    hint="Say it for single arguments, or declare the tool with unsupported='relax'.",
                )
    properties = dict(here.get("properties", {}))
    required = set(here.get("required", ()))
    for key in here.get("required", ()):
        properties.setdefault(key, {})
    return properties, required, here.get("additionalProperties", False)
