"""What models write beside what they should, format by format: read as it was meant, in every cut into two pieces."""

from __future__ import annotations

from typing import Any

import pytest

from agentgram.formats import Request, get_format
from agentgram.messages import MalformedPart, Message, Part, ReasoningPart, TextPart, ToolCall
from agentgram.tools.definition import ToolDefinition
from tests.laws.reading import read

STRING = {"type": "string"}
TOOLS = [
    ToolDefinition(name="look", schema={"type": "object", "properties": {"id": STRING}, "required": ["id"]}),
    ToolDefinition(
        name="run",
        schema={
            "type": "object",
            "properties": {"cmd": STRING, "limit": {"type": "integer"}, "opts": {"type": "object"}},
        },
    ),
    ToolDefinition(name="now"),
]
NOW = ToolCall(name="now", arguments={})


def look(text: str = "x") -> ToolCall:
    return ToolCall(name="look", arguments={"id": text})


def run(cmd: str, **more: Any) -> ToolCall:
    return ToolCall(name="run", arguments={"cmd": cmd, **more})


def bare_run(**arguments: Any) -> ToolCall:
    return ToolCall(name="run", arguments=arguments)


def said(text: str) -> TextPart:
    return TextPart(text=text)


CASES: list[tuple[str, str, tuple[Part, ...]]] = [
    ("hermes", '<tool_call>\n{"name": "functions.look", "arguments": {"id": "x"}}\n</tool_call>', (look(),)),
    ("hermes", '<tool_call>{"function": "look", "arguments": {"id": "x"}}</tool_call>', (look(),)),
    ("hermes", '<tool_call>{"id": "7", "name": "now", "extra": {}, "type": "function"}</tool_call>', (NOW,)),
    ("hermes", '<think>so <tool_call>\n{"name": "now"}\n</tool_call>', (ReasoningPart(text="so "), NOW)),
    ("llama3_json", '{"type": "function", "function": "look", "parameters": {"id": "x"}}', (look(),)),
    ("llama3_json", '{"function": {"name": "look", "parameters": {"id": "x"}}}', (look(),)),
    ("llama3_json", '{"name": "look", "arguments": {"id": "x"}}<|eom_id|>', (look(),)),
    ("llama3_json", '<|python_tag|>{"name": "now", "parameters": {}}', (NOW,)),
    ("llama3_json", '{"name": "look", "parameters": {"id": "x"}}; {"name": "now"}', (look(), NOW)),
    ("llama3_json", '[{"name": "look", "parameters": {"id": "x"}}, {"name": "now"}]', (look(), NOW)),
    ("llama3_json", 'Sure. {"name":"look","parameters":{"id":"x"}}', (said("Sure. "), look())),
    ("llama3_json", '{"name": "Bob", "age": 5}', (said('{"name": "Bob", "age": 5}'),)),
    ("llama3_json", "[1] and {2}", (said("[1] and {2}"),)),
    ("llama_function", '<function=look>{"id": "x"}', (look(),)),
    ("llama_function", "#include <functional>", (said("#include <functional>"),)),
    ("llama_function", "I do.\n<function=now>{}</function>\n<function=now></function>", (said("I do."), NOW, NOW)),
    ("llama_pythonic", '[look(id="x"), now()]\nDone.', (look(), NOW, said("\nDone."))),
    ("llama_pythonic", "[run(cmd='it's \"fine\"', limit=007)]", (run('it\'s "fine"', limit=7),)),
    (
        "llama_pythonic",
        "[run(cmd='a\nb', opts={'k': (1, None), \"l\": true})]",
        (run("a\nb", opts={"k": [1, None], "l": True}),),
    ),
    ("llama_pythonic", "<|python_start|>[now()]<|python_end|>", (NOW,)),
    ("llama_pythonic", '[look(id="x")', (look(),)),
    ("llama_pythonic", "[see](http://x) [1]", (said("[see](http://x) [1]"),)),
    ("llama_pythonic", "[]", ()),
    ("llama_pythonic", "[look(id=x y), run(cmd=ls -l, limit=5)]", (look("x y"), run("ls -l", limit=5))),
    ("llama_pythonic", "[look(id=75_001), run(cmd=true.sh)]", (look("75_001"), run("true.sh"))),
    ("llama_pythonic", """[run(limit="5", opts="{'k': [1, None]}")]""", (bare_run(limit=5, opts={"k": [1, None]}),)),
    ("llama_pythonic", '[run(cmd="5", limit="five")]', (run("5", limit="five"),)),
    ("qwen3_coder", "<function=run>\n<parameter=cmd>\nls\n</parameter>\n</function>\n</tool_call>", (run("ls"),)),
    ("qwen3_coder", "<tool_call><function=run><parameter=cmd>ls</parameter></function></tool_call>", (run("ls"),)),
    ("qwen3_coder", '<tool_call>\n<function=run>\n{"cmd": "ls"}\n</function>\n</tool_call>', (run("ls"),)),
    (
        "qwen3_coder",
        '<tool_call>\n<function=run>\n<parameter name="cmd">ls</parameter>\n</function></tool_call>',
        (run("ls"),),
    ),
    (
        "qwen3_coder",
        "<tool_call>\n< function=run>\n< parameter = cmd >\nls\n</ parameter>\n</function>\n</tool_call>",
        (run("ls"),),
    ),
    ("qwen3_coder", '<tool_call>\n{"name": "run", "arguments": {"cmd": "ls"}}\n</tool_call>', (run("ls"),)),
    (
        "qwen3_coder",
        "<tool_call>\n<function=run>\n<parameter=cmd>\necho '</parameter>' </function>\n<parameter=limit>\n5\n</function>\n</tool_call>",
        (run("echo '</parameter>' </function>", limit=5),),
    ),
    ("qwen3_coder", "<tool_call>\n<function=now>\n</function>\n</tool_call>\n", (NOW,)),
    (
        "qwen3_coder",
        "<tool_call>\n<function=run>\n<parameter=cmd>\nls</paramete\n</function>\n</tool_call>",
        (run("ls</paramete"),),
    ),
    ("harmony", '<|channel|>commentary to=functions.look <|constrain|>json{"id": "x"}<|call|>', (look(),)),
    ("harmony", '<|channel|>commentary to=functions.look?? <|constrain|>json<|message|>{"id": "x"}<|call|>', (look(),)),
    ("harmony", '<|start|>assistant<|channel|>commentary to=functions.look<|message|>{"id": "x"}<|call|>', (look(),)),
]


