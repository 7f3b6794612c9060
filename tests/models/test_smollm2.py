"""The real model: what the grammar promises holds for it too. What it says is its own affair."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from agentgram.events import CallDenied, StepEnd
from agentgram.formats import Request
from agentgram.messages import ToolCall, ToolResultPart, assistant, tool_results, user
from agentgram.models import ModelRequest, ModelSettings, TransformersModel, load_model
from agentgram.tools.definition import ToolDefinition

pytestmark = [pytest.mark.model, pytest.mark.slow]

STATUS = ToolDefinition(
    name="order_status",
    description="Look up the status of an order.",
    schema={
        "type": "object",
        "properties": {"order": {"type": "integer", "description": "The order's number."}},
        "required": ["order"],
        "additionalProperties": False,
    },
)
HOURS = ToolDefinition(
    name="opening_hours",
    description="When the shop is open.",
    schema={
        "type": "object",
        "properties": {"day": {"enum": ["weekday", "saturday", "sunday"]}},
        "required": ["day"],
        "additionalProperties": False,
    },
)
SCHEMAS = {t.name: t.schema for t in (STATUS, HOURS)}
QUESTION = [user("What is the status of order 17?")]


async def run(model: TransformersModel, declared: Request, permitted: Request, **settings: Any) -> list[Any]:
    request = ModelRequest(declared=declared, permitted=permitted, settings=ModelSettings(**settings))
    return [event async for event in model.stream(request)]


def test_a_name_is_loaded_once(smollm2: TransformersModel) -> None:
    assert load_model("smollm2") is smollm2
    assert smollm2.name == "smollm2"
    assert smollm2.format.name == "smollm2"
    assert smollm2.context == 8192


async def test_a_required_call_is_valid_and_mostly_forced(smollm2: TransformersModel) -> None:
    request = Request(messages=QUESTION, tools=[STATUS, HOURS], tool_choice="required", parallel=False)
    end = (await run(smollm2, request, request, max_tokens=100))[-1]
    assert isinstance(end, StepEnd)
    (call,) = end.message.calls
    jsonschema.validate(call.arguments, SCHEMAS[call.name])
    assert end.finish == "stop"
    assert end.forced_tokens > end.sampled_tokens
    again = (await run(smollm2, request, request, max_tokens=100))[-1]
    assert again.message == end.message


async def test_a_typed_answer_fits_its_schema_and_reuses_the_cache(smollm2: TransformersModel) -> None:
    call = ToolCall(name="order_status", arguments={"order": 17})
    result = ToolResultPart(name="order_status", content='{"order": 17, "status": "shipped"}')
    schema = {
        "type": "object",
        "properties": {"order": {"type": "integer"}, "status": {"type": "string", "maxLength": 30}},
        "required": ["order", "status"],
        "additionalProperties": False,
    }
    history = [*QUESTION, assistant(calls=[call]), tool_results(result)]
    asked = Request(messages=QUESTION, tools=[STATUS], tool_choice="required", output_schema=schema)
    await run(smollm2, asked, asked, max_tokens=100)
    before = smollm2.backend.computed_tokens
    request = Request(messages=history, tools=[STATUS], tool_choice="none", output_schema=schema)
    end = (await run(smollm2, request, request, max_tokens=100))[-1]
    jsonschema.validate(json.loads(end.message.text), schema)
    assert smollm2.backend.computed_tokens - before < 0.6 * (end.input_tokens + end.sampled_tokens)


@pytest.mark.parametrize("seed", range(3))
async def test_a_denied_tool_is_never_called(smollm2: TransformersModel, seed: int) -> None:
    declared = Request(messages=QUESTION, tools=[STATUS, HOURS], tool_choice="required")
    permitted = Request(messages=QUESTION, tools=[HOURS], tool_choice="required")
    events = await run(smollm2, declared, permitted, temperature=1.0, seed=seed, max_tokens=100)
    end = events[-1]
    denied = [e for e in events if isinstance(e, CallDenied)]
    assert "order_status" not in {c.name for c in end.message.calls}
    assert bool(denied) == (end.finish == "denied")
    assert {d.tool for d in denied} <= {"order_status"}
    assert end.message.malformed == ()
