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
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple

import pytest
import requests

from veilcount_aggregator.api.request_metrics import ANSWERED
from veilcount_aggregator.auth.api_keys import ApiKey, Role, create_key, revoke_key
from veilcount_aggregator.catalog.definitions import (
    DefinitionSource,
    add_definitions,
    load_catalog,
)
from veilcount_aggregator.server.worker_supervisor import DRAIN_SECONDS
from veilcount_aggregator.store import Store, open_store
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
    """Return the one collection of a file."""
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


@contextmanager
def looked_into(url: str) -> Iterator[Store]:
    """Open a store beside its servers."""
    store = open_store(url)
    try:
        yield store
    finally:
        store.close()


def counted(url: str) -> int:
    """Return how many reports a store has counted."""
    with looked_into(url) as store:
        return sum(
            sum(store.report_counts(each).values()) for each in load_catalog(store).series.values()
        )


def answered(url: str) -> int:
    """Return the store's count of requests to the report endpoint."""
    with looked_into(url) as store:
        noted = store.service_counts().items()
    return sum(n for note, n in noted if (note.what, note.word[:8]) == (ANSWERED, "reports:"))


def new_store(folder: Path) -> str:
    """Return where a new store is that knows one collection."""
    url = f"sqlite:///{folder}/store.db"
    made = open_store(url, make=True)
    add_definitions(made, DefinitionSource(KNOWN), datetime.now(UTC), "test")
    made.close()
    return url


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Where a store is that knows one collection."""
    return new_store(tmp_path)


class Pair(NamedTuple):
    """A store, its server of two workers, and an analyst's key."""

    store: str
    server: Server
    key: ApiKey
    secret: str


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """For what leaves the server as it is."""
    folder = tmp_path_factory.mktemp("pair")
    url = new_store(folder)
    with looked_into(url) as records:
        key, secret = create_key(records, Role.ANALYST, "", datetime.now(UTC))
    with Server(url, folder, "--workers", "2") as server:
        yield Pair(url, server, key, secret)


@contextmanager
def slow_commits(tmp_path: Path) -> Iterator[None]:
    """Hold the lock that processes write under: their commits wait, as on a slow disk."""
    with (tmp_path / "store.db-lock").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def polled(ask: Callable[[], int], times: int = 24) -> set[int]:
    """Return the statuses of many requests: one worker of two takes all once in 10^7 times."""
    return {ask() for _ in range(times)}


# -- while it serves -------------------------------------------------------------------------------


def test_it_says_where_from_what_and_how_it_serves(pair: Pair) -> None:
    store, server, *_ = pair

    assert server.ready == {
        "bind": server.url,
        "store": store,
        "durable": "durable: WAL, synchronous=FULL",
        "workers": 2,
        "intake": "open",
    }
    assert len(server.workers()) == 2


def test_development_makes_the_store_and_loads_the_definitions(tmp_path: Path) -> None:
    file = tmp_path / "collections.toml"
    file.write_text(KNOWN)

    with Server(
        f"sqlite:///{tmp_path}/new.db", tmp_path, "--dev", "--collections", str(file)
    ) as server:
        assert send(server.url, body(collection())).json() == COUNTED


def test_a_revoked_key_soon_opens_nothing_in_any_worker(pair: Pair) -> None:
    headers = {"Authorization": f"Bearer {pair.secret}", "Connection": "close"}

    def ask() -> int:
        return pair.server.ask("GET", "/v1/collections", headers=headers).status_code

    before = polled(ask)
    with looked_into(pair.store) as records:
        revoke_key(records, pair.key.id, datetime.now(UTC))
    wait_until(lambda: 200 not in polled(ask))

    assert before == {200}
    assert ask() in {401, 429}  # many guesses are not answered in words


def test_definitions_reach_all_workers_without_a_restart(pair: Pair) -> None:
    store, server, *_ = pair
    other = collection(FILE.format("spelling"))

    def ask() -> str:
        (verdict,) = send(server.url, body(other)).json()["verdicts"]
        return str(verdict)

    def seen() -> set[str]:
        return {ask() for _ in range(24)}

    before = seen()
    with looked_into(store) as records:
        source = DefinitionSource(FILE.format("spelling"))
        add_definitions(records, source, datetime.now(UTC), "test")
    wait_until(lambda: seen() == {"counted"})

    assert before == {"unknown_collection"}


