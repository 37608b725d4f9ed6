"""What analysts cost the intake: its latency alone, and while four of them ask for all they can.

One server with two workers on SQLite, eight devices that send one report a body. The analysts are a
process of their own (`loadtests/analysts.py`): plans, a CSV of 100,000 rows, trust-model
comparisons, comparisons. Then they are gone, and people log in to the dashboard, three a second,
while the store holds 60 files of definitions. Ratios are of one run, so that they hold on a busy
machine.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import requests
from loadtests.analysts import Findings, analyst_load, definitions, parse, report_body, send
from tests.processes import peak_megabytes
from tests.system.server import Server

from veilcount_aggregator.records.api_keys import Role, create_key
from veilcount_aggregator.records.definitions import DefinitionSource, add_definitions
from veilcount_aggregator.records.sessions import begin_session
from veilcount_aggregator.store import open_store
from veilcount_shared import Collection

from .table import Row, Table

DEVICES, WORKERS = 8, 2
FEWEST_REPORTS = 300  # of each collection, so that there is something to estimate
RATIO = 5.0  # of the latency: the cores are shared with analysts, but the intake goes first
SOURCES, SOURCE_VALUES = 60, 2_000
SETTLING = 5.0  # seconds, in which every worker has parsed what was pushed
GROWTH = 1.3  # of the workers' memory


@dataclass
class Devices:
    """Devices that send one report after the other, and what each request took."""

    url: str
    collection: Collection
    seconds: list[float] = field(default_factory=list)
    failed: int = 0

    def send(self, during: float) -> None:
        """Send for so many seconds."""
        self.seconds, self.failed = [], 0
        ends = time.monotonic() + during
        threads = [threading.Thread(target=self._send, args=(ends,)) for _ in range(DEVICES)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _send(self, ends: float) -> None:
        with requests.Session() as session:
            session.trust_env = False
            while (begun := time.monotonic()) < ends:
                reply = send(session, self.url, report_body(self.collection))
                self.seconds.append(time.monotonic() - begun)
                self.failed += reply.status_code != requests.codes.ok

    def percentile(self, which: float) -> float:
        """Return a percentile of the latencies, in milliseconds."""
        return float(np.percentile(self.seconds, which)) * 1000


def prepare(url: str, text: str) -> str:
    """Make a store that knows these definitions; return an analyst's key."""
    store = open_store(url, make=True)
    add_definitions(store, DefinitionSource(text), datetime.now(UTC), "bench")
    _, secret = create_key(store, Role.ANALYST, "", datetime.now(UTC))
    store.close()
    return secret


def fill(url: str, collections: dict[str, Collection], number: int = FEWEST_REPORTS) -> None:
    """Send reports to each collection."""
    with requests.Session() as session:
        session.trust_env = False
        for collection in collections.values():
            for place in range(number):
                assert send(session, url, report_body(collection, place)).ok


@contextmanager
def logging_in(url: str) -> Iterator[None]:
    """Push many files of definitions; then begin sessions, as log-ins do."""
    store, stopping = open_store(url), threading.Event()
    for n in range(SOURCES):
        add_definitions(
            store,
            DefinitionSource(f"{definitions(SOURCE_VALUES)}\n# {n}\n"),
            datetime.now(UTC),
            "bench",
        )

    def log_in() -> None:
        while not stopping.wait(0.3):
            begin_session(store, Role.ANALYST, "key", datetime.now(UTC))

    thread = threading.Thread(target=log_in)
    time.sleep(SETTLING)
    thread.start()
    yield
    stopping.set()
    thread.join()
    store.close()


def run(*, quick: bool) -> Table:
    """Measure alone, then with analysts, against one server."""
    seconds, text = (5.0 if quick else 20.0), definitions()
    collections = parse(text)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        url = f"sqlite:///{folder}/store.db"
        key = prepare(url, text)
        with Server(url, folder, "--workers", str(WORKERS)) as server:
            fill(server.url, collections)
            devices = Devices(server.url, collections["autosave"])
            devices.send(1.0)
            devices.send(seconds)
            rows = [_row("alone", devices, server, seconds)]
            with analyst_load(server.url, key) as found:
                time.sleep(2.0)
                devices.send(seconds)
                mixed = _row("with four analysts", devices, server, seconds)
            rows.append(_judged({**mixed, **_answers(found)}, rows[0], memory=True))
            with logging_in(url):
                devices.send(seconds)
            rows.append(
                _judged(_row("with log-ins", devices, server, seconds), rows[0], memory=False)
            )
    return Table("reads: what analysts cost the intake", rows)


def _row(name: str, devices: Devices, server: Server, seconds: float) -> Row:
    assert not devices.failed
    return {
        "intake": name,
        "reports/s": len(devices.seconds) / seconds,
        "p50, ms": devices.percentile(50),
        "p99, ms": devices.percentile(99),
        "worst, ms": devices.percentile(100),
        "workers, MB": max(map(peak_megabytes, server.workers())),
        "analysis, MB": max(map(peak_megabytes, server.analysis())),
    }


def _answers(found: Findings) -> Row:
    return {"answers": found.count(200), "503": found.count(503)}


def _judged(mixed: Row, alone: Row, *, memory: bool) -> Row:
    """Return a row with its target. More definitions take more memory: that is no analyst's."""
    ratios = {
        name: float(mixed[column] or 0) / float(alone[column] or 1)
        for name, column in (("p50", "p50, ms"), ("p99", "p99, ms"), ("memory", "workers, MB"))
    }
    limits = {"p50": RATIO, "p99": RATIO} | ({"memory": GROWTH} if memory else {})
    target = ", ".join(f"{name} {ratios[name]:.1f} < {limits[name]:g} times" for name in limits)
    return dict(mixed) | {"target": target, "met": all(ratios[n] < limits[n] for n in limits)}
