"""Tools of MCP servers (Model Context Protocol), through its own Python SDK: the extra ``mcp``.

What a server says is somebody else's word. Its tools carry its name (``shop.refund``), which policies go by; they have
no tags but the host's; their results are untrusted; and their descriptions and schemas can be pinned by hash, so that a
server cannot change them unnoticed after somebody has looked at them.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
import logging
import re
import threading
from collections.abc import AsyncIterator, Collection, Coroutine, Mapping
from concurrent.futures import Future
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from agentgram.closing import Closing
from agentgram.errors import DefinitionError, RunError, install_hint, nearest
from agentgram.tools.decorator import Tool, ToolFailed
from agentgram.tools.toolset import Toolset

T = TypeVar("T")

MAX_DESCRIPTION = 2_000
"""Characters of a server's description that a model is shown."""
_log = logging.getLogger("agentgram")


class MCPToolset(Closing, Toolset):
    """The tools of one MCP server, as they were when it was connected to.

    ::

        with MCPToolset("shop", "http://localhost:8000/mcp", pins="shop.pins.json") as shop:
            agent.run_sync("Refund order 17.", tools=shop.filtered(lambda tool: tool.name != "shop.wipe"))

    The connection has a thread of its own, so that runs on any event loop, and without one, may use it; it ends with
    the ``with``, or :meth:`close`.
    """

    def __init__(
        self,
        name: str,
        server: Any,
        *,
        only: Collection[str] | None = None,
        pins: str | PathLike[str] | Mapping[str, str] | None = None,
        descriptions: Mapping[str, str] | None = None,
        tags: str | Collection[str] = (),
        timeout: float = 60.0,
        max_result_tokens: int | None = None,
    ) -> None:
        """Connects, starting the server where it is a command, and asks for its tools.

        Args:
            name: What to call the server: its tools are named ``NAME.tool``.
            server: A URL; ``mcp.StdioServerParameters`` of a command to start; or whatever else ``mcp.Client`` takes.
            only: The tools wanted, by the server's names; None for all.
            pins: Hashes of the tools, by qualified name, or a JSON file of them. A file that is not there is written. A
                tool that is new, or not what was pinned, is an error.
            descriptions: Texts of your own in place of the server's, by the server's names.
            tags: Words that policies select by, for all of them.
            timeout: Seconds that connecting, and each call, may take.
            max_result_tokens: Tokens of a result that the model sees.

        Raises:
            DefinitionError: A tool cannot be named or described, one that was asked for is not there, or a pin differs.
            RunError: The server cannot be reached, or did not answer in time; or ``mcp`` is not installed.
        """
        if importlib.util.find_spec("mcp") is None:
            raise RunError(f"tools of MCP servers need the package mcp. Run: {install_hint('mcp')}")
        self.name = name
        self._connection = _Connection(name, server, timeout)
        try:
            listed = self._connection.wait(self._connection.list_tools(), timeout)
            found = {tool.name: tool for tool in listed}
            for wanted in (*(only or ()), *(descriptions or ())):
                if wanted not in found:
                    raise DefinitionError(f"MCP server {name!r} has no tool {wanted!r}. {nearest(wanted, found)}")
            chosen = [tool for tool in listed if only is None or tool.name in only]
            self.pins = {f"{name}.{tool.name}": _hash(tool) for tool in chosen}
            """The hash of each tool's name, description and schema."""
            _check(self.pins, pins, name)
            super().__init__(
                Tool.from_schema(
                    f"{name}.{tool.name}",
                    tool.input_schema,
                    description=(descriptions or {}).get(tool.name) or _shown(tool.description or ""),
                    run=self._connection.caller(tool.name),
                    tags=tags,
                    timeout=timeout,
                    max_result_tokens=max_result_tokens,
                    unsupported="relax",
                    source=name,
                )
                for tool in chosen
            )
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the connection, and the server where it was started here; its tools fail from now on."""
        self._connection.close()


class _Connection:
    """A client on an event loop of its own."""

    def __init__(self, name: str, server: Any, timeout: float) -> None:
        self.name = name
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[Any] | None = None
        self._ready: Future[Any] = Future()
        self._leave = asyncio.Event()
        self._thread = threading.Thread(target=self._run, args=(server,), name=f"agentgram-mcp-{name}", daemon=True)
        self._thread.start()
        try:
            self._client = self._ready.result(timeout)
        except BaseException as error:
            self.close()
            what = f"did not answer within {timeout:g} seconds" if isinstance(error, TimeoutError) else _said(error)
            raise RunError(f"MCP server {name!r} cannot be reached: {what}.") from error

    def _run(self, server: Any) -> None:
        try:
            self._loop.run_until_complete(self._serve(server))
        except BaseException as error:
            if not self._ready.done():
                self._ready.set_exception(error)
            elif not isinstance(error, asyncio.CancelledError):
                _log.warning("MCP server %s: the connection broke", self.name, exc_info=error)
        finally:
            self._loop.close()

    async def _serve(self, server: Any) -> None:
        from mcp import Client

        self._task = asyncio.current_task()
        async with Client(server) as client:
            if not self._ready.cancelled():
                self._ready.set_result(client)
            await self._leave.wait()

    async def list_tools(self) -> list[Any]:
        tools: list[Any] = []
        cursor = None
        while True:
            page = await self._client.list_tools(cursor=cursor)
            tools += page.tools
            cursor = page.next_cursor
            if not cursor:
                return tools

    def wait(self, work: Coroutine[Any, Any, T], timeout: float) -> T:
        """Runs work on the connection's thread, and waits for it.

        Raises:
            RunError: It failed, or took too long.
        """
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout)
        except Exception as error:
            future.cancel()
            what = f"no answer within {timeout:g} seconds" if isinstance(error, TimeoutError) else _said(error)
            raise RunError(f"MCP server {self.name!r} does not tell its tools: {what}.") from error

    def caller(self, tool: str) -> Any:
        """What runs one of the server's tools."""

        async def call(**arguments: Any) -> AsyncIterator[Any]:
            """Yields what the server reports meanwhile, then the result."""
            if not self._thread.is_alive():
                raise ToolFailed(f"The server {self.name} is not connected.")
            here, told = asyncio.get_running_loop(), asyncio.Queue[dict[str, Any] | None]()

            async def tell(progress: float, total: float | None, message: str | None) -> None:
                report = {"progress": progress, "total": total, "message": message}
                here.call_soon_threadsafe(told.put_nowait, report)

            calling = self._client.call_tool(tool, arguments, progress_callback=tell)
            answer = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(calling, self._loop))
            answer.add_done_callback(lambda _: told.put_nowait(None))
            try:
                while (report := await told.get()) is not None:
                    yield report
            finally:
                answer.cancel()  # where the run has left; no more than a word where the answer is there
            result = answer.result()
            text = "\n".join(map(_text, result.content))
            if result.is_error:
                raise ToolFailed(text or f"{tool} failed.")
            yield text if text or result.structured_content is None else result.structured_content

        call.__name__ = tool
        return call

    def close(self) -> None:
        if self._thread.is_alive():
            try:
                self._loop.call_soon_threadsafe(self._stop)
            except RuntimeError:  # it has ended meanwhile
                return
            self._thread.join(10)

    def _stop(self) -> None:
        self._leave.set()
        if not self._ready.done() and self._task is not None:
            self._task.cancel()


