"""Results of estimates: periods, targets, levels, values, and uncounted reports."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from veilcount_aggregator.store import Cell
from veilcount_analysis.errors import QueryError
from veilcount_analysis.estimation import LookCount, ShareEstimates
from veilcount_analysis.mechanisms import estimate as estimated
from veilcount_shared.report import Batch, Losses
from veilcount_shared.verdict import Verdict

from ..web.api.deployment_fixtures import Deployment
from .simulated_reports import (
    FILE,
    LISTS,
    NOVEMBER,
    WORDS,
    counted,
    estimate,
    figures_of,
    only,
    send,
)

SURE = "0.9999"  # the level at which seeded populations must be in their intervals


def holds(row: Any, share: float) -> bool:
    return bool(row.low <= share <= row.high)


# -- figures ---------------------------------------------------------------------------------------


def test_the_answer_is_the_estimate_of_the_counters(stocked: Deployment) -> None:
    """Nothing is added, lost or moved on the way; `answers` is the share of n."""
    store, series = stocked.aggregator.store, stocked.series("theme")
    counters = store.counters(series, [Cell(1, 0)])
    expected = estimated(series.collection, counters, 0.9, contributions=1)
    answer = estimate(stocked, "theme", segment=["arm:A", "level:1"], level="0.9", **NOVEMBER)
    _, time_range = only(answer)

    assert isinstance(expected, ShareEstimates)
    assert time_range.n == 4000
    assert [(row.figure, row.low, row.high, row.answers) for row in figures_of(time_range)] == [
        (*row, 4000 * row[0])
        for row in zip(expected.frequency, expected.low, expected.high, strict=True)
    ]


def test_the_truth_lies_in_its_intervals_and_another_does_not(stocked: Deployment) -> None:
    """Alpha 1e-4 a figure; the other arm's shares are rejected."""
    one, other = (
        figures_of(only(estimate(stocked, "theme", segment=arm, level=SURE, **NOVEMBER))[1])
        for arm in ("arm:A", "arm:B")
    )

    assert all(map(holds, one, (0.25, 0.5, 0.25)))
    assert all(map(holds, other, (0.5, 0.25, 0.25)))
    assert not holds(one[0], 0.5)
    assert not holds(other[1], 0.5)


def test_fakes_move_the_band_and_not_the_estimate(stocked: Deployment) -> None:
    few, many = (
        figures_of(only(estimate(stocked, "once", fakes=fakes))[1])[1] for fakes in ("0.01", "0.1")
    )

    assert few.figure == many.figure
    assert many.fake_low < few.fake_low < (few.figure or 0) < few.fake_high < many.fake_high
    assert estimate(stocked, "once", fakes="0.1").fakes == 0.1


def test_every_result_states_its_guarantee_and_terms(stocked: Deployment) -> None:
    """Epsilon three times, the unit, what n counts, the notice, the tests for fakes."""
    answer = estimate(stocked, "theme", view="consistent")
    series, time_range = only(answer)

    assert (answer.collection, answer.view.value) == ("theme", "consistent")
    assert (answer.level, answer.by.value) == (0.95, "all")
    assert (series.epsilon.event, series.epsilon.day, series.epsilon.user) == ("2", "2", "24")
    assert (series.unit, series.counts, series.facts["size"]) == ("month", "reports", 3)
    assert series.fingerprint == stocked.series("theme").fingerprint
    assert "epsilon 2 for one answer" in " ".join(series.promise)
    assert not series.poisoning_test_failed
    assert "No test tells patient fakes" in series.poisoning_test
    assert sum(row.figure or 0 for row in figures_of(time_range)) == pytest.approx(1)


def test_intervals_for_every_look_are_wider_and_labelled(stocked: Deployment) -> None:
    """Shares, and the mean of a number alike."""
    one, every = (estimate(stocked, "theme", looks=looks) for looks in ("one", "every"))
    planned, anytime = (figures_of(only(answer)[1])[0] for answer in (one, every))
    means = [
        figures_of(only(estimate(stocked, "minutes", looks=looks))[1], "mean")[0]
        for looks in ("one", "every")
    ]

    assert (one.looks, one.validity) == (LookCount.ONE, "valid at one planned look")
    assert (every.looks, every.validity) == (LookCount.EVERY, "valid at every look")
    assert anytime.low < planned.low < planned.high < anytime.high
    assert means[1].low < means[0].low < means[0].high < means[1].high


# -- which values ----------------------------------------------------------------------------------


def test_large_domains_come_in_pages(stocked: Deployment) -> None:
    """A hundred values by default; each page says of how many."""
    (first, _), (last, rows) = (only(estimate(stocked, "word", page=page)) for page in "17")

    for series, page in ((first, 1), (last, 7)):
        assert series.facts["size"] == WORDS
        assert (series.facts["page"], series.facts["pages"]) == (page, 7)
    assert [row.of for row in figures_of(rows)] == [f"w{place}" for place in range(600, 700)]


