"""Whether anything of a worker waits for its store, or for a body that does not come.

A store fails or hangs on a real server while honest devices send, and a process of its own asks for
health all the time. In the end each acknowledged report must have been counted once. Then thousands
of connections send a body byte by byte.
"""

from __future__ import annotations

import http.client
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack, closing, nullcontext
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from socket import create_connection, socket
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.engines import Engine
from tests.processes import status, syncs_delayed
from tests.system.faults.campaign import Campaign
from tests.system.faults.deployments import (
    DEPLOYMENTS,
    Deployment,
    Fault,
    filled,
    small_file_system,
)
from tests.system.faults.honest_devices import Device, Population
from tests.system.faults.store_verification import assert_consistent
from tests.system.server import HOST, Server

from veilcount_shared.report import Report
from veilcount_shared.verdict import Verdict

from .load import served
from .table import Row, Table

HEALTH, BARE = "health, worst ms", "bare"
HEALTH_MILLISECONDS, ANSWER_SECONDS, CONNECTION_KILOBYTES = 100, 4.5, 50
NOTES = (
    f"Two workers, faults of {{}} s. Met: health within {HEALTH_MILLISECONDS} ms, or twice what",
    "  a bare server took at the worst in the same run, if that is more; each device has verdicts",
    f"  or 503 within {ANSWER_SECONDS:g} s.",
    "counted again: from the end of a fault to the next verdict of any device; devices send again",
    "  after 0.2 s. Each acknowledged report must have been counted once, and no other.",
    f"drip: to one worker. Met: all devices have verdicts; at most {CONNECTION_KILOBYTES} kB each.",
)
FAULTS = {
    "sqlite": ("none", "lock held", "slow fdatasync", "file system full"),
    "redis": ("none", "Redis stopped", "Redis killed"),
    "redis-cluster": ("none", "master stopped", "master killed"),
}
DISK = 256 << 20
DEVICES, PATIENCE = 12, 30.0
SYNC_MICROSECONDS = 1_500_000
DRIPPING, DRIP_SECONDS = 10_000, 4.0
HEAD = f"POST /v1/reports HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 99\r\n\r\n".encode()


class Answer(NamedTuple):
    """What a device was answered, and when."""

    sent: float
    received: float
    accepted: bool


@dataclass
class TimedDevice(Device):
    """A device that waits for long, and keeps how long it waited."""

    patience: float = PATIENCE
    answers: list[Answer] = field(default_factory=list)

    def post(self, reports: list[Report]) -> tuple[Verdict, ...] | None:
        """Send reports."""
        sent = time.monotonic()
        verdicts = super().post(reports)
        self.answers.append(Answer(sent, time.monotonic(), verdicts is not None))
        return verdicts


class Health(NamedTuple):
    """How often health was asked for, the longest wait for it, and for a bare server meanwhile."""

    times: int
    milliseconds: float
    bare: float


def ask_health(port: int, bare: int, seconds: float) -> Health:
    """Ask both by turns for so long."""
    waits, others = [], []
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        waits.append(_health_seconds(port))
        others.append(_health_seconds(bare))
        time.sleep(0.005)
    return Health(len(waits), 1000 * max(waits), 1000 * max(others))


def _health_seconds(port: int) -> float:
    """Return how long an answer took, on a connection of its own: any worker may accept it."""
    begun = time.monotonic()
    connection = http.client.HTTPConnection(HOST, port, timeout=PATIENCE)
    connection.request("GET", "/healthz")
    assert connection.getresponse().status < 300
    connection.close()
    return time.monotonic() - begun


@dataclass(frozen=True, slots=True)
class Found:
    """What health and devices were answered from a moment to another, and afterwards."""

    health: Health
    answers: Sequence[Answer]
    again: float  # seconds until the next verdict

    @classmethod
    def measured(
        cls, devices: Sequence[TimedDevice], health: Health, begun: float, ended: float
    ) -> Found:
        """Look through what devices were answered."""
        answers = [answer for device in devices for answer in device.answers]
        later = [
            answer.received for answer in answers if answer.accepted and answer.received > ended
        ]
        struck = [answer for answer in answers if answer.received > begun and answer.sent < ended]
        return cls(health, struck, min(later, default=ended) - ended)

    @property
    def refused(self) -> int:
        """How many requests got no verdicts."""
        return sum(not answer.accepted for answer in self.answers)

    def row(self) -> Row:
        """Return it with the target of answers; that of health depends on the whole run."""
        slowest = max(answer.received - answer.sent for answer in self.answers)
        return {
            HEALTH: self.health.milliseconds,
            BARE: self.health.bare,
            "answer, worst s": slowest,
            "503": self.refused,
            "counted again, s": self.again,
            "outcome": f"{len(self.answers):,} answers, health {self.health.times:,} times",
            "met": slowest <= ANSWER_SECONDS,
        }


AskHealth = Callable[[int], Future[Health]]


