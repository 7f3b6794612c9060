"""Messages: what was said, in parts that keep their kind."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from agentgram.errors import DefinitionError

Role: TypeAlias = Literal["system", "developer", "user", "assistant", "tool"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TextPart:
    """Text that a person reads."""

    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ReasoningPart:
    """What the model thought before it answered."""

    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCall:
    """A call of a tool, as the model wrote it."""

    name: str
    """The tool's name."""
    arguments: dict[str, Any]
    """The arguments as JSON values."""
    id: str = ""
    """The call's id: the model's own where the format has one, else given by the run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolResultPart:
    """What a tool answered, on its way back to the model."""

    name: str
    """The tool's name."""
    content: str
    """The text that the model sees: JSON for structured results, else the string itself."""
    call_id: str = ""
    """The id of the call that this answers."""
    error: bool = False
    """True when the text says why there is no result."""
    trusted: bool = False
    """True when no outsider can have written into the text: the host's own words, or a tool's that is declared so."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MalformedPart:
    """Output that began a call and did not become one."""

    raw: str
    """The bytes as written (invalid UTF-8 shown by replacement characters)."""
    reason: str
    """What was wrong."""


Part: TypeAlias = TextPart | ReasoningPart | ToolCall | ToolResultPart | MalformedPart
_KINDS: dict[str, type] = {
    "text": TextPart,
    "reasoning": ReasoningPart,
    "call": ToolCall,
    "result": ToolResultPart,
    "malformed": MalformedPart,
}
_NAMES = {cls: kind for kind, cls in _KINDS.items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One message: a role and its parts, in order."""

    role: Role
    parts: tuple[Part, ...] = field(default=())

    @property
    def text(self) -> str:
        """All text parts, joined."""
        return "".join(p.text for p in self.parts if isinstance(p, TextPart))

    @property
    def reasoning(self) -> str:
        """All reasoning parts, joined."""
        return "".join(p.text for p in self.parts if isinstance(p, ReasoningPart))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in order."""
        return tuple(p for p in self.parts if isinstance(p, ToolCall))

    @property
    def results(self) -> tuple[ToolResultPart, ...]:
        """The tool results, in order."""
        return tuple(p for p in self.parts if isinstance(p, ToolResultPart))

    @property
    def malformed(self) -> tuple[MalformedPart, ...]:
        """The parts that began a call and did not become one."""
        return tuple(p for p in self.parts if isinstance(p, MalformedPart))

    def to_dict(self) -> dict[str, Any]:
        """A JSON value that :meth:`from_dict` reads back to an equal message."""
        return {
            "role": self.role,
            "parts": [{"kind": _NAMES[type(p)], **{k: getattr(p, k) for k in p.__slots__}} for p in self.parts],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Message:
        """Reads what :meth:`to_dict` wrote.

        Raises:
            DefinitionError: The value has another shape.
        """
        try:
            parts = []
            for item in data["parts"]:
                values = dict(item)
                parts.append(_KINDS[values.pop("kind")](**values))
            return cls(role=data["role"], parts=tuple(parts))
        except (KeyError, TypeError) as error:
            raise DefinitionError(f"not a message: {error!r}. Pass what Message.to_dict wrote.") from error

    @classmethod
    def from_openai(cls, data: Mapping[str, Any]) -> Message:
        """Reads one OpenAI chat dict; :func:`from_openai` reads several, and tells results the names of their calls.

        Raises:
            DefinitionError: It is not a chat message.
        """
        return from_openai([data])[0]

    def to_openai(self) -> list[dict[str, Any]]:
        """This message as OpenAI chat dicts: one, or one for each result of a tool message."""
        if self.role == "tool":
            return [
                {"role": "tool", "name": r.name, "tool_call_id": r.call_id, "content": r.content} for r in self.results
            ]
        out: dict[str, Any] = {"role": self.role, "content": self.text}
        if self.reasoning:
            out["reasoning_content"] = self.reasoning
        if self.calls:
            out["tool_calls"] = [
                {
                    "id": c.id,
                    "type": "function",
                    "function": {"name": c.name, "arguments": json.dumps(c.arguments, ensure_ascii=False)},
                }
                for c in self.calls
            ]
        return [out]


def system(text: str) -> Message:
    """A system message."""
    return Message(role="system", parts=(TextPart(text=text),))


def user(text: str) -> Message:
    """A user's message."""
    return Message(role="user", parts=(TextPart(text=text),))


