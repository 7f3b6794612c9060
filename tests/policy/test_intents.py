"""A model that wants an argument outside of the policy, in every format and for every kind of constraint."""

from __future__ import annotations

from typing import Any

import pytest

from agentgram import Agent, GrammarError, LimitExceeded, Limits, Policy, Principal, Tool, allow, ask, deny, tool
from agentgram.events import CallDenied, StepEnd, ToolCallEnd, ToolResult
from agentgram.formats import Request
from agentgram.messages import ToolCall, assistant, user
from agentgram.models.base import ModelRequest
from agentgram.policy import after, ge, gt, le, matches, one_of, same_as, times, under
from agentgram.testing import AdversarialModel, ScriptedModel, call
from tests.laws.shapes import EVERY_FORMAT, format_of

RAN: list[dict[str, Any]] = []
EVE = Principal("eve")


@tool
def pay(amount: int, to: str = "x", note: str | None = None, path: str = "/data/a") -> str:
    """Pay."""
    RAN.append({"amount": amount, "to": to, "note": note, "path": path})
    return "paid"


@tool
def look(n: int) -> str:
    """Look."""
    return f"{n}"


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


WHERE: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    # what is asked, a call that the model wants, one that it may make
    "le": ({"amount": le(50)}, {"amount": 500}, {"amount": 50}),
    "number in a list": ({"amount": one_of(1, 2)}, {"amount": 3}, {"amount": 2}),
    "constant": ({"to": "bob"}, {"amount": 1, "to": "bo"}, {"amount": 1, "to": "bob"}),
    "one_of": ({"to": one_of("bob", "bobby")}, {"amount": 1, "to": "bobb"}, {"amount": 1, "to": "bobby"}),
    "same_as": ({"to": same_as("user.id")}, {"amount": 1, "to": "bob"}, {"amount": 1, "to": "eve"}),
    "matches": ({"to": matches(r".*@acme\.com")}, {"amount": 1, "to": "a@mail.com"}, {"amount": 1, "to": "a@acme.com"}),
    "under": ({"path": under("/data")}, {"amount": 1, "path": "/data/../etc"}, {"amount": 1, "path": "/data/b"}),
    "schema": ({"to": {"type": "string", "maxLength": 3}}, {"amount": 1, "to": "abcd"}, {"amount": 1, "to": "abc"}),
    "null": ({"note": matches("a+")}, {"amount": 1, "note": None}, {"amount": 1, "note": "aa"}),
    "two rules": ({}, {"amount": 60, "to": "ann"}, {"amount": 60, "to": "bob"}),
    "default": ({"to": "bob"}, {"amount": 1}, {"amount": 1, "to": "bob"}),
}


def of_kind(kind: str) -> Policy:
    where = WHERE[kind][0]
    if where:
        return Policy(allow("look"), allow("pay", where=where, name="the rule"))
    return Policy(
        allow("look"),
        allow("pay", where={"amount": le(50), "to": one_of("ann", "bob")}, name="the rule"),
        allow("pay", where={"amount": le(500), "to": "bob"}, name="the second rule"),
    )


def run(model: Any, policy: Policy, **options: Any) -> Any:
    try:
        return Agent(model, tools=[pay, look], policy=policy, **options).run_sync("x", user=EVE, limits=Limits(steps=1))
    except LimitExceeded as error:
        return error.run


@EVERY_FORMAT
@pytest.mark.parametrize("kind", WHERE)
def test_the_wish_is_refused_once_and_by_its_argument(name: str, kind: str) -> None:
    where, wanted, permitted = WHERE[kind]
    policy = of_kind(kind)
    fmt = format_of(name)
    spelled = policy.decide(EVE, pay).steered
    assert spelled is not None
    result = run(AdversarialModel([fmt.print_call(spelled, wanted)], format=fmt, seed=1), policy)
    assert result.denied == (CallDenied(tool="pay", path=tuple(where) or ("amount",), rule="the rule"),)
    assert (RAN, result.usage.malformed, result.calls) == ([], 0, ())
    assert result.finish == "denied"
    result = run(AdversarialModel([fmt.print_call(spelled, permitted)], format=fmt, seed=1), policy)
    assert result.denied == ()
    assert [call.arguments for call in result.calls] == [permitted]
    assert len(RAN) == 1


