"""Every error that agentgram raises.

::

    AgentgramError
    ├── DefinitionError        your mistake, at declaration: a tool or a format is declared wrong
    ├── GrammarError           your mistake, at declaration: a schema, regex or grammar cannot be enforced
    │                          (.pointer, .keyword, .hint)
    ├── PolicyError            your mistake, at declaration or at the call: a rule or a principal is wrong
    └── RunError               the run failed (.run carries what was done so far)
        ├── LimitExceeded      a step, call, token or time limit was reached
        ├── ContextOverflow    the prompt does not fit the model's context
        ├── ModelError         the model could not be loaded or failed while decoding
        ├── RunCancelled       the run was cancelled
        └── SessionBusy        another run goes on in the same session

Each message says what was wrong, where, and what to do next.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

DISTRIBUTION = "agentgram-sdk"
"""The name to give to ``pip install``; every hint about installing is made from it."""


def install_hint(extra: str | None = None) -> str:
    """The command that installs this distribution, with an extra where one is needed."""
    return f"pip install '{DISTRIBUTION}[{extra}]'" if extra else f"pip install {DISTRIBUTION}"


def nearest(name: str, known: Iterable[str]) -> str:
    """A sentence that suggests the nearest known name, or lists what is known; empty when nothing is."""
    names = sorted(set(known))
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"Did you mean {close[0]!r}?"
    if not names:
        return ""
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    return f"Known: {shown}."


class AgentgramError(Exception):
    """The root of the tree."""


class DefinitionError(AgentgramError):
    """A tool, an agent or a format is declared in a way that cannot work."""


class GrammarError(AgentgramError):
    """A schema, a regular expression or a grammar cannot be enforced exactly.

    Attributes:
        pointer: JSON pointer (RFC 6901) of the offending place, or a position in a grammar's text.
        keyword: The keyword or construct that is refused; empty when it is the whole.
        hint: What to do about it.
    """

    def __init__(self, message: str, *, pointer: str = "", keyword: str = "", hint: str = "") -> None:
        self.pointer = pointer
        self.keyword = keyword
        self.hint = hint
        where = f" at {pointer or '/'}" if pointer or keyword else ""
        tail = f" {hint}" if hint else ""
        super().__init__(f"{message}{where}.{tail}" if not message.endswith(".") else f"{message}{tail}")

    @property
    def unsatisfiable(self) -> bool:
        """Whether it could be enforced, but nothing satisfies it."""
        return str(self).startswith("nothing satisfies")


class PolicyError(AgentgramError):
    """A rule, a principal or a policy file is wrong."""


class RunError(AgentgramError):
    """A run failed.

    Attributes:
        run: The result so far (:class:`agentgram.RunResult`), or None where nothing had begun.
    """

    def __init__(self, message: str, *, run: Any = None) -> None:
        self.run = run
        super().__init__(message)


class LimitExceeded(RunError):
    """A limit of the run (steps, calls, tokens, seconds) was reached."""


class ContextOverflow(RunError):
    """The prompt is longer than the model's context."""


class ModelError(RunError):
    """The model could not be found, loaded or run."""


class RunCancelled(RunError):
    """The run was cancelled; its messages can be continued."""


class SessionBusy(RunError):
    """Another run, perhaps of another process, has the session: wait for it, or use another session."""
