"""The transformers model: its cache gives the scores of a fresh pass, its decoding gives valid turns."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from agentgram.errors import ContextOverflow, DefinitionError, ModelError
from agentgram.events import StepEnd
from agentgram.formats import Only, Request, get_format
from agentgram.messages import ToolCall, ToolResultPart, assistant, tool_results, user
from agentgram.models import ModelRequest, ModelSettings, TransformersModel
from agentgram.models.transformers import CACHES, TorchBackend
from agentgram.tools.definition import ToolDefinition
from tests.models.tiny import tiny_model, tiny_tokenizer

WIPE = ToolDefinition(
    name="wipe",
    description="Wipes.",
    schema={
        "type": "object",
        "properties": {"order": {"type": "integer", "minimum": 0, "maximum": 99}},
        "required": ["order"],
        "additionalProperties": False,
    },
)


@pytest.fixture(scope="module")
def llama() -> Any:
    return tiny_model(300)


@pytest.fixture(scope="module")
def tiny() -> TransformersModel:
    tokenizer = tiny_tokenizer()
    return TransformersModel.wrap(tiny_model(len(tokenizer) + 7), tokenizer, format="smollm2", name="tiny")


def fresh_scores(model: Any, tokens: list[int]) -> Any:
    with torch.inference_mode():
        return model(input_ids=torch.tensor([tokens])).logits[0, -1].numpy()


ids = st.integers(0, 299)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("prefill"), st.lists(ids, min_size=1, max_size=120)),
        st.tuples(st.just("again"), st.integers(1, 120)),  # a prompt that goes on from a part of this context
        st.tuples(st.just("append"), st.lists(ids, min_size=1, max_size=4)),
        st.tuples(st.just("truncate"), st.integers(1, 120)),
        st.tuples(st.just("logits"), st.just(0)),
    ),
    max_size=10,
)


@settings(max_examples=25)
@given(st.lists(ids, min_size=1, max_size=120), steps)
def test_scores_are_those_of_a_fresh_pass(llama: Any, first: list[int], plan: list[tuple[str, Any]]) -> None:
    backend = TorchBackend(llama)
    backend.prefill(first)
    tokens = list(first)
    for what, value in plan:
        if what == "prefill":
            tokens = list(value)
            backend.prefill(tokens)
        elif what == "again":
            tokens = [*tokens[:value], 5, 6, 7]
            backend.prefill(tokens)
        elif what == "append":
            tokens += value
            backend.append(value)
        elif what == "truncate" and value < len(tokens):
            tokens = tokens[:value]
            backend.truncate(value)
        elif what == "logits":
            np.testing.assert_allclose(backend.logits(), fresh_scores(llama, tokens), atol=1e-4)
        assert backend.tokens == tokens
    np.testing.assert_allclose(backend.logits(), fresh_scores(llama, tokens), atol=1e-4)


def test_a_shared_prefix_is_computed_once(llama: Any) -> None:
    backend = TorchBackend(llama)
    prompt = list(range(100))
    backend.prefill(prompt)
    backend.logits()
    assert backend.computed_tokens == 100
    backend.append([7, 8, 9])
    backend.logits()
    assert (backend.computed_tokens, backend.passes) == (103, 2)
    backend.prefill([*prompt, 7, 200, 201])
    backend.logits()
    assert backend.computed_tokens == 105
    backend.prefill([*prompt, 7, 200, 201])
    backend.logits()
    assert backend.computed_tokens == 106, "of a context that is all there, the last token alone is computed again"


def test_runs_that_take_turns_keep_their_caches(llama: Any) -> None:
    backend = TorchBackend(llama)
    contexts = [[run, *range(90)] for run in range(CACHES)]
    for _ in range(3):
        for context in contexts:
            context.append(50)
            backend.prefill(context)
            backend.logits()
    # Each context's first pass, then one token for each of two more turns.
    assert backend.computed_tokens == sum(92 + 1 + 1 for _ in contexts)
    for run in range(CACHES, 3 * CACHES):
        backend.prefill([run, *range(90)])
        backend.logits()
    assert len(backend._contexts) == CACHES


def test_a_system_prompt_shared_by_two_runs_is_copied_not_cut(llama: Any) -> None:
    backend = TorchBackend(llama)
    system = list(range(100, 200))
    one, two = [*system, *range(80)], [*system, *range(200, 280)]
    for tokens in (one, two):
        backend.prefill(tokens)
        backend.logits()
    backend.prefill([*one, 3])
    np.testing.assert_allclose(backend.logits(), fresh_scores(llama, [*one, 3]), atol=1e-4)
    assert backend.computed_tokens == 180 + 80 + 1


def test_a_failed_pass_leaves_no_half_cache(llama: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = TorchBackend(llama)
    backend.prefill([1, 2, 3])
    backend.logits()
    backend.append([4])
    last = llama.model.layers[-1]
    with monkeypatch.context() as patch:
        patch.setattr(last, "forward", lambda *a, **k: (_ for _ in ()).throw(MemoryError("no room")))
        with pytest.raises(MemoryError):
            backend.logits()
    np.testing.assert_allclose(backend.logits(), fresh_scores(llama, [1, 2, 3, 4]), atol=1e-4)


def test_a_source_that_is_no_model_is_named() -> None:
    with pytest.raises(ModelError, match="could not load '/no/such/place'"):
        TransformersModel("/no/such/place")
    with pytest.raises(ModelError, match="no type named 'float31'"):
        TransformersModel("/no/such/place", dtype="float31")


async def run(model: TransformersModel, request: Request, **options: Any) -> StepEnd:
    turn = ModelRequest(declared=request, permitted=request, settings=ModelSettings(**options))
    events = [e async for e in model.stream(turn)]
    assert [type(e) for e in events].count(StepEnd) == 1
    end = events[-1]
    assert isinstance(end, StepEnd)
    return end


async def test_noise_under_the_mask_is_a_valid_call(tiny: TransformersModel) -> None:
    request = Request(messages=[user("go")], tools=[WIPE], tool_choice=Only("wipe"))
    for seed in range(5):
        end = await run(tiny, request, temperature=1.5, seed=seed, max_tokens=60)
        (call,) = end.message.calls
        assert call.name == "wipe"
        assert 0 <= call.arguments["order"] <= 99
        assert end.message.malformed == ()
        assert end.sampled_tokens + end.forced_tokens <= 61
        assert end.forced_tokens > 0


async def test_a_seed_repeats_the_turn(tiny: TransformersModel) -> None:
    request = Request(messages=[user("go")], tools=[WIPE])
    first, second, third = [
        await run(tiny, request, temperature=2.0, seed=seed, max_tokens=20) for seed in (11, 11, 12)
    ]
    assert first == second
    assert first.message != third.message


async def test_the_cache_serves_the_next_step(tiny: TransformersModel) -> None:
    history = [user("Where is my order? " * 20)]
    request = Request(messages=history, tools=[WIPE], tool_choice=Only("wipe"))
    end = await run(tiny, request, max_tokens=60)
    before = tiny.backend.computed_tokens
    call = ToolCall(name="wipe", arguments=end.message.calls[0].arguments)
    result = ToolResultPart(name="wipe", content="done")
    later = Request(messages=[*history, assistant(calls=[call]), tool_results(result)], tools=[WIPE])
    prompt = tiny.format.render(later, tiny.tokenizer)
    assert prompt.tokens is not None
    await run(tiny, later, max_tokens=1)
    assert tiny.backend.computed_tokens - before < len(prompt.tokens) / 2


async def test_a_prompt_that_does_not_fit_is_refused() -> None:
    tokenizer = tiny_tokenizer()
    model = TransformersModel.wrap(tiny_model(len(tokenizer), context=64), tokenizer, format="smollm2")
    with pytest.raises(ContextOverflow, match="context holds 64"):
        await run(model, Request(messages=[user("word " * 100)]))


async def test_the_context_bounds_the_reply() -> None:
    tokenizer = tiny_tokenizer()
    model = TransformersModel.wrap(tiny_model(len(tokenizer), context=96), tokenizer, format="smollm2")
    request = Request(messages=[user("go")])
    prompt = model.format.render(request, tokenizer).tokens or ()
    end = await run(model, request, temperature=1.0, seed=3, max_tokens=1000)
    assert len(prompt) + end.sampled_tokens + end.forced_tokens <= 96


async def test_closing_the_stream_frees_the_thread(tiny: TransformersModel) -> None:
    request = Request(messages=[user("go")])
    settings = ModelSettings(temperature=1.0, seed=1, max_tokens=1500)
    stream = tiny.stream(ModelRequest(declared=request, permitted=request, settings=settings))
    await anext(aiter(stream))
    await stream.aclose()  # type: ignore[attr-defined]
    passes = tiny.backend.passes
    await run(tiny, request, max_tokens=1)
    assert tiny.backend.passes - passes < 100


async def test_two_turns_at_once_share_the_thread(tiny: TransformersModel) -> None:
    requests = [Request(messages=[user(text)], tools=[WIPE], tool_choice="required") for text in ("a", "b", "c")]
    alone = [await run(tiny, r, max_tokens=50) for r in requests]
    together = await asyncio.gather(*(run(tiny, r, max_tokens=50) for r in requests))
    assert list(together) == alone
    assert sum(t.name.startswith("agentgram tiny") for t in threading.enumerate()) == 1


async def test_the_steps_of_a_run_compute_only_what_is_new(tiny: TransformersModel) -> None:
    """Each step's prompt begins with the one before it: no step pays for the conversation again."""
    from agentgram import Agent, Limits, ModelRetry, RunError, tool

    @tool(retries=9)
    def wipe(order: int) -> str:
        raise ModelRetry("Once more.")

    agent = Agent(tiny, tools=[wipe], instructions="Be brief. " * 30)
    before, ends = tiny.backend.computed_tokens, []
    with pytest.raises(RunError):
        await agent.run(
            "go",
            tool_choice="required",
            settings=ModelSettings(max_tokens=60, temperature=1.0, seed=1),
            limits=Limits(steps=4),
            on_event=lambda event, _: ends.append(event) if isinstance(event, StepEnd) else None,
        )
    assert len(ends) == 4
    computed = tiny.backend.computed_tokens - before
    written = sum(end.sampled_tokens + end.forced_tokens for end in ends)
    assert computed < ends[-1].input_tokens + 2 * written
    assert sum(end.input_tokens for end in ends) > 2 * computed, "without the cache it would have been this much"


