"""The load test: a sound run passes, and whatever a server could do wrong fails it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from loadtests.ipc import RequestLog
from loadtests.population import QueuedReport, draw, order
from loadtests.questions import definitions, questions
from loadtests.server_verdicts import ServerVerdicts
from loadtests.verify_store import store_problems

from veilcount_aggregator.intake.decode.columns import DecodedBody, columns_from_reports
from veilcount_aggregator.service import Aggregator
from veilcount_aggregator.settings import Settings
from veilcount_aggregator.store.transfer_format import decode_numbers, encode_numbers
from veilcount_shared import Collection
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import encode_verdicts

from .test_load_runs import SOUND, run_load_test

NOW = datetime(2026, 12, 3, 12, tzinfo=UTC)
QUESTIONS = questions(NOW.date())
QUEUED_REPORTS = draw(QUESTIONS, NOW, devices=60, seed=1)
MANY = 1_000  # devices: enough that the intervals are narrow
FEWER = {"autosave": 200, "minutes": 100}  # where each has many answers
SEND = 40  # parcels in one transaction: nothing here is about batches


@contextmanager
def loaded(
    folder: Path, queued_reports: Sequence[QueuedReport]
) -> Iterator[tuple[Aggregator, ServerVerdicts]]:
    """An aggregator that received every body, and some twice, and its responses."""
    file = folder / "collections.toml"
    file.write_text(definitions(NOW.date()), encoding="utf-8")
    settings = Settings(f"sqlite:///{folder}/load.db", (file,), dev=True)
    aggregator = Aggregator.open(settings, lambda: NOW)
    try:
        request_log = sent(aggregator, queued_reports)
        yield aggregator, ServerVerdicts.from_request_log(queued_reports, request_log)
    finally:
        aggregator.close()


def sent(aggregator: Aggregator, queued_reports: Sequence[QueuedReport]) -> RequestLog:
    """Send the bodies in a run's order; return the response to each."""
    places = order(len(queued_reports), seed=1)
    replies: list[bytes] = []
    for first in range(0, len(places), SEND):
        chosen = [queued_reports[place] for place in places[first : first + SEND]]
        reports = [report for queued_report in chosen for report in queued_report.reports]
        verdicts = iter(aggregator.take(DecodedBody(len(reports), columns_from_reports(reports))))
        replies.extend(encode_verdicts(islice(verdicts, len(each.reports))) for each in chosen)
    return RequestLog(places, replies, [0.0] * len(places), lasted=1.0, cpu=1.0)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[tuple[Aggregator, ServerVerdicts]]:
    """A sound run of sixty devices."""
    with loaded(tmp_path, QUEUED_REPORTS) as each:
        yield each


def judged_with_a_tally_off(
    run: tuple[Aggregator, ServerVerdicts], name: str, more: int, *, n: int
) -> str:
    """Judge a run with the first tally's n changed, and its first counter that is not 0."""
    store, start = run[0].store, QUESTIONS[name].fingerprint
    pieces = [each for each in store.export_pieces() if each.kind == "tally"]
    tally = next(each for each in pieces if each.key.startswith(start))
    numbers = decode_numbers(tally.body)
    numbers[0] += n
    numbers[1 + np.flatnonzero(numbers[1:])[0]] += more
    store.import_pieces([tally._replace(body=encode_numbers(numbers))])
    failures = store_problems(store, run[1])
    store.import_pieces([tally])
    return "\n".join(failures)


def test_only_a_sound_run_has_nothing_wrong(run: tuple[Aggregator, ServerVerdicts]) -> None:
    """Every report once, duplicates as acknowledged, every estimate around the true value.

    One report less or more, and one counter that is off though n is right, fail it.
    """
    aggregator, verdicts = run

    assert store_problems(aggregator.store, verdicts) == []
    assert verdicts.verdicts[Verdict.COUNTED] == sum(len(each.reports) for each in QUEUED_REPORTS)
    assert verdicts.verdicts[Verdict.DUPLICATE] > 0
    for name in QUESTIONS:
        assert f"{name}: lost 1 of " in judged_with_a_tally_off(run, name, -1, n=-1)
        assert f"{name}: 1 reports more than the " in judged_with_a_tally_off(run, name, 1, n=1)
        off = f"{name}: the counters are off those of the acknowledged messages by 1"
        assert off in judged_with_a_tally_off(run, name, 1, n=0)


def test_an_unacknowledged_report_may_count_once(run: tuple[Aggregator, ServerVerdicts]) -> None:
    """One body of each question was counted, and its replies were lost: one report more fails."""
    aggregator, verdicts = run
    for name in QUESTIONS:
        place = next(at for at, each in enumerate(QUEUED_REPORTS) if each.collection.name == name)
        verdicts.silences[place] = len(verdicts.replies.pop(place))

    assert store_problems(aggregator.store, verdicts) == ["4 bodies were never acknowledged"]
    for name in QUESTIONS:
        assert f"{name}: 1 reports more than the " in judged_with_a_tally_off(run, name, 1, n=1)
        off = f"{name}: the counters are off those of the acknowledged messages by 1"
        assert off in judged_with_a_tally_off(run, name, 1, n=0)


