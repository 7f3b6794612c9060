"""What a turn amounts to while it is read: events as they become certain, and the parts of the message."""

from __future__ import annotations

import codecs as text_codecs
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agentgram.errors import nearest
from agentgram.events import (
    ArgumentsDelta,
    MalformedCall,
    ParserEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
)
from agentgram.formats.codecs import get_codec
from agentgram.formats.lowering import allowed_tools
from agentgram.formats.nodes import Args
from agentgram.formats.request import Request
from agentgram.formats.scanning import Mismatch, Source
from agentgram.formats.slots import Slot
from agentgram.messages import MalformedPart, Part, ReasoningPart, TextPart, ToolCall

if TYPE_CHECKING:
    from agentgram.formats.template import Format


@dataclass
class Draft:
    """A call while it is read."""

    start: int
    """Offset of what counts as its raw text."""
    name: str | None = None
    weak: bool = False
    """Whether what began it may be text as well: then only a whole call, with arguments, is one."""
    committed: bool = False
    known: bool = False
    args: Args | None = None
    """How its arguments are written."""
    raw: bytes | None = None
    body: int = 0
    """Offset of its arguments."""
    id: str = ""
    index: int = -1
    keys: int = 0
    """How many keys of the envelope have been recognised."""
    strays: dict[str, bytes] = field(default_factory=dict)
    """What the envelope has under other keys than its own: (key, JSON text)."""
    problem: str = ""


