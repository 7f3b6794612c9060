"""What one tool comes to under some rules: worked out once, and filled in for each user.

Two users of whom the same rules speak differ in their own constants only (``same_as``). So a tool is narrowed once, for
a user whose id nobody has, and the places where that id stands are where each user's is put.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import Any, TypeAlias

from agentgram.policy.conditions import State
from agentgram.policy.constraints import OneOf
from agentgram.policy.decision import Decision, approvers, unmet
from agentgram.policy.narrowing import Where, granted, least, narrowed, of_user, refused, spelled_alike
from agentgram.policy.rules import Rule
from agentgram.principal import Principal
from agentgram.tools.definition import ToolDefinition

Said: TypeAlias = tuple[Rule, Sequence[Where]]
"""A rule, and what it asks of arguments as things are; nothing where it does not matter now."""
Pair: TypeAlias = tuple[ToolDefinition | None, ToolDefinition]
"""A tool as it may be called, if it may, and as the model may want it."""
_SOMEBODY = Principal(f"\0{secrets.token_hex(16)}")
"""Whose id stands in no schema and no rule, and cannot be guessed."""
_Places: TypeAlias = "dict[Any, _Places] | None"
"""Where something stands in a JSON value, by keys and indexes; None: here."""


class Plan:
    """What one tool is to users of whom the same rules speak, as things are. Immutable."""

    def __init__(self, definition: ToolDefinition, said: Sequence[Said]) -> None:
        """Args:
            definition: The tool.
            said: The rules that speak of it and of the users, in their order.

        Raises:
            DefinitionError: A rule speaks of an argument that the tool does not have.
        """
        self.definition = definition
        self.said = said
        personal = any(rule.personal for rule, _ in said)
        self._common = _decided(definition, said, _SOMEBODY)
        self._permitted = _places(self._common.narrowed) if personal else None
        steered = personal and any(c.steer for _, wheres in said for where in wheres for _, cs in where for c in cs)
        self._steered = _places(self._common.steered) if steered else None
        self.personal = self._permitted is not None or self._steered is not None
        """Whether the tool is another one for each user."""
        self._grants = [rule for rule, wheres in said if rule.effect != "deny" and wheres]
        self.counted = not self._common.denied and any(rule.counts for rule in self._grants)
        """Whether rules count its calls, so that :meth:`left` is asked each time."""

    def of(self, user: Principal) -> Decision:
        """What may be called; how many calls are left is not in it."""
        if not self.personal:
            return self._common
        if user.id in self.words:  # whether it is the user's own or another's constant can matter to the result
            return _decided(self.definition, self.said, user)
        return replace(
            self._common,
            narrowed=_filled(self._common.narrowed, self._permitted, user.id),
            steered=_filled(self._common.steered, self._steered, user.id),
        )

    def pair(self, user: Principal) -> Pair:
        """The tool as it may be called, if it may, and as the model may want it."""
        if not self.personal or user.id in self.words:
            decision = self.of(user)
            return decision.narrowed, decision.steered or self.definition
        # As in ``of``, but worked out only when it is looked at.
        permitted, steered = self._own
        return (
            self._common.narrowed if permitted is None else _Own.made(permitted, user.id),
            self._common.steered or self.definition if steered is None else _Own.made(steered, user.id),
        )

    @cached_property
    def _own(self) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        pairs = ((self._common.narrowed, self._permitted), (self._common.steered, self._steered))
        permitted, steered = (
            None if tool is None or places is None else _Own.shared(tool, places) for tool, places in pairs
        )
        return permitted, steered

    def wider(self, user: Principal) -> Iterator[tuple[str, Rule, ToolDefinition]]:
        """For each argument that rules speak of: a rule that does, and the tool if none of them did."""
        about: dict[str, Rule] = {}
        for rule, wheres in self.said:
            about |= {key: about.get(key, rule) for where in wheres for key, _ in where}
        for key, rule in about.items():
            said = [(r, tuple(_without(where, key) for where in wheres)) for r, wheres in self.said]
            kept = [(r, wheres) for r, wheres in said if r.effect != "deny" or all(wheres)]
            found = _decided(self.definition, kept, user).narrowed
            if found is not None:
                yield key, rule, found

    @property
    def common(self) -> ToolDefinition | None:
        """What every user may call who may call the tool, and more: as the model may want it. None: it is another tool
        for each user even so, or nobody's own.
        """
        return self._common.steered if self.personal and self._steered is None else None

    def left(self, state: State) -> int | None:
        """How many calls the rules let through now; None for any number."""
        limits: dict[str, int | None] = {}
        for rule in self._grants:
            left, known = rule.left(state), limits.get(str(rule), 0)
            # Rules of one name share a count, and the one that lets most through decides.
            limits[str(rule)] = None if left is None or known is None else max(left, known)
        return None if None in limits.values() else sum(n for n in limits.values() if n is not None)

    @cached_property
    def words(self) -> frozenset[str]:
        """Every text that a user's id could be mistaken for."""
        properties = self.definition.schema.get("properties", {}).values()
        defaults = [p.get("default") for p in properties if isinstance(p, Mapping)]
        constants = [
            value
            for _, wheres in self.said
            for where in wheres
            for _, constraints in where
            for constraint in constraints
            if isinstance(constraint, OneOf)
            for value in constraint.values
        ]
        return frozenset(word for word in (*defaults, *constants) if isinstance(word, str))


