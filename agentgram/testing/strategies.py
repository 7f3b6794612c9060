"""Hypothesis strategies for what a model could write: valid calls of tools, drawn from the grammar itself.

They walk the engine's matcher byte by byte, so that whatever a schema says is obeyed, and shrink towards the shortest
legal call. Needs ``hypothesis``.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from agentgram.engine import Engine, Grammar, JsonSchema, Vocabulary, allocate_mask
from agentgram.errors import DefinitionError
from agentgram.messages import ToolCall
from agentgram.tools import Tool, ToolDefinition, Toolset

MAX_BYTES = 256
"""Bytes of arguments after which the shortest legal end is taken."""


def arguments(tool: Any, *, max_bytes: int = MAX_BYTES) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments that the tool's schema admits, as JSON values.

    Args:
        tool: A tool, a function, a Pydantic model, or a definition.
        max_bytes: About how long their JSON may become; what has been begun is closed by the shortest legal end.

    Raises:
        DefinitionError: It is not a tool, or ``max_bytes`` is negative.
        GrammarError: Its schema cannot be enforced.
    """
    definition = tool if isinstance(tool, ToolDefinition) else next(iter(Toolset([tool]))).definition
    if max_bytes < 0:
        raise DefinitionError(f"max_bytes is {max_bytes}: it must be 0 or more.")
    schema = JsonSchema(dict(definition.schema), whitespace="canonical", unsupported=definition.unsupported)
    return _texts(Engine.shared(_vocabulary()).compile(schema), max_bytes).map(json.loads).filter(_finite)


def calls(tools: Any, *, max_bytes: int = MAX_BYTES) -> st.SearchStrategy[ToolCall]:
    """Calls of a set of tools, as a masked model could write them.

    ::

        @given(calls([order_status, cancel]))
        def test_no_call_breaks_the_shop(call): ...

    Args:
        tools: A toolset, or tools and functions.
        max_bytes: As for :func:`arguments`.

    Raises:
        DefinitionError: There is no tool, something is not a tool, or two share a name.
        GrammarError: A schema cannot be enforced.
    """
    known = list(tools if isinstance(tools, Toolset) else Toolset([tools] if isinstance(tools, Tool) else tools))
    if not known:
        raise DefinitionError("calls() needs at least one tool: pass functions, tools or a Toolset.")

    def named(name: str) -> st.SearchStrategy[ToolCall]:
        by_name: Mapping[str, Tool[..., Any]] = {t.name: t for t in known}
        return arguments(by_name[name], max_bytes=max_bytes).map(lambda values: ToolCall(name=name, arguments=values))

    return st.one_of([named(t.name) for t in known])


_ORDER = sorted(range(256), key=lambda byte: (byte not in b"0123456789", not 97 <= byte <= 122, byte))
"""What examples shrink to where there is a choice: digits, then small letters."""


def _finite(values: Any) -> bool:
    """Whether all numbers are: a number with a large exponent is JSON, but none of Python's."""
    if isinstance(values, dict | list):
        return all(map(_finite, values.values() if isinstance(values, dict) else values))
    return not isinstance(values, float) or math.isfinite(values)


@functools.cache
def _vocabulary() -> Vocabulary:
    return Vocabulary.byte_level()


@st.composite
def _texts(draw: st.DrawFn, grammar: Grammar, max_bytes: int) -> str:
    """Texts of a grammar's language. Choice 0 is always the way to the shortest end, so that examples shrink to it."""
    matcher = grammar.matcher()
    mask = allocate_mask(1, _vocabulary().size)
    text = bytearray()
    while True:
        forced = matcher.forced_bytes()
        if forced:
            matcher.accept_bytes(forced)
            text += forced
        shortest = matcher.shortest_end()
        if len(text) + len(shortest) >= max_bytes:
            text += shortest
            break
        matcher.fill_mask(mask)
        allowed = [byte for byte in _ORDER if mask[0, byte // 32] >> (byte % 32) & 1]
        first = -1 if not shortest else shortest[0]  # -1: here it may end
        choices = [first, *(byte for byte in allowed if byte != first)]
        if choices == [-1]:
            break
        byte = choices[draw(st.integers(0, len(choices) - 1))]
        if byte < 0:
            break
        matcher.accept_bytes(bytes([byte]))
        text.append(byte)
    return text.decode()
