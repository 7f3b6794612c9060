"""Keeps real models out of tests: see :func:`agentgram.testing.no_models`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from agentgram.errors import ModelError

_lock = threading.Lock()
_forbidden = 0


@contextmanager
def forbidden() -> Iterator[None]:
    """Makes :func:`check` raise, in the whole process, while the ``with`` lasts."""
    global _forbidden
    with _lock:
        _forbidden += 1
    try:
        yield
    finally:
        with _lock:
            _forbidden -= 1


def check(what: str) -> None:
    """Asks whether a real model may be used.

    Raises:
        ModelError: Not now.
    """
    if _forbidden:
        raise ModelError(
            f"{what} is forbidden here by no_models(): put a fake in its place, as in "
            "agent.override(model=ScriptedModel([...]))."
        )


def check_model(model: object) -> None:
    """:func:`check` for a model that is about to write; fakes and models of other packages pass.

    Raises:
        ModelError: It is one of this package's real models, and not now.
    """
    if type(model).__module__.startswith("agentgram.models."):
        check(f"running {type(model).__name__}")
