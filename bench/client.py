"""What the client costs the app that it lives in: time, memory, disk, wire, start and end."""

from __future__ import annotations

import atexit
import json
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any, Self

from tests.processes import forget_peak, peak_megabytes

from veilcount_client import Client
from veilcount_client.delivery.worker import ClientWorker
from veilcount_client.state import ConsentDecision, Resumption, sqlite
from veilcount_client.state.key_derivation import person_key
from veilcount_shared import Collection, parse_collections
from veilcount_shared.wire import decode_binary

from . import separate
from .table import Row, Table, figure

NOTES = (
    "record(): wall time, every call timed, the collector accepts connections and never answers;",
    "  memory: by how much the process's peak grew, all calls at once, without a pause.",
    "wire: everything that was sent, heads and padding included, without TCP and TLS.",
    "exit: wall time from the script's last line to the end of what the client does then.",
)
RECORD, GROWTH, EXIT = 50.0, 20.0, 50.0

Behaviour = Callable[["Listener", socket.socket], None]
Figures = dict[str, float]


def run(*, quick: bool) -> Table:
    """Measure each figure in a process of its own."""
    calls, reports, alone, times = (10_000, 2_000, 50, 5) if quick else (100_000, 20_000, 300, 11)
    with tempfile.TemporaryDirectory() as name:
        processes = Processes(Path(name))
        rows = [
            *_recording(processes, calls),
            *_sending(processes, reports, alone),
            *_exit(processes, times),
        ]
    return Table("client: what it costs the app", rows, NOTES)


def _recording(processes: Processes, calls: int) -> Iterator[Row]:
    with Listener(_silent) as silent:
        persons = processes.run(record_persons, silent.url, calls)
        events = processes.run(record_events, silent.url, calls)
    for who, figures in (("persons", persons), ("events", events)):
        where = f"{calls:,} calls, {who}"
        yield figure("record(), us, median", figures["p50"], where)
        yield figure("record(), us, 99 %", figures["p99"], where, RECORD)
        yield figure("record(), us, worst", figures["worst"], where)
        yield figure("memory, MB", figures["growth"], where, GROWTH)
    yield figure("state, kB for 1,000 queued reports", events["queued"], "events")
    yield figure("state, MB for 1e5 persons", persons["consented"] / 10, "consented")
    yield figure("state, MB for 1e5 persons", persons["stored"] / 10, "and a queued report each")


def _sending(processes: Processes, reports: int, alone: int) -> Iterator[Row]:
    for function, number, where in (
        (send_persons, reports, f"{reports:,} persons, one report each"),
        (send_alone, alone, "one person, one report a body"),
    ):
        with Listener(_counting) as sink:
            figures = processes.run(function, sink.url, number)
        yield figure("reports/s", figures["rate"], where)
        yield figure("bytes on the wire a report", sink.heard / sink.reports, where)
        assert sink.reports == number, (sink.reports, number)


def _exit(processes: Processes, times: int) -> Iterator[Row]:
    with Listener(_silent) as silent:
        exits = [processes.run(leave, silent.url, 100)["exit"] for _ in range(times)]
    yield figure("exit, ms", median(exits), "in a request, 100 records queued", EXIT)
    yield figure("exit, ms, worst", max(exits), f"of {times}")


@dataclass
class Processes:
    """Runs what is measured, each with a fresh state and with compiled modules."""

    folder: Path
    number: int = 0

    @property
    def _environ(self) -> Mapping[str, str]:
        compiled = f"{self.folder}/compiled"
        return {
            "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": compiled, "NO_PROXY": "127.0.0.1"
        }  # fmt: skip

    def run(self, function: Callable[[str, str, int], object], url: str, number: int) -> Figures:
        """Run one function; return its figures."""
        self.number += 1
        state = f"{self.folder}/{self.number}"
        figures: Figures = separate.run(function, url, state, number, environ=self._environ)
        return figures

    def cpu_ms(self, code: str) -> float:
        """Return how many milliseconds of CPU a few lines take at the start of a process."""
        code = f"import time\nt = time.process_time()\n{code}\n"
        code += "print((time.process_time() - t) * 1e3)"
        return float(separate.python("-c", code, environ=self._environ))


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


# -- what is measured, each in a process of its own ------------------------------------------------

TODAY = datetime.now(UTC).date()
EVENTS = 1000  # a day and person
TOKEN = "id {}"
FILE = """
app = "bench"
[bench]
question = "How long does it take?"
boolean = true
epsilon = 1
unit = "{}"
from = {}
until = {}
"""


