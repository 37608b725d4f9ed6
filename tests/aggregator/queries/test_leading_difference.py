"""What a finding leads with: segments that differ, months that differ, else all together.

Reports are seeded; what leads by chance is bounded by the level for all comparisons together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from veilcount_aggregator.queries import EstimateQuery
from veilcount_aggregator.queries.headline import leading_difference

from ..web.api.deployment_fixtures import Deployment, deployment
from .simulated_reports import compare, counted, estimate, only, send, send_numbers, snapshot

DAYS = 'unit = "month"\nanswers = 1\nfrom = 2026-07-01\nuntil = 2027-07-01\nepsilon = 4\n'
ARMS = 'segments = {home = ["map", "list"]}\n'
THEMES = 'values = ["light", "dark", "system"]\n'
FILE = 'app = "acme"\n' + "".join(
    f'[{name}]\nquestion = "Which?"\n{domain}{DAYS}'
    for name, domain in {
        "theme": THEMES + ARMS,
        "walked": "boolean = true\n",
        "minutes": 'range = [0, 100]\nmeasure = "mean"\nmeasured_in = "minutes"\n',
    }.items()
)
AFTER = datetime(2026, 12, 15, tzinfo=UTC)  # five months are over


@pytest.fixture
def deployed(tmp_path: Path) -> Iterator[Deployment]:
    with deployment(tmp_path, FILE, now=AFTER) as made:
        yield made


def send_month(deployed: Deployment, name: str, period: int, *held: Sequence[int]) -> None:
    """Send what devices hold in a month, segment by segment, within that month."""
    deployed.clocks.now = datetime(2026, 7 + period, 28, tzinfo=UTC)
    for segment, inputs in enumerate(held):
        counted(send(deployed, name, inputs, period=period, segment=segment, seed=9 * period))
    deployed.clocks.now = AFTER


def lead(deployed: Deployment, name: str, **params: str) -> str:
    """Return the text that leads; empty: nothing is seen to differ."""
    _, time_range = only(estimate(deployed, name, **params))
    query = EstimateQuery.parse({key: [word] for key, word in params.items()})
    series = deployed.series(name)
    found = leading_difference(snapshot(deployed), series, query, time_range.figures)
    return found.text if found else ""


def test_the_leader_of_each_segment_leads_where_they_are_others(deployed: Deployment) -> None:
    send_month(deployed, "theme", 0, [4000, 1000, 500], [1000, 4000, 500])

    assert lead(deployed, "theme") == "light leads in home map, dark in home list"
    assert lead(deployed, "theme", segment="home:map") == "", "nothing is left to compare"


def test_the_largest_difference_leads_where_one_value_leads_in_both(deployed: Deployment) -> None:
    send_month(deployed, "theme", 0, [4000, 1000, 500], [3000, 1800, 700])

    assert re.fullmatch(
        r"light is \d+ to \d+ of 100 higher in home map than in home list\.",
        lead(deployed, "theme"),
    )


def test_a_share_that_rose_is_stated_at_both_ends(deployed: Deployment) -> None:
    """August lies between; December is open, and does not count."""
    for period, yes in ((0, 900), (1, 2000), (4, 2500), (5, 100)):
        send_month(deployed, "walked", period, [4000 - yes, yes])
    found = re.fullmatch(
        r"(\d+) to (\d+) of 100 answers are yes in Nov 2026, up from (\d+) to (\d+) of 100"
        " in Jul 2026",
        lead(deployed, "walked"),
    )

    assert found is not None
    assert int(found[1]) < 62.5 < int(found[2])
    assert int(found[3]) < 22.5 < int(found[4])
    assert lead(deployed, "walked", **{"from": "2026-11-01"}) == "", "one month has no second side"


def test_a_great_change_of_few_people_is_a_whole_sentence(deployed: Deployment) -> None:
    """Both ends are wider than a fifth: alone, each would say that it is of too few answers."""
    for period, yes in ((0, 6), (4, 18)):
        send_month(deployed, "walked", period, [24 - yes, yes])
    found = re.fullmatch(
        r"(\d+) to (\d+) of 100 answers are yes in Nov 2026, up from \d+ to \d+ of 100 in Jul 2026",
        lead(deployed, "walked"),
    )

    assert found is not None
    assert int(found[2]) - int(found[1]) > 20


def test_a_mean_that_fell_is_stated_at_both_ends(deployed: Deployment) -> None:
    for period, share in ((0, 0.8), (2, 0.3)):
        deployed.clocks.now = datetime(2026, 7 + period, 28, tzinfo=UTC)
        counted(send_numbers(deployed, "minutes", np.full(3000, share), period=period, seed=period))
    deployed.clocks.now = AFTER

    assert re.fullmatch(
        r"Mean (29|30|31)[.\d]* minutes, \S+ to \S+, in Sep 2026,"
        r" down from (79|80|81)[.\d]* minutes, \S+ to \S+,"
        " in Jul 2026",
        lead(deployed, "minutes"),
    )


def test_the_level_is_that_of_all_comparisons_together(deployed: Deployment) -> None:
    """Of months and segments, one of which differs just so, none leads; alone, it would."""
    send_month(deployed, "theme", 0, [2000, 1500, 500], [1850, 1650, 500])
    rows = compare(deployed, "theme", a="home:map", b="home:list").rows
    level = str(1 - 1.5 * min(row.holm for row in rows))

    assert 0.5 < float(level) < 0.999
    assert lead(deployed, "theme", level=level) != ""
    send_month(deployed, "theme", 1, [1900, 1600, 500], [1900, 1600, 500])
    within = {"from": "2026-07-01", "to": "2026-07-31"}
    assert lead(deployed, "theme", level=level, **within) != ""
    rows = compare(deployed, "theme", a="home:map", b="home:list").rows
    assert lead(deployed, "theme", level=str(1 - 1.5 * min(row.holm for row in rows))) == ""
