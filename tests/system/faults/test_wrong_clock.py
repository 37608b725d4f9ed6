"""Hosts with wrong clocks on real stores: nothing is destroyed, and the others go on."""

from __future__ import annotations

import multiprocessing
import os
import re
import secrets
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import requests

from tests.aggregator.store.series_fixtures import DAILY, drop, report, send
from tests.redis_server import RedisServer
from tests.system.server import Server, wait_until
from veilcount_aggregator.auth.api_keys import Role, create_key
from veilcount_aggregator.catalog.definitions import (
    DefinitionSource,
    add_definitions,
    load_catalog,
)
from veilcount_aggregator.series.series import Series
from veilcount_aggregator.store import open_store
from veilcount_shared.report import Batch, Report
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import BINARY_TYPE, encode_binary

AHEAD = timedelta(days=40)
PERIODS, PERSONS = 20, 50
FILE = """
app = "acme"
[asked]
question = "Which?"
values = ["a", "b"]
epsilon = 1
unit = "day"
from = {start}
until = {until}
"""


@dataclass
class Place:
    """A store with a definition whose periods are all open, and who serves from it."""

    url: str
    folder: Path
    series: Series
    key: str

    @contextmanager
    def host(self, ahead: timedelta = timedelta(0)) -> Iterator[tuple[Server, Path]]:
        """Start a host whose clock is off; the file that is yielded too says by how much."""
        shift = self.folder / f"shift-{secrets.token_hex(4)}"
        shift.write_text(str(ahead.total_seconds()))
        program = ("tests.system.shifted_serve", str(shift))
        with Server(self.url, self.folder, program=program) as server:
            yield server, shift

    def report(self, period: int) -> Report:
        """Return a report of somebody new."""
        pseudonym = secrets.token_bytes(16)
        message = self.series.collection.pack(0)
        return Report(self.series.fingerprint, period, 0, pseudonym, 0, message)

    def fill(self, server: Server) -> list[Report]:
        """Have reports counted in every period; return them."""
        found = [self.report(period) for period in range(PERIODS) for _ in range(PERSONS)]

        assert set(verdicts(server, *found)) == {Verdict.COUNTED}
        return found

    def figure(self, server: Server, name: str) -> float:
        """Return one of a server's figures."""
        answer = server.ask("GET", "/metrics", headers={"Authorization": f"Bearer {self.key}"})
        (found,) = re.findall(rf"^veilcount_{name}{{}} (\S+)$", answer.text, re.MULTILINE)
        return float(found)


def post(server: Server, *reports: Report) -> requests.Response:
    """Send reports."""
    body = encode_binary(Batch(reports))
    return server.ask("POST", "/v1/reports", data=body, headers={"Content-Type": BINARY_TYPE})


def verdicts(server: Server, *reports: Report) -> list[str]:
    """Send reports; return their verdicts."""
    answer = post(server, *reports)

    assert answer.status_code == 200, answer.text
    return list(answer.json()["verdicts"])


def runs(shift: Path, times: int = 3) -> list[int]:
    """Wait until the retention of a host has run a few times; return what each has dropped."""
    file = shift.with_suffix(".runs")
    wait_until(lambda: file.exists() and len(file.read_text().split()) >= times, 60)
    return [int(each) for each in file.read_text().split()][:times]


def rows(redis: RedisServer) -> int:
    """Return how many rows there are in the ledgers of a server."""
    with redis.connection() as connection:
        return sum(connection.hlen(key) for key in connection.keys("veilcount:{*}:[0-9]*:*"))


