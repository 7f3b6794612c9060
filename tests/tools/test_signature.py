"""What a function's signature says becomes its schema, and what the schema admits becomes its values."""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import pathlib
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Optional

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, Field
from typing_extensions import TypedDict

from agentgram import Agent, DefinitionError, RunContext, Tool, bind, tool
from agentgram.engine import Engine, JsonSchema, Vocabulary
from agentgram.testing import ScriptedModel, call
from agentgram.tools import InvalidArguments


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    x: int
    y: int = 0


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


class Size(TypedDict):
    width: int


class Span(NamedTuple):
    start: int
    end: int


@dataclass
class Pair:
    left: int
    right: str = "r"


def schema(function: Callable[..., Any]) -> dict[str, Any]:
    return dict(tool(function).definition.schema)


def read(function: Callable[..., Any], arguments: str | dict[str, Any]) -> Any:
    return tool(function).parameters.read(arguments)


def test_the_schema_of_a_plain_function() -> None:
    def order_status(order: int, detail: Literal["short", "long"] = "short") -> str:
        """Where an order is.

        It looks into the shop's database.

        Args:
            order: The order's
                number.
            detail: How much to say.
        """
        return ""

    definition = tool(order_status).definition
    assert definition.name == "order_status"
    assert definition.description == "Where an order is.\n\nIt looks into the shop's database."
    assert definition.schema == {
        "type": "object",
        "properties": {
            "order": {"type": "integer", "description": "The order's number."},
            "detail": {
                "type": "string",
                "enum": ["short", "long"],
                "default": "short",
                "description": "How much to say.",
            },
        },
        "required": ["order"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "docstring",
    [
        "Add.\n\nParameters\n----------\na : int\n    The first.\n",
        "Add.\n\n:param a: The first.\n",
        "Add.\n\nArgs:\n    a (int): The first.\n",
    ],
)
def test_docstring_styles(docstring: str) -> None:
    def add(a: int) -> int:
        return a

    add.__doc__ = docstring
    assert tool(add).definition.description == "Add."
    assert schema(add)["properties"]["a"]["description"] == "The first."


def test_a_description_in_the_annotation_wins() -> None:
    def add(a: Annotated[int, Field(description="mine")]) -> int:
        """Add.

        Args:
            a: theirs
        """
        return a

    assert schema(add)["properties"]["a"]["description"] == "mine"


@pytest.mark.parametrize(
    ("hint", "value", "expected"),
    [
        (int, 3, 3),
        (float, 1, 1.0),
        (bool, True, True),
        (str, "é", "é"),
        (Optional[int], None, None),  # noqa: UP045 - the old spelling works too
        (int | str, "3", "3"),
        (Literal["a", 1], 1, 1),
        (Color, "red", Color.RED),
        (list[int], [1, 2], [1, 2]),
        (set[int], [1, 2], {1, 2}),
        (tuple[int, str], [1, "a"], (1, "a")),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (Point, {"x": 1}, Point(x=1)),
        (Tree, {"name": "a", "children": [{"name": "b"}]}, Tree(name="a", children=[Tree(name="b")])),
        (Size, {"width": 1}, {"width": 1}),
        (Pair, {"left": 1}, Pair(1)),
        (datetime.date, "2024-02-29", datetime.date(2024, 2, 29)),
        (datetime.datetime, "2024-02-29T10:00:00Z", datetime.datetime(2024, 2, 29, 10, tzinfo=datetime.UTC)),
        (datetime.time, "10:00:00", datetime.time(10)),
        (datetime.timedelta, "PT1H", datetime.timedelta(hours=1)),
        (decimal.Decimal, "1.50", decimal.Decimal("1.50")),
        (decimal.Decimal, 1.5, decimal.Decimal("1.5")),
        (Annotated[decimal.Decimal, Field(le=50)], 49.5, decimal.Decimal("49.5")),
        (set[int], [1, 1], {1}),
        (frozenset[str], ["a", "a"], frozenset("a")),
        (uuid.UUID, "12345678-1234-5678-1234-567812345678", uuid.UUID("12345678-1234-5678-1234-567812345678")),
        (pathlib.Path, "a/b", pathlib.Path("a/b")),
        (Annotated[int, Field(ge=2, le=4)], 3, 3),
        (Annotated[list[str], Field(min_length=1)], ["a"], ["a"]),
    ],
)
def test_every_type_is_described_and_read(hint: Any, value: Any, expected: Any) -> None:
    def f(x: Any) -> None: ...

    f.__annotations__["x"] = hint
    jsonschema.validate({"x": value}, schema(f))
    assert read(f, {"x": value}) == {"x": expected}
    assert type(read(f, {"x": value})["x"]) is type(expected)


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (int, "3"),
        (int, True),
        (int, 1.5),
        (str, 3),
        (bool, 1),
        (bool, "true"),
        (float, "1.5"),
        (float, float("nan")),
        (Color, "green"),
        (Annotated[int, Field(le=4)], 5),
        (datetime.date, "2024-02-30"),
        (list[int], {"a": 1}),
        (str, "\ud800"),
    ],
)
def test_nothing_is_coerced_that_json_tells_apart(hint: Any, value: Any) -> None:
    def f(x: Any) -> None: ...

    f.__annotations__["x"] = hint
    with pytest.raises(InvalidArguments):
        read(f, {"x": value})


