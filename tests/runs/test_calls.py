"""What becomes of a call: run, corrected, failed, timed out, side by side with others."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from agentgram import (
    Agent,
    CallRecord,
    LimitExceeded,
    Limits,
    ModelRetry,
    Principal,
    RunContext,
    RunError,
    Tool,
    ToolFailed,
    tool,
)
from agentgram.events import ToolProgress, ToolResult
from agentgram.testing import ScriptedModel, call


def records(tools: list[Any], *turns: Any, **options: Any) -> tuple[CallRecord, ...]:
    return Agent(ScriptedModel([*turns, "done"]), tools=tools).run_sync("go", **options).calls


class Order(BaseModel):
    number: int
    note: SecretStr


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("as it is", "as it is"),
        (3, "3"),
        (None, "null"),
        ([1, "é"], '[1,"é"]'),
        ({"a": {1}}, '{"a":[1]}'),
        (float("inf"), "null"),
        (Order(number=1, note=SecretStr("hidden")), '{"number":1,"note":"**********"}'),
    ],
)
def test_results_are_put_into_words(value: object, content: str) -> None:
    def get() -> object:
        return value

    (record,) = records([get], call("get"))
    assert record.content == content
    assert record.value is value
    assert record.status == "done"
    assert not record.error


def test_the_model_reads_results_in_the_order_of_its_calls() -> None:
    first_may_end = threading.Event()

    def slow() -> str:
        assert first_may_end.wait(10)
        return "slow"

    def quick() -> str:
        first_may_end.set()
        return "quick"

    script = ScriptedModel([[call("slow"), call("quick")], "done"])
    result = Agent(script, tools=[slow, quick]).run_sync("go")
    # Only side by side can `slow` end at all; yet its result comes first.
    assert [record.content for record in result.calls] == ["slow", "quick"]
    (message,) = (m for m in result.messages if m.role == "tool")
    assert [(part.content, part.call_id) for part in message.results] == [("slow", "call_1"), ("quick", "call_2")]
    assert script.requests[1].permitted.messages[-1] == message


def test_many_threads_at_once() -> None:
    everybody = threading.Barrier(40)

    def meet() -> int:
        return everybody.wait(20)

    (*met,) = records([meet], [call("meet") for _ in range(40)])
    assert sorted(record.value for record in met) == list(range(40))


def test_sequential_tools_are_alone() -> None:
    running = 0
    seen: list[tuple[str, int]] = []

    async def track(name: str) -> None:
        nonlocal running
        running += 1
        for _ in range(5):
            await asyncio.sleep(0)
        seen.append((name, running))
        running -= 1

    @tool(sequential=True)
    async def alone() -> None:
        await track("alone")

    @tool
    async def beside() -> None:
        await track("beside")

    records([alone, beside], [call("beside"), call("beside"), call("alone"), call("alone"), call("beside")])
    assert [most for name, most in seen if name == "alone"] == [1, 1]
    assert max(most for _, most in seen) == 2
    assert [name for name, _ in seen] == ["beside", "beside", "alone", "alone", "beside"]


def test_a_tool_knows_its_call() -> None:
    seen: list[RunContext[Any]] = []

    def look(ctx: RunContext[Any]) -> str:
        seen.append(ctx)
        if ctx.retry < 1:
            raise ModelRetry("again")
        return "seen"

    ann = Principal("ann")
    result = Agent(ScriptedModel([call("look"), call("look"), "done"]), tools=[look]).run_sync(
        "go", user=ann, deps={"a": 1}
    )
    assert [(c.call_id, c.step, c.retry) for c in seen] == [("call_1", 1, 0), ("call_2", 2, 1)]
    assert all(c.deps == {"a": 1} and c.user is ann and c.run_id == result.run_id for c in seen)
    assert seen[1].usage.steps == 2
    assert [m.role for m in seen[1].messages] == ["user", "assistant", "tool", "assistant"]
    assert all(c.cancelled for c in seen), "nobody waits any more"


def test_context_variables_reach_tools() -> None:
    request = contextvars.ContextVar("request", default="none")

    def sync() -> str:
        return request.get()

    async def async_() -> str:
        return request.get()

    request.set("mine")
    assert [r.value for r in records([sync, async_], [call("sync"), call("async_")])] == ["mine", "mine"]


def test_wrong_arguments_go_back_to_the_model() -> None:
    def add(a: int, b: int) -> int:
        return a + b

    script = ScriptedModel([call("add", a="1"), call("add", a=1, b=2), "3"])
    result = Agent(script, tools=[add]).run_sync("go")
    wrong, right = result.calls
    assert (wrong.status, right.status) == ("retry", "done")
    assert wrong.content.startswith("The arguments of add are not valid: a: Input should be a valid integer; b: ")
    (part,) = script.requests[1].permitted.messages[-1].results
    assert (part.content, part.error) == (wrong.content, True)


def test_a_tool_may_ask_for_another_attempt_only_so_often() -> None:
    @tool(retries=1)
    def find(name: str) -> str:
        raise ModelRetry(f"no {name}, ask the user")

    agent = Agent(ScriptedModel([call("find", name="a"), call("find", name="b"), "done"]), tools=[find])
    with pytest.raises(RunError, match=r"'find' was called wrongly 2 times in a row; .* it said: no b") as caught:
        agent.run_sync("go")
    run = caught.value.run
    assert run.status == "failed"
    assert [r.content for r in run.calls] == ["no a, ask the user", "no b, ask the user"]
    assert isinstance(caught.value.__cause__, ModelRetry)


def test_success_forgives_earlier_attempts() -> None:
    @tool(retries=1)
    def even(n: int) -> int:
        if n % 2:
            raise ModelRetry("only even numbers")
        return n

    turns = [call("even", n=n) for n in (1, 2, 3, 4)]
    assert [r.status for r in records([even], *turns)] == ["retry", "done", "retry", "done"]


def test_failures_tell_the_model_little_and_the_host_everything() -> None:
    def broken(n: int) -> str:
        raise KeyError("password=hunter2")

    def careful() -> str:
        raise ToolFailed("the shop is closed")

    async def lazy() -> str:
        raise asyncio.CancelledError

    def leaving() -> str:
        raise SystemExit(3)

    def unreadable() -> object:
        return object()

    def generator_end() -> object:
        raise StopIteration

    tools = [broken, careful, lazy, leaving, unreadable, generator_end]
    calls = [call("broken", n=1), *(call(t.__name__) for t in tools[1:])]
    made = {r.name: r for r in records(tools, calls)}
    assert {r.status for r in made.values()} == {"failed"}
    assert made["broken"].content == "broken failed."
    assert isinstance(made["broken"].exception, KeyError)
    assert made["broken"].exception.__traceback__ is not None
    assert made["careful"].content == "the shop is closed"
    assert made["lazy"].content == "lazy failed."
    assert made["leaving"].content == "leaving failed."
    assert made["unreadable"].content == "unreadable gave a result that cannot be written."
    assert made["generator_end"].content == "generator_end failed."


def test_timeouts() -> None:
    freed = threading.Event()
    gave_up = threading.Event()

    @tool(timeout=0.05)
    async def sleeps() -> None:
        await asyncio.Event().wait()

    @tool(timeout=0.05)
    def hangs(ctx: RunContext[Any]) -> None:
        # A thread cannot be stopped from outside: it goes on until it asks.
        while not ctx.cancelled:
            freed.wait(0.01)
        gave_up.set()

    @tool(timeout=30)
    def raises() -> None:
        raise TimeoutError("of its own")

    made = records([sleeps, hangs, raises], [call("sleeps"), call("hangs"), call("raises")])
    assert [r.status for r in made] == ["failed"] * 3
    assert [r.content for r in made] == [
        "sleeps took longer than 0.05 seconds.",
        "hangs took longer than 0.05 seconds.",
        "raises failed.",
    ]
    assert gave_up.wait(10)


def test_unknown_tools_are_not_run() -> None:
    def get_order() -> str:
        return "x"

    (record,) = records([get_order], call("get_ordr"))
    assert record.status == "unknown"
    assert record.content == "There is no tool named 'get_ordr'. The tools are: get_order."


def test_progress_of_a_generator() -> None:
    async def count(to: int) -> AsyncIterator[int]:
        for n in range(to):
            yield n

    agent = Agent(ScriptedModel([[call("count", to=3), call("count", to=0)], "done"]), tools=[count])
    stream = agent.stream_sync("go")
    events = list(stream)
    assert [e for e in events if isinstance(e, ToolProgress)] == [
        ToolProgress(call_id="call_1", name="count", value=0),
        ToolProgress(call_id="call_1", name="count", value=1),
    ]
    assert {e.call.id: e.value for e in events if isinstance(e, ToolResult)} == {"call_1": 2, "call_2": None}


def test_a_tool_that_is_only_declared_waits_for_the_caller() -> None:
    lookup = Tool.from_schema("lookup", {"type": "object", "properties": {}})
    result = Agent(ScriptedModel([call("lookup")]), tools=[lookup]).run_sync("go")
    assert result.status == "pending"
    assert [(p.id, p.name) for p in result.pending] == [("call_1", "lookup")]
    assert result.output is None


class TestLimits:
    @staticmethod
    def agent(*turns: Any) -> Agent[Any, str]:
        def get(n: int) -> int:
            return n

        return Agent(ScriptedModel(turns), tools=[get])

    def test_steps(self) -> None:
        agent = self.agent(call("get", n=1), call("get", n=2), "done")
        with pytest.raises(LimitExceeded, match=r"would use 3 steps, its limit is 2\. Raise Limits\(steps=") as caught:
            agent.run_sync("go", limits=Limits(steps=2))
        run = caught.value.run
        assert run.status == "limit"
        assert [r.value for r in run.calls] == [1, 2]
        assert (run.usage.steps, run.usage.tool_calls) == (2, 2)

    def test_calls_are_counted_before_any_is_made(self) -> None:
        agent = self.agent([call("get", n=n) for n in range(3)], "done")
        with pytest.raises(LimitExceeded, match="3 tool calls, its limit is 2") as caught:
            agent.run_sync("go", limits=Limits(tool_calls=2))
        run = caught.value.run
        assert run.calls == ()
        # Each call has an answer, so the conversation can go on.
        assert [p.content for p in run.messages[-1].results] == ["Not run: the run was stopped."] * 3

    def test_output_tokens(self) -> None:
        with pytest.raises(LimitExceeded, match="5 output tokens, its limit is 4") as caught:
            self.agent("one two three four five").run_sync("go", limits=Limits(output_tokens=4))
        assert caught.value.run.messages[-1].text == "one two three four five"

    def test_input_tokens(self) -> None:
        with pytest.raises(LimitExceeded, match="input tokens, its limit is 2"):
            self.agent("done").run_sync("three words here", limits=Limits(input_tokens=2))

    def test_seconds_bound_tools_too(self) -> None:
        async def sleeps() -> None:
            await asyncio.Event().wait()

        agent = Agent(ScriptedModel([call("sleeps"), "done"]), tools=[sleeps])
        with pytest.raises(LimitExceeded, match=r"longer than 0\.05 seconds") as caught:
            agent.run_sync("go", limits=Limits(seconds=0.05))
        run = caught.value.run
        assert run.status == "limit"
        assert [r.status for r in run.calls] == ["cancelled"]
        assert run.messages[-1].results[0].content == "Cancelled while it ran."

    def test_limits_within_bounds_change_nothing(self) -> None:
        limits = Limits(steps=2, tool_calls=1, input_tokens=99, output_tokens=99, seconds=60)
        assert self.agent(call("get", n=1), "done").run_sync("go", limits=limits).output == "done"
