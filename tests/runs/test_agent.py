"""Runs from outside: answers with a type, conversations, the ways to start a run and to leave one."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from agentgram import (
    Agent,
    DefinitionError,
    Limits,
    ModelError,
    ModelSettings,
    Only,
    RunCancelled,
    RunContext,
    RunError,
    tool,
)
from agentgram.events import (
    ArgumentsDelta,
    FinalOutput,
    MalformedCall,
    StepEnd,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResult,
)
from agentgram.messages import MalformedPart, Message, ReasoningPart, TextPart, ToolCall, assistant, user
from agentgram.testing import ScriptedModel, call, no_models

ROOT = Path(__file__).parents[2]


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


class Answer(BaseModel):
    total: int


@dataclass
class Pair:
    left: int
    right: int


def scripted(*turns: Any, **options: Any) -> Agent[Any, Any]:
    return Agent(ScriptedModel(turns), **options)


class TestAnswers:
    @pytest.mark.parametrize(
        ("output_type", "text", "output"),
        [
            (str, "3", "3"),
            (Answer, '{"total": 3}', Answer(total=3)),
            (Pair, ' {"left": 1, "right": 2}\n', Pair(1, 2)),
            (int, "3", 3),
            (bool, "true", True),
            (list[int], "[1, 2]", [1, 2]),
            (Answer | Pair, '{"left": 1, "right": 2}', Pair(1, 2)),
            (int | None, "null", None),
            (Literal["yes", "no"], '"no"', "no"),
        ],
    )
    def test_have_the_declared_type(self, output_type: Any, text: str, output: Any) -> None:
        agent = scripted(call("add", a=1, b=2), text, tools=[add], output_type=output_type)
        result = agent.run_sync("1 + 2?")
        assert result.output == output
        assert type(result.output) is type(output)
        assert result.status == "done"
        schema = agent.model.requests[0].permitted.output_schema
        assert (schema is None) == (output_type is str)

    def test_are_described_to_the_model(self) -> None:
        agent = scripted('{"total": 3}', output_type=Answer)
        agent.run_sync("?")
        assert agent.model.requests[0].permitted.output_schema == {
            "type": "object",
            "properties": {"total": {"type": "integer"}},
            "required": ["total"],
            "additionalProperties": False,
        }

    def test_may_be_corrected_where_nothing_masks(self) -> None:
        agent = scripted("three", '{"total": "3"}', '{"total": 3}', output_type=Answer)
        assert agent.run_sync("?").output == Answer(total=3)
        complaint = agent.model.requests[2].permitted.messages[-1]
        assert complaint.role == "user"
        assert "total: Input should be a valid integer" in complaint.text

    def test_are_not_corrected_for_ever(self) -> None:
        agent = scripted("a", "b", "c", output_type=Answer)
        with pytest.raises(RunError, match="does not fit the output type: Invalid JSON") as caught:
            agent.run_sync("?")
        assert caught.value.run.usage.steps == 3

    def test_of_types_without_json_are_refused_at_once(self) -> None:
        with pytest.raises(DefinitionError, match="cannot be read from JSON"):
            scripted(output_type=threading.Thread)


class TestConversations:
    def test_go_on(self) -> None:
        agent = scripted("Hello.", call("add", a=1, b=2), "3", tools=[add])
        first = agent.run_sync("Hi")
        second = agent.run_sync("1 + 2?", messages=first.messages)
        assert [m.role for m in second.messages] == ["user", "assistant", "user", "assistant", "tool", "assistant"]
        assert second.messages == first.messages + second.new_messages
        assert second.new_messages[0] == user("1 + 2?")
        third = scripted(call("add", a=1, b=1), "2", tools=[add]).run_sync("again", messages=second.messages)
        assert third.calls[0].id == "call_2", "ids go on as well"

    def test_prompts_of_every_kind(self) -> None:
        for prompt in ("Hi", user("Hi"), [user("Hi")]):
            assert scripted("x").run_sync(prompt).messages == (user("Hi"), assistant("x"))
        with pytest.raises(DefinitionError, match="message 0 is 3"):
            scripted("x").run_sync([3])

    def test_instructions_come_first_and_are_not_kept(self) -> None:
        agent = scripted("x", instructions="Be brief.")
        result = agent.run_sync("Hi")
        sent = agent.model.requests[0].permitted.messages
        assert [(m.role, m.text) for m in sent] == [("system", "Be brief."), ("user", "Hi")]
        assert [m.role for m in result.messages] == ["user", "assistant"]

    def test_instructions_may_be_written_for_each_step(self) -> None:
        async def write(ctx: RunContext[str]) -> str:
            return f"{ctx.deps}, step {ctx.step + 1}"

        agent = scripted(call("add", a=1, b=2), "3", tools=[add], instructions=write)
        agent.run_sync("?", deps="shop")
        assert [r.permitted.messages[0].text for r in agent.model.requests] == ["shop, step 1", "shop, step 2"]
        silent = scripted("x", instructions=lambda ctx: None)
        silent.run_sync("?")
        assert [m.role for m in silent.model.requests[0].permitted.messages] == ["user"]

    def test_ids_of_the_model_are_kept(self) -> None:
        own = ToolCall(name="add", arguments={"a": 1, "b": 2}, id="mine")
        result = scripted([own, call("add", a=1, b=1)], "x", tools=[add]).run_sync("?")
        assert [r.id for r in result.calls] == ["mine", "call_1"]
        assert [c.id for c in result.messages[1].calls] == ["mine", "call_1"]

    def test_malformed_calls_go_back(self) -> None:
        broken = MalformedPart(raw='<tool_call>{"na', reason="the JSON ends early")
        agent = scripted(["Let me see.", broken], "sorry", tools=[add])
        stream = agent.stream_sync("?")
        assert MalformedCall(raw=broken.raw, reason=broken.reason) in list(stream)
        result = stream.result
        assert result.output == "sorry"
        assert result.usage.malformed == 1
        (part,) = result.messages[2].results
        assert part.error
        assert "could not be read: the JSON ends early" in part.content


class TestChoices:
    def test_a_required_call_is_required_once(self) -> None:
        agent = scripted(call("add", a=1, b=2), "3", tools=[add])
        agent.run_sync("?", tool_choice="required")
        assert [r.permitted.tool_choice for r in agent.model.requests] == ["required", "auto"]

    def test_a_wrong_call_does_not_count(self) -> None:
        agent = scripted(call("add", a=1), call("add", a=1, b=2), "3", tools=[add])
        agent.run_sync("?", tool_choice=Only("add"))
        assert [r.permitted.tool_choice for r in agent.model.requests] == [Only("add"), Only("add"), "auto"]

    def test_none_stays_none(self) -> None:
        agent = scripted("x", tools=[add])
        agent.run_sync("?", tool_choice="none", parallel=False, settings=ModelSettings(seed=3))
        (request,) = agent.model.requests
        assert (request.permitted.tool_choice, request.permitted.parallel, request.settings.seed) == ("none", False, 3)

    def test_unknown_options_are_refused(self) -> None:
        with pytest.raises(TypeError, match="no option 'temprature'"):
            scripted("x").run_sync("?", temprature=1)


class TestStreams:
    async def test_everything_that_happens_in_order(self) -> None:
        agent = scripted(["One moment.", call("add", a=1, b=2)], "It is 3.", tools=[add])
        async with agent.stream("?") as stream:
            events = [event async for event in stream]
        the_call = ToolCall(name="add", arguments={"a": 1, "b": 2}, id="call_1")
        kinds = [type(e) for e in events]
        assert kinds == [
            TextDelta, TextDelta, ToolCallStart, ArgumentsDelta, ArgumentsDelta, ToolCallEnd, StepEnd,
            ToolResult, TextDelta, TextDelta, TextDelta, StepEnd, FinalOutput,
        ]  # fmt: skip
        assert events[2:6] == [
            ToolCallStart(index=0, name="add"),
            ArgumentsDelta(index=0, path=("a",), text="1"),
            ArgumentsDelta(index=0, path=("b",), text="2"),
            ToolCallEnd(index=0, call=the_call),
        ]
        assert events[6].message.calls == (the_call,)
        assert (events[7].call, events[7].value, events[7].content) == (the_call, 3, "3")
        assert events[-1] == FinalOutput(output="It is 3.")
        assert stream.result.output == "It is 3."
        assert [e async for e in stream] == [], "it ends once"

    async def test_a_result_needs_the_end(self) -> None:
        stream = scripted("a b").stream("?")
        with pytest.raises(RunError, match="has not ended"):
            _ = stream.result
        await anext(stream)
        with pytest.raises(RunError, match="has not ended"):
            _ = stream.result
        await stream.aclose()

    async def test_failures_come_after_the_events_before_them(self) -> None:
        stream = scripted("one", call("add", a=1)).stream("?", limits=Limits(steps=1), messages=[])
        events = [event async for event in stream]
        assert isinstance(events[-1], FinalOutput)
        failing = scripted(call("add", a=1, b=1), tools=[add]).stream("?")
        seen = []

        async def read() -> None:
            async for event in failing:
                seen.append(event)  # noqa: PERF401 - what came before the failure counts

        with pytest.raises(ModelError, match="has 1 turns, and turn 2 was asked for"):
            await read()
        assert isinstance(seen[-1], ToolResult)
        with pytest.raises(ModelError):
            _ = failing.result

    async def test_nothing_goes_on_behind_the_reader(self) -> None:
        ran: list[int] = []

        def note(n: int) -> None:
            ran.append(n)

        async with scripted(call("note", n=1), "x", tools=[note]).stream("?") as stream:
            async for event in stream:
                await asyncio.sleep(0.02)
                if isinstance(event, StepEnd):
                    break
        assert ran == []
        for event in (sync := scripted(call("note", n=1), "x", tools=[note]).stream_sync("?")):
            if isinstance(event, StepEnd):
                sync.close()
        assert ran == []

    async def test_leaving_cancels_tools_and_keeps_the_conversation(self) -> None:
        cancelled = asyncio.Event()
        started = asyncio.Event()

        async def endless() -> None:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        agent = scripted([call("add", a=1, b=2), call("endless")], tools=[add, endless])
        async with agent.stream("?") as stream:
            async for event in stream:
                if isinstance(event, ToolResult):
                    break
            await started.wait()
        assert cancelled.is_set()
        with pytest.raises(RunCancelled) as caught:
            _ = stream.result
        run = caught.value.run
        assert run.status == "cancelled"
        assert [r.status for r in run.calls] == ["done", "cancelled"]
        assert [p.content for p in run.messages[-1].results] == ["3", "Cancelled while it ran."]
        assert scripted("fine").run_sync("And now?", messages=run.messages).output == "fine"

    async def test_leaving_closes_the_models_stream(self) -> None:
        closed = asyncio.Event()

        class Endless:
            name = "endless"

            async def stream(self, request: Any) -> Any:
                try:
                    while True:
                        yield TextDelta(text="on ")
                        await asyncio.sleep(0)
                finally:
                    closed.set()

        async with Agent(Endless()).stream("?") as stream:
            async for _ in stream:
                break
        assert closed.is_set()
        with pytest.raises(RunCancelled) as caught:
            _ = stream.result
        assert caught.value.run.messages == (user("?"),), "half a turn is no turn"

    async def test_dropping_a_stream_cancels_too(self) -> None:
        closed = asyncio.Event()

        class Endless:
            name = "endless"

            async def stream(self, request: Any) -> Any:
                try:
                    while True:
                        yield TextDelta(text="on ")
                        await asyncio.sleep(0)
                finally:
                    closed.set()

        async for _ in Agent(Endless()).stream("?"):
            break
        await asyncio.wait_for(closed.wait(), 10)

    async def test_cancelling_a_run(self) -> None:
        started = asyncio.Event()

        async def endless() -> None:
            started.set()
            await asyncio.Event().wait()

        run = asyncio.create_task(scripted(call("endless"), tools=[endless]).run("?"))
        await started.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await run
        messages = caught.value.run.messages  # type: ignore[attr-defined]
        assert [m.role for m in messages] == ["user", "assistant", "tool"]
        assert (await scripted("fine").run("And now?", messages=messages)).output == "fine"

    def test_without_a_loop(self) -> None:
        with scripted(call("add", a=1, b=2), "It is 3.", tools=[add]).stream_sync("?") as stream:
            kinds = [type(event).__name__ for event in stream]
        assert kinds[-1] == "FinalOutput"
        assert stream.result.output == "It is 3."
        with pytest.raises(ModelError, match="turn 1 was asked for"):
            list(scripted().stream_sync("?"))

    def test_leaving_one_without_a_loop(self) -> None:
        released = threading.Event()

        async def endless() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                released.set()

        with scripted(call("endless"), tools=[endless]).stream_sync("?") as stream:
            assert isinstance(next(stream), ToolCallStart)
            for event in stream:
                if isinstance(event, StepEnd):
                    break
        with pytest.raises(RunCancelled):
            _ = stream.result
        assert list(stream) == []

    def test_dropping_one_without_a_loop(self) -> None:
        closed = threading.Event()

        class Endless:
            name = "endless"

            async def stream(self, request: Any) -> Any:
                try:
                    while True:
                        yield TextDelta(text="on ")
                        await asyncio.sleep(0)
                finally:
                    closed.set()

        for _ in Agent(Endless()).stream_sync("?"):
            break
        gc.collect()
        assert closed.wait(10)

    def test_one_that_was_never_read(self) -> None:
        with scripted("x").stream_sync("?") as stream:
            pass
        with pytest.raises(RunError, match="has not begun"):
            _ = stream.result


class TestStarting:
    async def test_run_sync_inside_a_running_loop(self) -> None:
        here = threading.current_thread()
        seen: list[threading.Thread] = []

        async def where() -> str:
            seen.append(threading.current_thread())
            return "there"

        result = scripted(call("where"), "x", tools=[where]).run_sync("?")
        assert result.calls[0].value == "there"
        assert seen != [here]
        with pytest.raises(ModelError):
            scripted().run_sync("?")

    @pytest.mark.skipif(sys.platform == "win32", reason="signals")
    def test_an_interrupted_run_sync_inside_a_running_loop_is_cancelled(self) -> None:
        """As in a notebook: the interrupt reaches whoever waits, and the run does not go on without them."""
        program = """
