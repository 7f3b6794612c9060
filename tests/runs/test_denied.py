"""Refuse, do not steer: what a denied call leads to, and that nothing denied ever runs."""

from __future__ import annotations

from typing import Any

import pytest

from agentgram import Agent, LimitExceeded, Limits, Only, Policy, PolicyError, Principal, allow, ask, deny, tool
from agentgram.errors import DefinitionError
from agentgram.events import ApprovalNeeded, CallDenied, StepEnd
from agentgram.messages import ToolCall, ToolResultPart
from agentgram.testing import ScriptedModel, call

RAN: list[str] = []


@tool
def look(order: int) -> str:
    """Look."""
    RAN.append(f"look {order}")
    return "shipped"


@tool(tags="write")
def wipe() -> str:
    """Wipe."""
    RAN.append("wipe")
    return "wiped"


@tool
def wipe_cache() -> str:
    """Wipe the cache."""
    RAN.append("wipe_cache")
    return "wiped"


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


BOB = Principal("bob")
POLICY = Policy(allow("look", "wipe_cache"), deny("wipe"))


def agent(*turns: Any, **options: Any) -> Agent[Any, str]:
    return Agent(ScriptedModel(turns), tools=[look, wipe, wipe_cache], **{"policy": POLICY, **options})


def refusals(script: ScriptedModel, step: int) -> list[ToolResultPart]:
    return [p for p in script.requests[step].permitted.messages[-1].results if p.error]


def test_the_prompt_shows_what_is_permitted_and_sampling_sees_all() -> None:
    it = agent("done")
    it.run_sync("go", user=BOB)
    (request,) = it.model.requests
    assert [d.name for d in request.permitted.tools] == ["look", "wipe_cache"]
    assert [d.name for d in request.declared.tools] == ["look", "wipe", "wipe_cache"]
    assert request.declared.messages == request.permitted.messages
    assert request.denial("wipe", None) == ((), "deny('wipe')")
    assert request.denial("nothing", None) is None


def test_without_a_policy_everything_is_allowed() -> None:
    it = agent(call("wipe"), "done", policy=None)
    assert it.run_sync("go").denied == ()
    assert RAN == ["wipe"]
    assert it.model.requests[0].declared is it.model.requests[0].permitted


def test_tell() -> None:
    it = agent(["I will wipe.", call("wipe")], "I may not.")
    result = it.run_sync("go", user=BOB)
    assert RAN == []
    assert result.output == "I may not."
    assert result.status == "done"
    assert result.denied == (CallDenied(tool="wipe", rule="deny('wipe')"),)
    assert result.calls == ()
    assert result.usage.denied == 1
    assert [m.role for m in result.messages] == ["user", "assistant", "tool", "assistant"]
    assert result.messages[1].calls == (), "a denied call is never spelled"
    (refusal,) = refusals(it.model, 1)
    assert refusal.content == "There is no tool named 'wipe'. The tools are: look, wipe_cache."


def test_a_hidden_tool_reads_exactly_like_an_unknown_one() -> None:
    denied = agent(call("wipe"), "done")
    denied.run_sync("go", user=BOB)
    unknown = Agent(ScriptedModel([call("wipe"), "done"]), tools=[look, wipe_cache], policy=POLICY)
    unknown.run_sync("go", user=BOB)
    (hidden,), (missing,) = refusals(denied.model, 1), refusals(unknown.model, 1)
    assert (hidden.name, hidden.content, hidden.error) == (missing.name, missing.content, missing.error)
    assert "deny" not in hidden.content


def test_calls_before_the_denied_one_are_made() -> None:
    result = agent([call("look", order=1), call("wipe")], "done").run_sync("go", user=BOB)
    assert RAN == ["look 1"]
    assert [p.error for p in result.messages[2].results] == [False, True]


def test_stop() -> None:
    it = agent([call("look", order=1), call("wipe")], "never asked", on_denied="stop")
    result = it.run_sync("go", user=BOB)
    assert RAN == []
    assert result.status == "denied"
    assert result.output is None
    assert [d.tool for d in result.denied] == ["wipe"]
    assert it.model.left == 1
    assert result.messages[-1].results[0].content == "Not run: the run was stopped."


def test_steer_shows_no_denied_intent() -> None:
    it = agent(call("wipe"), on_denied="steer")
    result = it.run_sync("go", user=BOB)
    assert result.denied == ()
    assert RAN == []
    assert it.model.requests[0].on_denied == "steer"


def test_a_model_that_insists_runs_into_the_limit() -> None:
    with pytest.raises(LimitExceeded) as caught:
        agent(*[call("wipe")] * 5).run_sync("go", user=BOB, limits=Limits(steps=3))
    assert len(caught.value.run.denied) == 3
    assert RAN == []


