"""The poisoning band of moments holds the honest figures, whatever fake reports an attack sends.

Nothing is random but the honest reports, which are the same for all attacks: each adds fakes to
their counters, and the band of what comes of it must have the figures of the honest ones inside.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from veilcount_analysis.estimation import poisoning_band
from veilcount_analysis.estimation.confidence_intervals import Counts, Floats
from veilcount_analysis.estimation.moment_poisoning import MomentFigures, deviations, slopes
from veilcount_analysis.estimation.moments import (
    Function,
    MomentMeans,
    correlations,
    covariances,
    means,
)
from veilcount_analysis.mechanisms.moments import MomentsHandler
from veilcount_shared.domain import GRID
from veilcount_shared.mechanisms import Moments

N, FAKES = 60_000, Fraction(1, 200)
FUNCTIONS: dict[str, tuple[Function, float]] = {
    "means": (means, np.inf),
    "deviations": (deviations, np.inf),
    "covariances": (covariances, np.inf),
    "correlations": (correlations, 1.0),
    "slopes": (slopes(2), np.inf),
}
#: of the figure's own distance from the end: the variance of a mean, which corrects its square, is
#: estimated with the fakes
SLACK = 0.02
NEAR = 0.7  # another attack may reach farther from where this one has led


@cache
def handler() -> MomentsHandler:
    return MomentsHandler(Moments.for_epsilon(Fraction(4), 3))


@cache
def honest() -> Counts:
    """The counters of people whose three numbers hang together."""
    generator = np.random.default_rng(1)
    own = generator.uniform(-1, 1, (N, 3))
    numbers = np.stack([own[:, 0], (own[:, 0] + own[:, 1]) / 2, own @ [0.2, -0.4, 0.4]], axis=1)
    points = np.rint((numbers + 1) / 2 * GRID).astype(np.int64)
    messages = handler().draw_messages(handler().draw_moments(points, generator), generator)
    return np.bincount(messages, minlength=handler().mechanism.messages)


def attacked(parts: dict[int, float]) -> MomentMeans:
    """The moments with fakes: `parts` of them send each message."""
    counters, fakes = honest().copy(), round(N * FAKES / (1 - FAKES))
    for message, part in parts.items():
        counters[message] += round(fakes * part)
    return handler().means(counters)


def best_messages() -> Iterator[int]:
    """The least and the greatest level of each moment."""
    levels = handler().mechanism.levels
    for moment in range(len(handler().mechanism.moments)):
        yield from (moment * levels, (moment + 1) * levels - 1)


def place_in_band(found: MomentMeans, name: str, fakes: Fraction = FAKES) -> Floats:
    """Where the honest figures lie: -1 and 1 are the ends of the band, 0 what is estimated."""
    function, limit = FUNCTIONS[name]
    band = poisoning_band(MomentFigures(found, function, -limit, limit), fakes)
    figure, true = function(found.numbers()), function(handler().means(honest()).numbers())
    ends = np.where(true < figure, figure - band.low, band.high - figure)
    places: Floats = np.divide(true - figure, ends, out=np.zeros_like(ends), where=true != figure)
    return places


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_best_message_moves_a_figure_out_of_its_band_and_some_come_near_its_ends(
    name: str,
) -> None:
    places = np.stack(
        [place_in_band(attacked({best_message: 1.0}), name) for best_message in best_messages()]
    )

    assert np.abs(places).max() <= 1 + SLACK
    assert (places.min(axis=0) < -NEAR).all()
    assert (places.max(axis=0) > NEAR).all()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_fakes_that_are_taken_to_draw_their_moments_would_leave_their_band(name: str) -> None:
    """The planted mistake: of each moment's reports no larger a share is fake than of all."""
    few = FAKES / len(handler().mechanism.moments)
    places = [
        place_in_band(attacked({best_message: 1.0}), name, few) for best_message in best_messages()
    ]

    assert np.abs(places).max() > 2


@pytest.mark.parametrize("name", FUNCTIONS)
def test_fakes_that_are_split_over_several_messages_do_not_leave_it_either(name: str) -> None:
    generator, messages = np.random.default_rng(2), list(best_messages())
    worst = 0.0
    for _ in range(150):
        chosen = generator.choice(messages, size=generator.integers(2, 5), replace=False)
        parts = generator.dirichlet(np.ones(len(chosen)))
        found = attacked(dict(zip(chosen.tolist(), parts.tolist(), strict=True)))
        worst = max(worst, float(np.abs(place_in_band(found, name)).max()))

    assert 0.5 < worst <= 1 + SLACK


def test_where_fakes_could_have_made_all_the_spread_every_figure_is_possible() -> None:
    """A fifth of fakes are more than half of the reports of a moment, had they all chosen it."""
    found = handler().means(honest())
    together = poisoning_band(MomentFigures(found, correlations, -1.0, 1.0), Fraction(1, 5))
    slope = poisoning_band(MomentFigures(found, slopes(2)), Fraction(1, 5))

    assert together.low.tolist() == [-1, -1, -1]
    assert together.high.tolist() == [1, 1, 1]
    assert np.isinf(slope.low).all()
    assert np.isinf(slope.high).all()


def test_without_fakes_the_band_is_the_figure() -> None:
    found = handler().means(honest())
    band = poisoning_band(MomentFigures(found, covariances), Fraction(0))

    assert band.low.tolist() == band.high.tolist() == covariances(found.numbers()).tolist()
