"""Rules that are equal are one, across schemas, grammars and sessions, and nothing else is."""

from __future__ import annotations

import functools
import itertools
import json
import random
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgram.engine import (
    Dispatch,
    Ebnf,
    Engine,
    EngineOptions,
    Grammar,
    GrammarError,
    JsonSchema,
    Rep,
    Seq,
    Spec,
    Tag,
    Vocabulary,
    allocate_mask,
)

ADDRESS = {
    "type": "object",
    "properties": {
        "street": {"type": "string"},
        "lines": {"type": "array", "items": {"type": "string"}, "maxItems": 4},
    },
    "required": ["street"],
}


@functools.cache
def vocab() -> Vocabulary:
    pieces = [
        '{"',
        '":',
        '", "',
        '"}',
        "}}",
        "[]",
        "],",
        '["',
        "[[",
        "]]",
        "null",
        "true",
        "12",
        '"a"',
        '{"a":',
        "ab+",
        "+a",
    ]
    tokens = [bytes([b]) for b in range(256)] + [p.encode() for p in pieces] + [b""]
    return Vocabulary(tokens, special={"<end>": len(tokens) - 1}, end=["<end>"])


def fresh(**options: Any) -> Engine:
    return Engine(vocab(), EngineOptions(**{"threads": 1, "jit": "lazy"} | options))


def rules(engine: Engine, *specs: Spec) -> list[int]:
    """How many rules there are after each specification, all of them in use."""
    kept: list[Grammar] = []
    out = []
    for spec in specs:
        kept.append(engine.compile(spec))
        out.append(engine.stats().rules)
    return out


def schema(value: Any) -> JsonSchema:
    return JsonSchema(json.dumps(value))


def masks(grammar: Grammar, seed: int, steps: int = 12) -> list[bytes]:
    """What may come, along a walk that the seed and these masks decide; and a shortest end from where it stops."""
    rng = random.Random(seed)
    matcher, mask, out = grammar.matcher(), allocate_mask(1, vocab().size), []
    for _ in range(steps):
        matcher.fill_mask(mask)
        out.append(mask.tobytes())
        allowed = [t for t in range(vocab().size) if mask[0, t // 32] >> t % 32 & 1 and vocab().token_bytes(t)]
        if not allowed:
            break
        assert matcher.accept(rng.choice(allowed[-rng.choice([1, 8, 300]) :]))
    return [*out, matcher.shortest_end()]


def test_an_equal_part_of_another_schema_is_the_same() -> None:
    engine = fresh()
    home = schema({"type": "object", "properties": {"home": ADDRESS}, "additionalProperties": False})
    work = schema({"title": "other", "type": "object", "properties": {"n": {"type": "null"}, "work": ADDRESS}})
    first, second = rules(engine, home, work)
    assert second - first == 1  # the object around it
    assert engine.stats().shared_rules >= 2


def test_masks_inside_an_equal_part_need_nothing_new() -> None:
    engine = fresh()
    grammars = [
        engine.compile(schema({"type": "object", "properties": {key: ADDRESS}, "required": [key]}))
        for key in ("home", "work")
    ]
    matchers = [grammar.matcher() for grammar in grammars]
    mask = allocate_mask(1, vocab().size)
    for matcher, key in zip(matchers, ("home", "work"), strict=True):
        for byte in f'{{"{key}": '.encode():
            matcher.fill_mask(mask)
            assert matcher.accept(byte)
    seen = []
    for matcher in matchers:
        before = engine.stats()
        for byte in b'{"street": "x", "lines": ["a", "b"]':
            matcher.fill_mask(mask)
            assert matcher.accept(byte)
        after = engine.stats()
        seen.append(after.builds - before.builds)
    assert seen[0] > 0 and seen[1] == 0


def test_recursion_is_the_same_by_any_name_and_in_any_order() -> None:
    def tree(node: str, children: str, first: str) -> JsonSchema:
        defs = {
            node: {"type": "object", "properties": {"v": {"type": "integer"}, "c": {"$ref": f"#/$defs/{children}"}}},
            children: {"type": "array", "items": {"$ref": f"#/$defs/{node}"}},
        }
        ordered = dict(sorted(defs.items(), key=lambda item: item[0] != first))
        return schema({"$defs": ordered, "$ref": f"#/$defs/{node}"})

    counts = rules(fresh(), tree("n", "c", "n"), tree("n", "c", "c"), tree("x", "a", "x"), tree("list", "tree", "tree"))
    assert len(set(counts)) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"type": "array", "items": {"type": "array", "items": {"$ref": "#"}}},
        {"$defs": {"x": {"type": "array", "items": {"$ref": "#/$defs/x"}}}, "$ref": "#/$defs/x"},
        {
            "$defs": {"x": {"type": "array", "items": {"$ref": "#/$defs/x"}}},
            "type": "array",
            "items": {"$ref": "#/$defs/x"},
        },
        {
            "$defs": {
                "x": {"type": "array", "items": {"$ref": "#/$defs/y"}},
                "y": {"type": "array", "items": {"$ref": "#/$defs/x"}},
            },
            "$ref": "#/$defs/x",
        },
    ],
)
def test_unfolded_recursion_is_the_recursion(other: Any) -> None:
    first, second = rules(fresh(), schema({"type": "array", "items": {"$ref": "#"}}), schema(other))
    assert first == second == 1


