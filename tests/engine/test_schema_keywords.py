"""Each keyword of JSON Schema, by examples on both sides of its edge."""

from __future__ import annotations

import json
from typing import Any

from agentgram.engine import JsonSchema
from tests.engine.schemas import cases, check, closed, engine, takes


@cases(
    (
        "anything",
        {},
        ["null", "-0.5e+3", '"x"', "[]", "{}", '[{"a": [true]}]'],
        ["", "nul", "[1,]", "{1:2}", "+1", "01"],
    ),
    ("true", True, ["0", "[]"], ["]"]),
    ("described only", {"title": "t", "description": "d", "default": 1, "examples": [2]}, ["[3]"], ["[3"]),
    ("null", {"type": "null"}, ["null"], ["0", "None", '"null"']),
    ("boolean", {"type": "boolean"}, ["true", "false"], ["True", "0", "null"]),
    ("integer", {"type": "integer"}, ["0", "-7", "12345678901234567890"], ["1.0", "1e2", "-", "007", '"1"']),
    ("number", {"type": "number"}, ["0", "-7.25", "1e9", "2E-05"], [".5", "1.", "1e", "NaN", "Infinity"]),
    ("string", {"type": "string"}, ['""', '"\\n\\u00e9é\\/"'], ['"\n"', "'a'", '"\\x41"', '"\\ud800"', '"a']),
    ("array", {"type": "array"}, ["[]", '[1,"a",[]]'], ["{}", "[", "[1 2]"]),
    ("object", {"type": "object"}, ["{}", '{"a":1}'], ["[]", '{"a"}', '{"a":1,}', '{"a":1,"a":2}']),
    ("several", {"type": ["integer", "null"]}, ["4", "null"], ["1.5", '""', "true"]),
    ("integer is a number", {"type": ["number", "integer"]}, ["4", "4.5"], ['"4"']),
    ("none of the words is a type's", {"minLength": 2}, ['"ab"', "1", "null", "{}"], ['"a"', '""']),
)
def test_types(schema: Any, good: list[str], bad: list[str]) -> None:
    check(schema, good, bad)


@cases(
    ("strings", {"enum": ["to", "too", "two"]}, ['"to"', '"too"', '"\\u0074o"'], ['"t"', '"tw"', '"tooo"', "to"]),
    ("quotes and controls", {"enum": ['a"b\\', "\x00\t"]}, ['"a\\"b\\\\"', '"\\u0000\\t"'], ['"a"b"', '"\t"']),
    (
        "all kinds",
        {"enum": [1, "1", None, True, [1], {"k": "v"}]},
        ["1", '"1"', "null", "true", "[1]", '{"k": "v"}'],
        ["false", "[]", "{}", '{"k":"v","l":1}', "2", "[1,1]"],
    ),
    ("filtered by type", {"enum": ["a", 1, 2.5, None], "type": ["integer", "null"]}, ["1", "null"], ['"a"', "2.5"]),
    ("filtered by bounds", {"enum": [1, 5, 9], "minimum": 2, "maximum": 6}, ["5"], ["1", "9"]),
    ("filtered by pattern", {"enum": ["ab", "cd", 3], "pattern": "^a"}, ['"ab"', "3"], ['"cd"']),
    ("big number", {"const": 10**30}, [str(10**30)], ["1e30", str(10**30 + 1)]),
    ("whole float", {"const": 2.0}, ["2", "2.0"], ["2.5", "20"]),
    ("small float", {"const": 1e-7}, ["1e-07"], ["0", "1e-7.0"]),
    (
        "nested",
        {"const": {"a": [1, {"b": None}]}},
        ['{"a":[1,{"b":null}]}', '{ "a" : [ 1, {"b": null} ] }'],
        ['{"a":[1,{}]}', '{"a":[1]}'],
    ),
    ("reference inside a value", {"const": {"$ref": "#/none"}}, ['{"$ref":"#/none"}'], ["{}"]),
    ("const meets enum", {"const": "x", "enum": ["x", "y"]}, ['"x"'], ['"y"']),
    (
        "two enums",
        {"allOf": [{"enum": [1, "a", {"q": 1}]}, {"enum": ["a", {"q": 1}, 2]}]},
        ['"a"', '{"q":1}'],
        ["1", "2"],
    ),
)
def test_values(schema: Any, good: list[str], bad: list[str]) -> None:
    check(schema, good, bad)


