"""The models made of noise: valid by the masks alone, repeatable, and models like any other."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgram import Agent, tool
from agentgram.engine import Vocabulary
from agentgram.errors import DefinitionError
from agentgram.events import CallDenied, StepEnd
from agentgram.formats import Only, Request, get_format
from agentgram.messages import user
from agentgram.models import Model, ModelRequest, ModelSettings
from agentgram.testing import AdversarialModel, GrammarModel
from agentgram.tools.definition import ToolDefinition


def define(name: str, properties: dict[str, Any], required: list[str]) -> ToolDefinition:
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return ToolDefinition(name=name, schema=schema)


TOOLS = [
    define("ping", {}, []),
    define("move", {"to": {"enum": ["left", "right"]}, "steps": {"type": "integer", "minimum": 1}}, ["to"]),
    define(
        "note",
        {"text": {"type": "string", "maxLength": 12}, "tags": {"type": "array", "items": {"type": "boolean"}}},
        ["text", "tags"],
    ),
]
SCHEMAS = {t.name: t.schema for t in TOOLS}
ANSWER = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "why": {"type": ["string", "null"], "maxLength": 8}},
    "required": ["ok"],
    "additionalProperties": False,
}


def ask(model: GrammarModel, max_tokens: int = 300, **request: Any) -> StepEnd:
    turn = Request(messages=[user("go")], **request)
    *_, end = model.turn(ModelRequest(declared=turn, permitted=turn, settings=ModelSettings(max_tokens=max_tokens)))
    assert isinstance(end, StepEnd)
    return end


@given(
    st.integers(0, 10**6),
    st.sampled_from(["auto", "required", "none", Only("note"), Only("ping")]),
    st.booleans(),
    st.sampled_from([None, ANSWER]),
    st.sampled_from(["hermes", "smollm2"]),
)
def test_noise_is_valid(seed: int, choice: Any, parallel: bool, answer: Any, fmt: str) -> None:
    model = GrammarModel(seed, format=fmt)
    end = ask(model, tools=TOOLS, tool_choice=choice, parallel=parallel, output_schema=answer)
    message = end.message
    assert message.malformed == ()
    for call in message.calls:
        jsonschema.validate(call.arguments, SCHEMAS[call.name])
    if choice == "none":
        assert not message.calls
    elif choice != "auto":
        assert message.calls
    if isinstance(choice, Only):
        assert [c.name for c in message.calls] == [choice.name]
    if not parallel:
        assert len(message.calls) <= 1
    if answer is not None and not message.calls:
        jsonschema.validate(json.loads(message.text), answer)


def test_noise_does_everything_now_and_then() -> None:
    model = GrammarModel(3)
    ends = [ask(model, tools=TOOLS) for _ in range(60)]
    assert {c.name for e in ends for c in e.message.calls} == set(SCHEMAS)
    assert any(len(e.message.calls) > 1 for e in ends)
    assert any(e.message.text and e.message.calls for e in ends)
    assert any(not e.message.calls for e in ends)
    assert {e.finish for e in ends} <= {"stop", "length"}


def test_a_seed_repeats_all_turns() -> None:
    def turns(seed: int) -> list[StepEnd]:
        model = GrammarModel(seed)
        return [ask(model, tools=TOOLS, max_tokens=120) for _ in range(4)]

    assert turns(1) == turns(1)
    assert turns(1) != turns(2)


def test_any_vocabulary_serves() -> None:
    pieces = sorted(
        {bytes([b]) for b in range(256)} | {b'<tool_call>\n{"name', b'": "', b'ping"', b"}}\n</tool", b"ab"}
    )
    size = len(pieces)
    vocabulary = Vocabulary([*pieces, b"", b""], special={"<|im_end|>": size, "<x>": size + 1}, end=[size])
    for seed in range(20):
        end = ask(GrammarModel(seed, vocabulary=vocabulary), tools=TOOLS, tool_choice="required")
        assert end.message.calls
        assert end.message.malformed == ()


async def test_they_are_models_of_an_agent() -> None:
    ran: list[int] = []

    @tool
    def count(number: int) -> str:
        """Counts.

        Args:
            number: Any number.
        """
        ran.append(number)
        return "counted"

    model = GrammarModel(5)
    assert isinstance(model, Model)
    agent = Agent(model, tools=[count])
    result = await agent.run("go", tool_choice="required", settings=ModelSettings(max_tokens=80))
    assert ran
    assert [c.arguments["number"] for c in result.calls if not c.error] == ran, "what was cut off is not made"


def test_an_adversary_writes_its_target_where_it_may() -> None:
    hermes = get_format("hermes")
    target = hermes.print_call(TOOLS[1], {"to": "left", "steps": 3})
    model = AdversarialModel([target, "Hello."], seed=9)
    first, second, third = (ask(model, tools=TOOLS) for _ in range(3))
    assert model.outputs == [target.encode(), b"Hello.", target.encode()]
    assert first == third
    assert second.message.text == "Hello."
    assert model.attempts == 3


def test_a_denied_wish_is_one_event() -> None:
    hermes = get_format("hermes")
    model = AdversarialModel([hermes.print_call(TOOLS[0], {})])
    declared = Request(messages=[user("go")], tools=TOOLS)
    permitted = Request(messages=declared.messages, tools=TOOLS[1:])
    events = list(model.turn(ModelRequest(declared=declared, permitted=permitted)))
    assert [type(e) for e in events] == [CallDenied, StepEnd]


def test_no_target_is_a_mistake() -> None:
    with pytest.raises(DefinitionError, match="at least one target"):
        AdversarialModel([])
    with pytest.raises(DefinitionError, match="hermes"):
        GrammarModel(format="hermès")