def run(*, quick: bool) -> Table:
    """Have every store fail in each way, then let bodies drip."""
    seconds = 6.0 if quick else 10.0  # longer than any device waits
    with (
        tempfile.TemporaryDirectory() as name,
        ProcessPoolExecutor(1, get_context("spawn")) as other,
    ):
        folder = Path(name)
        with served(Engine("none:"), folder / "none", bare="bare RSGI") as bare:
            place = urlsplit(bare.url).port
            assert place is not None

            def ask(port: int, seconds: float = seconds) -> Future[Health]:
                return other.submit(ask_health, port, place, seconds)

            rows = [row for store in FAULTS for row in _of_store(store, folder, ask)]
            rows.append(_dripping(folder, partial(ask, seconds=DRIP_SECONDS)))
    rows = _judged(rows)
    notes = tuple(note.format(f"{seconds:g}") for note in NOTES)
    return Table("stalls: what waits while a store does not answer", rows, notes)


def _judged(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with the target of health: a busy machine lets a bare server wait, too."""
    worst = {name: [float(row.get(name) or 0) for row in rows] for name in (HEALTH, BARE)}
    limit = max(HEALTH_MILLISECONDS, 2 * max(worst[BARE]))
    return [
        {**row, "met": row["met"] and milliseconds <= limit}
        for row, milliseconds in zip(rows, worst[HEALTH], strict=True)
    ]


# -- faults of a store -----------------------------------------------------------------------------


def _of_store(store: str, parent: Path, ask: AskHealth) -> Iterator[Row]:
    folder = parent / store
    with (
        small_file_system(folder, DISK) as small,
        closing(DEPLOYMENTS[store](Campaign.write(folder), folder)) as deployment,
    ):
        workers, log = deployment.server.workers(), parent / "slow-sync.log"
        slow = partial(syncs_delayed, workers, SYNC_MICROSECONDS, log)
        faults = deployment.faults | {"none": nullcontext, "slow fdatasync": slow}
        if small:
            faults["file system full"] = partial(filled, folder / "ballast")
        devices = _devices(deployment.campaign, deployment.server)
        population = Population([*devices])
        with closing(population):
            with population.living():
                for name in filter(faults.__contains__, FAULTS[store]):
                    population.await_answers()
                    found = _strike(faults[name], deployment.server.port, devices, ask)
                    yield {"store": store, "fault": name, **found.row()}
            population.settle(PATIENCE)
        yield {"store": store, "fault": "afterwards", **_verified(deployment, population)}


def _devices(campaign: Campaign, server: Server) -> list[TimedDevice]:
    return [TimedDevice(campaign, server.port, seed) for seed in range(DEVICES)]


def _strike(fault: Fault, port: int, devices: Sequence[TimedDevice], ask: AskHealth) -> Found:
    begun = time.monotonic()
    with fault():
        health = ask(port).result()
        ended = time.monotonic()
    Population([*devices]).await_answers()
    return Found.measured(devices, health, begun, ended)


def _verified(deployment: Deployment, population: Population) -> Row:
    """Hold the store against what was acknowledged."""
    acknowledged = population.acknowledged
    try:
        assert population.wrong == []
        assert_consistent(deployment.store, deployment.campaign, acknowledged)
    except AssertionError as error:
        outcome, met = str(error).splitlines()[0], False
    else:
        outcome, met = "each counted once", True
    return {"outcome": f"{len(acknowledged):,} acknowledged: {outcome}", "met": met}


# -- bodies that drip ------------------------------------------------------------------------------


def _dripping(parent: Path, ask: AskHealth) -> Row:
    """Have thousands of connections send a byte of their bodies every second."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    folder = parent / "drip"
    folder.mkdir()
    campaign = Campaign.write(folder)
    with campaign.serve(f"sqlite:///{folder}/store.db") as server, ExitStack() as stack:
        (worker,) = server.workers()
        devices = _devices(campaign, server)
        population = stack.enter_context(closing(Population([*devices])))
        stack.enter_context(population.living())
        population.await_answers()
        before, threads = status(worker, "VmRSS"), status(worker, "Threads")
        begun = time.monotonic()
        connections = [_connected(stack, server.port) for _ in range(DRIPPING)]
        health = ask(server.port)
        while not health.done():
            for place, connection in enumerate(connections):
                connection.send(b"x")
                if not place % 100:
                    time.sleep(0.01)
        open_still = sum(_unanswered(connection) for connection in connections)
        each = (status(worker, "VmRSS") - before) / DRIPPING
        more = status(worker, "Threads") - threads
        found = Found.measured(devices, health.result(), begun, time.monotonic())
    row = found.row()
    kept = open_still == DRIPPING and each <= CONNECTION_KILOBYTES
    return {
        **row,
        "store": "sqlite",
        "fault": f"{DRIPPING:,} bodies that drip",
        "outcome": f"{open_still:,} open at the end, {each:.1f} kB each, {more} more threads",
        "met": row["met"] and kept and not (found.refused or more),
    }


def _connected(stack: ExitStack, port: int) -> socket:
    connection = stack.enter_context(create_connection((HOST, port)))
    connection.sendall(HEAD)
    connection.setblocking(False)
    return connection


def _unanswered(connection: socket) -> bool:
    try:
        connection.recv(1)
    except BlockingIOError:
        return True
    return False
