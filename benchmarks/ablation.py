"""What each of the engine's mechanisms is worth: the whole engine, then without one after another.

On BFCL's tools, each request with its own random choice among them:

    python benchmarks/ablation.py --tools 100 --repeats 3 --docs docs/performance.md

On JSON Schemas of a JSON lines file (.jsonl or .jsonl.gz), with rows {"schema": ..., "tests": [{"valid": true, "data":
...}]}; the valid documents are written token by token:

    python benchmarks/ablation.py --schemas FILE.jsonl.gz --count 200 --mark ablation-schemas

On schemas with long repetitions, all with other bounds, and documents that come close to them:

    python benchmarks/ablation.py --long --count 10 --mark ablation-long

Every engine of every repeat starts empty, with a vocabulary of its own, on one thread (``jit warm``: on two, with a
pause after compiling as a prompt gives it). All do the same requests in the same order; where one runs out of
``--seconds``, the others are compared with it on those that it did.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from contestants import Agentgram, Timed, WithoutDispatch, time_jobs, time_request
from data import VOCABULARIES, Encoded, functions, jobs, vocabulary
from tables import digits, duration, markdown, mean, median, percentile, rewrite

from agentgram.errors import GrammarError

LAZY: dict[str, Any] = {"jit": "lazy"}


@dataclass(frozen=True, kw_only=True)
class Variant:
    """An engine, and what it does without."""

    make: Callable[[Encoded], Agentgram]
    prefill: bool = False
    """Whether there is a pause after compiling."""
    schemas: bool = True
    """Whether it differs from the whole engine on schemas alone."""


VARIANTS = {
    "the whole engine (jit lazy)": Variant(make=partial(Agentgram, **LAZY)),
    "jit warm": Variant(make=partial(Agentgram, jit="warm", threads=2), prefill=True),
    "jit off": Variant(make=partial(Agentgram, jit="off")),
    "no cross-grammar cache": Variant(make=partial(Agentgram, cross_grammar_cache=False, **LAZY)),
    "no adaptive masks": Variant(make=partial(Agentgram, adaptive_masks=False, **LAZY)),
    "no repetition compression": Variant(make=partial(Agentgram, repetition_compression=False, **LAZY)),
    "no TagDispatch": Variant(make=partial(WithoutDispatch, **LAZY), schemas=False),
}
FULL = next(iter(VARIANTS))


@dataclass(kw_only=True)
class Outcome:
    """What one variant did in one repeat."""

    rows: list[Timed | None]
    """Request by request (schema by schema); None for one that could not be compiled."""
    stats: dict[str, int]

    @property
    def done(self) -> list[Timed]:
        return [row for row in self.rows if row is not None]


def on_tools(given: argparse.Namespace, encoded: Encoded) -> Callable[[Variant], Outcome]:
    pool = functions(max(given.pool, given.tools), given.seed)
    work = list(jobs(pool, given.requests, given.tools, encoded, given.seed))

    def run(variant: Variant) -> Outcome:
        engine = variant.make(encoded)
        pause = given.prefill if variant.prefill else 0
        _, rows = time_jobs(engine, pool, work, given.seconds, pause)
        return Outcome(rows=list(rows), stats=asdict(engine.engine.stats()))

    return run


def on_schemas(given: argparse.Namespace, encoded: Encoded) -> Callable[[Variant], Outcome]:
    if given.long:
        cases = list(long_repetitions(given.count, given.seed))
    else:
        cases = [(row["schema"], document(row)) for row in sample(given.schemas, given.count, given.seed)]
    texts = [(schema, [*encoded.encode(json.dumps(value, ensure_ascii=False)), encoded.end]) for schema, value in cases]

    def run(variant: Variant) -> Outcome:
        engine = variant.make(encoded)
        pause = given.prefill if variant.prefill else 0
        deadline = time.monotonic() + given.seconds
        rows: list[Timed | None] = []
        for schema, tokens in texts:
            if len(rows) >= 2 and time.monotonic() > deadline:
                break
            deadline += pause
            try:
                rows.append(time_request(engine, partial(engine.schema, schema), tokens, pause))
            except GrammarError:
                rows.append(None)
        return Outcome(rows=rows, stats=asdict(engine.engine.stats()))

    return run


def sample(path: Path, count: int, seed: int) -> list[dict[str, Any]]:
    """A random choice among the rows that have a valid document."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if any(test["valid"] for test in row["tests"])]
    if not rows:
        sys.exit(f"{path} has no row with a valid document: rows are {{'schema': ..., 'tests': [...]}}.")
    return random.Random(seed).sample(rows, min(count, len(rows)))


def document(row: dict[str, Any]) -> Any:
    return next(test["data"] for test in row["tests"] if test["valid"])


