"""Typed events: what happens during a run, in order. A parser makes some, the run makes the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from agentgram.messages import Message, ToolCall


@dataclass(frozen=True, kw_only=True, slots=True)
class TextDelta:
    """More text for the person."""

    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ReasoningDelta:
    """More of the model's reasoning."""

    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCallStart:
    """A call has begun and its tool is known."""

    index: int
    """The call's place in this message, from 0."""
    name: str
    """The tool's name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ArgumentsDelta:
    """More of a call's arguments, as the model spells them."""

    index: int
    """The call's place in this message, from 0."""
    text: str
    """The argument text that was added."""
    path: tuple[str | int, ...] = ()
    """Where in the arguments this text lies, as far as it is known; empty for the whole."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCallEnd:
    """A call is complete."""

    index: int
    """The call's place in this message, from 0."""
    call: ToolCall


@dataclass(frozen=True, kw_only=True, slots=True)
class MalformedCall:
    """Output that began a call and did not become one; nothing of it is lost."""

    raw: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CallDenied:
    """The model wanted something that the policy does not allow; it was not written, and nothing ran."""

    tool: str
    """The tool that the model wanted."""
    path: tuple[str | int, ...] = ()
    """Where in the arguments the refused value lies; empty when the tool itself is refused."""
    rule: str = ""
    """The rule that refused it, for the audit; never shown to the model."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ApprovalNeeded:
    """A person has to decide about a call."""

    call: ToolCall
    rule: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolProgress:
    """Something that a running tool reported before its result."""

    call_id: str
    name: str
    value: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolResult:
    """A tool has answered."""

    call: ToolCall
    value: Any
    """What the function returned; the error's text where it raised."""
    content: str
    """The text that goes back to the model."""
    error: bool = False
    seconds: float = 0.0
    """How long the tool ran."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepEnd:
    """The model's turn is over."""

    step: int
    """From 1."""
    message: Message
    sampled_tokens: int = 0
    """Tokens that the model chose."""
    forced_tokens: int = 0
    """Tokens that the grammar left no choice about: appended without sampling."""
    input_tokens: int = 0
    """Tokens of the prompt; 0 where the model does not tell."""
    enforced_by: str = "validator"
    """What kept the turn within what is permitted while it was written: ``grammar``, ``server``, or nothing, so that
    the ``validator`` alone has the say."""
    finish: str = "stop"
    """``stop``, ``length`` (closed by the shortest legal end), ``denied`` or ``cancelled``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FinalOutput:
    """The run's answer."""

    output: Any


ParserEvent: TypeAlias = TextDelta | ReasoningDelta | ToolCallStart | ArgumentsDelta | ToolCallEnd | MalformedCall
Event: TypeAlias = ParserEvent | CallDenied | ApprovalNeeded | ToolProgress | ToolResult | StepEnd | FinalOutput
