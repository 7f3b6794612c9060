"""The laws of prompts, for every format."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from agentgram.formats import Args, Request
from agentgram.formats.nodes import walk
from agentgram.messages import Message, Part, TextPart, ToolCall, ToolResultPart, assistant, system, tool_results, user
from agentgram.tools.definition import ToolDefinition
from tests.laws.shapes import EVERY_FORMAT, format_of
from tests.laws.strategies import TEXTS, calls, tools

# 6


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[ToolDefinition], list[Message]]:
    definitions = draw(tools(min_size=1))
    said = [system(draw(TEXTS))] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(1, 3))):
        said.append(user(draw(TEXTS)))
        made = draw(calls(definitions))
        said.append(assistant(draw(TEXTS), calls=made))
        if made:
            said.append(tool_results(*(ToolResultPart(name=c.name, content=draw(TEXTS)) for c in made)))
            said.append(assistant(draw(TEXTS)))
    return definitions, said


@EVERY_FORMAT
@given(conversation=conversations())
def test_a_longer_history_begins_with_the_shorter_one(
    name: str, conversation: tuple[list[ToolDefinition], list[Message]]
) -> None:
    fmt = format_of(name)
    definitions, said = conversation
    prompts = [
        fmt.render(Request(tools=definitions, messages=said[:count])).text
        for count in range(1, len(said) + 1)
        if count == len(said) or said[count].role == "assistant"
    ]
    for before, after in itertools.pairwise(prompts):
        assert after.startswith(before)


def said_by_nobody(message: Message) -> Message:
    """The message with a letter in the place of every text that says something."""
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, TextPart):
            parts.append(TextPart(text="x" if part.text.strip() else part.text))
        elif isinstance(part, ToolResultPart):
            parts.append(ToolResultPart(name=part.name, content="x", call_id=part.call_id))
        elif isinstance(part, ToolCall):
            parts.append(ToolCall(name=part.name, arguments={}))
    return Message(role=message.role, parts=tuple(parts))


@EVERY_FORMAT
@given(conversation=conversations())
def test_data_is_not_markup(name: str, conversation: tuple[list[ToolDefinition], list[Message]]) -> None:
    """However users, tools and descriptions spell the format's markers, the prompt has those of the format only."""
    fmt = format_of(name)
    definitions, said = conversation
    plain = [ToolDefinition(name=d.name, description="x" if d.description.strip() else "") for d in definitions]
    prompt = fmt.render(Request(tools=definitions, messages=said)).text
    harmless = fmt.render(Request(tools=plain, messages=[said_by_nobody(m) for m in said])).text
    quotes = {value for node in walk(fmt.output) if isinstance(node, Args) for _, value in node.options}
    for marker in set(fmt.markers) - quotes:  # how many strings there are is the arguments' affair
        assert prompt.count(marker) == harmless.count(marker), marker
