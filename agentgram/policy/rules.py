"""Rules: what :func:`allow`, :func:`ask` and :func:`deny` make."""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from agentgram.errors import PolicyError
from agentgram.policy.conditions import After, Condition, State, Tainted, Times
from agentgram.policy.constraints import constraints_of, one_of
from agentgram.policy.narrowing import Where, of_user
from agentgram.policy.predicates import Constraint
from agentgram.principal import Principal
from agentgram.tools.definition import ToolDefinition

Effect: TypeAlias = Literal["allow", "ask", "deny"]
Words: TypeAlias = str | Collection[str] | None
When: TypeAlias = Condition | Collection[Condition]
_GLOB = re.compile(r"(?:[A-Za-z0-9_.\-*?]|\[!?[A-Za-z0-9_.\-]+\])+\Z")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule; made by :func:`allow`, :func:`ask` and :func:`deny`."""

    effect: Effect
    tools: tuple[str, ...]
    """Globs of qualified tool names; one has to match."""
    tags: frozenset[str] = frozenset()
    """Tags of the tool; one has to match, where any are given."""
    users: frozenset[str] = frozenset()
    """Ids of users; one has to match, where any are given."""
    roles: frozenset[str] = frozenset()
    """Roles of the user; one has to match, where any are given."""
    where: Where = ()
    """Constraints by argument; all have to hold."""
    when: tuple[Condition, ...] = ()
    """What has to be so besides; all of it."""
    by: frozenset[str] = frozenset()
    """Roles one of which a person needs who decides about a call; anybody but the user where none is given."""
    name: str = ""
    """What the audit calls the rule; its text by default."""

    def __str__(self) -> str:
        return self.name or self._text

    @property
    def place(self) -> tuple[str, str]:
        """What rules are sorted by: their order must change nothing, not even which of two is named."""
        return str(self), self._text

    @functools.cached_property
    def _text(self) -> str:
        words = [repr(glob) for glob in self.tools]
        given = {"tags": self.tags, "users": self.users, "roles": self.roles}
        words += [f"{key}={sorted(value)}" for key, value in given.items() if value]
        if self.where:
            words.append(f"where={{{', '.join(f'{key!r}: {_joined(value)}' for key, value in self.where)}}}")
        if self.when:
            words.append(f"when={_joined(self.when)}")
        if self.by:
            words.append(f"by={sorted(self.by)}")
        return f"{self.effect}({', '.join(words)})"

    def matches(self, principal: Principal, definition: ToolDefinition) -> bool:
        """Whether the rule speaks of this user and this tool."""
        return self.concerns(definition) and self.includes(principal)

    def concerns(self, definition: ToolDefinition) -> bool:
        """Whether the rule speaks of this tool."""
        return (not self.tags or not self.tags.isdisjoint(definition.tags)) and any(
            _matcher(glob)(definition.name) and self._reaches(glob, definition) for glob in self.tools
        )

    def includes(self, principal: Principal) -> bool:
        """Whether the rule speaks of this user."""
        return (not self.users or principal.id in self.users) and (
            not self.roles or not self.roles.isdisjoint(principal.roles)
        )

    def _reaches(self, glob: str, definition: ToolDefinition) -> bool:
        """Whether a rule may speak of this tool: one that grants reaches foreign tools only where it names them."""
        if self.effect == "deny" or not definition.source:
            return True
        return glob.startswith(f"{definition.source}.") or glob == definition.name

    def variants(self, user: Principal, state: State) -> list[Where]:
        """What the rule asks of arguments as things are: one of these. Empty where it does not matter now."""
        out = self.standing(state)
        return [of_user(where, user) for where in out] if self.personal else out

    def standing(self, state: State) -> list[Where]:
        """The same for everybody: what is a user's own is still spoken of as that."""
        out = [self.where]
        for condition in self.when:
            match condition:
                case Tainted():
                    out = out if state.tainted else []
                case Times(most=most, per=per):
                    out = out if state.used(str(self), per) < most else []
                case After():
                    out = _after(out, condition, state)
        return out

    @functools.cached_property
    def personal(self) -> bool:
        """Whether what is asked of arguments is another thing for each user."""
        one, other = (of_user(self.where, Principal(name)) for name in ("one", "other"))
        return one != other

    @functools.cached_property
    def counts(self) -> bool:
        """Whether the rule lets a number of calls through."""
        return any(isinstance(c, Times) for c in self.when)

    def left(self, state: State) -> int | None:
        """How many more calls the rule lets through now; None where it does not count."""
        counts = [c.most - state.used(str(self), c.per) for c in self.when if isinstance(c, Times)]
        return max(0, min(counts)) if counts else None


def _after(variants: list[Where], condition: After, state: State) -> list[Where]:
    earlier = list(state.done(condition.tool))
    if not condition.same:
        return variants if earlier else []
    wanted: list[Where] = []
    for arguments in earlier:
        if all(name in arguments for name in condition.same):
            try:
                more: Where = tuple((name, (one_of(arguments[name]),)) for name in condition.same)
            except PolicyError:  # it was no JSON, as infinity is none, so nothing is the same
                continue
            if more not in wanted:
                wanted.append(more)
    return [_both(where, more) for where in variants for more in wanted]


def _both(a: Where, b: Where) -> Where:
    joined: dict[str, tuple[Constraint, ...]] = dict(a)
    for key, constraints in b:
        joined[key] = (*joined.get(key, ()), *constraints)
    return tuple(sorted(joined.items()))


