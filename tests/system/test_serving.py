"""`veilcount serve`, for real: what it does while it serves, and how it ends."""

from __future__ import annotations

import fcntl
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path

import pytest
import requests

from veilcount_aggregator.api.request_metrics import ANSWERED
from veilcount_aggregator.auth.api_keys import Role, create_key, revoke_key
from veilcount_aggregator.catalog.definitions import DefinitionSource, add_definitions, load_catalog
from veilcount_aggregator.store import open_store
from veilcount_shared import Collection, parse_collections
from veilcount_shared.report import PSEUDONYM_BYTES, Batch, Report
from veilcount_shared.wire import BINARY_TYPE, encode_binary

from .server import HOST, Server, free_port, listens, wait_until

YESTERDAY = datetime.now(UTC).date() - timedelta(days=1)
FILE = f"""
app = "acme-editor"
[{{}}]
question = "Is autosave on?"
boolean = true
epsilon = 1
unit = "day"
from = {YESTERDAY}
until = {YESTERDAY + timedelta(days=60)}
"""
KNOWN = FILE.format("autosave")
COUNTED = {"verdicts": ["counted"]}


def collection(text: str = KNOWN) -> Collection:
    (only,) = parse_collections(text, lambda _: []).values()
    return only


def body(requested: Collection) -> bytes:
    """Return what a device that was never heard of sends."""
    report = Report(requested.fingerprint, 0, 0, secrets.token_bytes(PSEUDONYM_BYTES), 0, b"\1")
    return encode_binary(Batch((report,)))


def send(url: str, what: bytes) -> requests.Response:
    """Send it on a connection of its own, which any worker may take."""
    headers = {"Content-Type": BINARY_TYPE, "Connection": "close"}
    with requests.Session() as session:
        session.trust_env = False
        return session.post(f"{url}/v1/reports", what, headers=headers, timeout=30)


def counted(url: str) -> int:
    with closing(open_store(url)) as store:
        known = load_catalog(store).series.values()
        return sum(sum(store.report_counts(each).values()) for each in known)


