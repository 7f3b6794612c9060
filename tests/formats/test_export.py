"""Exports, held against the engines that they are for: what our grammar has, theirs has, and what it has not, neither."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentgram.engine import spec as e
from agentgram.errors import DefinitionError
from agentgram.formats import Format, Only, Request, export
from agentgram.formats.printing import print_turn
from agentgram.messages import Message, ToolCall, assistant
from agentgram.tools.definition import ToolDefinition
from tests.laws.reading import by_engine
from tests.laws.shapes import EVERY_FORMAT, NAMES, format_of
from tests.laws.vocabularies import marker_tokens

GET = ToolDefinition(
    name="get",
    schema={
        "type": "object",
        "properties": {"city": {"type": "string"}, "n": {"type": "integer"}, "on": {"type": "boolean"}},
        "required": ["city"],
        "additionalProperties": False,
    },
)
NOW = ToolDefinition(name="now", schema={"type": "object", "properties": {}, "additionalProperties": False})
CALL = ToolCall(name="get", arguments={"city": 'Os<lo "é"', "n": 3, "on": True})
TURNS: list[Message] = [
    assistant("Hi there."),
    assistant("a < b </ c"),
    assistant(calls=[CALL]),
    assistant("Hi.", calls=[CALL]),
    assistant(calls=[CALL, ToolCall(name="now", arguments={})]),
    assistant(calls=[ToolCall(name="now", arguments={})]),
    assistant("So.", reasoning="Hm, so.", calls=[CALL]),
]
REQUESTS = [
    Request(tools=[GET, NOW]),
    Request(tools=[GET]),
    Request(tools=[GET, NOW], tool_choice="required"),
    Request(tools=[GET, NOW], tool_choice=Only("get")),
    Request(tools=[GET, NOW], tool_choice="none"),
    Request(tools=[GET, NOW], parallel=False),
    Request(tools=[GET, NOW], reasoning=True),
]


def texts(fmt: Format) -> list[str]:
    printed = [print_turn(fmt, message, str, tools=[GET, NOW]) for message in TURNS]
    broken = [text.replace("get", "got").replace('"n": 3', '"n": x') for text in printed]
    return [*printed, *broken, *(text[:-1] for text in printed if text)]


@EVERY_FORMAT
def test_lark(name: str) -> None:
    llguidance = pytest.importorskip("llguidance")
    fmt, tokenizer = format_of(name), llguidance.LLTokenizer("byte")
    for request in REQUESTS:
        spec, exported = fmt.grammar(request), fmt.lark(request)
        assert exported.differences == ()
        grammar = llguidance.LLMatcher.grammar_from_lark(exported.text)
        for text in texts(fmt):
            matcher = llguidance.LLMatcher(tokenizer, grammar, log_level=0)
            assert not matcher.is_error(), matcher.get_error()
            taken = all(matcher.consume_token(byte) for byte in text.encode())
            assert (taken and matcher.is_accepting()) == by_engine(spec, text.encode()), text


@EVERY_FORMAT
def test_structural_tag(name: str) -> None:
    xgrammar = pytest.importorskip("xgrammar")
    accepts = pytest.importorskip("xgrammar.testing")._is_grammar_accept_string
    fmt = format_of(name)
    for request in REQUESTS:
        spec, exported = fmt.grammar(request), fmt.structural_tag(request)
        assert set(exported.differences) <= {"whitespace inside JSON is free there, and canonical here"}
        grammar = xgrammar.Grammar.from_structural_tag(exported.text)
        for text in texts(fmt):
            assert accepts(grammar, text) == by_engine(spec, text.encode()), text


@pytest.mark.parametrize("name", NAMES)
def test_markers_that_are_tokens_are_named(name: str) -> None:
    fmt = format_of(name)
    special = {marker: 1000 + i for i, marker in enumerate(marker_tokens(fmt))}
    request = Request(tools=[GET, NOW], tool_choice="required")
    lark, tag = fmt.lark(request, special=special).text, fmt.structural_tag(request, special=special).text
    inside = [m for m in special if m in str(fmt.grammar(request, special=special))]
    for marker in (t for t in inside if e.Tok(t) in tokens_of(fmt.grammar(request, special=special))):
        assert marker in lark or f"<[{special[marker]}]>" in lark
        assert f'"token": {json.dumps(marker)}' in tag


def tokens_of(spec: Any) -> list[e.Tok]:
    if isinstance(spec, e.Tok):
        return [spec]
    if isinstance(spec, tuple):
        return [t for item in spec for t in tokens_of(item)]
    if hasattr(spec, "to_dict"):
        return [t for value in vars(spec).values() for t in tokens_of(value)]
    return []


def test_what_cannot_be_said_is_refused_or_noted() -> None:
    stop = e.Dispatch([e.Tag("<a>", e.Lit("x"), "")], ["<a>"], stops=["<b>"])
    for exported in (export.lark, export.structural_tag):
        with pytest.raises(DefinitionError, match="stops"):
            exported(stop)
    two = e.Dispatch([e.Tag("<a>", e.Lit("x"), "")], ["<a>"], at_most=2)
    assert export.structural_tag(two).differences == ("there are at most 2 calls here, and any number there",)
    mixed = e.Dispatch([e.Tag("<a>", e.Lit("x")), e.Tag(e.Tok("<b>"), e.Lit("x"))], ["<a>", e.Tok("<b>")])
    with pytest.raises(DefinitionError, match="of one kind"):
        export.structural_tag(mixed)
    with pytest.raises(DefinitionError, match="EBNF"):
        export.lark(e.Ebnf('root ::= "a"'))
    with pytest.raises(DefinitionError, match="by its id"):
        export.lark(e.Tok("[X]"))
    assert export.lark(e.JsonSchema({}, property_order="any", whitespace="flexible")).differences