async def test_tokens_are_counted_while_the_model_writes(tiny: TransformersModel) -> None:
    from agentgram import Agent

    request = Request(messages=[user("go")], tools=[WIPE])
    turn = ModelRequest(declared=request, permitted=request)
    expected = len(tiny.format.render(request, tiny.tokenizer).tokens or ())
    writing = asyncio.create_task(run(tiny, request, temperature=1.0, seed=1, max_tokens=300))
    counts = await asyncio.gather(*(asyncio.to_thread(tiny.count_tokens, turn) for _ in range(20)))
    assert set(counts) == {expected}
    assert tiny.count_tokens("") == 0
    assert tiny.count_tokens("order order") > tiny.count_tokens("order")
    await writing
    assert Agent(tiny).count_tokens("go") == tiny.count_tokens(
        ModelRequest(declared=Request(messages=[user("go")]), permitted=Request(messages=[user("go")]))
    )


def test_a_run_that_outgrows_the_context_carries_what_was_done() -> None:
    from agentgram import Agent, Limits

    def look(closely: bool) -> str:
        return "much text " * 200

    tokenizer = tiny_tokenizer()
    model = TransformersModel.wrap(tiny_model(len(tokenizer), context=1024), tokenizer, format="smollm2")
    with pytest.raises(ContextOverflow, match="context holds 1024") as caught:
        Agent(model, tools=[look]).run_sync(
            "go",
            tool_choice="required",
            parallel=False,
            settings=ModelSettings(max_tokens=120),
            limits=Limits(steps=9),
        )
    assert [record.status for record in caught.value.run.calls] == ["done"]
    assert caught.value.run.messages[-1].role == "tool"


