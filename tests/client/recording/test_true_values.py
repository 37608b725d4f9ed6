"""True values for a trusted curator, and deliveries side by side.

Before, of 120 true values in several collections 98 were lost when the process ended ten minutes
later, and after an outage all collections left in one round. One thread delivered everything, so
whoever dripped a reply to one row kept the device's others waiting.
"""

from __future__ import annotations

import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from veilcount_client import Client
from veilcount_client.delivery import delivery_pool, uploader
from veilcount_client.delivery.transport import HttpTransport, Later
from veilcount_client.delivery.uploader import Uploader
from veilcount_client.state import memory_outbox
from veilcount_client.state.sqlite import SqliteState
from veilcount_client.state.sqlite_database import FILE
from veilcount_client.testing import SeededRandomSource
from veilcount_shared import Collection
from veilcount_shared.report import Losses

from ..delivery import server_fixtures
from ..delivery.app_processes import environment
from ..delivery.server_fixtures import Request, Server, serving
from ..device_fixtures import (
    DAY,
    HOUR,
    MINUTE,
    Device,
    Wire,
    at,
    clock_at,
    file,
    one_collection,
    pass_time,
    secrets,
    set_clock,
)

CENTRAL: dict[str, object] = {"model": "central", "budget": 1}
EVENTS: dict[str, object] = {"unit": "event", "per_day": 24, "linkage": "collection", **CENTRAL}
NAMES = ("one", "two", "three", "four", "five")
ROOT = Path(__file__).parents[3]


class Home:
    """A device that trusts a curator."""

    def __init__(self, place: Path, collections: dict[str, Collection], seed: int = 1) -> None:
        self.clock = clock_at(at(0, 9))
        self.wire = Wire(self.clock)
        with secrets(("true values", seed)):
            self.device = Device(
                place,
                collections,
                self.clock,
                self.wire,
                randomness=SeededRandomSource(seed),
                trust_curator=True,
            )

    def record(self, times: int = 1, value: object = 1) -> None:
        """Record values in every collection, and store them."""
        for name in self.device.collections:
            for _ in range(times):
                self.device.client.record(name, value)
        self.device.work()

    def until(self, seconds: float) -> None:
        """Let time pass."""
        pass_time(self.clock, self.clock.now() + seconds, self.device)

    def lost(self) -> dict[str, int]:
        """Return what the device says was lost, of all collections."""
        losses: dict[str, int] = {}
        for name in self.device.collections:
            for reason, count in self.device.client.explain(name).losses.items():
                losses[reason] = losses.get(reason, 0) + count
        return losses


# -- in memory -------------------------------------------------------------------------------------


def in_jitter_of_an_hour(place: Path) -> Home:
    """Record 120 values in 5 collections, wait ten minutes, end the process."""
    home = Home(place, file(**dict.fromkeys(NAMES, EVENTS)))
    home.record(24)
    home.until(10 * MINUTE)
    home.device.crash()
    home.device.start()
    return home


def test_all_values_are_delivered_within_minutes(tmp_path: Path) -> None:
    """Ten minutes after 120 values were recorded a crash loses none; planted, an hour: most."""
    home = in_jitter_of_an_hour(tmp_path / "minutes")
    with patch.object(memory_outbox, "JITTER", HOUR):
        planted = in_jitter_of_an_hour(tmp_path / "hour")

    assert len(home.wire.counted) == 120
    assert home.lost() == {}
    assert len(planted.wire.counted) < 60
    assert planted.lost() == {"crashed": 120 - len(planted.wire.counted)}


def test_a_process_that_closes_at_once_delivers(tmp_path: Path) -> None:
    """A second after the records, by close() alone; planted, an end without an attempt."""

    def ended(place: Path) -> Home:
        home = Home(place, file(**dict.fromkeys(NAMES, EVENTS)))
        home.record(24)
        home.until(1)
        home.device.stop()
        home.device.start()
        return home

    home = ended(tmp_path / "closed")
    with patch("veilcount_client.delivery.worker.ClientWorker._send_last", lambda *_: None):
        planted = ended(tmp_path / "left")

    assert len(home.wire.counted) == 120
    assert home.lost() == {}
    assert len(planted.wire.counted) < 10
    assert planted.lost()["crashed"] > 110


