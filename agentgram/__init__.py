"""Tool calling whose calls are valid by construction.

Everything that most programs need is here; the parts have their own doors: :mod:`agentgram.engine`,
:mod:`agentgram.policy`, :mod:`agentgram.formats`, :mod:`agentgram.models`, :mod:`agentgram.events`,
:mod:`agentgram.messages`, :mod:`agentgram.testing`.

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentgram.agent import Agent
    from agentgram.approvals import Approvals, RunState, approve, reject
    from agentgram.errors import (
        AgentgramError,
        ContextOverflow,
        DefinitionError,
        GrammarError,
        LimitExceeded,
        ModelError,
        PolicyError,
        RunCancelled,
        RunError,
        SessionBusy,
    )
    from agentgram.executor import CallRecord
    from agentgram.formats.request import Only
    from agentgram.limits import Limits, Usage
    from agentgram.messages import Message, ToolCall
    from agentgram.models.base import ModelSettings
    from agentgram.policy import Audit, Decision, Policy, Principal, allow, ask, deny
    from agentgram.sessions import Session, SQLiteSession
    from agentgram.streaming import RunStream, SyncRunStream
    from agentgram.task import RunResult
    from agentgram.tools import (
        MCPToolset,
        ModelRetry,
        RunContext,
        Sensitive,
        Tool,
        ToolDefinition,
        ToolFailed,
        Toolset,
        bind,
        tool,
    )

_HOMES = {
    "agent": ("Agent",),
    "approvals": ("Approvals", "RunState", "approve", "reject"),
    "errors": (
        "AgentgramError",
        "ContextOverflow",
        "DefinitionError",
        "GrammarError",
        "LimitExceeded",
        "ModelError",
        "PolicyError",
        "RunCancelled",
        "RunError",
        "SessionBusy",
    ),
    "executor": ("CallRecord",),
    "formats.request": ("Only",),
    "limits": ("Limits", "Usage"),
    "messages": ("Message", "ToolCall"),
    "models.base": ("ModelSettings",),
    "policy": ("Audit", "Decision", "Policy", "Principal", "allow", "ask", "deny"),
    "sessions": ("SQLiteSession", "Session"),
    "streaming": ("RunStream", "SyncRunStream"),
    "task": ("RunResult",),
    "tools": (
        "MCPToolset",
        "ModelRetry",
        "RunContext",
        "Sensitive",
        "Tool",
        "ToolDefinition",
        "ToolFailed",
        "Toolset",
        "bind",
        "tool",
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__version__ = "0.1.0"
__all__ = [
    # what most programs begin with
    "Agent",
    "tool",
    "Policy",
    "Principal",
    "allow",
    "ask",
    "deny",
    # tools
    "MCPToolset",
    "ModelRetry",
    "RunContext",
    "Sensitive",
    "Tool",
    "ToolDefinition",
    "ToolFailed",
    "Toolset",
    "bind",
    # policy
    "Audit",
    "Decision",
    # runs
    "Approvals",
    "CallRecord",
    "Limits",
    "Message",
    "ModelSettings",
    "Only",
    "RunResult",
    "RunState",
    "RunStream",
    "SQLiteSession",
    "Session",
    "SyncRunStream",
    "ToolCall",
    "Usage",
    "approve",
    "reject",
    # errors
    "AgentgramError",
    "ContextOverflow",
    "DefinitionError",
    "GrammarError",
    "LimitExceeded",
    "ModelError",
    "PolicyError",
    "RunCancelled",
    "RunError",
    "SessionBusy",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"agentgram.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
