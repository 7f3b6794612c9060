"""Models: the protocol that a run needs, and the models that follow it.

Importing this loads neither torch nor transformers: what needs them is loaded when it is first named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentgram.models.base import CountsTokens, Model, ModelEvent, ModelRequest, ModelSettings, OnDenied
from agentgram.models.bundled import load_model

if TYPE_CHECKING:
    from agentgram.models.transformers import TransformersModel

__all__ = [
    "CountsTokens",
    "Model",
    "ModelEvent",
    "ModelRequest",
    "ModelSettings",
    "OnDenied",
    "TransformersModel",
    "load_model",
]


def __getattr__(name: str) -> Any:
    if name == "TransformersModel":
        from agentgram.models.transformers import TransformersModel

        return TransformersModel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