def _joined(items: Iterable[object]) -> str:
    words = list(map(str, items))
    return words[0] if len(words) == 1 else f"({', '.join(words)})"


@functools.lru_cache(maxsize=4096)
def _matcher(glob: str) -> Callable[[str], object]:
    return re.compile(fnmatch.translate(glob)).match


def allow(
    *tools: str,
    tags: Words = None,
    users: Words = None,
    roles: Words = None,
    where: Mapping[str, Any] | None = None,
    when: When = (),
    name: str = "",
) -> Rule:
    """A rule that allows calls.

    Args:
        *tools: Globs of qualified tool names: ``*`` is any text, ``?`` one character, ``[ab]`` one of these.
        tags: Only tools with one of these tags.
        users: Only users with one of these ids.
        roles: Only users with one of these roles.
        where: Only calls whose arguments satisfy this: by argument a constant, a constraint such as ``le(50)``, several
            in a tuple, or a JSON Schema as a dict.
        when: Only while this is so: ``times(...)``, ``after(...)``, ``tainted()``, or several.
        name: What the audit calls the rule.

    Raises:
        PolicyError: No tool is named, a glob could match no tool's name, or a constraint or condition is none.
    """
    return _rule("allow", tools, tags, users, roles, where, when, None, name)


def ask(
    *tools: str,
    tags: Words = None,
    users: Words = None,
    roles: Words = None,
    where: Mapping[str, Any] | None = None,
    when: When = (),
    by: Words = None,
    name: str = "",
) -> Rule:
    """A rule that lets a person decide about each call; the arguments are those of :func:`allow`.

    Args:
        *tools: As for :func:`allow`, and so are the others.
        tags: Only tools with one of these tags.
        users: Only users with one of these ids.
        roles: Only users with one of these roles.
        where: Only calls whose arguments satisfy this.
        when: Only while this is so.
        by: Roles one of which that person needs; anybody but the user where none is given.
        name: What the audit calls the rule.

    Raises:
        PolicyError: As for :func:`allow`.
    """
    return _rule("ask", tools, tags, users, roles, where, when, by, name)


def deny(
    *tools: str,
    tags: Words = None,
    users: Words = None,
    roles: Words = None,
    where: Mapping[str, Any] | None = None,
    when: When = (),
    name: str = "",
) -> Rule:
    """A rule that refuses calls, whatever else allows them; the arguments are those of :func:`allow`.

    With ``where``, it refuses each call that does not surely escape it: ``deny("pay", where={"amount": gt(100)})`` lets
    numbers up to 100 through, and no null, nor a text.

    Raises:
        PolicyError: As for :func:`allow`; or the condition is one that only grants have, or the constraint has no
            opposite.
    """
    rule = _rule("deny", tools, tags, users, roles, where, when, None, name)
    for condition in rule.when:
        if not isinstance(condition, Tainted):
            raise PolicyError(f"{condition} belongs to allow(...) and ask(...): deny(...) takes tainted().")
    for _, constraints in rule.where:
        for constraint in constraints:
            constraint.of(Principal("anybody")).complement()
    return rule


def _rule(
    effect: Effect,
    tools: Iterable[str],
    tags: Words,
    users: Words,
    roles: Words,
    where: Mapping[str, Any] | None,
    when: When,
    by: Words,
    name: str,
) -> Rule:
    globs = tuple(tools)
    if not globs:
        raise PolicyError(f"{effect}() names no tool: write {effect}('*') for every tool.")
    for glob in globs:
        if not isinstance(glob, str) or not _GLOB.match(glob):
            raise PolicyError(
                f"{effect}({glob!r}) can match no tool: a glob is made of the ASCII letters, digits, '_', '-' and '.' "
                "of tool names, and of '*', '?' and '[...]'."
            )
    words = {"tags": tags, "users": users, "roles": roles, "by": by}
    return Rule(
        effect=effect,
        tools=globs,
        name=name,
        where=_where(where),
        when=_when(effect, when),
        **{key: _words(effect, key, value) for key, value in words.items()},
    )


def _where(where: Mapping[str, Any] | None) -> Where:
    if where is None:
        return ()
    if not isinstance(where, Mapping) or not all(isinstance(key, str) and key for key in where):
        raise PolicyError(f"where={where!r}: it must be a dict from arguments' names to what they may be.")
    return tuple(sorted((key, constraints_of(value, key)) for key, value in where.items()))


def _when(effect: str, when: When) -> tuple[Condition, ...]:
    conditions = (when,) if isinstance(when, Condition) else tuple(when)
    for condition in conditions:
        if not isinstance(condition, Condition):
            raise PolicyError(f"{effect}(..., when={when!r}): use times(...), after(...) and tainted().")
    return tuple(sorted(set(conditions), key=str))


def _words(effect: str, key: str, value: Words) -> frozenset[str]:
    if value is None:
        return frozenset()
    words = (value,) if isinstance(value, str) else tuple(value)
    if not words:  # not all of them: a list that somebody made may turn out empty
        raise PolicyError(f"{effect}(..., {key}={value!r}) names none: leave {key} out where any will do.")
    for word in words:
        if not isinstance(word, str) or not word:
            raise PolicyError(f"{effect}(..., {key}={value!r}): {key} are non-empty strings.")
    return frozenset(words)
