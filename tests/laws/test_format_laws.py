"""The laws of formats, for every format: what they promise about grammar and parser together."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentgram.errors import DefinitionError
from agentgram.events import ArgumentsDelta, MalformedCall, ReasoningDelta, TextDelta, ToolCallStart
from agentgram.formats import Format, Only, Request
from agentgram.formats.printing import print_turn
from agentgram.messages import Message, TextPart, ToolCall
from agentgram.tools.definition import ToolDefinition
from tests.laws.reading import BOTH, BYTES, ENGINE, Accepts, by_engine, by_oracle, joined, members, read
from tests.laws.shapes import (
    EVERY_FORMAT,
    broken,
    decoded,
    format_of,
    has_ids,
    only_at_start,
    turns,
    without_ids,
)
from tests.laws.strategies import OUTPUTS, cuts, tools

jsonschema = pytest.importorskip("jsonschema")


def plain(call: ToolCall) -> tuple[str, str]:
    return call.name, json.dumps(call.arguments, sort_keys=True)


# 1


@EVERY_FORMAT
@given(data=st.data())
def test_what_is_printed_is_read_back(name: str, data: st.DataObject) -> None:
    fmt = format_of(name)
    request, message = data.draw(turns(fmt))
    printed = print_turn(fmt, message, str, tools=request.tools).encode()
    events, again = read(fmt, request, data.draw(cuts(printed)))
    assert [plain(c) for c in again.calls] == [plain(c) for c in message.calls]
    assert without_ids(again) == message
    assert len({c.id for c in again.calls}) == len(again.calls) if has_ids(fmt) else not any(c.id for c in again.calls)
    assert not any(isinstance(e, MalformedCall) for e in events)


@EVERY_FORMAT
@given(data=st.data())
def test_streamed_arguments_are_the_arguments(name: str, data: st.DataObject) -> None:
    fmt = format_of(name)
    request, message = data.draw(turns(fmt))
    printed = print_turn(fmt, message, str, tools=request.tools).encode()
    events, _ = read(fmt, request, data.draw(cuts(printed)))
    streamed = {e.index: e.text for e in events if isinstance(e, ArgumentsDelta)}
    names = {e.index: e.name for e in events if isinstance(e, ToolCallStart)}
    assert [names[i] for i in sorted(names)] == [c.name for c in message.calls]
    for index, call in enumerate(message.calls):
        definition = request.tool(call.name)
        assert definition is not None
        assert decoded(fmt, definition, streamed.get(index, "")) == call.arguments


# 2


@BOTH
@EVERY_FORMAT
@given(data=st.data())
def test_the_grammar_accepts_what_is_printed(name: str, accepts: Accepts, data: st.DataObject) -> None:
    fmt = format_of(name)
    request, message = data.draw(turns(fmt))
    printed = print_turn(fmt, message, str, tools=request.tools).encode()
    assert accepts(fmt.grammar(request), printed)
    assert accepts(fmt.grammar(request, lenient=True), printed)
    calls = print_turn(fmt, Message(role="assistant", parts=message.calls), str, tools=request.tools).encode()
    required, none = (Request(tools=request.tools, tool_choice=choice) for choice in ("required", "none"))
    assert accepts(fmt.grammar(required), calls) == bool(message.calls)
    assert not message.calls or not accepts(fmt.grammar(none), calls)


def check_member(fmt: Format, request: Request, text: bytes) -> Message:
    """A text of the grammar parses, and its arguments satisfy the schemas."""
    events, message = read(fmt, request, [text])
    # numbers beyond what Python can print are the one thing that a grammar lets through and no parser reads
    assert not [m for m in message.malformed if "is too large" not in m.reason], (text, events)
    for call in message.calls:
        definition = request.tool(call.name)
        assert definition is not None
        jsonschema.Draft202012Validator(definition.schema).validate(call.arguments)
    return message


@EVERY_FORMAT
@given(data=st.data())
def test_what_the_grammar_accepts_is_read_and_satisfies_the_schema(name: str, data: st.DataObject) -> None:
    fmt = format_of(name)
    definitions = data.draw(tools())
    some = Only(*(d.name for d in definitions[:2]))
    choice: Any = data.draw(st.sampled_from(["auto", "required", "none", Only(definitions[0].name), some]))
    lenient = data.draw(st.booleans()) and choice != "required"
    request = Request(tools=definitions, tool_choice=choice, parallel=data.draw(st.booleans()))
    spec = fmt.grammar(request, lenient=lenient)
    text = data.draw(members(spec))
    message = check_member(fmt, request, text)
    if choice == "required":
        assert message.calls
        assert not message.text
    if isinstance(choice, Only):
        called = [c.name for c in message.calls]
        assert called
        assert set(called) <= set(choice.names)
        assert len(called) == 1 or len(choice.names) > 1
    if choice == "none":
        assert not message.calls
        assert fmt.channels or message.text == text.decode()
    if not request.parallel or not fmt.parallel:
        assert len(message.calls) <= 1


@EVERY_FORMAT
@given(data=st.data())
def test_shortest_legal_ends_are_read_too(name: str, data: st.DataObject) -> None:
    """As a loop that has run out of tokens would end a turn, at any point of a call."""
    fmt = format_of(name)
    request, message = data.draw(turns(fmt))
    printed = print_turn(fmt, message, str, tools=request.tools).encode()
    matcher = ENGINE.compile(fmt.grammar(request)).matcher()
    text = printed[: data.draw(st.integers(0, len(printed)))]
    assert matcher.accept_bytes(text)
    check_member(fmt, request, text + matcher.shortest_end())


ANSWER = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


@EVERY_FORMAT
@given(data=st.data())
def test_a_typed_answer_is_told_from_a_call(name: str, data: st.DataObject) -> None:
    fmt = format_of(name)
    definitions = data.draw(tools())
    choice: Any = data.draw(st.sampled_from(["auto", "none"]))
    request = Request(tools=definitions, tool_choice=choice, output_schema=ANSWER)
    if choice == "auto" and any(t.begin.text[0] == "{" for t in fmt.call_tags):
        with pytest.raises(DefinitionError, match="cannot be told from a call"):
            fmt.grammar(request)
        return
    message = check_member(fmt, request, data.draw(members(fmt.grammar(request))))
    assert bool(message.calls) != bool(message.text)
    assert not message.text or jsonschema.Draft202012Validator(ANSWER).is_valid(json.loads(message.text))


# 3


@EVERY_FORMAT
@given(data=st.data())
def test_every_split_gives_the_same_events(name: str, data: st.DataObject) -> None:
    fmt = format_of(name)
    request, text = data.draw(broken(fmt) | st.tuples(st.just(Request(tools=[ToolDefinition(name="get")])), OUTPUTS))
    if data.draw(st.booleans()):
        request = Request(tools=request.tools, output_schema={"type": "object"})
    whole = read(fmt, request, [text])
    assert read(fmt, request, [text[i : i + 1] for i in range(len(text))]) == whole
    assert read(fmt, request, data.draw(cuts(text))) == whole
    parser = fmt.parser(request, BYTES)
    events = [e for byte in text for e in parser.feed_token(byte)] + parser.finish()
    assert (joined(events), parser.close()) == whole


@EVERY_FORMAT
@given(text=OUTPUTS)
def test_no_text_is_lost_or_doubled(name: str, text: bytes) -> None:
    fmt = format_of(name)
    request = Request(tools=[ToolDefinition(name="get")])
    events, message = read(fmt, request, [text])
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == message.text
    assert "".join(e.text for e in events if isinstance(e, ReasoningDelta)) == message.reasoning
    if message.calls or message.malformed or message.reasoning or fmt.channels or b"[]" in text:
        return
    if not text.startswith((b"<think>", b"<|channel>", b"<|python_", b"<|tool_calls_section_begin|>")):
        said = text
        for stop in fmt.stops:
            said = said.split(stop.encode())[0]
        expected = said.decode("utf-8", "replace")
        assert message.text == expected


@EVERY_FORMAT
@given(text=OUTPUTS)
def test_only_what_may_begin_a_marker_is_held_back(name: str, text: bytes) -> None:
    fmt = format_of(name)
    parser = fmt.parser(Request(tools=[ToolDefinition(name="get")]))
    for count, byte in enumerate(text, 1):
        parser.feed_bytes(bytes([byte]))
        if parser.open_call is None and not parser.stopped:
            held = text[parser.commit_offset : count]
            begins = any(f"{sep}{m}".encode().startswith(held) for m in held_markers(fmt) for sep in ("", "\n", "\n\n"))
            assert not held.strip(b" \t\r\n") or begins, held


def held_markers(fmt: Format) -> list[str]:
    begins = [t.begin.text for d in fmt.dispatches for t in (*d.tags, *d.also)]
    heads = [" to=", "to=", "assistant"] if fmt.channels else []
    return [*fmt.markers, *fmt.stops, *begins, *heads]


# 4


@EVERY_FORMAT
@given(text=OUTPUTS)
def test_free_text_is_no_call(name: str, text: bytes) -> None:
    """What the grammar lets through as text, the parser reports as just that text."""
    fmt = format_of(name)
    request = Request(tools=[ToolDefinition(name="get")])
    spec = fmt.grammar(request)
    text = b"<|channel|>final<|message|>" + text if fmt.channels else text
    assume(not any(t.encode() in text for t in fmt.triggers))
    assume(not (only_at_start(fmt) and text.lstrip(b" \t\r\n").startswith((b"[", b"{"))))
    accepted = by_oracle(spec, text)
    assert by_engine(spec, text) == accepted
    if accepted:
        said = text.removeprefix(b"<|channel|>final<|message|>") if fmt.channels else text
        assert read(fmt, request, [text])[1].parts == ((TextPart(text=said.decode()),) if said else ())


@EVERY_FORMAT
@given(text=OUTPUTS)
def test_without_a_grammar_only_an_envelope_with_a_known_name_is_a_call(name: str, text: bytes) -> None:
    fmt = format_of(name)
    message = read(fmt, Request(tools=[ToolDefinition(name="get")]), [text])[1]
    assert {c.name for c in message.calls} <= {"get"}
    nothing = read(fmt, Request(tools=[ToolDefinition(name="get")], tool_choice="none"), [text])[1]
    assert nothing.calls == ()
    assert fmt.channels or nothing.malformed == ()


# 5

OTHERS = ["wip", "wipe_cache", "get.wipe", "wipe-2", "xwipe", "Wipe"]


@BOTH
@EVERY_FORMAT
@given(data=st.data())
def test_denied_is_absent(name: str, accepts: Accepts, data: st.DataObject) -> None:
    fmt = format_of(name)
    allowed = [ToolDefinition(name=n) for n in data.draw(st.lists(st.sampled_from(OTHERS), min_size=1, unique=True))]
    denied = ToolDefinition(name="wipe")
    call = fmt.print_call(denied, {})
    escaped = [
        call.replace("wipe", other) for other in (r"\u0077ipe", r"wip\u0065", r"wi\u0070e", "wipe\\u0000", " wipe")
    ]
    legal = fmt.print_call(allowed[0], {})
    request = Request(tools=allowed)
    for text in [call, *escaped, call.replace('"', "'"), f"{legal}\n{call}", f"say\n{call}", f"{legal}{call}"]:
        begins_otherwise = only_at_start(fmt) and text.startswith("say")  # that is text, to the parser too
        assert begins_otherwise or not accepts(fmt.grammar(request), text.encode())
        for pieces in ([text.encode()], data.draw(cuts(text.encode()))):
            assert "wipe" not in {c.name for c in read(fmt, request, pieces)[1].calls}
    assert accepts(fmt.grammar(request), legal.encode())


@EVERY_FORMAT
@given(data=st.data())
def test_no_walk_through_the_grammar_ends_in_a_denied_call(name: str, data: st.DataObject) -> None:
    fmt = format_of(name)
    definitions = data.draw(tools(min_size=2))
    everything = Request(tools=definitions)
    request = Request(tools=definitions[1:], tool_choice=data.draw(st.sampled_from(["auto", "required"])))
    text = data.draw(members(fmt.grammar(request)))
    assert definitions[0].name not in {c.name for c in read(fmt, everything, [text])[1].calls}


# 8


@EVERY_FORMAT
def test_the_description_reads_back(name: str) -> None:
    fmt = format_of(name)
    described = json.loads(json.dumps(fmt.to_dict()))
    again = Format.from_dict(described)
    assert again == fmt
    assert again.to_dict() == described
