"""Random mixes of real schemas, and random documents that the masks lead to: every finished one satisfies the mix."""

from __future__ import annotations

import functools
import gzip
import json
import random
import re
from collections.abc import Iterator
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgram.errors import GrammarError
from tests.engine.schemas import compiled, for_jsonschema, walk

DATA = Path(__file__).parents[3] / "shared" / "data" / "maskbench-dev.jsonl.gz"
MOST = 3_000  # characters of one sub-schema
MIXES = ("allOf", "anyOf", "oneOf", "not", "if", "properties", "items", "merged")


def subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if "type" in schema or "enum" in schema or "properties" in schema:
            yield schema
        for value in schema.values():
            yield from subschemas(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from subschemas(value)


@functools.cache
def pool() -> list[dict[str, Any]]:
    """Sub-schemas of real schemas that stand on their own."""
    if not DATA.exists():
        pytest.skip(f"{DATA.name} is not there")
    out: list[dict[str, Any]] = []
    with gzip.open(DATA, "rt", encoding="utf-8") as file:
        lines = random.Random(3).sample(file.readlines(), 60)
    for line in lines:
        for schema in subschemas(json.loads(line)["schema"]):
            text = json.dumps(schema)
            if len(text) < MOST and '"$' not in text and known(schema):
                out.append(schema)
    return out


def known(schema: dict[str, Any]) -> bool:
    """Whether jsonschema reads it as a schema of 2020-12, and its patterns can be put into Python's words.

    Formats are left out: the engine asserts them, jsonschema does not, which shows under ``not`` and ``oneOf``.
    """
    try:
        jsonschema.Draft202012Validator.check_schema(for_jsonschema(schema))
    except (jsonschema.SchemaError, ValueError, re.error):
        return False
    text = json.dumps(schema)
    return not any(word in text for word in ('"id"', '"dependencies"', '"format"', '"content', ': true, "exclusive'))


def mix(rng: random.Random) -> dict[str, Any]:
    a, b, c = (rng.choice(pool()) for _ in range(3))
    match rng.choice(MIXES):
        case "not":
            return {**a, "not": b}
        case "if":
            return {"if": a, "then": b, "else": c}
        case "properties":
            return {"properties": {"x": a, "y": {"allOf": [b, a]}}, "additionalProperties": c, "required": ["x"]}
        case "items":
            return {"type": "array", "prefixItems": [a], "items": b, "contains": c}
        case "merged":
            return {**a, **b}
        case word:
            return {word: [a, b, c][: rng.randint(2, 3)]}


@given(st.integers(0, 2**32))
@settings(max_examples=max(30, settings().max_examples))
def test_finished_documents_satisfy_the_mix(seed: int) -> None:
    rng = random.Random(seed)
    schema = mix(rng)
    text = json.dumps(schema)
    try:
        grammar = compiled(text, property_order=rng.choice(["any", "declared"]))
    except GrammarError:
        return
    judge = jsonschema.Draft202012Validator(for_jsonschema(json.loads(text, parse_float=Decimal)))
    with localcontext(prec=700):  # multipleOf of the greatest numbers
        for _ in range(3):
            document = walk(grammar, rng, 120)
            errors = [error.message for error in judge.iter_errors(json.loads(document, parse_float=Decimal))]
            assert errors == [], (text, document)
