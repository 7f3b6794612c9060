"""uniqueItems of scalars: what comes twice is refused in any spelling, what does not is taken, and no mask leads to where
all values are used up."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgram.engine import Engine, EngineOptions, Grammar, GrammarError, JsonSchema, Vocabulary, allocate_mask
from tests.engine.schemas import check, compiled, takes


def unique(items: Any, **keywords: Any) -> dict[str, Any]:
    return {"type": "array", "uniqueItems": True, "items": items, **keywords}


COLOUR = {"type": "string", "oneOf": [{"enum": ["red", "blue"]}, {"pattern": "^#[0-9a-f]{6}$"}]}
KINDS: dict[str, Any] = {
    "numbers": {"type": "number"},
    "integers": {"type": "integer"},
    "positive integers": {"type": "integer", "minimum": 1},
    "ports": {"type": "integer", "minimum": 0, "maximum": 65535},
    "sixty integers": {"type": "integer", "minimum": 0, "maximum": 59},
    "multiples": {"type": "number", "multipleOf": 0.5, "minimum": -1, "maximum": 1},
    "even integers": {"type": "integer", "multipleOf": 2, "not": {"enum": [0, 4]}},
    "strings and numbers": {"type": ["string", "number"]},
    "all scalars": {"type": ["string", "number", "boolean", "null"]},
    "colours": COLOUR,
    "colours and numbers": {"anyOf": [COLOUR, {"type": "integer", "maximum": 3}, {"const": None}]},
    "factors": {"type": "string", "pattern": "^\\d+(\\.\\d+)?x$"},
    "short strings": {"type": "string", "minLength": 1, "maxLength": 16},
    "three digits": {"type": "string", "pattern": "^[01]{3}$"},
    "listed or any": {"anyOf": [{"enum": ["a", "b"]}, {"type": "string"}]},
    "fifty numbers": {"enum": [*range(50), 0.25, "x", None]},
}


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (
            "numbers",
            ["[]", "[1, 10,100]", "[0,0.5,1e5,1E6,-1]", "[1e-7,1e-8]"],
            ["[1,1]", "[1,1.0]", "[0,-0]", "[0.0,-0.0]", "[100,3,1e2]"],
        ),
        ("integers", ["[0,-1,1]"], ["[0,0]", "[-1,-1]", "[1,2,1]"]),
        ("ports", ["[80,443,8080]", "[65535,65534]"], ["[80,80]", "[65535,65535]", "[65536]"]),
        ("multiples", ["[0,0.5,1,-0.5,-1]", "[1.0,0.50]"], ["[0.5,0.50]", "[1,1.0]", "[0,-0.0]"]),
        ("strings and numbers", ['["1",1]', '["a",1,"b",2]'], ['["1",1,"1"]', '["a",1,1.0]', '[1,"a","\\u0061"]']),
        ("all scalars", ['[null,true,"null",0,false]'], ["[null,null]", "[true,1,true]", '["","\\u0061","a"]']),
        (
            "colours",
            ['["red","#000000","#00000a"]', '["\\u0023ffffff","#000000"]'],
            [
                '["red","red"]',
                '["#000000","#000000"]',
                '["\\u0023ffffff","#ffffff"]',
                '["#0000ff","\\u00230000f\\u0066"]',
            ],
        ),
        ("colours and numbers", ['[3,"red",null,2]'], ["[3,3]", "[null,null]", "[4]"]),
        ("factors", ['["1x","1.0x","10x"]'], ['["1x","2x","1x"]']),
        ("three digits", ['["000","001"]'], ['["000","000"]']),
        ("listed or any", ['["a","b","c"]'], ['["a","a"]', '["c","c"]']),
        ("fifty numbers", ['[0,"x",0.25,null,49]'], ["[49,49]", "[0.25,0.25]", "[50]"]),
    ],
)
def test_what_comes_twice(kind: str, good: list[str], bad: list[str]) -> None:
    check(unique(KINDS[kind]), good, bad)


def test_all_values_of_a_finite_pool_and_no_more() -> None:
    texts = [f'"{a}{b}{c}"' for a in "01" for b in "01" for c in "01"]
    for least, most in ((8, 9), (0, 8)):
        grammar = compiled(unique(KINDS["three digits"], minItems=least, maxItems=most))
        whole = "[" + ",".join(texts)
        matcher = grammar.matcher()
        assert matcher.accept_bytes(whole.encode())
        assert not matcher.fork().accept_bytes(b",")
        assert matcher.accept_bytes(b"]")
    with pytest.raises(GrammarError, match="fewer values than minItems") as error:
        compiled(unique(KINDS["three digits"], minItems=9))
    assert error.value.keyword == "uniqueItems"
    with pytest.raises(GrammarError, match="fewer values than minItems"):
        compiled(unique(KINDS["sixty integers"], minItems=61))
    # What would leave only used-up values is not begun.
    matcher = compiled(unique(KINDS["colours"])).matcher()
    pairs = [f'"#00000{i:x}"' for i in range(16)]
    assert matcher.accept_bytes(("[" + ",".join(pairs) + ',"#0000').encode())
    assert not matcher.fork().accept_bytes(b"0")
    assert matcher.accept_bytes(b'10"')
    matcher = compiled(unique(KINDS["integers"])).matcher()
    assert matcher.accept_bytes(b"[0,")
    assert not matcher.fork().accept_bytes(b"0")
    assert matcher.fork().accept_bytes(b"-")


@pytest.mark.parametrize("kind", ["sixty integers", "colours", "three digits", "fifty numbers", "multiples", "numbers"])
def test_the_shortest_end_has_what_is_missing(kind: str) -> None:
    grammar = compiled(unique(KINDS[kind], minItems=5))
    for start in ("", "[", "[ ", "[1", '["', "[0,", "[0.5,", '["#0', '["red",', '["000", "001"', '["00', "[-1", "[1,5"):
        matcher = grammar.matcher()
        if not matcher.accept_bytes(start.encode()):
            continue
        text = start + matcher.shortest_end().decode()
        assert takes(grammar, text), text
        assert len(json.loads(text, parse_float=Decimal)) == 5


def merged_vocabulary() -> Vocabulary:
    """Bytes, and tokens that begin and end anywhere in a list of numbers and strings."""
    pieces = '1,~,1~1,1,~0,~00~10~.0~.5~1.0,~,"~"1"~","~"#0~#00"~0",~",1~],~ ,~1]~0]~"]~[1,1~["~#","#",~0","0",~","","~x","x"]~red","~\\u00~e0~x",'.split(
        "~"
    )
    tokens = [bytes([b]) for b in range(256)] + [p.encode() for p in pieces] + [b""]
    return Vocabulary(tokens, special={"<end>": len(tokens) - 1}, end=["<end>"])


MERGED = merged_vocabulary()
ENGINE = Engine(MERGED, EngineOptions(threads=1))


def allowed(mask: Any) -> list[int]:
    bits = np.unpackbits(mask[0].view(np.uint8), bitorder="little")[: MERGED.size]
    return [int(i) for i in np.flatnonzero(bits)]


def walk(grammar: Grammar, rng: random.Random, most: int) -> bytes:
    """Tokens that the masks allow, checked against a walk of the parser, then the shortest end."""
    matcher, mask, walked = grammar.matcher(), allocate_mask(1, MERGED.size), allocate_mask(1, MERGED.size)
    out = b""
    for _ in range(rng.randint(0, most)):
        matcher.fill_mask(mask)
        matcher.fill_by_walk(walked)
        tokens = allowed(mask)
        assert tokens == allowed(walked), out
        assert tokens, out  # no dead end
        likely = [t for t in tokens if MERGED.token_bytes(t) and MERGED.token_bytes(t) in b'0 1 5 . , " # r x,']
        token = rng.choice(likely if likely and rng.random() < 0.8 else tokens)
        assert matcher.accept(token)
        if token == MERGED.size - 1:
            return out
        out += MERGED.token_bytes(token)
    return out + matcher.shortest_end()


@given(st.sampled_from(sorted(KINDS)), st.integers(0, 4), st.integers(0, 2**32))
@settings(max_examples=max(40, settings().max_examples))
def test_documents_that_masks_lead_to(kind: str, least: int, seed: int) -> None:
    schema = unique(KINDS[kind], minItems=least)
    document = walk(ENGINE.compile(JsonSchema(schema)), random.Random(seed), 60)
    value = json.loads(document, parse_float=Decimal)
    jsonschema.Draft202012Validator(json.loads(json.dumps(schema), parse_float=Decimal)).validate(value)


ITEMS = st.one_of(
    st.sampled_from(
        [
            0,
            1,
            2,
            10,
            -1,
            0.5,
            1.5,
            0.25,
            "0",
            "1",
            "a",
            "red",
            "#00",
            "#ff",
            "1x",
            "000",
            "111",
            "x",
            None,
            True,
            False,
        ]
    ),
    st.integers(-5, 70),
    st.integers(-4, 4).map(lambda n: n / 2),
)


@given(st.sampled_from(sorted(KINDS)), st.lists(ITEMS, max_size=5), st.integers(0, 3))
@settings(max_examples=max(60, settings().max_examples))
def test_verdicts_are_jsonschemas(kind: str, value: list[Any], least: int) -> None:
    schema = unique(KINDS[kind], minItems=least)
    if "integer" in json.dumps(schema):  # 1.0 is not written for an integer
        value = [int(v) if isinstance(v, float) and v.is_integer() else v for v in value]
    if kind == "fifty numbers":  # written as they are listed
        value = [int(v) if isinstance(v, float) and v.is_integer() else v for v in value]
    document = json.dumps(value)
    exact = json.loads(document, parse_float=Decimal)
    judge = jsonschema.Draft202012Validator(json.loads(json.dumps(schema), parse_float=Decimal))
    assert takes(compiled(schema), document) == judge.is_valid(exact), document


def test_strings_of_the_greatest_length_come_once() -> None:
    grammar = compiled(unique(KINDS["short strings"], minItems=2))
    assert [row.why for row in grammar.report.narrowed] == [
        "after a string of the greatest length come shorter ones only"
    ]
    long = ["x" * 16, "é" * 14 + "x", "y" * 14]
    assert takes(grammar, json.dumps(long))
    assert takes(grammar, json.dumps(long[1:], ensure_ascii=False))
    assert not takes(grammar, json.dumps(["x" * 17, "a"]))
    assert not takes(grammar, json.dumps(["x" * 16, "x" * 16]))
    matcher = grammar.matcher()
    assert matcher.accept_bytes(json.dumps(long)[:-1].encode())
    assert matcher.fork().accept_bytes(b', "' + b"z" * 13 + b'"')
    assert not matcher.fork().accept_bytes(b', "' + b"z" * 14)  # three lengths are used up, and none is taken twice


def test_what_cannot_be_told_apart_is_refused() -> None:
    for items in (
        {"type": "string", "maxLength": 4},  # of three characters, all that may follow could be taken
        {"type": "string", "minLength": 40, "maxLength": 40},
        {"type": "string", "pattern": "^[a-zA-Z0-9]{1,39}$"},
        {"anyOf": [{"enum": ["a"]}, {"type": "string", "pattern": "^b.*$"}]},
    ):
        with pytest.raises(GrammarError, match="could run out"):
            compiled(unique(items))
    with pytest.raises(GrammarError, match="minItems is too large"):
        compiled(unique({"type": "number"}, minItems=1001))
