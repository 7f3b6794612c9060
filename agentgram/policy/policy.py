"""Who may call what with which arguments: rules without an order, and the one function that decides."""

from __future__ import annotations

import copy
import hashlib
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Literal, TypeAlias

from agentgram.errors import PolicyError
from agentgram.policy.conditions import NOTHING, State, Times
from agentgram.policy.loading import read
from agentgram.policy.narrowing import MISSING, Where, default_of, granted, narrowed, refused, spelled_alike
from agentgram.policy.rules import Rule
from agentgram.principal import Principal
from agentgram.tools.decorator import Tool, as_tool
from agentgram.tools.definition import ToolDefinition

Outcome: TypeAlias = Literal["allowed", "ask", "denied"]
Path: TypeAlias = tuple[str | int, ...]

NO_RULE = "no rule allows it"
"""What a decision names as its rule when nothing matched."""
_KEPT = 100_000
"""How many answers a policy keeps for questions that come again."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What a policy says of one user and one tool, or of one call."""

    outcome: Outcome
    rule: str
    """The rule that decided, for the audit; never shown to the model."""
    path: Path = ()
    """The argument that the rule does not let through; empty where the tool as such is denied, or nothing is."""
    narrowed: ToolDefinition | None = None
    """The tool as this user may call it; None when it is denied, or one call was asked about."""
    steered: ToolDefinition | None = None
    """The tool as the model may want it: narrowed by what is declared ``steer=True`` only."""
    left: int | None = None
    """How many calls may be made in one turn; None for any number."""
    counted: tuple[Rule, ...] = ()
    """Rules that count calls, one of which has to let this one through; none where no count matters."""
    by: frozenset[str] = frozenset()
    """Roles one of which a person needs who decides; anybody but the user where none is given."""

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


@dataclass(frozen=True, kw_only=True)
class Narrowed:
    """Tools as one user may call them now."""

    permitted: tuple[ToolDefinition, ...]
    """Those that may be called, as they may be: what is appended."""
    sampled: tuple[ToolDefinition, ...]
    """All of them, narrowed only by what is declared ``steer=True``: what is sampled from."""
    left: Mapping[str, int] = field(default_factory=dict)
    """How many calls of a tool one turn may hold, for tools whose calls are counted."""


class Policy:
    """Rules without an order: a matching deny wins, allows unite, what nothing matches is denied.

    Where both an ``ask`` and an ``allow`` match, the call is allowed: a person is asked only for what is not allowed
    already. Safe to share between threads.
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
        self._path: str | PathLike[str] | None = None
        self._answers = _Answers(rules)

    def __repr__(self) -> str:
        return f"Policy({', '.join(map(str, self.rules))})"

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules as they are now."""
        return self._answers.rules

    @property
    def counting(self) -> tuple[Rule, ...]:
        """The rules that count calls where the session is kept."""
        return self._answers.counting

    @property
    def version(self) -> str:
        """A hash of the rules as they are now, whatever their order."""
        return self._answers.version

    def snapshot(self) -> Policy:
        """The policy as it is now: later changes of this one do not reach it."""
        frozen = copy.copy(self)
        frozen._path = None
        return frozen

    def replace(self, *rules: Rule) -> None:
        """Puts other rules in the place of these, also for runs that go on: their next call is decided by both.

        Raises:
            PolicyError: Something is not a rule; then nothing changes.
        """
        self._answers = Policy(*rules)._answers

    def reload(self) -> None:
        """Reads the file again that the policy was loaded from; see :meth:`replace`.

        Raises:
            PolicyError: It was not loaded from a file, or the file is wrong; then nothing changes.
        """
        if self._path is None:
            raise PolicyError("this policy was not loaded from a file: use policy.replace(...).")
        self.replace(*read(self._path))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Policy:
        """Reads a policy from a TOML file.

        ::

            [[allow]]
            tools = ["refund"]
            roles = ["support"]
            where.amount = { le = 50 }
            where.customer = "$user.id"

            [[deny]]
            tools = ["*"]
            tags = ["write"]
            when = { tainted = true }

        Each ``[[allow]]``, ``[[ask]]`` and ``[[deny]]`` has ``tools``, and may have what the functions of these names
        take.

        Raises:
            PolicyError: The file cannot be read, or says something that is not a rule.
        """
        policy = cls(*read(path))
        policy._path = path
        return policy

    def decide(
        self,
        principal: Principal,
        tool: Any,
        arguments: Mapping[str, Any] | None = None,
        *,
        value: Mapping[str, Any] | None = None,
        state: State = NOTHING,
    ) -> Decision:
        """Whether a user may call a tool.

        Prompt, grammar, executor, approvals and audit all ask this function, so that they cannot disagree.

        Args:
            principal: The user.
            tool: A definition, a tool or a function.
            arguments: The call's arguments as JSON values; None asks what may be called at all, and narrows the tool.
            value: What validation made of the arguments, by the same names; constraints have to hold for both.
            state: What has happened in the run so far.

        Raises:
            PolicyError: ``principal`` is not a :class:`Principal`.
            DefinitionError: ``tool`` is not a tool, or a rule speaks of an argument that it does not have.
        """
        if not isinstance(principal, Principal):
            raise PolicyError(
                f"a policy decides for a Principal, not for {principal!r}: pass Principal('id', roles=...)."
            )
        definition = _definition(tool)
        rules = self._answers.matching(principal, definition)
        if arguments is not None:
            return _of_call(rules, principal, definition, arguments, value, state)
        if any(rule.when for rule in rules):
            return _of_tool(rules, principal, definition, state)
        return self._answers.of_tool(rules, principal, definition)

    def narrow(
        self, principal: Principal, definitions: tuple[ToolDefinition, ...], *, state: State = NOTHING
    ) -> Narrowed:
        """All that one step of a run has to know of its tools. The same question gets the same objects.

        Raises:
            PolicyError: ``principal`` is not a :class:`Principal`.
            DefinitionError: A rule speaks of an argument that a tool does not have.
        """
        key = (principal, id(definitions))
        found = self._answers.narrowed.get(key)
        if found is not None and found[0] is definitions:
            return found[1]
        decisions = [self.decide(principal, definition, state=state) for definition in definitions]
        sampled = tuple(
            definition if decision.steered is None else decision.steered
            for definition, decision in zip(definitions, decisions, strict=True)
        )
        narrow = Narrowed(
            permitted=tuple(d.narrowed for d in decisions if d.narrowed is not None),
            sampled=definitions if sampled == definitions else sampled,
            left={t.name: d.left for t, d in zip(definitions, decisions, strict=True) if d.left is not None},
        )
        if not any(rule.when for t in definitions for rule in self._answers.matching(principal, t)):
            self._answers.keep(self._answers.narrowed, key, (definitions, narrow))
        return narrow

    def tools_for(self, principal: Principal, tools: Iterable[Any], *, state: State = NOTHING) -> list[ToolDefinition]:
        """The tools that a user may call, as they may call them; those that a person is asked about included.

        Raises:
            PolicyError: ``principal`` is not a :class:`Principal`.
            DefinitionError: Something in ``tools`` is not a tool, or a rule speaks of an argument that it has not.
        """
        decisions = (self.decide(principal, tool, state=state) for tool in tools)
        return [d.narrowed for d in decisions if d.narrowed is not None]


