"""A run that waits, and what goes on with it."""

from __future__ import annotations

from typing import assert_type

from agentgram import Agent, Approvals, Audit, Policy, Principal, RunResult, RunState, allow, approve, ask, reject
from agentgram.policy import le, one_of, same_as, tainted, times

policy = Policy(
    allow("refund", where={"amount": le(50), "to": same_as("user.id"), "currency": one_of("EUR")}),
    ask("refund", by="manager", when=[times(1, per="day"), tainted()]),
)
agent = Agent(
    "smollm2",
    policy=policy,
    output_type=int,
    visibility="masked",
    audit=Audit("audit", key=b"a key of sixteen"),
    approvals=Approvals(seconds=60),
)
result = agent.run_sync("go", user=Principal("alice"))
assert_type(result, RunResult[int])
assert_type(result.state, RunState | None)
if result.state is not None:
    verdicts = {"call_1": approve(arguments={"amount": 1}), "call_2": reject("no")}
    again = agent.resume_sync(result.state.to_json(), verdicts, user=Principal("alice"), by=Principal("carol"))
    assert_type(again, RunResult[int])
