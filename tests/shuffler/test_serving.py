"""The server as processes: over HTTP, ended and killed, with its memory, files and log scanned."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.processes import family, free_port, wait_until
from veilcount_shared.shuffling.batch_record import BatchState
from veilcount_shared.shuffling.envelope import ENVELOPE_TYPE, Envelope
from veilcount_shuffler.crowd_folder import SECRET
from veilcount_shuffler.errors import NotTaken

from .parties import CheckingAggregator, HandClock, ShufflerStore, messages

GRACE = 3600  # seconds, in development; a test ends it


class AggregatorServer(ThreadingHTTPServer):
    """An aggregator over HTTP that checks what it gets."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.checking: CheckingAggregator | None = None
        self.keys: set[str] = set()
        self.answers_lost = 0  # parts that are taken and not acknowledged
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: AggregatorServer

    def do_GET(self) -> None:
        self._answer(200, {"status": "ok"})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.keys.add(self.headers.get("Authorization", ""))
        checking = self.server.checking
        assert checking is not None
        if self.path == "/v1/batch-records":
            checking.take_record(body)
            self._answer(200, {})
            return
        try:
            missing = checking.take_part(body)
        except NotTaken as error:
            self._answer(error.status, {})
            return
        if self.server.answers_lost:
            self.server.answers_lost -= 1
            return
        self._answer(200, {"missing": missing})

    def _answer(self, status: int, document: object) -> None:
        raw = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Say nothing."""


class Served:
    """A shuffler's processes, its store and its aggregator."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.aggregator = AggregatorServer()
        self.store = ShufflerStore(folder / "store", HandClock(), target=self.aggregator.url)
        self.aggregator.checking = self.store.aggregator
        (folder / "witness").mkdir()
        self.port = free_port()
        self.log = folder / "log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def checking(self) -> CheckingAggregator:
        """What the aggregator has."""
        return self.store.aggregator

    def start(self, *options: str) -> None:
        """Start the server, and wait until it listens."""
        command = [sys.executable, "-m", "veilcount_aggregator", "shuffler", "serve"]
        command += ["--store", str(self.folder / "store"), "--bind", f"127.0.0.1:{self.port}"]
        command += ["--witness", str(self.folder / "witness"), "--rate", "0"]
        command += ["--dev-only", "--grace", str(GRACE), *options]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stderr=log, stdout=log)
        wait_until(self._listens)

    def end(self, number: int = signal.SIGTERM) -> int:
        """End the server; return its exit code."""
        assert self.process is not None
        if number == signal.SIGKILL:
            for pid in self.pids():
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
        self.process.send_signal(number)
        code = self.process.wait(120)
        wait_until(lambda: not self._accepts())
        return code

    def pids(self) -> list[int]:
        """Return its processes."""
        assert self.process is not None
        return family(self.process.pid)

    def post(self, body: bytes, content_type: str = ENVELOPE_TYPE, path: str = "") -> int:
        """Post a body; return the status."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            headers = {"Content-Type": content_type}
            connection.request("POST", path or "/v1/envelopes", body, headers)
            return connection.getresponse().status
        finally:
            connection.close()

    def hold(self, envelopes: list[Envelope]) -> None:
        """Send envelopes, each of which is acknowledged."""
        bodies = [envelope.encode() for envelope in envelopes]
        with ThreadPoolExecutor(8) as devices:  # they share commits
            assert {*devices.map(self.post, bodies)} == {202}

    def end_grace(self) -> None:
        """Have what is held leave: in development the age of its secret says when."""
        for secret in self.store.settings.crowds.glob(f"*/{SECRET}"):
            os.utime(secret, (0, 0))

    def _accepts(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def _listens(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()
        return self._accepts()


@contextmanager
def served(folder: Path) -> Iterator[Served]:
    """Have a server that is not started yet, and nothing of it left at the end."""
    server = Served(folder)
    try:
        yield server
    finally:
        if server.process is not None and server.process.poll() is None:
            server.end(signal.SIGKILL)
        server.aggregator.shutdown()
        server.aggregator.server_close()
        server.store.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    """A server that is not started yet."""
    with served(tmp_path) as server:
        yield server


def memory_has(pid: int, needles: list[bytes]) -> bool:
    """Return whether the writable memory of a process has one of these bytes."""
    with suppress(OSError), Path(f"/proc/{pid}/mem").open("rb") as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            bounds, flags, *_ = line.split()
            start, end = (int(bound, 16) for bound in bounds.split("-"))
            if flags.startswith("rw"):
                with suppress(OSError, ValueError, OverflowError):
                    memory.seek(start)
                    content = memory.read(end - start)
                    if any(needle in content for needle in needles):
                        return True
    return False


def test_a_crowd_travels_and_nothing_of_it_is_left(server: Served) -> None:
    """In files, log and the memory of every process, worker and server alike."""
    crowd, envelopes = server.store.crowd, messages(server.store.crowd, 120)
    server.start()
    server.hold([*envelopes, envelopes[0]])
    first_pids = server.pids()
    needles = [envelope.sealed[40:72] for envelope in (envelopes[0], *envelopes[-12:])]
    assert any(needle in path.read_bytes() for needle in needles for path in files(server))
    assert any(memory_has(pid, needles) for pid in server.pids()[1:])  # it sees what is there
    secret = (server.store.settings.crowds / crowd.crowd_id.hex() / SECRET).read_bytes()
    server.end_grace()
    wait_until(lambda: server.checking.records)
    wait_until(lambda: set(first_pids) & set(server.pids()) <= set(lasting(server)))

    assert sum(server.checking.messages(crowd).values()) == 120 + 142
    assert server.checking.states() == [BatchState.HANDED_OVER]
    needles.append(secret)
    assert not [path for path in files(server) if any(n in path.read_bytes() for n in needles)]
    assert not any(memory_has(pid, needles) for pid in server.pids())
    assert b"127.0.0.1" not in server.log.read_bytes().partition(b"\n")[2]
    assert server.aggregator.keys == {"Bearer key"}
    limits = Path(f"/proc/{server.pids()[-1]}/limits").read_text()
    assert next(line for line in limits.splitlines() if "core" in line).split()[4:6] == ["0", "0"]
    assert server.post(envelopes[0].encode()) == 410
    assert server.end() == 0


def lasting(server: Served) -> list[int]:
    """Return the processes that have no report in memory, ever, and so need not end."""
    pids = server.pids()
    tracker = b"resource_tracker"
    return [pid for pid in pids if pid == pids[0] or tracker in command(pid)]


def command(pid: int) -> bytes:
    """Return the command of a process; of one that has ended, none."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def files(server: Served) -> list[Path]:
    """Return what is on the disk of a server."""
    return [path for path in server.folder.rglob("*") if path.is_file()]


