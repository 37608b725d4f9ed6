"""Weights of a trend's shares: exact least squares, also where intervals have no reports."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from veilcount_analysis.estimation.trend_weights import (
    interval_levels,
    largest_influence,
    least_variances,
    share_weights,
)

from ...least_squares import exact_weights, intervals

Floats = NDArray[np.float64]


def all_weights(periods: int) -> Floats:
    reported = bytes([1] * len(interval_levels(periods)))
    return np.array([share_weights(periods, t, reported) for t in range(1, periods + 1)])


@pytest.mark.parametrize("periods", [1, 2, 3, 5, 7, 8, 12, 13, 40])
def test_weights_are_those_of_least_squares(periods: int) -> None:
    """Against the normal equations in Fractions; more shares than one block of them at 40."""
    exact = np.array(exact_weights(periods), np.float64)

    assert np.abs(all_weights(periods) - exact).max() < 1e-12
    assert [len(interval) for interval in intervals(periods)] == [
        1 << level for level in interval_levels(periods).tolist()
    ]


def test_the_sum_of_the_intervals_that_cover_the_periods_is_another_reading() -> None:
    """Planted: one interval of each level, as in the binary form of 7. It varies more."""
    covering = np.zeros(len(interval_levels(12)))
    covering[[12 + 6 + 0, 12 + 2, 6]] = 1  # four periods, two, one

    (share,) = all_weights(12)[[6]]

    assert (covering**2).sum() == 3
    assert (share**2).sum() < 1.1
    assert np.abs(share - covering).max() > 0.3


@pytest.mark.parametrize("periods", [1, 2, 3, 7, 8, 24, 52, 100, 365])
def test_sums_of_squares_and_the_largest_influence_follow_from_the_weights(periods: int) -> None:
    weights, levels = all_weights(periods), interval_levels(periods)
    influences = [np.abs(weights[:, levels == level]).sum(axis=1) for level in set(levels.tolist())]

    assert np.abs((weights**2).sum(axis=1) - least_variances(periods)).max() < 1e-12
    assert np.max(influences) == pytest.approx(largest_influence(periods))


def test_planned_variances_of_24_periods() -> None:
    """The mean sum of squares, once computed apart from this code; of covering intervals 2.25."""
    assert least_variances(24).mean() == pytest.approx(0.9014848950332821)
    assert sum(t.bit_count() for t in range(1, 25)) / 24 == 2.25


def test_intervals_without_reports_have_no_weight_and_others_have_the_least_squares() -> None:
    """Against the pseudoinverse, over 300 patterns of missing intervals."""
    generator, without = np.random.default_rng(1), 0
    for _ in range(300):
        periods = int(generator.integers(1, 30))
        rows = np.array([np.isin(np.arange(periods), held) for held in intervals(periods)], float)
        reported = generator.random(len(rows)) < generator.choice([0.5, 0.8, 0.95])
        rows[~reported] = 0
        expected = np.tril(np.ones((periods, periods))) @ np.linalg.pinv(rows)
        biased = np.abs(expected @ rows - np.tril(np.ones((periods, periods)))).max(axis=1) > 1e-9
        for place in range(periods):
            weights = share_weights(periods, place + 1, reported.tobytes())
            without += weights is None

            assert (weights is None) == biased[place]
            assert weights is None or np.abs(weights - expected[place]).max() < 1e-8
            assert weights is None or not weights[~reported].any()
    assert without > 100
