"""Kinds of schemas that engines get wrong: each with texts that tell a right one from a wrong one."""

from __future__ import annotations

from typing import Any

import pytest

from agentgram.errors import GrammarError
from tests.engine.schemas import cases, check, closed, compiled


def text(pattern: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "pattern": pattern, **more}


@cases(
    ("a group repeated", text("^(ab?|c){3,}$"), ['"aca"', '"abccab"'], ['"ab"', '"abb"', '"abc "']),
    ("a quote in a pattern", text('^x"y$'), [r'"x\"y"', r'"x\u0022y"'], ['"x"y"', '"xy"']),
    ("a backslash before a letter", text(r"^\\t$"), [r'"\\t"', r'"\u005ct"'], [r'"\t"', '"t"']),
    ("what is no space", text(r"^k:\S{2}$"), ['"k:ab"', '"k:é]"'], ['"k: a"', '"k:a"', r'"k:\ta"', r'"k:a\u00a0"']),
    ("tied to the end only", text("ok$"), ['"ok"', '"not ok"'], ['"ok."', '"o"']),
    ("anchors hold for their own branch", text("^up|down$"), ['"upper"', '"go down"'], ['"go up"', '"downer"']),
    ("branches without parentheses", text("cat|dog"), ['"hotdogs"', '"cat"'], ['"do g"', '"ca"']),
    ("at most so many of a pattern", text("^z+$", maxLength=2), ['"z"', '"zz"'], ['""', '"zzz"']),
    ("at least so many of a pattern", text("^[xy]*$", minLength=3), ['"xyx"', '"yyyyy"'], ['"xy"', '"xyz"']),
    ("a pattern among dates", text("-29$", format="date"), ['"2024-02-29"'], ['"2023-02-29"', '"2024-02-28"', '"-29"']),
    ("two patterns", {"type": "string", "allOf": [text("1"), text("2")]}, ['"12"', '"2 and 1"'], ['"11"', '"2"']),
    ("not after the start", text("^(?!un)[a-u]+$"), ['"nu"', '"u"'], ['"un"', '"undo"']),
    ("an escaped slash", text(r"^\/api\/[ab]$"), ['"/api/a"', r'"\/api\/b"'], ['"api/a"', '"/api/"']),
    ("an escape without need", text(r"^go\!$"), ['"go!"'], ['"go"', r'"go\\!"']),
    ("hundreds of one letter", text("^q{2,300}$"), [f'"{"q" * 300}"', '"qq"'], ['"q"', f'"{"q" * 301}"']),
    ("a loop over what follows it", text("^x*xyx$"), ['"xyx"', '"xxxyx"'], ['"yx"', '"xxyxx"']),
    ("a range far from ASCII", text(r"^[\u0430-\u044f]+$"), ['"привет"', r'"\u0430"'], ['"Привет"', '"a"', '""']),
    ("a range beyond 16 bits", text("^[😀-😏]$"), ['"😃"', r'"\ud83d\ude03"'], ['"😐"', '"😃😃"', r'"\ud83d"']),
)
def test_patterns(schema: Any, good: list[str], bad: list[str]) -> None:
    check(schema, good, bad)


@cases(
    ("raw control characters", {"type": "string"}, ['"a"', r'"\n"'], ['"\n"', '"\x00"', '"\t"']),
    (
        "escapes that are none",
        {"type": "string"},
        [r'"\/\b\f"', r'"\uAbCd"'],
        [r'"\x41"', r'"\u12G4"', r'"\'"', r'"\u12"'],
    ),
    ("no closing quote", {"items": {"type": "string"}}, ['["a","b"]'], ['["a]', '["a","b]', '["a\\"]']),
    (
        "length of what is meant",
        {"type": "string", "maxLength": 1},
        [r'"\u00e9"', r'"\n"', '"é"'],
        ['"ab"', r'"\u0041b"'],
    ),
    ("one character of two units", {"type": "string", "maxLength": 1}, ['"😀"', r'"\ud83d\ude00"'], ['"😀a"']),
    ("a name that is not ASCII", closed(ü={"type": "null"}), ['{"ü":null}', r'{"\u00fc":null}'], ['{"u":null}', "{}"]),
    ("a name of nothing", closed(**{"": {"type": "null"}}), ['{"":null}'], ["{}", '{" ":null}']),
    ("names to be escaped", closed(**{'a"\\': {}, "\n": {}}), [r'{"a\"\\":1,"\n":2}'], [r'{"a\"":1,"\n":2}']),
)
def test_strings(schema: Any, good: list[str], bad: list[str]) -> None:
    check(schema, good, bad)


