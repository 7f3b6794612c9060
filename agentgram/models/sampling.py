"""From scores and masks to a token."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agentgram.errors import ModelError
from agentgram.models.base import ModelSettings

if TYPE_CHECKING:
    from agentgram.engine import Vocabulary


def generator(seed: int | None, step: int) -> np.random.Generator:
    """What one turn is drawn with; a seed gives the same draws again."""
    # The step is part of the seed, so that the turns of one run do not repeat each other's draws.
    return np.random.default_rng() if seed is None else np.random.default_rng([abs(seed), seed < 0, step])


def sample(logits: NDArray[np.float32], settings: ModelSettings, random: np.random.Generator) -> int:
    """Draws a token id from scores in which banned tokens are ``-inf``.

    Args:
        logits: Scores, of shape [vocabulary].
        settings: Temperature 0 takes the likeliest; above it, the nucleus of ``top_p`` is drawn from
            (Holtzman et al., "The Curious Case of Neural Text Degeneration", section 3).
        random: The generator to draw with.

    Raises:
        ModelError: No token is left, or the scores are not numbers.
    """
    best = int(np.argmax(logits))
    top = logits[best]
    if not np.isfinite(top):
        raise ModelError(
            f"the scores of the next token have {top} as their largest value, so none can be chosen. The weights or "
            "the number type overflow: try dtype='float32'."
        )
    if settings.temperature == 0:
        return best
    weights = np.exp((logits.astype(np.float64) - top) / settings.temperature)
    if settings.top_p < 1:
        order = np.argsort(-weights, kind="stable")
        mass = np.cumsum(weights[order])
        kept = order[: int(np.searchsorted(mass, settings.top_p * mass[-1])) + 1]
        return int(kept[_draw(weights[kept], random)])
    return _draw(weights, random)


def _draw(weights: NDArray[np.float64], random: np.random.Generator) -> int:
    mass = np.cumsum(weights)
    index = int(np.searchsorted(mass, random.random() * mass[-1], side="right"))
    # Rounding can put the draw at the very end, where a banned token may lie: step back to the last with weight.
    return min(index, int(np.flatnonzero(weights)[-1]))


def ends_mask(vocabulary: Vocabulary) -> NDArray[np.int32]:
    """A mask row that allows the end tokens only."""
    row: NDArray[np.uint32] = np.zeros((vocabulary.size + 31) // 32, np.uint32)
    for token in vocabulary.end:
        row[token // 32] |= np.uint32(1 << (token % 32))
    return row.view(np.int32)


def only_token(mask: NDArray[np.int32]) -> int | None:
    """The one token that a mask row allows; None where it allows none or several."""
    words = np.flatnonzero(mask)
    if len(words) != 1:
        return None
    bits = int(mask[words[0]]) & 0xFFFFFFFF
    return int(words[0]) * 32 + bits.bit_length() - 1 if bits & (bits - 1) == 0 else None
