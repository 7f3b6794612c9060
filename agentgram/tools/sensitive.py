"""Arguments that nobody is to read afterwards: passwords, card numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HIDDEN = "(hidden)"
"""What stands in the place of a sensitive value."""
_DEEP = 32


class Sensitive:
    """Marks an argument whose value is kept out of the audit, the events and the saved state of runs.

    ::

        def pay(card: Annotated[str, Sensitive]) -> str: ...

    Pydantic's ``SecretStr`` and ``SecretBytes`` are sensitive without it. The tool itself gets the value, and the
    model's own conversation holds it.
    """

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> dict[str, Any]:
        schema: dict[str, Any] = handler(core_schema)
        return {**schema, "writeOnly": True}


def redacted(value: Any, schema: Any, root: Mapping[str, Any] | None = None, depth: int = 0) -> Any:
    """A value without what its schema marks as sensitive (``writeOnly``, as Pydantic publishes secrets)."""
    root = schema if root is None else root
    if not isinstance(schema, Mapping) or depth > _DEEP:
        return value
    if schema.get("writeOnly") is True:
        return HIDDEN
    for part in _parts(schema, root):
        value = redacted(value, part, root, depth + 1)
    if isinstance(value, Mapping):
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        return {key: redacted(item, known.get(key, others), root, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        first = schema.get("prefixItems", [])
        rest = schema.get("items")
        return [redacted(item, first[n] if n < len(first) else rest, root, depth + 1) for n, item in enumerate(value)]
    return value


def is_sensitive(schema: Any) -> bool:
    """Whether a schema marks anything as sensitive."""
    if isinstance(schema, Mapping):
        return schema.get("writeOnly") is True or any(map(is_sensitive, schema.values()))
    return isinstance(schema, list) and any(map(is_sensitive, schema))


def _parts(schema: Mapping[str, Any], root: Mapping[str, Any]) -> list[Any]:
    parts = [option for keyword in ("anyOf", "oneOf", "allOf") for option in schema.get(keyword, ())]
    target = schema.get("$ref")
    if isinstance(target, str) and target.startswith("#/"):
        found: Any = root
        for name in target.removeprefix("#/").split("/"):
            found = found.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
        parts.append(found)
    return parts
