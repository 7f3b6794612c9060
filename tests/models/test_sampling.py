"""Drawing a token from scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgram.errors import ModelError
from agentgram.models import ModelSettings
from agentgram.models.decoding import sample

scores = st.lists(st.one_of(st.floats(-30, 30, width=32), st.just(float("-inf"))), min_size=1, max_size=40).filter(
    lambda values: any(np.isfinite(values))
)


@given(scores)
def test_without_temperature_the_likeliest_is_taken(values: list[float]) -> None:
    token = sample(np.array(values, np.float32), ModelSettings(), np.random.default_rng(0))
    assert values[token] == max(values)


@given(scores, st.floats(0.01, 5), st.floats(0.01, 1), st.integers(0, 2**32))
def test_a_banned_token_is_never_drawn(values: list[float], temperature: float, top_p: float, seed: int) -> None:
    settings = ModelSettings(temperature=temperature, top_p=top_p)
    random = np.random.default_rng(seed)
    for _ in range(5):
        assert np.isfinite(values[sample(np.array(values, np.float32), settings, random)])


@given(st.lists(st.floats(-3, 3, width=32), min_size=1, max_size=12), st.floats(0.05, 1), st.integers(0, 2**32))
def test_top_p_keeps_the_smallest_set_with_that_mass(values: list[float], top_p: float, seed: int) -> None:
    row = np.array(values, np.float32)
    shares = np.exp(row.astype(np.float64))
    shares /= shares.sum()
    token = sample(row, ModelSettings(temperature=1, top_p=top_p), np.random.default_rng(seed))
    # All that is strictly likelier than a kept token has less mass than top_p.
    assert shares[shares > shares[token]].sum() < top_p + 1e-9


def test_draws_follow_the_distribution() -> None:
    row = np.log(np.array([0.5, 0.3, 0.2], np.float32))
    random = np.random.default_rng(7)
    draws = [sample(row.copy(), ModelSettings(temperature=1), random) for _ in range(4000)]
    assert np.allclose(np.bincount(draws, minlength=3) / 4000, [0.5, 0.3, 0.2], atol=0.03)


@pytest.mark.parametrize("bad", [float("nan"), float("-inf"), float("inf")])
def test_unusable_scores_are_an_error(bad: float) -> None:
    with pytest.raises(ModelError, match="none can be chosen"):
        sample(np.full(4, bad, np.float32), ModelSettings(), np.random.default_rng(0))