@EVERY_FORMAT
@pytest.mark.parametrize("alone", [True, False])
def test_a_tool_of_which_nothing_is_left_to_a_user_is_refused_like_any_other(name: str, alone: bool) -> None:
    policy = Policy(allow("look"), allow("pay", where={"to": (same_as("user.id"), matches("x.*"))}, name="the rule"))
    fmt = format_of(name)
    wish = fmt.print_call(pay.definition, {"amount": 1, "to": "eve"})
    tools = [pay] if alone else [pay, look]
    for on_denied in ("tell", "steer"):
        agent = Agent(AdversarialModel([wish], format=fmt, seed=1), tools=tools, policy=policy, on_denied=on_denied)
        try:
            result = agent.run_sync("x", user=EVE, limits=Limits(steps=1))
        except LimitExceeded as error:
            result = error.run
        assert RAN == []
        if on_denied == "tell":
            assert result.denied == (CallDenied(tool="pay", path=("to",), rule="the rule"),)
    only = Agent(AdversarialModel([wish], format=fmt), tools=tools, policy=Policy(policy.rules[1]))
    with pytest.raises(GrammarError, match="nothing satisfies"):
        only.run_sync("x", user=EVE, tool_choice="required")


@EVERY_FORMAT
def test_where_nothing_is_allowed_no_text_is_a_call(name: str) -> None:
    fmt = format_of(name)
    wishes = [fmt.print_call(pay.definition, {"amount": 1}), fmt.print_call(pay.definition, {})]
    for denied in (Policy(), Policy(allow("pay", where={"to": (same_as("user.id"), matches("x.*"))}))):
        for seed in range(4):
            seen: list[Any] = []
            model = AdversarialModel([wishes[seed % 2]], format=fmt, seed=seed)
            run(model, denied, on_event=lambda event, _, seen=seen: seen.append(event))
            assert not [event for event in seen if isinstance(event, ToolCallEnd)], model.outputs


@EVERY_FORMAT
def test_a_rule_that_can_never_hold_takes_nothing_from_another_one(name: str) -> None:
    never = allow("pay", where={"amount": matches("x*")})
    policy = Policy(allow("look"), never, allow("pay", where={"amount": {"type": "integer"}, "to": "bob"}))
    fmt = format_of(name)
    wish = fmt.print_call(pay.definition, {"amount": 3, "to": "bob"})
    result = run(AdversarialModel([wish], format=fmt, seed=1), policy)
    assert (result.denied, [call.arguments for call in result.calls]) == ((), [{"amount": 3, "to": "bob"}])


@EVERY_FORMAT
def test_a_list_of_values_may_hold_any(name: str) -> None:
    item = Tool.from_schema(
        "give", {"properties": {"what": {}}, "required": ["what"]}, run=lambda what: RAN.append(what)
    )
    policy = Policy(allow("give", where={"what": one_of("x", 1, [], ["a"])}))
    fmt = format_of(name)
    for value in ("x", 1, ["a"]):
        spelled = policy.decide(EVE, item).steered
        assert spelled is not None
        wish = fmt.print_call(spelled, {"what": value})
        model = AdversarialModel([wish], format=fmt, seed=1)
        try:
            result = Agent(model, tools=[item], policy=policy).run_sync("x", user=EVE, limits=Limits(steps=1))
        except LimitExceeded as error:
            result = error.run
        assert [call.arguments for call in result.calls] == [{"what": value}], model.outputs


NUMBERS = {"500": True, "5E2": True, "5e+2": True, "500.0": True, "0.5e3": True, "1e999": True, "-0.1": True}
"""Spellings of numbers, and whether the number is refused; the others may be refused for their spelling."""
NUMBERS |= {"5E1": False, "50.0": False, "0.5e1": False, "0e9": False, "-0": False}


@EVERY_FORMAT
@pytest.mark.parametrize("spelling", NUMBERS)
def test_a_number_is_refused_by_its_argument_however_it_is_spelled(name: str, spelling: str) -> None:
    @tool
    def give(amount: float, to: str = "x") -> str:
        """Give."""
        RAN.append({"amount": amount})
        return "given"

    fmt = format_of(name)
    wish = fmt.print_call(give.definition, {"amount": 12345, "to": "bob"}).replace("12345", spelling)
    for asked in ((ge(0), le(50)), one_of(0, 5, 50)):
        policy = Policy(allow("give", where={"amount": asked, "to": "bob"}, name="the rule"))
        model = AdversarialModel([wish], format=fmt, seed=1)
        try:
            result = Agent(model, tools=[give], policy=policy).run_sync("x", user=EVE, limits=Limits(steps=1))
        except LimitExceeded as error:
            result = error.run
        if NUMBERS[spelling] or result.denied:
            assert result.denied == (CallDenied(tool="give", path=("amount",), rule="the rule"),)
            assert RAN == []
        else:
            assert 0 <= RAN.pop()["amount"] <= 50


def python(**options: Any) -> Tool[..., Any]:
    """A tool that harmony calls with plain text."""
    schema = {"properties": {"code": {"type": "string"}}, "required": ["code"], "additionalProperties": False}
    return Tool.from_schema("python", schema, run=lambda code: RAN.append({"code": code}), **options)


