"""A comparison's sentences hold as often as they say, read from what is printed.

Simulated, seeded, with supports from their exact distribution. False alarms: of 2,000 pairs at a
coverage of .95 fewer than .932 hold with probability 2e-4 in a setting; at a power of .80 fewer
than .74 are seen with 1e-9.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import ceil, floor, inf

import numpy as np
import pytest
from numpy.typing import NDArray

from veilcount_analysis.estimation import IntervalTarget, LookCount
from veilcount_analysis.estimation.difference import DifferenceEstimate
from veilcount_analysis.text.difference_words import direction, ends, would_have_been_seen

from .coverage_harness import LEVEL
from .test_comparison_power import SETTINGS, Setting

Printed = tuple[float, float]
RANGE = re.compile(r"(-?\d[\d,]*) to (-?\d[\d,]*) of ([\d,]+)(?: (higher|lower))?")
SIZE = re.compile(r"one of ([\d,]+) of ([\d,]+) would have been seen 4 times in 5")
COVERED = [
    (Setting(5, "4", (60_000, 60_000), 0.3), 0.0134),
    (Setting(5, "4", (400_000, 200_000), 0.2), 0.0075),
    (Setting(8, "2", (40_000, 40_000), 0.125), -0.0312),
    (Setting(5, "1", (2_000, 2_000), 0.2), 0.0),
]
PAIRS = 2_000


def number(text: str) -> int:
    return int(text.replace(",", ""))


def printed(sentence: str) -> Printed:
    """Return the range of a row's sentence, first less second."""
    found = RANGE.search(sentence)
    assert found is not None, sentence
    low, high = (number(end) / number(found[3]) for end in found.group(1, 2))
    return (-high, -low) if found[4] == "lower" else (low, high)


def rows(setting: Setting, difference: float, pairs: int = PAIRS) -> DifferenceEstimate:
    """Compare samples whose shares differ by so much: each row is a pair of its own."""
    rng, share = np.random.default_rng(14), setting.share
    sides = (share + difference / 2, share - difference / 2)
    pair = setting.pair(*(setting.drawn(i, of, pairs, rng) for i, of in enumerate(sides)))
    low, high = pair.interval(1 - LEVEL)
    p = pair.p_value(1 - LEVEL)
    none = np.full(pairs, inf)
    target, looks = IntervalTarget.POPULATION, LookCount.ONE
    return DifferenceEstimate(
        pair.difference, low, high, p, p, none, LEVEL, looks, 1, target, percent=True
    )


def inward(low: float, high: float) -> Printed:
    """The planted mistake: each end towards the other."""
    return ceil(100 * low) / 100, floor(100 * high) / 100


def held(difference: float, ranges: list[Printed]) -> float:
    return float(np.mean([low - 1e-9 <= difference <= high + 1e-9 for low, high in ranges]))


@pytest.mark.parametrize(("setting", "difference"), COVERED, ids=str)
def test_a_range_holds_the_true_difference_19_times_in_20(
    setting: Setting, difference: float
) -> None:
    compared = rows(setting, difference)
    sentences = [compared.sentence(place, "dark", "A", "B") for place in range(PAIRS)]

    assert held(difference, [printed(sentence) for sentence in sentences]) >= 0.932


@pytest.mark.parametrize(("setting", "difference"), COVERED[:2], ids=str)
def test_ends_that_are_rounded_inwards_would_hold_it_less_often(
    setting: Setting, difference: float
) -> None:
    compared = rows(setting, difference)
    ranges = map(inward, compared.low.tolist(), compared.high.tolist())

    assert held(difference, list(ranges)) < 0.9


def test_of_the_largest_difference_of_several_it_would_be_false() -> None:
    """So the page says that the value was chosen beforehand: of twenty, .95^20 is .36."""
    compared = rows(Setting(20, "4", (400_000, 400_000), 0.05), 0.0, 20 * PAIRS)
    largest = np.abs(compared.difference).reshape(PAIRS, 20).argmax(axis=1)
    places = np.arange(PAIRS) * 20 + largest
    chosen = [printed(compared.sentence(place, "dark", "A", "B")) for place in places]

    assert held(0.0, chosen) < 0.5


# -- what would have been seen ---------------------------------------------------------------------


def stated(size: float) -> float:
    found = SIZE.fullmatch(would_have_been_seen(size, of_shares=True))
    assert found is not None
    return number(found[1]) / number(found[2])


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_what_would_have_been_seen_is_seen_4_times_in_5(setting: Setting) -> None:
    size = setting.detectable()

    assert size <= stated(size) <= 4 / 3 * size
    assert setting.found(1, stated(size)) >= 0.74


def test_a_size_that_is_rounded_down_would_be_seen_less_often() -> None:
    setting = Setting(5, "4", (3_000, 3_000), 0.2)
    size = setting.detectable()

    assert setting.found(1, stated(size)) >= 0.74
    assert setting.found(1, floor(100 * size) / 100) < 0.74


# -- every figure ----------------------------------------------------------------------------------


def random_ends(count: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(5)
    scales = 10.0 ** rng.uniform(-5, 0, (count, 1))
    return np.sort(rng.uniform(-1, 1, (count, 2)) * scales, axis=1)


def escaping(words: Callable[[float, float], Printed]) -> int:
    """How many of 5,000 random ranges are not within what is printed of them."""
    pairs = [(low, high, *words(low, high)) for low, high in random_ends(5_000).tolist()]
    return sum(not (a <= low + 1e-12 and high <= b + 1e-12) for low, high, a, b in pairs)


def test_a_printed_range_includes_its_interval() -> None:
    """Whatever its size; planted: ends inwards."""

    def of_shares(low: float, high: float) -> Printed:
        words = ends if low <= 0 <= high else direction
        return printed(words(low, high, of_shares=True))

    assert escaping(of_shares) == 0
    assert escaping(inward) > 1_000


def test_a_range_of_a_mean_is_rounded_outwards_in_its_own_units() -> None:
    assert direction(8.93, 15.94, of_shares=False) == "8.9 to 16.0 higher"
    assert direction(-1234.9, -1024.1, of_shares=False) == "1,024 to 1,235 lower"
    assert (
        would_have_been_seen(12.01, of_shares=False)
        == "one of 13 would have been seen 4 times in 5"
    )
    assert would_have_been_seen(inf, of_shares=True) == "none would have been seen 4 times in 5"