import asyncio, os, signal
from agentgram import Agent
from agentgram.testing import ScriptedModel, call

# A shell's background jobs, tests among them, are begun with interrupts ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

async def interrupt() -> str:
    try:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()
    finally:
        print("cancelled", flush=True)

async def cell():
    Agent(ScriptedModel([call("interrupt")]), tools=[interrupt]).run_sync("?")

try:
    asyncio.new_event_loop().run_until_complete(cell())
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.stdout.split() == ["cancelled", "interrupted"], done.stderr

    async def test_many_runs_of_one_agent_do_not_mix(self) -> None:
        class Echo:
            name = "echo"

            async def stream(self, request: Any) -> Any:
                messages = request.permitted.messages
                await asyncio.sleep(0)
                if messages[-1].role == "tool":
                    reply = assistant(messages[-1].results[0].content)
                else:
                    reply = assistant(calls=[ToolCall(name="whoami", arguments={"n": int(messages[-1].text)})])
                yield StepEnd(step=request.step, message=reply)

        def whoami(ctx: RunContext[int], n: int) -> str:
            return f"{ctx.deps} {n}"

        agent = Agent(Echo(), tools=[whoami])
        results = await asyncio.gather(*(agent.run(str(n), deps=n) for n in range(30)))
        assert [r.output for r in results] == [f"{n} {n}" for n in range(30)]
        assert len({r.run_id for r in results}) == 30

    async def test_override_holds_for_what_starts_inside(self) -> None:
        agent, other = scripted("real"), scripted("other")

        async def ask() -> str:
            await asyncio.sleep(0)
            return (await agent.run("?")).output

        with agent.override(model=ScriptedModel(["fake", "fake again", "nested"])):
            assert agent.run_sync("?").output == "fake"
            task = asyncio.create_task(ask())
            assert other.run_sync("?").output == "other"
            assert await task == "fake again"
        assert (await agent.run("?")).output == "real"

    def test_no_models(self, tmp_path: Path) -> None:
        from agentgram.models import guard

        with no_models():
            with pytest.raises(ModelError, match="loading 'smollm2' is forbidden here by no_models"):
                Agent("smollm2").run_sync("?")
            with pytest.raises(ModelError, match="forbidden"):
                Agent(tmp_path).run_sync("?")
            assert scripted("x").run_sync("?").output == "x"
            agent = Agent("smollm2")
            with agent.override(model=ScriptedModel(["fake"])):
                assert agent.run_sync("?").output == "fake"
        guard.check("now")

    def test_mistakes_in_the_declaration(self) -> None:
        with pytest.raises(DefinitionError, match="on_denied is 'shout'"):
            Agent("smollm2", on_denied="shout")
        with pytest.raises(DefinitionError, match="model is 3"):
            Agent(3)
        with pytest.raises(DefinitionError, match="policy is"):
            Agent("smollm2", policy=[])
        with pytest.raises(DefinitionError, match="two tools are named 'add'"):
            Agent("smollm2", tools=[add, add.bind(b="deps.b")])
        with pytest.raises(DefinitionError, match="Limits"):
            Limits(steps=0)

    def test_a_model_without_an_end_is_told_apart(self) -> None:
        class Broken:
            name = "broken"

            async def stream(self, request: Any) -> Any:
                yield TextDelta(text="x")

        with pytest.raises(ModelError, match="'broken' ended its turn without StepEnd"):
            Agent(Broken()).run_sync("?")