@cases(
    (
        "bounds",
        {"type": "number", "minimum": -1.5, "maximum": 2},
        ["-1.5", "0", "2", "2.0", "1.999"],
        ["-1.6", "2.01", "3"],
    ),
    (
        "exclusive",
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        ["0.5", "0.01"],
        ["0", "1", "0.0", "1.0"],
    ),
    ("integers round inwards", {"type": "integer", "minimum": 1.5, "maximum": 3.5}, ["2", "3"], ["1", "4"]),
    ("beyond 64 bits", {"type": "integer", "minimum": 2**64}, [str(2**64), str(2**65)], [str(2**64 - 1)]),
    ("multiples", {"type": "integer", "multipleOf": 7}, ["0", "-14", "7007"], ["1", "15"]),
    ("decimal multiples", {"type": "number", "multipleOf": 0.05}, ["0.05", "1.10", "3"], ["0.01", "0.07"]),
    (
        "least common multiple",
        {"type": "integer", "allOf": [{"multipleOf": 6}, {"multipleOf": 10}]},
        ["30", "-60"],
        ["6", "10", "20"],
    ),
    (
        "multiples in bounds",
        {"type": "integer", "multipleOf": 9, "minimum": 10, "maximum": 30},
        ["18", "27"],
        ["9", "36", "20"],
    ),
    (
        "draft 4 flags",
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "type": "integer",
            "minimum": 3,
            "exclusiveMinimum": True,
        },
        ["4"],
        ["3"],
    ),
    ("only numbers are bound", {"maximum": 2}, ["2", '"aaa"', "null"], ["2.5", "3"]),
)
def test_numbers(schema: Any, good: list[str], bad: list[str]) -> None:
    check(schema, good, bad)


@cases(
    (
        "length in characters",
        {"type": "string", "minLength": 2, "maxLength": 3},
        ['"ab"', '"é😀x"', '"\\u0041\\n"', '"\\ud83d\\ude00z"'],
        ['"a"', '"abcd"', '"\\u0041"'],
    ),
    ("pattern is found anywhere", {"type": "string", "pattern": "b+"}, ['"abc"', '"b"'], ['"ac"', '""']),
    ("anchors", {"type": "string", "pattern": "^x|y$"}, ['"xa"', '"ay"'], ['"ax"', '"ya"']),
    ("pattern sees the value", {"type": "string", "pattern": '^"\\\\$'}, ['"\\"\\\\"'], ['"\\""', '"\\\\"']),
    ("pattern and length", {"type": "string", "pattern": "^[ab]+$", "maxLength": 2}, ['"a"', '"ab"'], ['""', '"aba"']),
    (
        "two patterns",
        {"type": "string", "allOf": [{"pattern": "1"}, {"pattern": "2"}]},
        ['"12"', '"2 1"'],
        ['"1"', '"2"'],
    ),
    (
        "look-ahead at the start",
        {"type": "string", "pattern": "^(?!un)(?=.*d)[a-z]+$"},
        ['"done"', '"d"'],
        ['"undo"', '"one"', '"D"'],
    ),
    (
        "decimal as pydantic has it",
        {"type": "string", "pattern": r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$"},
        ['"1.5"', '"-0"', '".5"'],
        ['"+"', '""', '"."', '"1e5"'],
    ),
    ("date", {"type": "string", "format": "date"}, ['"2024-02-29"'], ['"2023-02-29"', '"2024-13-01"']),
    ("format and pattern", {"type": "string", "format": "date", "pattern": "^20"}, ['"2024-01-31"'], ['"1999-01-31"']),
    ("unknown format", {"type": "string", "format": "colour"}, ['"red"', '""'], ["red"]),
)
def test_strings(schema: Any, good: list[str], bad: list[str]) -> None:
    check(schema, good, bad)


@cases(
    ("items", {"type": "array", "items": {"type": "integer"}}, ["[]", "[1,2]"], ['["a"]', "[1,null]"]),
    ("counts", {"type": "array", "minItems": 1, "maxItems": 2}, ["[1]", '["a",[]]'], ["[]", "[1,2,3]"]),
    (
        "many",
        {"type": "array", "items": {"type": "null"}, "minItems": 300, "maxItems": 300},
        [f"[{','.join(['null'] * 300)}]"],
        [f"[{','.join(['null'] * 299)}]", f"[{','.join(['null'] * 301)}]"],
    ),
    (
        "prefix",
        {"type": "array", "prefixItems": [{"type": "null"}, {"type": "boolean"}]},
        ["[]", "[null]", "[null,true,7]"],
        ["[true]", "[null,1]"],
    ),
    (
        "tuple",
        {"type": "array", "prefixItems": [{"type": "null"}, {"type": "boolean"}], "items": False, "minItems": 2},
        ["[null,false]"],
        ["[null]", "[null,false,1]"],
    ),
    (
        "rest",
        {"type": "array", "prefixItems": [{"type": "null"}], "items": {"type": "integer"}, "minItems": 2},
        ["[null,1]", "[null,1,2]"],
        ["[null]", "[null,null]"],
    ),
    (
        "earlier tuples",
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "array",
            "items": [{"type": "null"}],
            "additionalItems": False,
        },
        ["[]", "[null]"],
        ["[1]", "[null,null]"],
    ),
    (
        "items are distinct when there is one",
        {"type": "array", "uniqueItems": True, "maxItems": 1},
        ["[]", "[1]"],
        ["[1,1]"],
    ),
    (
        "distinct strings",
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        ["[]", '["a","b","ab",""]'],
        ['["a","a"]', '["a","b","\\u0061"]', "[1]"],
    ),
    (
        "distinct words",
        {"type": "array", "items": {"enum": ["on", "one", "two"]}, "uniqueItems": True, "minItems": 2},
        ['["one","on"]', '["two","one","on"]'],
        ['["on"]', '["on","on"]', '["one","two","one"]'],
    ),
    (
        "distinct values of all kinds",
        {"type": "array", "items": {"enum": ["1", 1, 1.0, None, True, 2.5]}, "uniqueItems": True},
        ['["1",1,true]', "[2.5,1.0,null]"],
        ["[1,1.0]", "[null,null]", "[true,2.5,true]"],
    ),
    (
        "distinct small integers",
        {
            "type": "array",
            "items": {"type": "integer", "minimum": -1, "maximum": 2},
            "uniqueItems": True,
            "minItems": 4,
        },
        ["[2,-1,0,1]"],
        ["[0,1,2]", "[0,1,2,0]"],
    ),
    (
        "some item",
        {"type": "array", "contains": {"type": "integer", "minimum": 5}},
        ["[5]", '["a",1,7,null]'],
        ["[]", '[4,"5"]'],
    ),
    (
        "some items",
        {"type": "array", "items": {"type": "integer"}, "contains": {"minimum": 5}, "minContains": 2, "maxContains": 3},
        ["[5,6]", "[1,5,2,6,7,3]"],
        ["[5]", "[5,6,7,8]", '[5,6,"x"]'],
    ),
    (
        "no such item",
        {"type": "array", "contains": {"type": "null"}, "maxContains": 1, "minContains": 0, "maxItems": 3},
        ["[]", "[null,1]", "[1,2,3]"],
        ["[null,null]", "[1,2,3,4]"],
    ),
    ("items need not differ", {"type": "array", "uniqueItems": False}, ["[1,1]"], ["1"]),
)
def test_arrays(schema: Any, good: list[str], bad: list[str]) -> None:
    check(schema, good, bad)


