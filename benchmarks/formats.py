"""What each response format costs: compiling a request's grammar, its first mask, and parsing as tokens arrive.

    python benchmarks/formats.py [--tools 100]

With the vocabulary of Llama 3 where the package llama-models is installed (its data file alone is read), else with
single bytes. Times are of this process's processor, the best of several runs.
"""

from __future__ import annotations

import argparse
import base64
import importlib.util
import time
from collections.abc import Callable
from pathlib import Path

from agentgram.engine import Engine, Vocabulary, allocate_mask
from agentgram.formats import Channels, Format, Request, Tok, formats, get_format
from agentgram.formats.nodes import Tag, walk
from agentgram.formats.printing import print_turn
from agentgram.messages import ToolCall, assistant
from agentgram.tools.definition import ToolDefinition

STREAMS, SPEED = 64, 100
"""Streams at a time, and tokens a second of each."""


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
                    f"name_{i}": {"type": "string"},
                    "count": {"type": "integer", "minimum": 0, "maximum": 100 + i},
                    "unit": {"enum": ["c", "f", f"u{i}"]},
                    "exact": {"type": "boolean"},
                    "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 4},
                },
                "required": [f"name_{i}"],
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


def compiling(fmt: Format, vocabulary: list[bytes], count: int) -> tuple[float, float, float]:
    """Seconds for a grammar of tools never seen, for one of known tools in a new choice, and for the first mask."""
    names = markers(fmt)
    ids = {name: len(vocabulary) + i for i, name in enumerate(names)}
    vocab = Vocabulary([*vocabulary, *(b"" for _ in names)], special=ids, end=list(fmt.stops[:1]))
    mask = allocate_mask(1, vocab.size)
    cold, warm, first = [], [], []
    for turn in range(3):
        engine = Engine(vocab)
        every = tools(count, salt=f"r{turn}_")
        start = time.process_time()
        grammar = engine.compile(fmt.grammar(Request(tools=every), special=vocab.special))
        cold.append(time.process_time() - start)
        start = time.process_time()
        grammar.matcher().fill_mask(mask)
        first.append(time.process_time() - start)
        start = time.process_time()
        engine.compile(fmt.grammar(Request(tools=every[1:]), special=vocab.special))
        warm.append(time.process_time() - start)
    return min(cold), min(warm), min(first)


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
    rows = {}
    for name in sorted(formats(), key=lambda n: n != "hermes"):
        rows[name] = compiling(get_format(name), vocabulary, count)
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
