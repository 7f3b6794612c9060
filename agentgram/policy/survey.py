"""What a policy comes to: whom it speaks of, what each of them may do, and which of its rules do nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentgram.errors import nearest
from agentgram.policy.conditions import After
from agentgram.policy.policy import Policy
from agentgram.policy.rules import Rule
from agentgram.principal import Principal
from agentgram.tools.definition import ToolDefinition

Level: TypeAlias = Literal["error", "warning", "note"]

ANYBODY = "anybody"
"""The id of a user whom no rule names."""


def people(policy: Policy) -> list[Principal]:
    """Somebody for each way in which the rules tell users apart: whom they name, each role, and anybody else."""
    users = sorted({user for rule in policy.rules for user in rule.users})
    roles = sorted({role for rule in policy.rules for role in rule.roles})
    return [
        Principal(ANYBODY),
        *(Principal(ANYBODY, roles=role) for role in roles),
        *(Principal(user) for user in users),
    ]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What one user may do with one tool."""

    outcome: str
    """``yes``, ``ask`` or ``no``."""
    bounds: tuple[str, ...] = ()
    """What of it, a line for each rule that bounds it; empty where nothing does."""


def cell(policy: Policy, user: Principal, definition: ToolDefinition) -> Cell:
    """What a user may do with a tool, whatever has happened before.

    Raises:
        DefinitionError: A rule speaks of an argument that the tool does not have.
    """
    policy.decide(user, definition)
    rules = sorted((rule for rule in policy.rules if rule.matches(user, definition)), key=str)
    if any(rule.effect == "deny" and not rule.where and not rule.when for rule in rules):
        return Cell(outcome="no")
    grants = [rule for rule in rules if rule.effect != "deny"]
    if not grants:
        return Cell(outcome="no")
    free = [rule for rule in grants if rule.effect == "allow" and not rule.where and not rule.when]
    told = [] if free else [_told(rule) for rule in grants]
    told += [f"not {_conditions(rule)}" for rule in rules if rule.effect == "deny"]
    outcome = "yes" if any(rule.effect == "allow" for rule in grants) else "ask"
    return Cell(outcome=outcome, bounds=tuple(text for text in told if text))


def _told(rule: Rule) -> str:
    words = _conditions(rule)
    if rule.effect == "ask":
        who = f" {' or '.join(sorted(rule.by))}" if rule.by else ""
        return f"ask{who}: {words}" if words else f"ask{who}"
    return words


def _conditions(rule: Rule) -> str:
    where = [f"{key} {' and '.join(map(str, constraints))}" for key, constraints in rule.where]
    return ", ".join([*where, *map(str, rule.when)])


def problems(policy: Policy, definitions: Sequence[ToolDefinition]) -> Iterator[tuple[Level, str]]:
    """What is wrong with a policy for these tools: each with its level."""
    for rule in policy.rules:
        reached = [d for d in definitions if rule.concerns(d)]
        for glob in rule.tools:
            alone = Rule(effect=rule.effect, tools=(glob,), tags=rule.tags)
            if not any(alone.concerns(d) for d in definitions):
                yield "error", f"{glob!r} of {rule} matches no tool."
        yield from _misnamed(rule, reached)
        yield from _waiting(rule, policy, definitions)
        if reached and rule.effect != "deny":
            denials = [other for other in policy.rules if other.effect == "deny" and _is_plain(other)]
            if all(any(d.concerns(t) and _covers(d, rule) for d in denials) for t in reached):
                yield "warning", f"{rule} does nothing: all that it allows is denied."
        if reached and rule.effect == "ask":
            allows = [other for other in policy.rules if other.effect == "allow" and _is_plain(other)]
            if all(any(a.concerns(t) and _covers(a, rule) for a in allows) for t in reached):
                yield "warning", f"{rule} does nothing: all that it asks about is allowed."
    yield from _unused(policy, definitions)


def _misnamed(rule: Rule, definitions: Iterable[ToolDefinition]) -> Iterator[tuple[Level, str]]:
    """Arguments that a rule speaks of only once something has happened; of the others every decision tells."""
    wanted = [key for condition in rule.when if isinstance(condition, After) for key in condition.same]
    wanted += [key for key, _ in rule.where] if rule.when else []
    for definition in definitions:
        for key in wanted:
            if key not in definition.schema.get("properties", {}):
                yield "error", f"{rule} speaks of argument {key!r}, which tool {definition.name!r} has not."


def _waiting(rule: Rule, policy: Policy, definitions: Sequence[ToolDefinition]) -> Iterator[tuple[Level, str]]:
    """Calls that a rule waits for, and that will never be made."""
    known = {definition.name: definition for definition in definitions}
    for condition in rule.when:
        if not isinstance(condition, After):
            continue
        if condition.tool not in known:
            told = nearest(condition.tool, known)
            yield "error", f"{rule} waits for a call of {condition.tool!r}, which is no tool. {told}"
        elif why := _why_unused(policy, known[condition.tool]):
            yield "warning", f"{rule} does nothing: it waits for a call of {condition.tool!r}, and {why}."


def _unused(policy: Policy, definitions: Iterable[ToolDefinition]) -> Iterator[tuple[Level, str]]:
    for definition in definitions:
        if why := _why_unused(policy, definition):
            yield "note", f"nobody may call {definition.name!r}: {why}."


def _why_unused(policy: Policy, definition: ToolDefinition) -> str:
    """Why nobody may ever call a tool; empty where somebody may."""
    grants = [r for r in policy.rules if r.effect != "deny" and r.concerns(definition)]
    denials = [r for r in policy.rules if r.effect == "deny" and _is_plain(r) and r.concerns(definition)]
    if any(not any(_covers(d, g) for d in denials) for g in grants):
        return ""
    return "no rule allows it" if not grants else "all that is allowed is denied"


def _is_plain(rule: Rule) -> bool:
    return not rule.where and not rule.when


def _covers(one: Rule, other: Rule) -> bool:
    """Whether the first rule surely speaks of every user that the second one speaks of."""
    users = not one.users or (bool(other.users) and other.users <= one.users)
    roles = not one.roles or (bool(other.roles) and other.roles <= one.roles)
    return users and roles
