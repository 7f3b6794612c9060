"""The forward thread and the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentgram.errors import GrammarError, ModelError
from agentgram.events import TextDelta
from agentgram.models import ModelEvent
from agentgram.models.threads import stream_from_thread


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(max_workers=1) as executor:
        yield executor


async def test_events_arrive_in_order_from_another_thread(thread: ThreadPoolExecutor) -> None:
    where: set[int] = set()

    def turn(stopped: Callable[[], bool]) -> Iterator[ModelEvent]:
        for word in "abc":
            where.add(threading.get_ident())
            yield TextDelta(text=word)

    got = [e.text async for e in stream_from_thread(thread, turn) if isinstance(e, TextDelta)]
    assert got == ["a", "b", "c"]
    assert where
    assert threading.get_ident() not in where


async def test_the_event_loop_runs_while_the_model_computes(thread: ThreadPoolExecutor) -> None:
    computing, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def turn(stopped: Callable[[], bool]) -> Iterator[ModelEvent]:
        loop.call_soon_threadsafe(computing.set)
        assert go_on.wait(30)
        yield TextDelta(text="done")

    async def meanwhile() -> None:
        await computing.wait()
        go_on.set()  # only a loop that is not blocked gets here

    other = asyncio.create_task(meanwhile())
    assert [e async for e in stream_from_thread(thread, turn)] == [TextDelta(text="done")]
    await other


async def test_closing_the_iterator_stops_before_the_next_token(thread: ThreadPoolExecutor) -> None:
    closed, finished = threading.Event(), threading.Event()
    made: list[int] = []

    def turn(stopped: Callable[[], bool]) -> Iterator[ModelEvent]:
        try:
            while not stopped():
                made.append(len(made))
                yield TextDelta(text="x")
                assert closed.wait(30)
        finally:
            finished.set()

    stream = stream_from_thread(thread, turn)
    assert await anext(stream) == TextDelta(text="x")
    await stream.aclose()
    closed.set()
    await asyncio.to_thread(finished.wait, 30)
    assert made == [0]


async def test_a_cancelled_task_stops_the_model(thread: ThreadPoolExecutor) -> None:
    begun, finished = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def turn(stopped: Callable[[], bool]) -> Iterator[ModelEvent]:
        loop.call_soon_threadsafe(begun.set)
        while not stopped():
            threading.Event().wait(0.001)
        finished.set()
        yield TextDelta(text="never read")

    async def consume() -> None:
        async for _ in stream_from_thread(thread, turn):
            pass

    task = asyncio.create_task(consume())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(finished.wait, 30)


async def test_errors_cross_over(thread: ThreadPoolExecutor) -> None:
    def refused(stopped: Callable[[], bool]) -> Iterator[ModelEvent]:
        raise GrammarError("cannot be enforced", pointer="/properties/x", keyword="not")
        yield

    def broken(stopped: Callable[[], bool]) -> Iterator[ModelEvent]:
        yield TextDelta(text="a")
        raise ZeroDivisionError("oops")

    with pytest.raises(GrammarError) as grammar:
        [e async for e in stream_from_thread(thread, refused)]
    assert grammar.value.pointer == "/properties/x"
    with pytest.raises(ModelError, match="ZeroDivisionError: oops") as model:
        [e async for e in stream_from_thread(thread, broken)]
    assert isinstance(model.value.__cause__, ZeroDivisionError)