@pytest.mark.parametrize(("name", "output", "parts"), CASES, ids=[f"{n}-{i}" for i, (n, _, _) in enumerate(CASES)])
def test_what_was_meant_is_read(name: str, output: str, parts: tuple[Part, ...]) -> None:
    raw, fmt, request = output.encode(), get_format(name), Request(tools=TOOLS)
    events, message = read(fmt, request, [raw])
    assert message == Message(role="assistant", parts=parts)
    for cut in range(1, len(raw)):
        assert read(fmt, request, [raw[:cut], raw[cut:]]) == (events, message)


@pytest.mark.parametrize(
    ("name", "output", "reason"),
    [
        ("llama3_json", '{"name": "lock", "parameters": {}}', "no tool 'lock'. Did you mean 'look'?"),
        ("hermes", '<tool_call>{"name": "run", "argument": {"cmd": "ls"}}</tool_call>', "something in 'argument'"),
        ("hermes", '<tool_call>{"name": "look", "id": "x"}</tool_call>', "something in 'id'"),
        ("llama_pythonic", '[look("x")]', "'x' has no name"),
        ("llama_pythonic", "[look(id=x, y)]", "'y' has no name"),
        ("llama_pythonic", "[look(id=x, y=z)]", "a string has quotes"),
        ("llama_pythonic", "[look(id=it's)]", "ended inside a string"),
        ("llama_pythonic", "[run(limit=five)]", "a string has quotes"),
        ("llama_pythonic", '[look(id="x", id="y")]', "'id' occurs twice"),
        ("llama_pythonic", '[look(id="x', "ended inside a string"),
        ("llama_pythonic", '[look(id=["x")]', "does not belong"),
        ("qwen3_coder", "<tool_call>\n<function=run>\n<parameter=cmd>\ncut o", "ended inside an argument"),
        ("qwen3_coder", "<tool_call>\n<function=run>\n<parameter=limit>\nfive\n</parameter>\n</function>", "'limit'"),
        (
            "qwen3_coder",
            "<function=run>\n<parameter=cmd>\na\n</parameter>\n<parameter=cmd>\nb\n</parameter>\n</function>",
            "twice",
        ),
        (
            "harmony",
            '<|channel|>commentary to=functions.look<|message|>{"id": <|call|>',
            "does not belong|no value|ended",
        ),
    ],
)
def test_what_cannot_be_understood_is_malformed(name: str, output: str, reason: str) -> None:
    parser = get_format(name).parser(Request(tools=TOOLS))
    parser.feed_bytes(output.encode())
    (part,) = parser.close().parts
    assert isinstance(part, MalformedPart)
    assert any(r in part.reason for r in reason.split("|")), part.reason
    assert part.raw
    assert part.raw in output
