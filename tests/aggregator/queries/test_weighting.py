"""Reweighted shares, from counters in a store to JSON, files, the command and the page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pytest

from veilcount_aggregator.operate.cli.main import run
from veilcount_aggregator.queries import EstimateResult, decoded, encode
from veilcount_aggregator.queries.comparison_view import ComparisonView
from veilcount_aggregator.queries.export import stream_csv
from veilcount_analysis.kinds.results import Weighting
from veilcount_analysis.text import result_pages
from veilcount_analysis.text.result_columns import columns_of
from veilcount_reader.results import Estimate

from ..web.api.deployment_fixtures import Deployment, deployment
from ..web.dashboard.page_fixtures import logged_in
from .simulated_reports import compare, counted, estimate, figures_of, only, send

AGES, ARMS = ["18-39", "40-64", "65+"], ["A", "B"]
MARGINS = 'margins = {age = [30, 40, 30], source = "Census", as_of = 2026-01-01}'
FILE = f"""
app = "acme"
[dark]
question = "Is it dark?"
values = ["dark", "light", "other"]
epsilon = 2
unit = "month"
segments = {{age = {json.dumps(AGES)}, arm = {json.dumps(ARMS)}}}
from = 2026-11-01
until = 2027-02-01
{MARGINS}
"""
#: devices that consent, by age, and how many of 100 of them have each value: young ones differ
CONSENT, VALUES = (3_000, 1_500, 500), ((70, 20, 10), (40, 50, 10), (10, 80, 10))
TRUTH = 0.3 * 0.7 + 0.4 * 0.4 + 0.3 * 0.1
NOVEMBER = {"from_": "2026-11-01", "to": "2026-11-30"}


@pytest.fixture(scope="module")
def two_months(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """November with all ages, December with 20 old devices; half of all in each arm."""
    start = datetime(2026, 11, 20, 12, tzinfo=UTC)
    with deployment(tmp_path_factory.mktemp("raked"), FILE, now=start) as made:
        for period, old in enumerate((CONSENT[2], 20)):
            made.clocks.now = datetime(2026, 11 + period, 20, 12, tzinfo=UTC)
            for age, n in enumerate((*CONSENT[:2], old)):
                for arm in range(len(ARMS)):
                    held = [n * share // 200 for share in VALUES[age]]
                    places = {"period": period, "segment": 2 * age + arm, "seed": 7 * age + arm}
                    counted(send(made, "dark", held, **places))
        yield made


@pytest.fixture
def store(two_months: Deployment) -> Deployment:
    return two_months


def weighting(result: EstimateResult) -> Weighting:
    _, time_range = only(result)
    assert time_range.weighting is not None
    return time_range.weighting


def test_each_share_is_next_to_the_raw_one(store: Deployment) -> None:
    result = estimate(store, "dark", **NOVEMBER)
    series, time_range = only(result)
    raw, raked = (figures_of(time_range, kind) for kind in ("share", "raked"))

    assert [row.of for row in raked] == [row.of for row in raw] == ["dark", "light", "other"]
    assert raw[0].low > TRUTH + 0.05
    assert raked[0].low < TRUTH < raked[0].high
    assert raked[0].fake_low < raked[0].figure < raked[0].fake_high
    assert raked[0].fake_high - raked[0].fake_low > raw[0].fake_high - raw[0].fake_low
    assert sum(row.figure for row in raked) == pytest.approx(sum(row.figure for row in raw))
    assert series.facts["size"] == 3


def test_a_result_states_the_weights_their_source_and_what_they_cannot_see(
    store: Deployment,
) -> None:
    stated = weighting(estimate(store, "dark", **NOVEMBER))
    weights = np.array([0.3, 0.4, 0.3]) / np.array(CONSENT)

    assert (stated.method, stated.segments) == ("raked", ("age",))
    assert (stated.source, stated.as_of) == ("Census", date(2026, 1, 1))
    assert stated.design_effect == pytest.approx(5_000 * (weights @ np.array([0.3, 0.4, 0.3])))
    assert stated.largest_weight == pytest.approx(5_000 * 0.3 / 500)
    assert len(stated.notes) == 1
    assert "cannot see consent that depends on the answer itself" in stated.notes[0]


def test_months_together_count_the_persons_once(store: Deployment) -> None:
    """A person may answer in both: the interval is that of one answer a person at least."""
    both = estimate(store, "dark")
    _, time_range = only(both)
    (dark, *_) = figures_of(time_range, "raked")

    assert time_range.contributions == 2
    assert dark.high - dark.low > 1.2 * np.sqrt(0.25 * 1.5 / time_range.n)


def test_a_category_with_few_reports_is_named_and_nothing_is_reweighted(store: Deployment) -> None:
    december = estimate(store, "dark", from_="2026-12-01", to="2026-12-31")
    _, time_range = only(december)

    assert figures_of(time_range, "raked") == []
    assert len(figures_of(time_range)) == 3
    assert weighting(december).method == "none"
    assert weighting(december).notes == (
        "Not reweighted: age 65+ has 20 reports; 30 are needed: merge it with another category",
    )


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"segment": "age:65+"}, "the query selects age 65+ alone"),
        ({"view": "consistent"}, "in the raw view and at one planned look"),
        ({"looks": "every"}, "in the raw view and at one planned look"),
        ({"group": "any:dark,light"}, "only single values"),
    ],
)
def test_what_is_not_reweighted_says_so(
    store: Deployment, params: dict[str, str], reason: str
) -> None:
    result = estimate(store, "dark", **NOVEMBER, **params)

    assert figures_of(only(result)[1], "raked") == []
    assert reason in weighting(result).notes[0]


def test_another_segment_is_reweighted_by_itself(store: Deployment) -> None:
    _, time_range = only(estimate(store, "dark", **NOVEMBER, segment="arm:A"))
    (dark,) = [row for row in figures_of(time_range, "raked") if row.of == "dark"]

    assert time_range.n == 2_500
    assert dark.low < TRUTH < dark.high


def test_few_reports_with_much_weight_are_warned_of(store: Deployment) -> None:
    store.push(FILE.replace("[30, 40, 30]", "[5, 5, 90]"))
    stated = weighting(estimate(store, "dark", **NOVEMBER))
    store.push(f"{FILE}# the first margins again")

    assert "5,000 reports say as much as 616 that are like the population" in stated.notes[0]
    assert "one report counts as much as 9.0" in stated.notes[1]
    assert weighting(estimate(store, "dark", **NOVEMBER)).design_effect < 2  # type: ignore[operator] # it is raked


def test_json_csv_and_columns_have_the_rows_with_their_own_estimand(store: Deployment) -> None:
    result = estimate(store, "dark", **NOVEMBER)
    document = json.loads(encode(result))
    columns = columns_of(document)
    estimands = dict(zip(columns["kind"], columns["estimand"], strict=True))

    assert columns["kind"] == ["share"] * 3 + ["raked"] * 3
    assert estimands["raked"] == "of a population with these margins (Census, 2026-01-01)"
    assert estimands["share"] == only(result)[1].estimand
    assert b"raked" in b"".join(stream_csv(result))
    assert decoded(document, EstimateResult) == result


def test_pages_put_together_have_the_reweighted_shares_of_all(store: Deployment) -> None:
    """A store sends one page, a server three; both have the same rows in the same order."""

    def fetch(**page: int) -> dict[str, Any]:
        words = {name: str(number) for name, number in ({"page": 1, "size": 1} | page).items()}
        return json.loads(encode(estimate(store, "dark", **NOVEMBER, **words)))  # type: ignore[no-any-return] # a document

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(result_pages, "MOST_FIGURES", 1)
        paged = result_pages.all_values(fetch, {})
    whole, put_together = (
        document["series"][0]["ranges"][0]["figures"] for document in (fetch(size=9), paged)
    )

    assert [row["kind"] for row in whole] == ["share"] * 3 + ["raked"] * 3
    for row, same in zip(put_together, whole, strict=True):
        assert row == pytest.approx(same, abs=1e-12)


def test_the_reader_has_the_weights_and_a_row_for_each_share(store: Deployment) -> None:
    answer = Estimate(json.loads(encode(estimate(store, "dark", **NOVEMBER))))

    assert answer.weighting is not None
    assert answer.weighting["source"] == "Census"
    assert len(answer.to_pandas("raked")) == 3
    assert "dark, reweighted" in answer._repr_html_()
    assert "cannot see consent" in answer._repr_html_()


def test_the_command_prints_both_with_the_sentences(
    store: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    url = store.aggregator.settings.store
    code = run(["estimate", "dark", "--store", url, "--from", "2026-11-01", "--to", "2026-11-30"])
    printed = capsys.readouterr().out

    assert not code
    assert printed.count("\ndark ") == 2
    assert "Shares reweighted to the population" in printed
    assert "(Census, 2026-01-01): design effect 1.58, largest weight 3.0." in printed


def test_a_comparison_of_arms_has_the_differences_of_reweighted_shares(store: Deployment) -> None:
    """Both arms have the same shares, and so have both after reweighting: .4 and not .56."""
    result = compare(store, "dark", **NOVEMBER, a="arm:A", b="arm:B")
    assert result.reweighted is not None
    dark, *others = result.reweighted.rows

    assert result.rows[0].a.figure > TRUTH + 0.05
    assert dark.a == pytest.approx(TRUTH, abs=0.06)
    assert dark.difference == pytest.approx(dark.a - dark.b)
    assert dark.low < 0 < dark.high
    assert dark.high - dark.low == pytest.approx(2 * 1.96 * 0.0224, rel=0.05)
    assert len(others) == 2
    assert "cannot see consent" in result.reweighted.notes[0]
    assert "reweighted to the population" in str(list(ComparisonView.from_result(result).parts))


def test_a_comparison_of_ages_or_with_a_scarce_month_says_why_it_is_not_reweighted(
    store: Deployment,
) -> None:
    ages = compare(store, "dark", **NOVEMBER, a="age:18-39", b="age:40-64")
    months = compare(store, "dark", a="..2026-11-30", b="2026-12-01..")
    assert ages.reweighted is not None
    assert months.reweighted is not None

    assert (ages.reweighted.rows, months.reweighted.rows) == ([], [])
    assert "age:18-39: the query selects age 18-39 alone" in ages.reweighted.notes[0]
    assert "age 65+ has 20 reports" in months.reweighted.notes[0]
    assert months.rows


def test_the_page_of_a_comparison_has_them_too(store: Deployment) -> None:
    text = logged_in(store).get("/collections/dark/compare?a=arm:A&b=arm:B&to=2026-11-30").text

    assert "The same shares, reweighted to the population" in text
    assert "cannot see consent" in text


def test_the_page_shows_both_and_the_sentence(store: Deployment) -> None:
    text = logged_in(store).get("/collections/dark?from=2026-11-01&to=2026-11-30").text

    assert "Shares reweighted to the population" in text
    assert "Reweighted to the age of the population (Census, 2026-01-01): design effect" in text
    assert "cannot see consent that depends on the answer itself" in text


def test_a_definition_without_margins_has_no_weights(store: Deployment) -> None:
    store.push(FILE.replace(MARGINS, ""))
    _, time_range = only(estimate(store, "dark", **NOVEMBER))
    store.push(f"{FILE}# with margins again")

    assert time_range.weighting is None
    assert {row.kind for row in time_range.figures} == {"share"}
