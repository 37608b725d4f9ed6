"""Simulated populations: the truth with the local and the central estimate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from veilcount_analysis.simulation import Population, compare_local_and_central, population
from veilcount_shared.collection import Linkage
from veilcount_shared.periods import Unit

from .estimation.collection_fixtures import of_number, of_values, question


def rng() -> np.random.Generator:
    return np.random.default_rng(20260101)


def test_shares_lie_in_the_intervals_of_both_models() -> None:
    """At one seed: the truth is in nearly all intervals, and the curator's are far narrower."""
    held = Population(np.arange(16), np.arange(1, 17) * 500)
    shown = compare_local_and_central(of_values(16), held, rng())

    assert shown.n == 68_000
    assert shown.truth.tolist() == (np.arange(1, 17) / 136).tolist()
    for figures in (shown.local, shown.central):
        assert ((figures.low <= shown.truth) & (shown.truth <= figures.high)).sum() >= 13
    widths = [float((each.high - each.low).mean()) for each in (shown.local, shown.central)]
    assert widths[0] > 50 * widths[1]


def test_a_mean_lies_in_the_intervals_of_both_models() -> None:
    minutes = of_number(0, 100)
    held = population(minutes, [10, 20, 30.5] * 5000, rng())
    shown = compare_local_and_central(minutes, held, rng())

    assert shown.truth.tolist() == pytest.approx([60.5 / 3])
    for figures in (shown.local, shown.central):
        assert figures.low[0] < figures.value[0] < figures.high[0]
    assert abs(shown.local.value[0] - shown.truth[0]) < 4
    assert abs(shown.central.value[0] - shown.truth[0]) < 0.3


def test_shares_of_a_hidden_presence_are_of_all_devices() -> None:
    held = Population(np.arange(4), np.array([3000, 2000, 1000, 4000]))
    hidden = question('values = ["a", "b", "c"]\npresence = "hidden"')
    shown = compare_local_and_central(hidden, held, rng())

    assert shown.truth.tolist() == [0.3, 0.2, 0.1, 0.4]
    assert shown.central.value == pytest.approx([0.3, 0.2, 0.1], abs=0.01)


def test_a_curator_needs_no_tokens() -> None:
    tokens = replace(question("boolean = true"), unit=Unit.MONTH, answers=1)
    tokens = replace(tokens, linkage=Linkage.TOKEN, tokens="0" * 64)
    shown = compare_local_and_central(tokens, Population(np.arange(2), np.array([700, 300])), rng())

    assert shown.truth.tolist() == [0.7, 0.3]


def test_a_distribution_has_neither_shares_of_values_nor_a_mean() -> None:
    spread = question('range = [0, 100]\nmeasure = "distribution"')
    nobody = Population(np.array([0]), np.array([0]))
    for which, held in ((spread, population(spread, [1], rng())), (of_values(4), nobody)):
        with pytest.raises(ValueError, match="values or a mean"):
            compare_local_and_central(which, held, rng())
