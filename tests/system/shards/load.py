"""Load on each shard of a cluster by itself: bodies of one report, by the pseudonym's shard."""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from itertools import cycle

import numpy as np

from veilcount_aggregator.records.definitions import DefinitionSource, add_definitions, load_catalog
from veilcount_aggregator.store.redis.row_permutation import shard_numbers
from veilcount_aggregator.store.redis.store import RedisStore
from veilcount_analysis.series.series import Series
from veilcount_shared.report import Batch, Report
from veilcount_shared.schedule import period_at
from veilcount_shared.wire import BINARY_TYPE, encode_binary

from ...client.device_fixtures import definitions_text
from ..server import HOST

SECONDS = 15.0  # a client's patience
PAUSE = 0.3  # of a sender after each reply: rates are compared, the server is not exhausted


TODAY = datetime.now(UTC).date()
DATES = {"from": TODAY - timedelta(days=2), "until": TODAY + timedelta(days=30)}
THEMES = {"question": "Which theme is active?", "values": ["light", "dark", "system"]}
DEFINITION = definitions_text("acme", DATES, theme=THEMES)


def push_definition(store: RedisStore) -> Series:
    add_definitions(store, DefinitionSource(DEFINITION), datetime.now(UTC), "test")
    (series,) = load_catalog(store).series.values()
    return series


def report(series: Series, pseudonym: bytes) -> Report:
    """Return a report of today that would be counted."""
    period = period_at(series.collection, datetime.now(UTC))
    assert period is not None
    message = next(each for each in range(1 << 16) if series.collection.mechanism.valid(each))
    return Report(series.fingerprint, period, 0, pseudonym, 0, series.collection.pack(message))


def pseudonyms(store: RedisStore, each: int) -> list[list[bytes]]:
    """Return so many new pseudonyms of each shard."""
    found: list[list[bytes]] = [[] for _ in range(store.identity.shards)]
    while min(map(len, found)) < each:
        drawn = np.frombuffer(secrets.token_bytes(16 * 1024), np.uint8).reshape(-1, 16)
        places = store.identity.permutation.apply(np.ascontiguousarray(drawn[:, :12])).places
        shards = shard_numbers(places, store.identity.shards).tolist()
        for row, shard in zip(drawn, shards, strict=True):
            found[shard].append(row.tobytes())
    return [rows[:each] for rows in found]


def post(port: int, *reports: Report) -> tuple[int, bytes]:
    """Send one body on a connection of its own; return the status and what came with it."""
    connection = HTTPConnection(HOST, port, timeout=SECONDS)
    try:
        body = encode_binary(Batch(reports))
        connection.request("POST", "/v1/reports", body, {"Content-Type": BINARY_TYPE})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@dataclass
class Load:
    """Senders that go round the shards; what was counted, by shard and second."""

    port: int
    series: Series
    rows: list[list[bytes]]
    began: float = field(default_factory=time.monotonic)
    ok: Counter[tuple[int, int]] = field(default_factory=Counter)
    stopped: threading.Event = field(default_factory=threading.Event)

    def rate(self, shard: int, first: float, last: float) -> float:
        """Return the reports of a shard that were counted each second of a time range."""
        seconds = range(int(first), int(last))
        return sum(self.ok[shard, second] for second in seconds) / max(1, len(seconds))

    def shards(self) -> set[int]:
        """Return the shards of which a report was counted, in whichever second."""
        return {shard for (shard, _), counted in self.ok.copy().items() if counted}

    def now(self) -> float:
        return time.monotonic() - self.began

    def send(self) -> None:
        """Send one report after the other, to each shard in turn."""
        for shard in cycle(range(len(self.rows))):
            if self.stopped.is_set():
                return
            with suppress(OSError):
                status, _ = post(self.port, report(self.series, secrets.choice(self.rows[shard])))
                self.ok[shard, int(self.now())] += status == 200
            time.sleep(PAUSE)


@contextmanager
def load(port: int, series: Series, rows: list[list[bytes]], senders: int) -> Iterator[Load]:
    running = Load(port, series, rows)
    threads = [threading.Thread(target=running.send, daemon=True) for _ in range(senders)]
    for thread in threads:
        thread.start()
    try:
        yield running
    finally:
        running.stopped.set()
        for thread in threads:
            thread.join(SECONDS)
