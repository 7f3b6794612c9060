"""What a law has to know of a format to make turns of it: which parts may stand where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from agentgram.formats import Args, Format, Request, Slot, formats, get_codec, get_format
from agentgram.formats.guarding import breaker
from agentgram.formats.nodes import CallId, walk
from agentgram.formats.printing import print_turn
from agentgram.messages import Message, Part, ReasoningPart, TextPart, ToolCall
from agentgram.tools.definition import ToolDefinition
from tests.laws.strategies import PIECES, TEXTS, calls, tools

MORE = sorted((Path(__file__).parents[1] / "formats" / "more").glob("*.json"))
"""Formats that are not shipped, one for each kind that the shipped ones lack: with ids, with a counter, with marker quotes."""
NAMES = [*formats(), *(path.stem for path in MORE)]
EVERY_FORMAT = pytest.mark.parametrize("name", NAMES)


def format_of(name: str) -> Format:
    return get_format(name if name in formats() else next(p for p in MORE if p.stem == name))


def writes_json(fmt: Format) -> bool:
    return all(n.codec == "json" for n in walk(fmt.output) if isinstance(n, Args))


def only_at_start(fmt: Format) -> bool:
    return any(t.where == "start" for t in fmt.call_tags)


def has_ids(fmt: Format) -> bool:
    return any(isinstance(n, CallId) for n in walk(fmt.output))


def without_ids(message: Message) -> Message:
    """The message with its calls' ids taken out: some formats make their own."""
    parts = (ToolCall(name=p.name, arguments=p.arguments) if isinstance(p, ToolCall) else p for p in message.parts)
    return Message(role=message.role, parts=tuple(parts))


def decoded(fmt: Format, definition: ToolDefinition, text: str) -> dict[str, Any]:
    """Arguments as a format's own codec reads them."""
    args = next(n for n in walk(fmt.output) if isinstance(n, Args))
    slot = Slot(tool=definition, avoid=fmt.markers)
    return get_codec(args.codec, args.options).decode(text, slot)


def harmless(fmt: Format, text: str) -> str:
    """A text with all that begins a call in this format taken out."""
    out = breaker(fmt.markers)(text)
    for opener in fmt.aside:
        while opener in out:
            out = out.replace(opener, opener[:1] + " " + opener[1:])
    if only_at_start(fmt):
        out = out.lstrip(" \t\r\n[{<")
    return out


@st.composite
def texts(draw: st.DrawFn, fmt: Format) -> list[Part]:
    """No text part or one, of more than blanks."""
    text = harmless(fmt, draw(TEXTS))
    return [TextPart(text=text)] if text.strip(" \t\r\n") else []


@st.composite
def turns(draw: st.DrawFn, fmt: Format) -> tuple[Request, Message]:
    """A request and an answer to it, as the format's grammar allows: texts and calls in an order that it has."""
    definitions = draw(tools())
    made = draw(calls(definitions, extras=writes_json(fmt)))
    if not fmt.parallel:
        made = made[:1]
    parts: list[Part] = []
    if fmt.channels:
        for _ in range(draw(st.integers(0, 2))):
            parts += [ReasoningPart(text=p.text) for p in draw(texts(fmt)) if isinstance(p, TextPart)]
        parts = parts[:1]
        said = draw(texts(fmt))
        parts += said if made else said or [TextPart(text="x")]  # the turn is over with a call or an answer
        return Request(tools=definitions), Message(role="assistant", parts=(*parts, *made))
    if only_at_start(fmt):
        parts = list(made) if made and draw(st.booleans()) else draw(texts(fmt))
        return Request(tools=definitions), Message(role="assistant", parts=tuple(parts))
    for call in made:
        parts += draw(texts(fmt))
        parts.append(call)
    if fmt.parallel or not made:
        parts += draw(texts(fmt))
    return Request(tools=definitions), Message(role="assistant", parts=tuple(parts))


@st.composite
def broken(draw: st.DrawFn, fmt: Format) -> tuple[Request, bytes]:
    """A request, and an answer to it in which some bytes are missing, doubled, or others."""
    request, message = draw(turns(fmt))
    text = print_turn(fmt, message, str, tools=request.tools).encode()
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.sampled_from([0, 1, 1, 3, 20])))
        other = draw(st.sampled_from(PIECES).map(str.encode) | st.just(text[start:end] * 2) | st.binary(max_size=2))
        text = text[:start] + draw(st.sampled_from([b"", other])) + text[end:]
    return request, text
