"""What grammars share: switches that change no mask, masks built ahead, batches on several threads, bounded memory."""

import json
import os
import random
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

from agentgram.engine import (
    Dispatch,
    Engine,
    EngineOptions,
    Grammar,
    GrammarError,
    JsonSchema,
    Lit,
    Matcher,
    Regex,
    Rep,
    Spec,
    Tag,
    Vocabulary,
    allocate_mask,
)

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 20},
        "code": {"type": "string", "pattern": "^[a-z0-9-]{1,64}$"},
        "kind": {"enum": ["a", "ab", 'b"c', "é"]},
        "tags": {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
    },
    "required": ["name"],
}
VALUE = {"name": 'a "q" é', "code": "my-app-9", "kind": 'b"c', "tags": [1, -22], "more": {"x": None}}
SPEC = Dispatch([Tag("<f=one>", JsonSchema(PERSON), "</f>"), Tag("<f=two>", Regex("[ab]{0,300}c?"), "</f>")], ["<f="])
REPLY = f"so <f=one>{json.dumps(VALUE)}</f> and <f=two>{'ab' * 40}c</f>."


@pytest.fixture(scope="module")
def vocab() -> Vocabulary:
    """Every byte, and words, borders and pieces of JSON as tokens of their own."""
    words = [
        b"name",
        b'":',
        b'", "',
        b'"}',
        b"</f>",
        b"<f=",
        b"my-",
        b"app",
        b"abab",
        b"abababab",
        b" a",
        b'{"',
        b"\\u",
        b"00e9",
    ]
    words += [bytes([a, b]) for a in b'ab"<>\\ ,' for b in b'ab"<>\\ ,:']
    tokens = [bytes([b]) for b in range(256)] + sorted(set(words)) + [b"<end>"]
    return Vocabulary(tokens, special={"<end>": len(tokens) - 1}, end=["<end>"])


def tokens_of(reply: str, vocab: Vocabulary, seed: int) -> list[int]:
    """A tokenisation that takes now long tokens, now short ones."""
    rng = random.Random(seed)
    data, out = reply.encode(), []
    pieces = [vocab.token_bytes(t) for t in range(vocab.size - 1)]
    while data:
        fits = [t for t, piece in enumerate(pieces) if data.startswith(piece)]
        out.append(rng.choice(fits))
        data = data[len(pieces[out[-1]]) :]
    return out


def masks_along(grammar: Grammar, tokens: list[int], vocab: Vocabulary) -> list[bytes]:
    matcher, mask, out = grammar.matcher(), allocate_mask(1, vocab.size), []
    for token in tokens:
        matcher.fill_mask(mask)
        out.append(mask.tobytes())
        assert matcher.accept(token), vocab.token_bytes(token)
    return out


@pytest.mark.parametrize(
    "options",
    [
        {"jit": "off"},
        {"jit": "warm", "threads": 2},
        {"cross_grammar_cache": False},
        {"repetition_compression": False},
        {"adaptive_masks": False},
        {"cache_bytes": 4096},
    ],
    ids=str,
)
def test_switches_change_no_mask(options: dict[str, Any], vocab: Vocabulary) -> None:
    for seed in range(3):
        tokens = tokens_of(REPLY, vocab, seed)
        plain = Engine(vocab, EngineOptions(threads=1, jit="lazy"))
        other = Engine(vocab, EngineOptions(**{"threads": 1, "jit": "lazy"} | options))
        expected = masks_along(plain.compile(SPEC), tokens, vocab)
        for _ in range(2):  # cold, then with what is kept
            assert masks_along(other.compile(SPEC), tokens, vocab) == expected


@pytest.mark.parametrize("options", [{"jit": "eager"}, {"threads": 0}])
def test_options_are_checked(options: dict[str, Any], vocab: Vocabulary) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        Engine(vocab, EngineOptions(**options))


def test_counters(vocab: Vocabulary) -> None:
    engine = Engine(vocab, EngineOptions(threads=1))
    tokens = tokens_of(REPLY, vocab, 0)
    masks_along(engine.compile(SPEC), tokens, vocab)
    first = engine.stats()
    assert first.misses == 1 and first.perfect_hits == 0
    assert 0 < first.builds <= first.nodes_walked and 0 < first.cache_bytes < 10 << 20

    again = Dispatch([Tag("<f=three>", JsonSchema(json.dumps(PERSON, ensure_ascii=False)), "</f>")], ["<f="])
    masks_along(engine.compile(again), tokens_of(f"<f=three>{json.dumps(VALUE)}</f>", vocab, 0), vocab)
    second = engine.stats()
    assert second.perfect_hits == 1 and second.misses == 1  # the same schema in another tag
    assert second.partial_hits > first.partial_hits
    assert second.builds - first.builds < first.builds / 2