@cases(
    (
        "bounds with one whole part",
        {"type": "number", "minimum": 3.2, "maximum": 3.6},
        ["3.5", "3.20"],
        ["3", "3.1", "3.61"],
    ),
    ("many digits", {"minimum": 0, "maximum": 1}, ["0.30000000000000004", "1", "1.0"], ["1.0000001", "-0.1"]),
    ("exponents below a bound", {"type": "number", "minimum": 0, "maximum": 50}, ["1e-07", "5e1"], ["5.1e1", "1e+16"]),
    ("bounds between integers", {"type": "integer", "minimum": -1.5, "maximum": 1.5}, ["-1", "0", "1"], ["-2", "2"]),
    (
        "a bound beyond 64 bits",
        {"type": "integer", "maximum": 3 * 10**20},
        [str(3 * 10**20), "-1"],
        [str(3 * 10**20 + 1)],
    ),
    (
        "two divisors",
        {"type": "integer", "allOf": [{"multipleOf": 6}, {"multipleOf": 10}]},
        ["30", "-60", "0"],
        ["6", "10"],
    ),
    ("a divisor under one", {"type": "number", "multipleOf": 0.03}, ["0.09", "3", "-0.3"], ["0.1", "0.04", "0.031"]),
    ("more than nothing", {"type": "number", "exclusiveMinimum": 0}, ["0.001", "1e-9"], ["0", "0.0", "-1", "0e5"]),
    (
        "negative bounds",
        {"type": "number", "minimum": -3.5, "maximum": -1},
        ["-1", "-3.50", "-2e0"],
        ["-0.9", "-3.51", "1"],
    ),
    ("digits of an exponent", {"type": "number"}, ["1e5", "1E+05", "-0e0"], ["1e", "1e+", "1.e5", "01e5", ".5", "+1"]),
)
def test_numbers(schema: Any, good: list[str], bad: list[str]) -> None:
    check(schema, good, bad)


PAIR = {"a": {"type": "integer"}, "b": {"type": "integer"}}


@cases(
    ("required, not declared", {"required": ["z"], "properties": PAIR, "additionalProperties": {"type": "null"}},
     ['{"a":1,"z":null}', '{"z":null}'], ['{"a":1}', '{"z":1}']),
    ("a pattern's key is searched", {"patternProperties": {"no": {"type": "integer"}}, "additionalProperties": False},
     ['{"piano":1}', "{}"], ['{"piano":"x"}', '{"pia":1}']),
    ("two patterns and one key", {"patternProperties": {"^x": {"minimum": 2}, "y$": {"maximum": 4}}},
     ['{"xy":3}', '{"x":9}', '{"y":1}'], ['{"xy":1}', '{"xy":5}']),
    ("a declared key under a pattern", {"properties": {"ab": {"multipleOf": 3}}, "patternProperties": {"b": {"minimum": 5}}},
     ['{"ab":6}'], ['{"ab":3}', '{"ab":7}']),
    ("names beside patterns", {"patternProperties": {"^i": {"type": "integer"}}, "propertyNames": {"pattern": "t$"}},
     ['{"it":1}', '{"at":"x"}'], ['{"i":1}', '{"it":"x"}']),
    ("some of three", {"type": "object", "properties": {**PAIR, "c": {}}, "minProperties": 2, "additionalProperties": False},
     ['{"a":1,"c":2}', '{"b":1,"c":2}'], ['{"b":1}', "{}"]),
    ("not too many", {"type": "object", "properties": PAIR, "required": ["b"], "maxProperties": 1},
     ['{"b":1}'], ['{"a":1,"b":1}', '{"a":1}', '{"b":1,"x":1}']),
    ("one brings another", {"properties": PAIR, "dependentRequired": {"a": ["b"]}, "additionalProperties": False},
     ['{"a":1,"b":1}', '{"b":1}', "{}"], ['{"a":1}']),
    ("a key that cannot be", {"type": "object", "properties": {"a": False}}, ['{"b":1}'], ['{"a":1}']),
    ("closed by allOf", {"type": "object", "allOf": [{"properties": {"a": {}}, "additionalProperties": False}, {"required": ["a"]}]},
     ['{"a":1}'], ["{}", '{"a":1,"b":1}']),
)  # fmt: skip
def test_objects(schema: Any, good: list[str], bad: list[str]) -> None:
    check(schema, good, bad)


@cases(
    ("some item is", {"type": "array", "contains": {"type": "null"}}, ["[1,null]", "[null]"], ["[]", "[1]"]),
    ("so many items are", {"items": {"enum": [0, 7]}, "contains": {"const": 7}, "minContains": 2, "maxContains": 2},
     ["[7,0,7]", "[7,7]"], ["[7]", "[7,7,7]", "[7,8,7]"]),
    ("none need be", {"type": "array", "contains": {"const": 7}, "minContains": 0, "maxContains": 1},
     ["[]", "[7,1]"], ["[7,7]"]),
    ("a tuple may stop early", {"prefixItems": [{"type": "null"}, {"type": "integer"}]}, ["[]", "[null]", "[null,1,{}]"], ["[1]"]),
    ("a closed tuple with a least length", {"prefixItems": [{"type": "null"}, {}], "items": False, "minItems": 2},
     ["[null,1]"], ["[null]", "[null,1,2]"]),
    ("the least length is past the tuple", {"prefixItems": [{}], "items": {"type": "null"}, "minItems": 3, "type": "array"},
     ["[1,null,null]"], ["[1,null]", "[1,null,1]"]),
    ("just so many", {"type": "array", "minItems": 2, "maxItems": 2}, ["[1,[]]"], ["[1]", "[1,2,3]"]),
    ("no items at all", {"type": "array", "items": False, "maxItems": 9}, ["[]"], ["[1]"]),
    ("no value twice", {"type": "array", "items": {"enum": ["p", "q", 3]}, "uniqueItems": True}, ['["q",3,"p"]'], ['["p","p"]', "[3,3]"]),
)  # fmt: skip
def test_arrays(schema: Any, good: list[str], bad: list[str]) -> None:
    check(schema, good, bad)


