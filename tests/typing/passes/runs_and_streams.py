"""Streams, sessions, fakes and observers have types."""

from typing import Any, assert_type

from pydantic import BaseModel

from agentgram import Agent, ModelSettings, Only, RunContext, RunResult, RunStream, SQLiteSession, Toolset
from agentgram.events import Event, FinalOutput, TextDelta, ToolResult
from agentgram.messages import Message, ToolCall
from agentgram.testing import GrammarModel, ScriptedModel, call


class Answer(BaseModel):
    order: int


def watch(event: Event, ctx: RunContext[Any]) -> None:
    print(ctx.run_id, event)


def add(a: int, b: int) -> int:
    return a + b


agent = Agent(ScriptedModel([call("add", a=1, b=2), "3"]), tools=Toolset([add]).prefixed("math."), on_event=watch)
typed = Agent(GrammarModel(1), output_type=Answer)
session = SQLiteSession("chats.db", "a")
result = agent.run_sync("?", session=session, tool_choice=Only("add"), settings=ModelSettings(seed=1), on_event=watch)
assert_type(result, RunResult[str])
assert_type(result.messages, tuple[Message, ...])
assert_type(session.messages, tuple[Message, ...])
assert_type(agent.count_tokens({"role": "user", "content": "?"}, messages=[{"role": "user", "content": "Hi"}]), int)
assert_type(result.messages[0].calls, tuple[ToolCall, ...])
for union in Agent("smollm2", output_type=list[int]).run_sync("?").output:
    assert_type(union, int)


async def use() -> None:
    stream = typed.stream("?")
    assert_type(stream, RunStream[Answer])
    async with stream:
        async for event in stream:
            match event:
                case TextDelta(text=text):
                    assert_type(text, str)
                case ToolResult(call=the_call):
                    assert_type(the_call, ToolCall)
                case FinalOutput():
                    pass
    assert_type(stream.result.output, Answer)
    with agent.override(model=ScriptedModel(["x"])):
        pass
