"""From a model's own thread to the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from agentgram.errors import AgentgramError, ModelError
from agentgram.models.base import ModelEvent


async def stream_from_thread(
    thread: ThreadPoolExecutor, start: Callable[[Callable[[], bool]], Iterator[ModelEvent]]
) -> AsyncGenerator[ModelEvent, None]:
    """Iterates over a generator that runs on another thread, without blocking the event loop.

    Closing the iterator stops the generator before its next token.

    Args:
        thread: Where to run it.
        start: Makes the generator, on that thread; its argument tells whether to stop.

    Raises:
        ModelError: Something other than agentgram's own errors was raised there; it is the cause.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[ModelEvent | BaseException | None] = asyncio.Queue()
    stopped = threading.Event()

    def put(item: ModelEvent | BaseException | None) -> None:
        try:
            loop.call_soon_threadsafe(queue.put_nowait, item)
        except RuntimeError:  # the loop is closed, nobody listens
            stopped.set()

    def work() -> None:
        try:
            if not stopped.is_set():
                for event in start(stopped.is_set):
                    put(event)
            put(None)
        except BaseException as error:
            put(error)

    thread.submit(work)
    try:
        while (item := await queue.get()) is not None:
            if isinstance(item, AgentgramError):
                raise item
            if isinstance(item, BaseException):
                raise ModelError(f"the model failed while decoding: {type(item).__name__}: {item}") from item
            yield item
    finally:
        stopped.set()
