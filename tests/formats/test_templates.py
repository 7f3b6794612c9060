"""Official chat templates: the assistant's turns that they render are accepted by our grammars and read back.

What differs is listed in ``template_differences.txt``, a line for each; a line more or less fails the test.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentgram.engine import Engine, Vocabulary
from agentgram.formats import Format, Prompt, Request
from agentgram.messages import Message, ToolCall, assistant
from tests.formats.samples import TOOLS, functions
from tests.formats.tokenizer import byte_tokenizer
from tests.laws.shapes import format_of, without_ids

TEMPLATES = Path(__file__).parents[3] / "shared" / "data" / "templates"
FROZEN = Path(__file__).with_name("template_differences.txt")
pytestmark = pytest.mark.skipif(not TEMPLATES.is_dir(), reason="the chat templates are not beside this checkout")
ENGINE = Engine(Vocabulary.byte_level())

SPOKEN = {
    "hermes": ["hermes", "qwen2.5", "qwen3", "granite-4.0"],
    "harmony": ["gpt-oss"],
    "llama3_json": ["llama3.1", "llama3.2"],
    "llama_pythonic": ["llama3.2-pythonic-vllm", "llama4"],
    "qwen3_coder": ["qwen3-coder", "qwen3.5"],
    "mistral_v11": ["mistral-small-3.2-v11"],
    "gemma4": ["gemma4"],
    "kimi_k2": ["kimi-k2-moonshot"],
}
PAIRS = [(fmt, template) for fmt, templates in SPOKEN.items() for template in templates]


def call(**arguments: Any) -> ToolCall:
    return ToolCall(name="put", arguments=arguments, id="abcdef120")


CASES: dict[str, Message] = {
    "words": assistant(calls=[call(text="Oslo")]),
    "quotes and newlines": assistant(calls=[call(text='say "it\'s"\nnow\\then')]),
    "other letters": assistant(calls=[call(text="東京 é 😀")]),
    "html": assistant(calls=[call(text="<b>a & b</b>")]),
    "numbers": assistant(calls=[call(count=-3, share=0.5)]),
    "true": assistant(calls=[call(exact=True)]),
    "null": assistant(calls=[call(note=None)]),
    "a list": assistant(calls=[call(tags=["a", "b c"])]),
    "an object": assistant(calls=[call(at={"x": 1, "deep": False})]),
    "no arguments": assistant(calls=[ToolCall(name="now", arguments={}, id="abcdef120")]),
    "text before": assistant("Let me see.", calls=[call(text="x")]),
    "two calls": assistant(
        calls=[call(text="x"), ToolCall(name="now", arguments={}, id="abcdef121")],
    ),
    "reasoning": assistant(reasoning="A tool.", calls=[call(text="x")]),
    "an answer": assistant("It is 18C."),
    "a reasoned answer": assistant("It is 18C.", reasoning="Easy."),
}


def rendered(fmt: Format, template: str, message: Message) -> tuple[Prompt, str]:
    """The prompt, and the turn as a chat template writes it, without what ends it."""
    tokenizer = byte_tokenizer(["<|im_end|>"], chat_template=(TEMPLATES / f"{template}.jinja").read_text("utf-8"))
    chat = [{"role": "user", "content": "Go."}]
    (said,) = message.to_openai()
    for one, made in zip(said.get("tool_calls", ()), message.calls, strict=True):
        one["function"]["arguments"] = made.arguments
    options: dict[str, Any] = {"tools": functions(), "tokenize": False}
    before = tokenizer.apply_chat_template(chat, add_generation_prompt=True, **options)
    after = tokenizer.apply_chat_template([*chat, said], add_generation_prompt=False, **options)
    opening = fmt.turn.opening("assistant")
    if not after.startswith(before):  # the prompt of a model that reasons begins its reasoning
        before = before[: before.rindex(opening) + len(opening)]
        assert after.startswith(before)
    turn, prefill = after[len(before) :], before.rpartition(opening)[2] if opening and opening in before else ""
    ends = sorted(
        {*fmt.stops, fmt.turn.closing("assistant").strip(), "<|end_of_text|>", "<|end|>", "<|im_end|>"} - {""}, key=len
    )
    turn = turn.rstrip("\n") if any(turn.rstrip("\n").endswith(e) for e in ends) else turn
    turn = next((turn.removesuffix(e) for e in reversed(ends) if turn.endswith(e)), turn)
    return Prompt(text=before, prefill=prefill, reasons=True), turn


def accepted(fmt: Format, prompt: Prompt, turn: str) -> str:
    for lenient in (False, True):
        matcher = ENGINE.compile(fmt.grammar(Request(tools=TOOLS), lenient=lenient, prompt=prompt)).matcher()
        if matcher.accept_bytes(turn.encode()) and matcher.can_end:
            return "leniently" if lenient else ""
    return "never"


def differences(name: str, template: str) -> Iterator[str]:
    fmt = format_of(name)
    for case, message in CASES.items():
        try:
            prompt, turn = rendered(fmt, template, message)
        except Exception as error:  # templates raise what they like
            yield f"{template}: {case}: the template refuses it: {error}".splitlines()[0]
            continue
        parser = fmt.parser(Request(tools=TOOLS), prompt=prompt)
        parser.feed_bytes(turn.encode())
        read = without_ids(parser.close())
        if read != without_ids(message):
            yield f"{template}: {case}: {turn!r} is read as {[*map(shown, read.parts)]}"
        how = accepted(fmt, prompt, turn)
        if how:
            yield f"{template}: {case}: {turn!r} is accepted {how}"


def shown(part: Any) -> str:
    if isinstance(part, ToolCall):
        return f"{part.name}({part.arguments})"
    return f"{type(part).__name__}({getattr(part, 'text', getattr(part, 'reason', ''))!r})"


@pytest.mark.parametrize(("name", "template"), PAIRS)
def test_only_listed_things_differ(name: str, template: str) -> None:
    listed = [line for line in FROZEN.read_text("utf-8").splitlines() if line.startswith(f"{template}: ")]
    assert list(differences(name, template)) == listed


BROKEN = {("llama3.2-pythonic-vllm", "quotes and newlines"), ("llama4", "quotes and newlines")}
"""What no grammar can hold: two templates write quotes into strings as they are, the one without any around them."""


def test_every_turn_is_accepted_but_those_with_bare_quotes() -> None:
    lines = [line for line in FROZEN.read_text("utf-8").splitlines() if line.endswith(" is accepted never")]
    assert {tuple(line.split(": ")[:2]) for line in lines} == BROKEN
    assert len(lines) == len(BROKEN)


def test_nothing_else_is_listed() -> None:
    templates = {
        line.partition(": ")[0] for line in FROZEN.read_text("utf-8").splitlines() if line[:1] not in ("", "#")
    }
    assert templates <= {template for _, template in PAIRS}
