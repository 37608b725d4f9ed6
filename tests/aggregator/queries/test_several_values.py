"""Several values, from reports of devices in a store to rows, a headline and a comparison."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from veilcount_analysis.errors import QueryError
from veilcount_analysis.kinds.comparison import LISTED_VALUES, Comparison
from veilcount_analysis.kinds.registry import kind_of
from veilcount_client.testing import SeededRandomSource

from ..web.api.deployment_fixtures import Deployment, deployment
from .conftest import AFTER
from .simulated_reports import compare, counted, estimate, figures_of, only, send_rows

LETTERS = list("abcdefgh")
SHARES = np.array([0.6, 0.3, 0.25, 0.2, 0.1, 0.05, 0.02, 0.01])
N = 4000
FILE = 'app = "acme"\n' + "".join(
    f'[{name}]\nquestion = "Which?"\nvalues = {LETTERS}\nchoose = "several"\nepsilon = 4\n{rest}'
    'unit = "month"\nanswers = 1\nfrom = 2026-11-01\nuntil = 2027-01-01\n'
    'segments = {arm = ["A", "B"]}\nmargins = {arm = [25, 75], source = "Census",'
    " as_of = 2026-01-01}\n"
    for name, rest in {"few": "most = 3\n", "many": ""}.items()
)


def ticks_of(arm: int, generator: np.random.Generator) -> Any:
    """The ticks of people; those of the second arm tick `a` less often. Nobody ticks over 3."""
    shares = SHARES.copy()
    shares[0] -= 0.3 * arm
    ticks = generator.random((N, len(SHARES))) < shares
    ticks[ticks.sum(axis=1) > 3] = False
    return ticks


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Reports of the code that devices run, of two arms."""
    with deployment(tmp_path_factory.mktemp("several"), FILE, now=AFTER) as made:
        for name in ("few", "many"):
            collection, generator = made.series(name).collection, np.random.default_rng(3)
            source = SeededRandomSource(4)
            for arm in (0, 1):
                labels = [np.array(LETTERS)[row].tolist() for row in ticks_of(arm, generator)]
                packed = [collection.pack(collection.randomize(value, source)) for value in labels]
                rows = np.array([[*message] for message in packed], np.uint8)
                counted(send_rows(made, name, rows, period=arm, segment=arm))
        yield made


@pytest.mark.parametrize("name", ["few", "many"])
def test_shares_of_people_have_intervals_and_do_not_add_up_to_one(
    deployed: Deployment, name: str
) -> None:
    """5 deviations of 8 shares: 5e-6."""
    series, time_range = only(estimate(deployed, name))
    rows = figures_of(time_range)
    generator = np.random.default_rng(3)
    truth = np.mean([ticks_of(arm, generator).mean(axis=0) for arm in (0, 1)], axis=0)

    assert time_range.n == 2 * N
    assert [row.of for row in rows] == LETTERS
    assert np.array([row.figure for row in rows]) == pytest.approx(truth, abs=0.05)
    assert all(row.low < row.figure < row.high for row in rows)
    assert all(row.simultaneous_low < row.low and row.fake_low < row.low for row in rows)
    assert sum(row.figure for row in rows) > 1.2
    assert time_range.leader == "a"
    assert ("drawn ones count" if name == "few" else "one of 8 values") in series.notes[0]


def test_the_headline_says_how_many_ticked(deployed: Deployment) -> None:
    series, time_range = only(estimate(deployed, "few"))
    kind = kind_of(deployed.series("few").collection)
    headline = kind.headline(time_range.figures, series.facts, leads=True)

    assert headline.text.endswith("of 100 ticked a")


@pytest.mark.parametrize("name", ["few", "many"])
def test_two_arms_are_compared_row_by_row_without_a_test_of_all(
    deployed: Deployment, name: str
) -> None:
    """`a` differs by .3 less who ticks too many; a value that few tick does not."""
    result = compare(deployed, name, a=["arm:A"], b=["arm:B"])
    rows = {row.value: row for row in result.rows}

    assert rows["a"].low > 0.1
    assert rows["h"].low < 0 < rows["h"].high
    assert getattr(result, "overall", None) is None


def test_margins_reweight_every_value(deployed: Deployment) -> None:
    """The second arm, which ticks `a` less often, is three quarters of the population."""
    _, time_range = only(estimate(deployed, "few"))
    raw, raked = figures_of(time_range), figures_of(time_range, "raked")

    assert [row.of for row in raked] == LETTERS
    assert raked[0].figure < raw[0].figure - 0.04


@pytest.mark.parametrize("option", ["view=consistent", "group=x:a,b", "candidates=q"])
def test_what_has_no_meaning_is_refused(deployed: Deployment, option: str) -> None:
    name, _, text = option.partition("=")
    with pytest.raises(QueryError, match=f"^{name} = "):
        estimate(deployed, "few", **{name: [text]})


def test_several_values_are_not_compared_with_one(deployed: Deployment) -> None:
    listed = Comparison(LISTED_VALUES, lambda *_: None, lambda *_: None)  # type: ignore[arg-type] # its subject alone
    few, many = (kind_of(deployed.series(name).collection).comparison for name in ("few", "many"))

    assert isinstance(few, Comparison)
    assert isinstance(many, Comparison)
    assert few.problem(many) == ""
    assert few.problem(listed) == "one side is of several values of a list, the other is not"
