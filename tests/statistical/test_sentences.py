"""Sentences that promise a frequency hold as often as they say, from what a page prints.

Exactly: the support of a value has a distribution, and every range that it can lead to is read
from its headline. Nothing is drawn but for the largest of several values, seeded.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from veilcount_analysis.estimation import IntervalTarget
from veilcount_analysis.estimation.proportions import SupportCounts
from veilcount_analysis.estimation.response_distribution import ResponseDistribution
from veilcount_analysis.kinds.headline import share_text
from veilcount_analysis.kinds.results import Figure
from veilcount_analysis.text.number_format import frequency
from veilcount_shared.mechanisms import select_mechanism

from .coverage_harness import LEVEL, support

ENDS = re.compile(r"(\d+) (?:to|and) (\d+) of 100 answers are dark")
SETTINGS = [(1, 300, 0.3), (1, 20_000, 0.3), (4, 300, 0.02), (4, 50_000, 0.302), (2, 400_000, 0.5)]
RESPONSES = {
    epsilon: ResponseDistribution.from_mechanism(select_mechanism(3, str(epsilon)).mechanism)
    for epsilon in (1, 2, 4)
}


def printed(low: float, high: float) -> tuple[float, float]:
    """Return the range that a headline shows of an interval."""
    found = ENDS.search(share_text(Figure("share", "dark", (low + high) / 2, low, high)))
    assert found is not None
    return int(found[1]) / 100, int(found[2]) / 100


def rounded(low: float, high: float) -> tuple[float, float]:
    """The planted mistake: each end to the nearest hundredth."""
    return round(low, 2), round(high, 2)


def coverage(
    epsilon: int, n: int, share: float, shown: Callable[[float, float], tuple[float, float]]
) -> float:
    """Return how often the range that is shown holds the share, exactly."""
    response = RESPONSES[epsilon]
    likely, _ = support(response, n, share, IntervalTarget.POPULATION)
    counts = SupportCounts(n, likely.counts, response, 1)
    ends = zip(*counts.interval(1 - LEVEL, IntervalTarget.POPULATION), strict=True)
    holds = [low - 1e-9 <= share <= high + 1e-9 for low, high in (shown(*end) for end in ends)]
    return float(likely.chances @ np.array(holds))


@pytest.mark.parametrize(("epsilon", "n", "share"), SETTINGS)
def test_a_headline_holds_the_true_share_as_often_as_it_says(
    epsilon: int, n: int, share: float
) -> None:
    assert frequency(LEVEL) == "19 times in 20"
    assert coverage(epsilon, n, share, printed) >= 19 / 20 - 0.01  # as every interval's coverage


def test_ends_that_are_rounded_to_the_nearest_hundredth_hold_it_less_often() -> None:
    assert coverage(4, 50_000, 0.302, rounded) < 0.9


def test_of_the_largest_of_several_values_it_would_be_false() -> None:
    """So the sentence is about a value that was chosen beforehand."""
    response, n, values = RESPONSES[2], 2_000, 20
    draws = np.random.default_rng(20261201).binomial(
        n, response.Q + response.gap / values, (2_000, values)
    )
    low, high = SupportCounts(n, draws.max(axis=1), response, 1).interval(
        1 - LEVEL, IntervalTarget.POPULATION
    )

    assert np.mean((low <= 1 / values) & (1 / values <= high)) < 0.8


def test_what_is_too_wide_says_so() -> None:
    text = share_text(Figure("share", True, 0.28, 0.123, 0.437))

    assert text == "Somewhere between 12 and 44 of 100 answers are yes; too few answers to say more"
    assert frequency(0.999999) == "999,999 times in 1,000,000"
