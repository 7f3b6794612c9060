"""SmolLM2 on questions of BFCL's *multiple* set: one right tool among several, a call is required.

The same prompts are answered three times, greedily: with this library's masks, with xgrammar's masks around the same
envelope, and with none. One judge reads the text of all three; it shares no code with the library.

    python benchmarks/bfcl_multiple.py --questions 50 --seed 0 --readme README.md

The exit code is 1 if one of our replies did not end or is not valid, or if xgrammar got more of them right.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
from data import convert, package, read_lines
from tables import rewrite

from agentgram.events import StepEnd
from agentgram.formats import Request
from agentgram.messages import user
from agentgram.models import ModelRequest, ModelSettings, TransformersModel, load_model
from agentgram.tools.definition import ToolDefinition

# the questions


@dataclass(frozen=True, kw_only=True)
class Question:
    id: str
    text: str
    tools: tuple[ToolDefinition, ...]
    answer: Mapping[str, Mapping[str, list[Any]]]
    """For the right tool, the values that each argument may have; "" among them: it may be left out."""


def load_questions(count: int, seed: int) -> list[Question]:
    data = package("bfcl_eval") / "data"
    rows = read_lines(data / "BFCL_v4_multiple.json")
    answers = {row["id"]: row["ground_truth"][0] for row in read_lines(data / "possible_answer/BFCL_v4_multiple.json")}
    return [
        Question(
            id=row["id"],
            text=row["question"][0][0]["content"],
            tools=tuple(
                ToolDefinition(
                    name=f["name"], description=f["description"], schema={**convert(f["parameters"]), **CLOSED}
                )
                for f in row["function"]
            ),
            answer=answers[row["id"]],
        )
        for row in random.Random(seed).sample(rows, count)
    ]


CLOSED = {"additionalProperties": False}


# the judge


@dataclass(frozen=True, kw_only=True)
class Verdict:
    finished: bool = False
    """The reply is complete within the limit."""
    valid: bool = False
    """One call of an offered tool, whose arguments satisfy its schema."""
    tool: bool = False
    arguments: bool = False


def judge(question: Question, text: str, finished: bool) -> Verdict:
    match = re.search(r"<tool_call>(.*?)</tool_call>", text, re.DOTALL)
    try:
        call = json.loads(match.group(1) if match else text)
        name, arguments = call["name"], call["arguments"]
        schema = next(t.schema for t in question.tools if t.name == name)
        jsonschema.validate(arguments, schema)
    except (ValueError, KeyError, TypeError, StopIteration, jsonschema.ValidationError):
        return Verdict(finished=finished)
    options = question.answer.get(name)
    right = options is not None and same_object(arguments, options)
    return Verdict(finished=finished, valid=True, tool=options is not None, arguments=right)


def same_object(value: Any, options: Mapping[str, list[Any]]) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() <= options.keys()
        and all(
            any(same(value[k], o) for o in allowed) if k in value else "" in allowed for k, allowed in options.items()
        )
    )


def same(value: Any, option: Any) -> bool:
    """As BFCL compares: strings without case and punctuation, numbers by value, an object key by key."""
    if isinstance(option, dict):
        return same_object(value, option)
    if isinstance(option, list):
        return isinstance(value, list) and len(value) == len(option) and all(map(same, value, option))
    if isinstance(option, str):
        return isinstance(value, str) and plain(value) == plain(option)
    return isinstance(value, bool) == isinstance(option, bool) and bool(value == option)


def plain(text: str) -> str:
    return re.sub(r"[ ,./\-_*^]", "", text).lower().replace("'", '"')


# the three ways of answering


@dataclass(kw_only=True)
class Reply:
    text: str
    finished: bool
    """It is complete: the model ended it, or the decode loop closed it at the limit."""
    sampled: int
    forced: int = 0
    passes: int = 0
    closed: int = 0
    """1 where the decode loop closed it."""


Mask = Callable[[np.ndarray], bool]
"""Bans tokens in a row of scores; False: the reply is over."""


class Answerer:
    def __init__(self, model: TransformersModel, limit: int) -> None:
        self.model = model
        self.limit = limit
        self.ends = set(model.engine.vocab.end)

    def ours(self, request: Request) -> Reply:
        async def turn() -> StepEnd:
            settings = ModelSettings(max_tokens=self.limit)
            stream = self.model.stream(ModelRequest(declared=request, permitted=request, settings=settings))
            events = [e async for e in stream]
            end = events[-1]
            assert isinstance(end, StepEnd)
            return end

        passes = self.model.backend.passes
        end = asyncio.run(turn())
        prompt = self.model.format.render(request, self.model.tokenizer).tokens or ()
        return Reply(
            text=self.model.tokenizer.decode(self.model.backend.tokens[len(prompt) :]),
            finished=end.finish in ("stop", "length"),
            closed=int(end.finish == "length"),
            sampled=end.sampled_tokens,
            forced=end.forced_tokens,
            passes=self.model.backend.passes - passes,
        )

    def free(self, request: Request) -> Reply:
        return self._greedy(request, lambda _scores: True, lambda _token: None)

    def xgrammar(self, request: Request) -> Reply:
        import torch
        import xgrammar

        if not hasattr(self, "compiler"):
            info = xgrammar.TokenizerInfo.from_huggingface(
                self.model.tokenizer, vocab_size=self.model.engine.vocab.size, stop_token_ids=sorted(self.ends)
            )
            self.compiler = xgrammar.GrammarCompiler(info)
        tags = [
            {
                "type": "tag",
                "begin": f'<tool_call>\n{{"name": {json.dumps(tool.name)}, "arguments": ',
                "content": {"type": "json_schema", "json_schema": dict(tool.schema)},
                "end": "}\n</tool_call>",
            }
            for tool in request.tools
        ]
        output = {
            "type": "tags_with_separator", "tags": tags, "separator": "\n", "at_least_one": True,
            "stop_after_first": True,
        }  # fmt: skip
        compiled = self.compiler.compile_structural_tag(json.dumps({"type": "structural_tag", "format": output}))
        matcher = xgrammar.GrammarMatcher(compiled)
        size = self.model.engine.vocab.size
        bits = xgrammar.allocate_token_bitmask(1, size)

        def mask(scores: np.ndarray) -> bool:
            matcher.fill_next_token_bitmask(bits)
            xgrammar.apply_token_bitmask_inplace(torch.from_numpy(scores)[None], bits)
            return True

        return self._greedy(request, mask, matcher.accept_token)

    def _greedy(self, request: Request, mask: Mask, accept: Callable[[int], Any]) -> Reply:
        backend = self.model.backend
        prompt = self.model.format.render(request, self.model.tokenizer).tokens or ()
        passes = backend.passes
        backend.prefill(prompt)
        tokens: list[int] = []
        finished = False
        while len(tokens) < self.limit and not finished:
            scores = backend.logits()
            mask(scores)
            token = int(scores.argmax())
            accept(token)
            tokens.append(token)
            finished = token in self.ends
            backend.append([token])
        text = self.model.tokenizer.decode([t for t in tokens if t not in self.ends])
        return Reply(text=text, finished=finished, sampled=len(tokens), passes=backend.passes - passes)


# the table


@dataclass
class Score:
    verdicts: list[Verdict] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)

    def count(self, name: str) -> int:
        return sum(getattr(v, name) for v in self.verdicts)

    def total(self, name: str) -> int:
        return sum(getattr(r, name) for r in self.replies)


CAPTION = """\
SmolLM2 (135 million parameters) answers questions of the Berkeley Function Calling Leaderboard's *multiple* set: one
right tool among several, a call is required, the same prompts for all. "Closed at the limit": the model rambled inside
a string or a list, and the shortest legal end was written before the tokens ran out. `make bench` repeats it.

