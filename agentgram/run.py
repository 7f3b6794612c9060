"""One run as a state machine: ask the model, run its calls, tell it the results, until there is an answer."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any, Generic

from pydantic import ValidationError

from agentgram.approvals import PendingCall, RunState, Verdict, check_approver
from agentgram.breaker import Breaker
from agentgram.errors import DefinitionError, LimitExceeded, ModelError, PolicyError, RunCancelled, RunError
from agentgram.events import CallDenied, Event, FinalOutput, MalformedCall, StepEnd, ToolCallEnd
from agentgram.executor import CallRecord, Executor, refusal, unfit, waiting, written
from agentgram.formats.request import Only, Request, ToolChoice
from agentgram.limits import Usage
from agentgram.messages import Message, ToolCall, ToolResultPart, answered, system, tool_results, user
from agentgram.models import guard
from agentgram.models.base import ModelRequest, count_tokens
from agentgram.naming import CallIds
from agentgram.policy import Principal
from agentgram.policy.state import Past
from agentgram.recording import Recorder
from agentgram.rights import Rights
from agentgram.sessions import Keeper
from agentgram.task import Out, RunResult, RunStatus, Task
from agentgram.tools import RunContext, ToolDefinition
from agentgram.tools.signature import describe

ANSWER_RETRIES = 2
"""How often a model may correct an answer that does not fit the output type (it cannot happen under a grammar)."""

NOT_MADE = ("denied", "pending", "rejected", "skipped", "repeated")
"""What became of calls that were not made."""

CUT = "was cut off at the limit of tokens for one turn, before it was complete, and does not count."

_log = logging.getLogger("agentgram")


class Run(Generic[Out]):
    """One run. Used once, by one task."""

    def __init__(
        self, task: Task, emit: Callable[[Event], None], pause: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Args:
        task: What to do.
        emit: Told every event as it happens; must not block.
        pause: Awaited after the model's events and after a turn's calls: a reader that leaves at an event can
            so be sure that nothing has gone on behind it.

        Raises:
            PolicyError: There is a policy and no user.
        """
        if task.policy is not None and task.principal is None:
            raise PolicyError("the agent has a policy, so each run needs user=Principal('id', roles=...).")
        if task.principal is not None and not isinstance(task.principal, Principal):
            raise PolicyError(f"user is {task.principal!r}: pass Principal('id', roles=...).")
        self.task = task
        self.id = uuid.uuid4().hex if task.resumed is None else task.resumed.run_id
        self._tell_reader = emit
        self._pause = pause
        past = Past(tainted=task.tainted)
        self._rights = Rights(
            policy=task.policy, user=task.principal, tools=task.tools, session=task.session, past=past
        )
        self._recorder = Recorder(audit=task.audit, rights=self._rights, run_id=self.id)
        self._executor = Executor(
            tools=task.tools,
            rights=self._rights,
            recorder=self._recorder,
            emit=self._emit,
            count=lambda text: count_tokens(task.model, text),
        )
        self._history = len(task.history)
        self._messages: list[Message] = [*task.history, *self._said(task.history)]
        self._keeper = Keeper(task.session, self.id, task.principal.id if task.principal is not None else None)
        self._breaker = Breaker(task.limits.identical_calls)
        self._circling = False
        self._calls: list[CallRecord] = []
        self._denied: list[CallDenied] = []
        self._pending: list[CallRecord] = []
        self._ids = CallIds()
        waiting_since = () if task.resumed is None else task.resumed.pending
        self._once = {pending.call.id: pending.once for pending in waiting_since}
        self._retries: dict[str, int] = {}
        self._answer_retries = 0
        self._satisfied = False
        self._usage = Usage() if task.resumed is None else task.resumed.usage
        self._output: Any = None
        self._status: RunStatus | None = None
        self._last_finish = ""

    async def execute(self) -> RunResult[Out]:
        """Runs to the end.

        Raises:
            RunError: The run failed or reached a limit; the error carries what was done.
            PolicyError: The policy leaves nothing of what ``tool_choice`` asks for.
        """
        try:
            result = await self._execute()
        except BaseException as error:
            # Its kind only: the text of an error may hold what a tool or a user said.
            _log.debug("run %s ended with %s: %s", self.id, type(error).__name__, self._usage)
            raise
        _log.debug("run %s is %s: %s", self.id, result.status, result.usage)
        return result

    async def _execute(self) -> RunResult[Out]:
        clock = asyncio.timeout(self.task.limits.seconds)
        try:
            async with clock, self._conversation():
                if self.task.resumed is not None:
                    await self._go_on(self.task.resumed)
                while self._status is None:
                    await self._step()
        except TimeoutError:
            if not clock.expired():
                raise
            raise LimitExceeded(
                f"the run took longer than {self.task.limits.seconds:g} seconds. Raise Limits(seconds=...).",
                run=self.result("limit"),
            ) from None
        except asyncio.CancelledError as error:
            error.run = self.result("cancelled")  # type: ignore[attr-defined]  # asyncio's own error has to go on
            raise
        except RunError as error:
            if error.run is None:
                error.run = self.result("limit" if isinstance(error, LimitExceeded) else "failed")
            raise
        return self.result(self._status)

    @asynccontextmanager
    async def _conversation(self) -> AsyncIterator[None]:
        """Holds the session, where there is one, and leaves all of the run's messages in it, however the run ends."""
        async with self._keeper as history:
            if history is not None:
                self._messages = [*history, *self._said(history)]
                self._history = self._keeper.kept
            self._ids.remember(self._messages)
            self._rights.remember(self._messages)
            await self._keeper.keep(self._messages)
            try:
                yield
            finally:
                await self._keeper.keep(self._messages)

    def _said(self, history: Sequence[Message]) -> Sequence[Message]:
        """What the run begins with; calls that wait for a person stay open where it goes on with them."""
        return () if self.task.resumed is not None else answered(history, self.task.prompt)

    def result(self, status: RunStatus) -> RunResult[Out]:
        """What has been done so far, as a result of this status."""
        return RunResult(
            output=self._output,
            status=status,
            calls=tuple(self._calls),
            denied=tuple(self._denied),
            pending=tuple(self._pending),
            messages=tuple(self._messages),
            new_messages=tuple(self._messages[self._history :]),
            usage=self._usage,
            run_id=self.id,
            state=self._state() if status == "pending" else None,
            finish=self._last_finish,
        )

    # ---- one step ----

    async def _step(self) -> None:
        self.task.limits.before_step(self._usage)
        request = await self.request()
        end, wanted = await self._turn(request)
        if end.message.parts:
            self._messages.append(end.message)
        await self._keeper.keep(self._messages)  # before a tool runs: what it does outlives this process
        self.task.limits.after_step(self._usage)
        if end.finish == "cancelled":
            raise RunCancelled("the model was cancelled. Give the run's messages to another run to go on.")
        if wanted and self.task.on_denied == "stop":
            self._conclude(end.message, waiting(end.message.calls), [])
            self._status = "denied"
        elif end.message.calls or wanted or end.message.malformed:
            await self._act(end, [_refused(event, request.permitted) for event in wanted])
        else:
            self._finish(end)

    async def request(self) -> ModelRequest:
        """What the model is asked next.

        Raises:
            PolicyError: The policy leaves nothing of what ``tool_choice`` asks for.
        """
        task = self.task
        narrow = await self._rights.step()
        declared, permitted = task.tools.definitions, narrow.permitted
        choice: ToolChoice = "auto" if self._satisfied and task.tool_choice != "none" else task.tool_choice
        if self._circling:
            choice = "none"
        self._check_choice(choice, declared, permitted)
        messages = tuple(self._messages)
        if instructions := await written(task.instructions, self._context()):
            messages = (system(instructions), *messages)

        def request(tools: Sequence[ToolDefinition]) -> Request:
            return Request(
                messages=messages,
                tools=tools,
                tool_choice=choice,
                parallel=task.parallel,
                output_schema=task.answer_schema,
            )

        allowed = request(permitted)
        return ModelRequest(
            declared=allowed if permitted == narrow.sampled else request(narrow.sampled),
            permitted=allowed,
            common=None if narrow.common is permitted else request(narrow.common),
            visible=request(declared) if task.visibility == "masked" else None,
            settings=task.settings,
            on_denied=task.on_denied,
            left=narrow.left,
            denial=self._rights.denial,
            step=self._usage.steps + 1,
        )

    def _check_choice(
        self, choice: ToolChoice, declared: Sequence[ToolDefinition], permitted: Sequence[ToolDefinition]
    ) -> None:
        # Where a tool is missing for everybody, Request says so; here it is the policy that took it away.
        if choice == "required" and declared and not permitted:
            raise PolicyError(
                f"tool_choice is 'required', but the policy leaves {self.task.principal} none of the agent's tools. "
                "Allow one, or use tool_choice='auto'."
            )
        names = {definition.name for definition in permitted}
        for name in choice.names if isinstance(choice, Only) else ():
            if name in self.task.tools and name not in names:
                raise PolicyError(
                    f"tool_choice names {name!r}, which the policy denies to {self.task.principal}: "
                    f"{self._rights.decide(self.task.tools[name], None).rule}."
                )

    def _context(self) -> RunContext[Any]:
        return RunContext(
            deps=self.task.deps,
            user=self.task.principal,
            step=self._usage.steps,
            usage=self._usage,
            messages=tuple(self._messages),
            run_id=self.id,
            tainted=self._rights.past.tainted,
            _cancelled=threading.Event(),
        )

    # ---- the model's turn ----

    async def _turn(self, request: ModelRequest) -> tuple[StepEnd, list[CallDenied]]:
        guard.check_model(self.task.model)
        end: StepEnd | None = None
        wanted: list[CallDenied] = []
        malformed = 0
        ids: list[str] = []
        async with aclosing(self.task.model.stream(request)) as events:  # type: ignore[type-var]
            async for event in events:
                if isinstance(event, ToolCallEnd):
                    event = replace(event, call=self._ids.named(event.call))
                    ids.append(event.call.id)
                elif isinstance(event, CallDenied):
                    wanted.append(event)
                elif isinstance(event, MalformedCall):
                    malformed += 1
                elif isinstance(event, StepEnd):
                    end = event = replace(event, message=self._ids.in_message(event.message, ids))
                await self._tell(event)
        if end is None:
            raise ModelError(f"model {self.task.model.name!r} ended its turn without StepEnd: its stream is wrong.")
        for denied in wanted:
            await self._recorder.denied(denied, end.enforced_by)
        self._recorder.enforced_by = end.enforced_by
        self._denied += wanted
        self._last_finish = end.finish
        self._usage += Usage(
            steps=1,
            denied=len(wanted),
            malformed=malformed,
            input_tokens=end.input_tokens,
            sampled_tokens=end.sampled_tokens,
            forced_tokens=end.forced_tokens,
        )
        return end, wanted

    def _emit(self, event: Event) -> None:
        event = self._recorder.shown(event)
        self._tell_reader(event)
        for hook in self.task.on_event:
            try:
                hook(event, self._context())
            except Exception:  # an observer's mistake is not the run's
                _log.exception("on_event failed for %s", type(event).__name__)

    async def _tell(self, event: Event) -> None:
        self._emit(event)
        if self._pause is not None:
            await self._pause()

    # ---- what follows from it ----

    async def _act(self, end: StepEnd, refusals: list[ToolResultPart]) -> None:
        message = end.message
        records = waiting(message.calls)
        if end.finish == "length" and isinstance(message.parts[-1], ToolCall):
            # Its end was written by the shortest way, not by the model: 500 may have become 5.
            content = f"The call {CUT} Write it again, shorter."
            records[-1] = replace(records[-1], status="retry", content=content)
        context = self._context()
        try:
            self._circling = self._breaker.before(records)
            self.task.limits.before_calls(self._usage, sum(record.status == "skipped" for record in records))
            await self._executor.run(records, context, self._retries)
            if self._pause is not None:
                await self._pause()
        finally:
            # Also when the run is cancelled: the conversation then has an answer to each call, and can go on.
            self._conclude(message, records, refusals)
            self._usage = sum(context._spent, self._usage)
        await self._keeper.keep(self._messages)
        self._breaker.after(records)
        self._count_retries(records)
        self.task.limits.after_step(self._usage)
        if self._pending:
            self._status = "pending"
        elif self.task.on_denied == "stop" and any(record.status == "denied" for record in records):
            self._status = "denied"

    # ---- calls that waited for a person ----

    async def _go_on(self, state: RunState) -> None:
        """Makes the calls that were approved, and tells the model of those that were rejected.

        Raises:
            PolicyError: A verdict is not the approver's to give, or has been given before.
        """
        still_open = {result.call_id for message in answered(self._messages, ()) for result in message.results}
        if not still_open.issuperset(pending.call.id for pending in state.pending):
            raise PolicyError("the conversation has gone on since the call was asked about: run the prompt again.")
        records: list[CallRecord] = []
        undecided: list[CallRecord] = []
        ruled: list[tuple[ToolCall, Verdict]] = []
        for pending, verdict in state.checked(self.task.verdicts):
            if verdict is None:
                undecided.append(CallRecord(call=pending.call, status="pending", rule=pending.rule))
            else:
                arguments = pending.call.arguments if verdict.arguments is None else dict(verdict.arguments)
                ruled.append((replace(pending.call, arguments=arguments), verdict))
                self._check_approver(*ruled[-1])
        for call, verdict in ruled:
            if not await self.task.approvals.use(self._once[call.id], self.task.session):
                raise PolicyError(f"call {call.id!r} has been decided before: a verdict counts once.")
            said = "rejected" if not verdict.approved else "approved" if verdict.arguments is None else "edited"
            await self._recorder.ruled(call, self.task.by, said)
            records += _ruled(call, verdict)
        approved = {call.id for call, verdict in ruled if verdict.approved}
        if records:
            context = self._context()
            try:
                await self._executor.run(records, context, self._retries, approved)
            finally:
                self._conclude(Message(role="assistant"), records, [])
                self._usage = sum(context._spent, self._usage)
            await self._keeper.keep(self._messages)
        self._pending += undecided
        if self._pending:
            self._status = "pending"

    def _check_approver(self, call: ToolCall, verdict: Verdict) -> None:
        if not verdict.approved:
            return  # whoever asked may think better of it
        tool = self.task.tools.get(call.name)
        if tool is not None and tool.function is None:
            raise DefinitionError(
                f"tool {call.name!r} is only declared: answer its call by a message, as tool_results(...) makes one."
            )
        roles = frozenset() if tool is None else self._rights.decide(tool, call.arguments).by
        check_approver(call.id, self.task.by, self.task.principal, roles)

    def _state(self) -> RunState | None:
        if not self._pending:
            return None
        hidden = [(record, self._recorder.hidden(record.call)) for record in self._pending]
        kept = self.task.session is not None
        return RunState(
            id=uuid.uuid4().hex,
            run_id=self.id,
            user=None if self.task.principal is None else self.task.principal.id,
            session=None if self.task.session is None else self.task.session.id,
            policy="" if self.task.policy is None else self.task.policy.version,
            expires=time.time() + self.task.approvals.seconds,
            messages=() if kept else tuple(map(self._recorder.without, self._messages)),
            pending=tuple(
                PendingCall(call=c, rule=r.rule, hidden=c != r.call, once=self._once.setdefault(c.id, uuid.uuid4().hex))
                for r, c in hidden
            ),
            usage=self._usage,
            tainted=self._rights.past.tainted,
            _approvals=self.task.approvals,
        )

    def _conclude(self, message: Message, records: list[CallRecord], refusals: list[ToolResultPart]) -> None:
        """Puts what became of a turn's calls into the conversation and the result."""
        denied = [record for record in records if record.status == "denied"]
        made = [record for record in records if record.status not in NOT_MADE]
        self._denied += [CallDenied(tool=r.name, path=r.path, rule=r.rule) for r in denied]
        self._pending += [record for record in records if record.status == "pending"]
        self._calls += made
        self._satisfied = self._satisfied or any(record.status in ("done", "failed") for record in made)
        self._usage += Usage(tool_calls=len(made), denied=len(denied))
        unread = [
            ToolResultPart(
                name="error",
                content=f"That call could not be read: {part.reason}. Write it again.",
                error=True,
                trusted=True,
            )
            for part in message.malformed
        ]
        parts = [*(record.to_part() for record in records if record.status != "pending"), *unread, *refusals]
        if parts:
            self._messages.append(tool_results(*parts))

    def _count_retries(self, records: list[CallRecord]) -> None:
        for record in records:
            if record.status != "retry":
                self._retries.pop(record.name, None)
                continue
            count = self._retries[record.name] = self._retries.get(record.name, 0) + 1
            if count > self.task.tools[record.name].retries:
                raise RunError(
                    f"tool {record.name!r} was called wrongly {count} times in a row; the last time it said: "
                    f"{record.content} Describe its arguments better, or raise its retries."
                ) from record.exception

    def _finish(self, end: StepEnd) -> None:
        if self.task.answer is None:
            self._output = end.message.text
        elif end.finish == "length":
            self._ask_again(f"The answer {CUT}", "Raise ModelSettings(max_tokens=...).", None)
            return
        else:
            try:
                self._output = self.task.answer.validate_json(end.message.text, strict=True)
            except ValidationError as error:
                self._ask_again(f"The answer does not fit the output type: {describe(error)}.", "", error)
                return
        self._status = "done"
        self._emit(FinalOutput(output=self._output))

    def _ask_again(self, problem: str, hint: str, cause: Exception | None) -> None:
        self._answer_retries += 1
        if self._answer_retries > ANSWER_RETRIES:
            raise RunError(f"{problem} {hint}".strip()) from cause
        self._messages.append(user(f"{problem} Answer again, in JSON only."))


def _ruled(call: ToolCall, verdict: Verdict) -> list[CallRecord]:
    if verdict.approved:
        return waiting([call])
    content = f"A person declined this call{f': {verdict.reason}' if verdict.reason else '.'}"
    return [CallRecord(call=call, status="rejected", content=content, trusted=True)]


def _refused(event: CallDenied, permitted: Request) -> ToolResultPart:
    tool = permitted.tool(event.tool)
    content = refusal(event.tool, [t.name for t in permitted.tools])
    if tool is not None:
        content = unfit(event.tool, event.path, tool)
    return ToolResultPart(name=event.tool or "error", content=content, error=True, trusted=True)
