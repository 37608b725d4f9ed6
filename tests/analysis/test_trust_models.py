"""Three models of trust on the same question: the errors are exact, the slopes as they must be."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from math import isclose, log, sqrt

import numpy as np
import pytest

from veilcount_analysis.kinds.registry import NUMBER_KINDS, kind_of
from veilcount_analysis.mechanisms import handler_of, share_handler_of
from veilcount_analysis.planning.solvers import fewest_devices, least_epsilon
from veilcount_analysis.privacy.amplification import amplified, keeps_epsilon
from veilcount_analysis.privacy.shuffled import shuffled_error
from veilcount_analysis.privacy.trust_models import (
    Quantity,
    TrustComparison,
    TrustModelRow,
    compare_trust_models,
    scaling,
)
from veilcount_analysis.releases.zcdp import largest_rho
from veilcount_shared import Collection, parse_collections, select_mechanism
from veilcount_shared.collection import Measure
from veilcount_shared.domain import Number
from veilcount_shared.mechanisms import (
    DistributionMechanism,
    MeanMechanism,
    ProjectiveGeometry,
    RangeTree,
    SubsetSelection,
)

from ..aggregator.aggregator_fixtures import make_collection
from ..aggregator.exact_rows import rows_of
from ..client.device_fixtures import definitions_text

ONE = Fraction(1)
DELTA = Fraction(1, 10**6)


def contrasted(
    collection: Collection, n: int, *, frequencies: Sequence[float] | None = None
) -> TrustComparison:
    quantity = kind_of(collection).quantity
    return compare_trust_models(collection, quantity, n, frequencies=frequencies)


# -- the noise of a design -------------------------------------------------------------------------


@pytest.mark.parametrize("shares", [(1, 0, 0, 0), (0.7, 0.2, 0.1, 0)])
@pytest.mark.parametrize(
    "mechanism",
    [
        SubsetSelection.for_epsilon(ONE, 4, 1),
        SubsetSelection.for_epsilon(ONE, 4, 2),
        ProjectiveGeometry.for_epsilon(ONE, 4, 2, 3),
    ],
    ids=str,
)
def test_the_average_noise_does_not_depend_on_the_shares(
    mechanism: SubsetSelection | ProjectiveGeometry, shares: tuple[float, ...]
) -> None:
    """From the exact distribution of messages: the average over values is the variance stated."""
    rows, total = rows_of(mechanism), 0.0
    for value in range(4):
        owned = [p == max(rows[value]) for p in rows[value]]
        for held, share in enumerate(shares):
            chance = sum(p for p, each in zip(rows[held], owned, strict=True) if each)
            total += share * float(chance * (1 - chance) / (mechanism.P - mechanism.Q) ** 2)

    assert isclose(total / 4, handler_of(mechanism).noise_variance(), rel_tol=1e-12)


@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
def test_the_square_wave_s_mean_has_its_exact_variance(epsilon: str) -> None:
    mechanism = DistributionMechanism.for_epsilon(Fraction(epsilon))
    step = len(mechanism.transition_matrix) // 17
    moments = [
        [sum(p * level**power for level, p in enumerate(row)) for power in (1, 2)]
        for row in mechanism.transition_matrix[::step]
    ]
    slope = (moments[-1][0] - moments[0][0]) / (17 * step)
    worst = max(second - first**2 for first, second in moments)
    found = float(worst / slope**2) / mechanism.inputs**2
    stated = handler_of(mechanism).noise_variance()

    assert found <= stated * (1 + 1e-9)
    assert isclose(found, stated, rel_tol=0.02)


def test_a_mean_is_as_exact_as_its_design_says() -> None:
    """From [-1, 1] to [0, 1], a quarter: 4.0042 at epsilon 1."""
    stated = handler_of(MeanMechanism.for_epsilon(ONE)).noise_variance()

    assert isclose(stated, 4.0042 / 4, abs_tol=5e-5)


def test_a_quarter_of_a_tree_s_range_is_estimated_by_one_level_of_four() -> None:
    tree = RangeTree.for_epsilon(ONE)

    assert isclose(
        handler_of(tree).noise_variance(),
        4 * handler_of(tree.levels[0]).noise_variance() + 3 * 3 / 16,
    )


def test_a_value_nobody_has_is_the_floor() -> None:
    handler = share_handler_of(select_mechanism(10**5, 1).mechanism)

    rare = handler.response.floor / handler.response.gap**2
    assert rare < handler.noise_variance() < 1.001 * rare


def test_a_curator_s_sum_over_a_number_s_grid_has_continuous_laplace_noise() -> None:
    """Of [0, 240] at epsilon 1, n = 1000: sqrt(2) 240 / 1000."""
    quantity = NUMBER_KINDS[Measure.MEAN].quantity_of(Number(Fraction(0), Fraction(240)))

    assert isclose(quantity.central(ONE, 1000, 0.95).rmse, sqrt(2) * 240 / 1000, rel_tol=1e-6)


# -- the rows --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shown() -> TrustComparison:
    """A yes or no at epsilon 1, put to 10,000."""
    return contrasted(make_collection(), 10**4)


def test_all_rows_share_adjacency_unit_and_one_contribution(shown: TrustComparison) -> None:
    errors = [line.cohort.rmse for line in shown.lines]

    assert (shown.adjacency, shown.unit, shown.contributions) == ("substitute", "month", 1)
    assert [line.row for line in shown.lines] == list(TrustModelRow)[:5]
    assert errors[0] == errors[1] > errors[2] > errors[3]  # trust buys accuracy
    assert errors[3] < errors[4] < errors[0]  # of one release


def test_a_shuffler_shrinks_epsilon_or_lets_devices_be_louder(shown: TrustComparison) -> None:
    """(epsilon, delta) of the batch; whoever sees one report alone still has epsilon 1."""
    _, same, louder, *_ = shown.lines
    bound = amplified(select_mechanism(2, 1).mechanism, 10**4, same.delta)

    assert same.device == 1
    assert same.epsilon == bound.epsilon < Fraction("0.05")
    assert "they stay 1-DP" in same.guarantee
    assert louder.epsilon == 1
    assert louder.device is not None
    assert louder.device > 4
    assert keeps_epsilon(select_mechanism(2, louder.device).mechanism, 10**4, ONE, louder.delta)


def test_the_population_s_error_is_the_second_line(shown: TrustComparison) -> None:
    """It adds sampling: at most 0.25 / n for a yes or no, the same in every row."""
    for line in shown.lines:
        added = line.population.rmse**2 - line.cohort.rmse**2
        wider = line.population.half_width**2 - line.cohort.half_width**2

        assert isclose(added, 0.25 / 10**4, rel_tol=1e-6)
        assert isclose(wider, 1.959964**2 * added, rel_tol=1e-5)


def test_observed_shares_are_named_and_have_less_sampling_error() -> None:
    predicted, observed = (
        contrasted(make_collection(), 10, frequencies=shares) for shares in (None, [0.9, 0.1])
    )

    assert (predicted.basis, observed.basis) == ("predicted", "observed")
    for before, after in zip(predicted.lines, observed.lines, strict=True):
        assert before.cohort == after.cohort
        assert before.population.rmse > after.population.rmse


def test_raw_estimates_are_observed_as_their_nearest_share() -> None:
    values = Quantity.of_values(3)

    assert values.sampling([-0.1, 1.2, 0.2]) == values.sampling([0, 1, 0.2]) > 0
    with pytest.raises(ValueError, match="2 shares of 3 values"):
        values.sampling([0.5, 0.5])


def test_a_number_s_observed_spread_counts() -> None:
    quantity = NUMBER_KINDS[Measure.MEAN].quantity_of(Number(Fraction(0), Fraction(10)))

    assert quantity.sampling(None) == 25
    assert quantity.sampling([0, 0, 0, 0, 1, 0, 0, 0, 0]) == 0
    assert quantity.sampling([0.5, 0.5]) == 6.25


@pytest.mark.parametrize(("k", "expected"), [(2, 1.15e4), (1024, 4.6e4)])
def test_local_noise_costs_what_is_known(k: int, expected: float) -> None:
    """Local to central mean square error at n = 1e5, epsilon 1."""
    quantity = Quantity.of_values(k)
    local, central = (each(ONE, 10**5, 0.95).rmse for each in (quantity.local, quantity.central))

    assert isclose((local / central) ** 2, expected, rel_tol=0.03)


def test_equal_error_takes_so_many_devices(shown: TrustComparison) -> None:
    quantity = kind_of(make_collection()).quantity
    local, _, shuffled, central, gaussian = shown.lines

    assert central.devices_as_local < shuffled.devices_as_local < 10**4
    assert 10**4 < shuffled.devices_as_central < local.devices_as_central
    assert 10**4 < gaussian.devices_as_central < local.devices_as_central
    assert local.devices_as_local == central.devices_as_central == 10**4
    assert quantity.local(ONE, local.devices_as_central, 0.95).rmse <= central.cohort.rmse
    assert quantity.local(ONE, local.devices_as_central - 1, 0.95).rmse > central.cohort.rmse
    assert quantity.central(ONE, central.devices_as_local, 0.95).rmse <= local.cohort.rmse
    assert quantity.central(ONE, central.devices_as_local - 1, 0.95).rmse > local.cohort.rmse


@pytest.mark.parametrize("values", [None, list(range(500))])
def test_gaussian_noise_is_smaller_for_many_releases(values: list[int] | None) -> None:
    """Its error grows with the root of the releases, that of Laplace noise in proportion."""
    quantity = kind_of(make_collection(boolean=None, values=values or [0, 1])).quantity
    laplace, gaussian = quantity.curator(ONE).deviation, quantity.gaussian_curator(ONE, DELTA)
    rho = gaussian.scale**-2

    assert rho == pytest.approx(float(largest_rho(ONE, DELTA)))
    assert 4 * laplace < sqrt(4) * gaussian.deviation
    assert 6 * laplace > sqrt(6) * gaussian.deviation


def test_ten_thousand_with_a_curator_are_forty_seven_million_without() -> None:
    """Large domains, epsilon 1."""
    large = make_collection(boolean=None, values=list(range(500)))
    line = contrasted(large, 10**4).lines[0]

    assert isclose(line.devices_as_central, 4.7e7, rel_tol=0.01)


def test_the_slopes_are_a_half_and_one() -> None:
    points = scaling(Quantity.of_values(4), ONE, [10**power for power in range(3, 7)])

    def slope(near: float, far: float) -> float:
        return log(far / near) / log(10)

    for near, far in pairwise(points):
        assert isclose(slope(near.local, far.local), -0.5, abs_tol=1e-9)
        assert isclose(slope(near.central, far.central), -1, abs_tol=1e-9)
        assert -1.1 < slope(near.shuffled, far.shuffled) < -0.5
        assert near.local > near.shuffled > near.central


@pytest.mark.parametrize(
    "measure",
    ["mean", *(pytest.param(each, marks=pytest.mark.full) for each in ("distribution", "ranges"))],
)
def test_numbers_are_contrasted_too(measure: str) -> None:
    answer = contrasted(
        make_collection(boolean=None, range=[0, 240], measure=f'"{measure}"', epsilon=2), 1000
    )
    errors = [line.cohort.rmse for line in answer.lines]

    assert answer.quantity == ("share of a quarter of the range" if measure == "ranges" else "mean")
    assert errors[0] > errors[2] > errors[3]


@pytest.mark.parametrize(("adjacency", "epsilon"), [("substitute", 1), ("add-remove", 2)])
def test_a_central_collection_is_contrasted_by_substitution(adjacency: str, epsilon: int) -> None:
    central, local = (
        contrasted(make_collection(**keys), 10).lines[0].cohort
        for keys in (
            {"epsilon": None, "model": '"central"', "budget": 1, "adjacency": f'"{adjacency}"'},
            {"epsilon": epsilon},
        )
    )

    assert central == local


def test_half_of_nobody_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one report"):
        contrasted(make_collection(), 0)


def test_searches_find_the_least_epsilon_and_the_fewest_devices() -> None:
    for least in (1, 2, 160):
        assert least_epsilon(lambda e: e >= Fraction(least, 10), 10) == Fraction(least, 10)  # noqa: B023 - asked at once
    for least in (1, 2, 3, 1000, 12_345):
        assert fewest_devices(lambda n: n >= least) == least  # noqa: B023 - likewise
    assert least_epsilon(lambda _: False) is None
    assert fewest_devices(lambda _: False) is None


# -- over time -------------------------------------------------------------------------------------


def test_running_totals_err_as_simulated_and_by_the_strategy_that_errs_least() -> None:
    """Of twelve months summed Laplace noise errs least, of a year of days Gaussian noise."""
    monthly = make_collection(unit='"month"', **{"from": "2026-01-01", "until": "2027-01-01"})
    daily = make_collection(unit='"day"', **{"from": "2026-01-01", "until": "2027-01-01"})
    few, many = (contrasted(each, 10_000).over_time for each in (monthly, daily))
    assert few is not None
    assert many is not None
    local, laplace, gaussian = few.lines
    drawn = np.random.default_rng(1).normal(0, local.share * 10_000, (4000, few.periods))

    assert (few.periods, many.periods) == (12, 365)
    assert sqrt((drawn.cumsum(axis=1) ** 2).mean()) == pytest.approx(local.total, rel=0.03)
    assert [line.strategy for line in few.lines] == ["summed", "summed", "square root"]
    assert [line.strategy for line in many.lines] == ["summed", "11-ary tree", "square root"]
    assert laplace.total == pytest.approx(laplace.share * 10_000 * sqrt(13 / 2))
    assert laplace.total < gaussian.total
    assert many.lines[2].total < many.lines[1].total < many.lines[0].total / 20


@pytest.mark.parametrize(
    "changes",
    [
        {"unit": '"user"'},
        {"boolean": None, "range": "[0, 1]", "measure": '"mean"', "unit": '"month"'},
        {"unit": '"day"', "until": "2030-01-01"},
    ],
)
def test_these_periods_and_numbers_have_no_running_total(changes: dict[str, str | None]) -> None:
    collection = make_collection(**{"from": "2026-01-01", "until": "2027-01-01"} | changes)

    assert contrasted(collection, 1000).over_time is None


# -- shuffled collections, as they are run ---------------------------------------------------------

SHUFFLED = definitions_text(
    theme={
        "question": "Which theme is active?",
        "values": ["light", "dark", "system"],
        "model": "shuffled",
        "epsilon": 4,
        "unit": "month",
        "batch": {"epsilon": 1, "delta": 1e-6, "covers": 142},
        "until": "2027-12-01",
    }
)


def test_a_shuffled_collection_has_its_run_batches_next_to_both_models() -> None:
    """At n = 1,000, in percent: .77 shuffled, 4.35 local at epsilon 1, .28 by Laplace."""
    (collection,) = parse_collections(SHUFFLED, lambda _: ()).values()
    compared = contrasted(collection, 1_000)
    alone, honest, local, central = (
        compared.line(row)
        for row in (
            TrustModelRow.RUN_COVERS,
            TrustModelRow.RUN_HONEST,
            TrustModelRow.LOCAL,
            TrustModelRow.CENTRAL,
        )
    )
    errors = [round(line.cohort.rmse, 4) for line in (alone, honest, local, central)]

    assert errors == [0.0077, 0.0077, 0.0435, 0.0028]
    assert [alone.device, local.device, local.epsilon, central.epsilon] == [4, 1, 1, 1]
    assert honest.epsilon < alone.epsilon <= 1
    assert alone.cohort.rmse == shuffled_error(collection.randomizer, 1_000, 142)
    assert "against shuffler and server together" in alone.guarantee
    assert honest.guarantee.startswith("never a promise")


def test_fewer_honest_reports_are_supposed_where_a_definition_says_so() -> None:
    text = SHUFFLED.replace("covers = 142", "covers = 142, honest = 300")
    all_honest, some = (
        contrasted(collection, 1_000).line(TrustModelRow.RUN_HONEST)
        for file in (SHUFFLED, text)
        for collection in parse_collections(file, lambda _: ()).values()
    )

    assert "if 300 of the 1,000 reports are honest" in some.guarantee
    assert all_honest.epsilon < some.epsilon < 1


def test_the_devices_of_a_run_batch_reach_the_error_and_one_less_does_not() -> None:
    (collection,) = parse_collections(SHUFFLED, lambda _: ()).values()
    mechanism, compared = collection.randomizer, contrasted(collection, 1_000)
    line, central = compared.line(TrustModelRow.RUN_COVERS), compared.line(TrustModelRow.CENTRAL)
    n, goal = line.devices_as_central, central.cohort.rmse

    assert shuffled_error(mechanism, n, 142) <= goal < shuffled_error(mechanism, n - 1, 142)
    assert shuffled_error(mechanism, n, 0) < 0.97 * goal, "planted: covers are left out"


def test_a_local_collection_has_no_run_batches() -> None:
    rows = {line.row for line in contrasted(make_collection(), 1_000).lines}

    assert not rows & {TrustModelRow.RUN_COVERS, TrustModelRow.RUN_HONEST}