@pytest.mark.parametrize("wanted", ["1 < 2", "print(1)", "import os", ""])
def test_plain_text_is_held_to_the_texts_that_are_listed(wanted: str) -> None:
    fmt, item = format_of("harmony"), python()
    policy = Policy(allow("python", where={"code": one_of("print(1)", "1 < 2", "print(1) <|call|>")}, name="the rule"))
    model = AdversarialModel([fmt.print_call(item.definition, {"code": wanted})], format=fmt, seed=1)
    try:
        result = Agent(model, tools=[item], policy=policy).run_sync("x", user=EVE, limits=Limits(steps=1))
    except LimitExceeded as error:
        result = error.run
    if wanted in ("1 < 2", "print(1)"):
        assert ([call.arguments for call in result.calls], result.denied) == ([{"code": wanted}], ())
    else:
        assert (RAN, result.denied) == ([], (CallDenied(tool="python", path=("code",), rule="the rule"),))
        assert model.outputs[-1] == b""


@pytest.mark.parametrize("asked", [matches("print.*"), {"type": "string", "maxLength": 9}])
def test_plain_text_that_no_grammar_holds_is_refused_unless_the_tool_relaxes_it(asked: Any) -> None:
    fmt = format_of("harmony")
    policy = Policy(allow("python", where={"code": asked}, name="the rule"))
    wish = fmt.print_call(python().definition, {"code": "import os;"})
    with pytest.raises(GrammarError, match=r"written as plain text.*(pattern|maxLength).*another name"):
        Agent(AdversarialModel([wish], format=fmt), tools=[python()], policy=policy).run_sync("x", user=EVE)
    relaxed = Agent(AdversarialModel([wish], format=fmt), tools=[python(unsupported="relax")], policy=policy)
    with pytest.raises(LimitExceeded) as failed:
        relaxed.run_sync("x", user=EVE, limits=Limits(steps=1))
    assert failed.value.run.denied == (CallDenied(tool="python", path=("code",), rule="the rule"),)
    assert RAN == []


def test_steering_is_chosen_for_one_constraint() -> None:
    policy = Policy(allow("look"), allow("pay", where={"amount": le(50, steer=True), "to": "bob"}))
    fmt = format_of("hermes")
    too_much = fmt.print_call(pay.definition, {"amount": 500, "to": "bob"})
    to_another = fmt.print_call(pay.definition, {"amount": 5, "to": "ann"})
    for seed in range(5):
        result = run(AdversarialModel([too_much], seed=seed), policy)
        assert ("amount",) not in [d.path for d in result.denied]
    result = run(AdversarialModel([to_another], seed=1), policy)
    assert [d.path for d in result.denied] == [("to",)]


def test_an_agent_may_steer_as_a_whole() -> None:
    policy = Policy(allow("look"), allow("pay", where={"amount": le(50)}))
    wish = format_of("hermes").print_call(pay.definition, {"amount": 500})
    result = run(AdversarialModel([wish], seed=1), policy, on_denied="steer")
    assert result.denied == ()
    assert {c.arguments["amount"] <= 50 for c in result.calls if c.name == "pay"} == {True}


@pytest.mark.parametrize("on_denied", ["tell", "stop"])
def test_what_the_model_is_told(on_denied: Any) -> None:
    policy = Policy(allow("look"), allow("pay", where={"amount": le(50)}))
    script = ScriptedModel([call("pay", amount=500), "I may not."])
    result = Agent(script, tools=[pay, look], policy=policy, on_denied=on_denied).run_sync("x", user=EVE)
    assert result.status == ("done" if on_denied == "tell" else "denied")
    assert [(d.tool, d.path) for d in result.denied] == [("pay", ("amount",))]
    if on_denied == "tell":
        (told,) = script.requests[1].permitted.messages[-1].results
        assert told.content == ('pay cannot be called with this amount. It has to fit {"type":"integer","maximum":50}.')
        assert (told.error, told.trusted) == (True, True)


class Server:
    """A model that nobody masks."""

    name = "server"

    def __init__(self, *calls: ToolCall) -> None:
        self.calls, self.turn = calls, 0

    async def stream(self, request: ModelRequest) -> Any:
        self.turn += 1
        yield StepEnd(step=1, message=assistant("" if self.turn == 1 else "done", calls=self.calls * (self.turn == 1)))


@pytest.mark.parametrize("kind", WHERE)
def test_the_executor_refuses_what_no_mask_did(kind: str) -> None:
    where, wanted, permitted = WHERE[kind]
    policy = of_kind(kind)
    model = Server(*(ToolCall(name="pay", arguments=arguments) for arguments in (wanted, permitted)))
    result = Agent(model, tools=[pay, look], policy=policy).run_sync("x", user=EVE)
    assert [d.path for d in result.denied] == [tuple(where) or ("amount",)]
    assert [c.arguments for c in result.calls] == [permitted]
    assert len(RAN) == 1