def test_grammars_in_bnf_share_their_rules() -> None:
    plain = Ebnf('root ::= sum\nsum ::= sum "+" atom | atom\natom ::= "(" sum ")" | [0-9]+')
    other = Ebnf('root ::= s\na ::= p | [0-9]+\np ::= "(" s ")"\ns ::= plus | a\nplus ::= s "+" a')
    first, second = rules(fresh(), plain, other)
    assert first == second


def test_what_differs_anywhere_is_another_rule() -> None:
    def tree(**more: Any) -> JsonSchema:
        children = {"type": "array", "items": {"$ref": "#"}, "maxItems": 2} | more
        return schema({"type": "object", "properties": {"a": children}, "additionalProperties": False})

    specs = [
        tree(),
        tree(maxItems=3),
        tree(minItems=1),
        tree(prefixItems=[{"$ref": "#"}]),
        tree(items={"anyOf": [{"$ref": "#"}, {"type": "null"}]}),
    ]
    assert [n - m for m, n in itertools.pairwise(rules(fresh(), *specs, specs[0]))] == [2, 2, 2, 3, 0]
    engine = fresh()
    assert [masks(engine.compile(spec), 3) for spec in specs] == [masks(fresh().compile(spec), 3) for spec in specs]


def test_two_hundred_tools_have_the_rules_of_a_common_part_once() -> None:
    part = {
        "type": "object",
        "properties": {f"field_{i}": ADDRESS | {"maxProperties": 5 + i} for i in range(60)},
        "additionalProperties": False,
    }

    def tool(i: int) -> JsonSchema:
        return schema(
            {
                "type": "object",
                "properties": {f"only_{i}": {"type": "null"}, "part": {"$ref": "#/$defs/p"}},
                "additionalProperties": False,
                "$defs": {"p": part},
            }
        )

    counts = rules(fresh(), *map(tool, range(200)))
    assert counts[0] > 60
    assert counts == [counts[0] + i for i in range(200)]


def test_what_nobody_uses_is_gone() -> None:
    engine = fresh()
    grammar = engine.compile(schema({"type": "array", "items": {"anyOf": [ADDRESS, {"$ref": "#"}]}}))
    kept = engine.stats().rules
    engine.compile(schema({"type": "object", "properties": {"x": ADDRESS | {"maxProperties": 2}}}))
    assert engine.stats().rules > kept
    engine.clear()
    assert engine.stats().rules == kept  # those of the grammar that is still there
    assert masks(grammar, 1) == masks(
        fresh().compile(schema({"type": "array", "items": {"anyOf": [ADDRESS, {"$ref": "#"}]}})), 1
    )
    del grammar
    engine.clear()
    assert engine.stats().rules == 0


