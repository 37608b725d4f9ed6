"""Gaussian releases: rho keeps (epsilon, delta), the noise is OpenDP's, the filter adds up in rho.

Statistical tests of simulated noise are seeded.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import closing
from fractions import Fraction
from math import exp, isclose, sqrt
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from veilcount_aggregator.errors import InsufficientBudget
from veilcount_aggregator.releases.budget_ledger import load_releases, period_accounts
from veilcount_aggregator.store import open_store
from veilcount_analysis.errors import QueryError
from veilcount_analysis.releases import (
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    NoiseKind,
    Release,
    draw_release,
    part_noise,
    price_query,
    quantile,
)
from veilcount_analysis.releases.opendp_noise import calibrated_gaussian_scale, load_opendp
from veilcount_analysis.releases.price import period_budget
from veilcount_analysis.releases.sensitivity import person_contributions
from veilcount_analysis.releases.zcdp import RHO_GRAIN, rho_budget
from veilcount_analysis.series.series import Series
from veilcount_shared.collection import Adjacency
from veilcount_shared.domain import Boolean
from veilcount_shared.errors import format_value
from veilcount_shared.periods import Unit

from ..curator_fixtures import OVER, PERIODS, curator, fill, series, wanted
from .release_fixtures import ADD_REMOVE, SUBSTITUTE, collection, exactly, simulated, whole

DELTA = Fraction(1, 10**6)
SMOOTH = series(budget="1\ndelta = 0.000001")
BUDGET = period_budget(SMOOTH.collection)

# -- the budget ------------------------------------------------------------------------------------

PAIRS = [("0.01", 1e-12), ("0.1", 1e-9), ("1", 1e-6), ("1", 1e-3), ("4", 1e-6), ("16", 1e-12)]


def gaussian_delta(rho: float, epsilon: float) -> float:
    """The exact delta of continuous Gaussian noise, one rho-zCDP mechanism [BW18]."""
    shift = sqrt(2 * rho)
    return float(
        norm.cdf(shift / 2 - epsilon / shift)
        - exp(epsilon) * norm.cdf(-shift / 2 - epsilon / shift)
    )


def opendp_epsilon(rho: float, delta: float) -> float:
    dp = load_opendp()
    dp.enable_features("contrib")
    convert: Any = dp.c.make_zCDP_to_approxDP
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    mechanism: Any = dp.m.make_gaussian(*space, scale=sqrt(1 / (2 * rho)))
    return float(convert(mechanism).map(1.0).epsilon(delta))


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_a_budget_in_rho_keeps_epsilon_and_delta_and_gives_nothing_away(
    epsilon: str, delta: float
) -> None:
    """OpenDP's accountant agrees; half as much again would be too much for one mechanism."""
    rho = rho_budget(Fraction(epsilon), Fraction(str(delta)))

    assert opendp_epsilon(float(rho), delta) <= float(epsilon) * (1 + 1e-3)
    assert opendp_epsilon(float(rho) * 1.01, delta) > float(epsilon)
    assert gaussian_delta(float(rho), float(epsilon)) <= delta
    assert gaussian_delta(float(rho) * 1.6, float(epsilon)) > delta


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
@pytest.mark.parametrize("times", [2, 30, 365])
def test_a_person_s_periods_cost_no_more_than_the_plain_sum(
    epsilon: str, delta: float, times: int
) -> None:
    """Rho adds up over periods; converted at the same delta it is below the sum of epsilons."""
    rho = float(rho_budget(Fraction(epsilon), Fraction(str(delta))))

    assert opendp_epsilon(rho * times, delta) <= float(epsilon) * times


@pytest.mark.parametrize(
    ("histograms", "laplace", "gaussian"), [(1, 6, 13), (4, 24, 25), (10, 60, 40), (100, 599, 126)]
)
def test_gaussian_noise_gains_with_the_number_of_releases(
    histograms: int, laplace: int, gaussian: int
) -> None:
    """The table of docs/concepts.md: substitution, epsilon 1, delta 1e-6."""
    scale = sqrt(2 * histograms / (2 * float(rho_budget(Fraction(1), DELTA))))

    assert DiscreteLaplaceNoise(2.0 * histograms).half_width(0.05) == laplace
    assert DiscreteGaussianNoise(scale).half_width(0.05) == gaussian


