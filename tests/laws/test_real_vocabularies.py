"""Laws with the vocabularies of real models: any way of spelling a turn in tokens is accepted, and read alike."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgram.engine import Vocabulary
from agentgram.formats.printing import print_turn
from agentgram.models.base import ModelRequest
from agentgram.testing import GrammarModel
from tests.laws.reading import joined, read
from tests.laws.shapes import NAMES, format_of, turns
from tests.laws.vocabularies import engine_for

jsonschema = pytest.importorskip("jsonschema")


@st.composite
def spelled(draw: st.DrawFn, text: bytes, vocabulary: Vocabulary) -> list[int]:
    """Tokens of a text: markers that are tokens as such, all else cut anywhere and spelled piece by piece."""
    markers = sorted(vocabulary.special, key=len, reverse=True)
    pieces = re.split(b"(" + b"|".join(re.escape(m.encode()) for m in markers) + b")", text)
    out: list[int] = []
    for piece in pieces:
        if piece.decode("utf-8", "replace") in vocabulary.special:
            out.append(vocabulary.special[piece.decode()])
            continue
        cuts = sorted(draw(st.lists(st.integers(0, len(piece)), max_size=6)))
        for a, b in zip([0, *cuts], [*cuts, len(piece)], strict=True):
            out += vocabulary.encode(piece[a:b]) if a < b else []
    return out


@pytest.mark.parametrize("special", [True, False], ids=["tokens", "text"])
@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_any_tokens_of_a_turn_are_accepted_and_read(name: str, special: bool, data: st.DataObject) -> None:
    fmt = format_of(name)
    engine = engine_for(name, special)
    request, message = data.draw(turns(fmt))
    turn = print_turn(fmt, message, str, tools=request.tools).encode()
    tokens = data.draw(spelled(turn, engine.vocab))
    matcher = engine.compile(fmt.grammar(request, special=engine.vocab.special)).matcher()
    assert matcher.validate(tokens) == len(tokens)
    assert all(matcher.accept(t) for t in tokens)
    assert matcher.can_end
    parser = fmt.parser(request, engine.vocab)
    events = [e for t in tokens for e in parser.feed_token(t)] + parser.finish()
    assert (joined(events), parser.close()) == read(fmt, request, [turn])


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=5)
@given(data=st.data())
def test_what_the_decode_loop_writes_is_read_and_valid(name: str, data: st.DataObject) -> None:
    """Noise under the masks, through the loop that models decode with."""
    fmt = format_of(name)
    engine = engine_for(name, True)
    request, _ = data.draw(turns(fmt))
    model = GrammarModel(data.draw(st.integers(0, 999)), format=fmt, vocabulary=engine.vocab)
    *_, end = model.turn(ModelRequest(declared=request, permitted=request))
    assert not [m for m in end.message.malformed if "is too large" not in m.reason]
    for call in end.message.calls:
        definition = request.tool(call.name)
        assert definition is not None
        jsonschema.Draft202012Validator(definition.schema).validate(call.arguments)
