"""A schema given as Python values is kept as JSON text, once: the text that json.dumps gives."""

from __future__ import annotations

import collections
import enum
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgram.engine import JsonSchema
from agentgram.errors import DefinitionError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner),
)


@given(value=st.dictionaries(st.text(), JSON))
def test_a_schema_is_kept_as_the_text_that_json_dumps_gives(value: dict[str, Any]) -> None:
    assert JsonSchema(value).schema == json.dumps(value, ensure_ascii=False)


class Colour(enum.IntEnum):
    RED = 1


class Name(str):
    __slots__ = ()


def nested(depth: int) -> dict[str, Any]:
    return {"items": nested(depth - 1)} if depth else {}


@pytest.mark.parametrize(
    "value",
    [
        {"enum": [Colour.RED, Name("a"), True, 10**30, -0.0, 1e16, 5e-324]},
        {1: None, None: 2, False: 3},
        {Name("type"): "string"},
        collections.OrderedDict(type="null"),
        {"enum": ["\ud800", '\x00\x1f\x7f"\\/\n\r\t\f\b\u2028', float("inf")]},
        nested(300),
    ],
)
def test_values_that_only_json_dumps_knows_are_written_by_it(value: Any) -> None:
    assert JsonSchema(value).schema == json.dumps(value, ensure_ascii=False)


def test_what_is_no_json_value_is_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)
    for value in ({"enum": [object()]}, {"enum": circle}, {"enum": [{1, 2}]}):
        with pytest.raises(DefinitionError, match="not a JSON value"):
            JsonSchema(value)