def test_the_bound_of_the_cache_holds_for_shared_rules() -> None:
    engine = fresh(cache_bytes=64 << 10)
    most = 0
    for i in range(300):
        engine.compile(schema({"type": "object", "properties": {f"key_{i // 2}": ADDRESS, "n": {"maximum": i}}}))
        most = max(most, engine.stats().rules)
    assert engine.stats().evictions > 200 and most < 60


def test_threads_share() -> None:
    engine = fresh()

    def tree(i: int) -> JsonSchema:
        return schema({"type": "object", "properties": {f"k{i}": {"type": "array", "items": {"$ref": "#"}}}})

    expected = [masks(fresh().compile(tree(i)), 5) for i in range(8)]
    wrong: list[int] = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(40):
            i = rng.randrange(8)
            if masks(engine.compile(tree(i)), 5) != expected[i]:
                wrong.append(i)
            if rng.random() < 0.2:
                engine.clear()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    engine.clear()
    assert engine.stats().rules == 0


NAMES = st.sampled_from(["a", "b", "left", "x y"])
LEAVES: st.SearchStrategy[Any] = st.sampled_from(
    [
        {"type": "null"},
        {"type": "string", "maxLength": 2},
        {"enum": ["a", 1]},
        {"type": "integer"},
        {},
        {"$ref": "#"},
        {"$ref": "#/$defs/p"},
        {"$ref": "#/$defs/q"},
    ]
)


def around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    objects = st.builds(
        lambda properties, required, more, least: {
            "type": "object",
            "properties": properties,
            "required": [name for name in required if name in properties],
            "additionalProperties": more,
            "minProperties": least,
        },
        st.dictionaries(NAMES, inner, max_size=3),
        st.lists(NAMES, max_size=1),
        st.one_of(st.just(False), inner),
        st.integers(0, 1),
    )
    arrays = st.builds(lambda item, most: {"type": "array", "items": item, "maxItems": most}, inner, st.integers(1, 3))
    return st.one_of(objects, arrays, st.builds(lambda a, b: {"anyOf": [a, b]}, inner, inner))


PARTS = st.recursive(LEAVES, around, max_leaves=4)
SCHEMAS = st.builds(lambda root, p, q: {**root, "$defs": {"p": p, "q": q}}, PARTS, PARTS, PARTS).map(schema)
BODIES = st.lists(
    st.lists(
        st.sampled_from(["r0", "r1", "r2", '"a"', '"b"', "[0-9]", "r1?", '("a" r2)*']), min_size=1, max_size=3
    ).map(" ".join),
    min_size=1,
    max_size=2,
).map(" | ".join)
GRAMMARS = st.builds(
    lambda *bodies: Ebnf("root ::= r0\n" + "\n".join(f'r{i} ::= {b} | "x"' for i, b in enumerate(bodies))),
    BODIES,
    BODIES,
    BODIES,
)
SPECS = st.one_of(SCHEMAS, GRAMMARS)


def outcome(engine: Engine, spec: Spec, seed: int) -> tuple[Grammar | None, str | list[bytes]]:
    """The grammar, to keep it, and its masks; or why there is none."""
    try:
        grammar = engine.compile(spec)
    except GrammarError as error:
        return None, str(error)
    return grammar, masks(grammar, seed)


@given(st.lists(SPECS, min_size=2, max_size=4), st.integers(0, 99))
def test_grammars_on_one_engine_are_what_they_are_alone(specs: list[Spec], seed: int) -> None:
    """Whatever is shared, under hashes of 8 bits and with next to no room: each mask is that of an engine of its own."""
    engine = fresh(cache_bytes=64 << 10)
    engine._native.truncate_hashes(8)
    mixed = [Rep(Seq([specs[0], specs[-1]]), 1, 2), Dispatch([Tag("<a>", specs[0], "")], ["<a>"])]
    kept = []
    for spec in [*specs, specs[0], *mixed]:
        grammar, found = outcome(engine, spec, seed)
        kept.append(grammar)
        assert found == outcome(fresh(), spec, seed)[1]
