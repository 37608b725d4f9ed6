"""The poisoning band of a string holds the honest share: a fake report chooses its half.

400 honest populations of 2,970,000 reports, some with a true collision in one half; 30,000 fakes
join, all, half or none of them in one half, which support the string there or do not. The band is a
bound, so none may leave it. That of the shown figure alone, fakes as frequent in its part as in the
whole, is left in two of five, so that one is seen. The seed is fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import Generator

from veilcount_analysis.estimation.confidence_intervals import Ends
from veilcount_analysis.estimation.open_strings import HalfSupports
from veilcount_analysis.estimation.response_distribution import ResponseDistribution
from veilcount_shared.mechanisms import HashedStrings

ATTACKS, N, FAKES = 400, 3_000_000, Fraction(1, 100)
STRINGS = HashedStrings.for_epsilon(Fraction(1), 20, 2)
RESPONSE = ResponseDistribution.from_mechanism(STRINGS)

ROUNDING = 1e-9  # an attack that reaches the bound is equal to it

Band = Callable[[HalfSupports], Ends]


def attacks() -> Iterator[tuple[HalfSupports, HalfSupports]]:
    """Honest reports, and the same among fakes."""
    generator = np.random.default_rng(12)
    fakes = int(FAKES * N)
    for _ in range(ATTACKS):
        honest = honest_reports(N - fakes, generator)
        first = int(fakes * generator.choice([0, 0.5, 1]))
        added = np.array([first, fakes - first])
        supporting = added * generator.integers(2, size=2)
        counts = honest.counts + supporting[:, np.newaxis]
        yield honest, replace(honest, sizes=honest.sizes + added, counts=counts)


def honest_reports(n: int, generator: Generator) -> HalfSupports:
    sizes = generator.multinomial(n, [0.5, 0.5])
    share = generator.choice([0.002, 0.01, 0.05, 0.2])
    collision = generator.choice([0, 0, 0.02]) * generator.permutation([1, 0])
    counts = generator.binomial(sizes, RESPONSE.Q + (share + collision) * RESPONSE.gap)
    return HalfSupports(sizes, counts[:, np.newaxis], RESPONSE, STRINGS.k)


def outside(band: Band) -> int:
    """The number of honest shares that a band does not hold."""
    misses = 0
    for honest, received in attacks():
        low, high = band(received)
        share = honest.points[0]
        misses += not low[0] - ROUNDING <= share <= high[0] + ROUNDING
    return misses


def of_shown_figure(received: HalfSupports) -> Ends:
    """Planted: the band of the whole, or of the smaller half where the halves differ."""
    parts = [part.poisoned(float(FAKES)) for part in (received.whole, *received.halves)]
    if not received.shared[0]:
        return parts[0]
    return parts[1 + int(np.argmin([half.points[0] for half in received.halves]))]


def test_no_choice_of_a_half_moves_the_share_out_of_the_band() -> None:
    assert outside(lambda received: received.poisoned(float(FAKES))) == 0


def test_a_band_of_the_shown_figure_alone_is_left() -> None:
    assert outside(of_shown_figure) > ATTACKS / 4


def test_all_fakes_in_one_half_without_support_hide_a_string_and_the_band_still_holds_it() -> None:
    """The halves differ then, and the smaller one is shown."""
    sizes = np.array([N // 2, N // 2])
    counts = np.rint(sizes * (RESPONSE.Q + 0.05 * RESPONSE.gap)).astype(np.int64)
    honest = HalfSupports(sizes, counts[:, np.newaxis], RESPONSE, STRINGS.k)
    received = replace(honest, sizes=sizes + np.array([0, N // 100]))
    low, high = received.poisoned(1 / 101)

    assert received.shared[0]
    assert received.points[0] < 0.045
    assert low[0] <= honest.points[0] <= high[0]
    assert of_shown_figure(received)[1][0] < honest.points[0]


def test_a_half_without_reports_has_no_fakes_and_leaves_the_band_of_the_whole() -> None:
    received = HalfSupports(np.array([1_000, 0]), np.array([[30], [0]]), RESPONSE, STRINGS.k)

    for end, whole in zip(received.poisoned(0.01), received.whole.poisoned(0.01), strict=True):
        assert end == pytest.approx(whole)
