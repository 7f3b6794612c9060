"""The only place that calls a user's function: it decides again, validates, runs, and puts the result into words."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from pydantic_core import PydanticSerializationError, to_json

from agentgram.events import ApprovalNeeded, CallDenied, Event, ToolProgress, ToolResult
from agentgram.messages import ToolCall, ToolResultPart
from agentgram.policy import Decision
from agentgram.recording import Recorder
from agentgram.rights import Rights
from agentgram.sessions import settled
from agentgram.tools import InvalidArguments, ModelRetry, RunContext, Tool, ToolDefinition, ToolFailed, Toolset

Instructions: TypeAlias = str | Callable[[RunContext[Any]], str | Awaitable[str | None] | None] | None
CallStatus: TypeAlias = Literal[
    "done", "retry", "failed", "unknown", "denied", "pending", "rejected", "cancelled", "skipped", "repeated"
]
"""``done``; ``retry``: wrong arguments, cut off, or the tool asked for another attempt; ``failed``: it could not
answer; ``unknown``: there is no such tool; ``denied``: the policy refused; ``pending``: a person decides;
``rejected``: a person declined;
``cancelled``: while it ran; ``skipped``: the run ended before; ``repeated``: it was made before, with the same result
(:attr:`agentgram.Limits.identical_calls`)."""

_log = logging.getLogger("agentgram")
_log.addHandler(logging.NullHandler())


@dataclass(frozen=True, kw_only=True)
class CallRecord:
    """A call that the model made, and what became of it."""

    call: ToolCall
    """The call as the model wrote it."""
    status: CallStatus
    value: Any = None
    """What the function returned; None where it did not."""
    content: str = ""
    """The text that goes back to the model."""
    exception: BaseException | None = field(default=None, compare=False)
    """What the function raised, with its traceback; the model sees only ``content``."""
    seconds: float = 0.0
    """How long the function ran."""
    rule: str = ""
    """The policy's rule that decided: which allowed the call, refused it, or wants a person to decide."""
    path: tuple[str | int, ...] = ()
    """The argument that the rule does not let through; empty where it is the tool, or nothing is refused."""
    trusted: bool = False
    """Whether no outsider can have written into ``content``."""

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.call.name

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments as JSON values."""
        return self.call.arguments

    @property
    def id(self) -> str:
        """The call's id."""
        return self.call.id

    @property
    def error(self) -> bool:
        """True when there is no result."""
        return self.status != "done"

    def to_part(self) -> ToolResultPart:
        """The record as the model reads it."""
        return ToolResultPart(
            name=self.name, content=self.content, call_id=self.id, error=self.error, trusted=self.trusted
        )


def waiting(calls: Iterable[ToolCall]) -> list[CallRecord]:
    """Records of calls that have not been made."""
    content = "Not run: the run was stopped."
    return [CallRecord(call=call, status="skipped", content=content, trusted=True) for call in calls]


def refusal(name: str, tools: Iterable[str]) -> str:
    """What the model reads when a tool is not there, or is there and not for this user: the same words."""
    known = ", ".join(tools)
    missing = f"There is no tool named {name!r}." if name else "That call cannot be made."
    return f"{missing} {f'The tools are: {known}.' if known else 'There are no tools.'}"


def unfit(name: str, path: Sequence[str | int], tool: ToolDefinition | None) -> str:
    """What the model reads when a tool is there and not for such a call; ``tool`` is narrowed to what may be called."""
    if not path:
        return f"{name} cannot be called now."
    where = ".".join(map(str, path))
    schema = {} if tool is None else tool.schema.get("properties", {}).get(path[0], {})
    asked = {key: value for key, value in schema.items() if key not in ("description", "title", "default")}
    told = f" It has to fit {to_json(asked).decode()}." if asked else ""
    return f"{name} cannot be called with this {where}.{told}"


def serialise(value: Any) -> str:
    """A tool's result as the model reads it: a string as it is, anything else as the JSON that Pydantic writes.

    Raises:
        PydanticSerializationError: The value has no JSON.
    """
    return value if isinstance(value, str) else to_json(value, inf_nan_mode="null").decode()


def cut(text: str, limit: int, count: Callable[[str], int]) -> str:
    """The beginning of a text, and a note that it is one, where the text has more than ``limit`` tokens."""
    # No tokenizer's tokens are longer on average: so the counting, too, is bounded for a result of any length.
    head = text[: limit * 32]
    if len(head) == len(text) and count(text) <= limit:
        return text
    low, high = 0, len(head)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(head[:middle]) <= limit else (low, middle - 1)
    return f"{head[:low]}\n[cut: the first {low} of {len(text)} characters]"


