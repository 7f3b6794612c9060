"""Data is not markup: markers that occur in what users and tools say are broken up."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

Guard: TypeAlias = Callable[[str], str]
"""Makes text of users and tools harmless: what would be a marker in it is broken up."""


@lru_cache(maxsize=64)
def breaker(markers: tuple[str, ...]) -> Guard:
    """A function that puts a space after the first character of every marker in a text."""
    known = sorted(set(markers), key=len, reverse=True)
    if not known:
        return lambda text: text
    pattern = re.compile("|".join(re.escape(m) for m in known))

    def guard(text: str) -> str:
        while pattern.search(text):
            text = pattern.sub(lambda m: m.group()[0] + " " + m.group()[1:], text)
        return text

    return guard
