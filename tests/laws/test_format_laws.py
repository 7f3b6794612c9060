"""The laws of formats, for every shipped format: what they promise about prompt, grammar and parser together."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import oracle
from agentgram.engine import Engine, Vocabulary
from agentgram.engine.spec import Spec
from agentgram.events import ArgumentsDelta, MalformedCall, ParserEvent, ReasoningDelta, TextDelta
from agentgram.formats import Format, Only, Request, formats, get_format
from agentgram.formats.printing import breaker, print_turn
from agentgram.messages import Message, Part, TextPart, ToolCall, ToolResultPart, assistant, system, tool_results, user
from agentgram.tools.definition import ToolDefinition
from tests.laws.strategies import OUTPUTS, TEXTS, calls, cuts, tools
from tests.laws.walking import walks

jsonschema = pytest.importorskip("jsonschema")
EVERY_FORMAT = pytest.mark.parametrize("name", formats())
BYTES = Vocabulary.byte_level()
ENGINE = Engine(BYTES)


def by_oracle(spec: Spec, data: bytes) -> bool:
    return bool(oracle.build(spec).feed_bytes(data).complete)


def by_engine(spec: Spec, data: bytes) -> bool:
    matcher = ENGINE.compile(spec).matcher()
    return matcher.accept_bytes(data) and matcher.can_end


@st.composite
def members(draw: st.DrawFn, spec: Spec) -> bytes:
    """Texts of a grammar: the recogniser walks at random, the engine ends it, and both agree on all of it."""
    text = draw(walks(oracle.build(spec)))
    matcher = ENGINE.compile(spec).matcher()
    assert matcher.accept_bytes(text)
    text += matcher.shortest_end()
    assert by_oracle(spec, text)
    assert by_engine(spec, text)
    return text


Accepts = Callable[[Spec, bytes], bool]
BOTH = pytest.mark.parametrize("accepts", [by_oracle, by_engine])


def read(fmt: Format, request: Request, pieces: Iterable[bytes]) -> tuple[list[ParserEvent], Message]:
    """What the parser makes of a turn: its events, neighbouring pieces of text joined, and the message."""
    parser = fmt.parser(request)
    events = [e for piece in pieces for e in parser.feed_bytes(piece)]
    events += parser.finish()
    return joined(events), parser.close()


def joined(events: Iterable[ParserEvent]) -> list[ParserEvent]:
    out: list[ParserEvent] = []
    for event in events:
        last = out[-1] if out else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            out[-1] = TextDelta(text=last.text + event.text)
        elif isinstance(event, ReasoningDelta) and isinstance(last, ReasoningDelta):
            out[-1] = ReasoningDelta(text=last.text + event.text)
        elif isinstance(event, ArgumentsDelta) and isinstance(last, ArgumentsDelta) and event.index == last.index:
            out[-1] = ArgumentsDelta(index=event.index, text=last.text + event.text)
        else:
            out.append(event)
    return out


def plain(call: ToolCall) -> tuple[str, str]:
    return call.name, json.dumps(call.arguments, sort_keys=True)


@st.composite
def turns(draw: st.DrawFn, name: str) -> tuple[Request, Message]:
    """A request and an answer to it: texts and calls in any order, no two texts beside each other."""
    fmt, definitions = get_format(name), draw(tools())
    parts: list[Part] = []
    for call in draw(calls(definitions)):
        text = breaker(fmt.markers)(draw(TEXTS))
        if text.strip(" \t\r\n"):
            parts.append(TextPart(text=text))
        parts.append(call)
    text = breaker(fmt.markers)(draw(TEXTS))
    if text.strip(" \t\r\n"):
        parts.append(TextPart(text=text))
    return Request(tools=definitions), Message(role="assistant", parts=tuple(parts))


# 1


@EVERY_FORMAT
@given(data=st.data())
def test_what_is_printed_is_read_back(name: str, data: st.DataObject) -> None:
    fmt = get_format(name)
    request, message = data.draw(turns(name))
    printed = print_turn(fmt, message, str).encode()
    events, again = read(fmt, request, data.draw(cuts(printed)))
    assert [plain(c) for c in again.calls] == [plain(c) for c in message.calls]
    assert again == message
    assert not any(isinstance(e, MalformedCall) for e in events)


@EVERY_FORMAT
@given(data=st.data())
def test_streamed_arguments_are_the_arguments(name: str, data: st.DataObject) -> None:
    fmt = get_format(name)
    request, message = data.draw(turns(name))
    printed = print_turn(fmt, message, str).encode()
    events, _ = read(fmt, request, data.draw(cuts(printed)))
    streamed = {e.index: e.text for e in events if isinstance(e, ArgumentsDelta)}
    assert [json.loads(streamed[i]) for i in sorted(streamed)] == [c.arguments for c in message.calls]


# 2


@BOTH
@EVERY_FORMAT
@given(data=st.data())
def test_the_grammar_accepts_what_is_printed(name: str, accepts: Accepts, data: st.DataObject) -> None:
    fmt = get_format(name)
    request, message = data.draw(turns(name))
    printed = print_turn(fmt, message, str).encode()
    assert accepts(fmt.grammar(request), printed)
    assert accepts(fmt.grammar(request, lenient=True), printed)
    only_calls = Message(role="assistant", parts=message.calls)
    required = Request(tools=request.tools, tool_choice="required")
    assert accepts(fmt.grammar(required), print_turn(fmt, only_calls, str).encode()) == bool(message.calls)


def check_member(fmt: Format, request: Request, text: bytes) -> Message:
    """A text of the grammar parses, and its arguments satisfy the schemas."""
    events, message = read(fmt, request, [text])
    assert not message.malformed, (text, events)
    for call in message.calls:
        definition = request.tool(call.name)
        assert definition is not None
        jsonschema.Draft202012Validator(definition.schema).validate(call.arguments)
    return message


@EVERY_FORMAT
@given(data=st.data())
def test_what_the_grammar_accepts_is_read_and_satisfies_the_schema(name: str, data: st.DataObject) -> None:
    fmt = get_format(name)
    definitions = data.draw(tools())
    choice: Any = data.draw(st.sampled_from(["auto", "required", "none", Only(definitions[0].name)]))
    lenient = data.draw(st.booleans()) and choice != "required"
    request = Request(tools=definitions, tool_choice=choice, parallel=data.draw(st.booleans()))
    spec = fmt.grammar(request, lenient=lenient)
    text = data.draw(members(spec))
    message = check_member(fmt, request, text)
    if choice == "required":
        assert message.calls
        assert not message.text
    if isinstance(choice, Only):
        assert [c.name for c in message.calls] == [choice.name]
    if choice == "none":
        assert message.text == text.decode()
    if not request.parallel:
        assert len(message.calls) <= 1


@EVERY_FORMAT
@given(data=st.data())
def test_shortest_legal_ends_are_read_too(name: str, data: st.DataObject) -> None:
    """As a loop that has run out of tokens would end a turn, at any point of a call."""
    fmt = get_format(name)
    request, message = data.draw(turns(name))
    printed = print_turn(fmt, message, str).encode()
    matcher = ENGINE.compile(fmt.grammar(request)).matcher()
    text = printed[: data.draw(st.integers(0, len(printed)))]
    assert matcher.accept_bytes(text)
    check_member(fmt, request, text + matcher.shortest_end())


# 3


@EVERY_FORMAT
@given(text=OUTPUTS, data=st.data())
def test_every_split_gives_the_same_events(name: str, text: bytes, data: st.DataObject) -> None:
    fmt = get_format(name)
    request = Request(tools=data.draw(tools()) if data.draw(st.booleans()) else [ToolDefinition(name="get")])
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
    fmt = get_format(name)
    request = Request(tools=[ToolDefinition(name="get")])
    events, message = read(fmt, request, [text])
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == message.text
    if not message.calls and not message.malformed and not text.startswith(b"<think>") and b"[]" not in text:
        said = text
        for stop in fmt.stops:
            said = said.split(stop.encode())[0]
        expected = said.decode("utf-8", "replace")
        assert message.text == expected


@EVERY_FORMAT
@given(text=OUTPUTS)
def test_only_what_may_begin_a_marker_is_held_back(name: str, text: bytes) -> None:
    fmt = get_format(name)
    parser = fmt.parser(Request(tools=[ToolDefinition(name="get")]))
    for count, byte in enumerate(text, 1):
        parser.feed_bytes(bytes([byte]))
        if parser.open_call is None and not parser.stopped:
            held = text[parser.commit_offset : count]
            begins = any(f"{sep}{m}".encode().startswith(held) for m in held_markers(fmt) for sep in ("", "\n"))
            assert not held.strip(b" \t\r\n") or begins, held


def held_markers(fmt: Format) -> list[str]:
    return [*fmt.markers, *fmt.stops]


# 4


@EVERY_FORMAT
@given(text=OUTPUTS)
def test_free_text_is_no_call(name: str, text: bytes) -> None:
    """What the grammar lets through as text, the parser reports as just that text."""
    fmt = get_format(name)
    request = Request(tools=[ToolDefinition(name="get")])
    spec = fmt.grammar(request)
    assume(not any(t.encode() in text for t in fmt.triggers))
    accepted = by_oracle(spec, text)
    assert by_engine(spec, text) == accepted
    if accepted:
        assert read(fmt, request, [text])[1].parts == ((TextPart(text=text.decode()),) if text else ())


@EVERY_FORMAT
@given(text=OUTPUTS)
def test_without_a_grammar_only_an_envelope_with_a_known_name_is_a_call(name: str, text: bytes) -> None:
    fmt = get_format(name)
    message = read(fmt, Request(tools=[ToolDefinition(name="get")]), [text])[1]
    assert {c.name for c in message.calls} <= {"get"}
    nothing = read(fmt, Request(tools=[ToolDefinition(name="get")], tool_choice="none"), [text])[1]
    assert nothing.calls == nothing.malformed == ()


# 5

OTHERS = ["wip", "wipe_cache", "get.wipe", "wipe-2", "xwipe", "Wipe"]


@BOTH
@EVERY_FORMAT
@given(data=st.data())
def test_denied_is_absent(name: str, accepts: Accepts, data: st.DataObject) -> None:
    fmt = get_format(name)
    allowed = [ToolDefinition(name=n) for n in data.draw(st.lists(st.sampled_from(OTHERS), min_size=1, unique=True))]
    denied = ToolDefinition(name="wipe")
    call = fmt.print_call(denied, {})
    escaped = [
        call.replace("wipe", other) for other in (r"\u0077ipe", r"wip\u0065", r"wi\u0070e", "wipe\\u0000", " wipe")
    ]
    legal = fmt.print_call(allowed[0], {})
    request = Request(tools=allowed)
    for text in [call, *escaped, call.replace('"', "'"), f"{legal}\n{call}", f"say\n{call}", f"{legal}{call}"]:
        assert not accepts(fmt.grammar(request), text.encode())
        for pieces in ([text.encode()], data.draw(cuts(text.encode()))):
            assert "wipe" not in {c.name for c in read(fmt, request, pieces)[1].calls}
    assert accepts(fmt.grammar(request), f"{legal}\n{legal}".encode())


@EVERY_FORMAT
@given(data=st.data())
def test_no_walk_through_the_grammar_ends_in_a_denied_call(name: str, data: st.DataObject) -> None:
    fmt = get_format(name)
    definitions = data.draw(tools(min_size=2))
    everything = Request(tools=definitions)
    request = Request(tools=definitions[1:], tool_choice=data.draw(st.sampled_from(["auto", "required"])))
    text = data.draw(members(fmt.grammar(request)))
    assert definitions[0].name not in {c.name for c in read(fmt, everything, [text])[1].calls}


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
    fmt = get_format(name)
    definitions, said = conversation
    prompts = [
        fmt.render(Request(tools=definitions, messages=said[:count])).text
        for count in range(1, len(said) + 1)
        if count == len(said) or said[count].role == "assistant"
    ]
    for before, after in itertools.pairwise(prompts):
        assert after.startswith(before)


@EVERY_FORMAT
@given(conversation=conversations())
def test_data_is_not_markup(name: str, conversation: tuple[list[ToolDefinition], list[Message]]) -> None:
    """However users, tools and descriptions spell the format's markers, the prompt has those of its turns only."""
    fmt = get_format(name)
    definitions, said = conversation
    prompt = fmt.render(Request(tools=definitions, messages=said)).text
    opened = fmt.turn.open.partition("{role}")[0]
    roles = {"system", "user", "assistant"}
    bare = [m for m in said if m.role in roles] + [m for m in said if m.role == "tool"]
    has_system = said[0].role == "system" or bool(definitions)
    turns_written = len(bare) - (said[0].role == "system") + has_system + 1
    assert prompt.count(opened) == turns_written
    assert prompt.count(fmt.turn.close.strip()) == turns_written - 1


# 1, 2 and 5 with other people's tools

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
    fmt = get_format(name)
    rows = bfcl(kind)
    assert len(rows) > 100
    for definitions, made in rows[::5]:
        request = Request(tools=definitions)
        printed = print_turn(fmt, assistant("Now.", calls=made), str)
        assert read(fmt, request, [printed.encode()])[1] == assistant("Now.", calls=made)
        assert by_engine(fmt.grammar(request), printed.encode()), printed
        called = {c.name for c in made}
        others = [d for d in definitions if d.name not in called]
        assert not by_engine(fmt.grammar(Request(tools=others)), printed.encode())


# 8


@EVERY_FORMAT
def test_the_description_reads_back(name: str) -> None:
    fmt = get_format(name)
    described = json.loads(json.dumps(fmt.to_dict()))
    again = Format.from_dict(described)
    assert again == fmt
    assert again.to_dict() == described