def assistant(text: str = "", *, calls: Sequence[ToolCall] = (), reasoning: str = "") -> Message:
    """An assistant's message, of reasoning, text and calls in this order."""
    parts: list[Part] = []
    if reasoning:
        parts.append(ReasoningPart(text=reasoning))
    if text:
        parts.append(TextPart(text=text))
    return Message(role="assistant", parts=(*parts, *calls))


def tool_results(*results: ToolResultPart) -> Message:
    """The results of a turn's calls, in the calls' order."""
    return Message(role="tool", parts=results)


def to_openai(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Messages as OpenAI chat dicts."""
    return [d for m in messages for d in m.to_openai()]


def from_openai(messages: Iterable[Mapping[str, Any]]) -> list[Message]:
    """OpenAI chat dicts as messages; consecutive tool results become one message.

    Raises:
        DefinitionError: A dict is not a chat message; its index is named.
    """
    out: list[Message] = []
    names: dict[str, str] = {}
    for index, item in enumerate(messages):
        try:
            out_message = _from_openai(item, names)
        except (KeyError, TypeError, ValueError) as error:
            raise DefinitionError(f"message {index} is not an OpenAI chat message: {error}.") from error
        if out_message.role == "tool" and out and out[-1].role == "tool":
            out[-1] = Message(role="tool", parts=out[-1].parts + out_message.parts)
        else:
            out.append(out_message)
    return out


def as_messages(messages: Iterable[Message | Mapping[str, Any]]) -> list[Message]:
    """Messages, and OpenAI chat dicts among them, as messages.

    Raises:
        DefinitionError: Something is neither.
    """
    items = list(messages)
    for index, item in enumerate(items):
        if not isinstance(item, Message | Mapping):
            raise DefinitionError(f"message {index} is {item!r}: pass Message values or OpenAI chat dicts.")
    out: list[Message] = []
    dicts: list[Mapping[str, Any]] = []
    for item in items:
        if isinstance(item, Message):
            out += from_openai(dicts)
            dicts = []
            out.append(item)
        else:
            dicts.append(item)
    return out + from_openai(dicts)


INTERRUPTED = "It is not known what became of this call: the run was interrupted."


def answered(history: Sequence[Message], following: Sequence[Message]) -> tuple[Message, ...]:
    """What follows a conversation, completed by a result for each call at its end that has none.

    A run that was cut off leaves such calls, and most chat templates refuse a conversation with them.

    Args:
        history: The conversation so far.
        following: What comes next; it may begin with the missing results.
    """
    place = len(history)
    while place and history[place - 1].role == "tool":
        place -= 1
    calls = list(history[place - 1].calls) if place else []
    first = following[0] if following and following[0].role == "tool" else tool_results()
    for result in [r for m in (*history[place:], first) for r in m.results]:
        if found := next((c for c in calls if (c.id, c.name) == (result.call_id, result.name)), None):
            calls.remove(found)
    lost = [ToolResultPart(name=c.name, content=INTERRUPTED, call_id=c.id, error=True, trusted=True) for c in calls]
    if not lost:
        return tuple(following)
    rest = following[1:] if first.parts else following
    return (Message(role="tool", parts=(*first.parts, *lost)), *rest)


def _content_text(content: object) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = []
        for piece in content:
            if piece.get("type") != "text":
                raise ValueError(f"content of type {piece.get('type')!r} is not supported, only text is")
            texts.append(piece["text"])
        return "".join(texts)
    raise TypeError(f"content is {type(content).__name__}, expected a string or a list of parts")


def _from_openai(item: Mapping[str, Any], names: dict[str, str]) -> Message:
    role = item["role"]
    if role not in ("system", "developer", "user", "assistant", "tool"):
        raise ValueError(f"unknown role {role!r}")
    text = _content_text(item.get("content"))
    if role == "tool":
        call_id = item.get("tool_call_id", "")
        name = item.get("name") or names.get(call_id, "")
        return tool_results(ToolResultPart(name=name, content=text, call_id=call_id))
    calls = []
    for call in item.get("tool_calls") or ():
        function = call["function"]
        arguments = function.get("arguments") or {}
        if isinstance(arguments, str):
            arguments = json.loads(arguments)
        if not isinstance(arguments, dict):
            raise TypeError(f"arguments of {function['name']!r} are not an object")
        calls.append(ToolCall(name=function["name"], arguments=arguments, id=call.get("id", "")))
        names[calls[-1].id] = calls[-1].name
    if role == "assistant":
        return assistant(text, calls=calls, reasoning=item.get("reasoning_content") or "")
    return Message(role=role, parts=(TextPart(text=text),))