def _text(content: Any) -> str:
    """A piece of a result as text; what is not text is named, for no model here could see it."""
    if content.type == "text":
        return str(content.text)
    if content.type == "resource" and getattr(content.resource, "text", None) is not None:
        return str(content.resource.text)
    kind = getattr(content, "mime_type", None) or getattr(getattr(content, "resource", None), "mime_type", None)
    where = getattr(content, "uri", None) or getattr(getattr(content, "resource", None), "uri", None)
    return f"[{content.type}{f', {kind}' if kind else ''}{f', {where}' if where else ''}]"


def _shown(description: str) -> str:
    """A server's description without control characters, and not without end."""
    text = re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069]", "", description).strip()
    return text if len(text) <= MAX_DESCRIPTION else text[:MAX_DESCRIPTION] + " ..."


def _said(error: BaseException) -> str:
    """The first thing that went wrong, of errors that come in groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}".strip(": ").rstrip(".")


def _hash(tool: Any) -> str:
    told = {"name": tool.name, "description": tool.description or "", "schema": tool.input_schema}
    text = json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _check(found: Mapping[str, str], pins: str | PathLike[str] | Mapping[str, str] | None, name: str) -> None:
    """Holds tools against their pins; writes those of a file that is not there.

    Raises:
        DefinitionError: A tool is new or has changed, or the file cannot be read.
    """
    if pins is None:
        return
    where = "the pins"
    if not isinstance(pins, Mapping):
        where, path = str(pins), Path(pins)
        if not path.exists():
            path.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n", encoding="utf-8")
            return
        try:
            pins = dict(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise DefinitionError(f"{where} holds no pins: {error}. Remove it to pin anew.") from error
    changed = sorted(tool for tool, value in found.items() if pins.get(tool, value) != value)
    new = sorted(tool for tool in found if tool not in pins)
    said = [f"{', '.join(tools)} {what}" for tools, what in ((changed, "changed"), (new, "new")) if tools]
    if said:
        raise DefinitionError(
            f"MCP server {name!r} has tools that are not as in {where}: {'; '.join(said)}. Read their descriptions and "
            "schemas, then pin them again; or leave them out with only=."
        )
