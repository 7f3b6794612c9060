"""Many at once: what runs keep of the memory, how long the event loop has to wait, what a second thread does for masks.

    python benchmarks/concurrency.py --rounds 4 --runs 200       random valid turns, no weights: memory after each round
    python benchmarks/concurrency.py --model smollm2 --runs 8    a real model: a heartbeat on the event loop
    python benchmarks/concurrency.py --masks 1 8 64 256          batches of masks, on one thread and on two

The heartbeat sleeps for 5 milliseconds again and again, and notes how much later it woke than it had asked for.

Masks are those of replies that have come to different places, in states that their matchers have not been in, as in a
decoding loop. Rounds on one thread and on two take turns, and each two of them are compared. Other processes must leave
both cores alone.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import resource
import time
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from data import vocabulary

from agentgram import Agent, Limits, ModelSettings, Principal, RunError, tool
from agentgram.engine import Engine, EngineOptions, JsonSchema, Matcher, Vocabulary, allocate_mask
from agentgram.models import load_model
from agentgram.testing import GrammarModel

BEAT = 0.005


@tool
async def order_status(order: int) -> str:
    """Look up the status of an order.

    Args:
        order: The order's number.
    """
    await asyncio.sleep(0.01)
    return f"order {order} is shipped"


def make(number: int) -> Any:
    async def work(order: int, note: str = "") -> str:
        """Do something."""
        return f"{order} {note}"

    return tool(name=f"tool_{number}")(work)


async def one(agent: Agent[Any, Any], number: int, tokens: int) -> int:
    settings = ModelSettings(max_tokens=tokens, seed=number, temperature=0.7)
    try:
        run = await agent.run(
            f"Where is order {number}?",
            user=Principal(f"user-{number % 50}"),
            tool_choice="required",
            settings=settings,
            limits=Limits(steps=2),
        )
    except RunError as error:
        run = error.run
    return int(run.usage.sampled_tokens)


async def heartbeat(late: list[float]) -> None:
    while True:
        start = time.perf_counter()
        await asyncio.sleep(BEAT)
        late.append(time.perf_counter() - start - BEAT)


async def measure(agent: Agent[Any, Any], runs: int, tokens: int) -> tuple[int, float, list[float]]:
    late: list[float] = []
    beating = asyncio.create_task(heartbeat(late))
    start = time.perf_counter()
    sampled = sum(await asyncio.gather(*(one(agent, number, tokens) for number in range(runs))))
    seconds = time.perf_counter() - start
    beating.cancel()
    return sampled, seconds, sorted(late)


def resident() -> float:
    """Megabytes that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def pulse(late: list[float]) -> str:
    """How late the heartbeats came; it says nothing where a model writes on the event loop itself, as noise does."""
    middle, most = 1000 * late[len(late) // 2], 1000 * late[-1]
    return f"; {len(late)} heartbeats, late by {middle:.1f} ms in the middle and {most:.1f} ms at most"


def replies(engine: Engine, count: int) -> list[Matcher]:
    """Matchers at different places of objects with forty optional properties."""
    values = [{"type": ["string", "null"], "maxLength": 40 + i} for i in range(40)]
    schema = {"type": "object", "properties": {f"key_{i}": value for i, value in enumerate(values)}}
    grammar = engine.compile(JsonSchema(schema))
    out = [grammar.matcher() for _ in range(count)]
    for i, matcher in enumerate(out):
        before = "".join(f'"key_{k}": null, ' for k in range(i % 30))
        assert matcher.accept_bytes(("{" + before + f'"key_{i % 30}": ' + ("", '"', '"a', "nu")[i % 4]).encode())
    return out


def batches(sizes: list[int], rounds: int = 40, repeats: int = 60) -> None:
    encoded = vocabulary("llama3")
    vocab = Vocabulary(encoded.tokens, special=encoded.special, end=[encoded.end])
    engines = [Engine(vocab, EngineOptions(threads=threads, jit="lazy")) for threads in (1, 2)]
    for size in sizes:
        starts = [replies(engine, size) for engine in engines]
        mask = allocate_mask(size, vocab.size)
        ones, ratios = [], []
        for _ in range(rounds):
            one, two = (round_of(engine, start, mask, repeats) for engine, start in zip(engines, starts, strict=True))
            ones.append(one)
            ratios.append(one / two)
        low, middle, high = quantiles(ratios, n=4)
        print(
            f"{size} masks: {1e6 * median(ones):.1f} us on one thread; on two {middle:.2f} times as fast "
            f"(half of the rounds: {low:.2f} to {high:.2f})",
            flush=True,
        )


def round_of(engine: Engine, start: list[Matcher], mask: Any, repeats: int) -> float:
    """Seconds that a batch takes, the median of those that find the other thread, and its core, awake."""
    times = []
    for _ in range(repeats):
        batch = [matcher.fork() for matcher in start]
        begun = time.perf_counter()
        engine.fill_masks(batch, mask)
        times.append(time.perf_counter() - begun)
    return median(times[repeats // 4 :])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a model by name or directory; none for random valid turns")
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=120, help="tokens in one turn")
    parser.add_argument("--masks", type=int, nargs="+", metavar="SIZE", help="only this: sizes of batches")
    given = parser.parse_args()
    if given.masks:
        batches(given.masks)
        return
    if given.model:
        agent: Agent[Any, Any] = Agent(load_model(given.model), tools=[order_status])
        asyncio.run(one(agent, 0, given.tokens))  # loading, compiling and the first pass are not what is measured
    else:
        agent = Agent(GrammarModel(), tools=[make(number) for number in range(100)])
    for number in range(given.rounds):
        sampled, seconds, late = asyncio.run(measure(agent, given.runs, given.tokens))
        gc.collect()
        print(
            f"round {number + 1}: {given.runs} runs, {sampled} tokens sampled in {seconds:.1f} s; "
            f"{resident():.0f} MB resident{pulse(late) if given.model else ''}",
            flush=True,
        )


if __name__ == "__main__":
    main()
