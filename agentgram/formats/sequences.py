"""Sequences of specifications, as short as they can be: each node is one more thing for the engine to look at."""

from __future__ import annotations

from collections.abc import Iterable

from agentgram.engine import spec as e


def sequence(items: Iterable[e.Spec]) -> e.Spec:
    """A sequence without nesting, in which neighbouring literals are one."""
    out: list[e.Spec] = []
    for item in items:
        for piece in item.items if isinstance(item, e.Seq) else (item,):
            if isinstance(piece, e.Lit) and out and isinstance(out[-1], e.Lit):
                out[-1] = e.Lit(out[-1].text + piece.text)
            elif not (isinstance(piece, e.Lit) and not piece.text):
                out.append(piece)
    return out[0] if len(out) == 1 else e.Seq(out)
