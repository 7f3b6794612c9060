"""What a policy has worked out already: found again by who asks for what, never by asking each rule anew.

Three things are kept, so that a user who is new costs little:

- which rules speak of a tool, and of a user, by an index of the texts that globs begin with, and of users and roles;
- a :class:`Standing` for each set of rules, which all users share of whom the same rules speak. It knows what tools
  come to (:class:`agentgram.policy.plans.Plan`); plans outlast a change of the rules that does not touch them;
- for users whose tools are their own, the tools of their latest steps.
"""

from __future__ import annotations

import hashlib
import operator
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from agentgram.policy.conditions import State, Times
from agentgram.policy.narrowing import Where
from agentgram.policy.plans import Pair, Plan
from agentgram.policy.rules import Rule
from agentgram.principal import Principal
from agentgram.tools.definition import ToolDefinition

Situation: TypeAlias = tuple[tuple[Where, ...], ...]
"""What each of some rules asks of arguments as things are."""
_KEPT = 20_000
"""How many answers of one kind are kept, and how many tools that are a user's own."""
_PLANS, _STANDINGS, _OF_BOARDS = 10_000, 1_000, 500_000
"""How many plans, how many standings, and how many tools of boards."""
_GLOB_SIGNS = "*?["
_NOBODY = Principal("nobody")


@dataclass(frozen=True, kw_only=True)
class Narrowed:
    """Tools as one user may call them now."""

    permitted: tuple[ToolDefinition, ...]
    """Those that may be called, as they may be: what is appended."""
    sampled: tuple[ToolDefinition, ...]
    """All of them, narrowed only by what is declared ``steer=True``: what is sampled from."""
    common: tuple[ToolDefinition, ...]
    """``permitted``, but tools that are another one for each user as in ``sampled``: the same for all users of whom the
    same rules speak."""
    left: Mapping[str, int] = field(default_factory=dict)
    """How many calls of a tool one turn may hold, for tools whose calls are counted."""


