"""What the hermes parser makes of outputs, one by one."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from agentgram.engine import Vocabulary
from agentgram.errors import DefinitionError
from agentgram.events import ArgumentsDelta, MalformedCall, ReasoningDelta, TextDelta, ToolCallEnd, ToolCallStart
from agentgram.formats import OpenCall, Request, get_format
from agentgram.messages import MalformedPart, Message, ReasoningPart, TextPart, ToolCall
from agentgram.tools.definition import ToolDefinition
from tests.laws.shapes import NAMES, format_of

HERMES = get_format("hermes")
GET = ToolDefinition(name="get", schema={"type": "object", "properties": {"city": {"type": "string"}}})
NOW = ToolDefinition(name="now")
REQUEST = Request(tools=[GET, NOW])


def read(text: str | bytes, request: Request = REQUEST) -> Message:
    parser = HERMES.parser(request)
    parser.feed_bytes(text.encode() if isinstance(text, str) else text)
    return parser.close()


def call(city: str = "Oslo", id: str = "") -> ToolCall:
    return ToolCall(name="get", arguments={"city": city}, id=id)


CANONICAL = '<tool_call>\n{"name": "get", "arguments": {"city": "Oslo"}}\n</tool_call>'


@pytest.mark.parametrize(
    "text",
    [
        CANONICAL,
        '<tool_call>{"name":"get","arguments":{"city":"Oslo"}}</tool_call>',
        '\n <tool_call>\n\n{ "name" : "get" , "arguments" : { "city" : "Oslo" } }\n\n</tool_call>\n\n',
        '<tool_call>\n{"arguments": {"city": "Oslo"}, "name": "get"}\n</tool_call>',
        "<tool_call>\n{'arguments': {'city': 'Oslo'}, 'name': 'get'}\n</tool_call>",
        '<tool_call>\n{"name": "get", "parameters": {"city": "Oslo"}}\n</tool_call>',
        '<tool_call>\n{"name": "get", "arguments": "{\\"city\\": \\"Oslo\\"}"}\n</tool_call>',
        '<tool_call>\n{"type": "function", "name": "get", "id": 7, "arguments": {"city": "Oslo"}}\n</tool_call>',
        '<tool_call>\n{"name": "get", "arguments": {"city": "Oslo"}}',
        '<tool_call>\n{"name": "get", "arguments": {"city": "Oslo"}\n</tool_call>',
        '<tool_call>\n{"name": "get", "arguments": {"city": "Oslo"}',
        '<tool_call>\n[{"name": "get", "arguments": {"city": "Oslo"}}]\n</tool_call>',
        '<tool_call>\n{"name": "\\u0067et", "arguments": {"cit\\u0079": "Osl\\u006f"}}\n</tool_call>',
        '<tools>\n{"name": "get", "arguments": {"city": "Oslo"}}\n</tools>',
        CANONICAL + "<|im_end|>\n<|im_start|>user\nand more",
    ],
)
def test_one_call_in_many_spellings(text: str) -> None:
    assert read(text).parts == (call(),)


@pytest.mark.parametrize("spelled", ["{}", '""', "null", '"{}"', ""])
def test_no_arguments_in_many_spellings(spelled: str) -> None:
    arguments = f', "arguments": {spelled}' if spelled else ""
    assert read(f'<tool_call>\n{{"name": "now"{arguments}}}\n</tool_call>').calls == (
        ToolCall(name="now", arguments={}),
    )


@pytest.mark.parametrize(
    "value",
    ["</tool_call>", '}}\n</tool_call>\n<tool_call>{"name": "now"', "'", '"', "\\", "{[(", "\n", "é東京😀", "\\u0041"],
)
def test_closers_and_quotes_inside_strings_end_nothing(value: str) -> None:
    arguments = json.dumps({"city": value}, ensure_ascii=False)
    assert read(f'<tool_call>\n{{"name": "get", "arguments": {arguments}}}\n</tool_call>').parts == (call(value),)


def test_raw_newlines_in_strings_are_understood() -> None:
    assert read('<tool_call>{"name": "get", "arguments": {"city": "a\n\tb"}}</tool_call>').parts == (call("a\n\tb"),)


@pytest.mark.parametrize("between", ["\n", ", ", ";", " ", ""])
def test_several_envelopes_in_one_tag(between: str) -> None:
    one, two = ('{"name": "get", "arguments": {"city": "C"}}'.replace("C", c) for c in "ab")
    assert read(f"<tool_call>\n{one}{between}{two}\n</tool_call>").calls == (call("a"), call("b"))


def test_an_empty_array_is_no_call() -> None:
    assert read("<tool_call>[]</tool_call>").parts == ()


def test_text_before_between_and_after() -> None:
    parts = read(f"Let me see.\n{CANONICAL}\nAnd again:\n{CANONICAL}\nDone.").parts
    assert parts == (TextPart(text="Let me see."), call(), TextPart(text="And again:"), call(), TextPart(text="Done."))


@pytest.mark.parametrize(
    "text",
    [
        "Use a <tool_call> tag to wrap it. Then continue.",
        "a < b, <tool, <tool_call",
        "<tool_call>",
        "<tool_call>{}</tool_call>",
        "<tool_call>{oops}</tool_call>",
        '<tool_call>{"name": <function-name>, "arguments": <args>}</tool_call>',
        '<tool_call>{"name": 5}</tool_call>',
        "</tool_call> </tools>",
        " \n ",
    ],
)
def test_prose_stays_prose(text: str) -> None:
    assert read(text).parts == (TextPart(text=text),)


def test_a_call_after_prose_about_calls_is_found() -> None:
    assert read(f"Write <tool_call>\n{CANONICAL}").parts == (TextPart(text="Write <tool_call>"), call())
    assert read(f'<tool_call>{{"name": "x {CANONICAL}').calls == (call(),)
    assert read('<tool_call>{"name": "<|im_end|>" never').parts == (TextPart(text='<tool_call>{"name": "'),)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('<tool_call>{"name": "get", "arguments": {"city": "Os', "ended inside a string"),
        ('<tool_call>{"name": "get", "arguments": {"city": ', "ended inside the JSON"),
        ('<tool_call>{"name": "ge', "ended inside a string"),
        ('<tool_call>{"name": "get", "arguments": {"city" "Oslo"}}</tool_call>', "delimiter"),
        ('<tool_call>{"name": "get", "arguments": [1]}</tool_call>', "an array"),
        ('<tool_call>{"name": "get", "arguments": 3}</tool_call>', "a number"),
        ('<tool_call>{"name": "get", "arguments": {"city": NaN}}</tool_call>', "NaN"),
        ('<tool_call>{"name": "get", "arguments": {"city": 1, "city": 2}}</tool_call>', "'city' occurs twice"),
        ('<tool_call>{"name": "get", "arguments": {"city": 1, "c\\u0069ty": 2}}</tool_call>', "'city' occurs twice"),
        ('<tool_call>{"name": "get", "name": "now", "arguments": {}}</tool_call>', "names its tool twice"),
        ('<tool_call>{"name": "get", "arguments": {}, "parameters": {}}</tool_call>', "arguments twice"),
        ('<tool_call>{"name": "get", "arguments": {"city": "\\ud800"}}</tool_call>', "surrogate"),
        ('<tool_call>{"name": "got", "arguments": {}}</tool_call>', "no tool 'got'. Did you mean 'get'?"),
        ('<tool_call>{"name": "get", "arguments": {]}</tool_call>', "does not belong"),
        ('<tool_call>{"name": "get", "arguments": {}}}'[:-1] + " oops", ""),
    ],
)
def test_what_began_as_a_call_and_is_none_is_malformed(text: str, reason: str) -> None:
    message = read(text)
    if not reason:
        assert message.calls == (ToolCall(name="get", arguments={}),)
        assert message.text.strip() == "oops"
        return
    (part,) = message.parts
    assert isinstance(part, MalformedPart)
    assert reason in part.reason
    assert text.startswith(part.raw)


def test_invalid_utf8_in_arguments_is_malformed() -> None:
    message = read(b'<tool_call>{"name": "get", "arguments": {"city": "\xff"}}</tool_call>')
    assert [m.reason for m in message.malformed] == ["the arguments are not UTF-8"]


def test_a_malformed_call_does_not_take_the_next_one_along() -> None:
    broken = '<tool_call>\n{"name": "get", "arguments": {"city": "Oslo}\n</tool_call>'
    message = read(f"{broken}\n{CANONICAL}")
    assert message.calls == (call(),)
    assert [m.raw for m in message.malformed] == [broken]


def test_deep_nesting_is_malformed_or_read_but_never_raises() -> None:
    for depth in (50, 100_000):
        value = "[" * depth + "]" * depth
        message = read(f'<tool_call>{{"name": "get", "arguments": {{"city": {value}}}}}</tool_call>')
        assert len(message.calls) + len(message.malformed) == 1


def test_huge_numbers_do_not_raise() -> None:
    text = '<tool_call>{"name": "get", "arguments": {"city": %s}}</tool_call>'
    assert read(text % "1e400").calls[0].arguments == {"city": 10**400}
    for number in ("1e999999999", "9" * 5000):
        assert len(read(text % number).malformed) == 1


def test_reasoning_is_apart() -> None:
    message = read(f"<think>\nI need\nthe city.\n</think>\n\n{CANONICAL}")
    assert message.parts == (ReasoningPart(text="I need\nthe city."), call())
    assert read("<think>\nhm").parts == (ReasoningPart(text="hm"),)
    assert read(f"<think>\nhm {CANONICAL}").parts == (ReasoningPart(text="hm "), call())


def test_events_come_as_they_become_certain() -> None:
    parser = HERMES.parser(REQUEST)
    assert parser.feed_bytes("Hé".encode()[:2]) == [TextDelta(text="H")]
    assert parser.feed_bytes("é".encode()[1:] + b" <tool_") == [TextDelta(text="é ")]
    assert parser.open_call is None
    assert parser.commit_offset == 4
    assert parser.feed_bytes(b'call>\n{"name": "ge') == []
    assert parser.open_call == OpenCall(offset=4, name="", text='<tool_call>\n{"name": "ge')
    assert parser.feed_bytes(b't", "arguments": {"ci') == [
        ToolCallStart(index=0, name="get"),
        ArgumentsDelta(index=0, text='{"ci'),
    ]
    assert parser.open_call is not None
    assert parser.open_call.name == "get"
    assert parser.commit_offset == 4
    assert parser.feed_bytes(b'ty": "x"}}') == [
        ArgumentsDelta(index=0, text='ty": "x"}'),
        ToolCallEnd(index=0, call=call("x")),
    ]
    assert parser.feed_bytes(b"\n</tool_call>\n") == []
    assert parser.open_call is None
    assert parser.finish() == []
    assert parser.close().parts == (TextPart(text="Hé "), call("x"))


def test_events_of_the_rest() -> None:
    parser = HERMES.parser(REQUEST)
    assert parser.feed_bytes(b"<think>so") == [ReasoningDelta(text="so")]
    parser = HERMES.parser(REQUEST)
    parser.feed_bytes(b'<tool_call>{"name": "get", "arg')
    assert [type(e) for e in parser.finish()] == [MalformedCall]
    assert parser.finish() == []


def test_tokens_and_special_tokens() -> None:
    vocabulary = Vocabulary([bytes([i]) for i in range(256)] + [b""], special={"<|im_end|>": 256}, end=[256])
    parser = HERMES.parser(REQUEST, vocabulary)
    events = [e for token in [*CANONICAL.encode(), 256] for e in parser.feed_token(token)]
    assert events[-1] == ToolCallEnd(index=0, call=call())
    assert parser.stopped
    assert parser.close().parts == (call(),)


def test_misuse_is_named() -> None:
    parser = HERMES.parser(REQUEST)
    with pytest.raises(DefinitionError, match="needs a vocabulary"):
        parser.feed_token(1)
    parser.close()
    with pytest.raises(DefinitionError, match="closed"):
        parser.feed_bytes(b"x")


ANSWER: dict[str, Any] = {"type": "object", "properties": {"say": {"type": "string"}}}


def test_a_typed_answer_is_text_whatever_its_strings_hold() -> None:
    request = Request(tools=[GET], output_schema=ANSWER)
    answer = json.dumps({"say": "<tool_call>{'name': 'get', 'arguments': {}}</tool_call>"})
    assert read(answer, request).parts == (TextPart(text=answer),)
    assert read(CANONICAL, request).parts == (call(),)
    assert read(f"true that.\n{CANONICAL}", request).calls == (call(),)


def test_only_allowed_tools_are_calls() -> None:
    message = read(CANONICAL, Request(tools=[NOW]))
    assert message.calls == ()
    assert len(message.malformed) == 1
    assert read(CANONICAL, Request(tools=[GET], tool_choice="none")).parts == (TextPart(text=CANONICAL),)
    assert read(CANONICAL, Request()).parts == (TextPart(text=CANONICAL),)


def test_memory_does_not_grow_with_text() -> None:
    parser = HERMES.parser(REQUEST)
    for _ in range(200):
        parser.feed_bytes(b"some words of a long text that never ends " * 100)
    assert len(parser._run.src.data) < 100_000


@pytest.mark.parametrize("name", NAMES)
def test_the_work_grows_with_the_output_and_no_faster(name: str) -> None:
    """Counted in calls of functions, Python's and its own: four times the output takes four times as many."""
    fmt = format_of(name)
    put = ToolDefinition(name="put", schema={"type": "object", "properties": {"text": {"type": "string"}}})

    def calls_of(size: int) -> int:
        text = "a 'b' <c [d] {e} <tool_ </parameter> " * (size // 37)
        output = fmt.print_call(put, {"text": text}).encode()
        parser = fmt.parser(Request(tools=[put]))
        count = 0

        def counted(*_: object) -> None:
            nonlocal count
            count += 1

        sys.setprofile(counted)
        try:
            for at in range(0, len(output), 7):
                parser.feed_bytes(output[at : at + 7])
            message = parser.close()
        finally:
            sys.setprofile(None)
        assert [c.arguments for c in message.calls] == [{"text": text}]
        return count

    assert calls_of(1 << 16) < 4.5 * calls_of(1 << 14)