def test_errors_name_every_place() -> None:
    def f(point: Point, n: int) -> None: ...

    with pytest.raises(InvalidArguments, match=r"^point\.x: .*valid integer; n: Field required$"):
        read(f, {"point": {"x": "a"}})


def test_objects_are_closed_also_inside() -> None:
    def f(tree: Tree, size: Size, pair: Pair) -> None: ...

    definitions = schema(f)["$defs"]
    assert {name: d["additionalProperties"] for name, d in definitions.items()} == dict.fromkeys(
        ("Tree", "Size", "Pair"), False
    )


def test_bounds_of_decimals_leave_no_way_around() -> None:
    def f(free: decimal.Decimal, bound: Annotated[decimal.Decimal, Field(gt=0, le=50)]) -> None: ...

    properties = schema(f)["properties"]
    assert properties["bound"] == {"type": "number", "exclusiveMinimum": 0, "maximum": 50}
    assert not jsonschema.Draft202012Validator(properties["free"]).is_valid("much")


def test_defaults_of_decimals_are_numbers_as_the_schema_has_them() -> None:
    def pay(a: decimal.Decimal = decimal.Decimal(50), b: decimal.Decimal = decimal.Decimal("0.5")) -> None: ...

    properties = tool(pay).definition.schema["properties"]
    assert [properties[key]["default"] for key in "ab"] == [50, 0.5]


def test_there_are_no_titles() -> None:
    def f(tree: Tree, color: Color = Color.RED) -> None: ...

    assert '"title"' not in json.dumps({k: v for k, v in schema(f).items() if k != "$defs"})
    assert "title" not in schema(f)["$defs"]["Tree"]
    assert schema(f)["properties"]["color"]["default"] == "red"


def test_parameters_may_have_any_name() -> None:
    def f(schema: int, json: int, model_config: int, copy: int, self_: int, _x: int = 1) -> None: ...

    values = {"schema": 1, "json": 2, "model_config": 3, "copy": 4, "self_": 5, "_x": 6}
    assert read(f, values) == values


def test_a_default_that_is_not_json_is_kept_and_not_published() -> None:
    marker = object()

    def f(x: Any = marker) -> None: ...

    assert "default" not in schema(f)["properties"]["x"]
    assert read(f, {})["x"] is marker


def test_mutable_defaults() -> None:
    def f(x: list[int] = [1]) -> None: ...  # noqa: B006 - people write it

    assert schema(f)["properties"]["x"]["default"] == [1]
    assert read(f, "{}") == {"x": [1]}


def test_no_parameters() -> None:
    def f() -> None: ...

    assert schema(f) == {"type": "object", "properties": {}, "additionalProperties": False}
    assert read(f, {}) == {}


