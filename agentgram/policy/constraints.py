"""What an argument may be: predicates, each with the schema that implies it.

A constraint is asked twice, and both have to agree. The grammar is given :meth:`Constraint.schema`, so that a value
which does not satisfy it cannot be written; the executor asks :meth:`Constraint.holds` of the call's JSON and of the
value that validation made of it. Both are *closed*: what is not surely right is wrong. A bound on a number admits
numbers only: no null, and no text that some tool would read as a number. A rule that denies asks the opposite question,
:meth:`Constraint.fails`, which is closed as well: a value that is not surely harmless is denied.
"""

from __future__ import annotations

import enum
import functools
import json
import math
import operator
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path, PurePath
from typing import Any, TypeAlias

from typing_extensions import override

from agentgram.errors import GrammarError, PolicyError, nearest
from agentgram.principal import Principal

Schema: TypeAlias = dict[str, Any]
_REFERENCES = ("user.id",)


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
        return self.judge(plain(value)) is True

    def fails(self, value: Any) -> bool:
        """Whether it surely does not."""
        return self.judge(plain(value)) is False

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


def _is_json(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | Decimal | list | dict)


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
        return any(same(value, each) for each in self.values) if _is_json(value) else None

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

    @override
    def complement(self) -> Schema:
        return {"type": "string", "not": self.schema()}

    @override
    def judge(self, value: Any) -> bool | None:
        return _matches(self.pattern, value) if isinstance(value, str) else None

    def __str__(self) -> str:
        return f"matches({self.pattern!r}{_steered(self)})"


@functools.lru_cache(maxsize=1024)
def _recogniser(pattern: str) -> Any:
    # The engine's own reading of the pattern: another library's would differ in some corner from what a mask allows.
    from agentgram.engine import Engine, JsonSchema, Vocabulary

    schema = JsonSchema({"type": "string", "pattern": f"^(?:{pattern})$"}, whitespace="canonical")
    return Engine.shared(Vocabulary.byte_level()).compile(schema)


def _matches(pattern: str, text: str) -> bool:
    try:
        spelled = json.dumps(text, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # half of a surrogate pair: no text
        return False
    matcher = _recogniser(pattern).matcher()
    return bool(matcher.accept_bytes(spelled)) and bool(matcher.can_end)


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
        found = float(value) if isinstance(value, Decimal) else value
        return bool(_validator(self.text).is_valid(found)) if _is_json(found) else None

    def __str__(self) -> str:
        return self.text


@functools.lru_cache(maxsize=1024)
def _validator(text: str) -> Any:
    import jsonschema
    from jsonschema_specifications import REGISTRY

    cls = jsonschema.Draft202012Validator
    return cls(json.loads(text), format_checker=cls.FORMAT_CHECKER, registry=REGISTRY)


# ---- how they are written ----


def _bound(word: str, bound: Any, steer: bool) -> Constraint:
    number = exact(bound)
    if number is None:
        raise PolicyError(f"{word}({bound!r}): a bound is a finite number.")
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
    try:
        _recogniser(pattern)
    except GrammarError as error:
        raise PolicyError(f"matches({pattern!r}) cannot be enforced: {error}") from error
    return Matches(pattern, steer)


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
        return (_fragment(value, where),)
    if value is None or isinstance(value, str | bool | int | float):
        return (one_of(value),)
    raise PolicyError(
        f"where={{{where!r}: {value!r}}} is no constraint: give a constant, le(...) and its neighbours, several of "
        "these in a tuple, or a JSON Schema."
    )


def _fragment(schema: Mapping[str, Any], where: str) -> Constraint:
    import jsonschema

    try:
        text = json.dumps(schema, sort_keys=True, allow_nan=False)
        jsonschema.Draft202012Validator.check_schema(json.loads(text))
    except (TypeError, ValueError, jsonschema.SchemaError) as error:
        told = getattr(error, "message", str(error))
        raise PolicyError(f"where={{{where!r}: ...}} holds a dict that is not a JSON Schema: {told}.") from error
    if '"$ref"' in text or '"$dynamicRef"' in text:
        raise PolicyError(f"where={{{where!r}: ...}} holds a schema with $ref: write what it refers to in its place.")
    return Fragment(text)
