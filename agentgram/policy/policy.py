"""Who may call what: rules without an order, and the one function that decides."""

from __future__ import annotations

import fnmatch
import functools
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias

from agentgram.errors import PolicyError, nearest
from agentgram.principal import Principal
from agentgram.tools.decorator import Tool, as_tool
from agentgram.tools.definition import ToolDefinition

Effect: TypeAlias = Literal["allow", "ask", "deny"]
Outcome: TypeAlias = Literal["allowed", "ask", "denied"]
Words: TypeAlias = str | Collection[str]

NO_RULE = "no rule allows it"
"""What a decision names as its rule when nothing matched."""
_GLOB = re.compile(r"[A-Za-z0-9_.\-*?\[\]!]+\Z")


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
    name: str = ""
    """What the audit calls the rule; its text by default."""

    def __str__(self) -> str:
        if self.name:
            return self.name
        words = [repr(glob) for glob in self.tools]
        given = {"tags": self.tags, "users": self.users, "roles": self.roles}
        words += [f"{key}={sorted(value)}" for key, value in given.items() if value]
        return f"{self.effect}({', '.join(words)})"

    def matches(self, principal: Principal, definition: ToolDefinition) -> bool:
        """Whether the rule speaks of this user and this tool."""
        return (
            (not self.users or principal.id in self.users)
            and (not self.roles or not self.roles.isdisjoint(principal.roles))
            and (not self.tags or not self.tags.isdisjoint(definition.tags))
            and any(_matcher(glob)(definition.name) and self._reaches(glob, definition) for glob in self.tools)
        )

    def _reaches(self, glob: str, definition: ToolDefinition) -> bool:
        """Whether a rule may speak of this tool: one that grants reaches foreign tools only where it names them."""
        if self.effect == "deny" or not definition.source:
            return True
        return glob.startswith(f"{definition.source}.") or glob == definition.name


@functools.lru_cache(maxsize=4096)
def _matcher(glob: str) -> Any:
    return re.compile(fnmatch.translate(glob)).match


def allow(*tools: str, tags: Words = (), users: Words = (), roles: Words = (), name: str = "") -> Rule:
    """A rule that allows calls.

    Args:
        *tools: Globs of qualified tool names: ``*`` is any text, ``?`` one character, ``[ab]`` one of these.
        tags: Only tools with one of these tags.
        users: Only users with one of these ids.
        roles: Only users with one of these roles.
        name: What the audit calls the rule.

    Raises:
        PolicyError: No tool is named, or a glob could match no tool's name.
    """
    return _rule("allow", tools, tags, users, roles, name)


def ask(*tools: str, tags: Words = (), users: Words = (), roles: Words = (), name: str = "") -> Rule:
    """A rule that lets a person decide about each call; the arguments are those of :func:`allow`.

    Raises:
        PolicyError: No tool is named, or a glob could match no tool's name.
    """
    return _rule("ask", tools, tags, users, roles, name)


def deny(*tools: str, tags: Words = (), users: Words = (), roles: Words = (), name: str = "") -> Rule:
    """A rule that refuses calls, whatever else allows them; the arguments are those of :func:`allow`.

    Raises:
        PolicyError: No tool is named, or a glob could match no tool's name.
    """
    return _rule("deny", tools, tags, users, roles, name)


def _rule(effect: Effect, tools: Iterable[str], tags: Words, users: Words, roles: Words, name: str) -> Rule:
    globs = tuple(tools)
    if not globs:
        raise PolicyError(f"{effect}() names no tool: write {effect}('*') for every tool.")
    for glob in globs:
        if not isinstance(glob, str) or not _GLOB.match(glob):
            raise PolicyError(
                f"{effect}({glob!r}) can match no tool: a glob is made of the ASCII letters, digits, '_', '-' and '.' "
                "of tool names, and of '*', '?' and '[...]'."
            )
    words = {"tags": tags, "users": users, "roles": roles}
    return Rule(
        effect=effect, tools=globs, name=name, **{key: _words(effect, key, value) for key, value in words.items()}
    )