def test_a_denial_may_speak_of_arguments() -> None:
    policy = Policy(allow("*"), deny("pay", where={"amount": gt(50)}))
    wish = format_of("hermes").print_call(pay.definition, {"amount": 51})
    result = run(AdversarialModel([wish], seed=1), policy)
    assert [(d.tool, d.path, d.rule) for d in result.denied] == [
        ("pay", ("amount",), "deny('pay', where={'amount': gt(50)})")
    ]


@EVERY_FORMAT
def test_a_turn_holds_no_more_calls_than_are_left(name: str) -> None:
    fmt = format_of(name)
    policy = Policy(allow("look", when=times(1), name="once"), allow("pay"))
    model = ScriptedModel([[call("look", n=1), call("look", n=2)], "done"])
    result = Agent(model, tools=[pay, look], policy=policy).run_sync("x", user=EVE)
    assert [(d.tool, d.rule) for d in result.denied] == [("look", "once")]
    assert [c.arguments for c in result.calls] == [{"n": 1}]
    if not fmt.parallel:
        return
    one = fmt.print_call(look.definition, {"n": 1})
    declared = Request(messages=[user("x")], tools=(look.definition, pay.definition))
    pairs = [one + gap + one for gap in ("", "\n", "; ", " ")] + [f"{one[:-1]}, {one[1:]}"]
    masked = AdversarialModel(pairs, format=fmt, seed=1)
    twice = 0
    for _ in pairs:
        request = ModelRequest(declared=declared, permitted=declared, left={"look": 1})
        events = list(masked.turn(request))
        assert sum(isinstance(e, ToolCallEnd) and e.call.name == "look" for e in events) <= 1
        twice += sum(isinstance(e, CallDenied) for e in events)
        assert masked.outputs[-1].count(b"look") <= 1
    assert twice > 0


def test_a_confirmation_unlocks_what_was_confirmed() -> None:
    policy = Policy(allow("look"), allow("pay", when=after("look", same=()), where={"to": "bob"}))
    model = ScriptedModel([call("pay", amount=1, to="bob"), call("look", n=1), call("pay", amount=1, to="bob"), "done"])
    result = Agent(model, tools=[pay, look], policy=policy).run_sync("x", user=EVE)
    assert [d.tool for d in result.denied] == ["pay"]
    assert [c.name for c in result.calls] == ["look", "pay"]

    @tool
    def confirm(amount: int) -> str:
        """Confirm."""
        return "confirmed"

    bound = Policy(allow("confirm"), allow("pay", when=after("confirm", same="amount")))
    turns = [[call("confirm", amount=1), call("pay", amount=1)], call("pay", amount=2), call("pay", amount=1), "done"]
    result = Agent(ScriptedModel(turns), tools=[pay, confirm], policy=bound).run_sync("x", user=EVE)
    assert [(d.tool, d.path) for d in result.denied] == [("pay", ()), ("pay", ("amount",))]
    assert [(c.name, c.arguments) for c in result.calls] == [("confirm", {"amount": 1}), ("pay", {"amount": 1})]


def test_masked_tools_are_shown_and_refused() -> None:
    policy = Policy(allow("look"))
    script = ScriptedModel([call("pay", amount=1), "done"])
    result = Agent(script, tools=[pay, look], policy=policy, visibility="masked").run_sync("x", user=EVE)
    request = script.requests[0]
    assert [t.name for t in request.shown.tools] == ["pay", "look"]
    assert [t.name for t in request.permitted.tools] == ["look"]
    assert [d.tool for d in result.denied] == ["pay"]
    assert RAN == []


def test_people_are_asked_about_what_needs_them() -> None:
    policy = Policy(allow("pay", where={"amount": le(50)}), ask("pay", where={"amount": le(500)}, name="larger"))
    script = ScriptedModel([[call("pay", amount=50), call("pay", amount=500)]])
    result = Agent(script, tools=[pay, look], policy=policy).run_sync("x", user=EVE)
    assert result.status == "pending"
    assert [c.arguments for c in result.calls] == [{"amount": 50}]
    assert [(c.arguments, c.rule) for c in result.pending] == [({"amount": 500}, "larger")]


def test_events_end_with_the_refusal() -> None:
    policy = Policy(allow("look"), allow("pay", where={"amount": le(50)}))
    wish = format_of("hermes").print_call(pay.definition, {"amount": 500})
    seen: list[Any] = []
    run(AdversarialModel([wish], seed=1), policy, on_event=lambda event, _: seen.append(event))
    kinds = [type(event) for event in seen]
    assert kinds.count(CallDenied) == 1
    assert ToolCallEnd not in kinds
    assert ToolResult not in kinds
