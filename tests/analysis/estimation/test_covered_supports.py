"""Shares and means among covers: figures of the persons alone, and what is refused.

That intervals cover, and that their errors are the stated ones, `test_cover_outcomes` enumerates.
"""

from __future__ import annotations

from math import sqrt
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from veilcount_analysis.errors import QueryError
from veilcount_analysis.estimation import LookCount, MeanEstimate, NoReports
from veilcount_analysis.estimation.confidence_intervals import Counts
from veilcount_analysis.estimation.covered_supports import _tail
from veilcount_analysis.estimation.difference import compare
from veilcount_analysis.kinds.estimate import SeriesData, refuse_covers
from veilcount_analysis.kinds.estimate_query import EstimateQuery
from veilcount_analysis.kinds.registry import kind_of
from veilcount_analysis.kinds.sample_adequacy import sample_adequacy
from veilcount_analysis.kinds.source import Tally
from veilcount_analysis.mechanisms.estimates import estimate as estimate_of
from veilcount_analysis.mechanisms.estimates import estimate_mean, estimate_shares
from veilcount_analysis.mechanisms.handler import number_handler, share_handler
from veilcount_analysis.privacy.shuffled import shuffled_error
from veilcount_analysis.simulation import Population, simulate
from veilcount_shared import Collection
from veilcount_shared.domain import GRID

from ...properties.definition_harness import parse_definition

BATCH = "batch = {epsilon = 1, delta = 0.000001, covers = %d}"


def shuffled(lines: str, covers: int) -> Collection:
    """Return a shuffled question at epsilon 4."""
    return parse_definition(f"epsilon = 4\nmodel = 'shuffled'\n{lines}\n{BATCH % covers}")


YES_NO = shuffled("boolean = true", 110)
HIDDEN_YES_NO = "boolean = true\npresence = 'hidden'"
HIDDEN_THREE = "values = ['a', 'b', 'c']\npresence = 'hidden'"
MEAN = "range = [0, 1]\nmeasure = 'mean'\npresence = 'public'"


def test_exact_tails_are_sums_of_binomials() -> None:
    """Against every outcome of three small ones."""
    trials = ((3, 0.9), (4, 0.1), (5, 0.25))
    chances = np.ones(1)
    for number, chance in trials:
        own = np.ones(1)
        for _ in range(number):
            own = np.convolve(own, [1 - chance, chance])
        chances = np.convolve(chances, own)

    for count in range(-1, 14):
        assert _tail(count, trials, upper=True) == pytest.approx(chances[max(count, 0) :].sum())
        assert _tail(count, trials, upper=False) == pytest.approx(
            chances[: max(count + 1, 0)].sum()
        )


# -- the walk of a series --------------------------------------------------------------------------


def counters_of(collection: Collection, n: int) -> Counts:
    """Return the expected counters of n persons who all hold the first value, and of covers."""
    handler = share_handler(collection)
    assert collection.batch is not None
    k, covers = handler.mechanism.k, collection.batch.covers
    counters = np.full(k, round(n * handler.response.Q + covers / k), np.int64)
    counters[0] = 0
    counters[0] = n + covers - counters.sum()
    return counters


def test_n_is_that_of_the_persons_and_shares_are_of_them() -> None:
    shares = estimate_shares(YES_NO, counters_of(YES_NO, 1000), covers=110)

    assert shares.n == 1000
    assert shares.frequency is not None
    assert shares.frequency[0] == pytest.approx(1, abs=0.01)


def test_covers_alone_are_no_answers() -> None:
    counters = counters_of(YES_NO, 0)

    assert estimate_shares(YES_NO, counters, covers=110).n == 0


def test_intervals_for_every_look_are_refused_by_name_with_the_way_out() -> None:
    query, tally = EstimateQuery(looks=LookCount.EVERY), Tally(counters_of(YES_NO, 1000), 110)
    with pytest.raises(QueryError, match="looks=one") as caught:
        refuse_covers(query, tally)
    with pytest.raises(ValueError, match="looks=one"):
        estimate_shares(YES_NO, tally.counters, looks=LookCount.EVERY, covers=110)

    assert caught.value.field == "looks"
    refuse_covers(query, Tally(tally.counters))


