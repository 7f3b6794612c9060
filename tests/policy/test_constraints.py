"""What an argument may be: each constraint's predicate, and that its schema implies it."""

from __future__ import annotations

import datetime
import enum
import json
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from agentgram import Policy, PolicyError, Principal, Tool, allow, ask, deny, tool
from agentgram.engine import Engine, JsonSchema, Vocabulary
from agentgram.errors import DefinitionError
from agentgram.policy import Constraint, after, ge, gt, le, lt, matches, one_of, same_as, tainted, times, under
from agentgram.policy.constraints import constraints_of
from agentgram.policy.fragments import fragment
from agentgram.tools.definition import ToolDefinition

BOB = Principal("bob")
ENGINE = Engine.shared(Vocabulary.byte_level())


def accepts(schema: Any, value: Any) -> bool:
    matcher = ENGINE.compile(JsonSchema(schema, whitespace="canonical")).matcher()
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return bool(matcher.accept_bytes(text.encode())) and bool(matcher.can_end)


VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 49, 50, 51, 49.5, 50.5, 1e300, -1e300, 10**20),
    *("", "50", "a", "ab", "bob", "Bob", "bob ", "bo\u0062", 'quo"te', "new\nline", "a\r", "é", "/data", "/data/x"),
    *("/data/../x", "/data/a/..", "/datax", "/data//x", "/data/.hidden", "/data/x/", "data/x", "/data/..x", "//data/x"),
    *([], ["a"], {}, {"a": 1}),
]
CONSTRAINTS: list[Constraint] = [
    *(le(50), lt(50), ge(50), gt(50), le(49.5), le(Decimal("0.1")), ge(-1), lt(10**20)),
    *(one_of("a", "ab"), one_of(1), one_of(True), one_of(None, 0), one_of(["a"], {"a": 1}), one_of("bob ", 50.5)),
    *(matches("a|ab"), matches("[a-z]*"), matches("."), matches(r"\w+"), matches(".*é?"), under("/data")),
    *(same_as("user.id"), one_of(same_as("user.id"), "a")),
    *constraints_of({"type": "string", "maxLength": 2}, "x"),
    *constraints_of({"type": "array", "items": {"type": "string"}}, "x"),
]


@pytest.mark.parametrize("constraint", [c.of(BOB) for c in CONSTRAINTS], ids=str)
def test_the_schema_is_the_predicate(constraint: Constraint) -> None:
    for value in VALUES:
        text = json.dumps(value, ensure_ascii=False)
        if "//" in text or value == 10**20:
            continue  # spelled otherwise in the strict grammar, or a float there
        assert accepts(constraint.schema(), text) == constraint.holds(value), value


@pytest.mark.parametrize("constraint", [c.of(BOB) for c in CONSTRAINTS if "under" not in str(c)], ids=str)
def test_the_complement_is_what_surely_fails(constraint: Constraint) -> None:
    for value in VALUES:
        if value == 10**20:
            continue
        text = json.dumps(value, ensure_ascii=False)
        assert accepts(constraint.complement(), text) == constraint.fails(value), value
        assert not (constraint.holds(value) and constraint.fails(value))


class Color(enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("constraint", "value", "holds", "fails"),
    [
        (le(50), Decimal(50), True, False),
        (le(50), Decimal("50.000000000000000000000001"), False, True),
        (le(50), Decimal("NaN"), False, False),
        (le(50), float("nan"), False, False),
        (le(50), float("-inf"), False, False),
        (le(0.1), Decimal("0.1"), True, False),
        (le(50), True, False, False),
        (one_of("red"), Color.RED, True, False),
        (one_of("2026-01-02"), datetime.date(2026, 1, 2), True, False),
        (one_of(50), Decimal("50.0"), True, False),
        (one_of(1), True, False, True),
        (one_of(0), False, False, True),
        (matches("a+"), Path("aa"), True, False),
        (matches("a"), "a\n", False, True),
        (under("/data"), Path("/data/x"), True, False),
        (one_of("bob"), object(), False, True),
    ],
)
def test_values_that_validation_made(constraint: Constraint, value: Any, holds: bool, fails: bool) -> None:
    assert (constraint.holds(value), constraint.fails(value)) == (holds, fails)


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "out").symlink_to(tmp_path)
    (tmp_path / "inside" / "self").symlink_to(tmp_path / "inside")
    allowed = under(tmp_path / "inside")
    assert allowed.holds(str(tmp_path / "inside" / "new.txt"))
    assert allowed.holds(str(tmp_path / "inside" / "self" / "new.txt"))
    assert not allowed.holds(str(tmp_path / "inside" / "out" / "secret.txt"))
    (tmp_path / "link").symlink_to(tmp_path / "inside")
    assert under(tmp_path / "link").holds(str(tmp_path / "link" / "x"))
    assert under(tmp_path / "link").holds(str(tmp_path / "inside" / "x"))


