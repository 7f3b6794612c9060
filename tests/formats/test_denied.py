"""A wish for a denied tool, in every format: it is reported by its name, and nothing of the call stays."""

from __future__ import annotations

import pytest

from agentgram.events import CallDenied, StepEnd, ToolCallStart
from agentgram.formats import Request
from agentgram.messages import ReasoningPart, TextPart, assistant, user
from agentgram.models.base import ModelRequest
from agentgram.testing import AdversarialModel
from agentgram.tools.definition import ToolDefinition
from tests.laws.shapes import EVERY_FORMAT, format_of, only_at_start

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
GOOD, WIPE = ToolDefinition(name="good", schema=SCHEMA), ToolDefinition(name="wipe", schema=SCHEMA)


@EVERY_FORMAT
def test_a_denied_call_is_named_and_taken_back(name: str) -> None:
    fmt = format_of(name)
    before, said = "", ()
    if fmt.channels:
        before, said = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant", (ReasoningPart(text="hm"),)
    elif not only_at_start(fmt):
        before, said = "Well. ", (TextPart(text="Well. "),)
    model = AdversarialModel([before + fmt.print_call(WIPE, {"n": 1})], format=fmt)
    declared, permitted = (Request(messages=[user("x")], tools=tools) for tools in ([GOOD, WIPE], [GOOD]))
    *events, end = model.turn(ModelRequest(declared=declared, permitted=permitted))
    assert [e.tool for e in events if isinstance(e, CallDenied)] == ["wipe"]
    assert not [e for e in events if isinstance(e, ToolCallStart)]
    assert isinstance(end, StepEnd)
    assert end.finish == "denied"
    assert end.message == assistant() if not said else end.message.parts == said
    assert b"wipe" not in model.outputs[-1]


@EVERY_FORMAT
@pytest.mark.parametrize("seed", range(3))
def test_a_permitted_call_is_made(name: str, seed: int) -> None:
    fmt = format_of(name)
    model = AdversarialModel([fmt.print_call(GOOD, {"n": 7})], format=fmt, seed=seed)
    request = Request(messages=[user("x")], tools=[GOOD])
    *_, end = model.turn(ModelRequest(declared=request, permitted=request))
    assert isinstance(end, StepEnd)
    assert [(c.name, c.arguments) for c in end.message.calls][:1] == [("good", {"n": 7})]