def test_what_close_cannot_deliver_is_counted(tmp_path: Path) -> None:
    """The aggregator is away: the values are lost with the process, and no other way."""
    home = Home(tmp_path, file(**dict.fromkeys(NAMES, EVENTS)))
    home.wire.offline()
    home.record(2)
    home.device.stop()
    home.wire.online()
    home.device.start()
    home.until(DAY)

    assert home.wire.counted == {}
    assert home.lost() == {"crashed": 10}


def test_a_crash_is_shown_to_the_person_and_reported(tmp_path: Path) -> None:
    """In `explain`, in the receipt, and to the aggregator, as values that were evicted."""
    home = Home(tmp_path, one_collection("it", **EVENTS))
    home.record(3)
    home.device.crash()
    home.device.start()
    reasons = home.device.client.explain("it").losses
    receipt = home.device.client.receipt().losses
    home.until(4 * DAY)
    series = home.device.collections["it"].fingerprint
    reported = [each.batch.losses for each in home.wire.arrivals if each.batch.losses]

    assert reasons == {"crashed": 3}
    assert receipt == {"crashed (it)": 3}
    assert reported == [Losses(series, 0, 1, 0)]


def test_what_is_on_its_way_is_no_loss(tmp_path: Path) -> None:
    """While it waits neither the person nor the aggregator hears of a loss."""
    home = Home(tmp_path, one_collection("it", **EVENTS))
    home.wire.offline()
    home.record(3)
    before = home.lost()
    home.wire.online()
    home.until(3 * DAY)

    assert before == home.lost() == {}
    assert [each for each in home.wire.arrivals if each.batch.losses] == []


def test_a_withdrawal_is_no_crash(tmp_path: Path) -> None:
    """What a person withdraws from memory is not shown, or reported, as lost with a process."""
    home = Home(tmp_path, one_collection("it", **EVENTS))
    home.record(3)
    home.device.client.consent(False)
    home.device.client.consent(True)
    home.until(4 * DAY)

    assert home.lost() == {}
    assert [each for each in home.wire.arrivals if each.batch.losses] == []


# -- independent instants --------------------------------------------------------------------------


def rounds(place: Path) -> list[int]:
    """Return when values of 5 collections arrive, in seconds, after an outage of an hour."""
    home = Home(place, file(**dict.fromkeys(NAMES, CENTRAL)))
    home.wire.offline()
    home.record()
    home.until(HOUR)
    home.wire.online()
    home.until(3 * HOUR)
    return [round(each.instant) for each in home.wire.arrivals]


def one_due_for_all(each: Uploader, outbox: Any, queued_reports: Any, *_: Any, **__: Any) -> None:
    """Put everything back to one time, a common one: the planted variant."""
    later = each.now() // HOUR * HOUR + HOUR
    outbox.reschedule({queued_report.number: later for queued_report in queued_reports})


def test_after_an_outage_collections_do_not_leave_in_one_round(tmp_path: Path) -> None:
    """Each row is tried again by its own failures, and none leaves beside another."""
    found = rounds(tmp_path / "independent")
    with patch.object(Uploader, "_put_back", one_due_for_all):
        planted = rounds(tmp_path / "together")

    assert len(found) == len(planted) == len(NAMES)
    assert len(set(found)) == len(NAMES)
    assert len(set(planted)) == 1


def test_after_hours_of_sleep_collections_do_not_leave_in_one_round(tmp_path: Path) -> None:
    """What fell due while the machine slept gets new times, each its own, within minutes."""
    home = Home(tmp_path, file(**dict.fromkeys(NAMES, CENTRAL)))
    home.record()
    set_clock(home.clock, at(0, 16))
    home.until(HOUR)
    instants = [each.instant for each in home.wire.arrivals]

    assert len({round(each) for each in instants}) == len(NAMES)
    assert max(instants) <= at(0, 16) + memory_outbox.JITTER + 1


