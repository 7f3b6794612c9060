"""Pieces of formats, one by one: what the shipped formats do not use of them."""

from __future__ import annotations

from typing import Any

import pytest

from agentgram.engine import Engine, Vocabulary
from agentgram.errors import DefinitionError, GrammarError
from agentgram.formats import (
    Args,
    CallId,
    Channel,
    Channels,
    Choice,
    Dispatch,
    Field,
    Format,
    JsonObj,
    Lit,
    Name,
    Only,
    Perm,
    Rep,
    Request,
    Results,
    Seq,
    Tag,
    ToolList,
    Turn,
    get_codec,
)
from agentgram.formats.nodes import Node
from agentgram.formats.slots import Slot
from agentgram.messages import MalformedPart, Message, TextPart, ToolCall, ToolResultPart, assistant, tool_results, user
from agentgram.tools.definition import ToolDefinition

GET = ToolDefinition(
    name="get", schema={"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
)
CALL = ToolCall(name="get", arguments={"n": 5})


def fmt(output: Node, **more: Any) -> Format:
    turn = Turn("<|{role}|>", "<|end|>", stop=["<|end|>"])
    return Format(name="x", turn=turn, tools=ToolList(), results=more.pop("results", Results()), output=output, **more)


def read(form: Format, text: str, tools: list[ToolDefinition] | None = None) -> Message:
    parser = form.parser(Request(tools=tools or [GET]))
    parser.feed_bytes(text.encode())
    return parser.close()


def accepts(form: Format, text: str, *, lenient: bool = False, tools: list[ToolDefinition] | None = None) -> bool:
    spec = form.grammar(Request(tools=tools or [GET]), lenient=lenient)
    matcher = Engine(Vocabulary.byte_level()).compile(spec).matcher()
    return matcher.accept_bytes(text.encode()) and matcher.can_end


def test_an_end_may_be_needed() -> None:
    body = Seq(Name(), Lit(":"), Args())
    strict = fmt(Dispatch(Field(), [Tag("<c>", body, "</c>", on_missing_end="malformed")]))
    assert read(strict, '<c>get:{"n": 5}</c>').calls == (CALL,)
    (part,) = read(strict, '<c>get:{"n": 5} and then').parts
    assert isinstance(part, MalformedPart)
    assert part.reason == "'</c>' is missing"
    assert read(fmt(Dispatch(Field(), [Tag("<c>", body, "</c>")])), '<c>get:{"n": 5}').calls == (CALL,)
    with pytest.raises(DefinitionError, match="read where its end is missing"):
        Tag("<c>", JsonObj(name=Name(), arguments=Args()), "</c>", on_missing_end="malformed")


def test_parts_in_any_order() -> None:
    form = fmt(
        Dispatch(
            Field(), [Tag("<c>", Perm([Seq(Lit("n="), Name(), Lit(";")), Seq(Lit("a="), Args(), Lit(";"))]), "</c>")]
        )
    )
    assert form.print_call(GET, {"n": 5}) == '<c>n=get;a={"n": 5};</c>'
    swapped = '<c>a={"n": 5};n=get;</c>'
    assert read(form, swapped).calls == (CALL,)
    assert not accepts(form, swapped)
    assert accepts(form, swapped, lenient=True)


def test_one_of_several_spellings() -> None:
    form = fmt(
        Dispatch(Field(), [Tag("<c>", Seq(Name(), Choice(Lit("("), Lit("[")), Args(), Choice(Lit(")"), Lit("]"))))])
    )
    assert form.print_call(GET, {"n": 5}) == '<c>get({"n": 5})'
    assert read(form, '<c>get[{"n": 5}]').calls == (CALL,)
    assert accepts(form, '<c>get[{"n": 5}]')


def test_ids_are_made_kept_and_given_back() -> None:
    tag = Tag("<c>", Seq(Name(), Lit("#"), CallId("[A-Za-z0-9]{9}"), Lit("#"), Args()), "</c>")
    form = fmt(Dispatch(Field(), [tag]), results=Results(role="", wrap=("<r {id} {name} {to}>", "</r>")))
    foreign = ToolCall(name="get", arguments={}, id="call_of_another_server")
    own = ToolCall(name="get", arguments={}, id="abcdef123")
    said = [
        user("go"),
        assistant(calls=[foreign, own]),
        tool_results(
            ToolResultPart(name="get", content="1", call_id=own.id),
            ToolResultPart(name="get", content="2", call_id=foreign.id),
        ),
    ]
    text = form.render(Request(messages=said, tools=[GET])).text
    made = text.partition("<c>get#")[2][:9]
    assert made.isalnum()
    assert f"<c>get#{made}#{{}}</c><c>get#abcdef123#{{}}</c>" in text
    assert f"<r abcdef123 get get>1</r>\n<r {made} get get>2</r>" in text
    assert "another_server" not in text


def test_unknown_options_of_a_codec_are_named() -> None:
    with pytest.raises(DefinitionError, match="Did you mean 'close'"):
        fmt(Dispatch(Field(), [Tag("<c>", Seq(Name(), Args("xml-params", clsoe="x")), "</c>")]))


def test_what_only_json_can_be_held_to_is_refused_elsewhere() -> None:
    form = fmt(Dispatch(Field(), [Tag("<c>", Seq(Name(), Args("xml-params")), "</c>")]))
    either = {"type": "object", "properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    with pytest.raises(GrammarError, match="'anyOf' at the top") as caught:
        form.grammar(Request(tools=[ToolDefinition(name="t", schema=either)]))
    assert caught.value.keyword == "anyOf"
    form.grammar(Request(tools=[ToolDefinition(name="t", schema=either, unsupported="relax")]))


@pytest.mark.parametrize("codec", ["xml-params", "py-kwargs", "gemma-dict"])
@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "string", "maxLength": 3}, ["", "abc", "a<b"], ["abcd"]),
        ({"type": "string", "pattern": "^[a-c]+$"}, ["abc"], ["abd", ""]),
        ({"enum": ["red", "</parameter>", 5, None, True]}, ["red", "</parameter>", 5, None, True], ["blue", 6, False]),
        ({"const": "x"}, ["x"], ["y"]),
        ({"type": ["integer", "null"], "minimum": 3}, [3, None], [2]),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, [5, "5", "five", "true", '"q"', "", "</parameter>"], []),
        ({}, [None, True, 1.5, "x", "null", "[1]", [1, "a"], {"k": False}], []),
        ({"$ref": "#/$defs/s"}, ["x"], []),
        ({"type": "array", "items": {"type": "boolean"}, "maxItems": 2}, [[], [True, False]], [[True, True, True]]),
        (
            {"type": "object", "properties": {"k": {"type": "boolean"}, "s": {"type": "string"}}, "required": ["k"],
             "additionalProperties": False},
            [{"k": True}, {"k": False, "s": "'\"\\\n<escape>"}],
            [{"s": "x"}],
        ),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, [{}, {"any key": 1}], [{"a": "x"}]),
    ],
)  # fmt: skip
def test_schemas_are_held_to_in_every_codec(
    codec: str, schema: dict[str, Any], good: list[Any], bad: list[Any]
) -> None:
    full = {"type": "object", "properties": {"v": schema}, "required": ["v"], "$defs": {"s": {"type": "string"}}}
    tool = ToolDefinition(name="t", schema=full)
    made, slot = get_codec(codec), Slot(tool=tool, avoid=("<|end|>",))
    grammar = Engine(Vocabulary.byte_level()).compile(made.grammar(slot))
    for value in good:
        text = made.encode({"v": value}, slot)
        assert made.decode(text, slot) == {"v": value}
        assert type(made.decode(text, slot)["v"]) is type(value)
        matcher = grammar.matcher()
        assert matcher.accept_bytes(text.encode()), text
        assert matcher.can_end
    for value in bad:
        text = made.encode({"v": value}, slot)
        matcher = grammar.matcher()
        assert not (matcher.accept_bytes(text.encode()) and matcher.can_end), text


