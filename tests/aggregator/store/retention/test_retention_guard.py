"""When rows are dropped, and what is waited for: a real file, and clocks that a test advances."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from veilcount_aggregator.records.audit_log import load_audit_log
from veilcount_aggregator.records.clock_confirmation import confirm_day
from veilcount_aggregator.store.retention.clock_guard import SETTLING_SECONDS
from veilcount_aggregator.store.retention.retention_guard import (
    CONFIRMING_SECONDS,
    DROPPED,
    read_confirmed_day,
)
from veilcount_shared.report import Batch
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import encode_base64

from ....client.device_fixtures import definitions_text
from ...web.api.deployment_fixtures import NOW, Deployment, deployment, open_worker

A_WHILE = 3600.0
FILE = definitions_text(
    asked={"question": "Which?", "values": ["a", "b"], "late": 3, "until": "2027-03-01"}
)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Deployment]:
    """A deployment in which a report of each of three days was counted, and the day confirmed."""
    with deployment(tmp_path, FILE) as made:
        made.aggregator.look_at_clock()
        made.verdicts(*(made.report("asked", period=period) for period in range(3)))
        yield made


def pass_on(made: Deployment, seconds: float, look: float = A_WHILE) -> None:
    """Let time pass by both clocks, and have them compared every so often."""
    ends = made.clocks.passed + seconds
    while made.clocks.passed < ends:
        step = min(look, ends - made.clocks.passed)
        made.clocks.now += timedelta(seconds=step)
        made.clocks.passed += step
        made.aggregator.look_at_clock()


def dropped(made: Deployment) -> int:
    """Run the retention; return how many epochs were dropped by it and before, by the figures."""
    made.aggregator.drop_expired()
    made.aggregator.flush()
    return made.aggregator.store.service_counts().get(DROPPED, 0)


def restart(made: Deployment, **later: float) -> Iterator[Deployment]:
    now = made.clocks.now + timedelta(**later)
    with open_worker(made.aggregator.settings.store, now) as again:
        again.aggregator.look_at_clock()
        yield again


# -- a clock that is right -------------------------------------------------------------------------


def test_rows_are_dropped_day_by_day_while_a_host_runs(made: Deployment) -> None:
    """The first day's four days after its end, and each day one more."""
    found = []
    for _ in range(6):
        pass_on(made, 24 * 3600)
        found.append(dropped(made))

    assert found == [0, 0, 1, 2, 3, 4]
    assert read_confirmed_day(made.aggregator.store).day == made.aggregator.today()  # type: ignore[union-attr]


def test_rows_are_deleted_a_day_after_they_were_dropped(made: Deployment) -> None:
    series, store = made.series("asked"), made.aggregator.store
    pass_on(made, 3 * 24 * 3600)
    dropped(made)
    pass_on(made, 23 * 3600)
    dropped(made)
    restored = store.restore_dropped(series)
    dropped(made)
    pass_on(made, 25 * 3600)
    dropped(made)

    assert restored == 2
    assert store.restore_dropped(series) == 1  # what was over a day later


def test_rows_of_a_final_drop_are_deleted_by_a_process_that_has_just_started(
    made: Deployment,
) -> None:
    """No clock is asked, and opening the store deletes none of them."""
    pass_on(made, 3 * 24 * 3600)
    dropped(made)
    pass_on(made, 25 * 3600)
    dropped(made)
    for again in restart(made):
        before = row_count(again)
        again.aggregator.delete_rows()

        assert (before, row_count(again)) == (3, 2)


def row_count(made: Deployment) -> int:
    path = urlsplit(made.aggregator.settings.store).path[1:]
    with closing(sqlite3.connect(path)) as database:
        return int(database.execute("select count(*) from ledger").fetchone()[0])


def test_a_process_that_has_just_started_drops_nothing(made: Deployment) -> None:
    pass_on(made, 2 * 24 * 3600)
    dropped(made)
    for again in restart(made, days=1):
        at_once = dropped(again)
        pass_on(again, SETTLING_SECONDS - 1)
        early = dropped(again)
        pass_on(again, 1)

        assert (at_once, early, dropped(again)) == (0, 0, 1)


# -- a clock that may be wrong ---------------------------------------------------------------------


