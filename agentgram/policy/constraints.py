"""What an argument may be: predicates, each with the schema that implies it.

A constraint is asked twice, and both have to agree. The grammar is given :meth:`Constraint.schema`, so that a value
which does not satisfy it cannot be written; the executor asks :meth:`Constraint.holds` of the call's JSON and of the
value that validation made of it. Both are *closed*: what is not surely right is wrong. A bound on a number admits
numbers only: no null, and no text that some tool would read as a number. A rule that denies asks the opposite question,
:meth:`Constraint.fails`, which is closed as well: a value that is not surely harmless is denied.
"""

from __future__ import annotations

import functools
import json
import operator
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from typing_extensions import override

from agentgram.errors import GrammarError, PolicyError, nearest
from agentgram.policy.fragments import fragment
from agentgram.policy.predicates import Constraint, Schema, exact, is_json, same
from agentgram.policy.recognising import recogniser, writes
from agentgram.principal import Principal

_REFERENCES = ("user.id",)
_MOST_DIGITS = 308
"""Of a number that a double holds."""


_OPERATORS: dict[str, tuple[str, str, Callable[[Decimal, Decimal], bool]]] = {
    "le": ("maximum", "exclusiveMinimum", operator.le),
    "lt": ("exclusiveMaximum", "minimum", operator.lt),
    "ge": ("minimum", "exclusiveMaximum", operator.ge),
    "gt": ("exclusiveMinimum", "maximum", operator.gt),
}


@dataclass(frozen=True)
class Bound(Constraint):
    """A bound on a number."""

    operator: str
    """``le``, ``lt``, ``ge`` or ``gt``."""
    bound: int | float
    steer: bool = False

    @override
    def schema(self) -> Schema:
        return {"type": "number", _OPERATORS[self.operator][0]: self.bound}

    @override
    def complement(self) -> Schema:
        return {"type": "number", _OPERATORS[self.operator][1]: self.bound}

    @override
    def judge(self, value: Any) -> bool | None:
        number = exact(value)
        return None if number is None else _OPERATORS[self.operator][2](number, Decimal(repr(self.bound)))

    @override
    def implies(self, other: Constraint) -> bool:
        if not isinstance(other, Bound) or other.operator[0] != self.operator[0]:
            return False
        return (self.operator == other.operator and self.bound == other.bound) or other.holds(self.bound)

    def __str__(self) -> str:
        return f"{self.operator}({self.bound}{_steered(self)})"


def _steered(constraint: Constraint) -> str:
    return ", steer=True" if constraint.steer else ""


@dataclass(frozen=True)
class Same:
    """A value that belongs to the user: inside :func:`one_of`, or by itself as :func:`same_as`."""

    path: str

    def value(self, user: Principal) -> Any:
        """The user's value."""
        return user.id

    def __str__(self) -> str:
        return f"same_as({self.path!r})"


@dataclass(frozen=True)
class OneOf(Constraint):
    """One of some values."""

    texts: tuple[str | Same, ...]
    """The values as JSON texts (so that this can be hashed), or what stands for the user's."""
    steer: bool = False

    @override
    def of(self, user: Principal) -> Constraint:
        if not any(isinstance(t, Same) for t in self.texts):
            return self
        return OneOf(tuple(json.dumps(t.value(user)) if isinstance(t, Same) else t for t in self.texts), self.steer)

    @functools.cached_property
    def values(self) -> tuple[Any, ...]:
        """The values."""
        return tuple(json.loads(text) for text in self.texts if isinstance(text, str))

    @override
    def schema(self) -> Schema:
        return {"const": self.values[0]} if len(self.values) == 1 else {"enum": list(self.values)}

    @override
    def complement(self) -> Schema:
        return {"not": {"enum": list(self.values)}}

    @override
    def judge(self, value: Any) -> bool | None:
        return any(same(value, each) for each in self.values) if is_json(value) else None

    @override
    def implies(self, other: Constraint) -> bool:
        return isinstance(other, Bound | OneOf) and all(map(other.holds, self.values))

    def __str__(self) -> str:
        words = [str(t) if isinstance(t, Same) else repr(json.loads(t)) for t in self.texts]
        if len(words) == 1 and isinstance(self.texts[0], Same):
            return f"same_as({self.texts[0].path!r}{_steered(self)})"
        if len(words) == 1 and not self.steer:
            return words[0]
        return f"one_of({', '.join(words)}{_steered(self)})"


@dataclass(frozen=True)
class Matches(Constraint):
    """Text that a pattern matches as a whole."""

    pattern: str
    steer: bool = False

    @override
    def schema(self) -> Schema:
        return {"type": "string", "pattern": f"^(?:{self.pattern})$"}

    @functools.cached_property
    def _text(self) -> str:
        return json.dumps(self.schema())

    @override
    def complement(self) -> Schema:
        return {"type": "string", "not": self.schema()}

    @override
    def judge(self, value: Any) -> bool | None:
        return writes(self._text, value) if isinstance(value, str) else None

    def __str__(self) -> str:
        return f"matches({self.pattern!r}{_steered(self)})"