@cases(
    (
        "required",
        {"properties": {"a": {"type": "null"}, "b": {}}, "required": ["a"], "type": "object"},
        ['{"a":null}', '{"a":null,"b":1,"z":2}'],
        ["{}", '{"b":1}', '{"a":1}'],
    ),
    ("closed", closed(a={"type": "integer"}), ['{"a":1}', '{\n "a" : 1\n}'], ["{}", '{"a":1,"b":2}', '{"a":1,"a":1}']),
    (
        "typed extras",
        {"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": {"type": "integer"}},
        ["{}", '{"a":null,"b":1}'],
        ['{"b":null}', '{"a":1}'],
    ),
    (
        "required of the extras",
        {"type": "object", "required": ["q"], "additionalProperties": {"type": "integer"}},
        ['{"q":1}', '{"q":1,"r":2}'],
        ["{}", '{"q":null}', '{"r":1}'],
    ),
    (
        "escaped names",
        closed(**{'k"\\\n': {"type": "null"}, "": {"type": "null"}}),
        ['{"k\\"\\\\\\n":null,"":null}', '{"\\u006b\\"\\\\\\u000a":null,"":null}'],
        ['{"k":null,"":null}'],
    ),
    (
        "forbidden",
        {"type": "object", "properties": {"a": False, "b": {"type": "null"}}},
        ["{}", '{"b":null,"c":1}'],
        ['{"a":1}', '{"b":null,"a":1}'],
    ),
    (
        "patterns",
        {
            "type": "object",
            "patternProperties": {"^i_": {"type": "integer"}, "^b_": {"type": "boolean"}},
            "additionalProperties": False,
        },
        ['{"i_x":1,"b_":true}'],
        ['{"i_x":true}', '{"x":1}'],
    ),
    (
        "overlapping patterns",
        {"type": "object", "patternProperties": {"a": {"type": "integer"}, "b": {"minimum": 3}, "c": {"maximum": 5}}},
        ['{"a":0}', '{"ab":3,"abc":4}', '{"bc":"x","bcd":null}'],
        ['{"ab":2}', '{"abc":6}', '{"bc":7}', '{"a":"x"}'],
    ),
    (
        "pattern on a declared name",
        {"type": "object", "properties": {"xy": {"type": "integer"}}, "patternProperties": {"^x": {"minimum": 5}}},
        ['{"xy":5}', '{"xz":"t"}'],
        ['{"xy":4}', '{"xy":"t"}', '{"xz":1}'],
    ),
    (
        "names",
        {"type": "object", "propertyNames": {"pattern": "^[a-z]{2}$"}},
        ["{}", '{"ab":1,"cd":2}'],
        ['{"a":1}', '{"ABC":1}'],
    ),
    (
        "listed names",
        {"type": "object", "propertyNames": {"enum": ["p", "q"]}, "additionalProperties": {"type": "integer"}},
        ['{"q":1,"p":2}', '{"p":1}'],
        ['{"r":1}', '{"p":1,"q":2,"p":3}', '{"p":""}'],
    ),
    ("names cannot be", {"type": "object", "propertyNames": {"type": "integer"}}, ["{}"], ['{"1":1}']),
    (
        "fewest",
        {
            "type": "object",
            "properties": {"a": {}, "b": {}, "c": {}},
            "additionalProperties": False,
            "minProperties": 2,
        },
        ['{"a":1,"b":1}', '{"b":1,"c":1}'],
        ['{"a":1}', "{}"],
    ),
    ("most", {"type": "object", "maxProperties": 1}, ["{}", '{"x":1}'], ['{"x":1,"y":2}']),
    (
        "dependent keys",
        {
            "type": "object",
            "properties": {"a": {}, "b": {}, "c": {}},
            "dependentRequired": {"a": ["b", "c"]},
            "additionalProperties": False,
        },
        ["{}", '{"b":1}', '{"a":1,"b":1,"c":1}'],
        ['{"a":1}', '{"a":1,"b":1}'],
    ),
    (
        "dependent schema",
        {
            "type": "object",
            "properties": {"a": {}, "b": {"type": "integer"}},
            "dependentSchemas": {"a": {"required": ["b"], "properties": {"b": {"minimum": 5}}}},
        },
        ["{}", '{"b":1}', '{"a":1,"b":5}'],
        ['{"a":1}', '{"a":1,"b":4}'],
    ),
    (
        "dependencies of old",
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"a": {}, "b": {}},
            "dependencies": {"a": ["b"], "b": {"maxProperties": 2}},
        },
        ["{}", '{"a":1,"b":2}'],
        ['{"a":1}', '{"a":1,"b":2,"c":3}'],
    ),
)
def test_objects(schema: Any, good: list[str], bad: list[str]) -> None:
    check(schema, good, bad)