def test_what_no_device_heard_of_fails_the_run(run: tuple[Aggregator, ServerVerdicts]) -> None:
    """A message under another pseudonym, as by a server that loses spent slots; and a replay."""
    aggregator, verdicts = run
    queued_report = next(each for each in QUEUED_REPORTS if each.collection.name == "minutes")
    forged = [replace(each, pseudonym=bytes(16)) for each in queued_report.reports]
    aggregator.take(DecodedBody(len(forged), columns_from_reports(forged)))

    more = "minutes: 16 reports more than the 960 acknowledged ones"
    assert more in store_problems(aggregator.store, verdicts)

    again = next(each for each in QUEUED_REPORTS if each.collection.name == "theme").reports
    duplicates = verdicts.verdicts[Verdict.DUPLICATE]
    aggregator.take(DecodedBody(1, columns_from_reports(again)))

    unheard = f"{duplicates} duplicates were acknowledged, and the store counts {duplicates + 1}"
    assert unheard in store_problems(aggregator.store, verdicts)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_run_of_another_population_fails(name: str, tmp_path: Path) -> None:
    """Estimates that miss what the counted devices hold, of every kind of question."""
    queued_reports = draw({name: QUESTIONS[name]}, NOW, FEWER.get(name, MANY), seed=1)
    with loaded(tmp_path, queued_reports) as (aggregator, verdicts):
        other = replace(verdicts, queued_reports=[_mirrored(each) for each in queued_reports])

        assert store_problems(aggregator.store, verdicts) == []
        assert "miss the truth of what was counted" in "".join(
            store_problems(aggregator.store, other)
        )


def _mirrored(queued_report: QueuedReport) -> QueuedReport:
    """Return what people at the other end of the scale would have sent."""
    end = {"autosave": 1, "theme": 63, "plugin": 1_999, "minutes": 240}[
        queued_report.collection.name
    ]
    return replace(queued_report, held=tuple(end - held for held in queued_report.held))


@pytest.mark.parametrize("epsilon", [Fraction(7, 10), Fraction(13, 10)])
def test_devices_of_another_distribution_fail_the_run(epsilon: Fraction, tmp_path: Path) -> None:
    question = replace(QUESTIONS["autosave"], epsilon=epsilon)
    queued_reports = draw({"autosave": question}, NOW, MANY, 1)
    with loaded(tmp_path, [_relabelled(each) for each in queued_reports]) as (aggregator, verdicts):
        failures = store_problems(aggregator.store, verdicts)

    assert failures == ["autosave: 2 of 2 estimates miss the truth of what was counted"]


def _relabelled(queued_report: QueuedReport) -> QueuedReport:
    requested: Collection = QUESTIONS[queued_report.collection.name]
    reports = (replace(each, fingerprint=requested.fingerprint) for each in queued_report.reports)
    return QueuedReport(requested, tuple(reports), queued_report.held)


# -- what a server says ----------------------------------------------------------------------------

ONE = [next(each for each in QUEUED_REPORTS if each.collection.name == "theme")]
COUNTED = encode_verdicts([Verdict.COUNTED])
DUPLICATE = encode_verdicts([Verdict.DUPLICATE])
STALE = encode_verdicts([Verdict.STALE])


@pytest.mark.parametrize(
    ("replies", "failures"),
    [
        ([COUNTED, COUNTED, DUPLICATE], ["1 reports were acknowledged as counted more than once"]),
        ([DUPLICATE, DUPLICATE], ["1 reports were acknowledged as duplicates of nothing"]),
        ([COUNTED, DUPLICATE, STALE], ["1 reports (honest) were refused as stale"]),
        ([COUNTED], ["no replay was acknowledged: nothing was tried twice"]),
        ([b"", b"not a reply"], ["1 bodies were never acknowledged"]),
        pytest.param([b"", DUPLICATE], [], id="the reply to the counted request was lost"),
    ],
)
def test_what_no_server_may_say_fails_the_run(replies: list[bytes], failures: list[str]) -> None:
    request_log = RequestLog([0] * len(replies), replies, [0.0] * len(replies), 1.0, 1.0)
    found = list(ServerVerdicts.from_request_log(ONE, request_log).failures())

    assert set(failures) <= set(found)
    assert bool(failures) == bool(found)


def test_a_sound_body_that_is_refused_whole_fails_the_run() -> None:
    verdicts = ServerVerdicts.from_request_log(
        ONE, RequestLog([0], [b""], [0.0], 1.0, 1.0, statuses=[400])
    )

    assert "1 sound bodies were refused whole" in list(verdicts.failures())


def test_a_generator_that_overstates_fails_the_run(tmp_path: Path) -> None:
    """It says that a body was acknowledged which it never sent."""
    with loaded(tmp_path, QUEUED_REPORTS[:-1]) as (aggregator, verdicts):
        boast = replace(verdicts, queued_reports=QUEUED_REPORTS)
        boast.add_reply(
            len(QUEUED_REPORTS) - 1,
            encode_verdicts([Verdict.COUNTED] * len(QUEUED_REPORTS[-1].reports)),
        )

        assert ": lost " in "\n".join(store_problems(aggregator.store, boast))


def test_a_real_server_passes(tmp_path: Path) -> None:
    """Locust, real clients, two workers, a file: everything is what the devices sent."""
    report, figures = tmp_path / "load.html", tmp_path / "load"
    few = ["--devices", "60", "--users", "8", "--seconds", "2", "--devices-real", "2"]
    files = ["--html", str(report), "--csv", str(figures)]
    ended = run_load_test("--workers", "2", *few, *files)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert SOUND in ended.stdout
    assert "real devices" in ended.stdout
    assert "/v1/reports" in report.read_text(encoding="utf-8")
    assert "Request Count" in figures.with_name("load_stats.csv").read_text(encoding="utf-8")
    # Locust would patch everything that waits, for all other tests too.
    assert "locust" not in sys.modules
