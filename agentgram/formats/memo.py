"""What schemas become in a codec, made once for all that are equal."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from agentgram.engine import spec as e
from agentgram.formats.slots import Slot

_MOST = 4096
"""How many grammars are kept of one codec in one kind of place."""


class Memo:
    """The grammars that a codec has made: tools have much in common, and the engine compiles one object once."""

    def __init__(self) -> None:
        self._made: dict[Hashable, dict[tuple[Hashable, ...], e.Spec]] = {}
        self._last: tuple[Slot | None, dict[tuple[Hashable, ...], e.Spec]] = (None, {})

    def once(self, what: tuple[Hashable, ...], schema: Any, slot: Slot, make: Callable[[], e.Spec]) -> e.Spec:
        """What a schema becomes in a place.

        Args:
            what: All that the grammar depends on beside the schema and the slot's other parts.
            schema: What a tool says about one value.
            slot: Where the codec is at work.
            make: Makes the grammar.
        """
        text = repr(schema)
        if "$" in text:  # what a reference stands for is said elsewhere
            return make()
        last, known = self._last
        if last is not slot:  # one tool's values are asked for one after another
            place = (slot.avoid, slot.tokens, slot.unsupported, slot.lenient, slot.schema.get("$schema"))
            known = self._made.setdefault(place, {})
            self._last = (slot, known)
        key = (*what, text)
        made = known.get(key)
        if made is None:
            if len(known) >= _MOST:
                known.clear()
            made = known[key] = make()
        return made