class Index:
    """Finds the rules that speak of a tool, or of a user."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        """Args:
        rules: In the order in which they are to be found.
        """
        self._rules = rules
        groups: dict[tuple[object, ...], list[int]] = {}  # rules that speak of the same tools
        for place, rule in enumerate(rules):
            groups.setdefault((rule.effect == "deny", rule.tools, rule.tags), []).append(place)
        self._by_head: dict[str, list[list[int]]] = {}
        for places in groups.values():
            for head in {_head(glob) for glob in rules[places[0]].tools}:
                self._by_head.setdefault(head, []).append(places)
        self._lengths = sorted({len(head) for head in self._by_head})
        self._everybody: list[int] = []
        self._by_user: dict[str, list[int]] = {}
        self._by_role: dict[str, list[int]] = {}
        for place, rule in enumerate(rules):
            for user in rule.users:
                self._by_user.setdefault(user, []).append(place)
            for role in () if rule.users else rule.roles:
                self._by_role.setdefault(role, []).append(place)
            if not rule.users and not rule.roles:
                self._everybody.append(place)

    def of_tool(self, definition: ToolDefinition) -> frozenset[int]:
        """Places of the rules that speak of a tool."""
        out: set[int] = set()
        for length in self._lengths:
            for places in self._by_head.get(definition.name[:length], ()):
                if self._rules[places[0]].concerns(definition):
                    out.update(places)
        return frozenset(out)

    def of_user(self, user: Principal) -> tuple[int, ...]:
        """Places of the rules that speak of a user, in order."""
        out = {*self._everybody, *(p for role in user.roles for p in self._by_role.get(role, ()))}
        out.update(p for p in self._by_user.get(user.id, ()) if self._rules[p].includes(user))
        return tuple(sorted(out))


def _head(glob: str) -> str:
    """What every name begins with that a glob matches."""
    return glob[: min((at for sign in _GLOB_SIGNS if (at := glob.find(sign)) >= 0), default=len(glob))]


class Kept:
    """Answers by question, safe to share between threads; the oldest go first where there are too many."""

    def __init__(self, most: int = _KEPT) -> None:
        self._most = most
        self._answers: OrderedDict[Any, tuple[Any, int]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, key: Any) -> Any:
        """The answer, or None."""
        found = self._answers.get(key)
        return None if found is None else found[0]

    def put(self, key: Any, value: Any, size: int = 1) -> None:
        """Keeps an answer, of which ``size`` says how much room it takes."""
        with self._lock:
            self._size += size - self._answers.pop(key, (None, 0))[1]
            self._answers[key] = (value, size)
            while self._size > self._most and len(self._answers) > 1:
                self._size -= self._answers.popitem(last=False)[1][1]


class Board:
    """What tools come to for the users of one standing, in one situation. Immutable."""

    def __init__(self, standing: Standing, definitions: tuple[ToolDefinition, ...], plans: Sequence[Plan]) -> None:
        """Args:
        standing: Whose they are.
        definitions: The tools.
        plans: What each of them comes to.
        """
        pairs = [plan.pair(_NOBODY) for plan in plans]
        sampled = tuple(wished for _, wished in pairs)
        may = [(plan, tool) for plan, (tool, _) in zip(plans, pairs, strict=True) if tool is not None]
        self.standing = standing
        self.definitions = definitions
        self.counted = tuple(plan for plan in plans if plan.counted)
        """Tools whose calls are counted."""
        self.own = tuple((place, plan) for place, (plan, _) in enumerate(may) if plan.personal)
        """Tools that are another one for each user, with their places among those that may be called."""
        self._steered = tuple((place, plan) for place, plan in enumerate(plans) if plan.personal and not plan.common)
        self._sampled = definitions if all(map(operator.is_, sampled, definitions)) else sampled
        self._permitted = tuple(tool for _, tool in may)
        self._common = None if self._steered else tuple(plan.common or tool for plan, tool in may)
        self._words = frozenset[str]().union(*(plan.words for _, plan in self.own))

    def seat(self, user: Principal, before: Seat | None) -> Seat:
        """The tools of one user.

        Args:
            user: One of the standing.
            before: What the user had last: what has not changed stays the same object, with what was made of it.
        """
        old = {} if before is None else before.own
        own = {plan: old.get(plan) or plan.pair(user) for _, plan in self.own}
        permitted, sampled = list(self._permitted), list(self._sampled)
        for place, plan in self.own:
            permitted[place] = own[plan][0] or permitted[place]
        for place, plan in self._steered:
            sampled[place] = own[plan][1]
        may = tuple(permitted) if own else self._permitted
        narrowed = Narrowed(
            permitted=may,
            sampled=tuple(sampled) if self._steered else self._sampled,
            common=may if self._common is None or not own or user.id in self._words else self._common,
        )
        return Seat(board=self, own=own, narrowed=narrowed)


@dataclass(frozen=True, kw_only=True)
class Seat:
    """A user's tools of a board."""

    board: Board
    own: Mapping[Plan, Pair]
    """What is the user's own."""
    narrowed: Narrowed


class Answers:
    """One version of the rules, and what has been worked out of it."""

    def __init__(self, rules: Sequence[Rule], before: Answers | None = None) -> None:
        """Args:
        rules: The rules.
        before: The version that this one follows: of rules that are in both, nothing is worked out again.
        """
        old: tuple[Rule, ...] = () if before is None else before.rules
        known = {rule: rule for rule in old}
        self.rules: tuple[Rule, ...] = tuple(known.get(rule, rule) for rule in rules)
        self._sorted = sorted(self.rules, key=lambda rule: rule.place)
        self.counting = tuple(r for r in self.rules if any(isinstance(c, Times) and c.per != "run" for c in r.when))
        texts = sorted(f"{rule._text} {rule.name}" for rule in self.rules)
        self.version = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
        self._index = Index(self._sorted)
        self._of_tool = Kept()
        self._of_user = Kept()
        self._standings = Kept(_STANDINGS)
        self.boards = Kept(_OF_BOARDS)
        self.plans: Kept = Kept(_PLANS) if before is None else before.plans
        self.seats: Kept = Kept() if before is None else before.seats

    def standing(self, user: Principal) -> Standing:
        """What all users share of whom the same rules speak."""
        places: tuple[int, ...] | None = self._of_user.get(user)
        if places is None:
            places = self._index.of_user(user)
            self._of_user.put(user, places)
        found: Standing | None = self._standings.get(places)
        if found is None:
            found = Standing(self, places)
            self._standings.put(places, found)
        return found

    def concerning(self, definition: ToolDefinition) -> frozenset[int]:
        """Places of the rules that speak of a tool."""
        key = (definition.name, definition.tags, definition.source)
        found: frozenset[int] | None = self._of_tool.get(key)
        if found is None:
            found = self._index.of_tool(definition)
            self._of_tool.put(key, found)
        return found

    def at(self, places: Iterable[int]) -> tuple[Rule, ...]:
        """The rules at some places."""
        return tuple(map(self._sorted.__getitem__, places))


