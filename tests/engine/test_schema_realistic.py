"""Schemas as people and programs write them (unions, inheritance, conditions, closed objects): what masks lead to satisfies
the schema, and what is near to it is taken or refused as jsonschema does."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import jsonschema
import pytest

from tests.engine.schemas import compiled, for_jsonschema, takes, walk

SCHEMAS: dict[str, Any] = {
    "a discriminated union": {
        "oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}],
        "discriminator": {"propertyName": "kind"},
        "$defs": {
            "Cat": {
                "type": "object",
                "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer", "maximum": 9}},
                "required": ["kind"],
            },
            "Dog": {
                "type": "object",
                "properties": {"kind": {"enum": ["dog", "puppy"]}, "bark": {"type": "boolean"}},
                "required": ["kind", "bark"],
            },
        },
    },
    "unions in unions": {
        "type": "array",
        "maxItems": 3,
        "items": {
            "oneOf": [
                {
                    "type": "object",
                    "properties": {
                        "t": {"const": 1},
                        "v": {
                            "oneOf": [
                                {
                                    "type": "object",
                                    "properties": {"u": {"const": 1}, "w": {"type": "integer", "minimum": 1}},
                                    "required": ["u"],
                                    "additionalProperties": False,
                                },
                                {
                                    "type": "object",
                                    "properties": {"u": {"const": 2}, "w": {"type": "integer", "minimum": 2}},
                                    "required": ["u"],
                                    "additionalProperties": False,
                                },
                            ]
                        },
                    },
                    "required": ["t", "v"],
                    "additionalProperties": False,
                },
                {
                    "type": "object",
                    "properties": {
                        "t": {"const": 2},
                        "v": {
                            "oneOf": [
                                {
                                    "type": "object",
                                    "properties": {"u": {"const": 1}, "w": {"type": "integer", "minimum": 2}},
                                    "required": ["u"],
                                    "additionalProperties": False,
                                },
                                {
                                    "type": "object",
                                    "properties": {"u": {"const": 2}, "w": {"type": "integer", "minimum": 4}},
                                    "required": ["u"],
                                    "additionalProperties": False,
                                },
                            ]
                        },
                    },
                    "required": ["t", "v"],
                    "additionalProperties": False,
                },
            ]
        },
    },
    "a linked list": {
        "$ref": "#/$defs/Node",
        "$defs": {
            "Node": {
                "type": "object",
                "properties": {
                    "value": {"type": "integer"},
                    "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}], "default": None},
                },
                "required": ["value"],
            }
        },
    },
    "an expression tree": {
        "$defs": {
            "E": {
                "anyOf": [
                    {"type": "number"},
                    {
                        "type": "object",
                        "properties": {
                            "op": {"enum": ["+", "-"]},
                            "args": {"type": "array", "items": {"$ref": "#/$defs/E"}, "minItems": 1, "maxItems": 2},
                        },
                        "required": ["op", "args"],
                        "additionalProperties": False,
                    },
                ]
            }
        },
        "$ref": "#/$defs/E",
    },
    "a Decimal of Pydantic": {
        "type": "object",
        "properties": {
            "price": {
                "anyOf": [
                    {"type": "number", "exclusiveMinimum": 0},
                    {"type": "string", "pattern": "^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$"},
                ]
            }
        },
        "required": ["price"],
    },
    "annotated constraints": {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10, "multipleOf": 3},
            "b": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-c]*$"},
            "c": {
                "type": "array",
                "items": {"type": "integer", "minimum": 0},
                "minItems": 1,
                "maxItems": 3,
                "uniqueItems": True,
            },
        },
        "required": ["a", "b", "c"],
        "additionalProperties": False,
    },
    "nullable members": {
        "type": ["object", "null"],
        "properties": {"a": {"type": ["string", "null"], "maxLength": 3}, "b": {"enum": ["x", None, 1]}},
        "required": ["a"],
    },
    "escaped pointers": {
        "$ref": "#/$defs/a~1b~0c%25d",
        "$defs": {
            "a/b~c%d": {"type": "object", "properties": {"a/b": {"$ref": "#/$defs/x%20y"}}, "required": ["a/b"]},
            "x y": {"type": "integer", "minimum": 3},
        },
    },
    "a chain of allOf": {
        "allOf": [
            {
                "allOf": [
                    {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
                    {"properties": {"name": {"type": "string"}}},
                ]
            },
            {"properties": {"id": {"minimum": 5}, "extra": {"type": "boolean"}}, "required": ["extra"]},
        ]
    },
    "a closed base": {
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "additionalProperties": False},
            {"type": "object", "properties": {"b": {"type": "string"}, "c": {"type": "integer"}}, "required": ["b"]},
        ]
    },
    "two closed bases": {
        "allOf": [
            {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
                "additionalProperties": False,
            },
            {
                "type": "object",
                "properties": {"b": {"maxLength": 2}, "c": {"type": "integer"}},
                "additionalProperties": False,
            },
        ]
    },
    "unevaluated after allOf": {
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "integer"}}},
            {"properties": {"b": {"type": "string"}}},
        ],
        "unevaluatedProperties": False,
    },
    "unevaluated after if": {
        "type": "object",
        "properties": {"k": {"enum": ["x", "y"]}},
        "required": ["k"],
        "if": {"properties": {"k": {"const": "x"}}},
        "then": {"properties": {"px": {"type": "integer"}}, "required": ["px"]},
        "else": {"properties": {"py": {"type": "string"}}},
        "unevaluatedProperties": False,
    },
    "unevaluated after oneOf": {
        "type": "object",
        "oneOf": [
            {"properties": {"a": {"const": 1}}, "required": ["a"]},
            {"properties": {"b": {"const": 2}}, "required": ["b"]},
        ],
        "unevaluatedProperties": {"type": "boolean"},
    },
    "unevaluated after dependentSchemas": {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "dependentSchemas": {"a": {"properties": {"b": {"type": "string"}}, "required": ["b"]}},
        "unevaluatedProperties": False,
    },
    "unevaluated beside a reference": {
        "$ref": "#/$defs/B",
        "properties": {"x": {"type": "integer"}},
        "unevaluatedProperties": False,
        "$defs": {"B": {"type": "object", "properties": {"y": {"type": "string"}}, "patternProperties": {"^z": {}}}},
    },
    "unevaluated items": {
        "type": "array",
        "anyOf": [{"prefixItems": [{"const": 1}]}, {"prefixItems": [{"const": 2}, {"type": "string"}]}],
        "unevaluatedItems": {"type": "null"},
        "maxItems": 4,
    },
    "overlapping patterns of keys": {
        "type": "object",
        "patternProperties": {"^x-": {"type": "string"}, "_id$": {"type": "integer"}, "^x-.*_id$": {}},
        "properties": {"name": {"type": "string"}},
        "additionalProperties": False,
    },
    "patterns and names of keys": {
        "type": "object",
        "propertyNames": {"pattern": "^[a-z]{1,3}$", "not": {"enum": ["abc"]}},
        "patternProperties": {"^a": {"type": "integer"}},
        "additionalProperties": {"type": "string"},
        "minProperties": 2,
    },
    "conditions by country": {
        "type": "object",
        "properties": {"c": {"enum": ["US", "CA", "NL"]}, "z": {"type": "string"}},
        "required": ["c", "z"],
        "allOf": [
            {"if": {"properties": {"c": {"const": "US"}}}, "then": {"properties": {"z": {"pattern": "^\\d{5}$"}}}},
            {"if": {"properties": {"c": {"const": "CA"}}}, "then": {"properties": {"z": {"pattern": "^[A-Z]\\d$"}}}},
            {
                "if": {"properties": {"c": {"const": "NL"}}},
                "then": {"properties": {"z": {"pattern": "^\\d{4} [A-Z]{2}$"}}},
            },
        ],
    },
    "conditions in conditions": {
        "type": "object",
        "properties": {"a": {"type": "boolean"}, "b": {"type": "integer"}, "c": {"type": "string"}},
        "if": {"properties": {"a": {"const": True}}, "required": ["a"]},
        "then": {
            "if": {"properties": {"b": {"minimum": 5}}, "required": ["b"]},
            "then": {"required": ["c"]},
            "else": {"not": {"required": ["c"]}},
        },
        "else": {"required": ["b"]},
    },
    "dependent members": {
        "type": "object",
        "properties": {"card": {"type": "string"}, "addr": {"type": "string"}, "zip": {"type": "integer"}},
        "dependentRequired": {"card": ["addr"], "addr": ["zip"]},
    },
    "dependent schemas": {
        "type": "object",
        "properties": {"card": {"type": "integer"}, "addr": {"type": "string"}},
        "dependentSchemas": {
            "card": {"required": ["addr"], "properties": {"addr": {"minLength": 2}}},
            "addr": {"properties": {"x": {"type": "integer"}}, "maxProperties": 3},
        },
    },
    "dependent members and a greatest number": {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "integer"},
            "c": {"type": "integer"},
            "d": {"type": "integer"},
        },
        "dependentRequired": {"a": ["b", "c"], "d": ["a"]},
        "maxProperties": 3,
        "additionalProperties": False,
        "minProperties": 1,
    },
    "one of three members": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}, {"required": ["c"]}],
        "additionalProperties": False,
    },
    "one of overlapping objects": {
        "oneOf": [
            {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}},
            {"type": "object", "properties": {"a": {"type": "string"}, "c": {"type": "integer"}}, "required": ["a"]},
            {"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"]},
        ]
    },
    "not both members": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "not": {"required": ["a", "b"]},
    },
    "not these keys": {"type": "object", "not": {"patternProperties": {"^a": {"type": "integer"}}}, "maxProperties": 2},
    "not these members": {
        "type": "object",
        "properties": {"a": {}},
        "not": {"properties": {"a": {"type": "integer"}, "b": {"type": "string"}}},
    },
    "not containing": {"type": "array", "not": {"contains": {"const": 1}}, "items": {"enum": [0, 1, 2]}, "maxItems": 3},
    "containing some": {
        "type": "array",
        "items": {"type": ["integer", "string"]},
        "contains": {"type": "integer", "minimum": 3},
        "minContains": 2,
        "maxContains": 3,
        "maxItems": 5,
    },
    "containing two": {
        "type": "array",
        "items": {"enum": [1, 2, 3]},
        "allOf": [{"contains": {"const": 1}}, {"contains": {"const": 2}, "maxContains": 1}],
        "maxItems": 4,
    },
    "three kinds by a constant": {
        "type": "object",
        "properties": {"s": {"oneOf": [{"const": "a"}, {"const": "b"}, {"const": "c"}]}},
        "required": ["s"],
        "oneOf": [
            {
                "if": {"properties": {"s": {"const": "a"}}},
                "then": {"properties": {"v": {"type": "integer"}}, "required": ["v"]},
                "else": False,
            },
            {"properties": {"s": {"const": "b"}, "v": {"type": "string"}}, "required": ["v"]},
            {"properties": {"s": {"const": "c"}}, "maxProperties": 1},
        ],
    },
    "a tree with leaves": {
        "$defs": {
            "N": {
                "type": "object",
                "properties": {"k": {"$ref": "#/$defs/N"}, "t": {"enum": ["l", "n"]}},
                "required": ["t"],
                "allOf": [
                    {
                        "if": {"properties": {"t": {"const": "l"}}},
                        "then": {"not": {"required": ["k"]}},
                        "else": {"required": ["k"]},
                    }
                ],
                "additionalProperties": False,
            }
        },
        "$ref": "#/$defs/N",
    },
    "any JSON": {
        "$defs": {
            "J": {
                "oneOf": [
                    {"type": "null"},
                    {"type": "boolean"},
                    {"type": "number"},
                    {"type": "string"},
                    {"type": "array", "items": {"$ref": "#/$defs/J"}, "maxItems": 2},
                    {"type": "object", "additionalProperties": {"$ref": "#/$defs/J"}, "maxProperties": 2},
                ]
            }
        },
        "$ref": "#/$defs/J",
    },
    "GeoJSON": {
        "oneOf": [
            {
                "type": "object",
                "required": ["type", "coordinates"],
                "properties": {
                    "type": {"enum": ["Point"]},
                    "coordinates": {"type": "array", "minItems": 2, "maxItems": 3, "items": {"type": "number"}},
                },
            },
            {
                "type": "object",
                "required": ["type", "coordinates"],
                "properties": {
                    "type": {"enum": ["LineString"]},
                    "coordinates": {
                        "type": "array",
                        "minItems": 2,
                        "maxItems": 2,
                        "items": {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "number"}},
                    },
                },
            },
        ]
    },
    "an OpenAPI pet": {
        "type": "object",
        "required": ["petType"],
        "properties": {"petType": {"type": "string"}},
        "allOf": [
            {
                "oneOf": [
                    {"properties": {"petType": {"const": "cat"}, "h": {"enum": ["lazy", "wild"]}}, "required": ["h"]},
                    {
                        "properties": {"petType": {"const": "dog"}, "p": {"type": "integer", "minimum": 0}},
                        "required": ["p"],
                    },
                ]
            }
        ],
    },
    "an editing tool": {
        "type": "object",
        "properties": {
            "path": {"type": "string", "pattern": "^/(?:[^/]+/)*[^/]+$"},
            "edits": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"oldText": {"type": "string"}, "newText": {"type": "string"}},
                    "required": ["oldText", "newText"],
                    "additionalProperties": False,
                },
                "minItems": 1,
                "maxItems": 2,
            },
            "dryRun": {"type": "boolean", "default": False},
        },
        "required": ["path", "edits"],
        "additionalProperties": False,
        "$schema": "http://json-schema.org/draft-07/schema#",
    },
    "siblings of a reference": {
        "$defs": {"P": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}},
        "properties": {
            "p": {
                "$ref": "#/$defs/P",
                "description": "x",
                "properties": {"a": {"maximum": 3}},
                "additionalProperties": False,
            }
        },
        "required": ["p"],
        "type": "object",
    },
    "a dynamic reference": {
        "$id": "https://e.com/tree",
        "$dynamicAnchor": "node",
        "type": "object",
        "properties": {
            "v": {"type": "integer"},
            "c": {"type": "array", "maxItems": 2, "items": {"$dynamicRef": "#node"}},
        },
        "additionalProperties": False,
    },
    "distinct under a condition": {
        "type": "object",
        "properties": {"l": {"type": "array", "items": {"type": ["number", "string", "null"]}}},
        "required": ["l"],
        "if": {"properties": {"l": {"minItems": 2}}},
        "then": {"properties": {"l": {"uniqueItems": True}}},
    },
    "distinct and bounded": {
        "type": "array",
        "allOf": [
            {"items": {"type": "number", "minimum": 0}},
            {"uniqueItems": True},
            {"items": {"maximum": 3}},
            {"minItems": 2},
        ],
    },
    "all five distinct": {
        "type": "array",
        "items": {"type": "integer", "not": {"multipleOf": 2}, "minimum": 1, "maximum": 9},
        "uniqueItems": True,
        "minItems": 5,
    },
    "few keys in all": {
        "type": "object",
        "patternProperties": {"^[ab]{1,2}$": {"type": "integer"}, "^.b": {"minimum": 3}},
        "additionalProperties": False,
        "minProperties": 3,
        "maxProperties": 4,
        "propertyNames": {"not": {"enum": ["aa", "bb"]}},
    },
    "additional beside patterns": {
        "allOf": [
            {
                "type": "object",
                "patternProperties": {"^a": {"type": "integer"}},
                "additionalProperties": {"type": "string"},
            },
            {"patternProperties": {"z$": {"enum": [1, "q"]}}, "maxProperties": 3},
        ]
    },
    "no multiple within bounds": {
        "type": "number",
        "allOf": [{"not": {"multipleOf": 0.5}}, {"minimum": 0.1}, {"exclusiveMaximum": 2}],
    },
    "one of three kinds of strings": {
        "type": "string",
        "oneOf": [{"pattern": "^a"}, {"pattern": "b$"}, {"maxLength": 1}],
    },
    "names of odd characters": {
        "type": "object",
        "properties": {"": {"type": "integer"}, 'a"b': {"type": "string"}, "é\n": {"type": "null"}},
        "required": [""],
        "additionalProperties": False,
    },
}

NEAR = [
    0,
    1,
    2,
    3,
    5,
    9,
    -1,
    10,
    1.5,
    True,
    None,
    "",
    "a",
    "ab",
    "x",
    "cat",
    "12345",
    [],
    {},
    [1],
    [1, 2],
    {"a": 1},
    {"b": "x"},
]


def names(schema: Any) -> Iterator[str]:
    """The names of members that the schema speaks of."""
    if isinstance(schema, list):
        for part in schema:
            yield from names(part)
    elif isinstance(schema, dict):
        for word, part in schema.items():
            if word in {"properties", "required", "dependentRequired", "dependentSchemas"}:
                yield from part
            yield from names(part)


def plain(value: Any) -> Any:
    """The value with whole numbers as integers, as an integer is written."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 1e15 else value
    if isinstance(value, list):
        return [plain(v) for v in value]
    return {k: plain(v) for k, v in value.items()} if isinstance(value, dict) else value


