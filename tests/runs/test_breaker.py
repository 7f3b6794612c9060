"""Models that go round in circles."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from agentgram import Agent, DefinitionError, LimitExceeded, Limits, ToolFailed
from agentgram.events import ToolResult
from agentgram.testing import ScriptedModel, call


class Answer(BaseModel):
    city: str


def where(order: int) -> str:
    return "Porto"


def broken(order: int) -> str:
    raise ToolFailed("There is no such order.")


def scripted(*turns: Any, **options: Any) -> Agent[Any, Any]:
    return Agent(ScriptedModel(turns), **options)


def test_a_call_that_teaches_nothing_is_not_made_again_and_the_next_turn_has_to_answer() -> None:
    made: list[int] = []

    def where(order: int) -> str:
        made.append(order)
        return "Porto"

    agent = scripted(*[call("where", order=17)] * 3, '{"city": "Porto"}', tools=[where], output_type=Answer)
    stream = agent.stream_sync("?", limits=Limits(identical_calls=2))
    events = list(stream)
    result = stream.result
    assert made == [17, 17]
    assert result.output == Answer(city="Porto")
    assert [record.status for record in result.calls] == ["done", "done"]
    assert result.usage.tool_calls == 2
    assert result.messages[6].results[0].content == "Not made again. Its result was: Porto"
    assert [e.content for e in events if isinstance(e, ToolResult)][-1] == result.messages[6].results[0].content
    choices = [r.permitted.tool_choice for r in agent.model.requests]
    assert choices == ["auto", "auto", "auto", "none"]


def test_a_call_that_failed_each_time_ends_the_run() -> None:
    agent = scripted(*[call("broken", order=17)] * 4, tools=[broken])
    with pytest.raises(LimitExceeded, match=r"same call of 'broken' 3 times.*There is no such order") as caught:
        agent.run_sync("?")
    assert caught.value.run.status == "limit"
    assert [record.status for record in caught.value.run.calls] == ["failed"] * 3
    assert caught.value.run.messages[-1].role == "tool", "the conversation can go on"


def test_news_lets_everything_be_asked_again() -> None:
    """A tool that is polled answers differently in the end; and others' news count too."""
    states = iter(["waiting", "waiting", "waiting, 10 %", "waiting, 10 %", "done"])

    def poll() -> str:
        return next(states)

    turns = [call("poll")] * 5
    result = scripted(*turns, "It is done.", tools=[poll]).run_sync("?")
    assert [record.content for record in result.calls][-1] == "done"
    one, two = call("where", order=1), call("where", order=2)
    result = scripted(one, two, one, "x", tools=[where]).run_sync("?", limits=Limits(identical_calls=1))
    assert [record.arguments["order"] for record in result.calls] == [1, 2, 1]


def test_turning_between_two_calls_is_a_circle_too() -> None:
    one, two = call("where", order=1), call("where", order=2)
    agent = scripted(one, two, one, two, one, two, "Porto", tools=[where])
    result = agent.run_sync("?", limits=Limits(identical_calls=2))
    assert [record.arguments["order"] for record in result.calls] == [1, 2, 1, 2, 1], "the first call of each was news"
    assert result.output == "Porto"


def test_calls_of_one_turn_do_not_count_against_each_other() -> None:
    rolls = iter(range(9))

    def roll() -> int:
        return next(rolls)

    result = scripted([call("roll")] * 5, "x", tools=[roll]).run_sync("?", limits=Limits(identical_calls=1))
    assert sorted(record.value for record in result.calls) == [0, 1, 2, 3, 4]


def test_a_turn_with_something_new_in_it_goes_on() -> None:
    again = call("where", order=1)
    agent = scripted(again, [again, call("where", order=2)], call("where", order=3), "x", tools=[where])
    result = agent.run_sync("?", limits=Limits(identical_calls=1))
    assert [record.arguments["order"] for record in result.calls] == [1, 2, 3]
    assert [p.content for p in result.messages[4].results] == ["Not made again. Its result was: Porto", "Porto"]


def test_it_can_be_switched_off() -> None:
    turns = [call("where", order=17)] * 10
    result = scripted(*turns, "x", tools=[where]).run_sync("?", limits=Limits(identical_calls=None))
    assert len(result.calls) == 10
    with pytest.raises(DefinitionError, match=r"identical_calls=0.*at least 1"):
        Limits(identical_calls=0)