@dataclass(frozen=True, kw_only=True)
class Executor:
    """Runs the calls of one turn."""

    tools: Toolset
    rights: Rights
    recorder: Recorder
    emit: Callable[[Event], None]
    count: Callable[[str], int]
    """Tokens of a text, for results that are cut."""

    async def run(
        self,
        records: list[CallRecord],
        context: RunContext[Any],
        retries: Mapping[str, int],
        approved: Collection[str] = (),
    ) -> None:
        """Runs calls side by side, and writes into ``records`` what became of each.

        Nothing that a tool does is raised. When the run is cancelled, so are the tools; what had ended is recorded.

        Args:
            records: One per call, as :func:`waiting` makes them; replaced in place. Only those that are ``skipped`` are
                made.
            context: What tools are told of the run; each call gets a copy with its id.
            retries: How often in a row each tool has asked for another attempt.
            approved: Ids of the calls that a person has approved.
        """

        async def one(index: int) -> None:
            call = records[index].call
            if records[index].status != "skipped":
                self._report(records[index])
                return
            mine = replace(context, call_id=call.id, retry=retries.get(call.name, 0), _cancelled=threading.Event())
            records[index] = CallRecord(call=call, status="cancelled", content="Cancelled while it ran.", trusted=True)
            try:
                records[index] = await self._one(call, mine, call.id in approved)
            finally:
                mine._cancelled.set()
                await settled(self._audited(records[index]))
            self._report(records[index])

        for group in self._groups([record.call for record in records]):
            tasks = [asyncio.ensure_future(one(index)) for index in group]
            try:
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    def _groups(self, calls: Sequence[ToolCall]) -> list[list[int]]:
        """Places of calls that may run at the same time; a sequential tool is alone."""
        groups: list[list[int]] = []
        alone = True
        for index, call in enumerate(calls):
            tool = self.tools.get(call.name)
            sequential = tool is not None and tool.sequential
            if alone or sequential:
                groups.append([])
            groups[-1].append(index)
            alone = sequential
        return groups

    async def _audited(self, record: CallRecord) -> None:
        """Writes what became of a call; what was never begun has no line."""
        if record.status == "denied":
            denied = CallDenied(tool=record.name, path=record.path, rule=record.rule)
            await self.recorder.denied(denied, "validator", record.call)
        elif record.status == "pending":
            await self.recorder.asked(record.call, record.rule)
        elif record.status in ("done", "failed", "retry", "cancelled"):
            await self.recorder.outcome(record.call, record.status, record.seconds)

    def _report(self, record: CallRecord) -> None:
        if record.status == "denied":
            self.emit(CallDenied(tool=record.name, path=record.path, rule=record.rule))
        elif record.status == "pending":
            self.emit(ApprovalNeeded(call=record.call, rule=record.rule))
        else:
            self.emit(
                ToolResult(
                    call=record.call,
                    value=record.content if record.error else record.value,
                    content=record.content,
                    error=record.error,
                    seconds=record.seconds,
                )
            )

    async def _one(self, call: ToolCall, context: RunContext[Any], approved: bool) -> CallRecord:
        tool = self.tools.get(call.name)
        if tool is None:
            return CallRecord(call=call, status="unknown", content=self._refusal(call.name), trusted=True)
        decision = self.rights.decide(tool, call.arguments)
        if decision.denied:
            return self._denied(tool, call, decision)
        try:
            value = tool.parameters.read(call.arguments)
        except InvalidArguments as error:
            text = f"The arguments of {call.name} are not valid: {error}."
            return CallRecord(call=call, status="retry", content=text, exception=error, trusted=True)
        except Exception as error:  # a validator of the tool's own that fails instead of refusing
            return CallRecord(
                call=call, status="failed", content=f"{tool.name} failed.", exception=_logged(tool, error), trusted=True
            )
        decision = self.rights.decide(tool, call.arguments, tool.parameters.by_name(value))
        if decision.denied:
            return self._denied(tool, call, decision)
        if (decision.ask and not approved) or tool.function is None:
            # A tool without a function is answered by the caller, who is a person as far as the run can tell.
            return CallRecord(call=call, status="pending", content="Waiting for a person.", rule=decision.rule)
        if not await self.rights.reserve(decision):
            return self._denied(tool, call, decision)
        await self.recorder.intent(call, decision.rule)  # where that fails, nothing is called
        return await self._call(tool, call, value, context, decision.rule)

    def _denied(self, tool: Tool[..., Any], call: ToolCall, decision: Decision) -> CallRecord:
        known = self.rights.decide(tool, None)
        content = self._refusal(call.name) if known.denied else unfit(call.name, decision.path, known.narrowed)
        return CallRecord(
            call=call, status="denied", content=content, rule=decision.rule, path=decision.path, trusted=True
        )

    def _refusal(self, name: str) -> str:
        return refusal(name, self.rights.visible())

    async def _call(
        self, tool: Tool[..., Any], call: ToolCall, value: Any, context: RunContext[Any], rule: str
    ) -> CallRecord:
        start = time.perf_counter()

        def record(status: CallStatus, content: str, **more: Any) -> CallRecord:
            seconds, trusted = time.perf_counter() - start, tool.output == "trusted"
            self.rights.made(call, tool, succeeded=status == "done")
            return CallRecord(
                call=call, status=status, content=content, seconds=seconds, rule=rule, trusted=trusted, **more
            )

        clock = asyncio.timeout(tool.timeout)
        try:
            async with clock:
                args, kwargs = tool.parameters.arrange(value, context)
                assert tool.function is not None
                result = await self._result(tool.function, args, kwargs, call)
            content = serialise(result)
            if tool.max_result_tokens is not None:
                content = await in_thread(cut, content, tool.max_result_tokens, self.count)
            return record("done", content, value=result)
        except ModelRetry as error:
            return record("retry", str(error) or f"Call {tool.name} again, differently.", exception=error)
        except ToolFailed as error:
            return record("failed", str(error) or f"{tool.name} failed.", exception=error)
        except TimeoutError as error:
            if clock.expired():
                return record("failed", f"{tool.name} took longer than {tool.timeout:g} seconds.", exception=error)
            return record("failed", f"{tool.name} failed.", exception=_logged(tool, error))
        except PydanticSerializationError as error:
            return record(
                "failed", f"{tool.name} gave a result that cannot be written.", exception=_logged(tool, error)
            )
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return record("failed", f"{tool.name} failed.", exception=_logged(tool, error))
        except Exception as error:  # whatever a tool raises: the model learns that it failed, the host learns why
            return record("failed", f"{tool.name} failed.", exception=_logged(tool, error))

    async def _result(
        self, function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any], call: ToolCall
    ) -> Any:
        if _is_async(function):
            result = function(*args, **kwargs)
        else:
            result = await in_thread(function, *args, **kwargs)
        if inspect.isasyncgen(result):
            last: Any = None
            first = True
            async with aclosing(result):
                async for item in result:
                    if not first:
                        self.emit(ToolProgress(call_id=call.id, name=call.name, value=last))
                    last, first = item, False
            return last
        return await result if inspect.isawaitable(result) else result


