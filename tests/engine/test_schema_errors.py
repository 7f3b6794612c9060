"""What is refused, where it says so, and what is loosened on request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentgram.errors import GrammarError
from tests.engine.schemas import compiled, takes


def refusal(schema: Any, **options: Any) -> GrammarError:
    with pytest.raises(GrammarError) as caught:
        compiled(schema, **options)
    return caught.value


@pytest.mark.parametrize(
    ("schema", "pointer", "keyword"),
    [
        ({"type": "strng"}, "/type", "type"),
        ({"type": 5}, "/type", "type"),
        ({"properties": {"a": 1}}, "/properties/a", ""),
        ({"properties": []}, "/properties", "properties"),
        ({"required": True}, "/required", "required"),
        ({"required": [1]}, "/required", "required"),
        ({"items": [{}, {"enum": 3}]}, "/items/1/enum", "enum"),
        ({"minLength": -1}, "/minLength", "minLength"),
        ({"maxItems": 1.5}, "/maxItems", "maxItems"),
        ({"minimum": "0"}, "/minimum", "minimum"),
        ({"multipleOf": 0}, "/multipleOf", "multipleOf"),
        ({"allOf": []}, "/allOf", "allOf"),
        ({"$ref": 1}, "/$ref", "$ref"),
        ({"properties": {"x/y": {"$ref": "#/$defs/none"}}}, "/properties/x~1y/$ref", "$ref"),
        ({"$ref": "https://elsewhere.example/s.json"}, "/$ref", "$ref"),
        ({"$ref": "/$defs/a", "$defs": {"a": {}}}, "/$ref", "$ref"),
        ({"$ref": "#nowhere"}, "/$ref", "$ref"),
        ({"items": {"pattern": "(a"}}, "/items/pattern", "pattern"),
        ({"items": {"pattern": "a(?=b)b"}}, "/items/pattern", "pattern"),
        ({"patternProperties": {"[": {}}}, "/patternProperties/[", "pattern"),
        ({"uniqueItems": True, "items": {"type": "array"}}, "/uniqueItems", "uniqueItems"),
        (
            {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
            "/$defs/b/$ref",
            "$ref",
        ),
    ],
    ids=json.dumps,
)
def test_mistakes_are_named_with_their_place(schema: Any, pointer: str, keyword: str) -> None:
    error = refusal(schema)
    assert error.pointer == pointer
    assert error.keyword == keyword
    assert str(error)


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        (False, ""),
        ({"not": {}}, "/not"),
        ({"type": "integer", "minimum": 5, "maximum": 3}, "/minimum"),
        ({"type": "integer", "minimum": 5, "exclusiveMaximum": 5}, "/minimum"),
        ({"type": "string", "minLength": 3, "maxLength": 2}, "/minLength"),
        ({"type": "array", "minItems": 3, "maxItems": 2}, "/minItems"),
        (
            {"type": "object", "properties": {"a": {}}, "additionalProperties": False, "minProperties": 2},
            "/minProperties",
        ),
        ({"type": "object", "properties": {"a": False}, "required": ["a"]}, "/required"),
        ({"allOf": [{"type": "string"}, {"type": "null"}]}, ""),
        ({"enum": []}, "/enum"),
        ({"type": "integer", "enum": ["a"]}, ""),
        ({"oneOf": [{"type": "null"}, {"type": "null"}]}, "/oneOf"),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, ""),
        ({"type": "object", "properties": {"a": {"type": "null", "const": 1}}, "required": ["a"]}, "/properties/a"),
        ({"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True, "minItems": 3}, "/uniqueItems"),
        ({"type": "string", "pattern": "^a{4}$", "maxLength": 3}, ""),
    ],
    ids=json.dumps,
)
def test_what_nothing_satisfies_is_refused(schema: Any, pointer: str) -> None:
    error = refusal(schema)
    assert "nothing satisfies this schema" in str(error)
    assert error.pointer == pointer


def test_an_unsatisfiable_option_is_only_left_out() -> None:
    grammar = compiled(
        {"type": "object", "properties": {"a": {"type": "integer", "minimum": 2, "maximum": 1}, "b": {}}}
    )
    assert takes(grammar, '{"b":1}')
    assert not takes(grammar, '{"a":1}')
    assert takes(compiled({"anyOf": [{"type": "null"}, {"type": "string", "minLength": 2, "maxLength": 1}]}), "null")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "1:1"),
        ("{", "1:2"),
        ('{"a":1,"a":2}', "1:14"),
        ('{"type":\n"string",}', "2:10"),
        ("[1] 2", "1:5"),
        ('{"a": NaN}', "1:7"),
        ('{"a": 01}', "1:9"),
        ('{"a": "\x01"}', "1:8"),
        ('{"a": "\\x"}', "1:9"),
        ("[" * 20_000, "1:10002"),
    ],
)
def test_text_that_is_no_json(text: str, place: str) -> None:
    error = refusal(text)
    assert "not JSON" in str(error)
    assert error.pointer == place


def test_half_a_surrogate_pair_only_matters_in_values() -> None:
    assert takes(compiled('{"description": "\\ud800", "type": "null"}'), "null")
    assert refusal('{"enum": ["a", "\\ud800"]}').keyword == "enum"


def test_deep_schemas_neither_overflow_nor_hang() -> None:
    deep = '{"allOf":[' * 4000 + "{}" + "]}" * 4000
    assert "levels deep" in str(refusal(deep))
    wide = {
        "allOf": [{"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"], "minProperties": i}]} for i in range(40)]
    }
    assert "more than" in str(refusal(wide | {"type": "object"}))


def test_report_of_what_is_enforced_and_ignored() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "maxlength": 3, "format": "colour", "title": "A"},
            "b/c": {"minimum": 1},
        },
        "requird": ["a"],
        "x-note": 1,
    }
    report = compiled(schema).report
    enforced = {(row.pointer, row.keyword) for row in report.enforced}
    assert enforced == {
        ("/type", "type"),
        ("/properties", "properties"),
        ("/properties/a/type", "type"),
        ("/properties/b~1c/minimum", "minimum"),
    }
    warnings = {row.pointer: row.why for row in report.warnings}
    assert "maxLength" in warnings["/properties/a/maxlength"]
    assert "required" in warnings["/requird"]
    assert "colour" in warnings["/properties/a/format"]
    assert "/x-note" not in warnings


def test_loose_schemas_say_what_is_not_enforced() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": {"type": "array"}, "uniqueItems": True},
            "b": {"type": "string", "pattern": "x(?=y)", "maxLength": 3},
        },
        "additionalProperties": False,
    }
    grammar = compiled(schema, unsupported="relax")
    assert {row.pointer for row in grammar.report.relaxed} == {"/properties/a/uniqueItems", "/properties/b/pattern"}
    assert not {row.pointer for row in grammar.report.enforced} & {"/properties/a/uniqueItems", "/properties/b/pattern"}
    assert takes(grammar, '{"a":[[],[]],"b":"zzz"}')
    assert not takes(grammar, '{"b":"zzzz"}')
    assert not takes(grammar, '{"a":[1]}')
