"""Runs of a model made of noise under the real grammar: whatever it writes, a tool can take."""

from __future__ import annotations

import datetime
import decimal
import enum
import pathlib
import uuid
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from agentgram import Agent, LimitExceeded, Limits, ModelSettings, Policy, Principal, RunResult, allow, tool
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
