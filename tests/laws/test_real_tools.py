"""Laws with other people's tools: the functions of the Berkeley function-calling data, and calls of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentgram.formats import Request
from agentgram.formats.printing import print_turn
from agentgram.messages import ToolCall, assistant
from agentgram.tools.definition import ToolDefinition
from tests.laws.reading import by_engine, read
from tests.laws.shapes import EVERY_FORMAT, format_of, only_at_start, without_ids

jsonschema = pytest.importorskip("jsonschema")

_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": None}


def converted(schema: Any) -> Any:
    """A schema of the Berkeley function-calling data as JSON Schema: its types have names of their own."""
    if isinstance(schema, list):
        return [converted(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    out = {k: converted(v) for k, v in schema.items() if k in ("properties", "required", "items", "enum")}
    if "properties" in out:
        out["properties"] = {k: converted(v) for k, v in schema["properties"].items()}
    kind = schema.get("type")
    kind = _TYPES.get(kind, kind) if isinstance(kind, str) else None
    return {**out, "type": kind} if kind in ("object", "number", "integer", "string", "boolean", "array") else out


def bfcl(kind: str) -> list[tuple[list[ToolDefinition], list[ToolCall]]]:
    package = pytest.importorskip("bfcl_eval", reason="bfcl-eval is not installed")
    data = Path(package.__file__).parent / "data"
    questions, answers = (
        [json.loads(line) for line in (folder / f"BFCL_v4_{kind}.json").read_text("utf-8").splitlines()]
        for folder in (data, data / "possible_answer")
    )
    out = []
    for question, answer in zip(questions, answers, strict=True):
        definitions = [
            ToolDefinition(name=f["name"], description=f["description"], schema=converted(f["parameters"]))
            for f in question["function"]
        ]
        made = []
        for one in answer["ground_truth"]:
            ((name, choices),) = one.items()
            definition = next(d for d in definitions if d.name == name)
            arguments = {
                k: choices[k][0] for k in definition.schema["properties"] if k in choices and choices[k][0] != ""
            }
            if jsonschema.Draft202012Validator(definition.schema).is_valid(arguments):
                made.append(ToolCall(name=name, arguments=arguments))
        if made and len({d.name for d in definitions}) == len(definitions):
            out.append((definitions, made))
    return out


@EVERY_FORMAT
@pytest.mark.parametrize("kind", ["multiple", "parallel"])
def test_calls_of_real_tools_are_printed_accepted_and_read(name: str, kind: str) -> None:
    fmt = format_of(name)
    rows = bfcl(kind)
    assert len(rows) > 100
    for definitions, made in rows[::5]:
        request = Request(tools=definitions)
        made = made if fmt.parallel else made[:1]
        message = assistant("" if only_at_start(fmt) else "Now.", calls=made)
        printed = print_turn(fmt, message, str, tools=definitions)
        assert without_ids(read(fmt, request, [printed.encode()])[1]) == message
        assert by_engine(fmt.grammar(request), printed.encode()), printed
        called = {c.name for c in made}
        others = [d for d in definitions if d.name not in called]
        if others or not only_at_start(fmt):  # without tools, text may begin like a call
            assert not by_engine(fmt.grammar(Request(tools=others)), printed.encode())