class Standing:
    """What users share of whom the same rules speak."""

    def __init__(self, answers: Answers, places: Sequence[int]) -> None:
        """Args:
        answers: The version of the rules.
        places: Which of them speak of the users, in order.
        """
        self._answers = answers
        self._places = places
        self._matching = Kept()
        self._stateful = Kept(_STANDINGS)

    def matching(self, definition: ToolDefinition) -> tuple[Rule, ...]:
        """The rules that speak of the users and of a tool, in order."""
        key = (definition.name, definition.tags, definition.source)
        found: tuple[Rule, ...] | None = self._matching.get(key)
        if found is None:
            concerning = self._answers.concerning(definition)
            found = self._answers.at(place for place in self._places if place in concerning)
            self._matching.put(key, found)
        return found

    def plan(self, definition: ToolDefinition, state: State) -> Plan:
        """What a tool comes to.

        Raises:
            DefinitionError: A rule speaks of an argument that the tool does not have.
        """
        rules = self.matching(definition)
        return self._plan(definition, rules, {id(rule): tuple(rule.standing(state)) for rule in rules if rule.when})

    def _plan(self, definition: ToolDefinition, rules: Sequence[Rule], now: Mapping[int, tuple[Where, ...]]) -> Plan:
        key = (id(definition), *((id(rule), now[id(rule)]) if rule.when else id(rule) for rule in rules))
        found: Plan | None = self._answers.plans.get(key)  # it holds what the key names by identity
        if found is None:
            found = Plan(definition, [(rule, now[id(rule)] if rule.when else (rule.where,)) for rule in rules])
            self._answers.plans.put(key, found)
        return found

    def narrow(self, user: Principal, definitions: tuple[ToolDefinition, ...], state: State) -> Narrowed:
        """All that one step of a run has to know of its tools. The same question gets the same objects.

        Raises:
            DefinitionError: A rule speaks of an argument that a tool does not have.
        """
        board = self._board(definitions, state)
        who, seats = user if board.own else None, self._answers.seats
        seat: Seat | None = seats.get((who, id(board)))
        latest: Seat | None = seats.get((who, id(definitions)))
        if seat is None or seat.board is not board:
            seat = board.seat(user, latest if board.own else None)
            seats.put((who, id(board)), seat, 1 + len(board.own))
        if latest is not seat:
            seats.put((who, id(definitions)), seat)
        if not board.counted:
            return seat.narrowed
        left = {plan.definition.name: left for plan in board.counted if (left := plan.left(state)) is not None}
        return replace(seat.narrowed, left=left)

    def _board(self, definitions: tuple[ToolDefinition, ...], state: State) -> Board:
        stateful = self._stateful.get(id(definitions))
        if stateful is None or stateful[0] is not definitions:
            rules = {id(rule): rule for d in definitions for rule in self.matching(d) if rule.when}
            stateful = (definitions, tuple(rules.values()))
            self._stateful.put(id(definitions), stateful)
        situation: Situation = tuple(tuple(rule.standing(state)) for rule in stateful[1])
        found: Board | None = self._answers.boards.get((id(self), id(definitions), situation))
        if found is None or found.standing is not self or found.definitions is not definitions:
            now = dict(zip(map(id, stateful[1]), situation, strict=True))
            found = Board(self, definitions, [self._plan(d, self.matching(d), now) for d in definitions])
            self._answers.boards.put((id(self), id(definitions), situation), found, len(definitions))
        return found
