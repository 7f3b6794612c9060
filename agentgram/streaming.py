"""A run while it happens: its events as an iterator, asynchronous or not."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import queue
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from agentgram.closing import Closing
from agentgram.errors import RunCancelled, RunError
from agentgram.events import Event
from agentgram.run import Run
from agentgram.task import Out, RunResult, Task

T = TypeVar("T")


class RunStream(Generic[Out]):
    """A run's events, as they happen. The run begins with the first event that is asked for, and goes on as they are.

    ::

        async with agent.stream("Where is order 17?") as stream:
            async for event in stream:
                ...
        stream.result

    Leaving the ``async with`` early, or :meth:`aclose`, cancels the run: the model stops within one token, tools that
    are coroutines are cancelled.

    Iterating raises what the run raises (:class:`agentgram.RunError`, ``PolicyError``), after the events before it.
    """

    def __init__(self, task: Task) -> None:
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._run = Run[Out](task, self._events.put_nowait, self._events.join)
        self._task: asyncio.Task[RunResult[Out]] | None = None
        self._over = False
        self._unread = False

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        if self._over:
            raise StopAsyncIteration
        if self._task is None:
            self._task = asyncio.ensure_future(self._run.execute())
            events = self._events  # and not self: a stream that is dropped must be free to go
            self._task.add_done_callback(lambda _: events.put_nowait(None))
        elif self._unread:
            self._events.task_done()  # only now is the event before this one done with: the run goes on
        self._unread = True
        event = await self._events.get()
        if event is not None:
            return event
        self._over = True
        if not self._task.cancelled():
            self._task.result()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Cancels the run if it has not ended, and waits until it has."""
        self._over = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        # Iteration was left without closing: nobody will read on. The loop may be another thread's, or closed.
        task = getattr(self, "_task", None)
        if task is not None and not task.done() and not task.get_loop().is_closed():
            task.get_loop().call_soon_threadsafe(task.cancel)

    @property
    def result(self) -> RunResult[Out]:
        """What the run did, once it has ended.

        Raises:
            RunCancelled: It was cancelled; ``.run`` has what was done, with messages that can be continued.
            RunError: It failed, or it has not ended: then iterate to the end first.
        """
        if self._task is None or not self._task.done():
            raise RunError("the run has not ended: iterate over the stream to its end first.")
        if self._task.cancelled():
            raise RunCancelled(
                "the run was cancelled. Its messages can be given to another run.", run=self._run.result("cancelled")
            )
        return self._task.result()


class SyncRunStream(Closing, Generic[Out]):
    """A run's events for code that is not asynchronous; the run has a thread of its own.

    ::

        with agent.stream_sync("Where is order 17?") as stream:
            for event in stream:
                ...
        stream.result

    Leaving the ``with`` early, or :meth:`close`, cancels the run. Iterating raises what the run raises.
    """

    def __init__(self, task: Task) -> None:
        self._reader = _Reader[Out](task)
        # The thread knows the reader only: a stream that is dropped is free to go, and its run with it.
        weakref.finalize(self, self._reader.cancel)

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        event = self._reader.read()
        if event is None:
            raise StopIteration
        return event

    def close(self) -> None:
        """Cancels the run if it has not ended, and waits until it has."""
        self._reader.cancel()
        self._reader.join()

    @property
    def result(self) -> RunResult[Out]:
        """What the run did, once it has ended.

        Raises:
            RunCancelled: It was cancelled; ``.run`` has what was done, with messages that can be continued.
            RunError: It failed, or it has not ended: then iterate to the end first.
        """
        return self._reader.result()


class _Reader(Generic[Out]):
    """Reads a stream on a thread with an event loop of its own, an event at a time, as it is asked to."""

    def __init__(self, task: Task) -> None:
        self._events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stream: RunStream[Out] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._started = threading.Event()
        self._wanted = asyncio.Semaphore(0)
        self._error: BaseException | None = None
        self._over = False
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=lambda: context.run(asyncio.run, self._read(task)), name="agentgram-run", daemon=True
        )

    async def _read(self, task: Task) -> None:
        self._loop, self._reading = asyncio.get_running_loop(), asyncio.current_task()
        self._started.set()
        try:
            async with RunStream[Out](task) as self._stream:
                await self._wanted.acquire()
                async for event in self._stream:
                    self._events.put(event)
                    await self._wanted.acquire()
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # raised where the events are read
            self._error = error
        finally:
            self._events.put(None)

    def read(self) -> Event | None:
        """The next event; None when there is none. Raises what the run raises."""
        if self._over:
            return None
        if not self._thread.ident:
            self._thread.start()
            self._started.wait()
        self._ask(self._wanted.release)
        event = self._events.get()
        if event is not None:
            return event
        self._over = True
        self._thread.join()
        if self._error is not None:
            raise self._error
        return None

    def cancel(self) -> None:
        """Cancels the run if it has not ended."""
        self._over = True
        if self._thread.ident and self._thread.is_alive():
            self._started.wait()  # an interrupt may come before the thread has begun
            assert self._reading is not None
            self._ask(self._reading.cancel)

    def join(self) -> None:
        """Waits until the run has ended."""
        if self._thread.ident:
            self._thread.join()

    def _ask(self, act: Callable[[], object]) -> None:
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):  # the run has ended, and its loop with it
            self._loop.call_soon_threadsafe(act)

    def result(self) -> RunResult[Out]:
        if self._stream is None:
            if self._error is not None:
                raise self._error
            raise RunError("the run has not begun: iterate over the stream to its end first.")
        return self._stream.result


def run_blocking(main: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end and returns what it returns; on a thread of its own where a loop runs already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(main)
    outcome: list[T] = []
    failure: list[BaseException] = []
    running: list[Callable[[], object]] = []
    ended = threading.Event()
    context = contextvars.copy_context()

    async def held() -> T:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        running.append(lambda: loop.call_soon_threadsafe(task.cancel))
        return await main

    def work() -> None:
        try:
            outcome.append(context.run(asyncio.run, held()))
        except BaseException as error:  # raised where the result is waited for
            failure.append(error)
        finally:
            ended.set()

    thread = threading.Thread(target=work, name="agentgram-run", daemon=True)
    try:
        thread.start()
        ended.wait()  # and not join(): interrupted once, that takes the thread for ended
    except BaseException:  # Ctrl-C in a notebook: nobody waits any more
        for cancel in running:
            with contextlib.suppress(RuntimeError):  # it has ended meanwhile
                cancel()
        if thread.ident:
            ended.wait()
        raise
    if failure:
        raise failure[0]
    return outcome[0]
