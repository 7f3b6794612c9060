"""What tests of JSON Schema share: one byte-level engine, and whether a text is a whole document of a schema."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest

from agentgram.engine import Engine, EngineOptions, Grammar, JsonSchema, Vocabulary


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
