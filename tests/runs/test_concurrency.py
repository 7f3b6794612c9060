"""Two hundred runs at once, of fifty users with a hundred tools: some are cancelled, some run out of time.

Each run carries a canary of its own, in its prompt, its ``deps`` and its session; each tool hands back what was bound to
it. A canary that turns up in another run, another session or for another user is cross-talk.
"""

from __future__ import annotations

import asyncio
import gc
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest

from agentgram import (
    Agent,
    LimitExceeded,
    Limits,
    ModelSettings,
    Principal,
    RunContext,
    SQLiteSession,
    Tool,
    bind,
    tool,
)
from agentgram.events import Event, ToolCallEnd
from agentgram.executor import CallRecord, Executor
from agentgram.messages import Message
from agentgram.run import Run
from agentgram.sessions import Keeper
from agentgram.testing import GrammarModel

RUNS, USERS, TOOLS = 200, 50, 100

pytestmark = pytest.mark.slow


@dataclass
class Deps:
    canary: str
    hangs: bool


def make(number: int) -> Tool[..., Any]:
    async def work(
        ctx: RunContext[Deps],
        user: Annotated[str, bind("user.id")],
        canary: Annotated[str, bind("deps.canary")],
        run: Annotated[str, bind("run_id")],
        order: int,
    ) -> str:
        """Does something.

        Args:
            order: A number.
        """
        await asyncio.sleep(0)
        if ctx.deps.hangs:
            await asyncio.Event().wait()
        assert canary == ctx.deps.canary
        assert any(canary in message.text for message in ctx.messages)
        return f"{canary} {user} {run}"

    def threaded(
        ctx: RunContext[Deps], user: Annotated[str, bind("user.id")], run: Annotated[str, bind("run_id")], order: int
    ) -> str:
        """Does the same on a thread."""
        if ctx.deps.hangs:
            while not ctx.cancelled:
                time.sleep(0.01)
        return f"{ctx.deps.canary} {user} {run}"

    return tool(name=f"tool_{number}")(work if number % 10 else threaded)


@dataclass
class Outcome:
    status: str
    run_id: str
    calls: tuple[CallRecord, ...]
    messages: tuple[Message, ...]


def kind(number: int) -> str:
    """What happens to a run: a fifth is cancelled, a twentieth runs out of time."""
    return "cancelled" if number % 5 == 0 else "late" if number % 20 == 1 else "done"


async def one(agent: Agent[Any, Any], number: int, path: Path) -> Outcome:
    deps = Deps(canary=f"canary-{number}.", hangs=kind(number) == "late")
    stream = agent.stream(
        f"My secret is {deps.canary}",
        deps=deps,
        user=Principal(f"user-{number % USERS}."),
        session=SQLiteSession(path, f"session-{number}"),
        tool_choice="required",
        settings=ModelSettings(max_tokens=150, seed=number),
        limits=Limits(steps=2, seconds=2 if kind(number) == "late" else None),
    )
    async with stream:
        try:
            async for event in stream:
                if kind(number) == "cancelled" and leaves(event):
                    break
        except LimitExceeded as error:
            return Outcome("limit", error.run.run_id, error.run.calls, error.run.messages)
    result = stream.result if kind(number) != "cancelled" else cancelled(stream)
    return Outcome(result.status, result.run_id, result.calls, result.messages)


def leaves(event: Event) -> bool:
    return isinstance(event, ToolCallEnd)


def cancelled(stream: Any) -> Any:
    from agentgram import RunCancelled

    with pytest.raises(RunCancelled) as caught:
        _ = stream.result
    return caught.value.run


def check(number: int, outcome: Outcome, path: Path) -> int:
    """Looks for every other run's canary in everything that this one has; returns how many results had its own."""
    mine = (f"canary-{number}.", f"user-{number % USERS}.", outcome.run_id)
    for record in outcome.calls:
        if record.status == "done":
            assert record.value == " ".join(mine)
    session = SQLiteSession(path, f"session-{number}")
    assert session.owner == mine[1]
    assert session.messages == outcome.messages
    text = "\n".join(str(message.to_dict()) for message in session.messages)
    assert mine[0] in text
    assert text.count("canary-") == text.count(mine[0]), "another's canary is in the conversation"
    return sum(record.status == "done" for record in outcome.calls)


async def everybody(agent: Agent[Any, Any], path: Path) -> tuple[int, dict[str, int]]:
    outcomes = await asyncio.gather(*(one(agent, number, path) for number in range(RUNS)))
    assert len({outcome.run_id for outcome in outcomes}) == RUNS
    results = sum(check(number, outcome, path) for number, outcome in enumerate(outcomes))
    counts: dict[str, int] = {}
    for outcome in outcomes:
        counts[outcome.status] = counts.get(outcome.status, 0) + 1
    return results, counts


def alive() -> dict[str, int]:
    """How many of a run's parts there are in this process."""
    gc.collect()
    kinds = (Run, Executor, Keeper, CallRecord, Message, RunContext)
    # By type(): isinstance() asks the things themselves, and some of other libraries' warn of it.
    found = [type(thing).__name__ for thing in gc.get_objects() if issubclass(type(thing), kinds)]
    return {name: found.count(name) for name in set(found)}


async def test_no_crosstalk_and_nothing_left_behind(tmp_path: Path) -> None:
    model = GrammarModel(7)
    agent: Agent[Any, Any] = Agent(model, tools=[make(number) for number in range(TOOLS)], deps_type=Deps)
    before = alive()
    for name in ("first.db", "second.db"):
        results, counts = await everybody(agent, tmp_path / name)
        assert counts["cancelled"] == RUNS // 5
        assert counts["limit"] >= RUNS // 20
        assert sum(counts.values()) == RUNS
        assert results > RUNS // 2, "most runs have to have made a call, or this shows nothing"
        await asyncio.sleep(0)
        assert alive() == before
        assert len(asyncio.all_tasks()) == 1