class TestScriptedModel:
    def test_functions_see_the_request(self) -> None:
        def answer(request: Any) -> str:
            return f"{request.step}: {request.permitted.messages[-1].text}"

        assert scripted(answer).run_sync("Hi").output == "1: Hi"

    def test_messages_are_played_with_all_their_parts(self) -> None:
        message = Message(role="assistant", parts=(ReasoningPart(text="hm hm"), TextPart(text="yes")))
        stream = scripted(message).stream_sync("?")
        assert [type(e).__name__ for e in stream] == [
            "ReasoningDelta",
            "ReasoningDelta",
            "TextDelta",
            "StepEnd",
            "FinalOutput",
        ]
        assert stream.result.messages[-1] == message
        assert stream.result.usage.sampled_tokens == 3

    def test_what_no_model_could_write_is_an_error_of_the_script(self) -> None:
        with pytest.raises(ModelError, match="tool_choice is 'none'"):
            scripted(call("add", a=1, b=2), tools=[add]).run_sync("?", tool_choice="none")
        with pytest.raises(ModelError, match="parallel is False"):
            scripted([call("add", a=1, b=2)] * 2, tools=[add]).run_sync("?", parallel=False)
        with pytest.raises(ModelError, match="the script holds 3"):
            scripted(3).run_sync("?")

    def test_an_empty_turn_is_an_empty_answer(self) -> None:
        result = scripted("").run_sync("?")
        assert result.output == ""
        assert result.messages == (user("?"),)
