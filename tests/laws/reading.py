"""How laws ask: whether a grammar has a text, and what a parser makes of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import pytest
from hypothesis import reject
from hypothesis import strategies as st

import oracle
from agentgram.engine import Engine, Vocabulary
from agentgram.engine.spec import Spec
from agentgram.events import ArgumentsDelta, ParserEvent, ReasoningDelta, TextDelta
from agentgram.formats import Format, Request
from agentgram.messages import Message
from tests.laws.walking import walks

BYTES = Vocabulary.byte_level()
ENGINE = Engine(BYTES)


def by_oracle(spec: Spec, data: bytes) -> bool:
    return bool(oracle.build(spec).feed_bytes(data).complete)


def by_engine(spec: Spec, data: bytes) -> bool:
    matcher = ENGINE.compile(spec).matcher()
    return matcher.accept_bytes(data) and matcher.can_end


@st.composite
def members(draw: st.DrawFn, spec: Spec) -> bytes:
    """Texts of a grammar: the recogniser walks at random, the engine ends it, and both agree on all of it."""
    text = draw(walks(oracle.build(spec)))
    matcher = ENGINE.compile(spec).matcher()
    if not matcher.accept_bytes(text):
        assert re.search(rb"[eE][-+]?\d{3}", text), (
            text
        )  # numbers beyond a double are narrowed away, by the engine only
        reject()
    text += matcher.shortest_end()
    assert by_oracle(spec, text)
    assert by_engine(spec, text)
    return text


Accepts = Callable[[Spec, bytes], bool]
BOTH = pytest.mark.parametrize("accepts", [by_oracle, by_engine])


def read(fmt: Format, request: Request, pieces: Iterable[bytes]) -> tuple[list[ParserEvent], Message]:
    """What the parser makes of a turn: its events, neighbouring pieces of text joined, and the message."""
    parser = fmt.parser(request)
    events = [e for piece in pieces for e in parser.feed_bytes(piece)]
    events += parser.finish()
    return joined(events), parser.close()


def joined(events: Iterable[ParserEvent]) -> list[ParserEvent]:
    out: list[ParserEvent] = []
    for event in events:
        last = out[-1] if out else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            out[-1] = TextDelta(text=last.text + event.text)
        elif isinstance(event, ReasoningDelta) and isinstance(last, ReasoningDelta):
            out[-1] = ReasoningDelta(text=last.text + event.text)
        elif isinstance(event, ArgumentsDelta) and isinstance(last, ArgumentsDelta) and event.index == last.index:
            out[-1] = ArgumentsDelta(index=event.index, text=last.text + event.text)
        else:
            out.append(event)
    return out
