"""A model that says what it is told to."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from agentgram.errors import ModelError
from agentgram.events import (
    ArgumentsDelta,
    CallDenied,
    MalformedCall,
    ReasoningDelta,
    StepEnd,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
)
from agentgram.messages import MalformedPart, Message, Part, ReasoningPart, TextPart, ToolCall, ToolResultPart
from agentgram.models import guard
from agentgram.models.base import Denial, ModelEvent, ModelRequest

Piece: TypeAlias = str | ToolCall | TextPart | ReasoningPart | MalformedPart
Turn: TypeAlias = Piece | Message | Sequence[Piece]
Entry: TypeAlias = Turn | Callable[[ModelRequest], Turn]


def call(name: str, /, **arguments: Any) -> ToolCall:
    """A call for a script: ``call("order_status", order=17)``."""
    return ToolCall(name=name, arguments=arguments)


@contextmanager
def no_models() -> Iterator[None]:
    """Makes loading or running a real model a :class:`agentgram.ModelError`, in the whole process, for a while."""
    with guard.forbidden():
        yield


@dataclass(frozen=True)
class _Text:
    """A turn's text in the pieces that a stream would have."""

    text: str

    def __iter__(self) -> Iterator[str]:
        word = ""
        for character in self.text:
            word += character
            if character.isspace():
                yield word
                word = ""
        if word:
            yield word


class ScriptedModel:
    """Plays scripted turns through the real events.

    It behaves as a masked model does: a call of a tool that is declared and not permitted is not written; it becomes
    a ``CallDenied`` and ends the turn (under ``steer`` nothing of it shows). That is how a denied intent is tested
    without weights. A call of a tool that nobody declared is played as it is, as a model behind a server might write
    it. Tokens are counted as words.

    ::

        ScriptedModel([call("order_status", order=17), "It was shipped."])
    """

    def __init__(self, turns: Iterable[Entry], *, name: str = "scripted") -> None:
        """Args:
        turns: One entry per turn: a text, a call, a list of texts and calls, a message, or a function that makes
            one of these from the :class:`agentgram.models.ModelRequest`.
        name: What to call the model.
        """
        self._turns = list(turns)
        self._name = name
        self.requests: list[ModelRequest] = []
        """What was asked, one per turn: for assertions about prompts and tools."""

    @property
    def name(self) -> str:
        """What to call the model in messages and logs."""
        return self._name

    @property
    def left(self) -> int:
        """How many turns have not been played."""
        return len(self._turns) - len(self.requests)

    def count_tokens(self, what: str | ModelRequest) -> int:
        """Words of a text, or of the messages of a turn."""
        if isinstance(what, str):
            return len(what.split())
        return sum(_words(part) for m in what.permitted.messages for part in m.parts)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Plays the next turn.

        Raises:
            ModelError: The script is over, or the turn is not what a model could write here.
        """
        number = len(self.requests)
        if number >= len(self._turns):
            raise ModelError(
                f"the script of model {self.name!r} has {len(self._turns)} turns, and turn {number + 1} was asked for. "
                "Add a turn, or see in .requests why the run went on."
            )
        self.requests.append(request)
        entry = self._turns[number]
        turn = entry(request) if callable(entry) else entry
        written: list[Part] = []
        calls = words = 0
        for part in _parts(turn):
            words += _words(part)
            if isinstance(part, ToolCall):
                self._check(part, request, calls)
                denial = _denial(part, request, [w.name for w in written if isinstance(w, ToolCall)])
                if denial is not None:
                    if request.on_denied == "steer":
                        continue
                    yield CallDenied(tool=part.name, path=denial.path, rule=denial.rule)
                    yield _end(request, written, words, "denied")
                    return
                for event in _call_events(part, calls):
                    yield event
                calls += 1
            elif isinstance(part, MalformedPart):
                yield MalformedCall(raw=part.raw, reason=part.reason)
            elif isinstance(part, ReasoningPart):
                for piece in _Text(part.text):
                    yield ReasoningDelta(text=piece)
            elif isinstance(part, TextPart):
                for piece in _Text(part.text):
                    yield TextDelta(text=piece)
            written.append(part)
        yield _end(request, written, words, "stop")

    def _check(self, part: ToolCall, request: ModelRequest, calls: int) -> None:
        if request.permitted.tool_choice == "none":
            raise ModelError(f"the script calls {part.name!r}, but tool_choice is 'none': no model could.")
        if calls and not request.permitted.parallel:
            raise ModelError(f"the script calls {part.name!r} as a second call, but parallel is False: no model could.")


def _denial(part: ToolCall, request: ModelRequest, before: Sequence[str]) -> Denial | None:
    """Why a masked model could not write this call of a tool that is declared; None where it could."""
    if request.declared.tool(part.name) is None:
        return None
    if request.permitted.tool(part.name) is None:
        return request.denial(part.name, None) or Denial((), "")
    if before.count(part.name) >= request.left.get(part.name, len(before) + 1):
        return request.denial(part.name, None) or Denial((), "")
    return request.denial(part.name, part.arguments)


def _end(request: ModelRequest, written: Sequence[Part], words: int, finish: str) -> StepEnd:
    message = Message(role="assistant", parts=tuple(written))
    prompt = sum(_words(part) for m in request.permitted.messages for part in m.parts)
    return StepEnd(step=request.step, message=message, sampled_tokens=words, input_tokens=prompt, finish=finish)


def _words(part: Part) -> int:
    if isinstance(part, ToolCall):
        return len(json.dumps([part.name, part.arguments]).split())
    if isinstance(part, ToolResultPart):
        return len(part.content.split())
    return len((part.raw if isinstance(part, MalformedPart) else part.text).split())


def _parts(turn: Any) -> tuple[Part, ...]:
    if isinstance(turn, Message):
        return turn.parts
    if isinstance(turn, str):
        return (TextPart(text=turn),) if turn else ()
    if isinstance(turn, ToolCall | TextPart | ReasoningPart | MalformedPart):
        return (turn,)
    if isinstance(turn, Sequence):
        return tuple(part for piece in turn for part in _parts(piece))
    raise ModelError(f"the script holds {turn!r}: a turn is a text, a call, a list of these, or a Message.")


def _call_events(part: ToolCall, index: int) -> Iterator[ModelEvent]:
    yield ToolCallStart(index=index, name=part.name)
    for key, value in part.arguments.items():
        yield ArgumentsDelta(index=index, path=(key,), text=json.dumps(value, ensure_ascii=False))
    yield ToolCallEnd(index=index, call=part)