def test_every_look_is_refused_before_a_search_is_counted() -> None:
    question = shuffled("values = 'open'\ndiscover = false\npresence = 'public'", 500)
    tally = Tally(np.ones(question.mechanism.counters, np.int64), 1)
    searches = SimpleNamespace()  # an attribute that is read fails
    source: Any = SimpleNamespace(tally=lambda *_: tally, searches=searches)
    scope: Any = SimpleNamespace(whole=SimpleNamespace(periods=range(1)), cells=(0,))

    with pytest.raises(QueryError, match="among a shuffler's covers"):
        SeriesData.load(kind_of(question), source, EstimateQuery(looks=LookCount.EVERY), scope)


def test_covers_of_several_batches_add_up() -> None:
    """Two batches of 500 are estimated as one of 1,000 with the covers of both."""
    both = 2 * counters_of(YES_NO, 500)
    shares = estimate_shares(YES_NO, both, covers=220)

    assert shares.n == 1000
    assert shares.frequency is not None
    assert shares.frequency[0] == pytest.approx(1, abs=0.01)


# -- fakes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "ratio"), [(HIDDEN_YES_NO, 2.6), (HIDDEN_THREE, 3.1), (MEAN, 2.2)]
)
def test_fakes_move_a_figure_less_than_at_local_epsilon_1(lines: str, ratio: float) -> None:
    """One in a hundred fakes: the band at epsilon 4, covers subtracted, against that at 1."""
    among, alone = shuffled(lines, 142), parse_definition(f"epsilon = 1\n{lines}")
    bands = [band_of(collection, covers) for collection, covers in ((alone, 0), (among, 142))]

    assert bands[0] / bands[1] == pytest.approx(ratio, rel=0.05)


def band_of(collection: Collection, covers: int) -> float:
    """Return the width of the poisoning band of the first figure, of 1,000 even reports."""
    counters = np.full(collection.mechanism.counters, 1000 // collection.mechanism.counters)
    counters += np.full(len(counters), covers // len(counters))
    counters[0] += 1000 + covers - counters.sum()
    estimate = estimate_of(collection, counters, covers=covers)
    assert not isinstance(estimate, NoReports)
    assert estimate.evidence is not None
    low, high = estimate.evidence.poisoned(0.01)
    return float(high[0] - low[0])


# -- verdict, and comparison -----------------------------------------------------------------------


@pytest.mark.parametrize("lines", [HIDDEN_YES_NO, MEAN])
def test_the_verdict_on_n_is_by_the_error_with_covers(lines: str) -> None:
    """Against the error that a plan states; few reports need more of them among covers."""
    kind = kind_of(shuffled(lines, 142))
    error = shuffled_error(kind.handler.mechanism, 1000, 142)
    among = sample_adequacy(kind.error_among(300, 142), 300)

    assert sqrt(kind.error_among(1000, 142).noise / 1000) == pytest.approx(error)
    assert among.needed > 1.4 * sample_adequacy(kind.error_model, 300).needed


def test_the_variance_of_covers_is_nobody_s() -> None:
    """So it widens no allowance for persons who answered on both sides of a comparison."""
    question, generator = shuffled(MEAN, 142), np.random.default_rng(1)
    handler, domain = number_handler(question)
    people = Population(np.array([0, GRID]), np.array([500, 500]))
    alone, m = simulate(question, people, generator), question.mechanism.messages
    among = alone + generator.multinomial(142, np.full(m, 1 / m))
    variances = [
        float(handler.persons_variance(domain, handler.mean(domain, counters, LookCount.ONE, n))[0])
        for counters, n in ((alone, 0), (among, 142))
    ]

    assert variances[1] == pytest.approx(variances[0], rel=0.15)


def test_two_periods_among_covers_are_compared() -> None:
    """Their difference allows for the covers of both."""
    question, generator = shuffled(MEAN, 142), np.random.default_rng(2)
    m = question.mechanism.messages

    def mean_of(high: int) -> MeanEstimate:
        people = Population(np.array([0, GRID]), np.array([1000 - high, high]))
        counters = simulate(question, people, generator)
        counters += generator.multinomial(142, np.full(m, 1 / m))
        return estimate_mean(question, counters, covers=142)

    same, other = compare(mean_of(300), mean_of(300)), compare(mean_of(300), mean_of(600))

    assert same.low[0] <= 0 <= same.high[0]
    assert other.low[0] <= -0.3 <= other.high[0] < 0
