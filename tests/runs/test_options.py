"""What one run may be given: tools, messages of other makers, observers; and what is cut, counted and delegated."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from agentgram import (
    Agent,
    DefinitionError,
    Limits,
    ModelError,
    ModelSettings,
    Policy,
    Principal,
    RunContext,
    ToolFailed,
    allow,
    tool,
)
from agentgram.events import Event, FinalOutput, StepEnd, ToolProgress, ToolResult
from agentgram.messages import INTERRUPTED, Message, ToolCall, ToolResultPart, assistant, to_openai, tool_results, user
from agentgram.testing import GrammarModel, ScriptedModel, call


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def scripted(*turns: Any, **options: Any) -> Agent[Any, Any]:
    return Agent(ScriptedModel(turns), **options)


class TestTools:
    def test_of_one_run_take_the_place_of_the_agents(self) -> None:
        def double(a: int) -> int:
            return 2 * a

        agent = scripted(call("double", a=2), "4", "none", tools=[add])
        assert agent.run_sync("?", tools=[double]).calls[0].value == 4
        agent.run_sync("?", tools=[])
        assert [[t.name for t in r.permitted.tools] for r in agent.model.requests] == [["double"], ["double"], []]
        with pytest.raises(DefinitionError, match="3 is not a tool"):
            agent.run_sync("?", tools=[3])


class TestOpenAIMessages:
    HISTORY = (
        user("1 + 2?"),
        assistant(calls=[ToolCall(name="add", arguments={"a": 1, "b": 2}, id="c1")]),
        tool_results(ToolResultPart(name="add", content="3", call_id="c1")),
        assistant("3"),
    )

    def test_go_in_and_come_out(self) -> None:
        dicts = to_openai(self.HISTORY)
        assert json.loads(json.dumps(dicts)) == dicts
        result = scripted("7", tools=[add]).run_sync({"role": "user", "content": "3 + 4?"}, messages=dicts)
        assert result.messages == (*self.HISTORY, user("3 + 4?"), assistant("7"))
        assert to_openai(result.messages)[: len(dicts)] == dicts
        assert [m.role for m in result.new_messages] == ["user", "assistant"]

    def test_one_by_one(self) -> None:
        for message in self.HISTORY:
            (data,) = message.to_openai()
            assert Message.from_openai(data) == message
        with pytest.raises(DefinitionError, match="message 0 is not an OpenAI chat message"):
            Message.from_openai({"content": "no role"})

    def test_mix_with_messages(self) -> None:
        mixed = [*self.HISTORY[:2], *to_openai(self.HISTORY[2:])]
        assert scripted("x").run_sync("and?", messages=mixed).messages[:4] == self.HISTORY

    def test_that_are_none_are_named(self) -> None:
        with pytest.raises(DefinitionError, match="message 1 is not an OpenAI chat message: unknown role 'robot'"):
            scripted("x").run_sync("?", messages=[{"role": "user", "content": ""}, {"role": "robot", "content": ""}])
        with pytest.raises(DefinitionError, match="message 0 is 'hello'"):
            scripted("x").run_sync("?", messages=["hello"])


class TestOpenCalls:
    """A conversation that was cut off has calls without results, and templates refuse it."""

    CALLS = (
        user("?"),
        assistant(calls=[ToolCall(name="add", arguments={}, id="c1"), ToolCall(name="add", arguments={}, id="c2")]),
    )

    def test_are_told_to_be_interrupted(self) -> None:
        messages = scripted("x").run_sync("and now?", messages=self.CALLS).messages
        assert [r.content for r in messages[2].results] == [INTERRUPTED] * 2
        assert messages[3] == user("and now?")

    def test_what_the_caller_answers_is_taken(self) -> None:
        mine = tool_results(ToolResultPart(name="add", content="3", call_id="c2"))
        result = scripted("x").run_sync([mine, user("go on")], messages=self.CALLS)
        assert [(r.call_id, r.content) for r in result.messages[2].results] == [("c2", "3"), ("c1", INTERRUPTED)]
        assert result.new_messages == result.messages[2:]
        both = (*self.CALLS, mine, tool_results(ToolResultPart(name="add", content="4", call_id="c1")))
        assert scripted("x").run_sync("?", messages=both).messages[:4] == both


class TestObservers:
    def test_are_told_every_event_with_its_run(self) -> None:
        seen: list[tuple[str, Event, RunContext[Any]]] = []
        agent = scripted(
            call("add", a=1, b=2), "3", tools=[add], on_event=lambda e, ctx: seen.append(("agent", e, ctx))
        )
        stream = agent.stream_sync("?", deps="d", on_event=lambda e, ctx: seen.append(("run", e, ctx)))
        events = list(stream)
        for who in ("agent", "run"):
            assert [e for w, e, _ in seen if w == who] == events
        assert {ctx.run_id for _, _, ctx in seen} == {stream.result.run_id}
        assert {ctx.deps for _, _, ctx in seen} == {"d"}
        assert isinstance(seen[-1][1], FinalOutput)

    def test_do_no_harm(self, caplog: pytest.LogCaptureFixture) -> None:
        def careless(event: Event, ctx: RunContext[Any]) -> None:
            raise ZeroDivisionError

        with caplog.at_level(logging.ERROR, logger="agentgram"):
            assert scripted("x", on_event=careless).run_sync("?").output == "x"
        assert {r.message for r in caplog.records} == {
            f"on_event failed for {name}" for name in ("TextDelta", "StepEnd", "FinalOutput")
        }

    def test_the_log_tells_how_a_run_ended_and_no_secret(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.DEBUG, logger="agentgram"):
            result = scripted(call("add", a=123456, b=2), "x", tools=[add]).run_sync("hush")
        assert f"run {result.run_id} is done" in caplog.text
        assert "hush" not in caplog.text
        assert "123456" not in caplog.text
        with caplog.at_level(logging.DEBUG, logger="agentgram"), pytest.raises(ModelError):
            scripted().run_sync("hush")
        assert "ended with ModelError: Usage(steps=0" in caplog.text
        assert "hush" not in caplog.text


class TestLongResults:
    @pytest.mark.parametrize("length", [0, 1, 19, 20, 21, 1000])
    def test_are_cut_for_the_model_only(self, length: int) -> None:
        @tool(max_result_tokens=20)
        def read() -> str:
            return " ".join(["word"] * length)

        (record,) = scripted(call("read"), "x", tools=[read]).run_sync("?").calls
        assert record.value == " ".join(["word"] * length)
        if length <= 20:
            assert record.content == record.value
        else:
            shown, _, note = record.content.partition("\n")
            assert len(shown.split()) == 20
            assert note == f"[cut: the first {len(shown)} of {len(record.value)} characters]"

    def test_are_counted_in_the_models_tokens(self) -> None:
        @tool(max_result_tokens=10)
        def read() -> list[str]:
            return ["é" * 100]

        record = Agent(Counting(), tools=[read]).run_sync("?").calls[0]
        assert record.content.startswith('["éééé\n[cut: the first 6 of 104 characters]'), "single bytes are its tokens"

    def test_stay_cut_when_the_tool_is_renamed_or_bound(self) -> None:
        @tool(max_result_tokens=7)
        def read(name: str) -> str:
            return name

        assert read.renamed("r").max_result_tokens == 7
        assert read.bind(name="run_id").max_result_tokens == 7
        with pytest.raises(DefinitionError, match="max_result_tokens=0"):
            tool(max_result_tokens=0)(lambda_named := read.function) and lambda_named


class Counting:
    """Calls once, then answers; its tokens are bytes."""

    name = "counting"

    def count_tokens(self, what: Any) -> int:
        return len(what.encode())

    async def stream(self, request: Any) -> Any:
        first = request.step == 1
        yield StepEnd(
            step=request.step,
            message=assistant(calls=[ToolCall(name="read", arguments={})]) if first else assistant("x"),
        )


class TestCounting:
    def test_the_first_prompt(self) -> None:
        agent = Agent(GrammarModel(), tools=[add], instructions="Be brief.")
        alone = agent.count_tokens("Hi")
        longer = agent.count_tokens("Hi", messages=[user("x" * 100), assistant("y" * 100)])
        assert longer > alone + 200
        assert agent.count_tokens("Hi", tools=[]) < alone
        assert agent.model.outputs == []

    def test_needs_a_model_that_counts(self) -> None:
        class Silent:
            name = "silent"

            async def stream(self, request: Any) -> Any:
                yield StepEnd(step=1, message=Message(role="assistant"))

        with pytest.raises(DefinitionError, match="'silent' does not count tokens"):
            Agent(Silent()).count_tokens("Hi")


class TestAgentsAsTools:
    def test_answer_for_the_same_user_and_count_as_the_callers(self) -> None:
        seen: list[Any] = []

        def orders(ctx: RunContext[str]) -> str:
            seen.append((ctx.deps, ctx.user))
            return "17"

        clerk = scripted(call("orders"), "It is 17.", tools=[orders], policy=Policy(allow("orders", users="alice")))
        alice = Principal("alice")
        agent = scripted(
            call("clerk", prompt="Which order?"), "17", tools=[clerk.as_tool("clerk", "Knows the orders.")]
        )
        stream = agent.stream_sync("?", deps="shop", user=alice)
        progress = [e.value for e in stream if isinstance(e, ToolProgress)]
        result = stream.result
        assert seen == [("shop", alice)]
        assert result.calls[0].content == "It is 17."
        assert any(isinstance(e, ToolResult) and e.content == "17" for e in progress)
        assert clerk.model.requests[0].permitted.messages == (user("Which order?"),)
        assert result.usage.steps == 2
        assert result.usage.tool_calls == 2
        assert result.usage.sampled_tokens > 6
        definition = agent.model.requests[0].permitted.tools[0]
        assert definition.description == "Knows the orders."
        assert list(definition.schema["properties"]) == ["prompt"]

    def test_that_fail_are_failed_calls(self) -> None:
        clerk = scripted(call("add", a=1, b=2), tools=[add])
        agent = scripted(call("clerk", prompt="?"), "Sorry.", tools=[clerk.as_tool("clerk", "?")])
        result = agent.run_sync("?")
        assert (result.calls[0].status, result.calls[0].content) == ("failed", "clerk could not do that.")
        assert isinstance(result.calls[0].exception, ToolFailed)
        assert "has 1 turns" in str(result.calls[0].exception.__cause__)
        assert result.usage.tool_calls == 2, "what it had done counts"

    def test_that_are_refused_are_failed_calls(self) -> None:
        clerk = scripted(call("add", a=1, b=2), tools=[add], policy=Policy(allow("x")), on_denied="stop")
        agent = scripted(call("clerk", prompt="?"), "Sorry.", tools=[clerk.as_tool("clerk", "?")])
        result = agent.run_sync("?", user=Principal("bob"))
        assert result.calls[0].content == "clerk may not do that."
        assert result.usage.denied == 1

    def test_their_tokens_count_against_the_callers_limits(self) -> None:
        from agentgram import LimitExceeded

        clerk = scripted("word " * 50)
        agent = scripted(call("clerk", prompt="?"), "x", tools=[clerk.as_tool("clerk", "?")])
        with pytest.raises(LimitExceeded, match="output tokens"):
            agent.run_sync("?", limits=Limits(output_tokens=20))

    def test_settings_are_theirs(self) -> None:
        clerk = scripted("x")
        as_tool = clerk.as_tool("clerk", "?", settings=ModelSettings(seed=7), timeout=5)
        assert as_tool.timeout == 5
        scripted(call("clerk", prompt="?"), "x", tools=[as_tool]).run_sync("?")
        assert clerk.model.requests[0].settings.seed == 7
