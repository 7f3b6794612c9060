"""What a policy may cost, in things that can be counted: the same question gets the same objects, and nothing is built anew."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentgram import Policy, Principal, Tool, Toolset, allow, deny
from agentgram.engine import Engine, EngineOptions, Vocabulary, allocate_mask
from agentgram.formats import Request, get_format
from agentgram.models.decoding import Decoder
from agentgram.policy import le, one_of, same_as, tainted, times
from agentgram.policy.state import Past
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


def own(user: Principal, policy: Policy, name: str = "tool_0") -> Any:
    """What ``who`` may be, as the user's tools have it."""
    (found,) = (tool for tool in step(user, policy).permitted if tool.name == name)
    return found.schema["properties"]["who"]


@given(st.permutations(["ann", "bob", "eve", "x", "$"]), st.randoms(use_true_random=False))
def test_no_user_sees_another_users_constant(ids: list[str], rng: random.Random) -> None:
    policy = Policy(allow("tool_*", where={"who": one_of(same_as("user.id"), "bob")}), deny("*", where={"who": "eve"}))
    users = [Principal(name) for name in (*ids, *rng.sample(ids, 3))]
    for user in users:
        allowed, denied = own(user, policy)["allOf"]
        assert allowed["enum"] == [user.id, "bob"]
        assert denied == {"not": {"enum": ["eve"]}}
    for user in users:  # once more, now that all are known
        fresh = Policy(*policy.rules).decide(user, TOOLS["tool_0"]).narrowed
        assert fresh is not None
        assert own(user, policy) == fresh.schema["properties"]["who"]


def test_users_of_the_same_rights_share_all_but_what_is_their_own() -> None:
    policy = Policy(allow("tool_1*", where={"who": same_as("user.id")}), allow("tool_2*", where={"n": le(5)}))
    ann, bob = step(Principal("ann"), policy), step(Principal("bob"), policy)
    assert ann.common is bob.common
    for mine, other, both in zip(ann.permitted, bob.permitted, ann.common, strict=True):
        assert (mine is other) == (both is mine) == mine.name.startswith("tool_2")
        assert both is mine or both is TOOLS[mine.name].definition, "in common is what is sampled from"


def test_where_wishes_are_a_users_own_nothing_is_in_common() -> None:
    policy = Policy(allow("tool_1*", where={"who": same_as("user.id", steer=True)}))
    ann, bob = step(Principal("ann"), policy), step(Principal("bob"), policy)
    assert ann.common is ann.permitted
    assert {tool.schema["properties"]["who"].get("const") for tool in ann.sampled} == {None, "ann"}
    assert {tool.schema["properties"]["who"].get("const") for tool in bob.sampled} == {None, "bob"}


def test_a_change_of_rules_forgets_what_it_touches_and_nothing_else() -> None:
    policy = Policy(allow("tool_1*", where={"who": same_as("user.id")}), allow("tool_2", where={"n": le(5)}))
    ann = Principal("ann")
    before = {tool.name: tool for tool in step(ann, policy).permitted}
    policy.replace(allow("tool_2", where={"n": le(4)}), allow("tool_1*", where={"who": same_as("user.id")}))
    after = {tool.name: tool for tool in step(ann, policy).permitted}
    assert after.keys() == before.keys()
    assert {name for name in after if after[name] is not before[name]} == {"tool_2"}
    assert after["tool_2"].schema["properties"]["n"]["maximum"] == 4
    policy.replace(allow("tool_1", where={"who": "bob"}))
    assert own(ann, policy, "tool_1") == {"type": "string", "const": "bob"}


def test_what_has_happened_changes_only_the_tools_that_it_is_about() -> None:
    rules = [allow("*", where={"who": same_as("user.id")}), deny("tool_1", when=tainted())]
    policy = Policy(*rules, allow("tool_2", when=times(2)))
    ann, clean, spoilt, late = Principal("ann"), Past(), Past(tainted=True), Past()
    late.count("allow('tool_2', when=times(2, per='run'))", "run", 2)
    before, after, again, none = (
        policy.narrow(ann, TOOLS.definitions, state=state) for state in (clean, spoilt, clean, late)
    )
    assert again.permitted is before.permitted
    kept = [tool for tool in before.permitted if tool.name != "tool_1"]
    assert all(a is b for a, b in zip(kept, after.permitted, strict=True))
    assert [a.name for a, b in zip(before.permitted, none.permitted, strict=True) if a is not b] == ["tool_2"]


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
