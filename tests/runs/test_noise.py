"""Runs of a model made of noise under the real grammar: whatever it writes, a tool can take."""

from __future__ import annotations

import datetime
import decimal
import enum
import pathlib
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter

from agentgram import Agent, LimitExceeded, Limits, ModelSettings, Policy, Principal, RunError, RunResult, allow, tool
from agentgram.run import CUT
from agentgram.testing import GrammarModel


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Tree(BaseModel):
    name: Annotated[str, Field(max_length=5)]
    children: Annotated[list[Tree], Field(max_length=2)] = []


def scalars(a: int, b: float, c: bool, d: Literal["x", 1], e: str | None = None) -> None: ...
def times(d: datetime.date, t: datetime.time, dt: datetime.datetime) -> None: ...
def words(u: uuid.UUID, p: pathlib.Path, c: Color, o: int | None) -> None: ...
def trees(t: Tree) -> None: ...
def collections(m: dict[str, int], s: set[int], tu: tuple[int, str]) -> None: ...
def bounds(
    x: Annotated[int, Field(ge=3, le=9)],
    s: Annotated[str, Field(pattern="^[a-z]{2,4}$")],
    d: decimal.Decimal,
    e: Annotated[decimal.Decimal, Field(le=50)],
) -> None: ...


TOOLS = [scalars, times, words, trees, collections, bounds]


def run(seed: int, tools: list[Callable[..., Any]], **options: Any) -> RunResult[Any]:
    agent = Agent(GrammarModel(seed), tools=tools, policy=options.pop("policy", None))
    try:
        return agent.run_sync(
            "go",
            tool_choice="required",
            settings=ModelSettings(max_tokens=300, seed=seed),
            limits=Limits(steps=1),
            **options,
        )
    except LimitExceeded as error:
        result: RunResult[Any] = error.run
        return result


@pytest.mark.parametrize("function", TOOLS, ids=lambda f: f.__name__)
def test_what_the_grammar_lets_through_is_valid(function: Callable[..., Any]) -> None:
    records = [record for seed in range(4) for record in run(seed, [function]).calls]
    assert len(records) >= 4
    for record in records:
        tool(function).parameters.read(record.arguments)  # of what was cut off at the limit, too
        assert record.status == "done" or CUT in record.content
    assert any(record.status == "done" for record in records)


def test_noise_under_a_policy_runs_nothing_denied() -> None:
    policy = Policy(allow("words", "times"))
    results = [run(seed, TOOLS, policy=policy, user=Principal("bob")) for seed in range(12)]
    names = {record.name for result in results for record in result.calls}
    wanted = {denied.tool for result in results for denied in result.denied}
    assert names <= {"words", "times"}
    assert wanted, "noise wants denied tools too, or this test shows nothing"
    assert wanted.isdisjoint(names)


@dataclass
class Point:
    x: int
    y: float = 0.0


class Person(BaseModel):
    name: Annotated[str, Field(max_length=8)]
    born: datetime.date | None = None


ANSWERS = [
    int,
    bool,
    float,
    Literal["yes", "no"],
    list[int],
    dict[str, bool],
    Point,
    Person,
    Point | Person,
    int | None,
]


@pytest.mark.parametrize("output_type", [*ANSWERS, datetime.date, tuple[int, Color]], ids=str)
def test_answers_of_every_type(output_type: Any) -> None:
    """What the grammar lets through as an answer is one, with tools beside it and without."""
    adapter = TypeAdapter(output_type)
    done = 0
    failures: list[RunError] = []
    for seed in range(6):
        agent = Agent(GrammarModel(seed, call_rate=0.3), tools=[bounds] if seed % 2 else [], output_type=output_type)
        try:
            result = agent.run_sync("go", settings=ModelSettings(max_tokens=150, seed=seed), limits=Limits(steps=6))
        except RunError as error:
            failures.append(error)
            continue
        adapter.validate_python(result.output, strict=True)
        done += 1
    assert done
    assert [e for e in failures if CUT not in str(e) and not isinstance(e, LimitExceeded)] == []


def test_threads_may_share_an_agent_and_its_fake() -> None:
    """More kinds of requests than a decoder keeps grammars for, from more threads than there are processors."""
    agent = Agent(GrammarModel(3))
    names = [f"tool_{n}" for n in range(80)]

    def make(name: str) -> Any:
        def work(order: int) -> str:
            return f"{name} {order}"

        return tool(name=name)(work)

    def ask(name: str) -> list[str]:
        try:
            result = agent.run_sync(
                "go",
                tools=[make(name)],
                tool_choice="required",
                settings=ModelSettings(max_tokens=120),
                limits=Limits(steps=1),
            )
        except LimitExceeded as error:
            result = error.run
        return [record.name for record in result.calls]

    with ThreadPoolExecutor(12) as pool:
        called = list(pool.map(ask, names))
    assert [set(mine) for mine in called] == [{name} for name in names]