def answered(url: str) -> int:
    """Return the store's count of requests to the report endpoint."""
    with closing(open_store(url)) as store:
        noted = store.service_counts().items()
    return sum(n for note, n in noted if (note.what, note.word[:8]) == (ANSWERED, "reports:"))


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Where a new store is that knows one collection."""
    url = f"sqlite:///{tmp_path}/store.db"
    with closing(open_store(url, make=True)) as made:
        add_definitions(made, DefinitionSource(KNOWN), datetime.now(UTC), "test")
    return url


@contextmanager
def slow_commits(tmp_path: Path) -> Iterator[None]:
    """Hold the lock that processes write under: their commits wait, as on a slow disk."""
    with (tmp_path / "store.db-lock").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def polled(ask: Callable[[], object]) -> set[object]:
    """Return the results of many requests: one worker of two takes all once in 10^7 times."""
    return {ask() for _ in range(24)}


# -- while it serves -------------------------------------------------------------------------------


def test_all_workers_hear_of_changes_and_end_with_a_server_that_is_killed(
    store: str, tmp_path: Path
) -> None:
    """Of a revoked key and new definitions, without a restart; none holds the port for ever."""
    with closing(open_store(store)) as records:
        key, secret = create_key(records, Role.ANALYST, "", datetime.now(UTC))
    headers = {"Authorization": f"Bearer {secret}", "Connection": "close"}
    text = FILE.format("spelling")
    with Server(store, tmp_path, "--workers", "2") as server:

        def status() -> int:
            return server.ask("GET", "/v1/collections", headers=headers).status_code

        def verdict() -> str:
            (only,) = send(server.url, body(collection(text))).json()["verdicts"]
            return str(only)

        before = polled(status) | polled(verdict)
        with closing(open_store(store)) as records:
            revoke_key(records, key.id, datetime.now(UTC))
            add_definitions(records, DefinitionSource(text), datetime.now(UTC), "test")
        wait_until(lambda: polled(status) <= {401, 429}, 60)  # of many guesses, some are 429
        wait_until(lambda: polled(verdict) == {"counted"}, 60)

        assert before == {200, "unknown_collection"}
        assert server.ready == {
            "bind": server.url,
            "store": store,
            "durable": "durable: WAL, synchronous=FULL",
            "workers": 2,
            "intake": "open",
        }
        assert len(server.workers()) == 2
        os.kill(server.pid, signal.SIGKILL)
        server.process.wait()
    wait_until(lambda: not listens(server.port), 60)


def test_on_a_unix_socket_the_figures_of_the_last_second_are_written(
    store: str, tmp_path: Path
) -> None:
    path = tmp_path / "veilcount.sock"
    with Server(store, tmp_path, "--bind", f"unix:{path}") as server:
        connection = HTTPConnection("veilcount")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(path))
        connection.request("POST", "/v1/reports", body(collection()), {"Content-Type": BINARY_TYPE})
        answer = connection.getresponse().read()
        connection.close()

        assert server.ready["bind"] == f"unix:{path}"
        assert answer == b'{"verdicts":["counted"]}'
    assert not path.exists()
    assert answered(store) == 1


# -- how it ends -----------------------------------------------------------------------------------


UNFINISHED = b"POST /v1/reports HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\nVC"


@pytest.mark.parametrize(
    ("how", "sent"),
    [
        pytest.param(signal.SIGTERM, b"", id="SIGTERM"),
        pytest.param(signal.SIGINT, UNFINISHED, id="SIGINT", marks=pytest.mark.full),
    ],
)
def test_what_is_in_flight_is_finished(
    store: str, tmp_path: Path, how: signal.Signals, sent: bytes
) -> None:
    """Commits are slow; requests wait for them; the server is asked to end; all are answered.

    A device that never finishes its body does not keep it from ending.
    """
    with (
        Server(store, tmp_path, "--workers", "2") as server,
        ThreadPoolExecutor(8) as devices,
        socket.create_connection((HOST, server.port)) as other,
    ):
        other.sendall(sent)
        with slow_commits(tmp_path):
            waiting = [devices.submit(send, server.url, body(collection())) for _ in range(8)]
            time.sleep(0.5)
            os.killpg(server.pid, how)  # as Ctrl-C and systemd do: to the workers as well
            time.sleep(0.5)
            unanswered = not any(each.done() for each in waiting)
        answers = [each.result().json() for each in waiting]
        code = server.process.wait(60)

    assert unanswered
    assert answers == [COUNTED] * 8
    assert counted(store) == 8
    assert code == 0


class Load:
    """Devices that send one report each, until stopped or without a response."""

    def __init__(self, url: str, devices: int = 8) -> None:
        """Begin."""
        self.acknowledged = 0
        self._url = url
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._send) for _ in range(devices)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _send(self) -> None:
        while not self._stopping.is_set():
            try:
                answer = send(self._url, body(collection()))
            except requests.ConnectionError:
                time.sleep(0.01)
                continue
            assert answer.json() == COUNTED
            with self._lock:
                self.acknowledged += 1


def test_a_server_that_ends_in_mid_load_loses_and_drops_nothing(store: str, tmp_path: Path) -> None:
    """What was acknowledged is counted, and what was counted was acknowledged."""
    server = Server(store, tmp_path, "--workers", "2")
    load = Load(server.url)
    wait_until(lambda: load.acknowledged > 100)

    code = server.stop()
    load.stop()

    assert code == 0
    assert counted(store) == load.acknowledged


def test_any_wsgi_server_may_serve_it_and_fork_after_loading(store: str, tmp_path: Path) -> None:
    """Under gunicorn, which loads it once: each worker opens files of its own, and drains."""
    place = f"{HOST}:{free_port()}"
    command = [sys.executable, "-m", "gunicorn", "--preload", "--no-control-socket", "-b", place]
    workers = ["-w", "2", "-k", "gthread", "veilcount_aggregator.server.wsgi:app"]
    environ = os.environ | {"VEILCOUNT_STORE": store, "PYTHONPATH": os.pathsep.join(sys.path)}
    with (tmp_path / "gunicorn.log").open("wb") as log:
        process = subprocess.Popen([*command, *workers], stdout=log, stderr=log, env=environ)
    wait_until(lambda: listens(int(place.partition(":")[2])))
    with ThreadPoolExecutor(8) as devices:
        replies = devices.map(lambda _: send(f"http://{place}", body(collection())), range(24))
        answers = [each.json() for each in replies]
    process.terminate()
    code = process.wait(30)

    assert answers == [COUNTED] * 24
    assert (code, counted(store), answered(store)) == (0, 24, 24)