@cases(
    ("iri", {"format": "iri"}, ['"http://é.example/ü?x=1#y"', '"urn:ä"'], ['"é"', '"http://a b"']),
    ("iri-reference", {"format": "iri-reference"}, ['"/é"', '"#ü"', '""'], ['"\\\\x"', '"a b"']),
    ("uri-template", {"format": "uri-template"}, ['"/u/{id}{?a,b*,c:3}"', '"x"'], ['"{"', '"{}"', '"{a,,b}"', '"a b"']),
    ("idn-email", {"format": "idn-email"}, ['"δοκιμή@example.com"', '"a@실례.테스트"'], ['"a"', '"a@-x"']),
    (
        "idn-hostname",
        {"format": "idn-hostname"},
        ['"실례.테스트"', '"example.org"'],
        ['"-a"', '"xn--x"', '"a..b"', '""'],
    ),
    ("hostname", {"format": "hostname"}, ['"a-b.example"'], ['"xn--x"', '"ab--c"', '"-a"', '"a_b"']),
    (
        "regex",
        {"format": "regex"},
        ['"^[a-z]{2,5}$"', '"(a|b)*\\\\d"', '"((?:x)+)?"', '"[^\\\\]]"'],
        ['"*"', '"("', '"[z-a]"', '"a{3,2}"', '"\\\\"'],
    ),
)
def test_formats(schema: Any, good: list[str], bad: list[str]) -> None:
    check({"type": "string", **schema}, good, bad)


def test_exponents_go_as_far_as_a_double() -> None:
    grammar = engine().compile(JsonSchema({"type": "number"}))
    doubles = (1.7976931348623157e308, 5e-324, 1e22, 1e-07, 2.5e-310, 3e39, 3e-39, 3e300, 3e-300, 1.5e-299)
    for value in doubles:
        assert takes(grammar, json.dumps(value)) and takes(grammar, json.dumps(-value)), value
    for text in ("1e309", "1e-325", "1e400", "1e9999", "1e+310", "1e-330"):
        assert not takes(grammar, text), text