class Run:
    """The state that the readers share."""

    def __init__(self, fmt: Format, request: Request) -> None:
        self.fmt = fmt
        self.request = request
        self.tools = {t.name: t for t in allowed_tools(request)}
        self.src = Source(self.settle)
        self.stopped = False
        self.called = False
        """Whether the turn's last message, where it has several, was a call."""
        self.opened: int | None = None
        self.draft: Draft | None = None
        self.count = 0
        self._events: list[ParserEvent] = []
        self._parts: list[Part | list[str]] = []
        self._open: list[str] | None = None
        """The text part that is being added to: its kind, and its pieces."""
        self._kind = "content"
        self._text_from: int | None = None
        self._decoder = _decoder()
        self._args_from: int | None = None

    # text

    def begin_text(self, kind: str = "content", start: int | None = None) -> None:
        """From here on (or from an earlier offset), what is passed is text."""
        if kind != self._kind:
            self.end_text()
            self._kind = kind
        self._text_from = self.src.pos if start is None else start

    def pause_text(self) -> None:
        """What follows is not text, at least not yet."""
        self.settle()
        self._text_from = None

    def end_text(self) -> None:
        """The text is interrupted by something else: an unfinished character is shown as a replacement."""
        self.pause_text()
        self._say(self._decoder.decode(b"", final=True))
        self._decoder.reset()

    def settle(self) -> None:
        """Makes events of what has been passed."""
        src = self.src  # this runs for every piece of output, so it looks into the source itself
        pos = src.base + src.at if src.held is None else src.held
        start = self._args_from if self._text_from is None else self._text_from
        if start is None or pos <= start:
            return
        data = src.data[start - src.base : pos - src.base]
        # most pieces are ASCII, and need no decoder
        plain = data.isascii() and not self._decoder.buffer
        text = data.decode("ascii") if plain else self._decoder.decode(data)
        if self._text_from is None:
            self._args_from = pos
            self._arguments(text)
        else:
            self._text_from = pos
            self._say(text)
            src.trim()

    def _say(self, text: str) -> None:
        if not text:
            return
        kind = self._kind
        delta = TextDelta if kind == "content" else ReasoningDelta
        events = self._events
        if events and type(events[-1]) is delta:
            events[-1] = delta(text=events[-1].text + text)
        else:
            events.append(delta(text=text))
        if self._open is not None and self._open[0] == kind:
            self._open.append(text)
        else:
            self._open = [kind, text]
            self._parts.append(self._open)

    # calls

    def named(self, name: str, *, commit: bool = True) -> None:
        """The open call's tool is known by name; if that is all there is to tell a call by, it has begun."""
        draft = self.draft
        assert draft is not None
        if draft.name is not None:
            draft.problem = draft.problem or "the call names its tool twice"
            return
        bare = name.rpartition("functions.")[2]  # a namespace that many models have seen and some write everywhere
        draft.name = bare if name not in self.tools and bare in self.tools else name
        if commit:
            self.commit()

    def commit(self) -> None:
        """The open call has surely begun, if there is such a tool."""
        draft = self.draft
        if draft is None or draft.committed or draft.name is None:
            return
        draft.committed = True
        draft.known = draft.name in self.tools
        if draft.known:
            draft.index = self.count
            self.count += 1
            self._events.append(ToolCallStart(index=draft.index, name=draft.name))
            if draft.raw is not None:
                self._arguments(draft.raw.decode("utf-8", "replace"))

    def slot(self) -> Slot:
        """Where the codec of the open call's arguments is at work."""
        name = None if self.draft is None else self.draft.name
        return Slot(tool=self.tools.get(name or ""), avoid=self.fmt.markers)

    def begin_arguments(self, args: Args) -> None:
        """From here on, what is passed is the open call's arguments."""
        draft = self.draft
        if draft is None:
            return
        self.commit()
        draft.args, draft.body = args, self.src.pos
        if draft.known and draft.raw is None:
            self._args_from = self.src.pos

    def end_arguments(self, raw: bytes) -> None:
        """The open call's arguments are complete."""
        draft = self.draft
        assert draft is not None
        self.cut_arguments()
        if draft.raw is not None:
            draft.problem = draft.problem or "the call has its arguments twice"
        draft.raw = raw

    def cut_arguments(self) -> None:
        """What follows is no longer part of the open call's arguments."""
        if self._args_from is not None:
            self.settle()
            self._args_from = None
            self._arguments(self._decoder.decode(b"", final=True))
            self._decoder.reset()

    def _arguments(self, text: str) -> None:
        draft = self.draft
        if not text or draft is None:
            return
        events = self._events
        if events:
            last = events[-1]
            if type(last) is ArgumentsDelta and last.index == draft.index:
                text = last.text + text
                events.pop()
        events.append(ArgumentsDelta(index=draft.index, text=text))

    def end_call(self) -> None:
        """The open call is complete: it becomes a call, or a malformed one."""
        draft = self.draft
        assert draft is not None
        if draft.name is None:
            raise Mismatch("the call names no tool")
        if draft.weak and draft.raw is None and draft.name not in self.tools:
            raise Mismatch("this is text")
        self.commit()
        slot, args = self.slot(), draft.args or Args()
        self.draft = None
        try:
            if not draft.known:
                raise ValueError(f"there is no tool {draft.name!r}. {nearest(draft.name, self.tools)}".strip())
            if draft.problem:
                raise ValueError(draft.problem)
            if draft.raw is None:
                _refuse_strays(draft, slot)
            arguments = get_codec(args.codec, args.options).decode((draft.raw or b"").decode(), slot)
        except ValueError as error:
            reason = "the arguments are not UTF-8" if isinstance(error, UnicodeError) else str(error)
            self.malformed(draft.start, self.src.pos, reason)
            return
        call = ToolCall(name=draft.name, arguments=arguments, id=draft.id)
        self._events.append(ToolCallEnd(index=draft.index, call=call))
        self._parts.append(call)
        self._open = None

    def malformed(self, start: int, end: int, reason: str) -> None:
        """What stands between two offsets began a call and did not become one."""
        raw = self.src.take(start, end).decode("utf-8", "replace")
        self._events.append(MalformedCall(raw=raw, reason=reason))
        self._parts.append(MalformedPart(raw=raw, reason=reason))
        self._open = None

    # results

    def drain(self) -> list[ParserEvent]:
        """The events since the last time."""
        events, self._events = self._events, []
        return events

    def parts(self) -> list[Part]:
        """The message so far."""
        out: list[Part] = []
        for part in self._parts:
            if not isinstance(part, list):
                out.append(part)
            elif part[0] == "content":
                out.append(TextPart(text="".join(part[1:])))
            else:
                out.append(ReasoningPart(text="".join(part[1:])))
        return out


def _refuse_strays(draft: Draft, slot: Slot) -> None:
    """A call without arguments that has something like them elsewhere is not a call without arguments."""
    known = slot.schema.get("properties", {})
    for key, raw in draft.strays.items():
        if key in known or (raw[:1] == b"{" and raw[1:-1].strip()):
            raise ValueError(f"the call has no arguments, but something in {key[:40]!r}, which is no key of its own")


def _decoder() -> text_codecs.BufferedIncrementalDecoder:
    decoder = text_codecs.getincrementaldecoder("utf-8")("replace")
    assert isinstance(decoder, text_codecs.BufferedIncrementalDecoder)
    return decoder
