"""What a tool is told about the run that calls it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic

from typing_extensions import TypeVar

from agentgram.errors import DefinitionError, nearest
from agentgram.limits import Usage
from agentgram.messages import Message
from agentgram.principal import Principal

Deps = TypeVar("Deps", default=None)

_ROOTS = {"user": ("id", "roles"), "deps": None, "run_id": (), "call_id": (), "step": ()}


@dataclass(frozen=True, kw_only=True)
class RunContext(Generic[Deps]):
    """A parameter annotated with this is filled by the run; it is never shown to the model."""

    deps: Deps
    """What the run was given as ``deps``: database handles, clients, settings."""
    user: Principal | None = None
    """On whose behalf the run acts."""
    call_id: str = ""
    """The id of the call being made; empty where there is none, as in instructions."""
    step: int = 0
    """The model's turn, from 1."""
    retry: int = 0
    """How often in a row this tool has already asked for another attempt."""
    usage: Usage = field(default_factory=Usage)
    """What the run has used when the turn ended."""
    messages: Sequence[Message] = ()
    """The conversation so far, the turn with this call included."""
    run_id: str = ""
    """The run's id."""
    tainted: bool = False
    """Whether outsiders may have written into the conversation: a tool's result that is not declared trusted."""
    _spent: list[Usage] = field(default_factory=list, repr=False, compare=False)
    """What runs inside a tool have used: the run adds it to its own."""
    _cancelled: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)

    @property
    def cancelled(self) -> bool:
        """True once nobody waits for the result: the tool timed out or the run was cancelled.

        A synchronous tool runs in a thread, and a thread cannot be stopped from outside: a long one asks this.
        """
        return self._cancelled.is_set()


@dataclass(frozen=True)
class Bound:
    """Marks a parameter that the run fills from its context: see :func:`bind`."""

    path: str
    """Where the value lies, such as ``user.id`` or ``deps.shop.name``."""

    def value(self, context: RunContext[Any]) -> Any:
        """The value at the path.

        Raises:
            AttributeError: The context has nothing there.
            KeyError: A mapping on the way has no such key.
        """
        value: Any = context
        for name in self.path.split("."):
            if value is None:
                raise AttributeError(f"{self.path!r} cannot be read: what should hold {name!r} is None")
            value = value[name] if isinstance(value, dict) else getattr(value, name)
        return value


def bind(path: str) -> Any:
    """A marker for a parameter that comes from the run and never from the model.

    ::

        def my_orders(user_id: Annotated[str, bind("user.id")]) -> list[int]: ...

    Args:
        path: ``user.id``, ``user.roles``, ``deps`` and what it holds, ``run_id``, ``call_id`` or ``step``.

    Raises:
        DefinitionError: The path begins with something else.
    """
    root, _, rest = path.partition(".")
    if root not in _ROOTS:
        raise DefinitionError(f"bind({path!r}): a run has no {root!r} to bind to. {nearest(root, _ROOTS)}")
    known = _ROOTS[root]
    if known is not None and (rest not in known if rest else bool(known)):
        wanted = ", ".join(f"'{root}.{name}'" for name in known) or repr(root)
        raise DefinitionError(f"bind({path!r}) names nothing: write {wanted}.")
    return Bound(path)