def test_an_epsilon_below_delta_has_a_rho_too() -> None:
    """Pinsker: total variation is at most the root of rho / 2."""
    assert rho_budget(Fraction(1, 100), Fraction(1, 10)) == Fraction(1, 50)


# -- the noise -------------------------------------------------------------------------------------


@pytest.mark.parametrize("squared", [1, 2, 18])
@pytest.mark.parametrize("price", ["0.02", "0.5", "0.000001"])
def test_a_scale_delivers_no_more_rho_than_was_paid_and_hardly_less(
    squared: int, price: str
) -> None:
    scale = calibrated_gaussian_scale(squared, Fraction(price))

    assert Fraction(squared) / (2 * Fraction(scale) ** 2) <= Fraction(price)
    assert isclose(scale, sqrt(squared / (2 * float(price))), rel_tol=1e-12)


# -- releases cover --------------------------------------------------------------------------------

AGES = np.array([30, 10, 0, 55, 20, 0, 70, 15])


def priced(query: object, adjacency: Adjacency, rho: str = "0.01") -> Any:
    each = collection(whole(0, 7), adjacency, unit=Unit.USER, budget=Fraction(4), delta=DELTA)
    return price_query({"query": query, "rho": rho}, each)


def misses(query: object, adjacency: Adjacency, times: int, wrong: float = 1.0) -> int:
    """In how many releases the first interval misses."""
    question, noise = priced(query, adjacency), simulated(NoiseKind.GAUSSIAN, 11, wrong)
    exact = draw_release(question, AGES, noise=exactly).values[0]
    drawn = (draw_release(question, AGES, noise=noise) for _ in range(times))
    return sum(not each.low[0] <= exact <= each.high[0] for each in drawn)


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, SUBSTITUTE])
@pytest.mark.parametrize("query", ["histogram", "age >= 3", "sum", "mean"])
def test_intervals_cover_and_those_of_a_wrong_scale_do_not(
    query: str, adjacency: Adjacency
) -> None:
    """alpha = 1e-4 for more misses than 5 %; noise of twice the scale is found out."""
    most = binom.isf(1e-4, 200, 0.05)

    assert misses(query, adjacency, 200) <= most
    assert misses(query, adjacency, 200, wrong=2) > most


def test_quantiles_of_a_gaussian_histogram_cover() -> None:
    question, noise = priced("histogram", ADD_REMOVE), simulated(NoiseKind.GAUSSIAN, 3)
    found = [
        quantile(draw_release(question, AGES, noise=noise), Fraction(1, 2)) for _ in range(100)
    ]

    assert sum(each.low <= 4 <= each.high for each in found) >= 95
    assert np.median([each.high - each.low for each in found]) < 7


def test_a_substituted_answer_moves_a_histogram_by_the_root_of_2() -> None:
    """Laplace noise doubles its scale there; Gaussian does not."""
    one, two = (part_noise(priced("histogram", each))[0] for each in (ADD_REMOVE, SUBSTITUTE))

    assert isclose(two.scale / one.scale, sqrt(2), rel_tol=1e-9)
    assert (one.distribution, one.sensitivity, two.sensitivity) == ("gaussian", 1, 2)


def test_a_gaussian_release_is_plain_data_and_has_no_epsilon() -> None:
    released = draw_release(priced("histogram", ADD_REMOVE), AGES)

    assert Release.from_json(released.to_json()) == released
    assert (released.epsilon, released.rho, released.person_rho) == (None, "1/100", "1/100")


# -- what is not composed --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("delta", "cost", "field", "says"),
    [
        (None, {"rho": "0.01"}, "rho", "declare delta in a new definition"),
        (DELTA, {"rho": "0.01", "epsilon": 1}, "rho", "give either"),
        (DELTA, {"rho": "0.5"}, "rho", "a period's whole budget is 0.0"),
        (DELTA, {"rho": "0"}, "rho", "above 0"),
        (DELTA, {"rho": "0.0000000000001"}, "rho", "twelve decimals"),
        (DELTA, {"rho": 0.01}, "rho", "exact number"),
        (DELTA, {}, "epsilon", "(missing)"),
    ],
)
def test_a_cost_that_the_budget_cannot_compose_is_refused(
    delta: Fraction | None, cost: dict[str, object], field: str, says: str
) -> None:
    each = collection(Boolean(), budget=Fraction(1), delta=delta)
    with pytest.raises(QueryError) as refused:
        price_query({"query": "count", **cost}, each)

    assert refused.value.field == field
    assert says in str(refused.value)


