"""What tests of JSON Schema share: one byte-level engine, and whether a text is a whole document of a schema."""

from __future__ import annotations

import functools
import json
import random
import re
from typing import Any

import pytest

from agentgram.engine import Engine, EngineOptions, Grammar, JsonSchema, Vocabulary, allocate_mask
from tests.engine.ecma import for_python


@functools.cache
def engine() -> Engine:
    return Engine(Vocabulary.byte_level(), EngineOptions(threads=1))


def compiled(schema: Any, **options: Any) -> Grammar:
    return engine().compile(JsonSchema(schema if isinstance(schema, str) else json.dumps(schema), **options))


def takes(grammar: Grammar, text: str | bytes) -> bool:
    """Whether the text is accepted to its end, and may end there."""
    matcher = grammar.matcher()
    return matcher.accept_bytes(text.encode() if isinstance(text, str) else text) and matcher.can_end


def takes_value(grammar: Grammar, value: Any) -> bool:
    return takes(grammar, json.dumps(value, ensure_ascii=False))


def check(schema: Any, good: list[str], bad: list[str], **options: Any) -> None:
    """Every text of ``good`` is a document of the schema, and none of ``bad``."""
    grammar = compiled(schema, **options)
    assert [text for text in good if not takes(grammar, text)] == []
    assert [text for text in bad if takes(grammar, text)] == []


def cases(*rows: tuple[str, Any, list[str], list[str]]) -> Any:
    """Parametrizes a test by (name, schema, good, bad)."""
    return pytest.mark.parametrize(("schema", "good", "bad"), [pytest.param(*row[1:], id=row[0]) for row in rows])


def closed(**properties: Any) -> dict[str, Any]:
    """An object of exactly these properties."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def for_jsonschema(schema: Any) -> Any:
    """The schema with Python's patterns."""
    if isinstance(schema, list):
        return [for_jsonschema(value) for value in schema]
    if not isinstance(schema, dict):
        return schema
    out = {word: for_jsonschema(value) for word, value in schema.items()}
    if isinstance(schema.get("pattern"), str):
        out["pattern"] = for_python(schema["pattern"])
        re.compile(out["pattern"])
    if isinstance(schema.get("patternProperties"), dict):
        out["patternProperties"] = {for_python(key): value for key, value in out["patternProperties"].items()}
        for key in out["patternProperties"]:
            re.compile(key)
    return out


def walk(grammar: Grammar, rng: random.Random, most: int) -> bytes:
    """A whole document: random bytes that the masks allow, then the shortest end."""
    matcher, mask = grammar.matcher(), allocate_mask(1, engine().vocab.size)
    out = bytearray()
    for _ in range(rng.randint(0, most)):
        matcher.fill_mask(mask)
        allowed = [i for i in range(256) if mask[0, i // 32] >> i % 32 & 1]
        if not allowed or (matcher.can_end and rng.random() < 0.3):
            break
        likely = [i for i in allowed if chr(i) in '",:[]{}']  # structure, rather than long strings and blanks
        byte = rng.choice(likely if likely and rng.random() < 0.4 else allowed)
        assert matcher.accept(byte)
        out.append(byte)
    return bytes(out) + matcher.shortest_end()
