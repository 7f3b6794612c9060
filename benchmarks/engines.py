"""agentgram, xgrammar and llguidance on tool sets that change with every request.

Each request has its own random choice among a pool of BFCL's tools, as users with different rights have; a reply is
prose, a call, prose and another call. Each engine has a process of its own for every number of tools, so that they do
not disturb one another, and they take turns, so that a busy machine disturbs all alike.

    python benchmarks/engines.py --tools 10 100 500 --repeats 3 --docs docs/performance.md

Compared with engines that are installed (pip install xgrammar==0.2.9 llguidance==1.9.1). The exit code is 1 if
agentgram refused a token of a valid reply.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from contestants import CONTESTANTS, PINS, Agentgram, Timed, now, since, time_jobs, time_request
from data import END, TRIGGER, VOCABULARIES, Function, Job, begin, functions, jobs, read_lines, vocabulary
from tables import bars, digits, duration, markdown, mean, median, percentile, rewrite

Row = dict[str, Any]
"""What one process found: its engine, number of tools and vocabulary, and figures, in microseconds."""


FLUSHED = 64
"""Tokens that are timed with flushed caches: flushing takes a thousand times as long as a token."""


# in the process of one engine


def work(given: argparse.Namespace) -> Row:
    """Times one engine at one number of tools."""
    encoded = vocabulary(given.vocabulary)
    if given.engine == "agent":
        from first_mask import measure  # not above: importing agentgram is part of what is timed

        return people(measure(encoded, given.tools[0], given.users, given.seed), given.users)
    pool = functions(given.pool, given.seed)
    work = list(jobs(pool, given.requests, given.tools[0], encoded, given.seed))
    start = now()
    contestant = CONTESTANTS[given.engine](encoded)
    setup = since(start)
    declaring, timed = time_jobs(contestant, pool, work, given.seconds)
    row = {"setup": setup, "declaring": declaring, "memory": contestant.memory(), **figures(timed)}
    return {**row, **limits(contestant, pool, work[-1])} if isinstance(contestant, Agentgram) else row


def figures(timed: Sequence[Timed]) -> Row:
    """Of the first request of the process, and of the later ones."""
    first, *rest = timed
    later = [request for request in rest if not request.refused]
    tokens = [us for request in later for us in request.tokens]
    return {
        "cold first": first.first,
        "cold": first.total,
        "compile": median([request.compile for request in later]),
        "first": median([request.first for request in later]),
        "median": median(tokens),
        "mean": mean(tokens),
        "p99": percentile(tokens, 0.99),
        "slowest": max(tokens, default=math.nan),
        "total": median([request.total for request in later]),
        "requests": len(timed),
        "refused": sum(bool(request.refused) for request in timed),
    }


def people(runs: Sequence[dict[str, float]], users: int) -> Row:
    """Of users' first and of their second runs; the very first of all is apart."""
    parts = {"first": runs[1:users] or runs[:users], "next": runs[users:]}
    row: Row = {f"{when} {key}": median([r[key] for r in some]) for when, some in parts.items() for key in runs[0]}
    return {**row, "cold": runs[0]["all"]}


def limits(contestant: Agentgram, pool: Sequence[Function], job: Job) -> Row:
    """What no mask can be faster than, and what the same work takes with caches as a model's pass leaves them."""
    chosen = [pool[index] for index in job.tools]
    make = partial(contestant.compile, [contestant.declare(tool) for tool in chosen])
    fill, accept = contestant.steps(make())
    accept(job.tokens[0])
    fill()
    large = np.zeros(64 << 20, np.uint8)
    other = np.zeros_like(contestant.mask)
    texts = {tool.name: json.dumps(tool.schema) for tool in chosen}

    def flush() -> None:
        large.__iadd__(1)

    def raw() -> None:
        tags = [contestant.api.Tag(begin(name), contestant.api.JsonSchema(text), END) for name, text in texts.items()]
        fill, _ = contestant.steps(contestant.engine.compile(contestant.api.Dispatch(tags, [TRIGGER])))
        fill()

    def again() -> list[float]:
        """The reply once more, timed by the wall clock: reading the processor's would flush caches."""
        fill, accept = contestant.steps(make())
        out = []
        for token in job.tokens:
            start = time.perf_counter_ns()
            fill()
            accept(token)
            out.append((time.perf_counter_ns() - start) / 1e3)
        return out

    raw()
    flushed = time_request(contestant, make, job.tokens[:FLUSHED], before=flush).tokens
    return {
        "bytes": contestant.mask.nbytes,
        "clock": median(spent(int, 2000)),
        "memcpy": median(spent(partial(np.copyto, other, contestant.mask), 2000)),
        "copy": median(spent(fill, 2000)),
        "again": median([us for _ in range(10) for us in again()]),
        "raw": median([timed(raw) for _ in range(5)]),
        "flushed copy": median(spent(fill, FLUSHED, flush)),
        "flushed median": median(flushed),
        "flushed mean": mean(flushed),
    }


