"""JSON Schemas as constraints."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from typing_extensions import override

from agentgram.errors import GrammarError, PolicyError
from agentgram.policy.predicates import Constraint, Schema, exact
from agentgram.policy.recognising import recogniser, writes

_OF_TEXTS = re.compile('"(pattern|format|content)')
"""Keywords that the validator reads otherwise than a mask, or takes lightly: there both have to agree."""
_MOST_DIGITS = 400
"""Beyond, numbers are not looked at: whole ones would be written out."""


@dataclass(frozen=True)
class Fragment(Constraint):
    """What a JSON Schema admits."""

    text: str
    """The schema as JSON text."""
    steer: bool = False

    @override
    def schema(self) -> Schema:
        return dict(json.loads(self.text))

    @override
    def complement(self) -> Schema:
        return {"not": self.schema()}

    @override
    def judge(self, value: Any) -> bool | None:
        try:
            found = _exactly(value)
            valid = bool(_validator(self.text).is_valid(found))
        except (ArithmeticError, TypeError, ValueError):  # it is no JSON, or has numbers that nobody can reckon with
            return None
        if _OF_TEXTS.search(self.text) and writes(self.text, found) is not valid:
            return None
        return valid

    def __str__(self) -> str:
        return f"{self.text}{', steer=True' if self.steer else ''}"


def fragment(schema: Mapping[str, Any], where: str, *, steer: bool = False) -> Constraint:
    """The constraint that a JSON Schema is.

    Args:
        schema: The schema, without references.
        where: The argument, for errors.
        steer: Whether a model may only choose among what it admits.

    Raises:
        PolicyError: It is no schema, says what no schema says, or cannot be enforced.
    """
    import jsonschema

    told = f"where={{{where!r}: ...}} holds a"
    try:
        text = json.dumps(schema, sort_keys=True, allow_nan=False)
        jsonschema.Draft202012Validator.check_schema(json.loads(text))
    except (TypeError, ValueError, jsonschema.SchemaError) as error:
        raise PolicyError(f"{told} dict that is not a JSON Schema: {getattr(error, 'message', str(error))}.") from error
    if '"$ref"' in text or '"$dynamicRef"' in text:
        raise PolicyError(f"{told} schema with $ref: write what it refers to in its place.")
    try:
        warnings = recogniser(text).report.warnings
    except GrammarError as error:
        raise PolicyError(f"{told} schema that cannot be enforced: {error}") from error
    for row in warnings:
        raise PolicyError(f"{told} schema with {row.keyword!r} at {row.pointer}: {row.why}")
    return Fragment(text, steer)


@functools.lru_cache(maxsize=1024)
def _validator(text: str) -> Any:
    import jsonschema
    from jsonschema_specifications import REGISTRY

    cls = jsonschema.Draft202012Validator
    return cls(json.loads(text, parse_float=_number), format_checker=cls.FORMAT_CHECKER, registry=REGISTRY)


def _number(value: Any) -> Any:
    """A number without rounding: whole ones as integers, others as decimals."""
    number = exact(Decimal(value) if isinstance(value, str) else value)
    if number is None or number.adjusted() > _MOST_DIGITS:
        raise ValueError("no number that can be reckoned with")
    return int(number) if number == number.to_integral_value() else number


def _exactly(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float | Decimal):
        return _number(value)
    if isinstance(value, list):
        return [_exactly(item) for item in value]
    if isinstance(value, dict):
        return {key: _exactly(item) for key, item in value.items()}
    if value is None or isinstance(value, str):
        return value
    raise TypeError("no JSON")