# -- on the device ---------------------------------------------------------------------------------


def test_on_the_device_a_true_value_survives_a_crash(tmp_path: Path) -> None:
    """And leaves no trace on the disk once it was delivered; the receipt does not show it."""
    home = Home(tmp_path, one_collection("it", **CENTRAL, held="device", range=[0, 1_040_999]))
    value = 0x0F_E1_D2
    marked = value.to_bytes(3, "big")
    home.record(value=value)
    state = home.device.worker.state
    assert isinstance(state, SqliteState)
    home.device.crash()
    for connection in state._abandoned:  # as the system does for a process that died
        connection.close()
    waits = any(marked in each.read_bytes() for each in tmp_path.iterdir())
    home.device.start()
    text = home.device.client.receipt().text()
    home.until(DAY)
    after = home.device.client.receipt()
    home.device.stop()

    assert [int.from_bytes(each.message, "big") for each in home.wire.reports] == [value]
    assert waits
    assert not any(marked in each.read_bytes() for each in tmp_path.iterdir())
    assert "waiting: period 0, the true value" in text
    assert after.entries[0].sent[0]["status"] == "delivered"
    assert after.entries[0].sent[0]["message"] == ""
    assert home.lost() == {}


# -- a process that ends without close() -----------------------------------------------------------

ENDS = """
import sys
from veilcount_client import Client
from tests.client.delivery.app_client import Running
from tests.client.recording.test_true_values import at, file, CENTRAL
client = Client(
    sys.argv[1], collections=file(it=CENTRAL), state_dir=sys.argv[2], trust_curator=True,
    clock=Running(at(0, 9)),
)
client.consent(True)
client.record("it", True)
"""


def test_a_process_that_just_ends_delivers(tmp_path: Path) -> None:
    """At exit, without close(): the value is there when the process is gone."""
    with serving(server_fixtures.counting) as server:
        command = [sys.executable, "-c", ENDS, server.url, str(tmp_path / "state")]
        done = subprocess.run(command, env=environment(), timeout=60, check=False, cwd=ROOT)
        arrived = len(server.reports)
    with closing(sqlite3.connect(tmp_path / "state" / FILE)) as database:
        lost = database.execute("select sum(count) from loss where reason = 'crashed'").fetchone()

    assert done.returncode == 0
    assert arrived == 1
    assert lost[0] in {0, None}


# -- side by side ----------------------------------------------------------------------------------


class Drip:
    """Drips its reply to the first row until the other row's body is there, or it is over."""

    def __init__(self) -> None:
        self.others = threading.Event()
        self.over = threading.Event()
        self.first: bytes | None = None
        self.was_beside = False
        self._lock = threading.Lock()

    def __call__(self, server: Server, connection: socket.socket, request: Request) -> None:
        """Answer a request."""
        (report,) = request.batch().reports
        with self._lock:
            first = self.first is None
            if first:
                self.first = report.pseudonym
        if not first:
            self.others.set()
            server_fixtures.counting(server, connection, request)
            return
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n")
        while not (self.others.is_set() or self.over.is_set() or server.stopped.is_set()):
            connection.sendall(b" ")
            self.others.wait(0.02)
        self.was_beside = self.others.is_set()
        raise ConnectionAbortedError


def shares_a_body_with(place: Path, drips: int) -> bool:
    """Whether a row's body arrives while the reply to another is dripping, at most so long."""
    drip = Drip()
    with serving(drip) as server:
        client = Client(
            server.url,
            collections=file(one={}, two={}),
            state_dir=place,
            jitter=0,
            clock=clock_at(at(0, 9)),
        )
        client.consent(True)
        for name in ("one", "two"):
            client.record(name, True)
        client.flush(until="stored")
        for _ in range(drips):
            if drip.others.wait(0.02):
                break
        drip.over.set()
        server_fixtures.wait_until(lambda: drip.was_beside or drip.over.is_set())
        client.close(10)
    return drip.others.is_set() and drip.was_beside