# -- the filter ------------------------------------------------------------------------------------


def test_laplace_and_gaussian_releases_share_one_budget(memory: Path) -> None:
    """Half of epsilon squared and rho add up; a store opened again knows it, as does a process."""
    url, journal = f"sqlite:///{memory}/shared.db?durability=relaxed", memory / "releases.jsonl"
    half = format_value(Fraction(int(BUDGET * 500), 1000))
    with closing(open_store(url, make=True)) as store, closing(open_store(url)) as other:
        fill(store, SMOOTH, [3, 2, 1, 0])
        first = curator(store, journal).answer(SMOOTH, wanted("histogram", "0.1"), OVER, "one")
        second = curator(other, journal).answer(
            SMOOTH, wanted("count", None) | {"rho": half}, OVER, "two"
        )
        assert first.question.charges == {0: int(Fraction(1, 200) * RHO_GRAIN)}
        assert second.accounts[0].spent == Fraction(1, 200) + Fraction(half)
    with (
        closing(open_store(url)) as again,
        pytest.raises(InsufficientBudget, match=r"^rho: 0.01") as refused,
    ):
        curator(again, journal).answer(SMOOTH, wanted("sum", None) | {"rho": "0.01"}, OVER, "three")

    assert refused.value.remaining == BUDGET - second.accounts[0].spent


ASKS = st.tuples(
    st.sampled_from(["count", "sum", "histogram"]),
    st.sampled_from(
        [("epsilon", "0.1"), ("epsilon", "0.02"), ("rho", "0.005"), ("rho", "0.0001234")]
    ),
    st.integers(0, 3),
    st.integers(0, 2),
)


@settings(max_examples=10, deadline=None)
@given(asks=st.lists(ASKS, max_size=10))
def test_no_sequence_of_both_noises_overspends_any_period(
    memory: Path, asks: list[tuple[str, tuple[str, str], int, int]]
) -> None:
    """Nobody is answered twice a day here, so a release of d days has d units of one person."""
    folder = Path(mkdtemp(dir=memory))
    store = open_store(f"sqlite:///{folder}/store.db?durability=relaxed", make=True)
    asker = curator(store, folder / "releases.jsonl")
    model: defaultdict[int, Fraction] = defaultdict(Fraction)
    answered: set[tuple[object, ...]] = set()
    for query, (name, price), first, more in asks:
        costs = {"epsilon": None, name: price}
        request = wanted(query, None, first, first + more) | costs
        periods = range(first, first + more + 1)
        rho = Fraction(price) if name == "rho" else Fraction(price) ** 2 / 2
        each = rho * len(periods)
        if (ask := (query, name, price, first, more)) in answered:
            assert not asker.answer(SMOOTH, request, OVER, "").charged
        elif all(model[period] + each <= BUDGET for period in periods):
            assert asker.answer(SMOOTH, request, OVER, "").charged
            answered.add(ask)
            for period in periods:
                model[period] += each
        else:
            with pytest.raises(InsufficientBudget):
                asker.answer(SMOOTH, request, OVER, "")
    standing = period_accounts(SMOOTH, load_releases(store), range(PERIODS))
    store.close()

    assert [account.spent for account in standing] == [model[period] for period in range(PERIODS)]


@pytest.mark.parametrize(("per_day", "answers"), [(1, None), (1, 3), (4, 5), (4, None)])
def test_what_a_person_s_periods_pay_covers_all_their_units(
    per_day: int, answers: int | None
) -> None:
    """Group privacy: k units in one release lose k^2 rho."""
    each = collection(Boolean(), unit=Unit.EVENT, per_day=per_day, answers=answers, delta=DELTA)
    question = price_query({"query": "count", "rho": "0.000001"}, each)
    units = person_contributions(each, question.periods)
    paid = question.charges[0] * min(each.answering, len(question.periods))

    assert question.person_rho == Fraction(units**2, 10**6)
    assert Fraction(paid, RHO_GRAIN) >= question.person_rho


def test_a_series_without_delta_is_accounted_in_epsilon() -> None:
    pure = Series(collection(Boolean()))

    assert period_accounts(pure, [], [0])[0].budget == 2
    assert price_query({"query": "count", "epsilon": 1}, pure.collection).rho is None
