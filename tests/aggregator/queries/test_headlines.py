"""One finding on all faces: JSON, terminal and overview; a number with its unit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from veilcount_aggregator.operate.cli.main import run
from veilcount_aggregator.queries.comparison_view import ComparisonView
from veilcount_aggregator.queries.headline import latest_headline

from ...client.device_fixtures import definitions_text
from ..web.api.deployment_fixtures import Deployment, deployment
from ..web.dashboard.page_fixtures import logged_in
from .simulated_reports import compare, counted, estimate, only, send_numbers, snapshot

AFTER = datetime(2026, 12, 15, tzinfo=UTC)
FILE = definitions_text(
    "acme",
    {"unit": "month", "from": "2026-11-01", "until": "2026-12-01", "late": 20, "epsilon": 8},
    spent={
        "question": "How long?",
        "range": [0, 256],
        "measure": "ranges",
        "measured_in": "minutes",
        "segments": {"arm": ["A", "B"]},
    },
)
GROUPS = r"Mean 1\d\d minutes, .*; few are near it: two groups, around 3\d minutes and .* minutes"
NOW = "veilcount_aggregator.operate.cli.options.now"


@pytest.fixture
def deployed(tmp_path: Path) -> Iterator[Deployment]:
    with deployment(tmp_path, FILE, now=AFTER) as made:
        yield made


def send_groups(deployed: Deployment, *upper: float) -> None:
    """Send two groups of numbers in each arm; of an arm so many are in the upper group."""
    for segment, share in enumerate(upper):
        numbers = np.random.default_rng(segment).normal(0.12, 0.02, 8000)
        numbers[: int(8000 * share)] += 0.68
        counted(send_numbers(deployed, "spent", numbers, segment=segment))


def test_two_groups_are_named_on_all_faces(
    deployed: Deployment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The overview leads with the arms only if they differ."""
    send_groups(deployed, 0.5, 0.5)
    monkeypatch.setattr(NOW, lambda: AFTER)
    _, time_range = only(estimate(deployed, "spent"))
    _, overview = latest_headline(snapshot(deployed), deployed.series("spent"), 16_000)
    run(["estimate", "spent", "--store", deployed.aggregator.settings.store])
    printed = capsys.readouterr().out

    assert re.fullmatch(GROUPS, time_range.headline)
    assert re.fullmatch(GROUPS, overview)
    assert re.search(GROUPS + r"\.\n", printed)


def test_differences_of_a_number_have_its_unit(deployed: Deployment) -> None:
    send_groups(deployed, 0.5, 0.4)
    result = compare(deployed, "spent", a="arm:A", b="arm:B")
    view = ComparisonView.from_result(result)
    page = logged_in(deployed).get("/collections/spent/compare")

    assert result.measured_in == "minutes"
    assert re.fullmatch(r"The mean is .* minutes higher in arm A than in arm B\.", view.headline)
    assert "minutes higher" in result.rows[0].sentence
    assert view.table is not None
    assert "A minus B, minutes" in view.table.columns
    assert page.lacks("A minus B, in minutes", "Differences are in minutes") == []


def test_few_reports_have_no_finding(deployed: Deployment) -> None:
    counted(send_numbers(deployed, "spent", np.full(2, 0.5)))

    assert only(estimate(deployed, "spent"))[1].headline == ""
