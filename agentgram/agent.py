"""``Agent``: a model, its tools, a policy and a type of answer, declared once and run often."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from os import PathLike, fspath
from typing import Any, Generic, TypedDict, get_args, overload

from pydantic import TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from typing_extensions import Unpack

from agentgram.errors import DefinitionError
from agentgram.events import Event
from agentgram.executor import Instructions
from agentgram.formats.request import ToolChoice
from agentgram.limits import Limits
from agentgram.messages import Message, user
from agentgram.models.base import Model, ModelSettings, OnDenied
from agentgram.policy import Policy, Principal
from agentgram.run import Out, Run, RunResult, Task
from agentgram.streaming import RunStream, SyncRunStream, run_blocking
from agentgram.tools import Toolset
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
    messages: Sequence[Message] | None
    """The conversation before the prompt: another run's ``result.messages``."""


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

        Raises:
            DefinitionError: Something is not a tool, two tools share a name, or the output type has no JSON Schema.
        """
        if on_denied not in get_args(OnDenied):
            raise DefinitionError(f"on_denied is {on_denied!r}: use 'tell', 'stop' or 'steer'.")
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
        self._answer, self._answer_schema = _answer(output_type)

    async def run(
        self, prompt: str | Message | Sequence[Message], *, deps: Deps | None = None, **options: Unpack[RunOptions]
    ) -> RunResult[Out]:
        """Runs to the answer.

        Args:
            prompt: What the user says.
            deps: Handed to tools as ``ctx.deps``.
            **options: See :class:`RunOptions`.

        Raises:
            PolicyError: There is a policy and no user, or it leaves nothing of what ``tool_choice`` asks for.
            LimitExceeded: A limit was reached.
            RunError: The run failed; ``.run`` has what was done.
        """
        return await Run[Out](self._task(prompt, deps, options), _ignore).execute()

    def run_sync(
        self, prompt: str | Message | Sequence[Message], *, deps: Deps | None = None, **options: Unpack[RunOptions]
    ) -> RunResult[Out]:
        """:meth:`run` for code that is not asynchronous; also where an event loop runs, which it then blocks."""
        return run_blocking(self.run(prompt, deps=deps, **options))

    def stream(
        self, prompt: str | Message | Sequence[Message], *, deps: Deps | None = None, **options: Unpack[RunOptions]
    ) -> RunStream[Out]:
        """:meth:`run` as a stream of events; see :class:`RunStream`."""
        return RunStream(self._task(prompt, deps, options))

    def stream_sync(
        self, prompt: str | Message | Sequence[Message], *, deps: Deps | None = None, **options: Unpack[RunOptions]
    ) -> SyncRunStream[Out]:
        """:meth:`stream` for code that is not asynchronous; see :class:`SyncRunStream`."""
        return SyncRunStream(self._task(prompt, deps, options))

    @contextmanager
    def override(self, *, model: Model) -> Iterator[None]:
        """Puts another model in the agent's place, for the code inside the ``with`` and the tasks that it starts."""
        token = _overrides.set({**_overrides.get({}), id(self): model})
        try:
            yield
        finally:
            _overrides.reset(token)

    def _task(self, prompt: Any, deps: Any, options: RunOptions) -> Task:
        unknown = set(options) - set(RunOptions.__annotations__)
        if unknown:
            raise TypeError(f"a run has no option {', '.join(map(repr, sorted(unknown)))}")
        return Task(
            model=self._model(),
            tools=self.tools,
            policy=self.policy,
            principal=options.get("user"),
            deps=deps,
            instructions=self.instructions,
            answer=self._answer,
            answer_schema=self._answer_schema,
            on_denied=self.on_denied,
            tool_choice=options.get("tool_choice", "auto"),
            parallel=options.get("parallel", True),
            settings=options.get("settings") or ModelSettings(),
            limits=options.get("limits") or Limits(),
            history=tuple(options.get("messages") or ()),
            prompt=_prompt(prompt),
        )

    def _model(self) -> Model:
        override = _overrides.get({}).get(id(self))
        if override is not None:
            return override
        if isinstance(self.model, str | PathLike):
            from agentgram.models import guard, load_model

            guard.check(f"loading {fspath(self.model)!r}")
            return load_model(fspath(self.model))
        return self.model


def _ignore(_event: Event) -> None:
    """Nobody listens."""


def _prompt(prompt: Any) -> tuple[Message, ...]:
    if isinstance(prompt, str):
        return (user(prompt),)
    if isinstance(prompt, Message):
        return (prompt,)
    messages = tuple(prompt)
    for message in messages:
        if not isinstance(message, Message):
            raise DefinitionError(f"the prompt holds {message!r}: pass a string, a Message, or several.")
    return messages


def _answer(output_type: Any) -> tuple[TypeAdapter[Any] | None, dict[str, Any] | None]:
    if output_type is str:
        return None, None
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(output_type)
        return adapter, json_schema(adapter)
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise DefinitionError(f"output_type {output_type!r} cannot be read from JSON: {error}") from error
