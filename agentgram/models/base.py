"""What a run needs of a model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from agentgram.errors import DefinitionError
from agentgram.events import CallDenied, ParserEvent, StepEnd
from agentgram.formats.request import Request
from agentgram.tools.definition import ToolDefinition

OnDenied: TypeAlias = Literal["tell", "stop", "steer"]
Fits: TypeAlias = Callable[[ToolDefinition], bool]
"""Whether what a model began could be written, were its tool this one."""


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """How to sample.

    Raises:
        DefinitionError: A value is outside its range.
    """

    temperature: float = 0.0
    """0 takes the likeliest token; above it, samples."""
    top_p: float = 1.0
    """Nucleus: the smallest set of tokens with this much probability, in (0, 1]."""
    seed: int | None = None
    """Seeds the sampling of one turn; None draws one."""
    max_tokens: int = 1024
    """Tokens in one turn, sampled and forced; at the end the turn is closed by the shortest legal end."""

    def __post_init__(self) -> None:
        if self.temperature < 0:
            raise DefinitionError(f"temperature is {self.temperature}: it must be 0 or more.")
        if not 0 < self.top_p <= 1:
            raise DefinitionError(f"top_p is {self.top_p}: it must be above 0 and at most 1.")
        if self.max_tokens < 1:
            raise DefinitionError(f"max_tokens is {self.max_tokens}: it must be at least 1.")


class Denies(Protocol):
    """Why a tool, or a call of it with these arguments, is denied; None where it is not.

    Where a call as such is allowed, and was begun in a way that no permitted call is written in, ``fits`` helps to find
    the argument.
    """

    def __call__(self, tool: str, arguments: Mapping[str, Any] | None, fits: Fits | None = None, /) -> Denial | None:
        """The reason."""
        ...


class Denial(NamedTuple):
    """Why something is denied, for :class:`agentgram.events.CallDenied`."""

    path: tuple[str | int, ...]
    """The argument that is refused; empty where the tool is."""
    rule: str
    """The rule by which it is."""


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """One turn, as a run asks it of a model: what is declared, and what of it is permitted.

    Sampling happens among what is declared, so that a denied intent shows itself; only what is permitted is ever
    appended (``policy``, "refuse, do not steer").
    """

    declared: Request
    """S: every tool as declared, hidden ones by name too. Its messages are those of ``permitted``."""
    permitted: Request
    """P: the tools of this user, narrowed."""
    common: Request | None = None
    """``permitted``, with tools that are narrowed for one user alone as in ``declared``, so that many users have the
    same; None where there is no such tool. What may be appended is ``permitted``: this is where a decoder can begin."""
    settings: ModelSettings = ModelSettings()
    on_denied: OnDenied = "tell"
    visible: Request | None = None
    """What the prompt shows, where that is more than what is permitted; its tools are not narrowed."""
    left: Mapping[str, int] = field(default_factory=dict)
    """How many calls of a tool the turn may hold, for tools whose calls are counted."""
    denial: Denies = lambda _name, _arguments, _fits=None: None
    """Why something is denied."""
    step: int = 1

    @property
    def shown(self) -> Request:
        """What the prompt is rendered from."""
        return self.permitted if self.visible is None else self.visible


ModelEvent: TypeAlias = ParserEvent | CallDenied | StepEnd


@runtime_checkable
class CountsTokens(Protocol):
    """A model that can say how long a text or a prompt is. A :class:`Model` need not be one."""

    def count_tokens(self, what: str | ModelRequest) -> int:
        """Tokens of a text, or of the prompt of a turn."""
        ...


BYTES_PER_TOKEN = 4
"""What a token is taken to be where the model does not count."""


def count_tokens(model: object, text: str) -> int:
    """Tokens of a text, by the model where it counts, else estimated from the bytes."""
    if isinstance(model, CountsTokens):
        return model.count_tokens(text)
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


@runtime_checkable
class Model(Protocol):
    """A model that writes one turn at a time."""

    @property
    def name(self) -> str:
        """What to call the model in messages and logs."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Writes one turn: the parser's events as they come, ``CallDenied`` for a denied intent, ``StepEnd`` last.

        Closing the iterator cancels the turn within one token.

        Raises:
            ModelError: The model failed.
            ContextOverflow: The prompt does not fit.
            GrammarError: The tools or the output type cannot be compiled.
        """
        ...
