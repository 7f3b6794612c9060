"""Fakes that are part of the public face: models for tests that need no weights.

Importing this loads no engine and no Hypothesis: what needs one is loaded when it is first named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentgram.testing.scripted import ScriptedModel, call, no_models

if TYPE_CHECKING:
    from agentgram.testing.grammar import AdversarialModel, GrammarModel
    from agentgram.testing.strategies import arguments, calls

__all__ = ["AdversarialModel", "GrammarModel", "ScriptedModel", "arguments", "call", "calls", "no_models"]


def __getattr__(name: str) -> Any:
    if name in ("AdversarialModel", "GrammarModel"):
        from agentgram.testing import grammar

        return getattr(grammar, name)
    if name in ("arguments", "calls"):
        from agentgram.testing import strategies

        return getattr(strategies, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
