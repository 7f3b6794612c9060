"""``Agent``: a model, its tools, a policy and a type of answer, declared once and run often."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from os import PathLike, fspath
from typing import Any, Generic, TypeAlias, TypedDict, get_args, overload

from pydantic import TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from typing_extensions import Unpack

from agentgram.approvals import Approvals, RunState, Verdict
from agentgram.errors import DefinitionError, PolicyError, RunError
from agentgram.events import Event, FinalOutput
from agentgram.executor import Instructions
from agentgram.formats.request import ToolChoice
from agentgram.limits import Limits
from agentgram.messages import Message, as_messages, user
from agentgram.models import guard
from agentgram.models.base import CountsTokens, Model, ModelSettings, OnDenied
from agentgram.policy import Audit, Policy, Principal
from agentgram.run import Run
from agentgram.sessions import Session
from agentgram.streaming import RunStream, SyncRunStream, run_blocking
from agentgram.task import EventHook, Out, RunResult, Task, Visibility
from agentgram.tools import RunContext, Tool, ToolFailed, Toolset, tool
from agentgram.tools.context import Deps
from agentgram.tools.signature import json_schema

_overrides: ContextVar[Mapping[int, Model]] = ContextVar("agentgram_overrides")


class RunOptions(TypedDict, total=False):
    """What one run may be given."""

    user: Principal | None
    """On whose behalf; needed when the agent has a policy."""
    tool_choice: ToolChoice
    """``auto``, ``required`` (a call before the answer), ``none``, or ``Only(name)``."""
    parallel: bool
    """Whether one turn may hold several calls."""
    settings: ModelSettings | None
    """How to sample."""
    limits: Limits | None
    """How much the run may use."""
    messages: Sequence[Message | Mapping[str, Any]] | None
    """The conversation before the prompt: another run's ``result.messages``, or OpenAI chat dicts."""
    session: Session | None
    """Keeps the conversation: what it holds comes before the prompt, and what is said is added to it."""
    tools: Iterable[Any] | None
    """The tools of this run, in place of the agent's."""
    on_event: EventHook | None
    """Told every event, after the agent's own hook."""
    tainted: bool
    """Whether outsiders may have written into the prompt or the messages: what ``tainted()`` asks for."""


Prompt: TypeAlias = str | Message | Mapping[str, Any] | Sequence[Message | Mapping[str, Any]]
"""What the user says: a text, a message, an OpenAI chat dict, or several of these."""


