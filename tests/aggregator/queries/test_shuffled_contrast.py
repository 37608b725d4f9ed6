"""A comparison of a shuffled collection counts who came, and none of the covers."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from veilcount_aggregator import queries
from veilcount_aggregator.queries.contrast_view import ContrastView
from veilcount_aggregator.records.api_keys import Role
from veilcount_analysis.privacy.shuffled import honest_epsilon
from veilcount_client.testing import SeededRandomSource

from ..intake.shuffled_batches.batch_fixtures import AFTER_GRACE, FILE, TestShuffler
from ..web.api.deployment_fixtures import deployment
from ..web.dashboard.page_fixtures import logged_in
from .simulated_reports import snapshot

REPORTS = 120


def test_the_crowd_that_came_is_counted_without_covers(tmp_path: Path) -> None:
    randomness = SeededRandomSource(36)
    with deployment(tmp_path, FILE, now=AFTER_GRACE) as deployed:
        shuffler = TestShuffler(deployed)
        collection = shuffler.series("theme").collection
        messages = [collection.randomize("dark", randomness) for _ in range(REPORTS)]
        messages += [collection.randomizer.cover(randomness) for _ in range(142)]
        sealed = [shuffler.seal(message, "theme") for message in messages]
        (part,) = shuffler.batch(sealed, "theme")
        assert shuffler.send(part).status == 200
        analyst = deployed.key(Role.ANALYST)
        answer = deployed.ask("GET", "/v1/collections/theme/contrast", key=analyst)
        page = logged_in(deployed).get("/collections/theme/contrast")
        (shown,) = queries.contrast(snapshot(deployed), "theme", queries.ContrastQuery()).series
    (series,) = answer.json["series"]
    lines = {line["row"]: line for line in series["contrast"]["lines"]}
    rules = collection.batch
    assert rules is not None
    assert rules.delta is not None

    assert series["contrast"]["n"] == REPORTS
    honest = Fraction(lines["shuffled, run, honest reports"]["epsilon"])
    assert honest == honest_epsilon(collection.mechanism, REPORTS, 142, rules.delta)
    assert honest < Fraction(lines["shuffled, run, covers alone"]["epsilon"]) <= 1
    assert honest > honest_epsilon(collection.mechanism, REPORTS + 142, 142, rules.delta), (
        "planted: covers are counted among the reports"
    )
    ways = [row[0] for row in ContrastView.from_series(shown).ways.rows]
    assert ways[-2:] == ["Shuffled, run: covers alone", "Shuffled, run: if reports are honest"]
    for row in ways[-2:]:
        assert row in page.text