"""
NAMES = {"ours": "agentgram", "xgrammar": "xgrammar 0.2.9", "free": "free decoding"}


def table(scores: Mapping[str, Score], questions: int, limit: int) -> Iterator[str]:
    heads = [f"{questions} questions, greedy", f"complete within {limit} tokens", "closed at the limit", "valid call"]
    heads += ["right tool", "right arguments", "tokens sampled", "forced", "forward passes"]
    yield "| " + " | ".join(heads) + " |"
    yield "|" + " --- |" * len(heads)
    for key, score in scores.items():
        cells = [NAMES[key], score.count("finished"), score.total("closed")]
        cells += [score.count(n) for n in ("valid", "tool", "arguments")]
        cells += [score.total(n) for n in ("sampled", "forced", "passes")]
        yield "| " + " | ".join(map(str, cells)) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--questions", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, default=200, help="tokens in a reply")
    parser.add_argument("--ways", nargs="+", default=list(NAMES), choices=list(NAMES))
    parser.add_argument("--write", type=Path, help="a Markdown file for the table")
    parser.add_argument(
        "--readme", type=Path, help="a file with <!-- bfcl:begin --> and :end, to put the table between"
    )
    parser.add_argument("--replies", type=Path, help="a JSON lines file for the replies themselves")
    options = parser.parse_args()

    questions = load_questions(options.questions, options.seed)
    model = load_model("smollm2")
    assert isinstance(model, TransformersModel)
    answerer = Answerer(model, options.limit)
    scores = {way: Score() for way in options.ways}
    log = []
    for number, question in enumerate(questions, 1):
        request = Request(messages=[user(question.text)], tools=question.tools, tool_choice="required", parallel=False)
        for way, score in scores.items():
            reply = getattr(answerer, way)(request)
            verdict = judge(question, reply.text, reply.finished)
            score.verdicts.append(verdict)
            score.replies.append(reply)
            log.append({"id": question.id, "way": way, "text": reply.text, **vars(verdict)})
        sys.stderr.write(f"\r{number}/{len(questions)}")
    sys.stderr.write("\n")
    lines = "\n".join(table(scores, len(questions), options.limit)) + "\n"
    print(lines)
    if options.write:
        options.write.write_text(lines)
    if options.readme:
        rewrite(options.readme, "bfcl", CAPTION + lines)
    if options.replies:
        options.replies.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in log))
    if "ours" not in scores:
        return 0
    ours = scores["ours"]
    ok = ours.count("finished") == ours.count("valid") == len(questions)
    if "xgrammar" in scores:
        theirs = scores["xgrammar"]
        ok = ok and all(ours.count(n) >= theirs.count(n) for n in ("tool", "arguments"))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
