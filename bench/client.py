"""What the client costs the app that it lives in: time, memory, disk, wire, start and end."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any, Self

from veilcount_shared.wire import decode_binary

from .table import Row, Table

ROOT = Path(__file__).parents[1]
COLUMNS = {"what": "", "value": ".4g", "where": "", "target": "", "met": ""}
NOTES = (
    "record(): wall time, every call timed, the collector accepts connections and never answers;",
    "  memory: by how much the process's peak grew, all calls at once, without a pause.",
    "wire: everything that was sent, heads and padding included, without TCP and TLS.",
    "exit: wall time from the script's last line to the end of what the client does then.",
    "import: CPU time, with compiled modules, as pip leaves them; the median of {} processes.",
)
RECORD, GROWTH, IMPORT, EXIT = 50.0, 20.0, 100.0, 50.0

Behaviour = Callable[["Listener", socket.socket], None]


def run(*, quick: bool) -> Table:
    """Measure each figure in a process of its own."""
    calls, reports, alone, times = (10_000, 2_000, 50, 5) if quick else (100_000, 20_000, 300, 11)
    with Processes() as processes:
        rows = [
            *_recording(processes, calls),
            *_sending(processes, reports, alone),
            *_start_and_end(processes, times),
        ]
    notes = tuple(note.format(times) for note in NOTES)
    return Table("client: what it costs the app", COLUMNS, rows, notes)


def _recording(processes: Processes, calls: int) -> Iterator[Row]:
    with Listener(_silent) as silent:
        persons = processes.run("record_persons", silent.url, calls)
        events = processes.run("record_events", silent.url, calls)
    for where, figures in (("persons", persons), ("events", events)):
        place = f"{calls:,} calls, {where}"
        yield _row("record(), us, median", figures["p50"], place)
        yield _row("record(), us, 99 %", figures["p99"], place, RECORD)
        yield _row("record(), us, worst", figures["worst"], place)
        yield _row("memory, MB", figures["growth"] / 1e6, place, GROWTH)
    yield _row("state, kB for 1,000 queued reports", events["queued"], "events")
    yield _row("state, MB for 1e5 persons", persons["consented"] / 10, "consented")
    yield _row("state, MB for 1e5 persons", persons["stored"] / 10, "and a queued report each")


def _sending(processes: Processes, reports: int, alone: int) -> Iterator[Row]:
    for name, number, where in (
        ("send_persons", reports, f"{reports:,} persons, one report each"),
        ("send_alone", alone, "one person, one report a body"),
    ):
        with Listener(_counting) as sink:
            figures = processes.run(name, sink.url, number)
        yield _row("reports/s", figures["rate"], where)
        yield _row("bytes on the wire a report", sink.heard / sink.reports, where)
        assert sink.reports == number, (sink.reports, number)


def _start_and_end(processes: Processes, times: int) -> Iterator[Row]:
    processes.load("veilcount_client")  # compiles
    yield _row(
        "import, ms",
        median(processes.load("veilcount_client") for _ in range(times)),
        "import veilcount_client",
        IMPORT,
    )
    with Listener(_silent) as silent:
        exits = [processes.run("leave", silent.url, 100)["exit"] for _ in range(times)]
    yield _row("exit, ms", median(exits), "in a request, 100 records queued", EXIT)
    yield _row("exit, ms, worst", max(exits), f"of {times}")


def _row(what: str, value: float, where: str, limit: float | None = None) -> Row:
    if limit is None:
        return {"what": what, "value": value, "where": where}
    met = value < limit
    return {"what": what, "value": value, "where": where, "target": f"< {limit:g}", "met": met}


# -- the processes ---------------------------------------------------------------------------------


class Processes:
    """Runs what is measured, each with a fresh state and with compiled modules."""

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory()
        self._number = 0
        return self

    def __exit__(self, *error: object) -> None:
        self._folder.cleanup()

    def run(self, name: str, url: str, number: int) -> dict[str, float]:
        """Run one; return its figures."""
        self._number += 1
        state = f"{self._folder.name}/{self._number}"
        output = self._python("-m", "bench.client_worker", name, url, state, str(number))
        figures: dict[str, float] = json.loads(output)
        return figures

    def load(self, package: str) -> float:
        """Return how many milliseconds of CPU it takes to import a package."""
        code = f"import time; t = time.process_time(); import {package}"
        return float(self._python("-c", f"{code}; print((time.process_time() - t) * 1e3)"))

    def _python(self, *order: str) -> str:
        python_path = (ROOT, ROOT / "client", ROOT / "shared")
        environment: dict[str, Any] = {
            **os.environ,
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": f"{self._folder.name}/compiled",
            "PYTHONPATH": os.pathsep.join(map(str, python_path)),
            "NO_PROXY": "127.0.0.1",
        }
        done = subprocess.run(
            [sys.executable, *order],
            check=True,
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=environment,
            timeout=600,
        )
        return done.stdout


# -- the servers -----------------------------------------------------------------------------------


class Listener:
    """Accepts connections on the loopback, and treats them with one behaviour."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.heard = 0
        self.reports = 0
        self._behaviour = behaviour
        self.stopped = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stopped.set()
        self._socket.close()

    def _listen(self) -> None:
        with suppress(OSError):
            while not self.stopped.is_set():
                connection, _ = self._socket.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            self._behaviour(self, connection)


def _silent(listener: Listener, connection: socket.socket) -> None:
    listener.stopped.wait()


def _counting(listener: Listener, connection: socket.socket) -> None:
    """Read one request, count what it holds."""
    with connection.makefile("rb") as reader:
        head = list(iter(reader.readline, b"\r\n"))
        lengths = (
            line.partition(b":")[2] for line in head if line.lower().startswith(b"content-l")
        )
        body = reader.read(int(next(lengths)))
    reports = len(decode_binary(body).reports)
    listener.heard += sum(map(len, head)) + 2 + len(body)
    listener.reports += reports
    output = json.dumps({"verdicts": ["counted"] * reports}).encode()
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(output), output))