class Agent(Generic[Deps, Out]):
    """A model with tools. Safe to share between threads and tasks: each run has its own state."""

    @overload
    def __init__(
        self: Agent[Deps, str],
        model: Model | str | PathLike[str],
        *,
        tools: Iterable[Any] = (),
        policy: Policy | None = None,
        deps_type: type[Deps] | None = None,
        instructions: Instructions = None,
        on_denied: OnDenied = "tell",
        visibility: Visibility = "hidden",
        audit: Audit | None = None,
        approvals: Approvals | None = None,
        on_event: EventHook | None = None,
    ) -> None: ...

    @overload
    def __init__(
        self,
        model: Model | str | PathLike[str],
        *,
        tools: Iterable[Any] = (),
        policy: Policy | None = None,
        output_type: type[Out],
        deps_type: type[Deps] | None = None,
        instructions: Instructions = None,
        on_denied: OnDenied = "tell",
        visibility: Visibility = "hidden",
        audit: Audit | None = None,
        approvals: Approvals | None = None,
        on_event: EventHook | None = None,
    ) -> None: ...

    @overload
    def __init__(
        self: Agent[Deps, Any],
        model: Model | str | PathLike[str],
        *,
        tools: Iterable[Any] = (),
        policy: Policy | None = None,
        output_type: Any,
        deps_type: type[Deps] | None = None,
        instructions: Instructions = None,
        on_denied: OnDenied = "tell",
        visibility: Visibility = "hidden",
        audit: Audit | None = None,
        approvals: Approvals | None = None,
        on_event: EventHook | None = None,
    ) -> None: ...

    def __init__(
        self,
        model: Model | str | PathLike[str],
        *,
        tools: Iterable[Any] = (),
        policy: Policy | None = None,
        output_type: Any = str,
        deps_type: type[Any] | None = None,
        instructions: Instructions = None,
        on_denied: OnDenied = "tell",
        visibility: Visibility = "hidden",
        audit: Audit | None = None,
        approvals: Approvals | None = None,
        on_event: EventHook | None = None,
    ) -> None:
        """Declares an agent.

        Args:
            model: A model, or the name or directory of one (:func:`agentgram.models.load_model`), loaded at the first
                run.
            tools: Tools, functions, Pydantic models, toolsets.
            policy: Who may call what; None allows everything to everybody.
            output_type: What an answer is: ``str``, or any type that Pydantic reads from JSON.
            deps_type: The type of ``deps``; its instances are handed to tools as ``ctx.deps``.
            instructions: The system message, or a function of the :class:`RunContext` that writes it for each step.
            on_denied: What follows a denied call. ``tell``: the model reads that there is no such tool, and goes on;
                ``stop``: the run ends; ``steer``: the model can only choose among what is permitted, and denied
                intents do not show.
            visibility: ``hidden``: the prompt shows each user the tools that the user may call, as they may be called;
                what is not there is not known. ``masked``: it shows all of them to everybody, so that all users share
                one prompt; calls are denied just the same.
            audit: Where calls are written down before they are made, and what came of them.
            approvals: How states of runs that wait for a person are sealed, and how long they hold.
            on_event: Told every event of every run, with the :class:`RunContext` of its run: for logs, traces and
                metrics. Called on the run's thread, so it must not block; what it raises is logged.

        Raises:
            DefinitionError: Something is not a tool, two tools share a name, or the output type has no JSON Schema.
        """
        if on_denied not in get_args(OnDenied):
            raise DefinitionError(f"on_denied is {on_denied!r}: use 'tell', 'stop' or 'steer'.")
        if audit is not None and not isinstance(audit, Audit):
            raise DefinitionError(f"audit is {audit!r}: pass Audit('directory', key=...).")
        if visibility not in get_args(Visibility):
            raise DefinitionError(f"visibility is {visibility!r}: use 'hidden' or 'masked'.")
        if policy is not None and not isinstance(policy, Policy):
            raise DefinitionError(f"policy is {policy!r}: pass Policy(allow(...), deny(...)).")
        if not isinstance(model, str | PathLike | Model):
            raise DefinitionError(f"model is {model!r}: pass a model, its name or its directory.")
        self.model = model
        self.tools = tools if isinstance(tools, Toolset) else Toolset(tools)
        self.policy = policy
        self.output_type = output_type
        self.deps_type = deps_type
        self.instructions = instructions
        self.on_denied: OnDenied = on_denied
        self.visibility: Visibility = visibility
        self.audit = audit
        self.approvals = approvals or Approvals()
        self.on_event = on_event
        self._answer, self.output_schema = _answer(output_type)
        """JSON Schema of an answer (``output_schema``); None for text."""

    async def run(self, prompt: Prompt, *, deps: Deps | None = None, **options: Unpack[RunOptions]) -> RunResult[Out]:
        """Runs to the answer.

        Args:
            prompt: What the user says.
            deps: Handed to tools as ``ctx.deps``.
            **options: See :class:`RunOptions`.

        Raises:
            PolicyError: There is a policy and no user, or it leaves nothing of what ``tool_choice`` asks for.
            LimitExceeded: A limit was reached.
            RunError: The run failed; ``.run`` has what was done.
            asyncio.CancelledError: Whoever awaits the run was cancelled; ``.run`` has what was done, with messages that
                can be continued.
        """
        return await Run[Out](self._task(prompt, deps, options), _ignore).execute()

    def run_sync(self, prompt: Prompt, *, deps: Deps | None = None, **options: Unpack[RunOptions]) -> RunResult[Out]:
        """:meth:`run` for code that is not asynchronous; also where an event loop runs, which it then blocks."""
        return run_blocking(self.run(prompt, deps=deps, **options))

    def stream(self, prompt: Prompt, *, deps: Deps | None = None, **options: Unpack[RunOptions]) -> RunStream[Out]:
        """:meth:`run` as a stream of events; see :class:`RunStream`."""
        return RunStream(self._task(prompt, deps, options))

    def stream_sync(
        self, prompt: Prompt, *, deps: Deps | None = None, **options: Unpack[RunOptions]
    ) -> SyncRunStream[Out]:
        """:meth:`stream` for code that is not asynchronous; see :class:`SyncRunStream`."""
        return SyncRunStream(self._task(prompt, deps, options))

    async def resume(
        self,
        state: str,
        verdicts: Mapping[str, Verdict],
        *,
        by: Principal | None = None,
        deps: Deps | None = None,
        **options: Unpack[RunOptions],
    ) -> RunResult[Out]:
        """Goes on with a run that waits for a person.

        Calls that are approved are decided once more, for the user of the run and by the rights of now, and made. Those
        of which nothing is said go on waiting.

        Args:
            state: What ``result.state.to_json()`` gave.
            verdicts: By the id of the call: ``approve()``, ``approve(arguments=...)``, ``reject("...")``.
            by: Who decides: not the user, and of the roles that the rule asks for.
            deps: Handed to tools as ``ctx.deps``.
            **options: As for :meth:`run`; the same ``user`` and ``session``.

        Raises:
            PolicyError: The state was changed or has expired, it is another user's or session's, the policy has changed
                since, or a verdict is not this person's to give or was given before.
            RunError: As :meth:`run`.
        """
        known = RunState.from_json(state, self.approvals)
        task = self._task((), deps, options)
        if task.history:
            raise DefinitionError("messages= belongs to run(): the state, or the session, has the conversation.")
        for what, given, wanted in (
            ("user", None if task.principal is None else task.principal.id, known.user),
            ("session", None if task.session is None else task.session.id, known.session),
        ):
            if given != wanted:
                raise PolicyError(f"the state is of {what} {wanted!r} and not of {given!r}: resume it with the same.")
        if known.policy != ("" if self.policy is None else self.policy.version):
            raise PolicyError("the policy has changed since the call was asked about: run the prompt again.")
        known.checked(verdicts)
        tainted = known.tainted or task.tainted
        task = replace(task, history=known.messages, resumed=known, verdicts=verdicts, by=by, tainted=tainted)
        return await Run[Out](task, _ignore).execute()

    def resume_sync(
        self,
        state: str,
        verdicts: Mapping[str, Verdict],
        *,
        by: Principal | None = None,
        deps: Deps | None = None,
        **options: Unpack[RunOptions],
    ) -> RunResult[Out]:
        """:meth:`resume` for code that is not asynchronous."""
        return run_blocking(self.resume(state, verdicts, by=by, deps=deps, **options))

    @contextmanager
    def override(self, *, model: Model) -> Iterator[None]:
        """Puts another model in the agent's place, for the code inside the ``with`` and the tasks that it starts."""
        token = _overrides.set({**_overrides.get({}), id(self): model})
        try:
            yield
        finally:
            _overrides.reset(token)

    def count_tokens(self, prompt: Prompt, *, deps: Deps | None = None, **options: Unpack[RunOptions]) -> int:
        """Tokens of the first prompt of such a run, tools and instructions included; nothing is run.

        Raises:
            DefinitionError: The model does not count tokens, or there is a session: pass its messages instead.
            PolicyError: As :meth:`run`.
        """
        task = self._task(prompt, deps, options)
        if task.session is not None:
            raise DefinitionError("count_tokens does not read sessions: pass messages=session.messages.")
        if not isinstance(task.model, CountsTokens):
            raise DefinitionError(f"model {task.model.name!r} does not count tokens: it has no count_tokens.")
        return task.model.count_tokens(run_blocking(Run[Out](task, _ignore).request()))

    def as_tool(
        self,
        name: str,
        description: str,
        *,
        limits: Limits | None = None,
        settings: ModelSettings | None = None,
        timeout: float | None = None,
    ) -> Tool[..., Any]:
        """A tool that hands a task to this agent and returns its answer.

        It runs for the caller's user, with the caller's ``deps``, under this agent's own tools and policy; it knows
        nothing of the caller's conversation but the prompt. Its events are the call's :class:`ToolProgress`, its tokens
        and calls count as the caller's. Where it fails, or is refused, the call fails.

        Args:
            name: The tool's name.
            description: What this agent is good for, for the model that may ask it.
            limits: How much one call may use.
            settings: How this agent samples.
            timeout: Seconds that a call may take.

        Raises:
            DefinitionError: The name cannot name a tool.
        """

        async def ask(ctx: RunContext[Any], prompt: str) -> AsyncIterator[Any]:
            more: RunOptions = {"user": ctx.user, "limits": limits, "settings": settings, "tainted": ctx.tainted}
            async with self.stream(prompt, deps=ctx.deps, **more) as events:
                try:
                    async for event in events:
                        if not isinstance(event, FinalOutput):
                            yield event
                    result = events.result
                except RunError as error:
                    if error.run is not None:
                        ctx._spent.append(replace(error.run.usage, steps=0))
                    raise ToolFailed(f"{name} could not do that.") from error
            ctx._spent.append(replace(result.usage, steps=0))
            if result.status != "done":
                raise ToolFailed(f"{name} may not do that.")
            yield result.output

        ask.__doc__ = f"{description}\n\nArgs:\n    prompt: The task, in full: nothing else is known there."
        return tool(name=name, timeout=timeout)(ask)

    def _task(self, prompt: Any, deps: Any, options: RunOptions) -> Task:
        unknown = set(options) - set(RunOptions.__annotations__)
        if unknown:
            raise TypeError(f"a run has no option {', '.join(map(repr, sorted(unknown)))}")
        if options.get("session") is not None and options.get("messages") is not None:
            raise DefinitionError("messages= and session= both say what came before: give one of them.")
        tools = options.get("tools")
        return Task(
            model=self._model(),
            tools=self.tools if tools is None else tools if isinstance(tools, Toolset) else Toolset(tools),
            policy=self.policy,
            principal=options.get("user"),
            deps=deps,
            instructions=self.instructions,
            answer=self._answer,
            answer_schema=self.output_schema,
            on_denied=self.on_denied,
            visibility=self.visibility,
            audit=self.audit,
            approvals=self.approvals,
            tainted=options.get("tainted", False),
            tool_choice=options.get("tool_choice", "auto"),
            parallel=options.get("parallel", True),
            settings=options.get("settings") or ModelSettings(),
            limits=options.get("limits") or Limits(),
            history=tuple(as_messages(options.get("messages") or ())),
            prompt=_prompt(prompt),
            session=options.get("session"),
            on_event=[hook for hook in (self.on_event, options.get("on_event")) if hook is not None],
        )

    def _model(self) -> Model:
        override = _overrides.get({}).get(id(self))
        if override is not None:
            return override
        if isinstance(self.model, str | PathLike):
            from agentgram.models import load_model

            guard.check(f"loading {fspath(self.model)!r}")
            return load_model(fspath(self.model))
        return self.model


def _ignore(_event: Event) -> None:
    """Nobody listens."""


def _prompt(prompt: Any) -> tuple[Message, ...]:
    if isinstance(prompt, str):
        return (user(prompt),)
    return tuple(as_messages([prompt] if isinstance(prompt, Message | Mapping) else prompt))


def _answer(output_type: Any) -> tuple[TypeAdapter[Any] | None, dict[str, Any] | None]:
    if output_type is str:
        return None, None
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(output_type)
        return adapter, json_schema(adapter)
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise DefinitionError(f"output_type {output_type!r} cannot be read from JSON: {error}") from error
