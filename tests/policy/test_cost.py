"""What a policy may cost, in things that can be counted: the same question gets the same objects, and nothing is built anew."""

from __future__ import annotations

import asyncio
from typing import Any

from agentgram import Policy, Principal, Tool, Toolset, allow, deny
from agentgram.engine import Engine, EngineOptions, Vocabulary, allocate_mask
from agentgram.formats import Request, get_format
from agentgram.models.decoding import Decoder
from agentgram.policy import le, same_as
from agentgram.rights import Rights

SCHEMA = {"type": "object", "properties": {"who": {"type": "string"}, "n": {"type": "integer"}}, "required": ["who"]}
TOOLS = Toolset(Tool.from_schema(f"tool_{n}", SCHEMA, run=print) for n in range(40))
POLICY = Policy(allow("tool_*", where={"who": same_as("user.id")}), allow("tool_1*", roles="a"), deny("tool_*9"))


def step(user: Principal, policy: Policy = POLICY) -> Any:
    return asyncio.run(Rights(policy=policy, user=user, tools=TOOLS).step())


def test_the_same_question_gets_the_same_objects() -> None:
    ann = Principal("ann")
    first = step(ann)
    assert step(Principal("ann")) is first
    assert step(Principal("bob")) is not first
    assert first.sampled is TOOLS.definitions, "nothing is steered: all users sample from the same tools"


def test_users_whom_the_rules_do_not_tell_apart_share_their_tools() -> None:
    policy = Policy(allow("*", where={"n": le(5)}))
    ann, bob = step(Principal("ann"), policy), step(Principal("bob"), policy)
    assert all(a is b for a, b in zip(ann.permitted, bob.permitted, strict=True))


def test_a_request_that_comes_again_is_not_declared_again(monkeypatch: Any) -> None:
    fmt = get_format("hermes")
    decoder = Decoder(Engine(Vocabulary.byte_level()), fmt)
    prompt = fmt.render(Request())
    narrow = step(Principal("ann"))
    first = [decoder.grammar(Request(tools=tools), prompt) for tools in (narrow.sampled, narrow.permitted)]
    monkeypatch.setattr(type(fmt), "grammar", None)
    narrow = step(Principal("ann"))
    again = [decoder.grammar(Request(tools=tools), prompt) for tools in (narrow.sampled, narrow.permitted)]
    assert [a is b for a, b in zip(first, again, strict=True)] == [True, True]


def test_a_change_of_the_rules_is_seen_at_once() -> None:
    policy = Policy(allow("*"))
    ann = Principal("ann")
    rights = Rights(policy=policy, user=ann, tools=TOOLS)
    assert len(asyncio.run(rights.step()).permitted) == 40
    policy.replace(allow("tool_1"))
    assert len(asyncio.run(rights.step()).permitted) == 1


def test_a_users_own_constant_makes_no_entries_of_masks() -> None:
    engine, fmt = Engine(Vocabulary.byte_level(), EngineOptions(jit="off")), get_format("hermes")
    mask = allocate_mask(1, engine.vocab.size)
    policy = Policy(allow("tool_0", where={"who": same_as("user.id")}))
    entries = []
    for number in range(10, 30):
        user = Principal(f"user_{number}")
        narrowed = policy.decide(user, TOOLS["tool_0"]).narrowed
        assert narrowed is not None
        matcher = engine.compile(fmt.grammar(Request(tools=[narrowed]))).matcher()
        for byte in fmt.print_call(narrowed, {"who": user.id, "n": 1}).encode():
            matcher.fill_mask(mask)
            assert matcher.accept(byte)
        entries.append(engine.stats().entries)
    assert entries[-1] <= entries[0] + 1, entries
