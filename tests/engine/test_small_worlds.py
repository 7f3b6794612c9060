"""A small world in full: every value up to size 4, every schema of up to three keywords, against jsonschema.

The short form takes all schemas of one and two keywords and some of three, with the values up to size 3; with
HYPOTHESIS_PROFILE=long it is all of them with all values (a quarter of an hour).
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import random
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from agentgram.engine import Grammar
from agentgram.errors import GrammarError
from tests.engine.schemas import compiled, takes

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
SIZE = 4 if LONG else 3
SCALARS: list[Any] = [None, False, 0, 1, "a", "ab"]
NAMES = "ab"
INTEGER: dict[str, Any] = {"type": "integer"}

KEYWORDS: list[tuple[str, Any]] = [
    ("type", "object"), ("type", "array"), ("type", "string"), ("type", "integer"), ("type", ["null", "boolean"]),
    ("enum", [1, "a", [0]]), ("enum", [{"a": 1}, None]), ("const", {"a": 0}), ("const", False), ("const", [1, [0]]),
    ("minimum", 1), ("maximum", 0), ("exclusiveMinimum", 0), ("exclusiveMaximum", 1), ("multipleOf", 2),
    ("minLength", 2), ("maxLength", 1), ("pattern", "^a$"), ("pattern", "b"),
    ("minItems", 1), ("minItems", 2), ("maxItems", 1), ("items", INTEGER), ("items", False),
    ("prefixItems", [{"const": 1}]), ("prefixItems", [{}, {"type": "string"}]), ("contains", {"const": 1}),
    ("contains", {"type": "string"}), ("minContains", 2), ("minContains", 0), ("maxContains", 1), ("uniqueItems", True),
    ("unevaluatedItems", False), ("properties", {"a": INTEGER}), ("properties", {"a": False, "b": {}}),
    ("required", ["a"]), ("required", ["b"]), ("additionalProperties", False), ("additionalProperties", {"const": "a"}),
    ("patternProperties", {"^a": INTEGER}), ("propertyNames", {"const": "a"}), ("minProperties", 1),
    ("minProperties", 2), ("maxProperties", 1), ("dependentRequired", {"a": ["b"]}),
    ("dependentSchemas", {"a": {"maxProperties": 1}}), ("unevaluatedProperties", False),
    ("allOf", [{"minimum": 1}, {"properties": {"b": {"const": 1}}}]),
    ("anyOf", [{"required": ["a"]}, {"minItems": 2}, {"type": "string"}]),
    ("oneOf", [{"type": "integer"}, {"minimum": 1}, {"properties": {"a": {"const": 1}}}]),
    ("not", {"required": ["b"]}), ("not", {"enum": [1, "a"]}), ("not", {"type": "array"}), ("if", {"type": "object"}),
    ("if", {"required": ["a"]}), ("then", {"required": ["b"]}), ("else", {"maxItems": 1}), ("$ref", "#/$defs/tree"),
]  # fmt: skip
DEFINITIONS = {"tree": {"type": ["null", "object", "string"], "properties": {"a": {"$ref": "#/$defs/tree"}}}}

# Keywords that look at each other. All other keywords of a schema hold each on their own, so that jsonschema has to
# judge a value once for each of them, not once for each schema.
GROUPS = [
    {"properties", "patternProperties", "additionalProperties"},
    {"items", "prefixItems"},
    {"contains", "minContains", "maxContains"},
    {"if", "then", "else"},
]


def values(size: int) -> Iterator[Any]:
    """Every value of just this size: a scalar has 1, a container 1 and what is in it."""
    if size == 1:
        yield from [*SCALARS, [], {}]
        return
    for sizes in splits(size - 1):
        for items in itertools.product(*(list(values(s)) for s in sizes)):
            yield list(items)
            if len(items) <= len(NAMES):
                for names in itertools.permutations(NAMES, len(items)):
                    yield dict(zip(names, items, strict=True))


def splits(total: int) -> Iterator[tuple[int, ...]]:
    """The ways to write a sum, in every order."""
    if total == 0:
        yield ()
    for first in range(1, total + 1):
        for rest in splits(total - first):
            yield (first, *rest)


@functools.cache
def world(size: int) -> tuple[list[Any], list[str]]:
    everything = [value for s in range(1, size + 1) for value in values(s)]
    return everything, [json.dumps(value) for value in everything]


@functools.cache
def judged(text: str, size: int) -> int:
    """A bit for each value of the world: whether jsonschema finds it valid."""
    judge = jsonschema.Draft202012Validator(json.loads(text))
    return sum(1 << i for i, value in enumerate(world(size)[0]) if judge.is_valid(value))


def expected(schema: dict[str, Any], size: int) -> int:
    if any(word.startswith("unevaluated") for word in schema):
        parts = [set(schema)]
    else:
        parts = [group & set(schema) for group in GROUPS]
        parts += [{word} for word in schema if not any(word in group for group in GROUPS)]
    out = (1 << len(world(size)[0])) - 1
    for part in parts:
        if part:
            alone = {word: value for word, value in schema.items() if word in part}
            out &= judged(json.dumps({**alone, "$defs": DEFINITIONS}, sort_keys=True), size)
    return out


def attempt(schema: dict[str, Any]) -> tuple[Grammar, None] | tuple[None, GrammarError]:
    try:
        return compiled(schema, property_order="any"), None
    except GrammarError as error:
        return None, error


def check_all(schemas: Iterator[dict[str, Any]], size: int) -> None:
    """Each schema takes what is valid and nothing else, or is refused by name, which few are."""
    texts = world(size)[1]
    tried = refused = 0
    for schema in schemas:
        tried += 1
        valid = expected(schema, size)
        grammar, error = attempt({**schema, "$defs": DEFINITIONS})
        if error is not None:
            empty = "nothing satisfies" in str(error)
            assert not (valid if empty else error.hint == ""), (schema, str(error))
            refused += not empty
            continue
        assert grammar is not None
        different = [text for i, text in enumerate(texts) if takes(grammar, text) != bool(valid >> i & 1)]
        assert different == [], json.dumps(schema)
    assert tried > 0
    assert refused <= tried * 0.05


def schemas_of(count: int) -> Iterator[dict[str, Any]]:
    for picked in itertools.combinations(KEYWORDS, count):
        if len({word for word, _ in picked}) == count:
            yield dict(picked)


def test_one_keyword() -> None:
    check_all(schemas_of(1), SIZE)


def test_two_keywords() -> None:
    check_all(schemas_of(2), SIZE)


def test_three_keywords() -> None:
    some = list(schemas_of(3))
    check_all(iter(some if LONG else random.Random(11).sample(some, 300)), SIZE)


OLD_KEYWORDS: list[tuple[str, Any]] = [
    ("dependencies", {"a": ["b"]}), ("dependencies", {"a": {"maxProperties": 1}}), ("items", [INTEGER]),
    ("items", [{"const": 1}, {"type": "string"}]), ("additionalItems", False), ("additionalItems", INTEGER),
]  # fmt: skip
DRAFT_4_BOUNDS: list[tuple[str, Any]] = [("exclusiveMinimum", True), ("exclusiveMaximum", True)]


@pytest.mark.parametrize(
    "judge",
    [
        jsonschema.Draft4Validator,
        jsonschema.Draft6Validator,
        jsonschema.Draft7Validator,
        jsonschema.Draft201909Validator,
    ],
    ids=lambda judge: judge.META_SCHEMA["$schema"].rpartition("/schema")[0].rpartition("/")[2],
)
def test_two_keywords_of_earlier_drafts(judge: Any) -> None:
    """A draft's own meaning of each keyword; what it does not know does nothing there."""
    uri = judge.META_SCHEMA["$schema"]
    everything, texts = world(2)
    never: dict[str, Any] = {"not": {}}  # draft 4 has no boolean schemas, and jsonschema stumbles over items: false
    words = [("items", never) if word == ("items", False) else word for word in [*KEYWORDS, *OLD_KEYWORDS]]
    words = [("properties", {"a": never}) if value == {"a": False, "b": {}} else (word, value) for word, value in words]
    if judge is jsonschema.Draft4Validator:
        words = [(word, value) for word, value in words if not word.startswith("exclusive")] + DRAFT_4_BOUNDS
    if judge is jsonschema.Draft201909Validator:
        # The engine keeps dependencies; jsonschema's unevaluatedItems and -Properties of this draft miss neighbours.
        words = [pair for pair in words if pair[0] != "dependencies" and not pair[0].startswith("unevaluated")]
    pairs = list(itertools.combinations(words, 2))
    for picked in pairs if LONG else random.Random(5).sample(pairs, 400):
        schema = {"$schema": uri, "$defs": DEFINITIONS, **dict(picked)}
        if len(schema) < 4:
            continue
        grammar, error = attempt(schema)
        valid = [judge(schema).is_valid(value) for value in everything]
        if error is not None:
            assert not any(valid) if "nothing satisfies" in str(error) else error.hint, (schema, str(error))
            continue
        assert grammar is not None
        assert [takes(grammar, text) for text in texts] == valid, json.dumps(schema)
