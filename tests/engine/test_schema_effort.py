"""What a schema may cost: many patterns, formats, divisors and alternatives together are refused, or they compile; and
whichever it is does not depend on what the engine has compiled before."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from agentgram.engine import Engine, GrammarError, JsonSchema, Vocabulary

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23)


def strings(**keywords: Any) -> dict[str, Any]:
    return {"type": "string", **keywords}


def numbers(**keywords: Any) -> dict[str, Any]:
    return {"type": "number", **keywords}


def keys(patterns: Any, **keywords: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "patternProperties": {p: {"type": "integer", "minimum": i} for i, p in enumerate(patterns)},
        **keywords,
    }


PAIRS = [f"{a}.*{b}" for a, b in itertools.permutations("abcdef", 2)]
FORMATS = ("uri", "uri-reference", "email", "hostname", "ipv6", "ipv4", "date-time", "iri", "regex")

SMALL: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "thirty negated patterns": (
        strings(allOf=[{"not": {"pattern": p}} for p in PAIRS], minLength=10, maxLength=90),
        ["a" * 10, "xyxyxyxyxyxz"],
        ["axxxxxxxxxb", "a" * 9],
    ),
    "one of twelve patterns": (strings(oneOf=[{"pattern": p} for p in PAIRS[:12]]), ["ab", "xbxd"], ["abc", "x"]),
    "a language within a long bound": (
        strings(
            pattern="^\\p{L}[\\p{L}\\p{N}_-]{0,62}\\p{N}$",
            minLength=2,
            maxLength=63,
            **{"not": {"pattern": "\\p{Lu}{3}"}},
        ),
        ["a1", "ÄÖ_x-9"],
        ["ABC1", "1a", "a"],
    ),
    "a URI or a host": (
        strings(oneOf=[{"format": "uri"}, {"format": "hostname"}]),
        ["https://example.org/x?y#z", "example.org"],
        ["", "a b", "-x"],
    ),
    "a format that is not empty": (strings(format="regex", minLength=1), ["a+"], ["", "("]),
    "a long list of values left out of a pattern": (
        strings(pattern="^w\\d{4}$", **{"not": {"enum": [f"w{i:04d}" for i in range(0, 4000, 2)]}}),
        ["w0001", "w4000"],
        ["w0000", "w3998", "w00001"],
    ),
    "a length on three grids": (
        strings(allOf=[{"pattern": f"^(.{{{n}}})*$"} for n in (3, 5, 7)], minLength=1),
        ["x" * 105],
        ["", "x" * 104, "x" * 35],
    ),
    "keys of patterns that overlap": (
        keys(["a.*b", "b.*c", "c.*d"], additionalProperties=False),
        [{"ab": 0}, {"abcd": 2, "xcxd": 2}, {}],
        [{"bc": 0}, {"abc": 0}, {"x": 1}],
    ),
    "keys in keys": (
        {
            "type": "object",
            "patternProperties": {c * 3 + "$": keys([f"{d}.*{c}" for d in "abcd"]) for c in "abcd"},
        },
        [{"xaaa": {"ba": 1}}, {"x": 1}],
        [{"aaa": {"ba": 0}}, {"bbb": 1}],
    ),
    "numbers of many remainders": (
        numbers(allOf=[{"multipleOf": 429}, *({"not": {"multipleOf": d}} for d in (8, 12, 77, 6))]),
        [429, -1287],
        [858, 3003, 430],
    ),
    "forty conditions": (
        {
            "type": "object",
            "allOf": [
                {
                    "if": {"properties": {"t": {"const": i}}, "required": ["t"]},
                    "then": {"required": [f"x{i}"], "properties": {f"x{i}": {"type": "integer", "minimum": i}}},
                }
                for i in range(40)
            ],
        },
        [{"t": 3, "x3": 3}, {}, {"t": 50}],
        [{"t": 3}, {"t": 3, "x3": 2}],
    ),
}

LARGE: dict[str, Any] = {
    "nine formats, one of them": strings(oneOf=[{"format": f} for f in FORMATS]),
    "none of six formats": strings(**{"not": {"anyOf": [{"format": f} for f in (*FORMATS[2:7], "duration")]}}),
    "a choice far from the end": strings(pattern="(a|b)*a(a|b){14}", **{"not": {"pattern": "b(a|b){13}$"}}),
    "counts in counts in counts": strings(pattern="^(((ab){2,40}.){3,30}){2,20}$", minLength=50, maxLength=4000),
    "lengths without a common measure": strings(
        allOf=[{"pattern": f"^(.{{{p}}})*$"} for p in (101, 103, 107)], minLength=1
    ),
    "a pattern of patterns": strings(format="regex", minLength=3, maxLength=40, pattern="^/.*/$"),
    "counted negations": strings(
        allOf=[{"not": {"pattern": f"^(.{{3}}){{1,{i + 3}}}[a-{chr(100 + i)}]{{{i}}}"}} for i in range(1, 15)]
    ),
    "keys with counts in each": keys([f"^(\\w{{{i}}}\\d)+$" for i in range(1, 30)], additionalProperties=False),
    "keys of eight patterns": keys([f"[a-z]{i}.*{i}[A-Z]" for i in range(8)], additionalProperties=False),
    "keys that choose far from the end": keys([f"^(?:a|b)*a(?:a|b){{{i}}}$" for i in range(8, 16)]),
    "keys of thirty patterns": keys(PAIRS),
    "many names, many patterns": keys([f"{i}$" for i in range(60)], properties={f"p{i}": {} for i in range(300)}),
    "no multiple of nine primes": numbers(minimum=0.5, allOf=[{"not": {"multipleOf": p}} for p in PRIMES]),
    "one of many products": numbers(oneOf=[{"multipleOf": p * q} for p, q in itertools.combinations(PRIMES[:8], 2)]),
    "a large divisor and bounds": numbers(minimum=1, maximum=10**40, **{"not": {"multipleOf": 99991}}),
    "many languages, each small": {
        "properties": {
            f"p{i}": strings(pattern=f"^.{{0,{i + 9}}}a.*b{i}", minLength=i, **{"not": {"pattern": f"c.{{{i},60}}d"}})
            for i in range(1, 60)
        }
    },
}


@pytest.fixture(scope="module")
def warm() -> Engine:
    return Engine(Vocabulary.byte_level())


@pytest.mark.parametrize("name", SMALL)
def test_what_is_small_compiles(name: str, warm: Engine) -> None:
    schema, good, bad = SMALL[name]
    grammar = warm.compile(JsonSchema(schema, property_order="any"))

    def takes(value: Any) -> bool:
        matcher = grammar.matcher()
        return matcher.accept_bytes(json.dumps(value, ensure_ascii=False).encode()) and matcher.can_end

    assert [v for v in good if not takes(v)] == []
    assert [v for v in bad if takes(v)] == []


@pytest.mark.parametrize("name", LARGE)
def test_what_is_large_is_refused_each_time(name: str, warm: Engine) -> None:
    fresh = Engine(Vocabulary.byte_level())
    for engine in (fresh, fresh, warm):
        with pytest.raises(GrammarError) as error:
            engine.compile(JsonSchema(LARGE[name]))
        assert error.value.hint
    assert engine.stats().cache_bytes < 64 << 20
