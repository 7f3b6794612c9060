"""What a rule may ask besides who calls what: how often, after what, and whether outsiders have had their say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, get_args

from agentgram.errors import PolicyError

Per: TypeAlias = Literal["run", "session", "day"]


class State(Protocol):
    """What rules may know of the run that asks."""

    @property
    def tainted(self) -> bool:
        """Whether text of outsiders is part of the conversation."""
        ...

    def used(self, rule: str, per: Per) -> int:
        """How many calls the rule has let through in this run, this session, or for this user on this day."""
        ...

    def done(self, tool: str) -> Iterable[Mapping[str, Any]]:
        """The arguments of the calls of a tool that have succeeded in this conversation."""
        ...


class Nothing:
    """The state in which nothing has happened yet."""

    tainted = False

    def used(self, rule: str, per: Per) -> int:  # noqa: ARG002
        """None."""
        return 0

    def done(self, tool: str) -> Iterable[Mapping[str, Any]]:  # noqa: ARG002
        """None."""
        return ()


NOTHING = Nothing()


class Condition(ABC):
    """Something that has to be so for a rule to matter. Made by :func:`times`, :func:`after` and :func:`tainted`."""

    @abstractmethod
    def __str__(self) -> str: ...


@dataclass(frozen=True)
class Times(Condition):
    """A number of calls."""

    most: int
    per: Per

    def __str__(self) -> str:
        return f"times({self.most}, per={self.per!r})"


@dataclass(frozen=True)
class After(Condition):
    """An earlier call."""

    tool: str
    same: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.same:
            return f"after({self.tool!r})"
        same = self.same[0] if len(self.same) == 1 else list(self.same)
        return f"after({self.tool!r}, same={same!r})"


@dataclass(frozen=True)
class Tainted(Condition):
    """Text of outsiders in the conversation."""

    def __str__(self) -> str:
        return "tainted()"


def times(most: int, *, per: Per = "run") -> Condition:
    """Holds for so many calls that the rule lets through.

    Args:
        most: How many.
        per: In one ``run``; in one ``session``; or for one user in one ``day`` (UTC). The last two are counted where
            the run's session is kept, before a call is made, so that they hold across processes. A rule is counted
            under its ``name``, or what it says: name a rule whose count should outlast a change.

    Raises:
        PolicyError: The number is below 1, or ``per`` is another word.
    """
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise PolicyError(f"times({most!r}): it must be a whole number of at least 1.")
    if per not in get_args(Per):
        raise PolicyError(f"times({most}, per={per!r}): use 'run', 'session' or 'day'.")
    return Times(most, per)


def after(tool: str, *, same: str | Iterable[str] = ()) -> Condition:
    """Holds once a call of another tool has succeeded in the conversation, in an earlier turn.

    Args:
        tool: The other tool's name.
        same: Arguments that have to be as they were there: otherwise confirming order 1 would unlock order 2.

    Raises:
        PolicyError: Something is not a name.
    """
    names = (same,) if isinstance(same, str) else tuple(sorted(same))
    for name in (tool, *names):
        if not isinstance(name, str) or not name:
            raise PolicyError(f"after({tool!r}, same={same!r}): tools and arguments are named by non-empty strings.")
    return After(tool, names)


def tainted() -> Condition:
    """Holds once a tool's result is part of the conversation, unless the tool is declared ``output="trusted"``."""
    return Tainted()
