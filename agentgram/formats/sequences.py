"""Sequences of specifications, as short as they can be: each node is one more thing for the engine to look at."""

from __future__ import annotations

import re
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


def spelled(text: str, tokens: frozenset[str]) -> e.Spec:
    """A text in which markers may stand, these as tokens where they are some."""
    if not any(token in text for token in tokens):
        return e.Lit(text)
    pattern = "|".join(re.escape(t) for t in sorted(tokens, key=len, reverse=True))
    pieces = (p for p in re.split(f"({pattern})", text) if p)
    return sequence(e.Tok(p) if p in tokens else e.Lit(p) for p in pieces)
