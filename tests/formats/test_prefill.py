"""What a prompt has of the turn already: the grammar goes on behind it, the parser has read it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from agentgram.engine import Engine, Vocabulary
from agentgram.engine import spec as e
from agentgram.errors import DefinitionError
from agentgram.formats import Format, Prefill, Prompt, Request, get_format
from agentgram.formats.quotient import without_prefix
from agentgram.messages import ReasoningPart, TextPart, user
from agentgram.tools.definition import ToolDefinition
from tests.formats.tokenizer import byte_tokenizer

NOW = ToolDefinition(name="now", schema={"type": "object", "properties": {}, "additionalProperties": False})
CALL = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
HERMES = get_format("hermes")
ENGINE = Engine(Vocabulary.byte_level())
TEMPLATES = Path(__file__).parents[3] / "shared" / "data" / "templates"


def accepts(spec: e.Spec, text: str) -> bool:
    matcher = ENGINE.compile(spec).matcher()
    return matcher.accept_bytes(text.encode()) and matcher.can_end


@pytest.mark.parametrize(
    ("reasoning", "prompt", "accepted", "refused"),
    [
        (None, None, [CALL, "hi"], [f"<think>\nhm\n</think>\n\n{CALL}"]),
        (True, None, [f"<think>\nhm\n</think>\n\n{CALL}"], [CALL, "hi"]),
        (False, None, [CALL, "hi"], [f"<think>\nhm\n</think>\n\n{CALL}"]),
        (None, Prompt(text="", reasons=True), [CALL, "hi", f"<think>\nhm\n</think>\n\n{CALL}"], ["<think>hm"]),
        (None, Prompt(text="", prefill="<think>\n"), [f"hm\n</think>\n\n{CALL}", "hm\n</think>\n\nhi"], [CALL, "hi"]),
        (True, Prompt(text="", prefill="<think>\n"), [f"hm\n</think>\n\n{CALL}"], [CALL]),
        (None, Prompt(text="", prefill="<think>\n\n</think>\n\n"), [CALL, "hi"], ["\n</think>\n\nhi"]),
        (False, Prompt(text="", prefill="<think>\n\n</think>\n\n"), [CALL, "hi"], ["\n</think>\n\nhi"]),
    ],
)
def test_reasoning_is_asked_for_forbidden_or_begun(
    reasoning: bool | None, prompt: Prompt | None, accepted: list[str], refused: list[str]
) -> None:
    spec = HERMES.grammar(Request(tools=[NOW], reasoning=reasoning), prompt=prompt)
    assert [accepts(spec, text) for text in accepted] == [True] * len(accepted)
    assert [accepts(spec, text) for text in refused] == [False] * len(refused)


def test_the_parser_reads_it_first() -> None:
    request = Request(tools=[NOW])
    parser = HERMES.parser(request, prompt=Prompt(text="", prefill="<think>\n"))
    parser.feed_bytes(f"hm\n</think>\n\n{CALL}".encode())
    message = parser.close()
    assert message.parts[0] == ReasoningPart(text="hm")
    assert [c.name for c in message.calls] == ["now"]
    answered = HERMES.parser(request, prompt=Prompt(text="", prefill="<think>\n\n</think>\n\n"))
    answered.feed_bytes(b"hi")
    assert answered.close().parts == (TextPart(text="hi"),)


def test_a_format_s_own_prompts_begin_the_turn() -> None:
    fmt = dataclasses.replace(HERMES, prefill=Prefill(on="<think>\n", off="<think>\n\n</think>\n\n"))
    assert Format.from_dict(fmt.to_dict()) == fmt
    for reasoning, begun in ((True, "<think>\n"), (False, "<think>\n\n</think>\n\n"), (None, "")):
        request = Request(tools=[NOW], messages=[user("hi")], reasoning=reasoning)
        prompt = fmt.render(request)
        assert prompt.prefill == begun
        assert prompt.text.endswith(f"<|im_start|>assistant\n{begun}")
        assert fmt.grammar(request) == fmt.grammar(request, prompt=prompt)
    assert accepts(fmt.grammar(Request(tools=[NOW], reasoning=True)), f"hm\n</think>\n\n{CALL}")
    parser = fmt.parser(Request(tools=[NOW], reasoning=True))
    parser.feed_bytes(b"hm\n</think>\n\nhi")
    assert parser.close().reasoning == "hm"


def test_a_prompt_that_no_turn_begins_with_is_refused() -> None:
    with pytest.raises(DefinitionError, match="no turn of this format may begin"):
        HERMES.grammar(Request(tools=[NOW]), prompt=Prompt(text="", prefill="<tool_response>"))


@pytest.mark.parametrize(
    ("spec", "prefix", "rest", "never"),
    [
        (e.Lit("abc"), "ab", ["c"], ["", "bc"]),
        (e.Seq([e.Tok("<t>"), e.Lit("x")]), "<t>", ["x"], [""]),
        (e.Choice([e.Lit("ax"), e.Lit("ay"), e.Lit("b")]), "a", ["x", "y"], ["b"]),
        (e.Seq([e.Opt(e.Lit("a")), e.Lit("ab")]), "a", ["b", "ab"], ["", "a"]),
        (e.Rep(e.Lit("ab"), 1, 3, e.Lit(",")), "ab,a", ["b", "b,ab"], ["", "b,ab,ab"]),
        (e.Rep(e.Lit("ab"), 2, None), "ab", ["ab", "abab"], [""]),
        (e.Seq([e.Regex("[ \\n]{0,3}"), e.Lit("x")]), " ", ["x"], ["  "]),
        (e.Seq([e.Text(["<"]), e.Lit("<e>")]), "so", ["<e>", " so<e>"], [""]),
        (e.Tag("<a>", e.Lit("x"), "</a>"), "<a>x<", ["/a>"], [""]),
        (e.Dispatch([e.Tag("<a>", e.Lit("x"), "</a>")], ["<a>"]), "so ", ["", "<a>x</a>"], ["<a>y"]),
    ],
)
def test_what_is_left_of_a_grammar(spec: e.Spec, prefix: str, rest: list[str], never: list[str]) -> None:
    left = without_prefix(spec, prefix)
    assert [accepts(left, text) for text in rest] == [True] * len(rest)
    assert [accepts(left, text) for text in never] == [False] * len(never)
    assert without_prefix(spec, "") is spec


@pytest.mark.skipif(not TEMPLATES.is_dir(), reason="the chat templates are not beside this checkout")
@pytest.mark.parametrize(
    ("template", "name", "reasoning", "begun", "free"),
    [
        ("qwen2.5", "hermes", None, "", False),
        ("qwen3", "hermes", None, "", True),
        ("qwen3", "hermes", True, "", False),
        ("qwen3", "hermes", False, "<think>\n\n</think>\n\n", False),
        ("qwen3.5", "qwen3_coder", None, "<think>\n", True),
        ("qwen3.5", "qwen3_coder", False, "<think>\n\n</think>\n\n", False),
    ],
)
def test_chat_templates_begin_the_turn(
    template: str, name: str, reasoning: bool | None, begun: str, free: bool
) -> None:
    tokenizer = byte_tokenizer(["<|im_end|>"], chat_template=(TEMPLATES / f"{template}.jinja").read_text("utf-8"))
    fmt, request = get_format(name), Request(tools=[NOW], messages=[user("hi")], reasoning=reasoning)
    prompt = fmt.render(request, tokenizer)
    assert (prompt.prefill, prompt.reasons) == (begun, free)
    assert prompt.text.endswith(f"<|im_start|>assistant\n{begun}")
    spec = fmt.grammar(request, prompt=prompt)
    thought = "hm\n</think>\n\nhi" if begun == "<think>\n" else "<think>\nhm\n</think>\n\nhi"
    assert accepts(spec, thought) == (free or reasoning is True)
