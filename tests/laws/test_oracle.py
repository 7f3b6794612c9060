"""The naive recogniser against what is simpler still: ``json``, ``jsonschema`` and string search."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from agentgram.engine.spec import Dispatch, JsonSchema, Lit, Regex, Rep, Tag, Text
from tests.laws.walking import an_end, walks

jsonschema = pytest.importorskip("jsonschema")

SCHEMAS: list[Any] = [
    {"type": "object", "properties": {"a": {"type": "integer", "minimum": -3, "maximum": 12}}, "required": ["a"]},
    {
        "type": "object",
        "properties": {"a": {"type": "string", "maxLength": 3}, "b": {"type": ["boolean", "null"]}},
        "additionalProperties": False,
    },
    {"type": "object", "properties": {"a": {"enum": ["x", "xy", 1, None]}}, "required": ["z", "a"]},
    {"type": "array", "items": {"type": "integer", "exclusiveMinimum": 0}, "minItems": 1, "maxItems": 3},
    {"type": "array", "prefixItems": [{"const": "p"}, {"type": "number"}], "items": False},
    {"anyOf": [{"type": "string", "pattern": "^[a-c]{2}\\d*$"}, {"type": "null"}, {"type": "boolean"}]},
    {"$ref": "#/$defs/t", "$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}, "maxItems": 2}}},
    True,
]
KEYS = st.sampled_from(["a", "b", "z", "é", "xyz"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-20, 20)
    | st.text('abcp1é"\\', max_size=4)
    | st.sampled_from(["x", "xy", "p", 2.5]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


def in_order(value: Any, schema: Any) -> Any:
    """The value with its declared keys in declared order, then required ones, then the rest."""
    if isinstance(value, dict) and isinstance(schema, dict):
        first = [*schema.get("properties", {}), *schema.get("required", [])]
        keys = [k for k in dict.fromkeys([*first, *value]) if k in value]
        return {k: value[k] for k in keys}
    return value


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
@given(value=VALUES, ascii_only=st.booleans())
def test_a_document_is_complete_exactly_if_it_satisfies_the_schema(schema: Any, value: Any, ascii_only: bool) -> None:
    text = json.dumps(in_order(value, schema), ensure_ascii=ascii_only)
    end = oracle.build(JsonSchema(schema, whitespace="canonical")).feed_bytes(text.encode())
    assert end.complete == jsonschema.Draft202012Validator(schema).is_valid(value), text


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
@given(data=st.data())
def test_what_is_alive_can_be_completed_and_then_satisfies_the_schema(schema: Any, data: st.DataObject) -> None:
    """Walks at random, then searches for an end from there; what stands then has to be valid."""
    start = oracle.build(JsonSchema(schema, whitespace="compact"))
    text = data.draw(walks(start, 12))
    text += an_end(start.feed_bytes(text))
    assert start.feed_bytes(text).complete
    value = json.loads(text)
    assert jsonschema.Draft202012Validator(schema).is_valid(value), text


@given(st.text("ab<>t/", max_size=12))
def test_text_is_what_holds_no_excluded_string(text: str) -> None:
    state = oracle.build(Text(["<t>", "ab"])).feed_bytes(text.encode())
    assert state.alive == state.complete == ("<t>" not in text and "ab" not in text)


@given(st.binary(max_size=5))
def test_text_is_utf8(data: bytes) -> None:
    try:
        data.decode()
        valid = True
    except UnicodeDecodeError:
        valid = False
    assert oracle.build(Text()).feed_bytes(data).complete == valid


@given(st.lists(st.sampled_from(["x", "<", "<t>", "a</t>", "b</t>", "</t>", "a"]), max_size=7).map("".join), st.data())
def test_a_dispatch_is_text_and_whole_tags(text: str, data: st.DataObject) -> None:
    least, most = data.draw(st.sampled_from([(0, None), (1, None), (0, 1), (1, 2)]))
    spec = Dispatch([Tag("<t>a", Lit(""), "</t>"), Tag("<t>b", Lit(""), "</t>")], ["<t>"], at_least=least, at_most=most)
    rest, tags = text, 0
    while "<t>" in rest:
        tail = rest.split("<t>", 1)[1]
        end = next((e for e in ("a</t>", "b</t>") if tail.startswith(e)), None)
        if end is None:
            break
        rest, tags = tail[len(end) :], tags + 1
    expected = "<t>" not in rest and least <= tags <= (most if most is not None else tags)
    assert oracle.build(spec).feed_bytes(text.encode()).complete == expected


@given(st.text("abc-1", max_size=6))
def test_patterns_are_those_of_re(text: str) -> None:
    import re

    pattern = "(a|bc)*-?[^1b]{1,2}"
    assert oracle.build(Regex(pattern)).feed_bytes(text.encode()).complete == bool(re.fullmatch(pattern, text))


@given(st.integers(0, 6), st.integers(0, 3), st.integers(0, 3))
def test_repetitions_count(n: int, low: int, more: int) -> None:
    spec = Rep(Lit("a"), low, low + more, Lit(","))
    assert oracle.build(spec).feed_bytes(",".join("a" * n).encode()).complete == (low <= n <= low + more)


def test_tokens_are_found_along_the_trie() -> None:
    tokens = [b"", b"a", b"ab", b"b", b"ab"]
    root = oracle.trie(tokens)
    assert oracle.allowed(oracle.build(Lit("ab")), root) == {1, 2, 4}
    assert oracle.allowed(oracle.build(Lit("ab")).feed(97), root) == {3}


def test_what_it_does_not_know_it_refuses() -> None:
    with pytest.raises(oracle.Unknown, match="uniqueItems"):
        oracle.build(JsonSchema({"type": "array", "uniqueItems": True}))