def timed(run: Callable[[], Any]) -> float:
    start = now()
    run()
    return since(start)


def spent(run: Callable[[], Any], count: int, before: Callable[[], Any] | None = None) -> list[float]:
    """Microseconds of each of ``count`` calls by the wall clock, for what is too short to be interrupted often."""
    out = []
    for _ in range(count):
        if before is not None:
            before()
        start = time.perf_counter_ns()
        run()
        out.append((time.perf_counter_ns() - start) / 1e3)
    return out


# in the process that starts the others


def start(engine: str, tools: int, given: argparse.Namespace) -> Row:
    """Runs :func:`work` in a process of its own."""
    pool = max(tools, given.pool or min(3 * tools, 1000))
    command = [sys.executable, __file__, "--engine", engine, "--tools", str(tools), "--pool", str(pool)]
    for name in ("requests", "vocabulary", "seed", "seconds", "users"):
        command += [f"--{name}", str(getattr(given, name))]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"the process of {engine} with {tools} tools failed; its message is above.")
    return {"engine": engine, "tools": tools, "pool": pool, "vocabulary": given.vocabulary, **json.loads(done.stdout)}


def installed(names: Sequence[str]) -> Iterator[str]:
    for name in names:
        package = name.partition("-")[0]
        if package in PINS and importlib.util.find_spec(package) is None:
            sys.stderr.write(f"{name} is left out: it is not installed. Run: pip install {PINS[package]}\n")
        else:
            yield name


OURS = "agentgram"
HEADS = ["tools", "engine", "import, vocabulary", "first request: first mask", "whole"]
HEADS += ["later ones: compile", "first mask", "a token: median", "mean", "99th percentile", "slowest"]
HEADS += ["whole request", "to agentgram's"]
SHOWN = ["setup", "cold first", "cold", "compile", "first", "median", "mean", "p99", "slowest", "total"]