class Unmasked:
    """A model that nobody masks, as one behind a server: it writes calls that are not permitted."""

    name = "unmasked"

    def __init__(self, *calls: str) -> None:
        self.calls = calls
        self.turn = 0

    async def stream(self, request: Any) -> Any:
        from agentgram.messages import assistant

        self.turn += 1
        calls = [ToolCall(name=name, arguments={}) for name in self.calls] if self.turn == 1 else []
        yield StepEnd(step=1, message=assistant("" if calls else "done", calls=calls))


def test_the_executor_decides_again() -> None:
    it = Agent(Unmasked("wipe", "wipe_cache"), tools=[look, wipe, wipe_cache], policy=POLICY)
    stream = it.stream_sync("go", user=BOB)
    assert CallDenied(tool="wipe", rule="deny('wipe')") in list(stream)
    assert RAN == ["wipe_cache"]
    result = stream.result
    assert [d.tool for d in result.denied] == ["wipe"]
    assert [r.name for r in result.calls] == ["wipe_cache"]
    assert result.messages[2].results[0].content == "There is no tool named 'wipe'. The tools are: look, wipe_cache."


def test_the_executor_stops_too() -> None:
    it = Agent(Unmasked("wipe"), tools=[look, wipe], policy=POLICY, on_denied="stop")
    assert it.run_sync("go", user=BOB).status == "denied"
    assert RAN == []


def test_rights_are_looked_up_at_each_step() -> None:
    policy = Policy(allow("*"))

    @tool
    def revoke() -> str:
        policy.replace(allow("look"))
        return "revoked"

    script = ScriptedModel([call("revoke"), call("wipe"), "done"])
    result = Agent(script, tools=[look, wipe, revoke], policy=policy).run_sync("go", user=BOB)
    assert [d.tool for d in result.denied] == ["wipe"]
    assert RAN == []


def test_while_a_policy_changes_both_versions_count() -> None:
    policy = Policy(allow("change", "look"))

    @tool(sequential=True)
    def change(to: str) -> str:
        policy.replace(*[allow("change", "wipe")] if to == "wipe" else [allow("change", "look")])
        return "changed"

    turn = [ToolCall(name="change", arguments={"to": "wipe"}), ToolCall(name="wipe", arguments={})]
    turn.append(ToolCall(name="look", arguments={"order": 1}))

    class Server(Unmasked):
        async def stream(self, request: Any) -> Any:
            from agentgram.messages import assistant

            self.turn += 1
            yield StepEnd(
                step=1, message=assistant("" if self.turn < 3 else "done", calls=turn if self.turn < 3 else ())
            )

    result = Agent(Server(), tools=[look, wipe, change], policy=policy).run_sync("go", user=BOB)
    assert [d.tool for d in result.denied] == ["wipe", "look", "look"], "what either of them denies is denied"
    assert RAN == ["wipe"], "in the next turn only the new one counts"


def test_a_policy_needs_a_user() -> None:
    with pytest.raises(PolicyError, match="each run needs user="):
        agent("done").run_sync("go")
    with pytest.raises(PolicyError, match="user is 'bob'"):
        agent("done", policy=None).run_sync("go", user="bob")


def test_a_choice_that_the_policy_leaves_nothing_of() -> None:
    nobody = Policy(allow("*", roles="admin"))
    with pytest.raises(PolicyError, match="the policy leaves bob none of the agent's tools"):
        agent("done", policy=nobody).run_sync("go", user=BOB, tool_choice="required")
    with pytest.raises(PolicyError, match=r"names 'wipe', which the policy denies to bob: deny\('wipe'\)"):
        agent("done").run_sync("go", user=BOB, tool_choice=Only("wipe"))
    with pytest.raises(DefinitionError, match="no tools to call"):
        Agent(ScriptedModel(["done"])).run_sync("go", tool_choice="required")
    with pytest.raises(DefinitionError, match=r"names 'lok', which is not among the tools\. Did you mean 'look'\?"):
        agent("done").run_sync("go", user=BOB, tool_choice=Only("lok"))
    assert agent("done", policy=nobody).run_sync("go", user=BOB).output == "done"


def test_a_person_is_asked() -> None:
    policy = Policy(allow("look"), ask("wipe", name="wiping needs a person"))
    it = agent([call("look", order=1), call("wipe")], policy=policy)
    stream = it.stream_sync("go", user=BOB)
    events = list(stream)
    result = stream.result
    assert RAN == ["look 1"], "the other call is done"
    assert result.status == "pending"
    (pending,) = result.pending
    assert (pending.id, pending.rule) == ("call_2", "wiping needs a person")
    assert ApprovalNeeded(call=pending.call, rule="wiping needs a person") in events
    assert [p.call_id for p in result.messages[-1].results] == ["call_1"]