def test_requested_values_have_the_figures_of_the_whole_in_the_requested_order(
    stocked: Deployment,
) -> None:
    """However few are decoded, and in both views; commas part several."""
    for view in ("raw", "consistent"):
        _, whole = only(estimate(stocked, "word", size="700", view=view))
        _, few = only(estimate(stocked, "word", values=["w3,w1", "w699"], view=view))

        assert figures_of(few) == [figures_of(whole)[place] for place in (3, 1, 699)]


def test_the_largest_share_of_one_page_is_not_called_the_largest(stocked: Deployment) -> None:
    _, page = only(estimate(stocked, "word", size="350", page="2"))
    _, whole = only(estimate(stocked, "word", size="700"))

    assert (page.leader, whole.leader) == (None, "w0")


def test_a_top_list_is_the_largest_shares(stocked: Deployment) -> None:
    """The list is one for all time ranges, so that each value can be followed through them."""
    answer, months = (estimate(stocked, "word", top="6", by=by) for by in ("all", "month"))
    series, time_range = only(answer)
    frequencies = [row.figure or 0 for row in figures_of(time_range)]
    _, consistent = only(estimate(stocked, "word", top="6", view="consistent"))
    first = ["w0", "w1", "w2", "w3"]

    _, whole = only(estimate(stocked, "word", size="700"))

    assert figures_of(time_range)[:4] == figures_of(whole)[:4]  # no wider for having been picked
    assert time_range.leader == "w0"
    assert frequencies == sorted(frequencies, reverse=True)
    assert series.facts["stand_out"] == 4
    assert [row.of for row in figures_of(time_range)[:4]] == first
    assert [row.of for row in figures_of(consistent)] == first
    assert [[row.of for row in figures_of(each)] for each in months.series[0].ranges] == [
        [row.of for row in figures_of(time_range)]
    ] * 2


def test_groups_are_sums_with_intervals_of_their_own(stocked: Deployment) -> None:
    groups = ["dim:dark,system", "light:light"]
    _, time_range = only(estimate(stocked, "theme", to="2026-10-31", group=groups, level=SURE))
    _, single = only(estimate(stocked, "theme", to="2026-10-31"))
    dim, light = figures_of(time_range)

    assert (dim.of, light.of) == ("dim", "light")
    assert dim.figure == pytest.approx(sum(row.figure or 0 for row in figures_of(single)[1:]))
    assert holds(dim, 0.75)
    assert holds(light, 0.25)
    assert not holds(dim, 0.25)


def test_a_crossed_value_is_an_object_and_its_margins_are_groups(stocked: Deployment) -> None:
    _, cells = only(estimate(stocked, "plan", level=SURE))
    _, plans = only(estimate(stocked, "plan", group="plan", level=SURE))
    _, themes = only(estimate(stocked, "plan", group="answer", level=SURE))
    paid = '{"plan": "paid", "answer": "light"}'
    _, one = only(estimate(stocked, "plan", values=paid, level=SURE))

    assert [row.of for row in figures_of(cells)] == [
        {"answer": theme, "plan": plan} for theme in ("light", "dark") for plan in ("free", "paid")
    ]
    assert all(map(holds, figures_of(cells), (0.1, 0.2, 0.3, 0.4)))
    assert [row.of for row in figures_of(plans)] == ["free", "paid"]
    assert all(map(holds, figures_of(plans), (0.4, 0.6)))
    assert all(map(holds, figures_of(themes), (0.3, 0.7)))
    assert figures_of(one) == [figures_of(cells)[1]]


def test_hidden_presence_has_shares_of_all_and_of_those_who_answered(stocked: Deployment) -> None:
    """Half of eight thousand devices had an answer; n counts all of them."""
    among = {"among": "answered", "level": SURE}
    series, everyone = only(estimate(stocked, "quiet", level=SURE))
    _, answered = only(estimate(stocked, "quiet", **among))
    _, grouped = only(estimate(stocked, "quiet", group="any:menu,search", **among))

    assert series.counts.startswith("reports, those of devices without an answer")
    assert everyone.n == answered.n == 8000
    assert everyone.estimand.startswith("of all devices")
    assert answered.estimand == grouped.estimand
    assert answered.estimand.startswith("of those who answered")
    assert holds(figures_of(everyone, "absent")[0], 0.5)
    assert all(map(holds, figures_of(everyone), (1 / 8, 3 / 8)))
    assert all(map(holds, figures_of(answered), (1 / 4, 3 / 4)))
    assert not holds(figures_of(answered)[1], 3 / 8)
    counts = [[row.answers for row in figures_of(each)] for each in (answered, everyone)]
    assert counts[0] == pytest.approx(counts[1])
    assert figures_of(grouped)[0].figure == pytest.approx(1)


