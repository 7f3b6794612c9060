"""Masks that are put together from what was done before, and from what is known of whole regions of states."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgram.engine import Dispatch, Engine, EngineOptions, GrammarError, JsonSchema, Regex, Spec, Tag, Vocabulary
from walks import check_mask, walk


def vocabulary(*pieces: str) -> Vocabulary:
    tokens = [bytes([b]) for b in range(256)] + [p.encode() for p in dict.fromkeys(pieces)] + [b"\xe2\x80", b""]
    return Vocabulary(tokens, special={"<end>": len(tokens) - 1}, end=["<end>"])


BORDERS = vocabulary(
    *(a + b for a, b in itertools.product(['"}', "}", '"]}', "1}", '":1}'], ["</f>", "</g>", "</", "!", ""])),
    *('"}</f>' + more for more in (" and", "<f=", "<f=a>", "<f=b>{", "</f>", "<", "\n<f=ab")),
    *('"}!' + more for more in ("<f=", "<f=a>{", " so")),
    *('", "' + more for more in ("", "x", "n", "name", "note")),
    *("</f><f=a>", "<f=", "<f=a", "<f=ab>", "text", " text", '{"name', '":', '": "', '": 1', "12", '{"a', '{"'),
)
OBJECT = {"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer"}}, "required": ["name"]}
CLOSED = {**OBJECT, "additionalProperties": False}
TAGS = {
    "a": Tag("<f=a>", JsonSchema(OBJECT), "</f>"),
    "ab": Tag("<f=ab>", JsonSchema(CLOSED), "</f>"),
    "b": Tag("<f=b>", JsonSchema(OBJECT), "</g>"),
    "c": Tag("<f=c>", JsonSchema({"type": "array", "items": CLOSED}), "!"),
    "any": Tag("<g=any>", JsonSchema({"type": "object"}, property_order="any"), "</f>"),
}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"at_most": 1},
    {"at_least": 2, "at_most": 3},
    {"stop_after_first": True},
    {"stops": ["STOP"]},
    {"excludes": [" and"]},
]


def requests() -> list[tuple[tuple[str, ...], dict[str, Any]]]:
    chosen = [c for k in (1, 2, 5) for c in itertools.combinations(TAGS, k)]
    out = [(tags, options) for tags in chosen for options in OPTIONS]
    random.Random(1).shuffle(out)
    return out[:60]


def test_requests_of_one_format_share_masks_only_where_nothing_differs() -> None:
    engine = Engine(BORDERS, EngineOptions(threads=1))
    rng = random.Random(2)
    for tags, options in requests():
        specs = [TAGS[t] for t in tags]
        grammar = engine.compile(Dispatch(specs, list(dict.fromkeys(s.begin[:3] for s in specs)), **options))  # type: ignore[index]
        for name in tags:
            matcher = grammar.matcher()
            assert matcher.accept_bytes(TAGS[name].begin.encode())  # type: ignore[union-attr]
            for _ in range(10):
                allowed = [t for t in check_mask(matcher, BORDERS) if BORDERS.token_bytes(t)]
                if not allowed or not matcher.accept(rng.choice(allowed[: rng.choice([3, 30])])):
                    break


@pytest.mark.parametrize("ends", ["", ">", ">{"])
def test_a_token_that_runs_into_the_next_tag_goes_with_the_tags_that_are_there(ends: str) -> None:
    vocab = vocabulary(*(start + name + ends for start in ('"}</f><f=', "</f><f=") for name in ("a", "ab", "b", "c")))
    engine = Engine(vocab, EngineOptions(threads=1))
    reply = '<f=a>{"name": "text"}</f><f=a>{"name": "x'
    for tags in (("a",), ("a", "ab"), ("a", "b", "c"), ("a",)):
        matcher = engine.compile(Dispatch([TAGS[t] for t in tags], ["<f="])).matcher()
        for byte in reply.encode():
            check_mask(matcher, vocab)
            assert matcher.accept(byte)


def test_a_kept_mask_goes_with_the_keys_that_are_there() -> None:
    engine = Engine(BORDERS, EngineOptions(threads=1))
    for order in ("declared", "any"):
        grammar = engine.compile(JsonSchema({"type": "object", "maxProperties": 3}, property_order=order))  # type: ignore[arg-type]
        for keys in itertools.permutations(["n", "name", "x", "note"], 2):
            matcher = grammar.matcher()
            for piece in ("{", f'"{keys[0]}": 1', ', "', keys[1][:1], keys[1][1:] + '": "', "x", '"'):
                assert piece == "" or matcher.accept_bytes(piece.encode())
                check_mask(matcher, BORDERS)


def test_what_is_kept_beside_a_small_cache_stays_small() -> None:
    engine = Engine(BORDERS, EngineOptions(threads=1, cache_bytes=64 << 10))
    for n in range(40):
        schema = {**OBJECT, "properties": {**OBJECT["properties"], f"key{n}": {"type": "number"}}}  # type: ignore[dict-item]
        walk(JsonSchema(schema), n, 8, engine)
    assert engine.stats().cache_bytes < 3 << 20


# Tokens that end a value, begin the next key or end it, and go on: what an object has seen already then matters.
ACROSS = vocabulary(
    *(
        end + comma + key
        for end in ('"', "1", "null", "]", "")
        for comma in (",", ", ")
        for key in ('"', '"a', '"ab":')
    ),
    *(name + after for name in ("a", "ab", "b", "", "name") for after in ('"', '":', '": 1', '":1,"', '":1,"a', '":"')),
    *('"' + name + after for name in ("a", "ab", "", "no") for after in ("", '"', '":', '":1', '":1,"b":')),
    *('":null', '":null}', '":1,"ab":1', ',"a":1,"b":1', '","","', '{"a', "\\u0061", '\\u0061":', "ame", "am", "te"),
)
NAMES = ["a", "ab", "b", "name", "note"]


@st.composite
def objects(draw: st.DrawFn) -> dict[str, Any]:
    values = st.sampled_from(
        [{"type": "integer"}, {"type": "null"}, {"type": "string"}, {"type": "array"}, {"const": 1}]
    )
    names = draw(st.lists(st.sampled_from(NAMES), unique=True))
    schema: dict[str, Any] = {"type": "object", "properties": {name: draw(values) for name in names}}
    more = {
        "required": st.lists(st.sampled_from(NAMES), unique=True, max_size=2),
        "additionalProperties": st.one_of(st.just(False), values),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "m", "^$"]), values, max_size=2),
        "minProperties": st.integers(0, 3),
        "maxProperties": st.integers(2, 4),
        "dependentRequired": st.dictionaries(st.sampled_from(NAMES), st.just(["b"]), max_size=1),
    }
    for keyword in draw(st.lists(st.sampled_from(sorted(more)), unique=True, max_size=3)):
        schema[keyword] = draw(more[keyword])
    return schema


@pytest.fixture(scope="module")
def across() -> Engine:
    return Engine(ACROSS, EngineOptions(threads=1))


@given(schema=objects(), seed=st.integers(0, 99), order=st.sampled_from(["declared", "any"]))
def test_objects_share_masks_only_where_the_same_keys_may_follow(
    across: Engine, schema: dict[str, Any], seed: int, order: Any
) -> None:
    try:
        spec = JsonSchema({"type": "array", "items": schema}, property_order=order)
        across.compile(spec)
    except GrammarError:  # nothing satisfies some of them
        return
    for k in range(4):
        walk(spec, seed + k, 14, across, b"[")


# Each asks for one thing that an object is to be told apart by.
FEW = {
    "across": ACROSS,
    "closes": vocabulary('"}', "1}", '"},', '"}]', "e}"),
    "begins a key": vocabulary('","a', ', "a', ',"n', '", "b'),
    "spells a key": vocabulary(',"a":', ', "a":', '","a":'),
    "ends a key": vocabulary('me"', 'b"', '"', 'me":', 'ame"'),
}
BOUNDS: list[dict[str, Any]] = [
    {},
    {"minProperties": 2, "additionalProperties": False},
    {"required": ["name"], "maxProperties": 2},
    {"dependentRequired": {"a": ["ab"]}, "additionalProperties": False},
    {"patternProperties": {"^a": True}, "additionalProperties": False, "minProperties": 2},
]


@pytest.mark.parametrize("bounds", BOUNDS, ids=lambda b: ", ".join(b) or "none")
@pytest.mark.parametrize("tokens", FEW)
def test_what_may_follow_a_member_is_told_apart_where_all_else_is_the_same(tokens: str, bounds: dict[str, Any]) -> None:
    vocab = FEW[tokens]
    engine = Engine(vocab, EngineOptions(threads=1))
    schema = {"type": "object", "properties": dict.fromkeys(("ab", "b", "name", "note"), True), **bounds}
    for order in ("declared", "any"):
        grammar = engine.compile(JsonSchema({"type": "array", "items": schema}, property_order=order))  # type: ignore[arg-type]
        for keys in (
            ("a", "ab"),
            ("ab", "b"),
            ("b", "name"),
            ("name", "note"),
            ("b", "ab", "a"),
            ("note", "b", "name"),
        ):
            matcher = grammar.matcher()
            pieces = ["[", "{"]
            for key in keys:
                pieces += ['"', key[:1], key[1:], '"', ":", '"te', '"', ","]
            for piece in pieces:
                if piece and not matcher.accept_bytes(piece.encode()):
                    break
                check_mask(matcher, vocab)


# Most tokens are words, as in real vocabularies: states that keep to themselves by letters are worth knowing.
WORDS = vocabulary(
    *("".join(word) for n in (2, 3) for word in itertools.product("abdefx", repeat=n)),
    *("".join(word) for n in (1, 2, 5) for word in itertools.product(["ab", "09", "é", "-", "\u2028", " f"], repeat=n)),
    *('ab"', 'f",', "a\\n", "x\\u2028", "x\u2028", "\u2029x", "a/b", "://", "ab:", "x\n", "#fade", "abcdefabcdef" * 2),
)


@pytest.fixture(scope="module")
def words() -> Engine:
    return Engine(WORDS, EngineOptions(threads=1))


PATTERNS = (
    "[a-f0-9]{5}",
    "abde",
    "^.+/.+$",
    "^\\$.*$",
    "fx|ab-",
    "^(\\d+.*)$",
    "(ab)+$",
    "[^\\u2028]{3}",
    "^[^x]*x[^x]*$",
)


@given(seed=st.integers(0, 99), keys=st.sampled_from([1, 2, 9]))
def test_regions_do_not_mix_keys_of_different_kinds(words: Engine, seed: int, keys: int) -> None:
    """Where one more key is left, it has to be the required one, or none that a pattern takes."""
    null, true = {"type": "null"}, {"type": "boolean"}
    schema = {"type": "object", "properties": {"abde": null}, "patternProperties": {"[a-f0-9]{5}": true}}
    kinds = [{"required": ["abde"]}, {"additionalProperties": False}, {"patternProperties": {"x$": True, "a": False}}]
    for order in ("declared", "any"):
        spec = JsonSchema({**schema, "maxProperties": keys, **kinds[seed % 3]}, property_order=order)  # type: ignore[arg-type]
        walk(spec, seed, 5, words, b'{"')


@pytest.mark.parametrize("pattern", PATTERNS)
@given(seed=st.integers(0, 99))
def test_regions_give_the_masks_of_a_walk(words: Engine, pattern: str, seed: int) -> None:
    specs: list[tuple[Spec, bytes]] = [
        (JsonSchema({"type": "string", "pattern": pattern}), b'"'),
        (JsonSchema({"type": "string", "pattern": pattern, "maxLength": 9 + seed % 30}), b'"'),
        (JsonSchema({"patternProperties": {pattern: {"type": "null"}}, "type": "object"}), b'{"'),
        (Regex(f"(?:{pattern.strip('^$')}|[a-x-]*!)"), b""),
    ]
    spec, start = specs[seed % len(specs)]
    walk(spec, seed, 6, words, start)
