"""Policy: who may call what, with which arguments. Refuse, do not steer."""

from __future__ import annotations

from agentgram.policy.audit import Audit
from agentgram.policy.conditions import Condition, State, after, tainted, times
from agentgram.policy.constraints import ge, gt, le, lt, matches, one_of, same_as, under
from agentgram.policy.decision import Decision
from agentgram.policy.policy import Policy
from agentgram.policy.predicates import Constraint
from agentgram.policy.rules import Rule, allow, ask, deny
from agentgram.principal import Principal

__all__ = [
    "Audit",
    "Condition",
    "Constraint",
    "Decision",
    "Policy",
    "Principal",
    "Rule",
    "State",
    "after",
    "allow",
    "ask",
    "deny",
    "ge",
    "gt",
    "le",
    "lt",
    "matches",
    "one_of",
    "same_as",
    "tainted",
    "times",
    "under",
]
