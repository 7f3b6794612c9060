"""Other families' formats, written down with the same pieces: none of them needs code of its own."""

from __future__ import annotations

import dataclasses
import json
import re
from itertools import combinations_with_replacement
from typing import Any

import pytest

from agentgram.engine import Engine, Vocabulary
from agentgram.formats import (
    Args,
    CallId,
    Dispatch,
    Field,
    Format,
    JsonArr,
    JsonObj,
    Lit,
    Name,
    Opt,
    Rep,
    Request,
    Results,
    Seq,
    Space,
    Tag,
    Tok,
    ToolList,
    Turn,
)
from agentgram.formats.nodes import Node
from agentgram.formats.printing import print_turn
from agentgram.messages import ToolCall, assistant
from tests.formats.samples import PUT, TOOLS, parsed
from tests.formats.test_outputs import SHARED, request
from tests.laws.reading import by_engine
from tests.laws.shapes import has_ids, without_ids

ENVELOPE = JsonObj([("name", Name()), ("arguments", Args())], aliases={"parameters": "arguments"})


def fmt(name: str, output: Node, **more: Any) -> Format:
    turn = Turn("<|{role}|>", "<|end|>", stop=["<|end|>"])
    return Format(name=name, turn=turn, tools=ToolList(), results=Results(), output=output, **more)


def think(after: str) -> Opt:
    return Opt(Seq(Tag(Tok("<think>"), Seq(Space(), Field("reasoning"), Space()), Tok("</think>")), Space(after)))


def glm(newline: str) -> Node:
    args = Args(
        "xml-params",
        open=f"<arg_key>{{key}}</arg_key>{newline}<arg_value>",
        close=f"</arg_value>{newline}",
        until=("</tool_call>",),
    )
    return Seq(
        think(newline),
        Dispatch(Field(), [Tag(Tok("<tool_call>"), Seq(Name(), Space(newline), args), Tok("</tool_call>"))]),
    )


DEEPSEEK = (
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁calls▁end｜>",
)
SECTION, BEGIN, SEP, END, SECTION_END = map(Tok, DEEPSEEK)
DSML = "｜DSML｜"
FORMATS = [
    fmt(
        "mistral_v3",
        Dispatch(
            Field(),
            [Tag(Tok("[TOOL_CALLS]"), JsonArr(JsonObj([*ENVELOPE.keys, ("id", CallId("[A-Za-z0-9]{9}"))])))],
        ),
    ),
    fmt(
        "deepseek_v3",
        Dispatch(
            Field(),
            [
                Tag(
                    SECTION,
                    Rep(
                        Tag(
                            BEGIN,
                            Seq(Lit("function"), SEP, Name(), Lit("\n```json\n", "\n"), Args(), Lit("\n```", "")),
                            END,
                        ),
                        min=1,
                        sep=Lit("\n"),
                    ),
                    SECTION_END,
                )
            ],
        ),
    ),
    fmt(
        "deepseek_v31",
        Dispatch(Field(), [Tag(SECTION, Rep(Tag(BEGIN, Seq(Name(), SEP, Args()), END), min=1), SECTION_END)]),
    ),
    fmt(
        "deepseek_v32",
        Dispatch(
            Field(),
            [
                Tag(
                    Lit(f"<{DSML}function_calls>"),
                    Seq(
                        Space("\n"),
                        Rep(
                            Tag(
                                f'<{DSML}invoke name="',
                                Seq(
                                    Name(),
                                    Lit('">'),
                                    Space("\n"),
                                    Args(
                                        "xml-params",
                                        open=f'<{DSML}parameter name="{{key}}" string="{{string}}">',
                                        close=f"</{DSML}parameter>\n",
                                        until=(f"</{DSML}invoke>",),
                                    ),
                                ),
                                f"</{DSML}invoke>",
                            ),
                            min=1,
                            sep=Lit("\n"),
                        ),
                        Space("\n"),
                    ),
                    Lit(f"</{DSML}function_calls>"),
                )
            ],
            sep="\n\n",
        ),
    ),
    fmt("glm45", glm("\n")),
    fmt("glm47", glm("")),
    fmt("phi4_mini", Dispatch(Field(), [Tag(Tok("<|tool_call|>"), JsonArr(ENVELOPE), Tok("<|/tool_call|>"))])),
    fmt("granite3", Dispatch(Field(), [Tag(Tok("<|tool_call|>", "<tool_call>"), JsonArr(ENVELOPE))])),
    fmt(
        "minimax_m2",
        Seq(
            think("\n\n"),
            Dispatch(
                Field(),
                [
                    Tag(
                        Tok("<minimax:tool_call>"),
                        Seq(
                            Space("\n"),
                            Rep(
                                Tag(
                                    '<invoke name="',
                                    Seq(
                                        Name(),
                                        Lit('">'),
                                        Space("\n"),
                                        Args(
                                            "xml-params",
                                            open='<parameter name="{key}">',
                                            close="</parameter>\n",
                                            until=("</invoke>",),
                                        ),
                                    ),
                                    "</invoke>",
                                ),
                                min=1,
                                sep=Lit("\n"),
                            ),
                            Space("\n"),
                        ),
                        Tok("</minimax:tool_call>"),
                    )
                ],
                sep="\n",
            ),
        ),
    ),
]
BY_NAME = {f.name: f for f in FORMATS}
EACH = pytest.mark.parametrize("fmt", FORMATS, ids=lambda f: f.name)
CALLS = [
    ToolCall(name="put", arguments={"text": 'a "b"\n</tool_call> é', "count": -3, "exact": True, "note": None}),
    ToolCall(name="put", arguments={"text": "17", "note": "null", "tags": ["</parameter>"]}),
    ToolCall(name="put", arguments={"text": "</arg_value>\n"}),
    ToolCall(name="now", arguments={}),
]


