"""record() never blocks and never raises, whatever the server, the disk or the clock does."""

from __future__ import annotations

import logging
import math
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pytest

from veilcount_client import Client
from veilcount_client import session as session_module
from veilcount_client.delivery import transport
from veilcount_client.delivery import worker as worker_module
from veilcount_client.state import StateError
from veilcount_shared.errors import VeilcountError

from . import server_fixtures
from .app_client import MARKED, NOBODY, PER_DAY, START, client_of, consenting, worker_of
from .server_fixtures import Server, serving


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    """Whatever a test did to it, a closed client's thread ends."""
    yield
    threads = [each for each in threading.enumerate() if each.name == "veilcount"]

    assert server_fixtures.wait_until(lambda: not any(each.is_alive() for each in threads), 60)


def losses(client: Client, name: str = "event") -> dict[str, int]:
    return dict(client.explain(name).losses)


def open_files(folder: Path) -> list[str]:
    links = map(os.path.realpath, Path("/proc/self/fd").iterdir())
    return [path for path in links if str(folder) in path]


# -- an aggregator that does not reply -------------------------------------------------------------


@pytest.mark.parametrize("kind", ["silent", "refusing", "dripping"])
def test_no_call_waits_for_an_aggregator(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """record() never raises, flush() and close() keep to their time, the reports stay.

    An exchange has ten minutes: a call that waited for one would not return in this test's time.
    """
    monkeypatch.setattr(transport, "MAX_SECONDS", 600.0)
    monkeypatch.setattr(transport, "TIMEOUT", (600.0, 600.0))
    behaviour = server_fixtures.dripping if kind == "dripping" else server_fixtures.silent
    with serving(behaviour) as server, server_fixtures.nobody() as refusing:
        client = consenting(refusing if kind == "refusing" else server.url, tmp_path)
        for _ in range(1000):
            client.record("event", True)
        client.flush(0.2)
        client.record("theme", "light", arm="A")
        client.close(timeout=0.5)
    with closing(sqlite3.connect(tmp_path / "state" / "veilcount.db")) as database:
        count = "select count(*) from report where status = 'waiting'"
        waiting = partial(database.execute, count)
        assert server_fixtures.wait_until(lambda: waiting().fetchone() == (PER_DAY + 1,))


def test_memory_is_bounded_and_the_rest_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More at once than memory may hold is rejected, and reported."""
    monkeypatch.setattr(worker_module, "MOST_QUEUED", 1000)
    with closing(consenting(NOBODY, tmp_path, threaded=False)) as client:
        for _ in range(1000 + 5):
            client.record("event", True)

        assert client.flush(until="stored")
        assert losses(client) == {"queue_full": 5, "frozen": 1000 - PER_DAY}


# -- disks and folders -----------------------------------------------------------------------------


def test_losses_outlive_a_full_disk(tmp_path: Path) -> None:
    """What could not be counted now is counted later."""
    with closing(client_of(NOBODY, tmp_path, threaded=False)) as client:
        client.record("event", True)
        with patch.object(worker_of(client).recorder.state, "lose", side_effect=StateError("full")):
            assert not client.flush(until="stored")

        assert losses(client) == {"no_consent": 1}


@pytest.mark.parametrize(
    "error",
    [None, PermissionError(13, "no"), sqlite3.DatabaseError("odd"), RuntimeError("no home")],
)
def test_a_state_that_cannot_be_opened_is_an_error_only_in_strict_mode(
    error: Exception | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below a file there is no folder. Every call works, and what is recorded counts as lost."""
    (tmp_path / "file").write_text("a file")
    if error:
        monkeypatch.setattr(session_module, "open_state", Mock(side_effect=error))
    client = client_of(NOBODY, tmp_path / "file")
    client.consent(True)
    client.record("event", True)
    client.record("event", True)

    assert client.consented is None
    assert client.unasked() == []
    assert not client.flush(0.1)
    assert losses(client) == {"no_state": 2}
    client.forget()
    client.close()
    with pytest.raises(type(error) if error else StateError):
        client_of(NOBODY, tmp_path / "file", strict=True)


@pytest.mark.parametrize("name", ["missing.toml", "folder", "binary.toml"])
def test_definitions_that_cannot_be_read_are_an_error_only_in_strict_mode(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary.toml").write_bytes(bytes(range(256)))
    client = Client(NOBODY, collections=tmp_path / name, state_dir=tmp_path / "state")
    client.consent(True)
    client.record("event", True)
    client.close()

    assert client.explain("event").reasons
    with pytest.raises(VeilcountError):
        Client(NOBODY, collections=tmp_path / name, state_dir=tmp_path / "state", strict=True)


class AnyClock:
    """A clock that shows any number, also such as no `datetime` holds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def now(self) -> float:
        return self.seconds


@pytest.mark.parametrize("odd", [math.nan, 253_402_300_800.0], ids=["no number", "year 10000"])
def test_the_thread_outlives_an_odd_clock(odd: float, tmp_path: Path, sink: Server) -> None:
    """It waits, and works when the clock does. No call raises meanwhile."""
    clock = AnyClock(odd)
    with closing(consenting(sink.url, tmp_path, clock=clock)) as client:
        for _ in range(3):
            client.record("event", True)
            time.sleep(0.05)
        assert client.explain("event").reasons
        assert client.receipt().text()
        thread = worker_of(client)._process.thread
        assert thread is not None
        clock.seconds = START
        client.record("event", True)

        assert client.flush(60)
        assert len(sink.seen) == 1
        assert worker_of(client)._process.thread is thread
        assert thread.is_alive()


# -- threads, network, files, logs -----------------------------------------------------------------


def test_no_thread_before_a_record_and_no_network_before_a_consent(
    tmp_path: Path, sink: Server
) -> None:
    """A recorded value waits for a consent, which another process may store; nothing is sent."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "veilcount.db").write_bytes(b"junk" * 4096)  # a loss to report
    before = set(threading.enumerate())
    with closing(client_of(sink.url, tmp_path)) as client:
        client.receipt()
        client.explain("event")
        assert set(threading.enumerate()) <= before

        client.record("event", True)
        client.flush(0.2)
        client.forget()
        client.flush(0.2)
    assert not sink.connections


def test_the_first_record_starts_one_daemon_thread_that_delivers(
    tmp_path: Path, sink: Server
) -> None:
    """Without a flush; and a closed client leaves no file open, as often as an app likes."""
    for number in range(3):
        before = set(threading.enumerate())
        with closing(consenting(sink.url, tmp_path / str(number))) as client:
            assert set(threading.enumerate()) <= before
            for _ in range(2):
                client.record("event", True)
            new = set(threading.enumerate()) - before
            [thread] = [each for each in new if each.name == "veilcount"]
            assert thread.daemon
            assert server_fixtures.wait_until(lambda: len(sink.seen) == 2 * number + 2)  # noqa: B023
        assert not thread.is_alive()

    assert server_fixtures.wait_until(lambda: not open_files(tmp_path))


def test_a_delivery_that_ends_after_the_client_leaves_no_file_open(
    tmp_path: Path, sink: Server
) -> None:
    """Its reply came just before, and is stored just after."""
    client = consenting(sink.url, tmp_path)
    uploader, replied, closed = worker_of(client).uploader, threading.Event(), threading.Event()

    def store_later(*_: object) -> None:
        replied.set()
        assert closed.wait(60)

    with patch.object(uploader.replies, "add", store_later):
        client.record("event", True)
        assert replied.wait(60)
        client.close()
        assert not open_files(tmp_path)
        closed.set()
        assert server_fixtures.wait_until(lambda: not uploader.pool.is_busy)

    assert not open_files(tmp_path)


def test_a_message_is_logged_once_and_holds_no_value(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A loop that records into nothing, or under no name at all, does not fill the log."""
    with (
        caplog.at_level(logging.DEBUG, "veilcount"),
        closing(consenting(NOBODY, tmp_path, threaded=False)) as client,
    ):
        for _ in range(100):
            client.record("unheard_of", MARKED)
        assert len(caplog.records) == 1
        mistakes: list[Any] = [
            "",
            None,
            7,
            ["a", "list"],
            {},
            Mock(__str__=Mock(side_effect=RuntimeError)),
        ]
        for name in mistakes:
            client.record(name, MARKED)

    assert MARKED not in caplog.text