def changed(value: Any, rng: random.Random, keys: list[str]) -> Any:
    """The value with one thing in it other than before."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and rng.random() < 0.6:
        return int(value) + rng.choice([-1, 1, 2])
    if isinstance(value, str) and rng.random() < 0.6:
        return rng.choice([value + "a", value[:-1], value + "1", "x" + value])
    if not isinstance(value, (list, dict)) or not value or rng.random() < 0.2:
        return copy.deepcopy(rng.choice(NEAR))
    value = copy.deepcopy(value)
    if isinstance(value, list):
        at = rng.randrange(len(value))
        match rng.randrange(3):
            case 0:
                value.pop(at)
            case 1:
                value.insert(at, copy.deepcopy(rng.choice([*value, *NEAR])))
            case _:
                value[at] = changed(value[at], rng, keys)
        return value
    key = rng.choice(list(value))
    match rng.randrange(3):
        case 0:
            value.pop(key)
        case 1:
            value[rng.choice([*keys, "q"])] = copy.deepcopy(rng.choice(NEAR))
        case _:
            value[key] = changed(value[key], rng, keys)
    return value


@pytest.mark.parametrize("name", SCHEMAS)
def test_masks_and_verdicts(name: str) -> None:
    schema = SCHEMAS[name]
    judge = jsonschema.Draft202012Validator(for_jsonschema(json.loads(json.dumps(schema), parse_float=Decimal)))
    rng, keys = random.Random(name), sorted(set(names(schema)))
    tried = {False: 0, True: 0}
    for order in ("any", "any", "any", "declared"):
        document = walk(compiled(schema, property_order=order), rng, 80)
        assert judge.is_valid(json.loads(document, parse_float=Decimal)), document
        grammar, value = compiled(schema, property_order="any"), plain(json.loads(document))
        for _ in range(6):
            value = changed(value, rng, keys)
            text = json.dumps(value, ensure_ascii=False)
            valid = judge.is_valid(json.loads(text, parse_float=Decimal))
            tried[valid] += 1
            assert takes(grammar, text) == valid, text
    assert tried[False] > 0


def test_a_last_key_is_one_that_is_needed() -> None:
    """Of two keys one begins with "a" and is no integer: after another key, only such a one may be begun."""
    schema = {"type": "object", "not": {"patternProperties": {"^a": {"type": "integer"}}}, "maxProperties": 2}
    for order in ("any", "declared"):
        matcher = compiled(schema, property_order=order).matcher()
        assert matcher.accept_bytes(b'{"b": 1, "')
        for byte in (b"b", b'"', "é".encode()[:1]):
            assert not matcher.fork().accept_bytes(byte)
        assert matcher.accept_bytes(b'a"')
        assert not matcher.fork().accept_bytes(b": 1}")
        assert matcher.accept_bytes(b": 1.5}") and matcher.can_end
