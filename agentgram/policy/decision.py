"""What a policy answers: of a user and a tool, or of a call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from agentgram.policy.rules import Rule
from agentgram.tools.definition import ToolDefinition

Outcome: TypeAlias = Literal["allowed", "ask", "denied"]
Path: TypeAlias = tuple[str | int, ...]

NO_RULE = "no rule allows it"
"""What a decision names as its rule when nothing matched."""


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


def stricter(a: Decision, b: Decision) -> Decision:
    """The one of two decisions that lets less through: both versions of a policy count while it changes."""
    order: dict[Outcome, int] = {"denied": 0, "ask": 1, "allowed": 2}
    first, second = sorted((a, b), key=lambda d: order[d.outcome])
    return replace(first, counted=first.counted or second.counted) if not first.denied else first


def approvers(rules: Iterable[Rule]) -> frozenset[str]:
    """Roles one of which may decide about a call that any of these rules asks about; empty for anybody."""
    wanted = [rule.by for rule in rules]
    return frozenset().union(*wanted) if all(wanted) else frozenset()


def unmet(rules: Sequence[Rule]) -> str:
    """Which rule would allow, were its conditions met."""
    return next((str(rule) for rule in rules if rule.effect != "deny"), NO_RULE)