def record_persons(url: str, folder: str, calls: int) -> Figures:
    """One record of each of so many persons."""
    client = client_of(url, folder, collection("day"), calls)
    consented = _size(client, folder)
    figures = _record(client, [client.person(number) for number in range(calls)], 1)
    assert client.flush(until="stored")
    stored = _size(client, folder)
    assert _answers(client) == calls
    return figures | {"consented": consented / calls, "stored": stored / calls}


def record_events(url: str, folder: str, calls: int) -> Figures:
    """So many events, as many of each person as a day holds."""
    persons, events = -(-calls // EVENTS), min(EVENTS, calls)
    client = client_of(url, folder, collection("event", EVENTS), persons)
    empty = _size(client, folder)
    figures = _record(client, [client.person(number) for number in range(persons)], events)
    assert client.flush(until="stored")
    assert _answers(client) == persons * events
    return figures | {"queued": (_size(client, folder) - empty) / (persons * events)}


def send_persons(url: str, folder: str, reports: int) -> Figures:
    """Deliver a report of each of so many persons."""
    client = client_of(url, folder, collection("day"), reports)
    people = [client.person(number) for number in range(reports)]
    start = time.perf_counter()
    for person in people:
        person.record("bench", True)
    assert client.flush(timeout=300)
    return {"rate": reports / (time.perf_counter() - start)}


def send_alone(url: str, folder: str, reports: int) -> Figures:
    """Deliver the reports of one person, a body each: every one is due before the next comes."""
    client = client_of(url, folder, collection("event", EVENTS), 0)
    seconds = 0.0
    for _ in range(reports):
        client.record("bench", True)
        assert client.flush(until="stored")
        start = time.perf_counter()
        assert client.flush(timeout=60)  # delivered: an uploader only hands to threads
        seconds += time.perf_counter() - start
    return {"rate": reports / seconds}


def leave(url: str, folder: str, calls: int) -> None:
    """End with a collector that never answers: print the time that the client takes of the exit."""
    ended: list[float] = []

    def print_exit() -> None:
        print(json.dumps({"exit": (time.perf_counter() - ended[0]) * 1e3}), flush=True)

    atexit.register(print_exit)  # before the client's own, hence run after it
    client = client_of(url, folder, collection("event", 2 * calls), 0)
    client.record("bench", True)
    time.sleep(0.3)  # it is in a request
    for _ in range(calls):
        client.record("bench", True)
    ended.append(time.perf_counter())


def collection(unit: str, per_day: int = 0) -> Collection:
    """Return a yes-or-no question."""
    return parse_collections(definition(unit, per_day), lambda _: [])["bench"]


def definition(unit: str, per_day: int = 0) -> str:
    """Return its file."""
    text = FILE.format(unit, TODAY - timedelta(days=1), TODAY + timedelta(days=5))
    return text + (f"per_day = {per_day}" if per_day else "")


def client_of(url: str, folder: str, question: Collection, persons: int) -> Client:
    """Return a client that acts for so many persons, all of whom have consented."""
    client = Client(
        url,
        collections={"bench": question},
        state_dir=folder,
        persons=persons > 0,
        jitter=0,
        key="a key",
    )
    if persons:
        _consent_all(client, question, persons)
    else:
        client.consent(True)
    return client


def _consent_all(client: Client, question: Collection, persons: int) -> None:
    """What `person(id).consent(True)` does, for all of them in one transaction."""
    state: Any = worker_of(client).state
    decision = ConsentDecision(1.0, consented=True, covered={question.fingerprint: Resumption()})
    with state._writing() as database:
        for number in range(persons):
            sqlite.consent(database, person_key(state.root, TOKEN.format(number)), decision)


def worker_of(client: Client) -> ClientWorker:
    """Return the inside of a client."""
    assert client._session.worker is not None
    return client._session.worker


def _record(client: Client, people: list[Any], events: int) -> Figures:
    """Time every call; return quantiles in microseconds, and the growth in MB."""
    clock, times = time.perf_counter_ns, [0] * (len(people) * events)
    forget_peak()  # what made the persons is not what records cost
    before = peak_megabytes()
    place = 0
    for person in people:
        for _ in range(events):
            start = clock()
            person.record("bench", True)
            times[place] = clock() - start
            place += 1
    growth = peak_megabytes() - before
    times.sort()
    figures = {f"p{share:g}": times[int(len(times) * share / 100)] / 1e3 for share in (50, 99)}
    return figures | {"worst": times[-1] / 1e3, "growth": growth}


def _size(client: Client, folder: str) -> int:
    """Return the size of the state on the disk."""
    state: Any = worker_of(client).state
    with state._reading() as database:
        database.execute("pragma wal_checkpoint(truncate)")
    return sum(path.stat().st_size for path in Path(folder).iterdir())


def _answers(client: Client) -> int:
    state: Any = worker_of(client).state
    return int(state._read("select sum(answers) from used")[0][0])
