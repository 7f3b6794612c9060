"""What each response format costs: compiling a request's grammar, its first mask, and parsing as tokens arrive.

    python benchmarks/formats.py [--tools 100]

With the vocabulary of Llama 3 where the package llama-models is installed (its data file alone is read), else with
single bytes. Times are of this process's processor, the best of several runs. "to hermes" compares new tools and
the first mask; "core" is the share of one that 64 streams of 100 tokens a second take.
"""

from __future__ import annotations

import argparse
import base64
import gc
import importlib.util
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from agentgram.engine import Engine, EngineOptions, Vocabulary, allocate_mask
from agentgram.formats import Channels, Format, Request, Tok, formats, get_format
from agentgram.formats.nodes import Tag, walk
from agentgram.formats.printing import print_turn
from agentgram.messages import ToolCall, assistant
from agentgram.tools.definition import ToolDefinition

STREAMS, SPEED = 64, 100
"""Streams at a time, and tokens a second of each."""
TURNS = 10
"""How often each format is measured."""


def tokens() -> list[bytes]:
    found = importlib.util.find_spec("llama_models")
    for folder in (found.submodule_search_locations or ()) if found is not None else ():
        file = Path(folder) / "llama3" / "tokenizer.model"
        if file.is_file():
            return [base64.b64decode(line.split()[0]) for line in file.read_bytes().splitlines() if line]
    return [bytes([i]) for i in range(256)]


def markers(fmt: Format) -> list[str]:
    out = [*fmt.stops, *fmt.controls]
    for node in walk(fmt.output):
        parts = (node.begin, node.end) if isinstance(node, Tag) else (node,)
        out += [m.name for m in parts if isinstance(m, Tok)]
        out += node.controls if isinstance(node, Channels) else []
    return list(dict.fromkeys(out))


def tools(count: int, salt: str = "") -> list[ToolDefinition]:
    """Tools with arguments of all common kinds, no two alike."""
    return [
        ToolDefinition(
            name=f"{salt}tool_{i}",
            description="Does something.",
            schema={
                "type": "object",
                "properties": {
                    f"{salt}name_{i}": {"type": "string"},
                    "count": {"type": "integer", "minimum": 0, "maximum": 100 + i},
                    "unit": {"enum": ["c", "f", f"{salt}u{i}"]},
                    "exact": {"type": "boolean"},
                    "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 4},
                },
                "required": [f"{salt}name_{i}"],
                "additionalProperties": False,
            },
        )
        for i in range(count)
    ]


def best(run: Callable[[], object], times: int = 5) -> float:
    """Seconds of processor time of the fastest of several runs."""
    spent = []
    for _ in range(times):
        start = time.process_time()
        run()
        spent.append(time.process_time() - start)
    return min(spent)


def compiling(names: Sequence[str], vocabulary: list[bytes], count: int) -> dict[str, tuple[float, float, float]]:
    """Seconds for a grammar of tools never seen, for one of known tools in a new choice, and for the first mask.

    Formats take turns, and each figure is the best of its turns, so that what else the machine does hits all alike.
    """
    vocabularies = {}
    for name in names:
        fmt = get_format(name)
        own = markers(fmt)
        ids = {marker: len(vocabulary) + i for i, marker in enumerate(own)}
        vocabularies[name] = Vocabulary([*vocabulary, *(b"" for _ in own)], special=ids, end=list(fmt.stops[:1]))
    spent: dict[str, list[tuple[float, float, float]]] = {name: [] for name in names}
    for turn in range(TURNS):
        for name in names:
            spent[name].append(_compiling(get_format(name), vocabularies[name], tools(count, f"{name[:3]}{turn}_")))
    return {name: (min(a), min(b), min(c)) for name, each in spent.items() for a, b, c in [zip(*each, strict=True)]}


def _compiling(fmt: Format, vocab: Vocabulary, every: list[ToolDefinition]) -> tuple[float, float, float]:
    engine = Engine(vocab, EngineOptions(jit="lazy"))  # what a mask needs is built when it is asked for, not beside it
    mask = allocate_mask(1, vocab.size)
    at = [time.process_time()]
    grammar = engine.compile(fmt.grammar(Request(tools=every), special=vocab.special))
    at.append(time.process_time())
    grammar.matcher().fill_mask(mask)
    at.append(time.process_time())
    engine.compile(fmt.grammar(Request(tools=every[1:]), special=vocab.special))
    at.append(time.process_time())
    return at[1] - at[0], at[3] - at[2], at[2] - at[1]


def parsing(fmt: Format) -> tuple[float, float, float]:
    """Seconds a token of four bytes, and for a quarter of a megabyte of arguments and for a whole one."""
    tool = ToolDefinition(name="put", schema={"type": "object", "properties": {"text": {"type": "string"}}})
    request = Request(tools=[tool])
    call = ToolCall(name="put", arguments={"text": 'A line of "words" with é.\n' * 20})
    start = any(t.where == "start" for t in fmt.call_tags)
    message = assistant("" if start else "The quick brown fox <b>jumps</b>. " * 20, calls=[call])
    turn = print_turn(fmt, message, str, tools=[tool]).encode()

    def feed(data: bytes, times: int) -> Callable[[], None]:
        pieces = [data[i : i + 4] for i in range(0, len(data), 4)]

        def run() -> None:
            for _ in range(times):
                parser = fmt.parser(request)
                for piece in pieces:
                    parser.feed_bytes(piece)
                assert len(parser.close().calls) == 1

        return run

    each = best(feed(turn, 10), 20) / 10 / (len(turn) / 4)
    long = [fmt.print_call(tool, {"text": "a 'b' <c " * (size // 9)}).encode() for size in (1 << 18, 1 << 20)]
    quarter, whole = (best(feed(data, 1), 2) for data in long)
    return each, quarter, whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=int, default=100, help="tools of a request")
    count = parser.parse_args().tools
    vocabulary = tokens()
    print(f"{len(vocabulary)} tokens, {count} tools, {STREAMS} streams of {SPEED} tokens a second\n")
    heads = ["new tools", "known tools", "first mask", "to hermes", "a token", "core", "1 MiB : 1/4"]
    print(f"{'format':16}" + "".join(f"{head:>13}" for head in heads))
    names = sorted(formats(), key=lambda n: n != "hermes")
    gc.collect()
    gc.disable()  # as timeit does: what it costs depends on what else is in memory
    rows = compiling(names, vocabulary, count)
    for name in names:
        cold, warm, first = rows[name]
        ratio = (cold + first) / (rows["hermes"][0] + rows["hermes"][2])
        each, small, large = parsing(get_format(name))
        share = each * STREAMS * SPEED
        print(
            f"{name:16}{cold * 1e3:10.2f} ms{warm * 1e3:10.2f} ms{first * 1e3:10.2f} ms{ratio:12.2f}x"
            f"{each * 1e6:10.2f} us{share:13.1%}{large / small:12.1f}x"
        )


if __name__ == "__main__":
    main()