@dataclass(frozen=True)
class Under(Constraint):
    """A path inside of a directory."""

    directory: str
    steer: bool = False

    def _pattern(self) -> str:
        part = r"(?:[^/.\\\x00-\x1f][^/\\\x00-\x1f]*|\.[^/.\\\x00-\x1f][^/\\\x00-\x1f]*|\.\.[^/\\\x00-\x1f]+)"
        inside = rf"{part}(?:/{part})*/?"
        roots = {self.directory.rstrip("/"), str(Path(self.directory).resolve()).rstrip("/")}
        spelled = [rf"{re.escape(root)}(?:/(?:{inside})?)?" for root in sorted(roots) if root != "."]
        if "." in roots:
            spelled.append(rf"(?:\./)?{inside}")
        return "|".join(spelled)

    @override
    def schema(self) -> Schema:
        return {"type": "string", "pattern": f"^(?:{self._pattern()})$"}

    @override
    def complement(self) -> Schema:
        raise PolicyError(f"{self} cannot be denied, for a path has many spellings: allow the directories instead.")

    @override
    def judge(self, value: Any) -> bool | None:
        if not isinstance(value, str) or re.fullmatch(self._pattern(), value) is None:
            return None
        try:  # where links lead is known only now: the grammar sees the spelling
            return Path(value).resolve().is_relative_to(Path(self.directory).resolve()) or None
        except (OSError, RuntimeError, ValueError):
            return None

    def __str__(self) -> str:
        return f"under({self.directory!r}{_steered(self)})"


# ---- how they are written ----


def _bound(word: str, bound: Any, steer: bool) -> Constraint:
    number = exact(bound)
    if number is None:
        raise PolicyError(f"{word}({bound!r}): a bound is a finite number.")
    if number.adjusted() > _MOST_DIGITS:
        raise PolicyError(f"{word}(...): the bound has more than {_MOST_DIGITS} digits, as no number has that is read.")
    value = int(number) if number == number.to_integral_value() else float(number)
    if exact(value) != number:
        raise PolicyError(f"{word}({bound!r}) has more digits than a JSON number keeps: round it.")
    return Bound(word, value, steer)


def le(bound: float | Decimal, *, steer: bool = False) -> Constraint:
    """A number that is at most ``bound``.

    Args:
        bound: A finite number.
        steer: Let the model choose only among what is allowed, where clamping does no harm. Otherwise a wish for more
            is refused, and reported.

    Raises:
        PolicyError: ``bound`` is not such a number.
    """
    return _bound("le", bound, steer)


def lt(bound: float | Decimal, *, steer: bool = False) -> Constraint:
    """A number below ``bound``; see :func:`le`."""
    return _bound("lt", bound, steer)


def ge(bound: float | Decimal, *, steer: bool = False) -> Constraint:
    """A number that is at least ``bound``; see :func:`le`."""
    return _bound("ge", bound, steer)


def gt(bound: float | Decimal, *, steer: bool = False) -> Constraint:
    """A number above ``bound``; see :func:`le`."""
    return _bound("gt", bound, steer)


def one_of(*values: Any, steer: bool = False) -> Constraint:
    """One of some JSON values; ``same_as("user.id")`` may be among them.

    Raises:
        PolicyError: There is none, or one is not JSON.
    """
    if not values:
        raise PolicyError("one_of() allows nothing: give it values, or leave the tool out.")
    return OneOf(tuple(_json_text(value) for value in values), steer)


def _json_text(value: Any) -> str | Same:
    if isinstance(value, OneOf) and len(value.texts) == 1 and isinstance(value.texts[0], Same):
        return value.texts[0]
    try:
        text = json.dumps(value, sort_keys=True, allow_nan=False)
        if same(json.loads(text), value):
            return text
    except (TypeError, ValueError):
        pass
    raise PolicyError(f"{value!r} is not a JSON value: use strings, finite numbers, booleans, None, lists and dicts.")


def matches(pattern: str, *, steer: bool = False) -> Constraint:
    """Text that the regular expression matches from its beginning to its end (ECMA-262, as in JSON Schema).

    Raises:
        PolicyError: It is not one that can be enforced.
    """
    if not isinstance(pattern, str):
        raise PolicyError(f"matches({pattern!r}): a pattern is a string.")
    made = Matches(pattern, steer)
    try:
        recogniser(json.dumps({"type": "string", "pattern": pattern}))  # by itself: ")|(" would fit into a group
        recogniser(made._text)
    except GrammarError as error:
        raise PolicyError(f"matches({pattern!r}) cannot be enforced: {error}") from error
    return made


def under(directory: str | os.PathLike[str], *, steer: bool = False) -> Constraint:
    """A path inside of a directory, or the directory: without ``.`` and ``..``, and wherever links lead still inside.

    Where links lead is asked before a call is made; a mask sees the spelling only.

    Raises:
        PolicyError: The directory is an empty text.
    """
    text = os.fspath(directory)
    if not isinstance(text, str) or not text or "\0" in text:
        raise PolicyError(f"under({directory!r}): name a directory.")
    return Under(os.path.normpath(text), steer)


def same_as(path: str, *, steer: bool = False) -> Constraint:
    """The user's own: ``same_as("user.id")``.

    Raises:
        PolicyError: ``path`` names something else.
    """
    if path not in _REFERENCES:
        raise PolicyError(f"same_as({path!r}) names nothing of the user. {nearest(str(path), _REFERENCES)}")
    return OneOf((Same(path),), steer)


def constraints_of(value: Any, where: str) -> tuple[Constraint, ...]:
    """The constraints that one entry of ``where=`` stands for.

    Args:
        value: A constraint, several in a tuple or list (all have to hold), a JSON Schema as a dict, or a constant.
        where: The argument, for errors.

    Raises:
        PolicyError: It is none of these.
    """
    if isinstance(value, Constraint):
        return (value,)
    if isinstance(value, tuple | list) and value and all(isinstance(item, Constraint) for item in value):
        return tuple(sorted(value, key=str))
    if isinstance(value, Mapping):
        return (fragment(value, where),)
    if value is None or isinstance(value, str | bool | int | float):
        return (one_of(value),)
    raise PolicyError(
        f"where={{{where!r}: {value!r}}} is no constraint: give a constant, le(...) and its neighbours, several of "
        "these in a tuple, or a JSON Schema."
    )