def _decided(definition: ToolDefinition, said: Sequence[Said], user: Principal) -> Decision:
    denials: list[Where] = []
    grants: list[tuple[Rule, Where]] = []
    for rule, wheres in said:
        own = [of_user(where, user) for where in wheres] if rule.personal else wheres
        if rule.effect != "deny":
            grants += [(rule, where) for where in own]
        elif not all(own):
            return Decision(outcome="denied", rule=str(rule))
        else:
            denials += own
    if not grants:
        return Decision(outcome="denied", rule=unmet([rule for rule, _ in said]))
    allows = [rule for rule, _ in grants if rule.effect == "allow"]
    deciding = allows or [rule for rule, _ in grants]
    wheres = [where for _, where in grants]
    permitted = _narrowed(definition, wheres, denials)
    sampled = definition
    if any(c.steer for where in (*wheres, *denials) for _, constraints in where for c in constraints):
        sampled = _narrowed(definition, [*map(_steering, wheres)], [w for w in map(_steering, denials) if w])
    return Decision(
        outcome="allowed" if allows else "ask",
        rule=str(deciding[0]),
        narrowed=permitted,
        steered=spelled_alike(sampled, permitted),
        by=approvers(deciding),
    )


def _narrowed(definition: ToolDefinition, grants: Sequence[Where], denials: Iterable[Where]) -> ToolDefinition:
    return narrowed(
        definition,
        [granted(definition, where) for where in least(tuple(grants))],
        [refused(definition, where) for where in denials],
    )


def _steering(where: Where) -> Where:
    kept = ((key, tuple(c for c in constraints if c.steer)) for key, constraints in where)
    return tuple((key, constraints) for key, constraints in kept if constraints)


def _without(where: Where, key: str) -> Where:
    return tuple((name, constraints) for name, constraints in where if name != key)


# ---- a user's own ----


def _places(definition: ToolDefinition | None) -> _Places:
    return None if definition is None else _places_in(definition.schema) or None


def _places_in(value: Any) -> _Places:
    """Where somebody's id stands; empty for nowhere."""
    if isinstance(value, str):
        return None if value == _SOMEBODY.id else {}
    items: Iterable[tuple[Any, Any]]
    if isinstance(value, dict):  # nearly all are: an abstract class takes longer to ask for
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        items = value.items() if isinstance(value, Mapping) else ()
    return {key: places for key, item in items if (places := _places_in(item)) != {}}


def _filled(definition: ToolDefinition | None, places: _Places, own: str) -> ToolDefinition | None:
    if definition is None or places is None:
        return definition
    return definition.with_schema(_put(definition.schema, places, own))


class _Own(ToolDefinition):
    """A tool that is a user's own. Its schema is put together when it is asked for: most tools are never called."""

    @classmethod
    def made(cls, common: dict[str, Any], own: str) -> _Own:
        """One user's, by what :meth:`shared` put together."""
        it = object.__new__(cls)
        it.__dict__.update(common, _id=own)
        return it

    @staticmethod
    def shared(common: ToolDefinition, places: _Places) -> dict[str, Any]:
        """What all users' have in common: everything but the schema, and what that is put together from."""
        said = {item.name: getattr(common, item.name) for item in fields(common) if item.name != "schema"}
        return {**said, "_common": common, "_where": places}

    def __getattr__(self, name: str) -> Any:
        if name != "schema":
            raise AttributeError(name)
        said = self.__dict__
        schema = said["schema"] = _put(said["_common"].schema, said["_where"], said["_id"])
        return schema


def _put(value: Any, places: _Places, own: str) -> Any:
    if places is None:
        return own
    out = list(value) if isinstance(value, list) else dict(value)
    for key, inner in places.items():
        out[key] = _put(value[key], inner, own)
    return out
