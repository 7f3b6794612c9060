"""Calls that wait for a person: the state that leaves, the verdicts that come back, and what nobody gets past."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from agentgram import (
    Agent,
    Approvals,
    Audit,
    DefinitionError,
    Policy,
    PolicyError,
    Principal,
    RunResult,
    SQLiteSession,
    Tool,
    allow,
    approve,
    ask,
    reject,
    tool,
)
from agentgram.events import ApprovalNeeded, StepEnd, ToolCallEnd
from agentgram.messages import ToolCall, assistant
from agentgram.models.base import ModelEvent, ModelRequest
from agentgram.policy import le, tainted, times
from agentgram.policy.audit import read
from agentgram.testing import ScriptedModel, call

RAN: list[int] = []
KEY = b"a key of the server"
EVE, CAROL, DAVE = Principal("eve", roles="support"), Principal("carol", roles="manager"), Principal("dave")


@tool
def refund(amount: int) -> str:
    """Give money back."""
    RAN.append(amount)
    return f"{amount} refunded"


@tool
def look(n: int) -> str:
    """Look."""
    return f"{n} seen"


POLICY = Policy(
    allow("look"),
    allow("refund", where={"amount": le(50)}),
    ask("refund", roles="support", where={"amount": le(500)}, by="manager"),
)


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


def agent(*turns: Any, **options: Any) -> Agent[Any, str]:
    given = {"tools": [look, refund], "policy": POLICY, "approvals": Approvals(key=KEY), **options}
    return Agent(ScriptedModel([*turns, "done", "done"]), **given)


def asked(*calls: Any, **options: Any) -> tuple[Agent[Any, str], RunResult[str]]:
    it = agent(list(calls), **options)
    result = it.run_sync("Refund it.", user=EVE)
    assert result.status == "pending"
    assert result.state is not None
    return it, result


def state_of(result: RunResult[Any]) -> str:
    assert result.state is not None
    return result.state.to_json()


def test_the_other_calls_are_made_and_the_run_waits() -> None:
    events: list[Any] = []
    it = agent([call("look", n=1), call("refund", amount=100), call("refund", amount=10)])
    result = it.run_sync("x", user=EVE, on_event=lambda event, _: events.append(event))
    assert [c.value for c in result.calls] == ["1 seen", "10 refunded"]
    assert [p.arguments for p in result.pending] == [{"amount": 100}]
    assert [e.call.arguments for e in events if isinstance(e, ApprovalNeeded)] == [{"amount": 100}]
    assert result.output is None
    assert agent("fine").run_sync("x", user=EVE).state is None


def test_approve() -> None:
    it, result = asked(call("refund", amount=100))
    again = it.resume_sync(state_of(result), {result.pending[0].id: approve()}, user=EVE, by=CAROL)
    assert (again.status, again.output, RAN) == ("done", "done", [100])
    assert again.run_id == result.run_id
    assert [m.role for m in again.messages] == ["user", "assistant", "tool", "assistant"]
    assert again.messages[2].results[0].content == "100 refunded"
    assert again.usage.steps == 2, "what was used before counts"
    model = it.model
    assert isinstance(model, ScriptedModel)
    assert model.requests[-1].permitted.messages[-1].results[0].content == "100 refunded"


def test_reject() -> None:
    it, result = asked(call("refund", amount=100))
    again = it.resume_sync(state_of(result), {"call_1": reject("Too much.")}, user=EVE, by=CAROL)
    assert (again.status, RAN, again.calls) == ("done", [], ())
    (told,) = again.messages[2].results
    assert (told.content, told.error) == ("A person declined this call: Too much.", True)


def test_edited_arguments_are_decided_for_the_user() -> None:
    it, result = asked(call("refund", amount=100))
    again = it.resume_sync(state_of(result), {"call_1": approve(arguments={"amount": 200})}, user=EVE, by=CAROL)
    assert RAN == [200]
    assert again.calls[0].arguments == {"amount": 200}
    it, result = asked(call("refund", amount=100))
    again = it.resume_sync(state_of(result), {"call_1": approve(arguments={"amount": 501})}, user=EVE, by=CAROL)
    assert RAN == [200]
    assert [d.path for d in again.denied] == [("amount",)]
    it, result = asked(call("refund", amount=100))
    again = it.resume_sync(state_of(result), {"call_1": approve(arguments={"amount": "x"})}, user=EVE, by=CAROL)
    assert RAN == [200]
    assert [d.path for d in again.denied] == [("amount",)]


def test_some_now_and_some_later() -> None:
    it, result = asked(call("refund", amount=100), call("refund", amount=200))
    again = it.resume_sync(state_of(result), {"call_2": approve()}, user=EVE, by=CAROL)
    assert (again.status, RAN) == ("pending", [200])
    assert [p.id for p in again.pending] == ["call_1"]
    last = it.resume_sync(state_of(again), {"call_1": reject()}, user=EVE, by=CAROL)
    assert last.status == "done"
    assert [r.call_id for m in last.messages for r in m.results] == ["call_2", "call_1"]
    with pytest.raises(PolicyError, match="has been decided before"):
        it.resume_sync(state_of(result), {"call_2": approve()}, user=EVE, by=CAROL)


def test_once() -> None:
    it, result = asked(call("refund", amount=100))
    state = state_of(result)
    it.resume_sync(state, {"call_1": approve()}, user=EVE, by=CAROL)
    for verdict in (approve(), reject(), approve(arguments={"amount": 101})):
        with pytest.raises(PolicyError, match="a verdict counts once"):
            it.resume_sync(state, {"call_1": verdict}, user=EVE, by=CAROL)
    assert RAN == [100]


def test_once_also_where_other_processes_resume(tmp_path: Path) -> None:
    store = SQLiteSession(tmp_path / "used.db", "approvals")
    it, result = asked(call("refund", amount=100), approvals=Approvals(key=KEY, store=store))
    state = state_of(result)
    it.resume_sync(state, {"call_1": approve()}, user=EVE, by=CAROL)
    other = agent(approvals=Approvals(key=KEY, store=SQLiteSession(tmp_path / "used.db", "approvals")))
    with pytest.raises(PolicyError, match="a verdict counts once"):
        other.resume_sync(state, {"call_1": approve()}, user=EVE, by=CAROL)
    assert RAN == [100]


def test_with_a_session(tmp_path: Path) -> None:
    session = SQLiteSession(tmp_path / "chats.db", "a")
    it = agent(call("refund", amount=100))
    result = it.run_sync("x", user=EVE, session=session)
    state = state_of(result)
    assert json.loads(json.loads(state)["state"])["messages"] == [], "the session has them"
    with pytest.raises(PolicyError, match="of session 'a' and not of None"):
        it.resume_sync(state, {"call_1": approve()}, user=EVE, by=CAROL)
    again = it.resume_sync(state, {"call_1": approve()}, user=EVE, by=CAROL, session=session)
    assert (again.status, RAN) == ("done", [100])
    assert session.messages == again.messages
    with pytest.raises(PolicyError, match="has gone on since"):
        agent().resume_sync(state, {"call_1": approve()}, user=EVE, by=CAROL, session=session)


def test_a_conversation_that_has_gone_on(tmp_path: Path) -> None:
    session = SQLiteSession(tmp_path / "chats.db", "a")
    it = agent(call("refund", amount=100))
    state = state_of(it.run_sync("x", user=EVE, session=session))
    it.run_sync("Never mind.", user=EVE, session=session)
    with pytest.raises(PolicyError, match="has gone on since"):
        it.resume_sync(state, {"call_1": approve()}, user=EVE, by=CAROL, session=session)
    assert RAN == []
    assert "not known what became" in session.messages[2].results[0].content


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (None, "an approval is somebody's"),
        (EVE, "nobody approves for themselves"),
        (Principal("eve", roles="manager"), "nobody approves for themselves"),
        (DAVE, r"approved by one of \['manager'\], which dave is not"),
    ],
)
def test_who_may_approve(by: Principal | None, message: str) -> None:
    it, result = asked(call("refund", amount=100))
    with pytest.raises(PolicyError, match=message):
        it.resume_sync(state_of(result), {"call_1": approve()}, user=EVE, by=by)
    assert RAN == []
    it.resume_sync(state_of(result), {"call_1": approve()}, user=EVE, by=CAROL)
    assert RAN == [100], "what was refused has not used the state up"


def test_whoever_asked_may_think_better_of_it() -> None:
    it, result = asked(call("refund", amount=100))
    assert it.resume_sync(state_of(result), {"call_1": reject()}, user=EVE, by=EVE).status == "done"


def test_a_state_is_for_its_user_and_its_policy() -> None:
    it, result = asked(call("refund", amount=100))
    with pytest.raises(PolicyError, match="of user 'eve' and not of 'mallory'"):
        it.resume_sync(state_of(result), {"call_1": approve()}, user=Principal("mallory", roles="support"), by=CAROL)
    policy = Policy(*POLICY.rules)
    it, result = asked(call("refund", amount=100), policy=policy)
    policy.replace(*POLICY.rules, allow("nothing"))
    with pytest.raises(PolicyError, match="the policy has changed"):
        it.resume_sync(state_of(result), {"call_1": approve()}, user=EVE, by=CAROL)
    assert RAN == []


def test_rights_are_looked_up_again() -> None:
    it, result = asked(call("refund", amount=100))
    again = it.resume_sync(state_of(result), {"call_1": approve()}, user=Principal("eve"), by=CAROL)
    assert RAN == [], "eve is of no support any more"
    assert [d.tool for d in again.denied] == ["refund"]


def test_a_state_cannot_be_changed() -> None:
    it, result = asked(call("refund", amount=100))
    state = state_of(result)
    sealed = json.loads(state)
    for changed in (
        state.replace("100", "200"),
        json.dumps({**sealed, "seal": "0" * 64}),
        json.dumps({"state": sealed["state"]}),
        json.dumps({**sealed, "seal": 3}),
        sealed["state"],
        "[]",
        "nonsense",
        "",
    ):
        with pytest.raises(PolicyError, match="no state of a run that was sealed here"):
            it.resume_sync(changed, {"call_1": approve()}, user=EVE, by=CAROL)
    for other in (Approvals(), Approvals(key=b"another key of a server")):
        with pytest.raises(PolicyError, match="sealed under another key"):
            agent(approvals=other).resume_sync(state, {"call_1": approve()}, user=EVE, by=CAROL)
    assert RAN == []


def test_a_state_expires() -> None:
    it, result = asked(call("refund", amount=100), approvals=Approvals(seconds=0.05))
    time.sleep(0.06)
    with pytest.raises(PolicyError, match="has expired"):
        it.resume_sync(state_of(result), {"call_1": approve()}, user=EVE, by=CAROL)


def test_mistakes() -> None:
    it, result = asked(call("refund", amount=100))
    with pytest.raises(PolicyError, match=r"no call 'call_2' waits.*Did you mean 'call_1'"):
        it.resume_sync(state_of(result), {"call_2": approve()}, user=EVE, by=CAROL)
    with pytest.raises(PolicyError, match="is no verdict"):
        it.resume_sync(state_of(result), {"call_1": True}, user=EVE, by=CAROL)  # type: ignore[dict-item]
    with pytest.raises(DefinitionError, match="belongs to run"):
        it.resume_sync(state_of(result), {"call_1": approve()}, user=EVE, by=CAROL, messages=result.messages)
    with pytest.raises(DefinitionError, match="at least 16 bytes"):
        Approvals(key=b"short")
    with pytest.raises(DefinitionError, match="above 0"):
        Approvals(seconds=0)
    declared = Tool.from_schema("declared", {"type": "object"})
    it, result = asked(call("declared"), tools=[declared], policy=Policy(ask("declared")))
    with pytest.raises(DefinitionError, match="is only declared"):
        it.resume_sync(state_of(result), {"call_1": approve()}, user=EVE, by=CAROL)


def test_counts_and_taint_hold_across_the_pause() -> None:
    policy = Policy(ask("refund", when=times(1), name="once"), allow("look", when=tainted()))
    it = agent(call("refund", amount=1), call("look", n=1), call("refund", amount=2), policy=policy)
    result = it.run_sync("x", user=EVE)
    again = it.resume_sync(state_of(result), {"call_1": approve()}, user=EVE, by=CAROL)
    assert [c.name for c in again.calls] == ["refund", "look"]
    assert [d.rule for d in again.denied] == ["once"]


def test_the_audit_has_who_decided(tmp_path: Path) -> None:
    with Audit(tmp_path, key=KEY) as audit:
        it, result = asked(call("refund", amount=100), call("refund", amount=300), audit=audit)
        verdicts = {"call_1": approve(arguments={"amount": 90}), "call_2": reject()}
        it.resume_sync(state_of(result), verdicts, user=EVE, by=CAROL)
    told = [
        (r["event"], r.get("by"), r.get("status"), (r.get("arguments") or {}).get("amount")) for r in read(tmp_path)
    ]
    assert told == [
        ("asked", None, None, 100),
        ("asked", None, None, 300),
        ("ruled", "carol", "edited", 90),
        ("ruled", "carol", "rejected", 300),
        ("intent", None, None, 90),
        ("outcome", None, "done", None),
    ]


def test_sensitive_arguments_are_not_in_the_state() -> None:
    @tool
    def unlock(pin: SecretStr) -> str:
        """Unlock."""
        RAN.append(int(pin.get_secret_value()))
        return "unlocked"

    it, result = asked(call("unlock", pin="4711"), tools=[unlock], policy=Policy(ask("unlock")))
    state = state_of(result)
    assert "4711" not in state
    with pytest.raises(PolicyError, match="has sensitive arguments"):
        it.resume_sync(state, {"call_1": approve()}, user=EVE, by=CAROL)
    it.resume_sync(state, {"call_1": approve(arguments={"pin": "4711"})}, user=EVE, by=CAROL)
    assert RAN == [4711]


def test_no_earlier_state_of_a_run_lets_a_call_be_made_again() -> None:
    turns = [[call("refund", amount=100), call("refund", amount=200)], "done", "done"]
    agent = Agent(ScriptedModel(turns), tools=[refund], policy=POLICY, approvals=Approvals(key=KEY))
    first = agent.run_sync("x", user=EVE)
    one, two = (record.id for record in first.pending)
    assert first.state is not None
    early = first.state.to_json()
    second = agent.resume_sync(early, {one: approve()}, user=EVE, by=CAROL)
    assert second.state is not None
    late = second.state.to_json()
    assert agent.resume_sync(late, {two: approve()}, user=EVE, by=CAROL).status == "done"
    for state in (early, late):
        with pytest.raises(PolicyError, match="decided before"):
            agent.resume_sync(state, {two: approve()}, user=EVE, by=CAROL)
    assert RAN == [100, 200]


class Careless:
    """A model that gives the same id to every call."""

    name = "careless"

    def __init__(self) -> None:
        self.turns = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.turns += 1
        calls = [ToolCall(name="refund", arguments={"amount": n}, id="call_0") for n in (100, 200)]
        calls = calls if self.turns < 3 else []
        for number, each in enumerate(calls):
            yield ToolCallEnd(index=number, call=each)
        yield StepEnd(step=request.step, message=assistant("done" if not calls else "", calls=calls))


def test_calls_of_one_id_are_decided_one_by_one() -> None:
    agent = Agent(Careless(), tools=[refund], policy=POLICY, approvals=Approvals(key=KEY))
    result = agent.run_sync("x", user=EVE)
    for amounts in ([100], [100, 200], [100, 200, 100], [100, 200, 100, 200]):
        assert result.state is not None
        waiting = [record.id for record in result.pending]
        assert len(set(waiting)) == len(waiting)
        result = agent.resume_sync(result.state.to_json(), {waiting[0]: approve()}, user=EVE, by=CAROL)
        assert amounts == RAN
    assert result.status == "done"