def place(url: str, folder: Path) -> Place:
    """Make a store for a campaign whose 20th day is today."""
    store, now = open_store(url, make=True), datetime.now(UTC)
    start = now.date() - timedelta(days=PERIODS - 1)
    add_definitions(
        store,
        DefinitionSource(FILE.format(start=start, until=start + timedelta(days=60))),
        now,
        "cli",
    )
    _, secret = create_key(store, Role.ANALYST, "", now)
    (series,) = load_catalog(store).series.values()
    store.close()
    return Place(url, folder, series, secret)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A server that may be killed."""
    server = RedisServer(tmp_path)
    yield server
    server.kill()


def test_a_host_40_days_ahead_destroys_nothing_and_honest_hosts_go_on(
    redis: RedisServer, tmp_path: Path
) -> None:
    """Every row is there, every slot known; what is sent to it waits on the devices."""
    here = place(redis.url, tmp_path)
    with here.host() as (honest, _):
        known = here.fill(honest)
        held = rows(redis)
        with here.host(AHEAD) as (ahead, shift):
            waiting = here.report(PERIODS - 1)
            refused, ready = post(ahead, waiting), ahead.ask("GET", "/readyz")
            skew = here.figure(ahead, "clock_skew_seconds")
            dropped = runs(shift)
            spent = verdicts(honest, *known)
            new = verdicts(honest, waiting)

        assert (refused.status_code, refused.json()["type"][-5:]) == (503, "clock")
        assert refused.headers["Retry-After"] == "60"
        assert ready.status_code == 503
        assert re.search(r"clock is 3,456,00\d s ahead of the store's", ready.json()["why"])
        assert skew == pytest.approx(AHEAD.total_seconds(), abs=60)
        assert dropped == [0, 0, 0]
        assert '"event": "clock"' in ahead.log_text()
        assert held == PERIODS * PERSONS
        assert rows(redis) == held + len(new)
        assert set(spent) == {Verdict.DUPLICATE}
        assert new == [Verdict.COUNTED]
        assert here.figure(honest, "dropped_epochs_total") == 0


@pytest.mark.full
def test_a_clock_that_jumps_while_a_host_runs_closes_its_intake_until_it_is_back(
    tmp_path: Path,
) -> None:
    """Of a file its host's clock is the only one: the process itself knows that it jumped."""
    here = place(f"sqlite:///{tmp_path}/store.db", tmp_path)
    with here.host() as (server, shift):
        known = here.fill(server)
        shift.write_text(str(AHEAD.total_seconds()))
        wait_until(lambda: server.ask("GET", "/readyz").status_code == 503, 60)
        refused, why = post(server, *known), server.ask("GET", "/readyz").json()["why"]
        dropped = runs(shift)
        shift.write_text("0")
        wait_until(lambda: server.ask("GET", "/readyz").status_code == 200, 60)

        assert refused.status_code == 503
        assert re.search(r"jumped 3,456,00\d s forward|jumped 3,455,99\d s forward", why)
        assert dropped == [0, 0, 0]
        assert set(verdicts(server, *known)) == {Verdict.DUPLICATE}


@pytest.mark.full
def test_a_host_that_is_started_with_a_wrong_clock_destroys_nothing(tmp_path: Path) -> None:
    """It cannot know, but the store knows its last day: nothing is stale or dropped by another."""
    here = place(f"sqlite:///{tmp_path}/store.db", tmp_path)
    with here.host() as (server, _):
        known = here.fill(server)
    with here.host(AHEAD) as (server, shift):
        dropped, refused = runs(shift), post(server, here.report(PERIODS - 1))
        waiting = here.figure(server, "retention_waiting")
    with here.host() as (server, _):
        spent = verdicts(server, *known)

    assert (dropped, waiting) == ([0, 0, 0], 1)
    assert (refused.status_code, refused.json()["type"][-5:]) == (503, "clock")
    assert set(spent) == {Verdict.DUPLICATE}


# -- killed between the mark and the sweep ---------------------------------------------------------


def test_a_drop_before_a_redis_is_killed_can_be_taken_back_after(redis: RedisServer) -> None:
    store = open_store(redis.url, make=True)
    send(store, DAILY, *(report(n, 0) for n in range(100)))
    drop(store, DAILY, 1)
    redis.kill()
    redis.start()
    again = open_store(redis.url)

    assert send(again, DAILY, report(1, 0)) == [Verdict.STALE]
    assert again.restore_dropped(DAILY) == 1
    assert send(again, DAILY, report(1, 0), report(100, 0)) == [
        Verdict.DUPLICATE,
        Verdict.COUNTED,
    ]
    store.close()
    again.close()


def drop_and_die(url: str) -> None:
    """Drop an epoch, and end at once."""
    drop(open_store(url), DAILY, 1)
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_drop_by_a_process_that_is_killed_can_be_taken_back(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    store = open_store(url, make=True)
    send(store, DAILY, *(report(n, 0) for n in range(100)))
    store.close()
    process = multiprocessing.get_context("fork").Process(target=drop_and_die, args=(url,))
    process.start()
    process.join()
    again = open_store(url)

    assert process.exitcode == -signal.SIGKILL
    assert send(again, DAILY, report(1, 0)) == [Verdict.STALE]
    assert again.restore_dropped(DAILY) == 1
    assert send(again, DAILY, report(1, 0)) == [Verdict.DUPLICATE]
    again.close()
