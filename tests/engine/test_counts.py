"""Counted repetitions: masks are shared between counts that no token can tell apart, and only between those."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgram.engine import Ebnf, Engine, EngineOptions, JsonSchema, Regex, Spec, Vocabulary, allocate_mask
from walks import walk

SIZES = (1, 2, 3, 5, 9, 15, 16, 17, 18, 19, 20, 31, 40)


def vocabulary(longest: int = 40) -> Vocabulary:
    """Bytes, runs of letters and digits of many lengths, and runs that end, begin or break with something else."""
    runs = [c * n for c in "aé7 " for n in SIZES if n <= longest]
    pieces = [
        *runs,
        *(f'{"a" * n}"' for n in SIZES if n < longest),
        *(f'"{"a" * n}' for n in SIZES if n < longest),
        *(f"{'a' * n}-{'b' * n}" for n in SIZES if 2 * n < longest),
        *(f"\\n{'a' * n}" for n in (1, 4, 20) if n < longest),
        *(f"{'a' * n}\\u00e9{'a' * n}" for n in (1, 8, 14) if 2 * n + 6 <= longest),
        '","',
        '"]',
        "ab12cd34",
        "-",
    ]
    tokens = [bytes([b]) for b in range(256)] + [p.encode() for p in dict.fromkeys(pieces)]
    tokens += [b"\xc3", b"\xa9" + b"a" * 17, b"\xa9a", b""]
    return Vocabulary(tokens, special={"<end>": len(tokens) - 1}, end=["<end>"])


VOCABULARY = vocabulary()
SHARED = Engine(VOCABULARY, EngineOptions(threads=1))


@st.composite
def patterns(draw: st.DrawFn) -> str:
    def counted(body: str) -> str:
        least = draw(st.sampled_from([0, 1, 2, 16, 19, 25, 60]))
        most = draw(st.sampled_from([None, 0, 1, 3, 17, 30, 400]))
        return f"(?:{body}){{{least},{'' if most is None else least + most}}}"

    body = st.sampled_from(["[a-z]", "[a-z0-9]", "[^-]", "\\d", "[a-zé]", "a", "(?:ab|7)", "[a-z]+-"])
    parts = [counted(draw(body)) for _ in range(draw(st.integers(1, 3)))]
    whole = draw(st.sampled_from(["", "-", "x?"])).join(parts)
    return counted(whole) if draw(st.booleans()) else whole


@given(patterns(), st.integers(0, 99))
def test_a_counted_pattern_has_the_masks_of_a_walk(pattern: str, seed: int) -> None:
    walk(Regex(pattern), seed, 12, SHARED)
    walk(JsonSchema({"type": "string", "pattern": f"^{pattern}$"}), seed, 12, SHARED)


BOUNDED = ("^a(-?[a-z0-9])*$", "^([a-z]+-)*[a-z]$", "^(aa|é)*$", "^(\\S+\\s+){0,9}\\S+$", "^(a{7}|7{5})*$", "b|c")


@given(st.sampled_from(BOUNDED), st.integers(0, 40), st.integers(8, 300), st.integers(0, 99))
def test_a_bounded_pattern_has_the_masks_of_a_walk(pattern: str, least: int, more: int, seed: int) -> None:
    walk(
        JsonSchema({"type": "string", "pattern": pattern, "minLength": least, "maxLength": least + more}),
        seed,
        14,
        SHARED,
    )


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 99))
def test_a_bounded_string_has_the_masks_of_a_walk(least: int, more: int, seed: int) -> None:
    walk(JsonSchema({"type": "string", "minLength": least, "maxLength": least + more}), seed, 10, SHARED)
    walk(JsonSchema({"type": "array", "items": {"type": "string", "minLength": least}}), seed, 10, SHARED)


@pytest.mark.parametrize(
    "spec",
    [
        Regex("[a-z]{0,1000}"),
        Regex("[a-z]{500,1000}-[a-z]{900,}"),
        JsonSchema({"type": "string", "pattern": "^[a-z]{0,1000}$"}),
        JsonSchema({"type": "string", "maxLength": 1000}),
        JsonSchema({"type": "string", "minLength": 900, "maxLength": 1000}),
        Ebnf('root ::= word\nword ::= Regex("[a-z]{1,1000}") "."'),
    ],
    ids=str,
)
def test_far_from_their_bounds_counts_share_their_masks(spec: Spec) -> None:
    def builds(**options: Any) -> int:
        engine = Engine(VOCABULARY, EngineOptions(threads=1, **options))
        matcher = engine.compile(spec).matcher()
        assert matcher.accept_bytes(b'"' if isinstance(spec, JsonSchema) else b"a")
        mask = allocate_mask(1, VOCABULARY.size)
        for _ in range(450):
            matcher.fill_mask(mask)
            assert matcher.accept_bytes(b"a")
        return engine.stats().builds

    assert builds() <= 10
    assert builds(repetition_compression=False) >= 400


@pytest.mark.parametrize("size", [255, 256, 300, 2000])
def test_tokens_longer_than_any_count_that_fits_a_byte(size: int) -> None:
    tokens = [bytes([b]) for b in range(256)] + [b"a" * size, b"a" * size + b'"', b'"' + b"a" * size, b""]
    vocab = Vocabulary(tokens, special={"<end>": len(tokens) - 1}, end=["<end>"])
    engine = Engine(vocab)
    for bound in (size - 1, size, size + 1):
        for schema in ({"type": "string", "maxLength": bound}, {"type": "string", "minLength": bound}):
            matcher = engine.compile(JsonSchema(schema)).matcher()
            assert matcher.accept_bytes(b'"')
            mask, walked = allocate_mask(1, vocab.size), allocate_mask(1, vocab.size)
            matcher.fill_mask(mask)
            matcher.fill_by_walk(walked)
            assert (mask == walked).all(), (bound, schema)
