"""What a policy says of one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentgram.policy.conditions import State, Times
from agentgram.policy.decision import Decision, Path, approvers, unmet
from agentgram.policy.narrowing import MISSING, Where, default_of
from agentgram.policy.rules import Rule
from agentgram.principal import Principal
from agentgram.tools.definition import ToolDefinition


def of_call(
    rules: Sequence[Rule],
    user: Principal,
    definition: ToolDefinition,
    arguments: Mapping[str, Any],
    value: Mapping[str, Any] | None,
    state: State,
) -> Decision:
    """What rules that speak of a user and a tool say of a call; see :meth:`agentgram.Policy.decide`."""
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
            outcome="denied", rule=nearest[1] if nearest else unmet(rules), path=nearest[2] if nearest else ()
        )
    allows = [rule for rule in holding if rule.effect == "allow"]
    deciding = allows or holding
    free = [rule for rule in deciding if not any(isinstance(c, Times) for c in rule.when)]
    return Decision(
        outcome="allowed" if allows else "ask",
        rule=str((free or deciding)[0]),
        counted=() if free else tuple(deciding),
        by=approvers(deciding),
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
