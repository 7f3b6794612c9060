"""Schemas made of schemas: allOf to not, references, and what holds for documents as a whole."""

from __future__ import annotations

import json
import sys
from typing import Any

from tests.engine.schemas import cases, check, closed


@cases(
    ("allOf", {"allOf": [{"type": "integer"}, {"minimum": 3}, {"maximum": 4}]}, ["3", "4"], ["2", "5", '"3"']),
    (
        "allOf joins properties",
        {
            "allOf": [
                closed(a={}) | {"additionalProperties": True},
                {"properties": {"b": {"type": "null"}}, "required": ["b"]},
            ]
        },
        ['{"a":1,"b":null}'],
        ['{"a":1}', '{"a":1,"b":2}'],
    ),
    (
        "a closed branch closes",
        {
            "allOf": [
                {"properties": {"a": {}}, "additionalProperties": False, "type": "object"},
                {"properties": {"b": {}}},
            ]
        },
        ["{}", '{"a":1}'],
        ['{"b":1}'],
    ),
    ("anyOf", {"anyOf": [{"type": "string", "maxLength": 1}, {"type": "null"}]}, ['"a"', "null"], ['"ab"', "1"]),
    (
        "anyOf may overlap",
        {"anyOf": [{"type": "integer", "minimum": 5}, {"type": "integer", "maximum": 7}]},
        ["4", "6", "8"],
        ["1.5"],
    ),
    (
        "anyOf beside properties",
        {
            "type": "object",
            "properties": {"k": {"type": "null"}},
            "required": ["k"],
            "anyOf": [{"required": ["m"]}, {"required": ["n"]}],
        },
        ['{"k":null,"m":1}', '{"k":null,"n":1,"m":1}'],
        ['{"k":null}', '{"m":1}'],
    ),
    (
        "products stay small",
        {
            "allOf": [
                {
                    "anyOf": [
                        {"type": "object", "properties": {f"k{i}": {"const": j}}, "required": [f"k{i}"]}
                        for j in range(5)
                    ]
                }
                for i in range(9)
            ]
        },
        ["{" + ",".join(f'"k{i}":{i % 5}' for i in range(9)) + "}"],
        ["{" + ",".join(f'"k{i}":5' for i in range(9)) + "}", "{}"],
    ),
    ("oneOf by type", {"oneOf": [{"type": "string"}, {"type": "null"}]}, ['""', "null"], ["0"]),
    (
        "oneOf by a constant",
        {"oneOf": [closed(t={"const": "x"}, v={"type": "integer"}), closed(t={"const": "y"}, v={"type": "string"})]},
        ['{"t":"x","v":1}', '{"t":"y","v":""}'],
        ['{"t":"x","v":""}', '{"t":"z","v":1}'],
    ),
    (
        "oneOf that overlaps",
        {"oneOf": [{"type": "integer", "minimum": 2}, {"type": "integer", "maximum": 4}]},
        ["1", "5"],
        ["2", "3", "4"],
    ),
    (
        "oneOf of patterns",
        {"type": "string", "oneOf": [{"pattern": "a"}, {"pattern": "b"}]},
        ['"a"', '"xb"'],
        ['"ab"', '"x"'],
    ),
    (
        "oneOf of keys",
        {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        ['{"a":1}', '{"b":1,"c":2}'],
        ["{}", '{"a":1,"b":1}'],
    ),
    ("number but not integer", {"oneOf": [{"type": "number"}, {"type": "integer"}]}, ["0.5", "-1.25"], ["1", "0"]),
    ("not a type", {"not": {"type": ["string", "object"]}}, ["1", "[]", "null"], ['""', "{}"]),
    ("not these values", {"type": "string", "not": {"enum": ["a", "b"]}}, ['"c"', '"ab"', '""'], ['"a"', '"\\u0062"']),
    ("not this number", {"type": "integer", "not": {"const": 13}}, ["1", "131", "3"], ["13"]),
    (
        "not a multiple",
        {"type": "number", "not": {"multipleOf": 3}},
        ["1", "4.5", "3.5", "1e-07", "10"],
        ["0", "-3", "3.0", "6"],
    ),
    (
        "not a decimal multiple",
        {"not": {"multipleOf": 0.25}, "type": "number", "minimum": 0, "maximum": 1},
        ["0.3", "0.251", "0.24"],
        ["0.25", "0.50", "1", "1.1"],
    ),
    (
        "not both multiples",
        {"type": "integer", "allOf": [{"not": {"multipleOf": 2}}, {"not": {"multipleOf": 5}}]},
        ["1", "-9", "21"],
        ["2", "15", "0"],
    ),
    (
        "not a format",
        {"type": "string", "not": {"format": "ipv4"}},
        ['"10.0.0"', '"x"', '"10.0.0.256"'],
        ['"10.0.0.1"'],
    ),
    ("not a pattern", {"type": "string", "not": {"pattern": "^_"}}, ['"a_"', '""'], ['"_a"', '"_"']),
    ("not with a key", {"type": "object", "not": {"required": ["a"]}}, ["{}", '{"b":1}'], ['{"a":1}', '{"b":1,"a":1}']),
    ("not a long array", {"type": "array", "not": {"minItems": 2}}, ["[]", "[1]"], ["[1,2]"]),
    ("not not", {"not": {"not": {"type": "integer"}}}, ["1"], ['"1"']),
    (
        "if, then, else",
        {
            "type": "object",
            "properties": {"t": {"enum": ["n", "s"]}, "v": {}},
            "required": ["t", "v"],
            "additionalProperties": False,
            "if": {"properties": {"t": {"const": "n"}}},
            "then": {"properties": {"v": {"type": "integer"}}},
            "else": {"properties": {"v": {"type": "string"}}},
        },
        ['{"t":"n","v":1}', '{"t":"s","v":"x"}'],
        ['{"t":"n","v":"x"}', '{"t":"s","v":1}'],
    ),
    ("then without if", {"then": False, "type": "null"}, ["null"], ["1"]),
)
def test_combinations(schema: Any, good: list[str], bad: list[str]) -> None:
    check(schema, good, bad)


DRAFT7 = "http://json-schema.org/draft-07/schema#"


@cases(
    (
        "with siblings",
        {"$ref": "#/$defs/p", "maximum": 9, "$defs": {"p": {"type": "integer", "minimum": 0}}},
        ["0", "9"],
        ["-1", "10"],
    ),
    (
        "alone up to draft 7",
        {
            "$schema": DRAFT7,
            "properties": {"a": {"$ref": "#/definitions/p", "maximum": 9}},
            "definitions": {"p": {"type": "integer"}},
        },
        ['{"a":10}'],
        ['{"a":""}'],
    ),
    ("chain", {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "null"}}}, ["null"], ["1"]),
    (
        "recursion",
        {
            "$ref": "#/$defs/n",
            "$defs": {
                "n": {
                    "type": "object",
                    "properties": {"c": {"type": "array", "items": {"$ref": "#/$defs/n"}}},
                    "additionalProperties": False,
                }
            },
        },
        ["{}", '{"c":[{},{"c":[]}]}'],
        ['{"c":{}}', '{"d":1}'],
    ),
    (
        "the root again",
        {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#"}}]},
        ["1", "[[1],[]]"],
        ['"x"', '[["x"]]'],
    ),
    ("escapes in pointers", {"$ref": "#/$defs/a~1b~0c%25", "$defs": {"a/b~c%": {"type": "null"}}}, ["null"], ["1"]),
    (
        "into a list",
        {
            "properties": {
                "x": {"$ref": "#/properties/y/anyOf/1"},
                "y": {"anyOf": [{"type": "null"}, {"type": "integer"}]},
            }
        },
        ['{"x":1}', '{"x":2,"y":null}'],
        ['{"x":null}'],
    ),
    ("anchor", {"$ref": "#here", "$defs": {"x": {"$anchor": "here", "type": "null"}}}, ["null"], ["1"]),
    (
        "by identifier",
        {
            "$id": "https://a.example/x/root.json",
            "$ref": "../y.json#/$defs/z",
            "$defs": {"o": {"$id": "https://a.example/y.json", "$defs": {"z": {"type": "null"}}}},
        },
        ["null"],
        ["1"],
    ),
    (
        "local to a resource",
        {
            "$id": "https://a.example/r",
            "properties": {"p": {"$ref": "s"}},
            "$defs": {
                "s": {"$id": "s", "$ref": "#/$defs/t", "$defs": {"t": {"type": "null"}}},
                "t": {"type": "integer"},
            },
        },
        ['{"p":null}'],
        ['{"p":1}'],
    ),
    (
        "draft 4 identifiers",
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "id": "http://a.example/",
            "properties": {"p": {"$ref": "#q"}},
            "definitions": {"q": {"id": "#q", "type": "null"}},
        },
        ['{"p":null}'],
        ['{"p":1}'],
    ),
    (
        "dynamic with one answer",
        {"$dynamicRef": "#d", "$defs": {"x": {"$dynamicAnchor": "d", "type": "null"}}},
        ["null"],
        ["1"],
    ),
)
def test_references(schema: Any, good: list[str], bad: list[str]) -> None:
    check(schema, good, bad)


