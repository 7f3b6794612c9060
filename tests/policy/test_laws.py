"""What the grammar can write is what ``decide`` admits: random policies, users, tools and arguments."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Annotated, Any, Literal

from hypothesis import event, given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from agentgram import Policy, Principal, Tool, allow, ask, deny, tool
from agentgram.engine import Engine, Grammar, JsonSchema, Vocabulary
from agentgram.errors import GrammarError
from agentgram.policy import Rule, after, ge, gt, le, lt, matches, one_of, same_as, tainted, times
from agentgram.testing import arguments
from agentgram.tools import InvalidArguments
from agentgram.tools.definition import ToolDefinition

ENGINE = Engine(Vocabulary.byte_level())


class Order(BaseModel):
    """Order."""

    number: Annotated[int, Field(alias="a")]
    price: Annotated[Decimal, Field(alias="b", ge=-1000)] = Decimal(50)
    name: Annotated[str | None, Field(alias="c")] = None
    kind: Annotated[Literal["x", "bob", 1], Field(alias="d")] = "x"

    def __call__(self) -> str:
        return ""


@tool(tags="write")
def plain(a: int, b: float = 50, c: Annotated[str, Field(max_length=4)] = "x", d: bool | int | None = None) -> None:
    """Plain."""


FOREIGN = Tool.from_schema(
    "foreign",
    {
        "properties": {"a": {"type": ["integer", "null"]}, "b": {"type": "number"}, "c": {"type": "string"}, "d": True},
        "additionalProperties": False,
    },
)
TOOLS = [tool(Order), plain, FOREIGN]
NUMBERS = [-1, 0, 1, 49, 50, 50.5, 51, 100]
TEXTS = ["", "x", "bob", "ann", "xx", 'quo"te', "\u00e9", "50"]
ODD = [None, True, False, [], ["x"], {"x": 1}]
VALUES = [*NUMBERS, *TEXTS, *ODD]

bounds = st.builds(lambda make, n: make(n), st.sampled_from([le, lt, ge, gt]), st.sampled_from(NUMBERS))
constants = st.lists(st.sampled_from(VALUES), min_size=1, max_size=3).map(lambda values: one_of(*values))
patterns = st.sampled_from(["x*", "bob|x", "[a-z]+", ".{0,2}"]).map(matches)
fragments = st.sampled_from([{"type": "string", "maxLength": 2}, {"type": "integer"}, {"minimum": 50}, {"enum": ["x"]}])
constraints = st.one_of(bounds, constants, patterns, fragments, st.just(same_as("user.id")))
constrained = st.one_of(constraints, st.tuples(bounds, bounds), st.tuples(constants, constants))
wheres = st.dictionaries(st.sampled_from("abcd"), constrained, max_size=2)
conditions = st.sampled_from([(), tainted(), times(1), times(2), after("plain"), after("plain", same="a")])


def rule(make: Any, where: Any, when: Any, roles: Any) -> Rule:
    made: Rule = make("*", where=where, when=when if make is not deny or when == tainted() else (), roles=roles)
    return made


rules = st.builds(rule, st.sampled_from([allow, allow, ask, deny]), wheres, conditions, st.sampled_from(["", "r"]).map(
    lambda role: {role} if role else None
))  # fmt: skip
users = st.builds(Principal, st.sampled_from(["bob", "ann"]), roles=st.sampled_from([(), "r"]))
FITTING = {
    "Order": {"a": NUMBERS, "b": NUMBERS, "c": [*TEXTS, None], "d": ["x", "bob", 1]},
    "plain": {"a": NUMBERS, "b": NUMBERS, "c": TEXTS, "d": [True, False, None, *NUMBERS]},
    "foreign": {"a": [None, *NUMBERS], "b": NUMBERS, "c": TEXTS, "d": VALUES},
}


@st.composite
def calls(draw: st.DrawFn, item: Tool[..., Any]) -> dict[str, Any]:
    """Arguments, most of which fit their tool."""
    values = {
        key: draw(st.sampled_from(VALUES if draw(st.integers(0, 19)) == 0 else fitting))
        for key, fitting in FITTING[item.name].items()
        if draw(st.integers(0, 5))
    }
    return {key: int(v) if key == "a" and isinstance(v, float) else v for key, v in values.items()}


class Past:
    """What has happened."""

    def __init__(self, tainted: bool, used: int, done: list[dict[str, Any]]) -> None:
        self.tainted, self._used, self._done = tainted, used, done

    def used(self, rule: str, per: str) -> int:
        return self._used

    def done(self, tool: str) -> list[dict[str, Any]]:
        return self._done if tool == "plain" else []


pasts = st.builds(
    Past, st.booleans(), st.integers(0, 2), st.lists(st.sampled_from([{"a": 1}, {"a": 50, "b": 1}, {}]), max_size=2)
)


def compiled(definition: ToolDefinition) -> Grammar | None:
    try:
        return ENGINE.compile(JsonSchema(dict(definition.schema), whitespace="canonical"))
    except GrammarError as error:
        if "nothing satisfies" not in str(error):
            raise
        return None


def writes(grammar: Grammar | None, values: dict[str, Any]) -> bool:
    if grammar is None:
        return False
    matcher = grammar.matcher()
    return bool(matcher.accept_bytes(json.dumps(values, ensure_ascii=False).encode())) and bool(matcher.can_end)


def readable(item: Tool[..., Any], values: dict[str, Any]) -> bool:
    try:
        item.parameters.read(values)
    except InvalidArguments:
        return False
    return True


@given(st.lists(rules, max_size=4), users, st.sampled_from(TOOLS), pasts, st.data())
def test_what_can_be_written_is_what_is_admitted(
    policy: list[Rule], user: Principal, item: Tool[..., Any], past: Past, data: Any
) -> None:
    tried = data.draw(st.lists(calls(item), min_size=1, max_size=8))
    asked = Policy(*policy)
    decision = asked.decide(user, item, state=past)
    whole = compiled(item.definition)
    grammar = None if decision.narrowed is None else compiled(decision.narrowed)
    sampled = None if decision.steered is None else compiled(decision.steered)
    for values in tried:
        admitted = asked.decide(user, item, values, state=past)
        expected = writes(whole, values) and not admitted.denied
        event(f"{expected}, of {writes(whole, values)}")
        assert writes(grammar, values) is expected, (values, admitted)
        assert not expected or writes(sampled, values), "what is permitted can be sampled"
        assert not admitted.denied or admitted.rule
        if readable(item, values):
            made = item.parameters.by_name(item.parameters.read(values))
            by_value = asked.decide(user, item, values, value=made, state=past)
            assert by_value == admitted or by_value.denied, "validation can only take away"


@given(st.data(), st.lists(rules, max_size=3), users, st.sampled_from(TOOLS))
def test_whatever_is_written_is_admitted(data: Any, policy: list[Rule], user: Principal, item: Tool[..., Any]) -> None:
    decision = Policy(*policy).decide(user, item)
    if decision.narrowed is None or compiled(decision.narrowed) is None:
        return
    values = data.draw(arguments(decision.narrowed, max_bytes=60))
    assert not Policy(*policy).decide(user, item, values).denied
    made = item.parameters.by_name(item.parameters.read(values))
    assert not Policy(*policy).decide(user, item, values, value=made).denied


@given(st.lists(rules, max_size=4), users, st.sampled_from(TOOLS), pasts, st.data(), st.randoms(use_true_random=False))
def test_order_changes_nothing(
    policy: list[Rule], user: Principal, item: Tool[..., Any], past: Past, data: Any, rng: random.Random
) -> None:
    values = data.draw(calls(item))
    shuffled = list(policy)
    rng.shuffle(shuffled)
    for what in (None, values):
        first = Policy(*policy).decide(user, item, what, state=past)
        again = Policy(*shuffled).decide(user, item, what, state=past)
        assert again == first
        again = Policy(*shuffled, *policy).decide(user, item, what, state=past)
        assert (again.outcome, again.rule, again.path) == (first.outcome, first.rule, first.path)


@given(st.lists(rules, max_size=3), rules, users, st.sampled_from(TOOLS), pasts, st.data())
def test_a_denial_only_takes_away_and_a_grant_only_adds(
    policy: list[Rule], more: Rule, user: Principal, item: Tool[..., Any], past: Past, data: Any
) -> None:
    values = data.draw(calls(item))
    before = Policy(*policy).decide(user, item, values, state=past)
    after_it = Policy(*policy, more).decide(user, item, values, state=past)
    if more.effect == "deny":
        assert after_it.denied or not before.denied
    else:
        assert not after_it.denied or before.denied
