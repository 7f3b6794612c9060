"""Whether a text is in the language of a schema, by the engine's own reading: another library's would differ in some
corner from what a mask allows.
"""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentgram.engine import Grammar


@functools.lru_cache(maxsize=1024)
def recogniser(schema: str) -> Grammar:
    """What a model could write of a schema, in any order of keys.

    Args:
        schema: JSON Schema, as JSON text.

    Raises:
        GrammarError: It cannot be enforced.
    """
    from agentgram.engine import Engine, JsonSchema, Vocabulary

    spec = JsonSchema(schema, whitespace="canonical", property_order="any")
    return Engine.shared(Vocabulary.byte_level()).compile(spec)


def writes(schema: str, value: Any) -> bool:
    """Whether a model could write a JSON value; numbers are taken as what a double holds."""
    try:
        spelled = json.dumps(value, ensure_ascii=False, default=float).encode()
    except UnicodeEncodeError:  # half of a surrogate pair: no text
        return False
    matcher = recogniser(schema).matcher()
    return bool(matcher.accept_bytes(spelled)) and bool(matcher.can_end)
