"""Turns that reach the limit of tokens: what was cut off is not taken for what was meant."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from agentgram import Agent, RunError, tool
from agentgram.events import StepEnd, ToolResult
from agentgram.messages import Message, ToolCall, assistant
from agentgram.run import CUT

REFUNDS: list[int] = []


@tool
def refund(amount: int) -> str:
    """Give money back."""
    REFUNDS.append(amount)
    return "done"


class Answer(BaseModel):
    total: int


class Cutting:
    """Its first turns end at the limit of tokens."""

    name = "cutting"

    def __init__(self, *turns: tuple[str, Message]) -> None:
        self.turns = list(turns)
        self.asked: list[Any] = []

    async def stream(self, request: Any) -> Any:
        self.asked.append(request.permitted)
        finish, message = self.turns.pop(0)
        yield StepEnd(step=request.step, message=message, finish=finish)


def call(amount: int) -> ToolCall:
    return ToolCall(name="refund", arguments={"amount": amount})


def test_a_call_that_was_cut_is_not_made() -> None:
    REFUNDS.clear()
    model = Cutting(
        ("length", assistant("Both.", calls=[call(50), call(5)])),
        ("stop", assistant(calls=[call(500)])),
        ("stop", assistant("x")),
    )
    stream = Agent(model, tools=[refund]).stream_sync("Refund 50 and 500.")
    results = [e for e in stream if isinstance(e, ToolResult)]
    assert REFUNDS == [50, 500]
    assert [record.status for record in stream.result.calls] == ["done", "retry", "done"]
    assert CUT in results[0].content or CUT in results[1].content
    assert CUT in model.asked[1].messages[-1].results[1].content
    assert stream.result.finish == "stop"


def test_a_call_before_a_text_that_was_cut_is_made() -> None:
    REFUNDS.clear()
    said = Message(role="assistant", parts=(call(50), *assistant("And so").parts))
    Agent(Cutting(("length", said), ("stop", assistant("x"))), tools=[refund]).run_sync("?")
    assert REFUNDS == [50]


def test_a_model_that_is_always_cut_runs_out_of_attempts() -> None:
    REFUNDS.clear()
    with pytest.raises(RunError, match=r"'refund' was called wrongly 3 times.*cut off"):
        Agent(Cutting(*[("length", assistant(calls=[call(5)]))] * 9), tools=[refund]).run_sync("?")
    assert REFUNDS == []


def test_a_typed_answer_that_was_cut_is_asked_for_again() -> None:
    model = Cutting(("length", assistant('{"total": 5}')), ("stop", assistant('{"total": 500}')))
    assert Agent(model, output_type=Answer).run_sync("?").output == Answer(total=500)
    assert CUT in model.asked[1].messages[-1].text
    with pytest.raises(RunError, match=r"cut off.*Raise ModelSettings\(max_tokens"):
        Agent(Cutting(*[("length", assistant('{"total": 5}'))] * 3), output_type=Answer).run_sync("?")


def test_a_text_that_was_cut_says_so() -> None:
    result = Agent(Cutting(("length", assistant("Once upon a")))).run_sync("?")
    assert (result.output, result.finish) == ("Once upon a", "length")