def _logged(tool: Tool[..., Any], error: BaseException) -> BaseException:
    _log.warning("tool %s failed", tool.name, exc_info=error)
    return error


def _is_async(function: Any) -> bool:
    call = inspect.unwrap(getattr(function, "func", function))
    if not inspect.isroutine(call):
        call = type(call).__call__
    return inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call)


async def written(instructions: Instructions, context: RunContext[Any]) -> str | None:
    """Instructions as text; a function of the context is asked for it."""
    if instructions is None or isinstance(instructions, str):
        return instructions
    text = instructions(context)
    return await text if inspect.isawaitable(text) else text


async def in_thread(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Runs a function on a thread of its own and waits for what it returns or raises.

    Not on a pool: a tool that hangs must neither take another's place nor keep the process from ending.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: Any, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(result)
        elif isinstance(error, Exception) and not isinstance(error, StopIteration):
            done.set_exception(error)
        else:
            # StopIteration cannot pass through a future; SystemExit and the like would end more than the tool.
            failure = RuntimeError(f"the function raised {type(error).__name__}")
            failure.__cause__ = error
            done.set_exception(failure)

    def work() -> None:
        result, error = None, None
        try:
            result = context.run(function, *args, **kwargs)
        except BaseException as caught:  # raised where the result is waited for
            error = caught
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:
            _log.debug("the run was over before %r returned", function)

    threading.Thread(target=work, name=f"agentgram-{getattr(function, '__name__', 'tool')}", daemon=True).start()
    return await done
