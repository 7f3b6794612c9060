"""The schemas that pydantic writes for the standard library's types: a document is taken where pydantic's schema says so."""

from __future__ import annotations

import datetime
import decimal
import enum
import ipaddress
import json
import pathlib
import re
import uuid
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, NotRequired

import jsonschema
import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from typing_extensions import TypedDict

from tests.engine.schemas import compiled, takes, takes_value


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 3


@dataclass
class Point:
    x: int
    y: float = 0.0


class Pair(NamedTuple):
    left: int
    right: str


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["dog"]
    tricks: list[str] = []


class Tree(BaseModel):
    value: int
    children: list[Tree] = []


class Order(BaseModel):
    """Something of everything."""

    id: Annotated[int, Field(ge=1, lt=1000)]
    note: Annotated[str, Field(max_length=5)] | None = None
    tags: Annotated[list[str], Field(max_length=2)] = []
    prices: dict[str, Annotated[float, Field(gt=0)]] = {}
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]


ROWS: list[tuple[Any, list[Any], list[Any]]] = [
    (bool, [True, False], [0, "true", None]),
    (int, [0, -5, 10**25], [1.5, "1", None, True]),
    (float, [0, 1.5, -2e-9], ["1.5", None]),
    (str, ["", 'é\n"\\', "😀"], [1, None]),
    (bytes, ["abc"], [1]),
    (None, [None], [0, ""]),
    (Any, [1, "a", [None], {"k": {}}], []),
    (datetime.date, ["2024-02-29"], ["2023-02-29", "2024-2-1", 5]),
    (datetime.datetime, ["2024-02-29T10:11:12Z"], ["2024-02-29", "x"]),
    (datetime.time, ["10:11:12Z", "10:11:12.5+02:00"], ["25:00:00Z", "x"]),
    (datetime.timedelta, ["P1DT2H", "PT30S", "P3W"], ["1 day", "P"]),
    (uuid.UUID, ["123e4567-e89b-12d3-a456-426614174000"], ["123e4567", 4]),
    (decimal.Decimal, [1.5, "1.5", "-0.25"], [None, []]),
    (ipaddress.IPv4Address, ["10.0.0.1"], ["10.0.0.256", "::1"]),
    (ipaddress.IPv6Address, ["::1", "fe80::1:2"], ["10.0.0.1", ":::"]),
    (pathlib.Path, ["/tmp/x"], [1]),
    (re.Pattern, ["a+"], [1]),
    (Colour, ["red", "blue"], ["green", "RED"]),
    (Level, [1, 3], [2, "1"]),
    (Literal["a", 1, None, True], ["a", 1, None, True], ["b", 2, False]),
    (int | None, [1, None], ["1"]),
    (int | str | list[int], [1, "x", [1, 2]], [None, ["x"], 1.5]),
    (list[int], [[], [1, 2]], [["1"], {}, None]),
    (list[list[str]], [[], [["a"], []]], [["a"]]),
    (set[str], [["a", "b"], []], ["ab", ["a", "a"]]),
    (frozenset[str], [["a"]], [["a", "a"]]),
    (deque[int], [[1]], [["x"]]),
    (tuple[int, str], [[1, "a"]], [[1], ["a", 1], [1, "a", 2]]),
    (tuple[int, ...], [[], [1, 2, 3]], [["a"]]),
    (dict[str, int], [{}, {"a": 1, "b": 2}], [{"a": "x"}, []]),
    (dict[Literal["p", "q"], int], [{}, {"q": 1, "p": 2}], [{"r": 1}]),
    (dict[int, str], [{}], [{"a": 1}]),
    (OrderedDict[str, bool], [{"z": True}], [{"z": 1}]),
    (Annotated[int, Field(ge=3, le=5)], [3, 5], [2, 6]),
    (Annotated[int, Field(multiple_of=5)], [0, 10, -5], [3]),
    (Annotated[float, Field(gt=0, lt=1)], [0.5, 1e-9], [0, 1, -0.5]),
    (Annotated[str, Field(min_length=2, max_length=3)], ["ab", "abc"], ["a", "abcd"]),
    (Annotated[str, Field(pattern=r"^[A-Z]{2}\d+$")], ["AB1"], ["ab1", "AB"]),
    (Annotated[list[int], Field(min_length=1, max_length=2)], [[1], [1, 2]], [[], [1, 2, 3]]),
    (Point, [{"x": 1}, {"x": 1, "y": 2.5}], [{}, {"y": 1}]),
    (Pair, [[1, "a"]], [[1], ["a", 1]]),
    (Movie, [{"title": "t"}, {"title": "t", "year": 1999}], [{"year": 1}, {"title": 5}]),
    (
        Tree,
        [{"value": 1}, {"value": 1, "children": [{"value": 2, "children": []}]}],
        [{}, {"value": 1, "children": [{}]}],
    ),
    (
        Order,
        [
            {"id": 1, "pet": {"kind": "cat"}},
            {
                "id": 9,
                "note": None,
                "tags": ["a", "b"],
                "prices": {"x": 0.5},
                "pet": {"kind": "dog", "tricks": ["sit"]},
            },
            {"id": 999, "note": "12345", "pet": {"kind": "cat", "lives": 3, "colour": "any"}},
        ],
        [
            {"id": 0, "pet": {"kind": "cat"}},
            {"id": 1000, "pet": {"kind": "cat"}},
            {"id": 1},
            {"id": 1, "note": "123456", "pet": {"kind": "cat"}},
            {"id": 1, "tags": ["a", "b", "c"], "pet": {"kind": "cat"}},
            {"id": 1, "prices": {"x": 0}, "pet": {"kind": "cat"}},
            {"id": 1, "pet": {"kind": "dog", "lives": 3}},
            {"id": 1, "pet": {"kind": "cow"}},
        ],
    ),
]


@pytest.mark.parametrize(("kind", "good", "bad"), ROWS, ids=[str(row[0])[:40] for row in ROWS])
def test_types_of_the_standard_library(kind: Any, good: list[Any], bad: list[Any]) -> None:
    schema = TypeAdapter(kind).json_schema()
    grammar = compiled(schema)
    judge = jsonschema.Draft202012Validator(schema)
    for value in good:
        assert judge.is_valid(value), f"the row is wrong: {value!r}"
        assert takes_value(grammar, value), value
    for value in bad:
        assert not takes_value(grammar, value), value


@pytest.mark.parametrize("kind", [Order, Tree, Point, Movie, Cat | Dog], ids=str)
def test_serialization_schemas(kind: Any) -> None:
    schema = TypeAdapter(kind).json_schema(mode="serialization")
    assert compiled(schema).matcher().shortest_end()


def test_a_shortest_document_is_a_valid_one() -> None:
    for kind, *_ in ROWS:
        schema = TypeAdapter(kind).json_schema()
        grammar = compiled(schema)
        text = grammar.matcher().shortest_end()
        assert takes(grammar, text)
        value = json.loads(text)
        assert jsonschema.Draft202012Validator(schema).is_valid(value), (kind, text)