class Rows:
    """What all processes found."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.tools = sorted({row["tools"] for row in rows})
        self.engines = [name for name in CONTESTANTS if any(row["engine"] == name for row in rows)]

    def of(self, engine: str, tools: int) -> list[Row]:
        return [row for row in self.rows if (row["engine"], row["tools"]) == (engine, tools)]

    def figure(self, engine: str, tools: int, name: str) -> float:
        """The median of the repeats."""
        return median([row[name] for row in self.of(engine, tools)])

    def ratio(self, engine: str, tools: int) -> float:
        """How many times as long as agentgram's a whole request takes: the median of the repeats' ratios."""
        both = zip(self.of(engine, tools), self.of(OURS, tools), strict=False)
        return median([theirs["total"] / ours["total"] for theirs, ours in both])


def report(found: Rows, given: argparse.Namespace) -> str:
    """The tables in Markdown."""
    lines: list[list[object]] = []
    for tools, engine in itertools.product(found.tools, found.engines):
        refused = sum(row["refused"] for row in found.of(engine, tools))
        label = engine + (f" ({refused} refused)" if refused else "")
        cells = [duration(found.figure(engine, tools, name)) for name in SHOWN]
        lines.append([tools, label, *cells, f"{digits(found.ratio(engine, tools))}x"])
    most = found.tools[-1]
    repeats = min(len(found.of(engine, most)) for engine in found.engines)
    parts = [f"{given.vocabulary} vocabulary, medians of {repeats} runs.\n", markdown(HEADS, lines)]
    if len(found.engines) > 1:
        totals = {engine: found.figure(engine, most, "total") for engine in found.engines}
        text = f"A whole request with {most} tools, eight characters for a factor of ten:"
        parts.append(f"{text}\n\n```text\n{bars(totals)}```\n")
    if OURS in found.engines:
        parts.append(markdown(["agentgram alone", "time"], alone(found, most, given.users)))
    return "\n".join(parts)


def alone(found: Rows, tools: int, users: int) -> Iterator[tuple[str, str]]:
    """How close a mask is to the limit, and what has no counterpart elsewhere."""
    ours = found.of(OURS, tools)

    def cell(name: str, engine: str = OURS) -> str:
        return duration(found.figure(engine, tools, name))

    yield "reading the wall clock (part of the figures below)", cell("clock")
    yield f"`numpy.copyto` of a mask of {digits(ours[0]['bytes'] / 1000)} KB", cell("memcpy")
    yield "`fill_mask` in an unchanged state: a copy through the binding", cell("copy")
    gap = median([row["again"] - row["copy"] for row in ours])
    yield "a token of a known reply, mask and `accept`: median", f"{cell('again')}, {duration(gap)} above that copy"
    yield "the same copy, the processor's caches flushed before it", cell("flushed copy")
    yield "a token, caches flushed before each: median, mean", f"{cell('flushed median')}, {cell('flushed mean')}"
    yield "declaring a tool", cell("declaring")
    yield f"first mask of {tools} known tools that come as JSON text", cell("raw")
    if not found.of("agent", tools):
        return
    for label, when in (("each user's first run", "first"), ("the next", "next")):
        split = {part: cell(f"{when} {part}", "agent") for part in ("all", "asked", "prompt", "mask")}
        yield (
            f"`Agent.run` to the first mask, {tools} tools, {users} users: {label}",
            f"{split['all']} (policy {split['asked']}, the prompt's text {split['prompt']}, "
            f"grammars and mask {split['mask']})",
        )
    yield "the very first of these runs in its process", cell("cold", "agent")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=int, nargs="+", default=[10, 100, 500], help="tools of a request")
    parser.add_argument("--pool", type=int, help="tools to choose among; without it thrice --tools, at most 1000")
    parser.add_argument("--requests", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=4, help="after so many an engine gets no further request")
    parser.add_argument("--repeats", type=int, default=3, help="0: show what the file of --json holds")
    parser.add_argument("--users", type=int, default=50, help="of the agent whose first masks are timed; 0 for none")
    parser.add_argument("--vocabulary", choices=VOCABULARIES, default="llama3")
    parser.add_argument("--engines", nargs="+", choices=list(CONTESTANTS), default=list(CONTESTANTS))
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument(
        "--json", type=Path, help="a JSON lines file to add each process's figures to; those in it count"
    )
    parser.add_argument("--docs", type=Path, help="a page with <!-- MARK:begin --> and :end, to put the tables between")
    parser.add_argument("--mark", default="engines", help="MARK")
    parser.add_argument("--engine", choices=[*CONTESTANTS, "agent"], help=argparse.SUPPRESS)
    given = parser.parse_args()
    if min(given.tools) < 1 or given.requests < 2 or given.repeats < 0:
        parser.error("at least one tool and two requests are needed")
    return given


def earlier(given: argparse.Namespace) -> list[Row]:
    """Rows of runs before this one, where a file keeps them."""
    if given.json is None or not given.json.is_file():
        return []
    rows: list[Row] = read_lines(given.json)
    return [row for row in rows if row["vocabulary"] == given.vocabulary]


def main() -> int:
    given = options()
    if given.engine:
        json.dump(work(given), sys.stdout)
        return 0
    engines = list(installed(given.engines))
    rows = earlier(given)
    began = time.monotonic()
    for repeat, tools in itertools.product(range(given.repeats), given.tools):
        # The order turns, so that none is always the one that follows the slowest.
        turn = [engines[(i + repeat) % len(engines)] for i in range(len(engines))]
        if given.users and OURS in engines and tools == max(given.tools):
            turn.append("agent")
        for engine in turn:
            rows.append(start(engine, tools, given))
            sys.stderr.write(f"{time.monotonic() - began:4.0f} s: run {repeat + 1}, {tools} tools, {engine}\n")
            if given.json:
                with given.json.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    if not rows:
        sys.exit("nothing was measured: --repeats 0 shows what the file of --json holds.")
    text = report(Rows(rows), given)
    print(text)
    if given.docs:
        rewrite(given.docs, given.mark, text)
    return 1 if any(row["refused"] for row in rows if row["engine"] == OURS) else 0


if __name__ == "__main__":
    sys.exit(main())
