"""A small world that is recorded once for each protocol: devices, an aggregator, a shuffler.

What of it a later version has to read lies in `protocol_1`, written by `python -m
tests.recorded.record`, and is never changed.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.store import Store
from veilcount_analysis.series.series import Series
from veilcount_client.delivery.transport import Delivered, Outcome
from veilcount_client.state import file_checks
from veilcount_client.state.sqlite_database import FILE
from veilcount_client.testing import SettableClock
from veilcount_shared import Collection, parse_collections
from veilcount_shared.randomness import SystemRandomSource
from veilcount_shared.report import Report
from veilcount_shared.shuffling.envelope import Envelope
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import BINARY_TYPE

from ..aggregator.web.api.deployment_fixtures import Deployment
from ..client.delivery.shuffler_fixtures import KEYS, FakeShuffler
from ..client.device_fixtures import HOUR, Device, Wire, at, clock_at, minutes_of, pass_time
from ..redis_server import RedisServer

FOLDER = Path(__file__).parent / "protocol_1"
DEFINITIONS = FOLDER / "collections.toml"
BEFORE = datetime(2026, 11, 30, tzinfo=UTC)
PERSONS, DAYS, OFFLINE = 4, 3, 9  # of whom one more is offline
#: a collection's values of an odd and of an even day, and of which segment
VALUES: Mapping[str, tuple[Any, Any]] = {
    "theme": ("dark", "light"),
    "opened": (True, False),
    "saved": ("menu", "key"),
    "plan": ((True, "free"), (False, "paid")),
    "minutes": (30, 200),
    "spread": (12, 77),
    "ranges": (3, 140),
    "habits": ({"age": 40, "hours": 3}, {"age": 70, "hours": 30}),
    "returned": (True, True),
    "word": ("margin", "gutter"),
    "visits": (True, False),
    "name": ("Ada", "Grace"),
    "shuffled": (True, False),
    "brand": ("Acme", "Bolt"),
    "tools": (["pen", "crop"], []),
    "pages": (["home", "map"], ["help"]),
    "together": ({"start": "map", "theme": "dark"}, {"start": "list", "theme": "light"}),
    "speed": (True, False),
    "looks": (False, True),
}
SEGMENTS: Mapping[str, Mapping[str, Any]] = {"theme": {"arm": "B"}}


def collections() -> dict[str, Collection]:
    """Return the recorded definitions, as this version reads them."""
    return parse_collections(DEFINITIONS.read_text(encoding="utf-8"), lambda _: [])


@dataclass(frozen=True)
class Exchange:
    """A body that a device sent, when, and what became of each report."""

    instant: float
    body: bytes
    verdicts: tuple[str, ...]


@dataclass
class DeployedWire:
    """The network between devices and a deployment, and what went over it."""

    deployed: Deployment
    clock: SettableClock
    exchanges: list[Exchange] = field(default_factory=list)

    def send(self, body: bytes, _reports: int) -> Outcome:
        """Have the aggregator take a body."""
        exchange = take(self.deployed, self.clock.now(), body)
        self.exchanges.append(exchange)
        return Delivered(tuple(map(Verdict, exchange.verdicts)))


def take(deployed: Deployment, instant: float, body: bytes) -> Exchange:
    """Have an aggregator take a body at an instant."""
    deployed.clocks.now = max(deployed.clocks.now, datetime.fromtimestamp(instant, UTC))
    reply = deployed.ask("POST", "/v1/reports", body, kind=BINARY_TYPE)
    assert reply.status == 200, reply.body
    return Exchange(instant, body, tuple(reply.json["verdicts"]))


@contextmanager
def devices(
    folder: Path, wire: object, clock: SettableClock, *persons: int
) -> Iterator[list[Device]]:
    """Yield the devices of persons, each with a state in the folder."""
    with (
        minutes_of(HOUR),  # what is due here is due on full hours
        patch.object(file_checks, "machine_digest", lambda _: "recorded"),  # or it is a copy
    ):
        yield [
            Device(
                folder / str(person),
                collections(),
                clock,
                wire,
                person=person,
                shuffler=FakeShuffler(clock),
                relay_keys=KEYS,
                randomness=SystemRandomSource(),  # by another one a body would be a test's
                trust_curator=True,
            )
            for person in persons
        ]


def record(one: Device, day: int, *names: str) -> None:
    """Record the values of an odd or an even day."""
    for name in names:
        one.record(name, value=VALUES[name][day % 2], **SEGMENTS.get(name, {}))


def use(clock: SettableClock, running: Sequence[Device], first: int, end: int) -> None:
    """Let days pass, on each of which each person records a value of each collection."""
    for day in range(first, end):
        for place, one in enumerate(running):
            pass_time(clock, at(day, 9 + place), *running)
            record(one, day + place, *VALUES)
        pass_time(clock, at(day + 1) - 1, *running)


def sent_from(folder: Path, state: bytes) -> dict[str, Any]:
    """Start a device whose state this is; return what it sends of the days before.

    It records once more on the last of them, which is answered: of a question with two answers a
    day the first.
    """
    place = folder / str(OFFLINE)
    place.mkdir(parents=True)
    (place / FILE).write_bytes(state)
    clock = clock_at(at(DAYS) - 1)
    wire = Wire(clock)
    with devices(folder, wire, clock, OFFLINE) as (one,):
        record(one, DAYS - 1, *set(VALUES) - {"saved"})
        one.run_until(at(DAYS + 4))
        one.stop()
        arrived = [each.raw for each in one.options["shuffler"].arrived]
    envelopes = [raw for raw in arrived if Envelope.decode(raw).period < DAYS]
    reports = [row(each) for each in wire.reports if each.period < DAYS]
    return {"reports": sorted(reports), "envelopes": sorted(raw.hex() for raw in envelopes)}


def row(report: Report) -> list[Any]:
    """Return what a report says, as JSON has it."""
    private = report.pseudonym.hex(), report.slot, report.message.hex()
    return [report.fingerprint, report.period, report.segment, *private]


def content(deployed: Deployment) -> dict[str, Any]:
    """Return all that a store has counted, as JSON has it."""
    aggregator = deployed.aggregator
    aggregator.flush()
    return {name: counted(aggregator.store, deployed.series(name)) for name in VALUES}


def counted(store: Store, series: Series) -> dict[str, Any]:
    """Return what a store has counted of a series."""
    cells = store.report_counts(series)
    counters = store.counters(series, sorted(cells))
    if not series.counts_hashes:  # which are with their counts already
        places = np.flatnonzero(counters)
        counters = np.stack([places, counters[places]])
    return {
        "reports": [[*cell, number] for cell, number in sorted(cells.items())],
        "counters": counters.T.tolist(),
        "rows": [[at, number] for at, number in sorted(store.new_pseudonyms(series).items())],
    }


def release(deployed: Deployment) -> None:
    """Have the curator release a count of the first day."""
    body = {"query": "count", "epsilon": "0.5", "from": "2026-12-01", "to": "2026-12-01"}
    deployed.aggregator.look_at_clock()
    reply = deployed.ask(
        "POST",
        "/v1/collections/visits/releases",
        json.dumps(body).encode(),
        key=deployed.key(Role.ANALYST),
    )
    assert reply.status == 200, reply.body


def releases(deployed: Deployment) -> Any:
    """Return all that was released, with what is left of the budgets."""
    key = deployed.key(Role.ANALYST)
    return deployed.ask("GET", "/v1/collections/visits/releases", key=key).json


# -- files -----------------------------------------------------------------------------------------


def read(name: str) -> Any:
    """Return a recorded document."""
    return json.loads(unpacked(name))


def unpacked(name: str) -> bytes:
    """Return the bytes of a recorded file."""
    content = (FOLDER / name).read_bytes()
    return gzip.decompress(content) if name.endswith(".gz") else content


def dumped(server: RedisServer) -> list[list[str]]:
    """Return the keys of a Redis server, each as the command that writes it, in hexadecimal."""
    return [
        [part.hex() for part in _command(server, key)] for key in sorted(server.ask("KEYS", "*"))
    ]


def _command(server: RedisServer, key: bytes) -> list[bytes]:
    kind = server.ask("TYPE", key)
    if kind == b"set":
        return [b"SADD", key, *sorted(server.ask("SMEMBERS", key))]
    if kind == b"hash":
        fields = server.ask("HGETALL", key)
        return [
            b"HSET",
            key,
            *(part for field in sorted(fields) for part in (field, fields[field])),
        ]
    assert kind == b"string", kind
    return [b"SET", key, server.ask("GET", key)]
