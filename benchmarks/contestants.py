"""Engines behind one face, and the loop that times them.

A contestant declares tools once, compiles one grammar for each request, and hands out a pair of functions, one that
fills the mask and one that accepts a token.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from data import END, TRIGGER, Encoded, Function, Job, begin

Steps = tuple[Callable[[], Any], Callable[[int], bool]]
"""Fills the mask; accepts a token."""


class Contestant(Protocol):
    def declare(self, tool: Function) -> Any:
        """What an application can do once for a tool, before any request."""

    def compile(self, declared: Sequence[Any]) -> Any:
        """The grammar of one request: free text with calls of these tools in it."""

    def steps(self, grammar: Any) -> Steps: ...

    def memory(self) -> int:
        """Bytes that the engine's cache holds; 0 where it does not say."""


class Agentgram:
    def __init__(self, encoded: Encoded, **options: Any) -> None:
        from agentgram import engine

        self.api = engine
        vocab = engine.Vocabulary(encoded.tokens, special=encoded.special, end=[encoded.end])
        self.engine = engine.Engine(vocab, engine.EngineOptions(**{"threads": 1, **options}))
        self.mask = engine.allocate_mask(1, vocab.size)

    def declare(self, tool: Function) -> Any:
        return self.api.Tag(begin(tool.name), self.api.JsonSchema(tool.schema), END)

    def compile(self, declared: Sequence[Any]) -> Any:
        return self.engine.compile(self.api.Dispatch(declared, [TRIGGER]))

    def schema(self, schema: Mapping[str, Any] | bool) -> Any:
        """The grammar of JSON text, its members in any order."""
        return self.engine.compile(self.api.JsonSchema(schema, property_order="any"))

    def steps(self, grammar: Any) -> Steps:
        matcher = grammar.matcher()
        return partial(matcher.fill_mask, self.mask), matcher.accept

    def memory(self) -> int:
        return int(self.engine.stats().cache_bytes)


class WithoutDispatch(Agentgram):
    """The same language as a grammar of text and calls, without the construct made for it."""

    def compile(self, declared: Sequence[Any]) -> Any:
        api = self.api
        text = api.Text([TRIGGER])
        calls = api.Choice([api.Seq([api.Lit(t.begin), t.content, api.Lit(t.end)]) for t in declared])
        return self.engine.compile(api.Seq([api.Rep(api.Seq([text, calls])), text]))


class XGrammar:
    def __init__(self, encoded: Encoded, lazy: bool = False) -> None:
        import xgrammar

        self.api = xgrammar
        tokens = encoded.tokens
        for name, index in encoded.special.items():
            tokens[index] = name.encode()
        info = xgrammar.TokenizerInfo(
            tokens, xgrammar.VocabType.RAW, vocab_size=len(tokens), stop_token_ids=[encoded.end]
        )
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, enable_dynamic_compilation=lazy)
        self.mask = xgrammar.allocate_token_bitmask(1, len(tokens))

    def declare(self, tool: Function) -> Any:
        content = {"type": "json_schema", "json_schema": tool.schema}
        return json.dumps({"type": "tag", "begin": begin(tool.name), "content": content, "end": END})

    def compile(self, declared: Sequence[Any]) -> Any:
        output = f'{{"type": "triggered_tags", "triggers": ["{TRIGGER}"], "tags": [{",".join(declared)}]}}'
        return self.compiler.compile_structural_tag(f'{{"type": "structural_tag", "format": {output}}}')

    def steps(self, grammar: Any) -> Steps:
        matcher = self.api.GrammarMatcher(grammar)
        return partial(matcher.fill_next_token_bitmask, self.mask), matcher.accept_token

    def memory(self) -> int:
        return int(self.compiler.get_cache_size_bytes())


