"""The compiler against jsonschema: the same documents are valid, for random schemas over small worlds."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from agentgram.errors import GrammarError
from tests.engine.schema_worlds import NAMES, Schemas, values
from tests.engine.schemas import compiled, takes

VALUES = values()
TEXTS = [json.dumps(value) for value in VALUES]


def verdicts(schema: Any) -> list[bool]:
    judge = jsonschema.Draft202012Validator(schema)
    return [judge.is_valid(value) for value in VALUES]


def differences(schema: Any) -> list[str]:
    """Texts on which the two disagree. A schema that is refused by name disagrees on none."""
    expected = verdicts(schema)
    try:
        grammar = compiled(schema, property_order="any")
    except GrammarError as error:
        unsatisfiable = "nothing satisfies" in str(error)
        return [text for text, valid in zip(TEXTS, expected, strict=True) if valid and unsatisfiable]
    return [text for text, valid in zip(TEXTS, expected, strict=True) if takes(grammar, text) != valid]


@given(st.integers(0, 2**32))
def test_random_schemas(seed: int) -> None:
    schema = Schemas(random.Random(seed)).document()
    assert differences(schema) == [], json.dumps(schema)


@given(st.integers(0, 2**32))
def test_pairs_of_schemas(seed: int) -> None:
    """Laws that hold whatever the two schemas are."""
    make = Schemas(random.Random(seed), without=("$ref",))
    a, b = make.schema(2), make.schema(2)
    pairs = [
        ({"allOf": [a, b]}, {"allOf": [b, a]}),
        ({"anyOf": [a, b]}, {"anyOf": [b, a]}),
        ({"oneOf": [a, b]}, {"anyOf": [{"allOf": [a, {"not": b}]}, {"allOf": [b, {"not": a}]}]}),
        ({"if": a, "then": b}, {"anyOf": [{"allOf": [a, b]}, {"not": a}]}),
        ({"not": {"not": a}}, {"allOf": [a]}),
    ]
    for left, right in pairs:
        try:
            grammars = [compiled(schema, property_order="any") for schema in (left, right)]
        except GrammarError:
            continue
        assert [takes(grammars[0], t) for t in TEXTS] == [takes(grammars[1], t) for t in TEXTS], json.dumps(
            [left, right]
        )


@given(st.integers(0, 2**32))
def test_declared_order_narrows_to_the_sorted_documents(seed: int) -> None:
    """In declared order the documents are those of any order whose declared keys come first, in order."""
    rng = random.Random(seed)
    schema = Schemas(rng, without=("$ref", "allOf", "anyOf", "oneOf", "not", "if", "enum", "const")).schema(2)
    if not isinstance(schema, dict):
        return
    schema = {"properties": {name: {} for name in rng.sample(NAMES, 3)}, **schema}
    try:
        free, declared = compiled(schema, property_order="any"), compiled(schema)
    except GrammarError:
        return
    order = list(schema["properties"])
    for value, text in zip(VALUES, TEXTS, strict=True):
        if isinstance(value, dict):
            places = [order.index(k) for k in value if k in order]
            first = [k in order for k in value]
            if places != sorted(places) or first != sorted(first, reverse=True):
                assert takes(free, text) or not takes(declared, text)
                continue
        if not isinstance(value, dict) or set(value) <= set(order):
            assert takes(free, text) == takes(declared, text), (json.dumps(schema), text)