def test_a_request_of_known_tools_builds_nothing(vocab: Vocabulary) -> None:
    engine = Engine(vocab, EngineOptions(threads=1))
    tags = [Tag(f"<f=t{i}>", JsonSchema(PERSON | {"title": str(i)}), "</f>") for i in range(20)]
    call = f"<f=t7>{json.dumps(VALUE)}</f>"
    tokens = tokens_of(f"well {call}", vocab, 1)
    masks_along(engine.compile(Dispatch(tags[:15], ["<f="])), tokens, vocab)
    before = engine.stats()
    masks_along(engine.compile(Dispatch(tags[5:], ["<f="])), tokens, vocab)
    after = engine.stats()
    assert (after.builds, after.entries, after.fragments - before.fragments) == (before.builds, before.entries, 5)


def test_bounds_of_a_repetition_share_their_masks(vocab: Vocabulary) -> None:
    engine = Engine(vocab, EngineOptions(threads=1))

    def through(most: int) -> int:
        masks_along(
            engine.compile(JsonSchema({"type": "string", "maxLength": most})),
            tokens_of('"abab abab"', vocab, 0),
            vocab,
        )
        return engine.stats().builds

    first = through(1000)
    assert [through(most) for most in (2000, 5000, 100_000)] == [first] * 3


@pytest.mark.parametrize("threads", [1, 2])
def test_warm_builds_what_is_needed(threads: int, vocab: Vocabulary) -> None:
    engine = Engine(vocab, EngineOptions(threads=threads, jit="lazy"))
    grammar = engine.compile(JsonSchema(PERSON))
    assert engine.stats().builds == 0
    assert grammar.warm(timeout=60).result(60) is None
    warmed = engine.stats().builds
    assert warmed > 5
    masks_along(grammar, tokens_of('{"name": "a b"}', vocab, 3), vocab)
    lazy = Engine(vocab, EngineOptions(threads=1, jit="lazy"))
    masks_along(lazy.compile(JsonSchema(PERSON)), tokens_of('{"name": "a b"}', vocab, 3), vocab)
    assert engine.stats().builds - warmed < lazy.stats().builds
    assert engine.compile(JsonSchema(PERSON)).warm(top=0).result(60) is None


def test_compile_warms_on_another_thread(vocab: Vocabulary) -> None:
    engine = Engine(vocab, EngineOptions(threads=2, jit="warm"))
    grammar = engine.compile(JsonSchema(PERSON))
    for _ in range(2000):
        if engine.stats().builds:
            break
        threading.Event().wait(0.005)
    assert engine.stats().builds
    del grammar


def test_known_tools_are_not_warmed_again(vocab: Vocabulary) -> None:
    engine = Engine(vocab, EngineOptions(threads=2, jit="warm"))
    tags = [Tag(f"<f=t{i}>", JsonSchema(PERSON | {"title": str(i)}), "</f>") for i in range(6)]

    def settled() -> int:
        builds = -1
        while builds != (builds := engine.stats().builds):
            threading.Event().wait(0.05)
        return builds

    engine.compile(Dispatch(tags, ["<f="])).warm().result(60)
    engine.compile(Dispatch(tags, ["<f="]))
    before = settled()
    for _ in range(20):
        engine.compile(Dispatch(tags[1:4], ["<f="]))
    assert settled() == before


def test_off_builds_inside_compile(vocab: Vocabulary) -> None:
    engine = Engine(vocab, EngineOptions(threads=1, jit="off"))
    grammar = engine.compile(JsonSchema({"type": "string"}))
    built = engine.stats().builds
    assert built
    masks_along(grammar, [vocab.encode(b'"')[0], *(vocab.encode(b"c")), *(vocab.encode(b'"'))], vocab)
    assert engine.stats().partial_hits > 0