def test_two_servers_on_one_store_count_a_report_once(store: str, tmp_path: Path) -> None:
    sent = [body(collection()) for _ in range(8)]
    with Server(store, tmp_path) as one, Server(store, tmp_path) as other:
        first = [send(one.url, each).json()["verdicts"] for each in sent]
        again = [send(other.url, each).json()["verdicts"] for each in sent]

    assert first == [["counted"]] * 8
    assert again == [["duplicate"]] * 8
    assert counted(store) == 8


def test_it_serves_on_a_socket_in_the_file_system(store: str, tmp_path: Path) -> None:
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


# -- how it ends -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "how",
    [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.full)],
    ids=lambda how: how.name,
)
def test_what_is_in_flight_is_finished(store: str, tmp_path: Path, how: signal.Signals) -> None:
    """Commits are slow; requests wait for them; the server is asked to end; all are answered."""
    with Server(store, tmp_path, "--workers", "2") as server, ThreadPoolExecutor(8) as devices:
        with slow_commits(tmp_path):
            waiting = [devices.submit(send, server.url, body(collection())) for _ in range(8)]
            time.sleep(0.5)
            os.killpg(server.pid, how)  # as Ctrl-C and systemd do: to the workers as well
            time.sleep(0.5)
            unanswered = not any(each.done() for each in waiting)
        answers = [each.result().json() for each in waiting]
        code = server.process.wait(DRAIN_SECONDS)

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


def test_a_killed_worker_is_replaced_and_nothing_acknowledged_is_lost(
    store: str, tmp_path: Path
) -> None:
    """Several times in a row, too."""
    with Server(store, tmp_path, "--workers", "2") as server:
        load = Load(server.url, devices=4)
        for _ in range(3):
            killed = server.workers()[0]
            os.kill(killed, signal.SIGKILL)
            wait_until(lambda killed=killed: {killed} != {*server.workers()} & {killed})  # type: ignore[misc]
        wait_until(lambda: len(server.workers()) == 2)
        wait_until(lambda: listens(server.port))  # on a busy machine both may still be starting
        load.stop()
        answers = [send(server.url, body(collection())).json() for _ in range(8)]

    assert answers == [COUNTED] * 8
    # A worker may be killed between its commit and its reply: then a device asks again.
    assert 0 <= counted(store) - load.acknowledged - 8 <= 3 * 4


def test_workers_end_with_a_server_that_is_killed(store: str, tmp_path: Path) -> None:
    """None of them holds the port for ever."""
    server = Server(store, tmp_path, "--workers", "2")
    os.kill(server.pid, signal.SIGKILL)
    server.process.wait()

    wait_until(lambda: not listens(server.port))
    server.stop()


@pytest.mark.full  # tests/security/test_limits.py holds the same, and more, in half the time
def test_a_device_that_never_finishes_its_body_keeps_nobody(store: str, tmp_path: Path) -> None:
    server = Server(store, tmp_path)
    with socket.create_connection((HOST, server.port)) as slow:
        slow.sendall(b"POST /v1/reports HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\nVC")
        time.sleep(0.2)
        begun = time.monotonic()
        code = server.stop()

    assert code == 0
    assert time.monotonic() - begun < DRAIN_SECONDS + 4


def test_the_figures_of_the_last_second_are_written(store: str, tmp_path: Path) -> None:
    with Server(store, tmp_path) as server:
        for _ in range(5):
            send(server.url, body(collection()))

    assert answered(store) == 5


def test_any_wsgi_server_may_serve_it_and_fork_after_loading(store: str, tmp_path: Path) -> None:
    """Under gunicorn, which loads it once: each worker opens files of its own, and drains."""
    port = free_port()
    command = ["-m", "gunicorn", "--preload", "--no-control-socket", "-w", "2", "-k", "gthread"]
    with (tmp_path / "gunicorn.log").open("wb") as log:
        process = subprocess.Popen(
            [
                sys.executable,
                *command,
                "-b",
                f"{HOST}:{port}",
                "veilcount_aggregator.server.wsgi:app",
            ],
            stdout=log,
            stderr=log,
            env=os.environ | {"VEILCOUNT_STORE": store, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
    wait_until(lambda: listens(port))
    with ThreadPoolExecutor(8) as devices:
        url = f"http://{HOST}:{port}"
        answers = [
            each.json() for each in devices.map(lambda _: send(url, body(collection())), range(24))
        ]
    process.terminate()
    code = process.wait(30)

    assert answers == [COUNTED] * 24
    assert (code, counted(store), answered(store)) == (0, 24, 24)