class _Answers:
    """One version of the rules, and the answers that do not depend on a call or a state."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules = rules
        texts = sorted(f"{rule._text} {rule.name}" for rule in rules)
        self.counting = tuple(rule for rule in rules if any(isinstance(c, Times) and c.per != "run" for c in rule.when))
        self.version = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
        self._concerning: dict[tuple[str, frozenset[str], str], tuple[Rule, ...]] = {}
        self._matching: dict[tuple[Principal, str, frozenset[str], str], tuple[Rule, ...]] = {}
        self._of_tool: dict[tuple[Any, ...], tuple[ToolDefinition, Decision]] = {}
        self.narrowed: dict[tuple[Principal, int], tuple[tuple[ToolDefinition, ...], Narrowed]] = {}
        self._lock = threading.Lock()

    def matching(self, principal: Principal, definition: ToolDefinition) -> tuple[Rule, ...]:
        """The rules that speak of a user and a tool."""
        tool = (definition.name, definition.tags, definition.source)
        found = self._matching.get((principal, *tool))
        if found is None:
            concerning = self._concerning.get(tool)
            if concerning is None:
                concerning = tuple(sorted((rule for rule in self.rules if rule.concerns(definition)), key=str))
                self.keep(self._concerning, tool, concerning)
            # By text and not by place: the order of rules changes nothing, the named rule included.
            found = tuple(rule for rule in concerning if rule.includes(principal))
            self.keep(self._matching, (principal, *tool), found)
        return found

    def of_tool(self, rules: tuple[Rule, ...], principal: Principal, definition: ToolDefinition) -> Decision:
        """What the rules say of a tool as such."""
        who = principal if any(rule.personal for rule in rules) else None
        key = (who, *map(id, rules), id(definition))
        found = self._of_tool.get(key)
        if found is None or found[0] is not definition:
            found = (definition, _of_tool(rules, principal, definition, NOTHING))
            self.keep(self._of_tool, key, found)
        return found[1]

    def keep(self, answers: dict[Any, Any], key: Any, value: Any) -> None:
        """Keeps an answer; all are forgotten where there are too many."""
        with self._lock:
            if len(answers) >= _KEPT:
                answers.clear()
            answers[key] = value


# ---- of a tool ----


def _of_tool(rules: Sequence[Rule], user: Principal, definition: ToolDefinition, state: State) -> Decision:
    denials: list[Where] = []
    for rule in rules:
        if rule.effect == "deny":
            for where in rule.variants(user, state):
                if not where:
                    return Decision(outcome="denied", rule=str(rule))
                denials.append(where)
    grants = [(rule, where) for rule in rules if rule.effect != "deny" for where in rule.variants(user, state)]
    if not grants:
        return Decision(outcome="denied", rule=_unmet(rules))
    allows = [rule for rule, _ in grants if rule.effect == "allow"]
    first = (allows or [rule for rule, _ in grants])[0]
    limits = {str(rule): rule.left(state) for rule, _ in grants}
    wheres = [where for _, where in grants]
    permitted = _narrowed(definition, wheres, denials)
    sampled = definition
    if any(c.steer for where in (*wheres, *denials) for _, constraints in where for c in constraints):
        sampled = _narrowed(definition, [*map(_steering, wheres)], [w for w in map(_steering, denials) if w])
    return Decision(
        outcome="allowed" if allows else "ask",
        rule=str(first),
        narrowed=permitted,
        steered=spelled_alike(sampled, permitted),
        left=None if None in limits.values() else sum(n for n in limits.values() if n is not None),
        by=first.by,
    )


def _narrowed(definition: ToolDefinition, grants: list[Where], denials: list[Where]) -> ToolDefinition:
    return narrowed(
        definition,
        [granted(definition, where) for where in grants],
        [refused(definition, where) for where in denials],
    )


def _steering(where: Where) -> Where:
    kept = ((key, tuple(c for c in constraints if c.steer)) for key, constraints in where)
    return tuple((key, constraints) for key, constraints in kept if constraints)


def _unmet(rules: Sequence[Rule]) -> str:
    """Which rule would allow, were its conditions met."""
    return next((str(rule) for rule in rules if rule.effect != "deny"), NO_RULE)


# ---- of a call ----


def _of_call(
    rules: Sequence[Rule],
    user: Principal,
    definition: ToolDefinition,
    arguments: Mapping[str, Any],
    value: Mapping[str, Any] | None,
    state: State,
) -> Decision:
    for rule in rules:
        for where in rule.variants(user, state) if rule.effect == "deny" else ():
            if not _escapes(where, definition, arguments, value):
                return Decision(outcome="denied", rule=str(rule), path=tuple(key for key, _ in where[:1]))
    nearest: tuple[int, str, Path] | None = None
    holding: list[Rule] = []
    for rule in rules:
        if rule.effect == "deny":
            continue
        for where in rule.variants(user, state):
            wrong = _wrong(where, definition, arguments, value)
            if not wrong:
                holding.append(rule)
                break
            candidate = (len(wrong), str(rule), (wrong[0],))
            nearest = candidate if nearest is None else min(nearest, candidate)
    if not holding:
        return Decision(
            outcome="denied", rule=nearest[1] if nearest else _unmet(rules), path=nearest[2] if nearest else ()
        )
    allows = [rule for rule in holding if rule.effect == "allow"]
    deciding = allows or holding
    free = [rule for rule in deciding if not any(isinstance(c, Times) for c in rule.when)]
    return Decision(
        outcome="allowed" if allows else "ask",
        rule=str((free or deciding)[0]),
        counted=() if free else tuple(deciding),
        by=deciding[0].by,
    )


def _values(
    key: str, definition: ToolDefinition, arguments: Mapping[str, Any], value: Mapping[str, Any] | None
) -> list[Any]:
    """What an argument is: as JSON, and as validation made it. A default counts as what it is."""
    given = arguments[key] if key in arguments else default_of(definition, key)
    return [given] if value is None else [given, value.get(key, MISSING)]


def _wrong(
    where: Where,
    definition: ToolDefinition,
    arguments: Mapping[str, Any],
    value: Mapping[str, Any] | None,
) -> list[str]:
    """The arguments that do not satisfy what is asked of them."""
    return [
        key
        for key, constraints in where
        if any(
            given is MISSING or not all(c.holds(given) for c in constraints)
            for given in _values(key, definition, arguments, value)
        )
    ]


def _escapes(
    where: Where,
    definition: ToolDefinition,
    arguments: Mapping[str, Any],
    value: Mapping[str, Any] | None,
) -> bool:
    """Whether a call surely is none that a denial speaks of."""
    return any(
        all(
            given is not MISSING and any(c.fails(given) for c in constraints)
            for given in _values(key, definition, arguments, value)
        )
        for key, constraints in where
    )


def stricter(a: Decision, b: Decision) -> Decision:
    """The one of two decisions that lets less through: both versions of a policy count while it changes."""
    order: dict[Outcome, int] = {"denied": 0, "ask": 1, "allowed": 2}
    first, second = sorted((a, b), key=lambda d: order[d.outcome])
    return replace(first, counted=first.counted or second.counted) if not first.denied else first


def _definition(tool: Any) -> ToolDefinition:
    if isinstance(tool, ToolDefinition):
        return tool
    return tool.definition if isinstance(tool, Tool) else as_tool(tool).definition
