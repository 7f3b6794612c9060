"""The response_template of transformers: what we write is read there like here, and what others wrote is read here."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from agentgram.errors import DefinitionError
from agentgram.formats import Format, formats, get_format
from agentgram.formats.printing import print_turn
from agentgram.messages import Message, ToolCall, assistant
from tests.formats.samples import NOW, TOOLS, functions, parsed
from tests.laws.shapes import format_of, only_at_start

chat_parsing = pytest.importorskip("transformers.utils.chat_parsing")

CALL = ToolCall(name="put", arguments={"text": 'a "b"\nç', "count": -3, "exact": True, "tags": ["x", "y z"]})
SAID = ["mistral_v11", "gemma4"]


def turns(fmt: Format) -> list[Message]:
    out = [assistant("It is 18C."), assistant(calls=[CALL]), assistant(calls=[ToolCall(name="now", arguments={})])]
    if not only_at_start(fmt):
        out.append(assistant("" if fmt.channels else "Let me see.", calls=[CALL]))
    if fmt.parallel:
        out.append(assistant(calls=[CALL, ToolCall(name="now", arguments={})]))
    return out


def theirs(template: dict[str, Any], output: str) -> tuple[str, list[tuple[str, Any]]]:
    message = chat_parsing.parse_response(output, template, prefix="", tools=functions())
    calls = [(c["function"]["name"], c["function"]["arguments"]) for c in message.get("tool_calls", ())]
    return message.get("content", "").strip(), calls


@pytest.mark.parametrize("name", [*formats(), *SAID])
def test_their_reader_reads_what_we_write(name: str) -> None:
    fmt = format_of(name)
    template = fmt.to_response_template()
    assert template.differences
    for message in turns(fmt):
        written = print_turn(fmt, message, str, tools=TOOLS)
        end = "<|call|>" if fmt.channels and message.calls else fmt.stops[0]
        said, calls = theirs(template.value, written + end)
        assert said == message.text
        assert calls == [(c.name, c.arguments) for c in message.calls]


def test_sections_are_not_said_there() -> None:
    with pytest.raises(DefinitionError, match="several calls in one section"):
        format_of("kimi_k2").to_response_template()


@pytest.mark.parametrize("name", [*formats(), *SAID])
def test_what_we_exported_is_read_back(name: str) -> None:
    fmt = format_of(name)
    template = fmt.to_response_template().value
    if fmt.channels or name in ("llama3_json", "gemma4", "mistral_v11"):
        with pytest.raises(DefinitionError, match="not imported"):
            Format.from_response_template(template, fmt)
        return
    again = Format.from_response_template(template, fmt)
    for message in turns(fmt):
        read = parsed(again, print_turn(fmt, message, str, tools=TOOLS))
        assert read.calls == message.calls
        assert read.text.strip() == message.text  # blanks before a call are not said there
    assert Format.from_dict(again.to_dict()) == again


def others() -> dict[str, Any]:
    """The templates that TRL carries, read from its file: the package itself need not be importable."""
    spec = importlib.util.find_spec("trl")
    if spec is None or spec.origin is None:
        pytest.skip("trl is not installed")
    tree = ast.parse((Path(spec.origin).parent / "chat_template_utils.py").read_text("utf-8"))
    out = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Dict):
            value = Named().visit(node.value)
            with contextlib.suppress(ValueError):
                out[node.targets[0].id] = ast.literal_eval(value)
    return out


class Named(ast.NodeTransformer):
    """Takes the place of names in it: how values are read, which we do by the schema."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        del node
        return ast.Dict(keys=[ast.Constant("name")], values=[ast.Constant("text")])


def test_templates_of_others_are_read() -> None:
    templates = others()
    for template, name in (("qwen3_template", "hermes"), ("qwen3_5_template", "qwen3_coder")):
        fmt = Format.from_response_template(templates[template])
        assert fmt.stops == ("<|im_end|>",)
        shipped = get_format(name)
        for message in turns(shipped):
            read = parsed(fmt, print_turn(shipped, message, str, tools=TOOLS))
            assert read.calls == message.calls
            assert read.text.strip() == message.text
        call = fmt.print_call(TOOLS[0], CALL.arguments)
        assert theirs(templates[template], call)[1] == [(CALL.name, CALL.arguments)]
    llama = Format.from_response_template(templates["llama3_template"], get_format("llama3_json"))
    assert llama.print_call(NOW, {}) == '{"name": "now", "parameters": {}}'
    assert [c.name for c in parsed(llama, '{"name": "now", "parameters": {}}<|eot_id|>').calls] == ["now"]
    with pytest.raises(DefinitionError, match="'harmony'"):
        Format.from_response_template(templates["gptoss_template"])