def test_aliases_are_the_only_name() -> None:
    def f(from_: Annotated[str, Field(alias="from")]) -> None: ...

    assert list(schema(f)["properties"]) == ["from"]
    assert read(f, {"from": "a"}) == {"from_": "a"}
    with pytest.raises(InvalidArguments, match="unknown argument 'from_'; known: from"):
        read(f, {"from_": "a"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "key 'a' occurs twice"),
        ('{"a": 1, "\\u0061": 2}', "key 'a' occurs twice"),
        ('{"p": {"x": 1, "x": 2}, "a": 1}', "key 'x' occurs twice"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": 1', "not JSON"),
        ("[1]", "must be a JSON object"),
        ('{"a": 1} {}', "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"a": 1, "b": 1}', "unknown argument 'b'; known: a, p"),
    ],
)
def test_raw_json_that_readers_disagree_about_is_refused(text: str, message: str) -> None:
    def f(a: int, p: Point | None = None) -> None: ...

    with pytest.raises(InvalidArguments, match=message):
        read(f, text)


@given(st.dictionaries(st.sampled_from("abcd"), st.integers() | st.text() | st.none() | st.lists(st.integers())))
def test_text_and_values_are_read_alike(arguments: dict[str, Any]) -> None:
    def f(a: int, b: str = "", c: int | None = None, d: list[int] = []) -> None: ...  # noqa: B006

    def attempt(value: Any) -> Any:
        try:
            return read(f, value)
        except InvalidArguments as error:
            return str(error)

    assert attempt(json.dumps(arguments)) == attempt(arguments)


@given(st.dictionaries(st.sampled_from("abcd"), st.integers() | st.text() | st.none() | st.lists(st.integers())))
def test_what_is_read_is_what_the_schema_admits(arguments: dict[str, Any]) -> None:
    """An independent reader of the schema agrees with the validator."""

    def f(a: int, b: str = "", c: int | None = None, d: list[int] = []) -> None: ...  # noqa: B006

    try:
        read(f, arguments)
        admitted = True
    except InvalidArguments:
        admitted = False
    assert admitted == jsonschema.Draft202012Validator(schema(f)).is_valid(arguments)


def test_local_types_of_the_declaring_function() -> None:
    class Local(BaseModel):
        n: int

    @tool
    def f(x: Local) -> None: ...

    assert f.parameters.read({"x": {"n": 1}})["x"].n == 1


def test_the_context_is_hidden() -> None:
    def f(ctx: RunContext[int], a: int, /, b: int = 2) -> None: ...

    assert list(schema(f)["properties"]) == ["a", "b"]
    context: RunContext[Any] = RunContext(deps=1)
    parameters = tool(f).parameters
    assert parameters.arrange(parameters.read({"a": 5}), context) == ([context, 5], {"b": 2})


def test_bound_parameters_are_hidden_and_refused() -> None:
    def mine(user_id: Annotated[str, bind("user.id")], limit: int = 3) -> None: ...

    assert list(schema(mine)["properties"]) == ["limit"]
    with pytest.raises(InvalidArguments, match="unknown argument 'user_id'"):
        read(mine, {"user_id": "bob"})


@pytest.mark.parametrize("path", ["usr.id", "user", "user.name", "user.id.x", "run_id.x", ""])
def test_bindings_to_nowhere_are_refused(path: str) -> None:
    with pytest.raises(DefinitionError, match="bind"):
        bind(path)


def _untyped(a) -> None: ...  # type: ignore[no-untyped-def]
def _starred(*args: int) -> None: ...
def _keywords(**options: int) -> None: ...
def _two_contexts(a: RunContext[Any], b: RunContext[Any]) -> None: ...
def _impossible(a: Callable[[int], int]) -> None: ...
def _unknown(a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (_untyped, "parameter 'a' of tool '_untyped' has no type"),
        (_starred, r"takes \*args"),
        (_keywords, r"takes \*\*options"),
        (_two_contexts, "two contexts"),
        (_impossible, "has a type without a JSON Schema"),
        (_unknown, "names 'Nowhere', which is not defined"),
    ],
)
def test_signatures_that_cannot_be_tools(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        tool(function)


def test_foreign_schemas_are_checked_by_jsonschema() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "multipleOf": 3}}, "required": ["n"]}
    lookup = Tool.from_schema("lookup", schema, description="Look it up.", run=lambda n: n)
    assert lookup.definition.description == "Look it up."
    assert lookup.parameters.read({"n": 6, "more": 1}) == {"n": 6, "more": 1}
    with pytest.raises(InvalidArguments, match="n: 4 is not a multiple of 3"):
        lookup.parameters.read({"n": 4})
    with pytest.raises(InvalidArguments, match="'n' is a required property"):
        lookup.parameters.read({})


def test_arguments_are_an_object_also_where_the_schema_does_not_say_so() -> None:
    lookup = Tool.from_schema("lookup", {"properties": {"word": {"type": "string"}}})
    assert lookup.definition.schema == {"type": "object", "properties": {"word": {"type": "string"}}}
    grammar = Engine.shared(Vocabulary.byte_level()).compile(JsonSchema(dict(lookup.definition.schema)))
    assert not grammar.matcher().accept_bytes(b"null")


def test_foreign_schemas_that_are_none() -> None:
    with pytest.raises(DefinitionError, match="must be described by a schema of type 'object', not 'array'"):
        Tool.from_schema("lookup", {"type": "array"})
    broken = Tool.from_schema("lookup", {"type": "object", "properties": {"n": {"type": "intger"}}}, run=print)
    with pytest.raises(DefinitionError, match="'lookup' is not a JSON Schema"):
        broken.parameters.read({"n": 1})


def test_foreign_schemas_fetch_nothing() -> None:
    """A reference to another place stays unresolved: nobody's schema makes this process talk to the network."""
    schema = {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:9/schema.json"}}}
    lookup = Tool.from_schema("lookup", schema, run=lambda x: x, unsupported="relax")
    result = Agent(ScriptedModel([call("lookup", x=1), "x"]), tools=[lookup]).run_sync("?")
    assert (result.calls[0].status, result.calls[0].content) == ("failed", "lookup failed.")
    assert "Unresolvable" in repr(result.calls[0].exception)


def test_a_validator_that_breaks_is_a_failed_call() -> None:
    def broken(value: int) -> int:
        raise ZeroDivisionError

    def f(x: Annotated[int, AfterValidator(broken)]) -> None: ...

    result = Agent(ScriptedModel([call("f", x=1), "x"]), tools=[f]).run_sync("?")
    assert (result.calls[0].status, result.calls[0].content) == ("failed", "f failed.")
    assert isinstance(result.calls[0].exception, ZeroDivisionError)
