"""What is published of a collection: final counters, of enough people, and figures of these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from veilcount_aggregator.queries import published_figures as published
from veilcount_aggregator.queries.published_figures import LEAST, open_counters, published_figures
from veilcount_analysis.counts import estimate_counters, join_open_counters, read_open_counters
from veilcount_analysis.errors import CountsError
from veilcount_serving.errors import SettingsError
from veilcount_shared.errors import VeilcountError
from veilcount_shared.schedule import period_end
from veilcount_shared.verdict import Verdict

from ..intake.shuffled_batches.batch_fixtures import FILE as SHUFFLED
from ..web.api.deployment_fixtures import Deployment, deployment
from .simulated_reports import FILE, LISTS, send, snapshot

OCTOBER, NOVEMBER = datetime(2026, 10, 20, 12, tzinfo=UTC), datetime(2026, 11, 5, 12, tzinfo=UTC)
FINAL = date(2026, 11, 12)  # October's last day, ten days late, and one of grace
DAY = timedelta(days=1)
OPEN = """
app = "acme"
[word]
question = "Which?"
values = "open"
epsilon = 1
unit = "month"
from = 2026-11-01
until = 2027-01-01
"""


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Deployment]:
    with deployment(tmp_path, now=OCTOBER) as made:
        made.push(FILE, **LISTS)
        yield made


def at(made: Deployment, day: date) -> None:
    made.clocks.now = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)


def files(made: Deployment, name: str = "theme") -> list[bytes]:
    counters = open_counters(snapshot(made), made.series(name))
    return [file.encode() for file in counters]


def versions_of_october(made: Deployment) -> set[bytes]:
    """Publish on each day of November, on each of which somebody reports for October, if taken."""
    send(made, "theme", [0, 500, 500])
    versions: set[bytes] = set()
    for day in range(1, 31):
        at(made, date(2026, 11, day))
        verdicts = send(made, "theme", [1, 0, 0], seed=day)
        assert (verdicts == [Verdict.COUNTED]) == (day <= 10)
        versions |= set(files(made))
    return versions


def test_what_was_published_once_never_changes(made: Deployment) -> None:
    assert len(versions_of_october(made)) == 1


def test_a_period_that_leaves_before_late_reports_would_change(
    made: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: the difference of two publications is one person's report."""
    monkeypatch.setattr(
        published, "final_day", lambda collection, period: period_end(collection, period).date()
    )

    assert len(versions_of_october(made)) > 1


def test_a_period_leaves_on_its_final_day(made: Deployment) -> None:
    send(made, "theme", [0, 500, 500])
    at(made, FINAL - DAY)
    before = files(made)
    at(made, FINAL)

    assert (len(before), len(files(made))) == (0, 1)


def test_the_final_day_of_what_a_shuffler_brings_is_after_its_last_batch(tmp_path: Path) -> None:
    with deployment(tmp_path, SHUFFLED) as made:
        alone = made.series("alone").collection

    assert published.final_day(alone, 0) == date(2026, 12, 2) + 3 * DAY + 40 * DAY


@pytest.mark.parametrize(("reports", "leaves"), [(LEAST - 1, False), (LEAST, True)])
def test_a_period_of_few_people_does_not_leave(
    made: Deployment, reports: int, *, leaves: bool
) -> None:
    send(made, "theme", [reports, 0, 0])
    at(made, FINAL)

    assert bool(files(made)) is leaves


@pytest.mark.parametrize(("smallest", "by_segment"), [(0, True), (LEAST - 1, False), (LEAST, True)])
def test_segments_leave_one_by_one_only_if_none_is_of_few_people(
    made: Deployment, smallest: int, *, by_segment: bool
) -> None:
    """All or none: of segments but one, and all together, the one is a difference."""
    for segment, number in enumerate((300, 200, smallest)):
        if number:
            send(made, "theme", [number, 0, 0], segment=segment, seed=segment)
    at(made, FINAL)
    (file,) = map(read_open_counters, files(made))

    assert (file.by_segment, len(file.counters)) == (by_segment, 4 if by_segment else 1)
    assert file.reports == 500 + smallest


def test_all_figures_are_computed_from_what_is_published(made: Deployment) -> None:
    """A stranger gets the same; what was counted since, or is not published, changes nothing."""
    send(made, "theme", [300, 500, 200])
    at(made, FINAL)
    first = published_figures(snapshot(made), "theme")
    send(made, "theme", [5000, 0, 0], period=1, seed=9)
    second = published_figures(snapshot(made), "theme")
    read = [read_open_counters(file.encode()) for file in second.counters]
    theirs = estimate_counters(join_open_counters(read)).ranges[0].result

    assert first.estimate == second.estimate
    assert second.estimate is not None
    assert second.estimate.series[0].ranges[0].figures == theirs.figures
    assert second.estimate.series[0].ranges[0].n == theirs.n == 1000
    assert second.headline


def test_a_twin_is_published_with_the_definition_that_it_is_declared_with(made: Deployment) -> None:
    """Without it nobody could compute its fingerprint; planted: the twin is left out."""
    send(made, "local", [300, 700])
    at(made, date(2027, 1, 15))
    (file,) = open_counters(snapshot(made), made.series("local"))

    assert [one.name for one in file.related] == ["curated"]
    assert read_open_counters(file.encode()).reports == 1000
    with pytest.raises(VeilcountError):
        read_open_counters(replace(file, related=()).encode())


def test_figures_that_would_be_noise_are_withheld(made: Deployment) -> None:
    send(made, "theme", [50, 50, 10])
    at(made, FINAL)
    shown = published_figures(snapshot(made), "theme")
    assert shown.estimate is not None

    assert shown.counters, "counters are no figures"
    assert (shown.estimate.series[0].ranges[0].figures, shown.headline) == ((), "")


def test_operators_counts_of_refused_reports_are_not_published(made: Deployment) -> None:
    send(made, "theme", [300, 500, 200])
    at(made, FINAL)
    send(made, "theme", [1, 0, 0])  # too late, which the dashboard shows
    shown = published_figures(snapshot(made), "theme").estimate
    assert shown is not None

    assert (shown.series[0].ranges[0].verdicts, shown.series[0].losses) == ({}, [])


def test_a_curators_collection_publishes_releases_alone(made: Deployment) -> None:
    send(made, "curated", [300, 700])
    at(made, FINAL)
    shown = published_figures(snapshot(made), "curated")

    assert (shown.counters, shown.estimate, shown.releases) == ((), None, ())


@pytest.mark.parametrize(
    ("text", "name", "sentence"),
    [
        (SHUFFLED, "theme", "its shuffler knows its cover reports"),
        (OPEN, "word", "its values are open"),
    ],
)
def test_a_collection_that_must_not_be_published_is_refused(
    tmp_path: Path, text: str, name: str, sentence: str
) -> None:
    file = tmp_path / "collections.toml"
    file.write_text(text, encoding="utf-8")

    with deployment(tmp_path, text) as made, pytest.raises(CountsError, match=sentence):
        published_figures(snapshot(made), name)
    with (
        pytest.raises(SettingsError, match=sentence),
        deployment(tmp_path, publish=(name,), collections=(file,)),
    ):
        pass


def test_counters_without_end_are_refused(
    made: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published, "MOST_COUNTERS", 100)

    with pytest.raises(CountsError, match="its counters are 144 over all periods, at most 100"):
        published_figures(snapshot(made), "theme")
