"""Every interval of the product covers, in settings that are drawn at random.

Drawn are epsilon, n, the size of the domain, the truth and the estimand, with a weight on the
corners: one report, rare values, everyone equal, everyone at one of two ends. The seed is fixed
by default; VEILCOUNT_COVERAGE_SEED sets another. One alpha (0.001) holds for each test and is
divided over its settings, so a seed fails by chance at most once in a thousand.

Left out, since they claim something else: the "noise only" band of a distribution's curve, and
differences, which `test_comparison_coverage.py` covers.
"""

from __future__ import annotations

import numpy as np
import pytest

from veilcount_shared.mechanisms import MeanMechanism

from ..analysis.estimation.collection_fixtures import of_number
from .coverage_harness import LEAST, Setting, rejected, seed
from .random_settings import (
    Draw,
    central_noise,
    cohort_mean,
    exact_mean_coverage,
    group_share,
    half_width_of,
    mean_of_distribution,
    normal_half_width,
    population_mean,
    ranges_of,
    share,
    share_of_answered,
    shares_together,
)

#: what is drawn, how many settings of it, and rounds of a simulated one
INTERVALS: dict[str, tuple[Draw, int, int]] = {
    "share": (share, 50, 0),
    "group share": (group_share, 3, 100),
    "share of those who answered": (share_of_answered, 3, 100),
    "shares together": (shares_together, 2, 60),
    "cohort mean": (cohort_mean, 10, 100),
    "population mean": (population_mean, 4, 150),
    "mean of a distribution": (mean_of_distribution, 3, 100),
    "ranges": (ranges_of, 2, 80),
    "central noise": (central_noise, 25, 0),
}


def drawn(name: str, settings: int = 1, rounds: int = 1, width: float = 1.0) -> list[Setting]:
    """Settings of one interval; the draws of one do not depend on those of another."""
    draw, few_settings, few_rounds = INTERVALS[name]
    rng = np.random.default_rng([seed(), *name.encode()])
    return [draw(rng, few_rounds * rounds, width) for _ in range(few_settings * settings)]


MANY = pytest.param(18, 9, marks=[pytest.mark.full, pytest.mark.timeout(3_600)])


@pytest.mark.parametrize(("settings", "rounds"), [(1, 1), MANY], ids=["few", "many"])
@pytest.mark.parametrize("name", INTERVALS)
def test_an_interval_covers_in_settings_drawn_at_random(
    name: str, settings: int, rounds: int
) -> None:
    """Alpha 0.001 for each interval, divided over its settings."""
    assert list(rejected(drawn(name, settings, rounds))) == []


@pytest.mark.parametrize("name", INTERVALS)
def test_narrower_intervals_are_rejected(name: str) -> None:
    """Of 70 % of their width; of a third, where they bound what is not known, too."""
    sharp = name in {"share", "cohort mean", "population mean", "central noise"}

    assert any(rejected(drawn(name, width=0.7 if sharp else 1 / 3)))


def test_a_normal_interval_of_few_reports_is_rejected() -> None:
    """Of settings drawn like those above, with a seed of their own: a variant that is planted."""
    rng = np.random.default_rng(1)
    settings = [cohort_mean(rng, 100, 1.0, normal_half_width) for _ in range(35)]

    assert any(rejected(settings))


@pytest.mark.parametrize(("epsilon", "n"), [("0.1", 4), ("2", 2), ("3", 2), ("4", 4), ("7", 16)])
def test_a_mean_of_the_hardest_cohorts_is_covered(epsilon: str, n: int) -> None:
    """Exactly: all at one number, all but one, and every split between the two ends.

    The normal interval is rejected, and so is one that is narrower by a fifth.
    """
    collection = of_number(epsilon=epsilon)
    mechanism = collection.mechanism
    assert isinstance(mechanism, MeanMechanism)
    cohorts = [(np.array([each]), np.array([n])) for each in (0.0, 0.03, 0.25, 0.47, 0.5)]
    cohorts += [(np.array([0.0, 1.0]), np.array([n - k, k])) for k in range(1, n // 2 + 1)]
    cohorts += [(np.array([0.0, 0.5, 1.0]), np.array([(n - 1) // 2, 1, n // 2]))]

    def least(half: float) -> float:
        return min(exact_mean_coverage(mechanism, cohort, half).held for cohort in cohorts)

    half = half_width_of(collection, mechanism, n)
    assert least(half) >= LEAST
    assert least(normal_half_width(collection, mechanism, n)) < LEAST
    assert least(0.8 * half) < LEAST