class LLGuidance:
    def __init__(self, encoded: Encoded) -> None:
        import llguidance
        import llguidance.numpy
        import llguidance.tiktoken

        self.api = llguidance
        self.tokenizer = llguidance.tiktoken.lltokenizer_from_encoding(encoded.encoding, eos_token=encoded.end)
        self.fill = llguidance.numpy.fill_next_token_bitmask
        self.mask = llguidance.numpy.allocate_token_bitmask(1, self.tokenizer.vocab_size)

    def declare(self, tool: Function) -> Any:
        return self.api.StructTag(trigger=TRIGGER, begin=begin(tool.name), grammar=json.dumps(tool.schema), end=END)

    def compile(self, declared: Sequence[Any]) -> Any:
        text = self.api.StructTag.to_grammar(list(declared), assume_special=False)
        matcher = self.api.LLMatcher(self.tokenizer, text)
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return matcher

    def steps(self, grammar: Any) -> Steps:
        # What compiling made is a matcher already; a grammar that is used once needs no copy of it.
        return partial(self.fill, grammar, self.mask, 0), grammar.consume_token

    def memory(self) -> int:
        return 0


CONTESTANTS: dict[str, Callable[[Encoded], Contestant]] = {
    "agentgram": Agentgram,
    "xgrammar": XGrammar,
    "xgrammar-lazy": partial(XGrammar, lazy=True),
    "llguidance": LLGuidance,
}
PINS = {"xgrammar": "xgrammar==0.2.9", "llguidance": "llguidance==1.9.1"}


@dataclass(kw_only=True)
class Timed:
    """How long one request took, in microseconds."""

    compile: float
    first: float
    """Compiling and the first mask."""
    total: float
    """Compiling, every mask, and accepting every token."""
    tokens: list[float] = field(repr=False)
    """For each token but the first: its mask, and accepting it."""
    refused: str = ""
    """What went wrong, where anything did."""


Moment = tuple[int, int]
"""Nanoseconds of this thread's processor time, and of the wall clock."""


def now() -> Moment:
    return time.thread_time_ns(), time.perf_counter_ns()


def since(start: Moment, end: Moment | None = None) -> float:
    """Microseconds since then, by the clock that says less.

    On a busy machine the wall clock counts what other processes do meanwhile; reading the processor's takes longer than
    a mask does. Neither says less than is true, and each is near where the other is not.
    """
    wall = end[1] if end else time.perf_counter_ns()
    processor = end[0] if end else time.thread_time_ns()
    return min(wall - start[1], processor - start[0]) / 1e3


def time_request(
    contestant: Contestant, compile: Callable[[], Any], tokens: Sequence[int], pause: float = 0, before: Any = None
) -> Timed:
    """Times one request: ``compile()``, then the reply token by token.

    Args:
        contestant: Makes the matcher.
        compile: Makes the grammar.
        tokens: The reply.
        pause: Seconds between compiling and the first mask, in which a model would read its prompt; not counted.
        before: Called before each token, not counted.
    """
    start = now()
    grammar = compile()
    compiled = since(start)
    if pause:
        time.sleep(pause)
    start = now()
    fill, accept = contestant.steps(grammar)
    fill()
    first = since(start)
    spent: list[float] = []
    start = now()
    ok = accept(tokens[0])
    total = since(start)
    for index, token in enumerate(tokens[1:], 1):
        if not ok:
            return Timed(
                compile=compiled, first=compiled + first, total=0, tokens=spent, refused=f"token {index - 1} refused"
            )
        if before is not None:
            before()
        start = now()
        fill()
        ok = accept(token)
        spent.append(since(start))
    total += compiled + first + sum(spent)
    return Timed(
        compile=compiled,
        first=compiled + first,
        total=total,
        tokens=spent,
        refused="" if ok else f"token {len(tokens) - 1} refused",
    )


def time_jobs(
    contestant: Contestant, pool: Sequence[Function], jobs: Iterable[Job], seconds: float, pause: float = 0
) -> tuple[float, list[Timed]]:
    """Declares the pool and times requests until ``seconds`` are over; at least two.

    Returns:
        Microseconds for declaring one tool; the requests.
    """
    start = now()
    declared = [contestant.declare(tool) for tool in pool]
    declaring = (since(start)) / len(pool)
    rows: list[Timed] = []
    deadline = time.monotonic() + seconds
    for job in jobs:
        if len(rows) >= 2 and time.monotonic() > deadline:
            break
        deadline += pause
        chosen = [declared[index] for index in job.tools]
        rows.append(time_request(contestant, partial(contestant.compile, chosen), job.tokens, pause))
    return declaring, rows
