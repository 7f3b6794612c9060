"""The decode loop: what is appended, what is refused, what is counted, how a turn ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgram.engine import Engine, Vocabulary
from agentgram.errors import ContextOverflow, ModelError
from agentgram.events import CallDenied, StepEnd, TextDelta, ToolCallEnd, ToolCallStart
from agentgram.formats import Only, Prompt, Request, get_format
from agentgram.messages import user
from agentgram.models import ModelEvent, ModelRequest, ModelSettings
from agentgram.models.base import Denial
from agentgram.models.decoding import Decoder
from agentgram.testing.grammar import AdversarialModel, NoiseBackend, Speller, TargetBackend
from agentgram.tools.definition import ToolDefinition

HERMES = get_format("hermes")
BYTES = Vocabulary.byte_level()


def define(name: str, **properties: Any) -> ToolDefinition:
    schema = {
        "type": "object", "properties": properties, "required": list(properties), "additionalProperties": False
    }  # fmt: skip
    return ToolDefinition(name=name, description=f"The {name}.", schema=schema)


ORDER = {"order": {"type": "integer", "minimum": 0, "maximum": 999}}
WIPE, CACHE, GET = define("wipe", **ORDER), define("wipe_cache", **ORDER), define("get", **ORDER)
NOTE = define(
    "note",
    text={"type": "string", "minLength": 3, "maxLength": 40},
    tags={"type": "array", "items": {"type": "boolean"}, "minItems": 2},
)


def turn(
    declared: Sequence[ToolDefinition], permitted: Sequence[ToolDefinition] | None = None, **options: Any
) -> ModelRequest:
    request = {k: options.pop(k) for k in ("tool_choice", "parallel", "output_schema") if k in options}
    settings = ModelSettings(**{k: options.pop(k) for k in ("max_tokens", "temperature", "seed") if k in options})
    every = Request(messages=[user("go")], tools=declared, **request)
    narrowed = every if permitted is None else Request(messages=every.messages, tools=permitted, **request)
    return ModelRequest(declared=every, permitted=narrowed, settings=settings, **options)


def write(target: str | bytes, request: ModelRequest, **options: Any) -> tuple[list[ModelEvent], AdversarialModel]:
    """What comes of a model that wants to write ``target``."""
    model = AdversarialModel([target], **options)
    return list(model.turn(request)), model


def end_of(events: Sequence[ModelEvent]) -> StepEnd:
    end = events[-1]
    assert isinstance(end, StepEnd)
    assert not any(isinstance(e, StepEnd) for e in events[:-1])
    return end


def call(tool: ToolDefinition, **arguments: Any) -> str:
    return HERMES.print_call(tool, arguments)


# what is written


def test_text_is_written_and_ended() -> None:
    events, model = write("Hello, world.", turn([GET]))
    end = end_of(events)
    assert end.message.text == "Hello, world."
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "Hello, world."
    assert (end.finish, end.sampled_tokens, end.forced_tokens) == ("stop", 14, 0)
    assert model.outputs == [b"Hello, world."]


def test_a_permitted_call_is_written_and_its_envelope_is_forced() -> None:
    text = "Let me look.\n" + call(GET, order=17)
    events, model = write(text, turn([GET, WIPE], [GET]))
    end = end_of(events)
    assert model.outputs == [text.encode()]
    assert [c.name for c in end.message.calls] == ["get"]
    assert end.message.calls[0].arguments == {"order": 17}
    assert end.message.text == "Let me look."
    assert [type(e) for e in events if isinstance(e, ToolCallStart | ToolCallEnd)] == [ToolCallStart, ToolCallEnd]
    assert end.finish == "stop"
    assert end.forced_tokens > len('"arguments": {"order": ')
    assert end.sampled_tokens + end.forced_tokens in (len(text), len(text) + 1), "the end token is not forced text"


def test_a_required_single_call_costs_few_choices() -> None:
    request = turn([GET], tool_choice="required", parallel=False)
    events, _ = write(call(GET, order=7), request)
    end = end_of(events)
    assert end.message.calls[0].arguments == {"order": 7}
    assert end.sampled_tokens == 2, "one digit, and whether another follows; the rest is forced"


def test_forced_tokens_are_appended_in_one_piece() -> None:
    pieces: list[int] = []

    class Watching(TargetBackend):
        def append(self, tokens: Sequence[int]) -> None:
            pieces.append(len(tokens))
            super().append(tokens)

    target = call(GET, order=7).encode()
    backend = Watching(BYTES, Speller(BYTES), np.random.default_rng(0), [target])
    decoder = Decoder(Engine.shared(BYTES), HERMES)
    request = turn([GET], tool_choice="required", parallel=False)
    list(decoder.decode(backend, request, Prompt(text="")))
    assert pieces[0] == len(target.partition(b"7")[0])
    assert pieces[-1] == len(b"}}\n</tool_call>") - 1
    assert sum(pieces) == len(target)


# what is refused


@pytest.mark.parametrize(
    ("declared", "permitted"),
    [
        ([WIPE, CACHE], [CACHE]),  # the allowed name extends the denied one
        ([CACHE, WIPE], [WIPE]),  # the allowed name is a prefix of it
        ([GET, WIPE, CACHE], [GET]),
        ([WIPE, CACHE], []),  # nothing is allowed: the trigger itself is refused
    ],
)
@pytest.mark.parametrize("on_denied", ["tell", "stop"])
def test_a_denied_intent_is_reported_and_nothing_of_it_stays(
    declared: list[ToolDefinition], permitted: list[ToolDefinition], on_denied: str
) -> None:
    (wanted, *_) = [t for t in declared if t not in permitted]
    request = turn(declared, permitted, on_denied=on_denied, denial=lambda name, *_: Denial((), f"deny({name!r})"))
    events, model = write("Sure. " + call(wanted, order=3), request)
    end = end_of(events)
    assert [e for e in events if isinstance(e, CallDenied)] == [
        CallDenied(tool=wanted.name, path=(), rule=f"deny({wanted.name!r})")
    ]
    assert not any(isinstance(e, ToolCallStart) for e in events)
    assert (end.finish, end.message.calls, end.message.malformed) == ("denied", (), ())
    assert end.message.text.strip() == "Sure."
    assert model.outputs == [b"Sure. "], "the context is rolled back to before the trigger"


def test_an_earlier_call_of_the_turn_stays() -> None:
    text = call(GET, order=1) + "\n" + call(WIPE, order=2)
    events, model = write(text, turn([GET, WIPE], [GET]))
    end = end_of(events)
    assert [c.name for c in end.message.calls] == ["get"]
    assert [e.tool for e in events if isinstance(e, CallDenied)] == ["wipe"]
    assert end.finish == "denied"
    assert b"wipe" not in model.outputs[0]
    assert model.outputs[0].startswith(call(GET, order=1).encode())


def test_a_forced_denied_tool_is_an_intent() -> None:
    request = turn([WIPE], [], tool_choice="auto")
    required = ModelRequest(
        declared=Request(messages=request.declared.messages, tools=[WIPE], tool_choice=Only("wipe")),
        permitted=request.permitted,
    )
    events, model = write("no", required)
    assert [e.tool for e in events if isinstance(e, CallDenied)] == ["wipe"]
    assert end_of(events).finish == "denied"
    assert model.outputs == [b""]


def test_steering_is_an_explicit_choice() -> None:
    events, _ = write(call(WIPE, order=3), turn([WIPE, CACHE], [CACHE], on_denied="steer", tool_choice="required"))
    assert not any(isinstance(e, CallDenied) for e in events)
    assert {c.name for c in end_of(events).message.calls} == {"wipe_cache"}


def test_a_name_that_prose_mentions_is_no_intent() -> None:
    text = 'I may not "wipe" or call {"name": "wipe"}.'
    events, _ = write(text, turn([GET, WIPE], [GET]))
    assert end_of(events).message.text == text
    assert not any(isinstance(e, CallDenied) for e in events)


# how it ends


@given(st.integers(1, 160), st.sampled_from([0, 1, 2]), st.integers(0, 1000))
def test_a_budget_never_leaves_half_a_call(budget: int, choice: int, seed: int) -> None:
    tool_choice: Any = ("auto", "required", Only("note"))[choice]
    shortest = {"required": call(GET, order=1), Only("note"): call(NOTE, text="xxx", tags=[True, True])}
    request = turn([GET, NOTE], max_tokens=budget, tool_choice=tool_choice)
    target = call(NOTE, text="a long remark, " * 2, tags=[True, False, True]) + "\n" + call(GET, order=1)
    model = AdversarialModel([target], seed=seed)
    if tool_choice != "auto" and budget < len(shortest[tool_choice]):
        with pytest.raises(ModelError, match="the shortest reply that these tools and this output type allow"):
            list(model.turn(request))
        return
    events = list(model.turn(request))
    end = end_of(events)
    assert end.message.malformed == ()
    assert len(model.outputs[0]) <= budget
    assert end.sampled_tokens + end.forced_tokens <= budget + 1
    assert end.finish in ("stop", "length")
    assert [c.name for c in end.message.calls] == [e.call.name for e in events if isinstance(e, ToolCallEnd)]
    if tool_choice != "auto":
        assert end.message.calls
    for made in end.message.calls:
        if made.name == "note":
            assert 3 <= len(made.arguments["text"]) <= 40
            assert len(made.arguments["tags"]) >= 2


def test_a_text_is_cut_at_the_limit() -> None:
    events, _ = write("x" * 100, turn([], max_tokens=10))
    end = end_of(events)
    assert (end.finish, end.message.text) == ("length", "x" * 10)
    assert end.sampled_tokens + end.forced_tokens == 10


def test_a_character_is_not_cut_in_two() -> None:
    events, model = write("é" * 100, turn([], max_tokens=11))
    assert end_of(events).message.text == "é" * 5
    assert model.outputs == [("é" * 5).encode()]


def test_a_prompt_that_fills_the_context_is_refused() -> None:
    decoder = Decoder(Engine.shared(BYTES), HERMES, context=100)
    backend = NoiseBackend(BYTES, Speller(BYTES), np.random.default_rng(0))
    with pytest.raises(ContextOverflow, match=r"prompt has 100 tokens.*context holds 100"):
        decoder.decode(backend, turn([]), Prompt(text="x" * 100, tokens=(120,) * 100))
    request = turn([GET], tool_choice="required")
    with pytest.raises(ContextOverflow, match="offer fewer tools"):
        decoder.decode(backend, request, Prompt(text="x" * 60, tokens=(120,) * 60))


def test_the_context_bounds_the_budget() -> None:
    decoder = Decoder(Engine.shared(BYTES), HERMES, context=30)
    backend = TargetBackend(BYTES, Speller(BYTES), np.random.default_rng(0), [b"y" * 100])
    events = list(decoder.decode(backend, turn([]), Prompt(text="x" * 20, tokens=(120,) * 20)))
    assert end_of(events).message.text == "y" * 10
    assert end_of(events).finish == "length"


def test_cancelling_stops_before_the_next_token() -> None:
    decoder = Decoder(Engine.shared(BYTES), HERMES)
    backend = TargetBackend(BYTES, Speller(BYTES), np.random.default_rng(0), [b"hello"])
    answers = iter([False, False, True])
    events = list(decoder.decode(backend, turn([GET]), Prompt(text=""), lambda: next(answers)))
    assert end_of(events).finish == "cancelled"
    assert end_of(events).message.text == "he"


# how it samples


def test_a_seed_repeats_a_turn_and_steps_differ() -> None:
    class Flat(NoiseBackend):
        def logits(self) -> Any:
            return np.zeros(self.vocabulary.size, np.float32)

    def once(seed: int, step: int = 1) -> str:
        decoder = Decoder(Engine.shared(BYTES), HERMES)
        backend = Flat(BYTES, Speller(BYTES), np.random.default_rng(0))
        request = turn([], temperature=1.0, seed=seed, max_tokens=30, step=step)
        return end_of(list(decoder.decode(backend, request, Prompt(text="")))).message.text

    assert once(5) == once(5)
    assert len({once(5), once(6), once(-5), once(5, step=2)}) == 4


def test_grammars_are_kept_for_requests_that_come_again() -> None:
    decoder = Decoder(Engine.shared(BYTES), HERMES)
    request = Request(messages=[user("a")], tools=[GET])
    again = Request(messages=[user("b")], tools=[GET])
    assert decoder.grammar(request) is decoder.grammar(again)
    assert decoder.grammar(request) is not decoder.grammar(Request(tools=[WIPE]))


# markers that are tokens of their own


def marked_vocabulary() -> Vocabulary:
    """Single bytes, and hermes' markers as special tokens."""
    special = {"<tool_call>": 256, "</tool_call>": 257, "<|im_end|>": 258}
    return Vocabulary([bytes([b]) for b in range(256)] + [b""] * 3, special=special, end=["<|im_end|>"])


def test_a_marker_that_is_a_special_token_is_written_as_one() -> None:
    text = "Yes. " + call(GET, order=5)
    events, model = write(text, turn([GET, WIPE], [GET]), vocabulary=marked_vocabulary())
    end = end_of(events)
    assert [(c.name, c.arguments) for c in end.message.calls] == [("get", {"order": 5})]
    assert model.outputs == [text.encode()]
    assert end.sampled_tokens + end.forced_tokens <= len(text) - len("tool_call></tool_call>") + 2


@pytest.mark.parametrize("permitted", [[GET], []])
def test_a_denied_intent_is_rolled_back_to_before_a_special_marker(permitted: list[ToolDefinition]) -> None:
    events, model = write("Yes. " + call(WIPE, order=5), turn([GET, WIPE], permitted), vocabulary=marked_vocabulary())
    assert [e.tool for e in events if isinstance(e, CallDenied)] == ["wipe"]
    assert end_of(events).message.text.strip() == "Yes."
    assert model.outputs == [b"Yes. "]
