"""The grammar that a request becomes: its shape, and what tool_choice, parallel and output types make of it."""

from __future__ import annotations

import gc
import json
import weakref

import pytest

from agentgram.engine import Engine, Vocabulary
from agentgram.engine.spec import Choice, Dispatch, JsonSchema, Rep, Spec, Tag, Text, Tok, spec_from_dict
from agentgram.errors import DefinitionError
from agentgram.formats import (
    Args,
    Field,
    Format,
    JsonObj,
    Name,
    Only,
    Request,
    Results,
    ToolList,
    Turn,
    get_format,
    lowering,
)
from agentgram.formats import Dispatch as FormatDispatch
from agentgram.formats import Tag as FormatTag
from agentgram.tools.definition import ToolDefinition

HERMES = get_format("hermes")
GET = ToolDefinition(name="get", schema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
NOW = ToolDefinition(name="now", schema={"type": "object", "properties": {}, "additionalProperties": False})
TOOLS = [GET, NOW]
ENGINE = Engine(Vocabulary.byte_level())
ONE = '<tool_call>\n{"name": "get", "arguments": {"n": 1}}\n</tool_call>'
TWO = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'


def accepts(spec: Spec, text: str) -> bool:
    matcher = ENGINE.compile(spec).matcher()
    return matcher.accept_bytes(text.encode()) and matcher.can_end


def test_the_shape_is_one_dispatch_with_a_tag_for_each_tool() -> None:
    spec = HERMES.grammar(Request(tools=TOOLS))
    assert isinstance(spec, Dispatch)
    assert spec.triggers == ("<tool_call>",)
    assert [t.begin for t in spec.tags] == [f'<tool_call>\n{{"name": "{n}", "arguments": ' for n in ("get", "now")]
    assert {t.end for t in spec.tags} == {"}\n</tool_call>"}
    assert all(isinstance(t.content, JsonSchema) and t.content.whitespace == "canonical" for t in spec.tags)
    assert {"<|im_end|>", "<|im_start|>", "</tool_call>", "<tools>"} <= set(spec.excludes)
    assert HERMES.openers(Request(tools=TOOLS))["now"] == '<tool_call>\n{"name": "now", "arguments": '


def test_a_tool_s_tag_is_made_once_and_forgotten_with_it() -> None:
    first, second = (HERMES.grammar(Request(tools=some)) for some in (TOOLS, [NOW]))
    assert isinstance(first, Dispatch)
    assert isinstance(second, Dispatch)
    assert first.tags[1] is second.tags[0]
    tool = ToolDefinition(name="short_lived")
    HERMES.grammar(Request(tools=[tool]))
    key, ref = id(tool), weakref.ref(tool)
    assert key in lowering._MADE
    del tool
    gc.collect()
    assert ref() is None
    assert key not in lowering._MADE


@pytest.mark.parametrize(
    ("choice", "parallel", "good", "bad"),
    [
        ("auto", True, ["", "hi", ONE, f"a\n{ONE}\n{TWO} b"], ["<tool_call>", ONE[:-1], "</tool_call>", "<|im_end|>"]),
        ("auto", False, ["", "hi", ONE, f"a\n{ONE}"], [f"{ONE}\n{TWO}", f"{ONE} b"]),
        ("required", True, [ONE, f"{ONE}\n{TWO}\n{ONE}"], ["", "hi", f"a{ONE}", f"{ONE}{TWO}", f"{ONE}\n"]),
        ("required", False, [ONE, TWO], ["", f"{ONE}\n{TWO}"]),
        (Only("now"), True, [TWO], ["", ONE, f"{TWO}\n{TWO}", f"a {TWO}"]),
        ("none", True, ["", "hi <tool_cal"], ["<tool_call>", ONE]),
    ],
)
def test_tool_choice_and_parallel(choice: str | Only, parallel: bool, good: list[str], bad: list[str]) -> None:
    spec = HERMES.grammar(Request(tools=TOOLS, tool_choice=choice, parallel=parallel))  # type: ignore[arg-type]
    assert [t for t in good if not accepts(spec, t)] == []
    assert [t for t in bad if accepts(spec, t)] == []


def test_without_tools_no_call_can_begin() -> None:
    spec = HERMES.grammar(Request())
    assert isinstance(spec, Text)
    assert "<tool_call>" in spec.excludes


def test_whitespace_in_calls_is_canonical_unless_lenient() -> None:
    loose = '<tool_call>{ "arguments": {"n":1}\n, "name" :"get"}</tool_call>'
    request = Request(tools=TOOLS)
    assert not accepts(HERMES.grammar(request), loose)
    assert accepts(HERMES.grammar(request, lenient=True), loose)
    assert accepts(HERMES.grammar(request, lenient=True), f"say {ONE}")


def test_a_typed_answer_is_one_more_branch() -> None:
    schema = {
        "type": "object",
        "properties": {"ok": {"type": "boolean"}},
        "required": ["ok"],
        "additionalProperties": False,
    }
    with_tools = HERMES.grammar(Request(tools=TOOLS, output_schema=schema))
    alone = HERMES.grammar(Request(output_schema=schema))
    assert isinstance(with_tools, Choice)
    for spec in (with_tools, alone):
        assert accepts(spec, '{"ok": true}')
        assert not accepts(spec, "prose")
        assert not accepts(spec, '{"ok": 1}')
    assert accepts(with_tools, f"{ONE}\n{TWO}")
    assert not accepts(with_tools, f'{ONE}{{"ok": true}}')
    assert isinstance(HERMES.grammar(Request(tools=TOOLS, output_schema=schema, tool_choice="required")), Rep)


def bare(begin: str) -> Format:
    envelope = JsonObj(name=Name(), parameters=Args("json"))
    return Format(
        name="bare",
        turn=Turn("<|{role}|>\n", "<|end|>\n", stop=["<|end|>"]),
        tools=ToolList("json-lines"),
        output=FormatDispatch(Field("content"), [FormatTag(begin, envelope)]),
        results=Results(role="tool"),
    )


def test_an_answer_that_cannot_be_told_from_a_call_is_refused() -> None:
    request = Request(tools=TOOLS, output_schema={"type": "integer"})
    with pytest.raises(DefinitionError, match="cannot be told from a call"):
        bare('{"type": "function"} ').grammar(request)
    assert bare("<call>").grammar(request)


def test_a_marker_that_is_a_special_token_is_matched_by_its_id() -> None:
    special = {"<tool_call>": 256, "</tool_call>": 257}
    request = Request(tools=TOOLS)
    spec = HERMES.grammar(request, special=special)
    assert isinstance(spec, Dispatch)
    assert spec.triggers == (Tok("<tool_call>"),)
    (tag,) = spec.tags
    assert tag.end == Tok("</tool_call>")
    assert isinstance(tag.content, Choice)
    vocabulary = Vocabulary(
        [bytes([i]) for i in range(256)] + [b""] * 3, special={**special, "<|im_end|>": 258}, end=[258]
    )
    matcher = Engine(vocabulary).compile(spec).matcher()
    assert all(matcher.accept(t) for t in (256, *b'\n{"name": "now", "arguments": {}}\n', 257))
    assert matcher.can_end
    assert not matcher.accept_bytes(b"<tool_call>")
    assert HERMES.openers(request)["get"].startswith("<tool_call>")


def test_reasoning_is_allowed_where_it_is_asked_for() -> None:
    thought = f"<think>\nwell\n</think>\n\n{ONE}"
    assert accepts(HERMES.grammar(Request(tools=TOOLS, reasoning=True)), thought)
    assert not accepts(HERMES.grammar(Request(tools=TOOLS)), thought)


def test_specifications_are_data() -> None:
    spec = HERMES.grammar(Request(tools=TOOLS))
    assert isinstance(spec, Dispatch)
    assert spec_from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    assert isinstance(spec.tags[0], Tag)