def long_repetitions(count: int, seed: int) -> Iterator[tuple[dict[str, Any], Any]]:
    """Schemas with bounds between 200 and 2,000, and documents that use them up but for a few."""
    rng = random.Random(seed)
    for _ in range(count):
        text, items = rng.randint(200, 2000), rng.randint(200, 2000)
        schema = {
            "type": "object",
            "properties": {
                "text": {"type": "string", "minLength": text // 2, "maxLength": text},
                "list": {"type": "array", "items": {"type": "integer"}, "maxItems": items},
            },
            "required": ["text", "list"],
        }
        words = "it was a long day at the harbour and nobody came to the show "
        yield schema, {"text": (words * text)[: text - 3], "list": [rng.randint(0, 99) for _ in range(items - 3)]}


def slowdown(full: Outcome, other: Outcome) -> float:
    """How many times as long the other takes for what both have done, all in all."""
    both = [(a.total, b.total) for a, b in zip(full.rows, other.rows, strict=False) if a and b and a.total and b.total]
    return sum(b for _, b in both) / sum(a for a, _ in both) if both else float("nan")


HEADS = ["", "done", "compile: median", "first mask: median", "99th percentile", "a token: median", "mean"]
HEADS += ["99th percentile", "slowest", "entries built", "nodes walked", "cache", "all requests, to the whole engine's"]


def figures(outcome: Outcome) -> list[float]:
    """In microseconds, in the order of the heads."""
    firsts = [row.first for row in outcome.done]
    tokens = [us for row in outcome.done for us in row.tokens]
    return [
        median([row.compile for row in outcome.done]),
        median(firsts),
        percentile(firsts, 0.99),
        median(tokens),
        mean(tokens),
        percentile(tokens, 0.99),
        max(tokens, default=float("nan")),
    ]


def table(outcomes: dict[str, list[Outcome]]) -> Iterator[list[object]]:
    for name, runs in outcomes.items():
        columns = zip(*map(figures, runs), strict=True)
        stats = runs[-1].stats
        ratio = median([slowdown(full, run) for full, run in zip(outcomes[FULL], runs, strict=True)])
        yield [
            name,
            len(runs[-1].done),
            *(duration(median(column)) for column in columns),
            f"{stats['builds']:,}",
            f"{stats['nodes_walked']:,}",
            f"{stats['cache_bytes'] / 1e6:.1f} MB",
            f"{digits(ratio)}x",
        ]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=int, default=100, help="tools of a request")
    parser.add_argument("--pool", type=int, default=300, help="tools that requests choose among")
    parser.add_argument("--requests", type=int, default=30)
    parser.add_argument("--schemas", type=Path, help="schemas instead of tools: a .jsonl or .jsonl.gz file")
    parser.add_argument("--count", type=int, default=50, help="schemas, chosen at random")
    parser.add_argument("--long", action="store_true", help="schemas with long repetitions instead of tools")
    parser.add_argument("--seconds", type=float, default=5, help="after so many an engine gets nothing further to do")
    parser.add_argument("--prefill", type=float, default=0.05, help="seconds between compiling and the first mask")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--vocabulary", choices=VOCABULARIES, default="llama3")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--docs", type=Path, help="a page with <!-- MARK:begin --> and :end, to put the table between")
    parser.add_argument("--mark", default="ablation", help="MARK")
    given = parser.parse_args()
    if given.schemas is not None and not given.schemas.is_file():
        parser.error(f"there is no file {given.schemas}")
    if min(given.tools, given.count, given.repeats) < 1 or given.requests < 2:
        parser.error("at least one tool, schema and repeat, and two requests are needed")
    return given


def main() -> int:
    given = options()
    encoded = vocabulary(given.vocabulary)
    tools = given.schemas is None and not given.long
    run = (on_tools if tools else on_schemas)(given, encoded)
    variants = {name: v for name, v in VARIANTS.items() if tools or v.schemas}
    outcomes: dict[str, list[Outcome]] = {name: [] for name in variants}
    began = time.monotonic()
    for repeat in range(given.repeats):
        for name, variant in variants.items():
            outcomes[name].append(run(variant))
            sys.stderr.write(f"{time.monotonic() - began:4.0f} s: run {repeat + 1}, {name}\n")
    what = f"{given.tools} of {given.pool} tools" if tools else f"{given.count} schemas"
    head = f"{given.vocabulary} vocabulary, {what}; medians of {given.repeats} runs.\n"
    text = f"{head}\n{markdown(HEADS, table(outcomes))}"
    print(text)
    if given.docs:
        rewrite(given.docs, given.mark, text)
    refused = sum(bool(row.refused) for runs in outcomes.values() for outcome in runs for row in outcome.done)
    if refused:
        sys.stderr.write(f"{refused} replies were refused; they count as done up to the token that was.\n")
    return 1 if refused and (tools or given.long) else 0


if __name__ == "__main__":
    sys.exit(main())