def test_no_models_keeps_weights_from_being_loaded(tmp_path: Any, tiny: TransformersModel) -> None:
    from agentgram import Agent
    from agentgram.models import load_model
    from agentgram.testing import no_models

    with no_models():
        for load in (load_model, TransformersModel):
            with pytest.raises(ModelError, match=r"loading .* is forbidden here by no_models"):
                load(tmp_path)
        with pytest.raises(ModelError, match="running TransformersModel is forbidden"):
            Agent(tiny).run_sync("go")


def test_a_model_is_loaded_by_name_in_another_format(tmp_path: Any) -> None:
    from agentgram.errors import DefinitionError
    from agentgram.models import load_model

    tokenizer = tiny_tokenizer()
    tokenizer.save_pretrained(tmp_path)
    tiny_model(len(tokenizer)).save_pretrained(tmp_path)
    with pytest.raises(DefinitionError, match="there is no format 'herms'"):
        load_model(tmp_path, format="herms")
    model: Any = load_model(tmp_path, format="hermes")
    assert model.format.name == "hermes"
    assert load_model(tmp_path, format="smollm2").format.name == "smollm2"  # type: ignore[attr-defined]


def test_a_chat_template_that_writes_calls_otherwise_is_refused() -> None:
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
        "{% for c in m.tool_calls or [] %}[{{ c.function.name }}]{% endfor %}<|im_end|>\n{% endfor %}"
        "{% if tools %}{% endif %}<|im_start|>assistant\n"
    )
    model = tiny_model(len(tokenizer))
    with pytest.raises(DefinitionError, match="writes a call that the format reads as"):
        TransformersModel.wrap(model, tokenizer, format="hermes")
    own = dataclasses.replace(get_format("hermes"), prompt="format")
    assert TransformersModel.wrap(model, tokenizer, format=own).format is own