NODE = {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}}, "required": ["v"]}


@cases(
    ("one of two ranges", {"type": "integer", "oneOf": [{"minimum": 3}, {"maximum": 5}]}, ["2", "6"], ["3", "5"]),
    ("one of a number and an integer", {"oneOf": [{"type": "integer"}, {"type": "number"}]}, ["0.5"], ["1", '"a"']),
    ("one of two kinds", {"oneOf": [closed(k={"const": "a"}, x={}), closed(k={"const": "b"})]},
     ['{"k":"a","x":1}', '{"k":"b"}'], ['{"k":"a"}', '{"k":"b","x":1}']),
    ("either set of keys", {"type": "object", "properties": PAIR, "additionalProperties": False, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
     ['{"a":1}', '{"b":1}', '{"a":1,"b":2}'], ["{}"]),
    ("not what starts like this", {"type": "string", "not": {"pattern": "^_"}}, ['"a_"', '""'], ['"_"', r'"\u005fa"']),
    ("a rule where another holds", {"properties": {"k": {"enum": [1, 2]}}, "required": ["k"], "if": {"properties": {"k": {"const": 1}}},
                                    "then": {"required": ["x"]}, "else": {"maxProperties": 1}, "type": "object"},
     ['{"k":1,"x":0}', '{"k":2}'], ['{"k":1}', '{"k":2,"x":0}']),
    ("values too long", {"enum": ["xyz", "x", 123], "maxLength": 2}, ['"x"', "123"], ['"xyz"']),
    ("one value begins another", {"enum": ["in", "int", "into"]}, ['"in"', '"int"', '"into"'], ['"i"', '"inte"']),
    ("siblings of a reference", {"$ref": "#/$defs/i", "minimum": 2, "$defs": {"i": {"type": "integer"}}}, ["2"], ["1", '"a"', "2.5"]),
    ("escapes within escapes", {"$ref": "#/$defs/~01", "$defs": {"~1": {"const": 1}, "/": {"const": 2}}}, ["1"], ["2"]),
    ("per cent in a pointer", {"$ref": "#/$defs/x%20y", "$defs": {"x y": {"const": 1}}}, ["1"], ["2"]),
    ("through a list", {"$ref": "#/anyOf/1", "anyOf": [{"type": "null"}, {"type": "integer"}]}, ["1"], ["null"]),
    ("a list that goes on", {"$ref": "#/$defs/node", "$defs": {"node": NODE}}, ['{"v":1,"next":{"v":2}}'], ['{"v":1,"next":{}}']),
    ("a reference that is data", {"const": {"$ref": "#/none"}}, ['{"$ref":"#/none"}'], ["{}"]),
)  # fmt: skip
def test_combinations(schema: Any, good: list[str], bad: list[str]) -> None:
    check(schema, good, bad)


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"not": {}},
        {"type": "boolean", "enum": [1, "x"]},
        {"allOf": [{"type": "array"}, {"type": "null"}]},
        {"type": "string", "pattern": "^x{4}$", "maxLength": 2},
        {"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2},
        {"type": "object", "properties": {"a": {}}, "minProperties": 2, "additionalProperties": False},
        {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True, "minItems": 3},
        {"type": "object", "properties": {"me": {"$ref": "#"}}, "required": ["me"]},
        {"oneOf": [{"type": "null"}, {"type": "null"}]},
    ],
)
def test_nothing_satisfies(schema: Any) -> None:
    with pytest.raises(GrammarError, match="nothing satisfies"):
        compiled(schema)


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"type": "integr"}, "/type"),
        ({"properties": {"a": {"pattern": "[b"}}}, "/properties/a/pattern"),
        ({"pattern": "[b-a]"}, "/pattern"),
        ({"patternProperties": {"(": {}}}, ""),
        ({"$ref": "/$defs/a", "$defs": {"a": {}}}, "/$ref"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, "/$defs/b/$ref"),
        ({"pattern": r"\bx\b"}, "/pattern"),
        ({"pattern": r"(x)\1"}, "/pattern"),
    ],
)
def test_refused_at_its_place(schema: Any, pointer: str) -> None:
    with pytest.raises(GrammarError) as caught:
        compiled(schema)
    assert caught.value.pointer.startswith(pointer)
    assert caught.value.keyword