def test_relative_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for value, inside in (("reports/a.txt", True), ("a.txt", False), ("reports/../a", False), ("./reports/a", False)):
        assert under("reports").holds(value) is inside
        assert under("./reports/").holds(value) is inside
    assert under("reports").holds(str(tmp_path / "reports" / "a"))
    for value, inside in (("a.txt", True), ("./a.txt", True), ("../a.txt", False), ("/etc/passwd", False)):
        assert under(".").holds(value) is inside
        assert accepts(under(".").schema(), json.dumps(value)) is inside


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: le("50"), "a bound is a finite number"),
        (lambda: le(True), "a bound is a finite number"),
        (lambda: le(float("inf")), "a bound is a finite number"),
        (lambda: le(Decimal("0.12345678901234567890123")), "more digits"),
        (lambda: one_of(), "allows nothing"),
        (lambda: one_of({1}), "not a JSON value"),
        (lambda: one_of(float("nan")), "not a JSON value"),
        (lambda: one_of((1, 2)), "not a JSON value"),
        (lambda: matches("("), "cannot be enforced"),
        (lambda: matches(r"(a)\1"), "cannot be enforced"),
        (lambda: matches(3), "a pattern is a string"),
        (lambda: under(""), "name a directory"),
        (lambda: same_as("user.mail"), r"names nothing of the user\. Did you mean 'user.id'\?"),
        (lambda: allow("a", where={"x": object()}), "is no constraint"),
        (lambda: allow("a", where={"x": ()}), "is no constraint"),
        (lambda: allow("a", where={"x": {"type": "nothing"}}), "not a JSON Schema"),
        (lambda: allow("a", where={"x": {"$ref": "#/y"}}), r"holds a schema with \$ref"),
        (lambda: allow("a", where=[("x", 1)]), "must be a dict"),
        (lambda: deny("a", where={"x": under("/data")}), "cannot be denied"),
        (lambda: allow("a", when="tainted"), "use times"),
        (lambda: deny("a", when=times(1)), "belongs to allow"),
        (lambda: deny("a", when=after("b")), "belongs to allow"),
        (lambda: times(0), "whole number of at least 1"),
        (lambda: times(1, per="week"), "use 'run', 'session' or 'day'"),
        (lambda: after("", same="x"), "non-empty strings"),
        (lambda: ask("a", by=""), "by are non-empty strings"),
    ],
)
def test_mistakes(make: Any, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        make()


@tool
def refund(
    order: int,
    amount: Decimal,
    currency: Literal["EUR", "USD"] = "EUR",
    note: str | None = None,
    limit: Annotated[int | None, Field(ge=0)] = None,
) -> str:
    """Pay back."""
    return ""


class Mail(BaseModel):
    """Send a mail."""

    receiver: Annotated[str, Field(alias="to")]
    body: str = ""

    def __call__(self) -> str:
        return ""


mail = tool(Mail)


def narrowed(*rules: Any, item: Any = refund, user: Principal = BOB) -> ToolDefinition:
    definition = Policy(*rules).decide(user, item).narrowed
    assert definition is not None
    return definition


def test_what_is_said_of_an_argument_stands_at_the_argument() -> None:
    schema = narrowed(allow("refund", where={"order": le(50), "currency": "EUR"})).schema
    assert schema["properties"]["order"] == {"type": "integer", "maximum": 50}
    assert schema["properties"]["currency"]["default"] == "EUR"
    assert accepts(schema, {"order": 50, "amount": 1})
    assert not accepts(schema, {"order": 51, "amount": 1})
    assert not accepts(schema, {"order": 5, "amount": 1, "currency": "USD"})


def test_a_bound_closes_the_type() -> None:
    schema = narrowed(allow("refund", where={"amount": le(50)})).schema
    assert accepts(refund.definition.schema, {"order": 1, "amount": "500"})
    for amount, fits in ((50, True), (50.5, False), ("5", False), ("500", False), (None, False)):
        assert accepts(schema, {"order": 1, "amount": amount}) is fits


def test_a_default_has_to_satisfy_too() -> None:
    unlimited = narrowed(allow("refund", where={"limit": le(10)})).schema
    assert "limit" in unlimited["required"]
    assert "default" not in unlimited["properties"]["limit"]
    assert not accepts(unlimited, {"order": 1, "amount": 1})
    assert not accepts(unlimited, {"order": 1, "amount": 1, "limit": None})
    assert accepts(unlimited, {"order": 1, "amount": 1, "limit": 10})
    policy = Policy(allow("refund", where={"limit": le(10)}))
    assert policy.decide(BOB, refund, {"order": 1, "amount": 1}).path == ("limit",)
    assert "currency" not in narrowed(allow("refund", where={"currency": "EUR"})).schema["required"]
    assert "currency" in narrowed(allow("refund", where={"currency": "USD"})).schema["required"]
    assert "currency" in narrowed(allow("refund"), deny("refund", where={"currency": "EUR"})).schema["required"]


def test_a_default_that_only_describes_satisfies_nothing() -> None:
    schema = {"properties": {"limit": {"type": "integer", "default": 5}, "n": {"type": "integer", "default": 1}}}
    item = Tool.from_schema("f", schema, run=lambda limit=1000, n=1: limit)
    policy = Policy(allow("f", where={"limit": le(10)}))
    decision = policy.decide(BOB, item)
    assert decision.narrowed is not None
    assert decision.narrowed.schema["required"] == ["limit"]
    assert policy.decide(BOB, item, {}).path == ("limit",)
    assert policy.decide(BOB, item, {"limit": 10}).allowed


def test_arguments_go_by_the_name_that_is_published() -> None:
    policy = Policy(allow("Mail", where={"to": matches(r".*@acme\.com")}))
    assert policy.decide(BOB, mail, {"to": "a@acme.com"}).allowed
    assert policy.decide(BOB, mail, {"to": "a@acme.com.evil.org"}).path == ("to",)
    assert mail.parameters.by_name(mail.parameters.read({"to": "a@acme.com"})) == {"to": "a@acme.com", "body": ""}
    with pytest.raises(DefinitionError, match="argument 'receiver' of tool 'Mail'"):
        Policy(allow("Mail", where={"receiver": "x"})).decide(BOB, mail)


def test_an_argument_that_is_not_there_is_an_error_of_the_policy() -> None:
    for policy in (Policy(allow("*", where={"amonut": 1})), Policy(allow("*"), deny("*", where={"amonut": 1}))):
        with pytest.raises(DefinitionError, match=r"'amonut' of tool 'refund'.*Did you mean 'amount'\?"):
            policy.tools_for(BOB, [refund])
        with pytest.raises(DefinitionError, match="amonut"):
            policy.decide(BOB, refund, {"order": 1, "amount": 1})


def test_allows_unite_and_asks_add_to_them() -> None:
    policy = Policy(
        allow("refund", roles="support", where={"amount": le(50), "currency": "EUR"}),
        ask("refund", roles="support", where={"amount": le(500)}, by="manager"),
    )
    ann = Principal("ann", roles="support")
    small, large, huge = ({"order": 1, "amount": n} for n in (50, 51, 501))
    assert policy.decide(ann, refund).allowed
    assert policy.decide(ann, refund, small).allowed
    assert policy.decide(ann, refund, large).ask
    assert policy.decide(ann, refund, large).by == {"manager"}
    assert policy.decide(ann, refund, {**small, "currency": "USD"}).ask
    refused = policy.decide(ann, refund, huge)
    assert (refused.denied, refused.path) == (True, ("amount",))
    assert policy.decide(BOB, refund, small).denied
    schema = narrowed(*policy.rules, user=ann).schema
    for arguments, fits in ((small, True), (large, True), (huge, False)):
        assert accepts(schema, arguments) is fits
    assert str(policy.rules[0]) == "allow('refund', roles=['support'], where={'amount': le(50), 'currency': 'EUR'})"


def test_a_denial_takes_away_what_does_not_surely_escape_it() -> None:
    policy = Policy(allow("refund"), deny("refund", where={"amount": gt(100), "currency": "USD"}))
    for arguments, fits in (
        ({"order": 1, "amount": 100, "currency": "USD"}, True),
        ({"order": 1, "amount": 101, "currency": "USD"}, False),
        ({"order": 1, "amount": 101}, True),
        ({"order": 1, "amount": "1", "currency": "USD"}, False),
        ({"order": 1, "amount": "1", "currency": "EUR"}, True),
    ):
        assert accepts(narrowed(*policy.rules).schema, arguments) is fits, arguments
        assert policy.decide(BOB, refund, arguments).allowed is fits, arguments


def test_the_validated_value_counts_as_well() -> None:
    policy = Policy(allow("refund", where={"order": le(50)}))
    assert policy.decide(BOB, refund, {"order": 5, "amount": 1}, value={"order": 5}).allowed
    assert policy.decide(BOB, refund, {"order": 5, "amount": 1}, value={"order": 51}).path == ("order",)
    assert policy.decide(BOB, refund, {"order": 5, "amount": 1}, value={}).denied, "what is not there satisfies nothing"


def test_a_text_that_becomes_a_number_is_no_text() -> None:
    policy = Policy(allow("refund", where={"amount": matches("[0-9]{1,2}")}))
    arguments = {"order": 1, "amount": "50"}
    assert policy.decide(BOB, refund, arguments).allowed
    assert policy.decide(BOB, refund, arguments, value=refund.parameters.read(arguments)).denied


def test_steering_narrows_what_is_sampled_from() -> None:
    decision = Policy(allow("refund", where={"order": le(50, steer=True), "amount": le(10)})).decide(BOB, refund)
    assert decision.steered is not None
    assert decision.steered.schema["properties"]["order"]["maximum"] == 50
    assert decision.steered.schema["properties"]["amount"] == refund.definition.schema["properties"]["amount"]
    both = Policy(allow("refund", where={"order": le(50, steer=True)}), ask("refund", where={"order": le(99)}))
    assert both.decide(BOB, refund).steered == refund.definition


@pytest.mark.parametrize(
    ("schema", "value", "holds"),
    [
        ({"maximum": 50}, Decimal("50.00000000000000000001"), False),
        ({"maximum": 50}, Decimal("49.99999999999999999999"), True),
        ({"multipleOf": 0.1}, 0.3, True),
        ({"multipleOf": 0.1}, Decimal("0.3"), True),
        ({"items": {"multipleOf": 0.1}}, [Decimal("0.3"), 1], True),
        ({"multipleOf": 0.5}, 10**401, None),
        ({"multipleOf": 0.5}, float("inf"), None),
        ({"type": "integer"}, Decimal("5.0"), True),
        ({"type": "integer"}, Decimal("1e999999"), None),
        ({"const": 0.1}, Decimal("0.1"), True),
        ({"type": "string", "pattern": "^a$"}, "a\n", None),
        ({"type": "string", "pattern": r"^\d+$"}, "\u0661", None),
        ({"type": "string", "format": "email"}, "x@y z@", None),
        ({"type": "string", "format": "date-time"}, "tomorrow", None),
        ({"type": "string", "format": "date-time"}, "2026-01-01T00:00:00Z", True),
        ({"type": "object", "required": ["b", "a"]}, {"a": 1, "b": 2}, True),
    ],
)
def test_a_schema_is_judged_as_exactly_as_a_mask_holds_to_it(schema: Any, value: Any, holds: bool | None) -> None:
    (constraint,) = constraints_of(schema, "x")
    assert constraint.holds(value) is (holds is True)
    assert constraint.fails(value) is (holds is False)


def test_what_is_nested_too_deep_is_not_surely_anything() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for constraint in (one_of(1), *constraints_of({"type": "array"}, "x")):
        assert (constraint.holds(deep), constraint.fails(deep)) == (False, False)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: matches("a)|(?:.*"), "cannot be enforced.*closes nothing"),
        (lambda: matches("a)(b"), "cannot be enforced.*closes nothing"),
        (lambda: le(10**5000), "more than 308 digits"),
        (lambda: le(Decimal("1e999999999")), "more than 308 digits"),
        (lambda: constraints_of({"minimun": 3}, "x"), "'minimun' at /minimun: unknown; did you mean \"minimum\""),
        (lambda: constraints_of({"format": "emial"}, "x"), "emial is not a known format"),
        (lambda: constraints_of({"minimum": 3, "maximum": 1, "type": "number"}, "x"), "cannot be enforced"),
    ],
)
def test_a_constraint_that_would_not_say_what_it_seems_to_is_a_mistake(make: Any, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        make()


def test_a_file_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(
        """
        [[allow]]
        tools = ["refund"]
        roles = ["support"]
        where.amount = { ge = 1, le = 50 }
        where.currency = "EUR"
        where.order = { one_of = [1, 2], steer = true }
        when = { times = { most = 2, per = "session" }, after = { tool = "confirm", same = "order" } }

        [[allow]]
        tools = ["list_orders"]
        where.customer = "$user.id"
        where.price = "$$5"
        where.path = { under = "/data" }
        where.who = { one_of = ["$user.id", "all"] }
        where.shape = { schema = { type = "string" } }
        where.size = { schema = { type = "integer" }, steer = true }
        where.code = { matches = "[A-Z]+" }
        where.other = { same_as = "user.id" }

        [[ask]]
        tools = ["refund"]
        by = "manager"
        when = { after = "confirm" }

        [[deny]]
        tools = ["*"]
        tags = ["write"]
        when = { tainted = true }
        """
    )
    assert Policy.load(path).rules == (
        allow(
            "refund",
            roles="support",
            where={"amount": (ge(1), le(50)), "currency": "EUR", "order": one_of(1, 2, steer=True)},
            when=(times(2, per="session"), after("confirm", same="order")),
        ),
        allow(
            "list_orders",
            where={
                "customer": same_as("user.id"),
                "price": "$5",
                "path": under("/data"),
                "who": one_of(same_as("user.id"), "all"),
                "shape": {"type": "string"},
                "size": fragment({"type": "integer"}, "size", steer=True),
                "code": matches("[A-Z]+"),
                "other": same_as("user.id"),
            },
        ),
        ask("refund", by="manager", when=after("confirm")),
        deny("*", tags="write", when=tainted()),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("where.x = { lee = 50 }", r"where.x has lee = 50\. Did you mean 'le'\?"),
        ("where.x = { le = '50' }", "a bound is a finite number"),
        ("where.x = {}", "says nothing"),
        ("where.x = { le = 1, steer = 1 }", "must be true or false"),
        ("where.x = '$user.name'", "names nothing of the user"),
        ("where.x = 2026-01-01", "is no constraint"),
        ("when.tainted = false", "write tainted = true"),
        ("when.times = 3", "times = { most = 1"),
        ("when.times = { most = 'x' }", "whole number"),
        ("when.after = { same = 'x' }", "after = { tool"),
        ("by = 'x'", r"only \[\[ask\]\] has"),
    ],
)
def test_mistakes_in_a_file(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(f"[[allow]]\ntools = ['a']\n{text}\n")
    with pytest.raises(PolicyError, match=message):
        Policy.load(path)
    with pytest.raises(PolicyError, match="number 1"):
        Policy.load(path)


def test_a_policy_changes_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text("[[allow]]\ntools = ['refund']\n")
    policy = Policy.load(path)
    before, version = policy.snapshot(), policy.version
    path.write_text("[[allow]]\ntools = ['refund']\nwhere.order = 1\n")
    policy.reload()
    assert policy.decide(BOB, refund, {"order": 2, "amount": 1}).denied
    assert before.decide(BOB, refund, {"order": 2, "amount": 1}).allowed
    assert policy.version != version == before.version
    path.write_text("[[allow")
    with pytest.raises(PolicyError, match="is not TOML"):
        policy.reload()
    assert policy.decide(BOB, refund, {"order": 1, "amount": 1}).allowed
    with pytest.raises(PolicyError, match="not loaded from a file"):
        Policy().reload()
    assert Policy(allow("a"), deny("b")).version == Policy(deny("b"), allow("a")).version
