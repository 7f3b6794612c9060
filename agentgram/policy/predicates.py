"""What every constraint is: a predicate on one argument. And what values are to it."""

from __future__ import annotations

import enum
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from decimal import Decimal
from pathlib import PurePath
from typing import Any, TypeAlias

from agentgram.principal import Principal

Schema: TypeAlias = dict[str, Any]


class Constraint(ABC):
    """A predicate on one argument. Made by :func:`le` and its neighbours; immutable."""

    steer: bool = False
    """Whether the model may only choose among what satisfies it, instead of being refused what does not."""

    @abstractmethod
    def schema(self) -> Schema:
        """JSON Schema of values that satisfy it, and of no others."""

    @abstractmethod
    def complement(self) -> Schema:
        """JSON Schema of values that surely do not satisfy it.

        Raises:
            PolicyError: There is none.
        """

    @abstractmethod
    def judge(self, value: Any) -> bool | None:
        """Whether a value surely satisfies it, or surely does not; None where neither is sure.

        Args:
            value: What :func:`plain` makes of a JSON value, or of what validation made of one.
        """

    def of(self, user: Principal) -> Constraint:  # noqa: ARG002
        """The constraint for one user: what stands for the user's own is put in its place."""
        return self

    def implies(self, other: Constraint) -> bool:
        """Whether what satisfies this surely satisfies another one, by what the two say; neither has a user's own."""
        return type(self) is type(other) and self.schema() == other.schema()

    def holds(self, value: Any) -> bool:
        """Whether a JSON value, or what validation made of one, surely satisfies it."""
        return self._judged(value) is True

    def fails(self, value: Any) -> bool:
        """Whether it surely does not."""
        return self._judged(value) is False

    def _judged(self, value: Any) -> bool | None:
        try:
            return self.judge(plain(value))
        except RecursionError:  # it is nested deeper than anybody looks
            return None

    @abstractmethod
    def __str__(self) -> str: ...


def plain(value: Any) -> Any:
    """What validation made of a JSON value, as the JSON value that it stands for; a ``Decimal`` stays one."""
    if value is None or isinstance(value, bool | int | float | str | Decimal):
        return value.value if isinstance(value, enum.Enum) else value
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(value, "get_secret_value"):
        return plain(value.get_secret_value())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value, serialize_unknown=True)


def same(a: Any, b: Any) -> bool:
    """Whether two JSON values are equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if (x := exact(a)) is not None and (y := exact(b)) is not None:
        return x == y
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(value, b[key]) for key, value in a.items())
    return type(a) is type(b) and bool(a == b)


def exact(value: Any) -> Decimal | None:
    """A number as the decimal that its JSON text spells; None for what is no number."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Decimal(value)
    if isinstance(value, float):
        return Decimal(repr(value)) if math.isfinite(value) else None
    return value if isinstance(value, Decimal) and value.is_finite() else None


def is_json(value: Any) -> bool:
    """Whether a value is what JSON text can say, or a ``Decimal``."""
    return value is None or isinstance(value, bool | int | float | str | Decimal | list | dict)