def test_keys_come_in_the_order_of_the_keywords() -> None:
    schema = {
        "type": "object",
        "required": ["late", "b"],
        "allOf": [{"properties": {"x": {}}}],
        "properties": {"a": {}, "b": {}},
        "$ref": "#/$defs/more",
        "$defs": {"more": {"properties": {"y": {}}}},
    }
    good = ['{"x":1,"a":1,"b":1,"y":1,"late":1,"other":1}', '{"b":1,"late":1}']
    bad = ['{"a":1,"x":1,"b":1,"late":1}', '{"late":1,"b":1}', '{"other":1,"b":1,"late":1}']
    check(schema, good, bad)
    check(schema, good + bad, ['{"b":1}', '{"late":1,"b":1,"b":1}'], property_order="any")


def test_whitespace() -> None:
    schema = closed(a={"type": "array", "items": {"const": {"k": 1}}})
    compact, canonical, loose = (
        '{"a":[{"k":1},{"k":1}]}',
        '{"a": [{"k": 1}, {"k": 1}]}',
        '{ "a":\n[ {"k" :1} ,{"k":1}]}',
    )
    check(schema, [compact], [canonical, loose], whitespace="compact")
    check(schema, [canonical], [compact, loose], whitespace="canonical")
    check(schema, [compact, canonical, loose], [loose.replace("\n", "\f")], whitespace="flexible")


def test_deep_schemas_and_documents() -> None:
    schema: Any = {"type": "null"}
    for _ in range(3000):
        schema = {"type": "array", "items": schema, "minItems": 1, "maxItems": 1}
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        text = json.dumps(schema)
    finally:
        sys.setrecursionlimit(limit)
    check(
        text, ["[" * 3000 + "null" + "]" * 3000], ["[" * 2999 + "null" + "]" * 2999, "[" * 3001 + "null" + "]" * 3001]
    )
