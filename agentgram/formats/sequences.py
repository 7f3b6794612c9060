"""Sequences of specifications, as short as they can be: each node is one more thing for the engine to look at."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from agentgram.engine import spec as e


def sequence(items: Iterable[e.Spec]) -> e.Spec:
    """A sequence in which neighbouring literals are one, without sequences in it: those among the items are such."""
    out: list[e.Spec] = []
    text = None  # of the literal that ends ``out``
    for item in items:  # this runs for each piece of each tool, so types are compared, and what is joined stays so
        kind = type(item)
        if kind is e.Seq:
            pieces = item.items  # type: ignore[union-attr]
            if text is not None and pieces and type(pieces[0]) is e.Lit:
                out[-1] = e.Lit(text + pieces[0].text)
                pieces = pieces[1:]
                text = out[-1].text  # type: ignore[union-attr]
            if pieces:
                out += pieces
                text = pieces[-1].text if type(pieces[-1]) is e.Lit else None
        elif kind is not e.Lit:
            text = None
            out.append(item)
        elif item.text:  # type: ignore[union-attr]
            if text is None:
                out.append(item)
            else:
                out[-1] = e.Lit(text + item.text)  # type: ignore[union-attr]
            text = out[-1].text  # type: ignore[union-attr]
    return out[0] if len(out) == 1 else e.Seq(out)


def spelled(text: str, tokens: frozenset[str]) -> e.Spec:
    """A text in which markers may stand, these as tokens where they are some."""
    pattern = _any_of(tokens)
    if pattern is None or pattern.search(text) is None:
        return e.Lit(text)
    return sequence(e.Tok(p) if p in tokens else e.Lit(p) for p in pattern.split(text) if p)


@lru_cache(maxsize=64)
def _any_of(tokens: frozenset[str]) -> re.Pattern[str] | None:
    longest_first = sorted(tokens, key=len, reverse=True)
    return re.compile(f"({'|'.join(map(re.escape, longest_first))})") if tokens else None
