"""What a policy costs: 500 tools, 50 users, 200 rules.

    python benchmarks/policy.py

Prints the middle of many times: of one decision, of what a policy adds to a request (its step, and the second grammar,
where the user asked before and where not), and how many entries of masks the users' own constants have added.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from agentgram import Policy, Principal, Tool, Toolset, allow, deny
from agentgram.engine import Engine, Vocabulary, allocate_mask
from agentgram.formats import Request, get_format
from agentgram.messages import user
from agentgram.models.decoding import Decoder
from agentgram.policy import Rule, ge, gt, le, one_of, same_as
from agentgram.rights import Rights

TOOLS, USERS, RULES = 500, 50, 200
SCHEMA = {
    "type": "object",
    "properties": {
        "order": {"type": "integer"},
        "amount": {"type": "number"},
        "customer": {"type": "string"},
        "currency": {"type": "string", "enum": ["EUR", "USD", "GBP"]},
    },
    "required": ["order", "amount", "customer"],
    "additionalProperties": False,
}
CALL = {"order": 17, "amount": 20, "customer": "user_7", "currency": "EUR"}


def tools() -> Toolset:
    return Toolset(
        Tool.from_schema(f"area{n % 20}_tool{n}", SCHEMA, description=f"Does {n}.", run=print, tags=f"tag{n % 7}")
        for n in range(TOOLS)
    )


def rules() -> list[Rule]:
    rng = random.Random(1)
    out: list[Rule] = []
    for n in range(RULES):
        where = {"amount": (ge(0), le(50 + n)), "customer": same_as("user.id"), "currency": one_of("EUR", "USD")}
        some = dict(rng.sample(sorted(where.items(), key=str), rng.randint(0, 2)))
        if n % 10 == 9:
            out.append(deny(f"area{n % 20}_*", roles=f"role{n % 5}", where={"amount": gt(1000 + n)}))
        else:
            out.append(allow(f"area{n % 20}_*", roles=f"role{n % 5}", where=some))
    return out


def users() -> list[Principal]:
    return [Principal(f"user_{n}", roles={f"role{n % 5}", f"role{(n + 2) % 5}"}) for n in range(USERS)]


def middle(work: Callable[[Any], object], over: list[Any], rounds: int) -> float:
    """The middle of the times that the work takes, in microseconds."""
    times = []
    for _ in range(rounds):
        for item in over:
            start = time.perf_counter()
            work(item)
            times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def decisions() -> None:
    policy, them, known = Policy(*rules()), users(), list(tools())
    pairs = [(random.Random(n).choice(them), tool) for n, tool in enumerate(known)]
    first = middle(lambda p: policy.decide(p[0], p[1], CALL), pairs, 1)
    call = middle(lambda p: policy.decide(p[0], p[1], CALL), pairs, 20)
    tool = middle(lambda p: policy.decide(p[0], p[1]), pairs, 20)
    print(f"decide: {call:.1f} us a call, {tool:.1f} us a tool; {first:.1f} us for a user's first call of a tool")


def requests() -> None:
    policy, them, known = Policy(*rules()), users(), tools()
    engine, fmt = Engine(Vocabulary.byte_level()), get_format("hermes")
    decoder = Decoder(engine, fmt)
    messages = [user("x")]
    prompt = fmt.render(Request(messages=messages))

    def plain(_: Any) -> None:
        narrow = LOOP.run_until_complete(Rights(policy=None, user=None, tools=known).step())
        decoder.grammar(Request(messages=messages, tools=narrow.permitted), prompt).matcher()

    def guarded(who: Principal) -> None:
        narrow = LOOP.run_until_complete(Rights(policy=policy, user=who, tools=known).step())
        for definitions in (narrow.sampled, narrow.permitted):
            decoder.grammar(Request(messages=messages, tools=definitions), prompt).matcher()

    plain(None)
    without = middle(plain, [None], 200)
    first = middle(guarded, them, 1)
    again = middle(guarded, them[:30], 10)
    print(
        f"a request without a policy {without:7.1f} us; with one, a user's first {first:9.1f} us, later {again:7.1f} us"
    )
    print(f"added: {again - without:.1f} us to a request of a user who asked before")


def entries() -> None:
    engine, fmt = Engine(Vocabulary.byte_level()), get_format("hermes")
    tool = Tool.from_schema("pay", SCHEMA, run=print)
    policy = Policy(allow("pay", where={"customer": same_as("user.id")}))
    mask = allocate_mask(1, engine.vocab.size)
    before = 0
    for n, who in enumerate(users()):
        narrowed = policy.decide(who, tool).narrowed
        assert narrowed is not None
        text = fmt.print_call(narrowed, {**CALL, "customer": who.id})
        matcher = engine.compile(fmt.grammar(Request(tools=[narrowed]))).matcher()
        for byte in text.encode():
            matcher.fill_mask(mask)
            assert matcher.accept(byte)
        stats = engine.stats()
        if n == 0:
            before = stats.entries
    print(f"mask entries: {before} after the first user, {engine.stats().entries} after {USERS} users")


LOOP = asyncio.new_event_loop()

if __name__ == "__main__":
    decisions()
    requests()
    entries()