def test_required_and_optional_arguments() -> None:
    schema = {
        "type": "object",
        "properties": {k: {"type": "integer"} for k in "abc"},
        "required": ["b"],
        "additionalProperties": {"type": "integer"},
    }
    slot = Slot(tool=ToolDefinition(name="t", schema=schema))
    for codec in ("xml-params", "py-kwargs", "gemma-dict"):
        made = get_codec(codec)
        grammar = Engine(Vocabulary.byte_level()).compile(made.grammar(slot))
        for keys, fits in (
            ("b", True),
            ("ab", True),
            ("bc", True),
            ("abc", True),
            ("abcx", True),
            ("ac", False),
            ("", False),
        ):
            text = made.encode(dict.fromkeys(keys, 1), slot)
            matcher = grammar.matcher()
            assert (matcher.accept_bytes(text.encode()) and matcher.can_end) == fits, text


def test_only_and_its_mistakes() -> None:
    assert Only("a", "b", "a").names == ("a", "b")
    assert Only("a").name == "a"
    with pytest.raises(DefinitionError, match="names no tool"):
        Only()
    with pytest.raises(DefinitionError, match="Did you mean 'get'"):
        Request(tools=[GET], tool_choice=Only("get", "gett"))


def test_declarations_that_cannot_work_are_refused() -> None:
    with pytest.raises(DefinitionError, match="stand all anywhere"):
        Dispatch(Field(), [Tag("a", Name()), Tag("b", Name(), where="start")])
    with pytest.raises(DefinitionError, match="is for the start"):
        Dispatch(Field(), [Tag("{", JsonObj(name=Name()), peek=True)])
    with pytest.raises(DefinitionError, match="last message without a recipient"):
        Channels(messages=(Channel(name="x", content=Field()),))
    nameless = Channels(messages=(Channel(name="x", content=Field(), last=True),))
    with pytest.raises(DefinitionError, match="says of no message how tool 'get' is called"):
        fmt(nameless).grammar(Request(tools=[GET]))
    with pytest.raises(DefinitionError, match="what it is made 'of'"):
        fmt(Dispatch(Field(), [Tag("<c>", Seq(CallId("-+"), Name(), Args()))])).print_call(GET, {})


def test_a_list_of_calls_goes_on_behind_a_broken_one() -> None:
    item = Tag("<i>", Seq(Name(), Lit(":"), Args()), "</i>")
    form = fmt(Dispatch(Field(), [Tag("<s>", Rep(item, min=1), "</s>")]))
    good, broken = '<i>get:{"n": 5}</i>', '<i>get:{"n": }</i>'
    message = read(form, f"<s>{good}{broken}{good}</s>done")
    assert message.calls == (CALL, CALL)
    assert [m.raw for m in message.malformed] == [broken]
    assert message.parts[-1] == TextPart(text="done")
    assert accepts(form, f"<s>{good}{good}</s>")
    assert not accepts(form, "<s></s>")