def test_after_a_long_shutdown_nothing_is_dropped_until_a_day_of_running(made: Deployment) -> None:
    """Nobody can say whether the host was off for 40 days, or its clock is wrong."""
    for again in restart(made, days=40):
        pass_on(again, CONFIRMING_SECONDS - 1)
        waited, before = again.aggregator.retention.waiting, dropped(again)
        pass_on(again, 1)

        assert (waited, before) == (True, 0)
        assert not again.aggregator.retention.waiting
        assert dropped(again) == 39


def test_after_a_long_shutdown_an_operator_confirms_the_day(made: Deployment) -> None:
    for again in restart(made, days=40):
        pass_on(again, SETTLING_SECONDS)
        before = dropped(again)
        confirm_day(again.aggregator.store, again.clocks.now, "cli")

        assert (before, dropped(again)) == (0, 38)
        assert load_audit_log(again.aggregator.store)[-1].action == "confirm clock"


def test_a_jump_while_it_runs_drops_nothing_and_its_time_does_not_count(made: Deployment) -> None:
    """23 hours before it do not confirm the day after it."""
    pass_on(made, 23 * 3600)
    made.clocks.now += timedelta(days=40)
    pass_on(made, 23 * 3600)

    assert made.aggregator.retention.waiting
    assert dropped(made) == 0


def test_a_clock_that_is_set_back_drops_nothing_more_and_confirms_the_earlier_day(
    made: Deployment,
) -> None:
    """What was ahead for a day was on record: from there on its day is to be confirmed again."""
    for again in restart(made, days=40):
        pass_on(again, CONFIRMING_SECONDS)
        ahead = dropped(again)
        restored = again.aggregator.store.restore_dropped(again.series("asked"))
    for again in restart(made):
        pass_on(again, SETTLING_SECONDS)

        assert (ahead, restored, dropped(again)) == (39, 39, 39)
        assert read_confirmed_day(again.aggregator.store).day == date(2026, 12, 3)  # type: ignore[union-attr]
        assert again.verdicts(again.report("asked", period=0)) == [Verdict.COUNTED]


def test_a_store_with_rows_and_no_record_waits_too(tmp_path: Path) -> None:
    with deployment(tmp_path, FILE) as made:
        made.verdicts(made.report("asked"))
        made.aggregator.look_at_clock()
        waited = made.aggregator.retention.waiting
        pass_on(made, CONFIRMING_SECONDS)

        assert (waited, made.aggregator.retention.waiting) == (True, False)


# -- the intake ------------------------------------------------------------------------------------


def test_no_report_is_stale_by_a_day_that_nobody_has_confirmed(made: Deployment) -> None:
    """It comes back: with the day confirmed it is stale, with the clock mended it counts."""
    today = made.report("asked")
    for again in restart(made, days=40):
        answer = again.send(Batch((today,)))
        later = again.verdicts(again.report("asked"))

        assert (answer.status, answer.problem) == (503, "clock")
        assert answer.headers["Retry-After"] == "60"
        assert later == [Verdict.COUNTED]
    assert made.verdicts(today) == [Verdict.COUNTED]
    for again in restart(made, days=40):
        confirm_day(again.aggregator.store, again.clocks.now, "cli")
        again.aggregator.look_at_clock()

        assert again.verdicts(made.report("asked")) == [Verdict.STALE]


def test_while_the_clock_is_in_doubt_the_intake_is_closed_and_the_server_not_ready(
    made: Deployment,
) -> None:
    """Withdrawals too, and central releases: what is judged by the day. Then all goes on."""
    report = made.report("asked")
    made.clocks.now += timedelta(days=40)
    made.aggregator.look_at_clock()
    name = {"fingerprint": report.fingerprint, "pseudonym": encode_base64(report.pseudonym)}
    closing = made.ask("POST", "/v1/rows/close", json.dumps(name).encode())
    doubted = [made.send(Batch((report,))), closing]
    ready, alive = made.ask("GET", "/readyz"), made.ask("GET", "/healthz")
    made.clocks.now = NOW
    made.aggregator.look_at_clock()

    assert [(answer.status, answer.problem) for answer in doubted] == [(503, "clock")] * 2
    assert (ready.status, alive.status) == (503, 200)
    assert "jumped 3,456,000 s forward" in ready.json["why"]
    assert made.ask("GET", "/readyz").status == 200
    assert made.verdicts(report) == [Verdict.COUNTED]