def test_a_dripped_reply_holds_up_no_other_row(tmp_path: Path) -> None:
    """The other row's body arrives before the dripping exchange ends; planted, one thread: after.

    The drip of the first goes on until the other is there; that of the second, for 50 drips.
    """
    beside = shares_a_body_with(tmp_path / "threads", 1000)
    with patch.object(delivery_pool, "MOST_THREADS", 1):
        planted = shares_a_body_with(tmp_path / "one", 50)

    assert beside
    assert not planted


# -- what happens to one row moves no other --------------------------------------------------------


def resetting(server: Server, connection: socket.socket, request: Request) -> None:
    """Reset the connection."""
    linger = b"\1\0\0\0\0\0\0\0"
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    raise ConnectionAbortedError


@contextmanager
def replies(what: str) -> Iterator[str]:
    """Yield the URL of what answers like this."""
    behaviours: dict[str, server_fixtures.Behaviour] = {
        "redirect": server_fixtures.answering(302, Location="http://127.0.0.1:1/"),
        "busy": server_fixtures.answering(503, Retry_After="7"),
        "busy for a day": server_fixtures.answering(503, Retry_After="86400"),
        "reset": resetting,
        "no TLS": server_fixtures.counting,
    }
    with serving(behaviours[what]) as server:
        yield server.url.replace("http:", "https:") if what == "no TLS" else server.url


class FirstFails:
    """Takes the first body to a server that fails it; no other leaves."""

    def __init__(self, url: str, now: Callable[[], float]) -> None:
        self.http = HttpTransport(url, None, now)
        self.why: list[str] = []

    def send(self, body: bytes, reports: int) -> Any:
        """Take a body."""
        outcome = self.http.send(body, reports)
        assert isinstance(outcome, Later)
        self.why.append(outcome.why)
        return outcome

    def close_row(self, fingerprint: str, pseudonym: str) -> bool:
        """Close nothing."""
        return False


def stored_times(place: Path) -> dict[str, float]:
    """Return when each collection's report leaves, as the state says."""
    with closing(sqlite3.connect(place / FILE)) as database:
        rows = database.execute("select series, send_at, leased from report").fetchall()
    return {series.hex(): max(send_at, leased) for series, send_at, leased in rows}


def moved(place: Path, what: str) -> tuple[int, set[str]]:
    """Return how many bodies failed, and which series' times were moved by it."""
    with replies(what) as url:
        clock = clock_at(at(0, 9))
        transport = FirstFails(url, clock.now)
        device = Device(place, file(**{name: {} for name in NAMES}), clock, transport)
        for name in NAMES:
            device.client.record(name, True)
        device.worker.store()
        before = stored_times(place)
        pass_time(clock, min(before.values()) + 0.01, device)
        after = stored_times(place)
        device.crash()
    return len(transport.why), {each for each in before if before[each] != after[each]}


def silencing(
    each: Uploader, outbox: Any, queued_reports: Any, after: float = 0.0, **_: Any
) -> None:
    """Put the whole device off: the planted variant, and what an earlier version did."""
    due = each.now() + after + 5
    numbers = outbox.overdue(2e12, 2e12, 1000) + [
        queued_report.number for queued_report in queued_reports
    ]
    outbox.reschedule(dict.fromkeys(numbers, due))


@pytest.mark.parametrize("what", ["redirect", "busy", "busy for a day", "reset", "no TLS"])
def test_a_failure_of_one_row_moves_no_other(tmp_path: Path, what: str) -> None:
    """Read from the state: of five rows one has another time afterwards."""
    failed, rows = moved(tmp_path / "by row", what)
    with patch.object(uploader.Uploader, "_put_back", silencing):
        _, planted = moved(tmp_path / "by device", what)

    assert failed == 1
    assert len(rows) == 1
    assert len(planted) == len(NAMES)