@EACH
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("text", ["", "Let me see."])
def test_calls_are_printed_accepted_and_read(fmt: Format, count: int, text: str) -> None:
    for first in range(len(CALLS)):
        message = assistant(text, calls=[CALLS[(first + i) % len(CALLS)] for i in range(count)])
        printed = print_turn(fmt, message, str, tools=TOOLS)
        read = parsed(fmt, printed, step=1)
        assert without_ids(read) == message
        assert all(c.id for c in read.calls) == has_ids(fmt)
        assert by_engine(fmt.grammar(Request(tools=TOOLS)), printed.encode())


@EACH
def test_no_call_of_another_tool_is_accepted(fmt: Format) -> None:
    printed = print_turn(fmt, assistant(calls=[CALLS[3]]), str, tools=TOOLS).replace("now", "wipe")
    assert "wipe" in printed
    assert not by_engine(fmt.grammar(Request(tools=TOOLS)), printed.encode())


def test_markers_of_arguments_may_be_tokens() -> None:
    markers = ["<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"]
    fmt = dataclasses.replace(BY_NAME["glm45"], controls=markers)
    special = {marker: 256 + i for i, marker in enumerate([*markers, "<|end|>"])}
    vocabulary = Vocabulary(
        [*(bytes([i]) for i in range(256)), *(b"" for _ in special)], special=special, end=["<|end|>"]
    )
    printed = fmt.print_call(PUT, {"text": "a", "count": 3})
    pieces = re.split("(" + "|".join(map(re.escape, markers)) + ")", printed)
    tokens = [t for p in pieces for t in ([special[p]] if p in special else list(p.encode()))]
    asked = Request(tools=[PUT])
    matcher = Engine(vocabulary).compile(fmt.grammar(asked, special=special)).matcher()
    assert matcher.validate(tokens) == len(tokens)
    assert matcher.validate(list(printed.encode())) < len("<tool_call>")  # text that spells a marker is no marker
    parser = fmt.parser(asked, vocabulary)
    for token in tokens:
        parser.feed_token(token)
    assert [c.arguments for c in parser.close().calls] == [{"text": "a", "count": 3}]


@EACH
def test_they_are_data(fmt: Format) -> None:
    assert Format.from_dict(json.loads(json.dumps(fmt.to_dict()))) == fmt


@pytest.mark.skipif(not SHARED.is_dir(), reason="the collected outputs are not beside this checkout")
def test_outputs_that_broke_other_parsers() -> None:
    rows = map(json.loads, (SHARED / "outputs-dev.jsonl").read_text("utf-8").splitlines())
    for row in (r for r in rows if r["format"] in BY_NAME):
        raw = row["raw"].encode()
        for i, j in combinations_with_replacement(range(0, len(raw) + 1, 7), 2):
            parser = BY_NAME[row["format"]].parser(request())
            for piece in (raw[:i], raw[i:j], raw[j:]):
                parser.feed_bytes(piece)
            message = parser.close()
            assert [[c.name, c.arguments] for c in message.calls] == row["expect"], row["id"]
            assert not message.malformed
