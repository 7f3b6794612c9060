"""A tool's schema, narrowed to what a user may write in it.

What is said of one argument goes into that argument's own schema, so that formats which write each argument by itself
can hold it too; what ties several arguments together is said at the top.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from agentgram.errors import DefinitionError, nearest
from agentgram.policy.predicates import Constraint, Schema
from agentgram.principal import Principal
from agentgram.tools.definition import ToolDefinition

Where: TypeAlias = tuple[tuple[str, tuple[Constraint, ...]], ...]
"""Constraints by argument, in the order of their names."""
MISSING: Any = object()
"""The value of an argument that is not there and has no known default."""
_ANNOTATIONS = ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment")
_OF_OBJECTS = ("type", "required", "additionalProperties")
_MOST_VARIANTS = 16
"""How many schemas of one tool its rules may come to; beyond, only formats of JSON can hold them."""
_NO_TEXTS = ("integer", "number", "boolean", "null", "array", "object")
_TIED = {"$ref", "$dynamicRef", "anyOf", "oneOf", "allOf", "not", "if", "enum", "const"}


@dataclass(frozen=True, kw_only=True)
class Part:
    """What is said of one argument: any of ``options`` has to hold."""

    key: str
    options: tuple[Schema, ...]
    optional: bool
    """Whether the argument may be left out: its default satisfies what is said."""

    def as_object(self) -> Schema:
        """The same, of the object that holds the argument."""
        schema = self.options[0] if len(self.options) == 1 else {"anyOf": list(self.options)}
        out: Schema = {"properties": {self.key: schema}}
        return out if self.optional else {**out, "required": [self.key]}


def default_of(definition: ToolDefinition, key: str) -> Any:
    """What an argument is where it is left out; ``MISSING`` where that is not known.

    Raises:
        DefinitionError: The tool has no such argument.
    """
    properties = definition.schema.get("properties", {})
    if key not in properties:
        raise DefinitionError(
            f"the policy speaks of argument {key!r} of tool {definition.name!r}, which has none of this name. "
            f"{nearest(key, properties)}"
        )
    found = properties[key]
    known = definition.fills_defaults and isinstance(found, Mapping)
    return found.get("default", MISSING) if known else MISSING


def of_user(where: Where, user: Principal) -> Where:
    """The constraints for one user."""
    return tuple((key, tuple(c.of(user) for c in constraints)) for key, constraints in where)


@functools.lru_cache(maxsize=4096)  # tools have their rules in common
def least(wheres: tuple[Where, ...]) -> tuple[Where, ...]:
    """Those of several, one of which has to hold, that do not already ask all that another one asks."""
    out: tuple[Where, ...] = ()
    for where in wheres:
        if not any(_implies(where, other) for other in out):
            out = (*(other for other in out if not _implies(other, where)), where)
    return out


def _implies(where: Where, other: Where) -> bool:
    said = dict(where)
    return all(any(mine.implies(c) for mine in said.get(key, ())) for key, wanted in other for c in wanted)


def granted(definition: ToolDefinition, where: Where) -> tuple[Part, ...]:
    """What a rule that allows says of each argument."""
    parts = []
    for key, constraints in where:
        default = default_of(definition, key)
        optional = default is not MISSING and all(c.holds(default) for c in constraints)
        parts.append(Part(key=key, options=(_all([c.schema() for c in constraints]),), optional=optional))
    return tuple(parts)


def refused(definition: ToolDefinition, where: Where) -> tuple[Part, ...]:
    """What a rule that denies leaves, argument by argument: one of these has to hold."""
    parts = []
    for key, constraints in where:
        default = default_of(definition, key)
        optional = default is not MISSING and any(c.fails(default) for c in constraints)
        parts.append(Part(key=key, options=tuple(c.complement() for c in constraints), optional=optional))
    return tuple(parts)


def _all(schemas: Sequence[Schema]) -> Schema:
    return schemas[0] if len(schemas) == 1 else {"allOf": list(schemas)}


def narrowed(
    definition: ToolDefinition, grants: Sequence[tuple[Part, ...]], denials: Sequence[tuple[Part, ...]]
) -> ToolDefinition:
    """A tool of which only those calls can be written that one of the grants allows and no denial takes away.

    Args:
        definition: The tool.
        grants: For each rule that allows, what it says: all of it has to hold.
        denials: For each rule that denies, what it leaves: one of it has to hold.
    """
    clauses: list[list[tuple[Part, ...]]] = []  # each a choice of what has to hold together
    if grants and all(grants):
        clauses.append(list(grants))
    clauses += [[(part,) for part in denial] for denial in denials]
    variants = [dict(definition.schema)]
    tied: list[Schema] = []
    for clause in clauses:
        own = _of_single_arguments(clause)
        if own is not None:
            variants = [_with_all(schema, own) for schema in variants]
        elif len(variants) * len(clause) <= _MOST_VARIANTS:
            variants = [_with_all(schema, parts) for schema in variants for parts in clause]
        else:
            tied.append({"anyOf": [_all([part.as_object() for part in parts]) for parts in clause]})
    schema = variants[0] if len(variants) == 1 else _either(dict(definition.schema), variants)
    if tied:
        schema["allOf"] = [*schema.get("allOf", ()), *tied]
    return definition if not clauses else definition.with_schema(schema)


def _either(schema: Schema, variants: Sequence[Schema]) -> Schema:
    """A schema of several, each of which says all of itself; what describes the arguments is said once."""
    options = []
    for variant in variants:
        properties = {
            key: {k: v for k, v in said.items() if k not in _ANNOTATIONS} if isinstance(said, Mapping) else said
            for key, said in variant["properties"].items()
        }
        options.append({**{k: variant[k] for k in _OF_OBJECTS if k in variant}, "properties": properties})
    return {**schema, "anyOf": options} if "anyOf" not in schema else {**schema, "allOf": [{"anyOf": options}]}


def _of_single_arguments(clause: list[tuple[Part, ...]]) -> tuple[Part, ...] | None:
    """The clause as something that is said of each argument by itself; None where it ties several together."""
    if len(clause) == 1:
        return clause[0]
    keys = {part.key for parts in clause for part in parts}
    if len(keys) > 1 or any(len(parts) != 1 for parts in clause):
        return None
    parts = [parts[0] for parts in clause]
    options = tuple(option for part in parts for option in part.options)
    return (Part(key=parts[0].key, options=options, optional=any(part.optional for part in parts)),)


def _with_all(schema: Schema, parts: Sequence[Part]) -> Schema:
    for part in parts:
        schema = _with(schema, part)
    return schema


def _with(schema: Schema, part: Part) -> Schema:
    properties = dict(schema["properties"])
    properties[part.key] = meet(properties[part.key], part)
    out = {**schema, "properties": properties}
    if not part.optional and part.key not in schema.get("required", ()):
        out["required"] = [*schema.get("required", ()), part.key]
    return out


def spelled_alike(sampled: ToolDefinition, permitted: ToolDefinition) -> ToolDefinition:
    """What is sampled from, with each argument's texts spelled as in what is permitted.

    Some formats write a text without quotes only where nothing but its length is asked of it, or a list given. Two such
    spellings would part where the values do not: so what is asked of a text there is asked here in a way that every
    text satisfies.
    """
    properties = dict(sampled.schema.get("properties", {}))
    options = permitted.schema.get("anyOf", ()) if "anyOf" not in sampled.schema else ()
    narrowed_to = [permitted.schema.get("properties", {}), *(option["properties"] for option in options)]
    for key, wide in properties.items():
        plain = {k: v for k, v in wide.items() if k not in _ANNOTATIONS} if isinstance(wide, Mapping) else wide
        if any(now[key] not in (wide, plain) and _asks_of_texts(now[key]) for now in narrowed_to):
            properties[key] = meet(wide, Part(key=key, options=({"pattern": "^"},), optional=True))
    if properties == sampled.schema.get("properties", {}):
        return sampled
    return sampled.with_schema({**sampled.schema, "properties": properties})


def _asks_of_texts(schema: Any) -> bool:
    if _is_no_text(schema):
        return False
    listed = [schema["const"]] if "const" in schema else schema.get("enum", ())
    mixed = len({isinstance(value, str) for value in listed}) > 1  # texts are then told from what else is listed
    return mixed or bool(schema.keys() - {"type", "enum", "const", *_ANNOTATIONS})


def _is_no_text(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return True
    return schema.get("type", "string") in _NO_TEXTS or any(map(_is_no_text, schema.get("allOf", ())))


def meet(schema: Any, part: Part) -> Schema:
    """An argument's schema with something more said of it; the description stays in its place."""
    here: Schema = dict(schema) if isinstance(schema, Mapping) else ({} if schema else {"not": {}})
    notes = {k: here.pop(k) for k in _ANNOTATIONS if k in here}
    notes.pop("examples", None)
    if not part.optional:
        notes.pop("default", None)  # it is not what may be written
    more = part.options[0] if len(part.options) == 1 else {"anyOf": list(part.options)}
    merged = _merged(here, more)
    return {**merged, **notes} if merged is not None else {**notes, "allOf": [here, more] if here else [more]}


def _merged(here: Schema, more: Schema) -> Schema | None:
    """Both in one schema, where their keywords do not meet; None where that could change what is said."""
    if _TIED & here.keys() or (here.keys() & more.keys()) - {"type"} or {"allOf", "anyOf"} & more.keys():
        return None
    kinds, wanted = here.get("type"), more.get("type")
    if wanted is None or kinds is None or kinds == wanted:
        return {**here, **more}
    known = [kinds] if isinstance(kinds, str) else list(kinds)
    if wanted in known:
        return {**here, **more}
    if wanted == "number" and "integer" in known:
        return {**here, **more, "type": "integer"}
    return None
