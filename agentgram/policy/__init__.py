"""Policy: who may call what. Refuse, do not steer."""

from __future__ import annotations

from agentgram.policy.policy import Decision, Policy, Rule, allow, ask, deny
from agentgram.principal import Principal

__all__ = ["Decision", "Policy", "Principal", "Rule", "allow", "ask", "deny"]