# -- numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["minutes", "spread"])
def test_a_number_has_its_mean_in_its_own_units(stocked: Deployment, name: str) -> None:
    """Beta(2, 5) times a hundred: 28.57; a mean of 40 is rejected."""
    _, time_range = only(estimate(stocked, name, level=SURE))
    (mean,) = figures_of(time_range, "mean")

    assert mean.low < 28.57 < mean.high < 40
    assert mean.fake_low < mean.figure < mean.fake_high
    assert figures_of(time_range) == []


def test_a_spread_has_histogram_curve_and_quantiles(stocked: Deployment) -> None:
    _, spread = only(estimate(stocked, "spread"))
    buckets, curve = figures_of(spread, "bucket"), figures_of(spread, "curve")
    (median,) = (row for row in figures_of(spread, "quantile") if row.at == 0.5)

    assert spread.bands.startswith("noise only")
    assert len(buckets) == 256
    assert sum(row.figure for row in buckets) == pytest.approx(1)
    assert (buckets[0].of["from"], buckets[-1].of["below"]) == (0, 100)
    assert (curve[0].figure, curve[-1].figure) == (0, 1)
    assert median.figure == pytest.approx(26.4, abs=3)


def test_ranges_have_shares_with_intervals(stocked: Deployment) -> None:
    """Of any bounds; an end within a bucket is honest about it."""
    values = ["0..25", "25..100"]
    _, found = only(estimate(stocked, "ranges", values=values, segment="arm:A", level=SURE))
    true = float((np.random.default_rng(11).beta(2, 5, 8000) < 0.25).mean())
    low, high = figures_of(found)

    assert low.of == {"from": 0, "below": 25}
    assert holds(low, true)
    assert holds(high, 1 - true)
    assert not holds(low, 1 - true)
    assert low.fake_low < (low.figure or 0) < low.fake_high
    assert found.bands.startswith("every edge at once")


# -- series, losses --------------------------------------------------------------------------------


def test_series_come_apart_the_newest_first(empty: Deployment) -> None:
    """They are never summed; one without answers is left out unless it is named."""
    old = empty.series("once")
    counted(send(empty, "once", [100, 300]))
    empty.push(FILE.replace("values = [1, 2]", "values = [1, 2, 3]"), **LISTS)
    new = empty.series("once")
    before = estimate(empty, "once")
    counted(send(empty, "once", [100, 300, 50]))
    after = estimate(empty, "once")
    third = estimate(empty, "once", values="3")
    named = estimate(empty, "once", series=old.fingerprint[:8])

    assert [each.fingerprint for each in before.series] == [old.fingerprint]
    assert [each.fingerprint for each in after.series] == [new.fingerprint, old.fingerprint]
    assert [each.ranges[0].n for each in after.series] == [450, 400]
    assert [series.facts["size"] for series in after.series] == [3, 2]
    assert [each.fingerprint for each in third.series] == [new.fingerprint]
    assert [each.fingerprint for each in named.series] == [old.fingerprint]


def test_a_series_of_true_values_is_left_out_and_refused_by_name(empty: Deployment) -> None:
    central = 'model = "central"\nadjacency = "substitute"\nbudget = 1'
    counted(send(empty, "once", [100, 300]))
    text = FILE.replace("values = [1, 2]\nepsilon = 1", f"values = [1, 2]\n{central}")
    empty.push(text, **LISTS)
    answer = estimate(empty, "once")
    with pytest.raises(QueryError, match="releases"):
        estimate(empty, "once", series=empty.series("once").fingerprint)

    assert len(answer.series) == 1


def test_uncounted_reports_come_with_n(empty: Deployment) -> None:
    report = empty.report("theme")
    assert empty.verdicts(report, report) == [Verdict.COUNTED, Verdict.DUPLICATE]
    assert empty.verdicts(empty.report("theme", slot=7)) == [Verdict.OVER_BUDGET]
    assert empty.verdicts(empty.report("theme", period=0, slot=0)) == [Verdict.STALE]
    fingerprint = empty.series("theme").fingerprint
    for _ in range(3):
        empty.send(Batch(losses=Losses(fingerprint, aged=2, evicted=4)))
    (series,) = estimate(empty, "theme", by="month").series

    assert series.unplaced == {"over_budget": 1}
    assert [each.verdicts for each in series.ranges] == [{"stale": 1}, {}, {"duplicate": 1}]
    aged, evicted = series.losses
    assert (aged.reason, aged.least, aged.most) == ("aged", 30, 297)
    assert (evicted.reason, evicted.least, evicted.most) == ("evicted", 3000, None)
    assert aged.text == "10 to 99 reports of 3 devices each expired before they were sent"
    assert evicted.text.startswith("1,000 or more reports of 3 devices each")
