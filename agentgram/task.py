"""What a run is given, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeAlias

from pydantic import TypeAdapter
from typing_extensions import TypeVar

from agentgram.approvals import Approvals, RunState, Verdict
from agentgram.events import CallDenied, Event
from agentgram.executor import CallRecord, Instructions
from agentgram.formats.request import ToolChoice
from agentgram.limits import Limits, Usage
from agentgram.messages import Message
from agentgram.models.base import Model, ModelSettings, OnDenied
from agentgram.policy import Audit, Policy, Principal
from agentgram.sessions import Session
from agentgram.tools import RunContext, Toolset

Out = TypeVar("Out", default=str)
RunStatus: TypeAlias = Literal["done", "denied", "pending", "failed", "limit", "cancelled"]
"""``done``: there is an answer; ``denied``: stopped at a denied call; ``pending``: waits for a person; the rest: the
run failed, and the result is carried by the error."""

Visibility: TypeAlias = Literal["hidden", "masked"]
"""Whether the prompt shows a user's tools only, or all of them; what may be called is the same."""

EventHook: TypeAlias = Callable[[Event, RunContext[Any]], None]
"""Told every event, with the context of the run that it belongs to."""


@dataclass(frozen=True, kw_only=True)
class RunResult(Generic[Out]):
    """What a run did, and its answer."""

    output: Out
    """The answer, of the agent's output type; None unless ``status`` is ``done``."""
    status: RunStatus
    calls: tuple[CallRecord, ...] = ()
    """The calls that were made, in order, with what became of each; refused and pending ones are not among them."""
    denied: tuple[CallDenied, ...] = ()
    """What the model wanted and the policy does not allow; none of it ran."""
    pending: tuple[CallRecord, ...] = ()
    """Calls that wait for a person."""
    messages: tuple[Message, ...] = ()
    """The whole conversation, without instructions; give it to the next run to go on."""
    new_messages: tuple[Message, ...] = ()
    """The part of it that this run added, the prompt included."""
    usage: Usage = field(default_factory=Usage)
    run_id: str = ""
    state: RunState | None = None
    """What :meth:`agentgram.Agent.resume` goes on from, where calls wait for a person."""
    finish: str = ""
    """How the model's last turn ended: ``stop``, ``length`` (a text that was cut off at ``max_tokens``), ``denied``."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """What an agent asks of one run."""

    model: Model
    tools: Toolset
    policy: Policy | None
    principal: Principal | None
    deps: Any
    instructions: Instructions
    answer: TypeAdapter[Any] | None
    """Reads a typed answer; None for text."""
    answer_schema: dict[str, Any] | None
    on_denied: OnDenied
    tool_choice: ToolChoice
    parallel: bool
    settings: ModelSettings
    limits: Limits
    history: Sequence[Message]
    prompt: Sequence[Message]
    session: Session | None = None
    on_event: Sequence[EventHook] = ()
    visibility: Visibility = "hidden"
    tainted: bool = False
    audit: Audit | None = None
    approvals: Approvals = field(default_factory=Approvals)
    resumed: RunState | None = None
    """The run that goes on."""
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    by: Principal | None = None
    """Whose the verdicts are."""
