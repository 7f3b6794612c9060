"""What may be appended is made exact when a call begins, and never shows that it was not so before."""

from __future__ import annotations

import functools
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgram import Policy, Principal, Tool, Toolset, allow
from agentgram.engine import Engine, Vocabulary
from agentgram.events import CallDenied, StepEnd, ToolCallEnd
from agentgram.formats import Format, Request
from agentgram.messages import user
from agentgram.models.base import ModelEvent, ModelRequest, ModelSettings
from agentgram.policy import le, one_of, same_as
from agentgram.rights import Rights
from agentgram.testing import AdversarialModel, GrammarModel
from tests.laws.shapes import EVERY_FORMAT, format_of

EVE = Principal("eve")


def define(name: str) -> Tool[..., Any]:
    properties = {"to": {"type": "string"}, "amount": {"type": "integer"}, "cc": {"type": ["string", "null"]}}
    schema = {"properties": properties, "required": ["to", "amount"], "additionalProperties": False}
    return Tool.from_schema(name, schema, run=print)


TOOLS = Toolset([define(name) for name in ("pay", "pay_all", "mail", "wipe")])
POLICY = Policy(
    allow("pay", where={"to": same_as("user.id"), "amount": le(50)}),
    allow("pay_all", where={"to": one_of(same_as("user.id"), "bob"), "cc": same_as("user.id")}),
    allow("mail", where={"amount": le(50)}),
)
CALLS = [
    ("pay", {"to": "eve", "amount": 5}),
    ("pay", {"to": "bob", "amount": 5}),
    ("pay", {"to": "eve", "amount": 51}),
    ("pay_all", {"to": "bob", "amount": 5, "cc": "eve"}),
    ("pay_all", {"to": "eve", "amount": 5, "cc": "even"}),
    ("pay_all", {"to": "eve", "amount": 5}),
    ("mail", {"to": "bob", "amount": 5}),
    ("wipe", {"to": "eve", "amount": 5}),
]


def requests(max_tokens: int = 900, seed: int = 0) -> tuple[ModelRequest, ModelRequest]:
    """The same turn, with and without what many users share."""
    narrow = POLICY.narrow(EVE, TOOLS.definitions)
    assert narrow.common is not narrow.permitted
    assert narrow.common is POLICY.narrow(Principal("ann"), TOOLS.definitions).common
    declared, permitted, common = (
        Request(messages=[user("x")], tools=tools) for tools in (narrow.sampled, narrow.permitted, narrow.common)
    )
    denial = Rights(policy=POLICY, user=EVE, tools=TOOLS).denial
    settings = ModelSettings(max_tokens=max_tokens, seed=seed)
    with_it, without = (
        ModelRequest(declared=declared, permitted=permitted, common=each, settings=settings, denial=denial)
        for each in (common, None)
    )
    return with_it, without


def wishes(fmt: Format) -> list[str]:
    one = [fmt.print_call(TOOLS[name].definition, arguments) for name, arguments in CALLS]
    if not fmt.parallel:
        return one
    if one[0].endswith("]"):
        return [*one, *(f"{a[:-1]}, {b[1:]}" for a in one for b in one)]
    return [*one, *(a + b for a in one for b in one), *(f"So: {a}\n{b}" for a in one[:3] for b in one[:3])]


def crossing(texts: list[str], seed: int) -> Vocabulary:
    """A vocabulary of which many tokens run across names, keys and values."""
    rng = random.Random(seed)
    pieces = {bytes([value]) for value in range(256)}
    for text in texts:
        data = text.encode()
        for _ in range(12):
            start = rng.randrange(len(data))
            pieces.add(data[start : start + rng.choice([2, 3, 5, 9, 20, 60])])
    return Vocabulary([*sorted(pieces), b""], end=[len(pieces)])


def turn(model: GrammarModel, request: ModelRequest) -> tuple[list[ModelEvent], bytes]:
    events = list(model.turn(request))
    return events, model.outputs[-1]


@functools.cache
def setting(name: str, number: int) -> tuple[Format, list[str], Engine]:
    """A format, what may be wished for in it, and the engine of tokens that cut it in one way."""
    fmt = format_of(name)
    texts = wishes(fmt)
    return fmt, texts, Engine.shared(crossing(texts, number))


@EVERY_FORMAT
@given(seed=st.integers(0, 10**6))
def test_a_turn_is_the_same_whether_tools_are_made_exact_at_once_or_later(name: str, seed: int) -> None:
    fmt, texts, engine = setting(name, seed % 3)
    vocabulary = engine.vocab
    chosen = random.Random(seed).sample(texts, 2)
    later, at_once = (AdversarialModel(chosen, format=fmt, vocabulary=vocabulary, seed=seed) for _ in range(2))
    with_it, without = requests(seed=seed)
    for _ in chosen:
        assert turn(later, with_it) == turn(at_once, without)


@EVERY_FORMAT
@given(seed=st.integers(0, 10**6), most=st.integers(20, 100))
def test_a_turn_that_is_cut_off_holds_what_is_permitted(name: str, seed: int, most: int) -> None:
    fmt, texts, engine = setting(name, seed % 3)
    vocabulary = engine.vocab
    request, _ = requests(most, seed)
    model = AdversarialModel(random.Random(seed).sample(texts, 1), format=fmt, vocabulary=vocabulary)
    *events, end = model.turn(request)
    assert isinstance(end, StepEnd)
    assert end.message.malformed == ()
    assert len(vocabulary.encode(model.outputs[-1])) <= most or end.finish != "stop"
    for event in events:
        if isinstance(event, ToolCallEnd):
            assert not POLICY.decide(EVE, TOOLS[event.call.name], event.call.arguments).denied
    assert end.finish != "denied" or sum(isinstance(event, CallDenied) for event in events) == 1
    assert end.finish != "length" or not [event for event in events if isinstance(event, CallDenied)]


@EVERY_FORMAT
@pytest.mark.parametrize("number", range(3))
def test_a_refusal_is_of_the_call_that_is_refused(name: str, number: int) -> None:
    """Also where one token ends a call and begins another."""
    fmt, _, engine = setting(name, number)
    if not fmt.parallel:
        return
    fine, *_ = (fmt.print_call(TOOLS[name].definition, arguments) for name, arguments in CALLS)
    for tool, arguments in (CALLS[2], CALLS[4], CALLS[7]):
        wish = fmt.print_call(TOOLS[tool].definition, arguments)
        wish = f"{fine[:-1]}, {wish[1:]}" if fine.endswith("]") else fine + wish
        model = AdversarialModel([wish], format=fmt, vocabulary=engine.vocab, seed=number)
        for seed in range(4):
            *events, _ = model.turn(requests(seed=seed)[0])
            (denied,) = (event for event in events if isinstance(event, CallDenied))
            assert (denied.tool, denied.path) == (
                tool,
                {2: ("amount",), 4: ("cc",), 7: ()}[CALLS.index((tool, arguments))],
            )