def _words(effect: str, key: str, value: Words) -> frozenset[str]:
    words = (value,) if isinstance(value, str) else tuple(value)
    for word in words:
        if not isinstance(word, str) or not word:
            raise PolicyError(f"{effect}(..., {key}={value!r}): {key} are non-empty strings.")
    return frozenset(words)


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What a policy says of one user and one tool."""

    outcome: Outcome
    rule: str
    """The rule that decided, for the audit; never shown to the model."""
    narrowed: ToolDefinition | None = None
    """The tool as this user may call it; None when it is denied."""

    @property
    def allowed(self) -> bool:
        """The call may run."""
        return self.outcome == "allowed"

    @property
    def ask(self) -> bool:
        """A person has to decide first."""
        return self.outcome == "ask"

    @property
    def denied(self) -> bool:
        """The call must not run."""
        return self.outcome == "denied"


class Policy:
    """Rules without an order: a matching deny wins, allows unite, what nothing matches is denied.

    Where both an ``ask`` and an ``allow`` match, the call is allowed: a person is asked only for what is not allowed
    already.
    """

    def __init__(self, *rules: Rule) -> None:
        """Args:
            *rules: What :func:`allow`, :func:`ask` and :func:`deny` made.

        Raises:
            PolicyError: Something is not a rule.
        """
        for rule in rules:
            if not isinstance(rule, Rule):
                raise PolicyError(f"{rule!r} is not a rule: use allow(...), ask(...) and deny(...).")
        self.rules = rules

    def __repr__(self) -> str:
        return f"Policy({', '.join(map(str, self.rules))})"

    def decide(self, principal: Principal, tool: Any, arguments: Mapping[str, Any] | None = None) -> Decision:
        """Whether a user may call a tool.

        Prompt, grammar and executor all ask this function, so that they cannot disagree.

        Args:
            principal: The user.
            tool: A definition, a tool or a function.
            arguments: The call's arguments; None asks whether there is any call at all that may be made. Rules that
                look at arguments do not exist yet, so both questions have the same answer.

        Raises:
            PolicyError: ``principal`` is not a :class:`Principal`.
            DefinitionError: ``tool`` is not a tool.
        """
        del arguments  # no rule looks at them yet
        if not isinstance(principal, Principal):
            raise PolicyError(
                f"a policy decides for a Principal, not for {principal!r}: pass Principal('id', roles=...)."
            )
        definition = _definition(tool)
        matching = [rule for rule in self.rules if rule.matches(principal, definition)]
        for effect, outcome in (("deny", "denied"), ("allow", "allowed"), ("ask", "ask")):
            names = sorted(str(rule) for rule in matching if rule.effect == effect)
            if names:
                narrowed = None if outcome == "denied" else definition
                # The first by name and not by place: the order of rules changes nothing, this included.
                return Decision(outcome=outcome, rule=names[0], narrowed=narrowed)  # type: ignore[arg-type]
        return Decision(outcome="denied", rule=NO_RULE)

    def tools_for(self, principal: Principal, tools: Iterable[Any]) -> list[ToolDefinition]:
        """The tools that a user may call, as they may call them; those that a person is asked about included.

        Raises:
            PolicyError: ``principal`` is not a :class:`Principal`.
            DefinitionError: Something in ``tools`` is not a tool.
        """
        decisions = (self.decide(principal, tool) for tool in tools)
        return [d.narrowed for d in decisions if d.narrowed is not None]

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Policy:
        """Reads a policy from a TOML file.

        ::

            [[allow]]
            tools = ["get_*"]

            [[deny]]
            tools = ["wipe"]
            roles = ["support"]

        Each ``[[allow]]``, ``[[ask]]`` and ``[[deny]]`` has ``tools`` and may have ``tags``, ``users``, ``roles`` and
        ``name``.

        Raises:
            PolicyError: The file cannot be read, or says something that is not a rule.
        """
        try:
            data = tomllib.loads(Path(path).read_text("utf-8"))
        except OSError as error:
            raise PolicyError(f"no policy can be read from {path}: {error.strerror or error}.") from error
        except ValueError as error:
            raise PolicyError(f"{path} is not TOML: {error}.") from error
        return cls(*_rules(data, str(path)))


_MAKERS = {"allow": allow, "ask": ask, "deny": deny}
_KEYS = ("tools", "tags", "users", "roles", "name")


def _rules(data: Mapping[str, Any], path: str) -> Iterable[Rule]:
    for effect, entries in data.items():
        if effect not in _MAKERS:
            raise PolicyError(f"{path}: a policy has no {effect!r}. {nearest(effect, _MAKERS)}")
        if not isinstance(entries, list):
            raise PolicyError(f"{path}: write [[{effect}]] with two brackets; each one is a rule.")
        for number, entry in enumerate(entries, start=1):
            where = f"{path}: [[{effect}]] number {number}"
            if not isinstance(entry, dict):
                raise PolicyError(f"{where} is {entry!r}: it must be a table.")
            yield _rule_from(effect, dict(entry), where)


def _rule_from(effect: str, entry: dict[str, Any], where: str) -> Rule:
    for key, value in entry.items():
        if key not in _KEYS:
            raise PolicyError(f"{where} has {key!r}, which no rule has. {nearest(key, _KEYS)}")
        if key == "name" and not isinstance(value, str):
            raise PolicyError(f"{where}: name is {value!r}, it must be a string.")
        if key != "name" and not isinstance(value, str | list):
            raise PolicyError(f"{where}: {key} is {value!r}, it must be a string or a list of strings.")
    tools = entry.pop("tools", [])
    try:
        return _MAKERS[effect](*([tools] if isinstance(tools, str) else tools), **entry)
    except PolicyError as error:
        raise PolicyError(f"{where}: {error}") from error


def _definition(tool: Any) -> ToolDefinition:
    if isinstance(tool, ToolDefinition):
        return tool
    return tool.definition if isinstance(tool, Tool) else as_tool(tool).definition