def test_batches_on_threads(vocab: Vocabulary) -> None:
    """Many matchers, forks and repeated ones among them; rows in another order."""
    engine = Engine(vocab, EngineOptions(threads=4, adaptive_masks=False))  # slow masks, so that threads are used
    grammar = engine.compile(SPEC)
    rng = random.Random(5)
    tokens = tokens_of(REPLY, vocab, 2)
    matchers: list[Matcher] = []
    for _ in range(40):
        matcher = grammar.matcher()
        for token in tokens[: rng.randrange(len(tokens))]:
            assert matcher.accept(token)
        matchers += [matcher, matcher.fork()]
    matchers.append(matchers[0])
    rows = list(range(len(matchers)))
    rng.shuffle(rows)
    expected = allocate_mask(len(matchers), vocab.size)
    for matcher, row in zip(matchers, rows, strict=True):
        matcher.fill_mask(expected, row)
    for batch in (matchers, matchers[:1], []):
        mask = allocate_mask(len(matchers), vocab.size)
        engine.fill_masks(batch, mask, rows[: len(batch)])
        for matcher, row in zip(batch, rows, strict=False):
            assert np.array_equal(mask[row], expected[row]), matcher
    with pytest.raises(ValueError, match="one row"):
        engine.fill_masks(matchers, expected, [0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.skipif("AGENTGRAM_CORE" in os.environ, reason="another process has the ordinary module, if any")
def test_a_forked_process_has_workers_of_its_own() -> None:
    code = """
import os
from agentgram.engine import *
vocab = Vocabulary([bytes([b]) for b in range(256)] + [bytes([a, b]) for a in range(97, 123) for b in range(97, 123)] + [b"<end>"], special={"<end>": 932}, end=["<end>"])
engine = Engine(vocab, EngineOptions(threads=2, adaptive_masks=False))
matchers = [engine.compile(JsonSchema({"type": "string"})).matcher() for _ in range(50)]
for m in matchers: assert m.accept(34)
mask = allocate_mask(50, vocab.size)
engine.fill_masks(matchers, mask)
child = os.fork()
other = allocate_mask(50, vocab.size)
engine.fill_masks(matchers, other)
assert (mask == other).all()
if child == 0:
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60)


def test_memory_is_bounded_when_tools_are_always_new(vocab: Vocabulary) -> None:
    engine = Engine(vocab, EngineOptions(cache_bytes=256 << 10, threads=1))
    sizes = []
    for i in range(1500):
        schema = {"type": "object", "properties": {f"key{i}": {"enum": [f"v{i}", "w"]}}, "required": [f"key{i}"]}
        grammar = engine.compile(Dispatch([Tag(f"<f=t{i}>", JsonSchema(schema), "</f>")], ["<f="]))
        matcher, mask = grammar.matcher(), allocate_mask(1, vocab.size)
        for byte in f'<f=t{i}>{{"key{i}": "w"}}</f>'.encode():
            matcher.fill_mask(mask)
            assert matcher.accept(byte)
        if i % 100 == 99:
            sizes.append(engine.stats().cache_bytes)
    assert max(sizes) < 2 * (256 << 10)
    assert engine.stats().evictions > 0


def test_a_tag_that_can_hold_nothing_is_left_out(vocab: Vocabulary) -> None:
    engine = Engine(vocab)
    never = JsonSchema({"type": "array", "enum": ["a"]})
    good = Tag("<f=good>", JsonSchema({"type": "integer"}), "</f>")
    grammar = engine.compile(Dispatch([Tag("<f=bad>", never, "</f>"), good], ["<f="]))
    assert grammar.matcher().accept_bytes(b"<f=good>1</f>")
    assert not grammar.matcher().accept_bytes(b"<f=bad>")
    (warning,) = grammar.report.warnings
    assert "<f=bad>" in warning.why and "nothing satisfies" in warning.why
    with pytest.raises(GrammarError, match="nothing satisfies"):
        engine.compile(Dispatch([Tag("<f=bad>", never, "</f>")], ["<f="]))
    with pytest.raises(GrammarError, match="look"):  # not understood, which is another matter
        engine.compile(
            Dispatch([good, Tag("<f=odd>", JsonSchema({"type": "string", "pattern": "(?=a)"}), "</f>")], ["<f="])
        )


@pytest.mark.parametrize("spec", [Rep(Regex("[a-z]"), 0, 50), Regex("[a-z]{0,300}"), Regex("([a-z]{1,9}[.]){1,9}")])
def test_long_tokens_at_bounds(spec: Spec) -> None:
    """Tokens longer than what a count has left, beside such that fit."""
    tokens = [bytes([b]) for b in range(256)] + [b"a" * n for n in range(2, 129)] + [b"ab." * 3, b"z.z.z", b"<end>"]
    vocab = Vocabulary(tokens, special={"<end>": len(tokens) - 1}, end=["<end>"])
    matcher, found, walked = (
        Engine(vocab).compile(spec).matcher(),
        allocate_mask(1, vocab.size),
        allocate_mask(1, vocab.size),
    )
    rng = random.Random(1)
    for _ in range(60):
        matcher.fill_mask(found)
        matcher.fill_by_walk(walked)
        assert np.array_equal(found, walked)
        allowed = [t for t in range(vocab.size - 1) if found[0, t // 32] >> (t % 32) & 1]
        if not allowed:
            break
        assert matcher.accept(rng.choice(allowed[: max(1, len(allowed) // 2)]))


def test_a_constant_makes_no_entries() -> None:
    """Constants differ from user to user: what is made of them is not kept."""
    engine = Engine(Vocabulary.byte_level(), EngineOptions(threads=1))
    mask = allocate_mask(1, engine.vocab.size)

    def entries(user: str) -> int:
        schema = {"type": "object", "properties": {"id": {"type": "string", "const": user}}, "required": ["id"]}
        matcher = engine.compile(JsonSchema(schema)).matcher()
        for byte in json.dumps({"id": user}).encode():
            matcher.fill_mask(mask)
            assert matcher.accept(byte)
        return engine.stats().entries

    assert entries("user_1") == entries("user_2") == entries("somebody else")


@pytest.mark.parametrize(
    "spec",
    [
        Regex("a{81000000}"),
        Regex("(?:ab{3000}){3000}"),
        Rep(Lit("ab"), 3_000_000),
        JsonSchema({"type": "string", "minLength": 10**9}),
        JsonSchema({"type": "array", "minItems": 10**12}),
    ],
    ids=["letters", "nested", "repetition", "string", "array"],
)
def test_a_text_that_nobody_can_finish_is_refused(vocab: Vocabulary, spec: Spec) -> None:
    with pytest.raises(GrammarError, match=r"shortest text|too many"):
        Engine(vocab).compile(spec)
