"""What a policy costs: 500 tools, 50 users, 200 rules.

    python benchmarks/policy.py

Prints the middle of many processor times: of one decision; of what a policy adds to a request (its step, and the second
grammar) for users who are known, new, or of whom something has changed; and how many entries of masks the users' own
constants add. No two of the tools have the same arguments, and all that a user may call are the user's own.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from agentgram import Policy, Principal, Tool, ToolDefinition, Toolset, allow, deny
from agentgram.engine import Engine, Vocabulary, allocate_mask
from agentgram.formats import Request, get_format
from agentgram.messages import user
from agentgram.models.decoding import Decoder
from agentgram.models.gate import Gate
from agentgram.policy import Rule, ge, gt, le, one_of, same_as, tainted, times
from agentgram.policy.answers import Narrowed
from agentgram.policy.state import Past
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


def schema(n: int) -> dict[str, Any]:
    """Arguments that no other tool has."""
    own = {f"option_{n}": {"type": "string", "maxLength": 10 + n, "description": f"An option of tool {n}."}}
    return {**SCHEMA, "properties": {**SCHEMA["properties"], **own}}


def tools() -> Toolset:
    return Toolset(
        Tool.from_schema(f"area{n % 20}_tool{n}", schema(n), description=f"Does {n}.", run=print, tags=f"tag{n % 7}")
        for n in range(TOOLS)
    )


def rules() -> list[Rule]:
    rng = random.Random(1)
    out: list[Rule] = []
    for n in range(RULES):
        where = {"amount": (ge(0), le(50 + n)), "customer": same_as("user.id"), "currency": one_of("EUR", "USD")}
        some = dict(rng.sample(sorted(where.items(), key=str), rng.randint(1, 2)))
        if n % 10 == 9:
            out.append(deny(f"area{n % 20}_*", roles=f"role{n % 5}", where={"amount": gt(1000 + n)}))
        else:
            out.append(allow(f"area{n % 20}_*", roles=f"role{n % 5}", where=some))
    return out


def users() -> list[Principal]:
    return [Principal(f"user_{n}", roles={f"role{n % 5}", f"role{(n + 2) % 5}"}) for n in range(USERS)]


def middle(work: Callable[[Any], object], over: list[Any], rounds: int) -> float:
    """The middle of the processor times that the work takes, in microseconds: what else runs does not count."""
    times = []
    for _ in range(rounds):
        for item in over:
            start = time.thread_time()
            work(item)
            times.append(time.thread_time() - start)
    return statistics.median(times) * 1e6


def decisions() -> None:
    policy, them, known = Policy(*rules()), users(), list(tools())
    pairs = [(random.Random(n).choice(them), tool) for n, tool in enumerate(known)]
    first = middle(lambda p: policy.decide(p[0], p[1], CALL), pairs, 1)
    call = middle(lambda p: policy.decide(p[0], p[1], CALL), pairs, 20)
    tool = middle(lambda p: policy.decide(p[0], p[1]), pairs, 20)
    print(f"decide: {call:.1f} us a call, {tool:.1f} us a tool; {first:.1f} us for a user's first call of a tool")


class Server:
    """What a server does of a request before the model is asked."""

    def __init__(self, rules: list[Rule]) -> None:
        self.policy, self.tools, self.format = Policy(*rules), tools(), get_format("hermes")
        self.decoder = Decoder(Engine(Vocabulary.byte_level()), self.format)
        self.messages = [user("x")]
        self.prompt = self.format.render(Request(messages=self.messages))

    def plain(self, _: Any = None) -> None:
        """A request without a policy."""
        self.request(Rights(policy=None, user=None, tools=self.tools))

    def guarded(self, who: Principal, past: Past | None = None) -> None:
        """A request of a user."""
        self.request(Rights(policy=self.policy, user=who, tools=self.tools, past=past or Past()))

    def request(self, rights: Rights) -> None:
        """What is sampled from, and where the gate of what is permitted begins."""
        narrow = LOOP.run_until_complete(rights.step())
        self.decoder.grammar(self.asked(narrow.sampled), self.prompt).matcher()
        if narrow.permitted is not narrow.sampled:
            self.gate(narrow)

    def gate(self, narrow: Narrowed) -> Gate:
        """As the decode loop makes it."""
        asked = map(self.asked, (narrow.permitted, narrow.common))
        return Gate(*asked, lambda request, keep: self.decoder.grammar(request, self.prompt, keep=keep))

    def asked(self, definitions: tuple[ToolDefinition, ...]) -> Request:
        return Request(messages=self.messages, tools=definitions)


def calls() -> None:
    server, them = Server(rules()), users()
    server.plain()
    server.guarded(them[0])
    gates = []
    for who in them[5:]:
        narrow = server.policy.narrow(who, server.tools.definitions)
        name = narrow.permitted[0].name
        begun = server.format.openers(server.asked(narrow.permitted[:1]))[name].encode()
        gate = server.gate(narrow)
        assert all(gate.matcher.accept(byte) for byte in begun)
        gates.append((gate, name, begun))
    exact = middle(lambda it: it[0].enter({it[1]}, list(it[2])), gates, 1)
    print(f"added to the first call of a tool in a turn, where it is the user's own: {exact:.1f} us")
    shown = [server.policy.narrow(who, server.tools.definitions).permitted for who in them[5:]]
    first = middle(lambda it: server.format.render(server.asked(it)), shown, 1)
    again = middle(lambda it: server.format.render(server.asked(it)), shown, 3)
    plain = middle(lambda _: server.format.render(server.asked(server.tools.definitions)), [None], 20)
    print(
        f"a prompt of {len(shown[0])} tools {again:.0f} us, a user's first {first:.0f} us; of all tools {plain:.0f} us"
    )


def requests() -> None:
    stateful = [deny("*", tags="tag1", when=tainted()), allow("area1_*", roles="role1", when=times(3))]
    server, them = Server([*rules(), *stateful]), users()
    bare = Server([])
    first_bare = middle(bare.plain, [None], 1)
    without = middle(bare.plain, [None], 200)
    print(f"without a policy: the first request {first_bare:9.1f} us, later ones {without:7.1f} us; with one, added:")

    def added(what: str, time_: float) -> None:
        print(f"{time_ - without:9.1f} us  {what}")

    narrow = server.policy.narrow(them[0], server.tools.definitions)
    other = server.policy.narrow(Principal("other", roles=them[0].roles), server.tools.definitions)
    own = sum(a is not b for a, b in zip(narrow.permitted, other.permitted, strict=True))
    print(f"a user may call {len(narrow.permitted)} of {TOOLS} tools, {own} of them in a way of their own")
    server = Server([*rules(), *stateful])
    server.plain()  # the tools are known to the engine
    added("the first request of all", middle(server.guarded, them[:1], 1))
    added("the first of users with other roles than any before", middle(server.guarded, them[1:5], 1))
    added("the first of users who share their roles with earlier ones", middle(server.guarded, them[5:], 1))
    known = them[-20:]
    added("known users", middle(server.guarded, known, 20))
    fresh, spoilt = Past(), Past(tainted=True)
    server.guarded(known[0], spoilt)
    first = middle(lambda who: server.guarded(who, spoilt), known[1:], 1)
    added("known users, the first time that they are tainted", first)
    turns = middle(lambda who: [server.guarded(who, past) for past in (spoilt, fresh)], known[1:], 20)
    added("known users, tainted and not in turn", turns / 2)
    counts = iter(range(10**9))

    def counted(who: Principal) -> None:
        past = Past()
        past.count(str(stateful[1]), "run", next(counts) % 3)
        server.guarded(who, past)

    added("known users whose counts have changed", middle(counted, known, 20))
    server.policy.replace(*rules(), *stateful, allow("area2_tool2", users="nobody"))
    added("known users, their first after a reload that is not about them", middle(server.guarded, known[1:], 1))
    server.policy.replace(*rules(), *stateful, deny("*_tool7*"))
    server.guarded(known[0])
    added("known users, their first after a reload that is", middle(server.guarded, known[1:], 1))


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


def main() -> None:
    try:
        decisions()
        requests()
        calls()
        entries()
    finally:
        LOOP.close()


LOOP = asyncio.new_event_loop()

if __name__ == "__main__":
    main()
