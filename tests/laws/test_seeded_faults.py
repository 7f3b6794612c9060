"""Faults as other implementations have had them: each one, put into ours, breaks a law, and so the laws would tell."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, given, settings

from agentgram.formats import assembly, channels, codecs, lowering, nodes, printing, prompting, raw, scanning
from agentgram.formats.literals import Literals
from agentgram.tools.definition import ToolDefinition
from tests.laws import test_format_laws as laws
from tests.laws import test_prompt_laws as prompt_laws
from tests.laws.shapes import format_of

Patch = pytest.MonkeyPatch
_JSON, _RUN = codecs.JsonCodec, assembly.Run


def regex_closer(patch: Patch) -> None:
    """Arguments end at the first text that looks like the call's end, strings or not."""

    def read(self: Any, src: Any, until: tuple[bytes, ...], slot: Any) -> Any:
        start = src.pos
        found = yield from src.until(re.compile(rb"\}\s*(?=\})"), lambda data, at: 64)
        src.pos = found.end() + src.base if found else src.end
        return src.take(start, src.pos)

    patch.setattr(_JSON, "read", read)


def lost_braces(patch: Patch) -> None:
    """A call without arguments is written without ``{}``."""
    encode = _JSON.encode
    patch.setattr(_JSON, "encode", lambda self, arguments, slot: encode(self, arguments, slot) if arguments else "")


def split_character(patch: Patch) -> None:
    """Each piece of the output is decoded on its own."""

    class Decoder:
        buffer = b""

        def decode(self, data: bytes, final: bool = False) -> str:
            return data.decode("utf-8", "replace")

        def reset(self) -> None:
            pass

    patch.setattr(assembly, "_decoder", Decoder)


def dropped_second_call(patch: Patch) -> None:
    """Only the first of several calls is kept."""
    end_call = _RUN.end_call

    def once(self: Any) -> None:
        if any(isinstance(p, assembly.ToolCall) for p in self._parts):
            self.draft = None
        else:
            end_call(self)

    patch.setattr(_RUN, "end_call", once)


def all_tools_allowed(patch: Patch) -> None:
    """The grammar is made of a list of tools that is not the request's."""
    patch.setattr(lowering, "allowed_tools", lambda request: [*request.tools, ToolDefinition(name="wipe")])


def trigger_not_held(patch: Patch) -> None:
    """The beginning of a trigger at the end of a piece is shown as text."""
    patch.setattr(scanning.Holder, "__call__", lambda self, data, start: 0)


def passed_unread(patch: Patch) -> None:
    """What comes while a text is open is passed on without a look at what is in it."""
    patch.setattr(scanning.Source, "until", _careless(scanning.Source.until))


def _careless(until: Callable[..., Any]) -> Callable[..., Any]:
    def careless(self: Any, pattern: Any, hold: Any) -> Any:
        made = copy.copy(hold)
        made.others = re.compile(rb"[\s\S]*")
        return (yield from until(self, pattern, made))

    return careless


def unescaped_markers(patch: Patch) -> None:
    """Markers in the values of an old call stand in the prompt as they are."""
    dumps = codecs.dumps
    patch.setattr(codecs, "dumps", lambda value, avoid=(): dumps(value))


def unguarded_text(patch: Patch) -> None:
    """Markers in what users and tools say stand in the prompt as they are."""
    patch.setattr(prompting, "breaker", lambda markers: str)


def required_means_maybe(patch: Patch) -> None:
    """``required`` lets the model answer with text."""
    patch.setattr(lowering, "must_call", lambda request: False)


def blanks_swallowed(patch: Patch) -> None:
    """What looked like the layout before a call is lost where no call follows."""
    begin_text = _RUN.begin_text
    patch.setattr(_RUN, "begin_text", lambda self, kind="content", start=None: begin_text(self, kind))


def all_values_strings(patch: Patch) -> None:
    """Values between tags are strings, whatever the schema says."""
    patch.setattr(raw.RawValue, "decode", lambda self, text: text)


def no_unary_minus(patch: Patch) -> None:
    """Negative numbers are no values."""
    value = Literals._value

    def refuse(self: Any) -> Any:
        if self.text.startswith("-", self.at):
            raise ValueError("no value")
        return value(self)

    patch.setattr(Literals, "_value", refuse)


def unescaped_recipient(patch: Patch) -> None:
    """A recipient is looked for at one place of the header only."""
    patch.setattr(channels, "_parsed", lambda node, run, text: channels._Header(channel="commentary", recipient=""))


def forgotten_field(patch: Patch) -> None:
    """The description leaves out what a tag ends with."""
    plain = nodes._plain
    patch.setattr(
        nodes, "_plain", lambda value: None if value == nodes.Tok("</tool_call>", "</tools>") else plain(value)
    )


def separator_forgotten(patch: Patch) -> None:
    """Several calls are printed without what stands between them."""
    each = printing._each
    patch.setattr(printing, "_each", lambda item, said: ["".join(each(item, said))])


FAULTS: list[tuple[Callable[[Patch], None], Callable[..., None], dict[str, Any]]] = [
    (regex_closer, laws.test_what_is_printed_is_read_back, {"name": "hermes"}),
    (lost_braces, laws.test_the_grammar_accepts_what_is_printed, {"name": "hermes", "accepts": laws.by_engine}),
    (split_character, laws.test_every_split_gives_the_same_events, {"name": "hermes"}),
    (dropped_second_call, laws.test_what_is_printed_is_read_back, {"name": "hermes"}),
    (all_tools_allowed, laws.test_denied_is_absent, {"name": "llama_function", "accepts": laws.by_engine}),
    (passed_unread, laws.test_every_split_gives_the_same_events, {"name": "hermes"}),
    (trigger_not_held, laws.test_every_split_gives_the_same_events, {"name": "hermes"}),
    (unescaped_markers, prompt_laws.test_data_is_not_markup, {"name": "smollm2"}),
    (unguarded_text, prompt_laws.test_data_is_not_markup, {"name": "llama3_json"}),
    (
        required_means_maybe,
        laws.test_the_grammar_accepts_what_is_printed,
        {"name": "hermes", "accepts": laws.by_engine},
    ),
    (blanks_swallowed, laws.test_no_text_is_lost_or_doubled, {"name": "hermes"}),
    (all_values_strings, laws.test_what_is_printed_is_read_back, {"name": "qwen3_coder"}),
    (no_unary_minus, laws.test_what_is_printed_is_read_back, {"name": "llama_pythonic"}),
    (unescaped_recipient, laws.test_what_is_printed_is_read_back, {"name": "harmony"}),
    (forgotten_field, laws.test_the_description_reads_back, {"name": "hermes"}),
    (
        separator_forgotten,
        laws.test_the_grammar_accepts_what_is_printed,
        {"name": "llama_pythonic", "accepts": laws.by_engine},
    ),
]


@pytest.mark.parametrize(("fault", "law", "case"), FAULTS, ids=[f.__name__ for f, _, _ in FAULTS])
def test_a_fault_breaks_a_law(
    fault: Callable[[Patch], None], law: Callable[..., None], case: dict[str, Any], monkeypatch: Patch
) -> None:
    if hasattr(law, "hypothesis"):
        handle = law.hypothesis
        search = settings(max_examples=400, derandomize=True, database=None, phases=[Phase.generate])
        law = search(given(**handle._given_kwargs)(handle.inner_test))
    fault(monkeypatch)
    memo = format_of(case["name"]).memo
    memo.clear()  # what readers made before, they made without the fault
    try:
        with pytest.raises((AssertionError, BaseExceptionGroup)):
            law(**case)
    finally:
        memo.clear()