def test_the_end_of_a_server_hands_nothing_over(server: Served) -> None:
    """It ends orderly; started again it goes on, and acknowledges the same bytes again."""
    envelopes = messages(server.store.crowd, 120)
    server.start()
    server.hold(envelopes[:60])
    assert server.end() == 0
    assert not server.checking.heads
    server.start()
    server.hold(envelopes[50:])
    server.end_grace()
    wait_until(lambda: server.checking.records)

    assert server.checking.heads[server.store.crowd.crowd_id].reports == 120


@pytest.mark.parametrize("lost", [1, 2])
def test_a_server_that_is_killed_goes_on(server: Served, lost: int) -> None:
    """Killed while it holds, and again when the answer to a part was lost."""
    envelopes = messages(server.store.crowd, 130)
    server.start()
    server.hold(envelopes[:100])
    server.end(signal.SIGKILL)
    server.aggregator.answers_lost = lost
    server.start()
    server.hold(envelopes[100:])
    server.end_grace()
    wait_until(lambda: server.checking.heads)
    server.end(signal.SIGKILL)
    server.start()
    wait_until(lambda: server.checking.records)
    crowd = server.store.crowd

    assert server.checking.repeated >= lost
    assert sum(server.checking.messages(crowd).values()) == 130 + 142
    assert server.checking.states() == [BatchState.HANDED_OVER]


def test_what_is_no_envelope_is_refused(server: Served) -> None:
    (envelope,) = messages(server.store.crowd, 1)
    raw = envelope.encode()
    server.start("--rate", "9")

    assert server.post(raw, "application/json") == 415
    assert server.post(raw, path="/v1/other") == 404
    assert server.post(bytes(2000)) == 413
    assert server.post(b"VE") == 400
    assert server.post(b"VE\x02" + raw[3:]) == 400
    assert server.post(Envelope(bytes(16), 0, envelope.sealed).encode()) == 404
    assert server.post(Envelope(envelope.crowd_id, 0, envelope.sealed[1:]).encode()) == 400
    assert not list(server.store.settings.crowds.glob("*/*"))
    statuses = [server.post(raw) for _ in range(12)]
    assert statuses == [202] * 5 + [429] * 7  # nine an hour, four of them were refused above


def test_a_store_that_was_restored_is_not_started(server: Served) -> None:
    server.start()
    server.hold(messages(server.store.crowd, 3))
    server.end(signal.SIGKILL)
    for path in server.store.settings.crowds.glob("crowds.sqlite*"):
        path.unlink()
    with pytest.raises(AssertionError, match="knows less than its witness"):
        server.start()
    server.start()

    assert server.post(messages(server.store.crowd, 1)[0].encode()) == 410
    server.end_grace()
    wait_until(lambda: server.checking.states() == [BatchState.LOST])


def test_seconds_pass_in_development_only(server: Served) -> None:
    """Without --dev-only there is no grace of seconds, nor one without the other."""
    command = [sys.executable, "-m", "veilcount_aggregator", "shuffler", "serve"]
    command += ["--store", str(server.folder / "store")]
    for options in (["--grace", "3"], ["--dev-only"]):
        ended = subprocess.run(command + options, capture_output=True, timeout=120, check=False)
        assert ended.returncode == 2
        assert b"--dev-only --grace SECONDS" in ended.stderr
