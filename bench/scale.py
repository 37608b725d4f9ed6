"""What a very large fleet takes, on paper: requests, bytes, cores, memory, shards.

`python -m bench.scale` prints the tables of `docs/scale.md`; `./dev bench scale` sends a fleet of
a smaller scale through the real intake, and holds what a device costs there against `COSTS`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from statistics import median

from tests.engines import CLUSTER, Engine, engine

from .definitions import definitions
from .load import Shape, load, served
from .memory import data_bytes
from .table import Row, Table, figure

DAY, HOUR = 86_400, 3_600
MICRO, GIGA, TERA = 1e-6, 1e9, 1e12


@dataclass(frozen=True, slots=True)
class Costs:
    """What one request, one further report in it and one row take; CPU in microseconds.

    Measured on a Redis Cluster of three by `./dev bench`, save for the two that are assumed.
    """

    body_bytes: int = 1_230  # on the wire, with its head, without TCP and TLS
    further_bytes: int = 33
    handshake_bytes: int = 5_000  # of TLS, both ways: assumed
    handshake: float = 250.0  # likewise
    server: float = 440.0  # the aggregator
    further_server: float = 1.3  # for a report of somebody else
    store: float = 95.0  # Redis
    further_store: float = 10.0
    row: float = 22.0  # bytes of Redis, without the bitmap: a bit a slot, in whole bytes
    log: float = 255.0  # bytes that Redis appends for a report


COSTS = Costs()


@dataclass(frozen=True, slots=True)
class Deployment:
    """What one machine has, and how full it may be."""

    cores: int = 32
    memory: int = 256  # GB
    network: int = 10  # Gbit/s
    full: float = 0.6
    copies: float = 2.0  # of Redis memory: a replica each
    core_hour: float = 0.03  # a price, to be replaced
    gigabyte_hour: float = 0.004  # likewise


DEPLOYMENT = Deployment()


@dataclass(frozen=True, slots=True)
class Fleet:
    """Devices, what they are asked, and how their reports travel."""

    name: str
    devices: float = 1e9
    questions: int = 4
    answers: float = 1.0  # of a question and a device, on the busiest day
    reports: int = 1  # a body carries
    rows: int = 1  # that live at a time, of a question and a device
    slots: int = 1  # of a row
    midnight: float = 0.1  # of the devices: they run and answer as the day begins
    busiest: float = 2.0  # the others' busiest hour, over their mean
    jitter: int = HOUR

    @property
    def daily(self) -> float:
        """Reports on the busiest day."""
        return self.devices * self.questions * self.answers

    @property
    def mean(self) -> float:
        """Reports a second, over a day."""
        return self.daily / DAY

    @property
    def peak(self) -> float:
        """Reports a second in the busiest hour: the day's first, as if the others' were it too."""
        herd = self.midnight * self.daily / max(self.jitter, 1)
        return herd + (1 - self.midnight) * self.busiest * self.mean

    @property
    def rows_kept(self) -> float:
        """Rows of Redis at a time."""
        return self.devices * self.questions * self.rows


@dataclass(frozen=True, slots=True)
class Needs:
    """What a fleet takes in its busiest hour."""

    requests: float  # a second
    network: float  # Gbit/s
    proxy: float  # cores of each
    server: float
    store: float
    memory: float  # GB of Redis, without copies
    disk: float  # TB a day that Redis appends

    @classmethod
    def from_fleet(cls, fleet: Fleet, costs: Costs = COSTS) -> Needs:
        """Compute resource needs from fleet and unit costs."""
        more = fleet.reports - 1
        requests = fleet.peak / fleet.reports
        wire = costs.body_bytes + costs.further_bytes * more + costs.handshake_bytes
        return cls(
            requests=requests,
            network=requests * wire * 8 / GIGA,
            proxy=requests * costs.handshake * MICRO,
            server=requests * (costs.server + costs.further_server * more) * MICRO,
            store=requests * (costs.store + costs.further_store * more) * MICRO,
            memory=fleet.rows_kept * (costs.row + ceil(fleet.slots / 8)) / GIGA,
            disk=fleet.daily * costs.log / TERA,
        )

    def machines(self, deployment: Deployment = DEPLOYMENT) -> dict[str, float]:
        """Return how many machines each resource would fill by itself."""
        return {
            "cores": (self.proxy + self.server + self.store) / deployment.full / deployment.cores,
            "memory": self.memory * deployment.copies / deployment.full / deployment.memory,
            "network": self.network / deployment.full / deployment.network,
        }

    @property
    def first(self) -> str:
        """Which resource ends first."""
        machines = self.machines()
        return max(machines, key=lambda what: machines[what])

    def shards(self, deployment: Deployment = DEPLOYMENT) -> int:
        """Return how many Redis servers it takes: each has one core, and its share of a machine."""
        by_core = self.store / deployment.full
        by_memory = self.memory / (deployment.memory / deployment.cores * deployment.full)
        return ceil(max(by_core, by_memory))

    def price(self, deployment: Deployment = DEPLOYMENT) -> float:
        """Return the price of a day: cores for the peak, memory with its copies."""
        cores = (self.proxy + self.server + self.store) / deployment.full
        memory = self.memory * deployment.copies / deployment.full
        return 24 * (cores * deployment.core_hour + memory * deployment.gigabyte_hour)


LATE, GRACE = 30, 3  # days: rows live through their own, and two more for clocks that are wrong
BASE = Fleet("by default", rows=LATE + GRACE)
MONTHLY = replace(BASE, rows=1, slots=12, answers=0.5)  # half a month's answers on its first day
FLEETS = (
    BASE,
    replace(BASE, name="`late = 3`, not 30", rows=3 + GRACE),
    replace(BASE, name='`linkage = "collection"`, a year', rows=1, slots=365),
    replace(MONTHLY, name="asked once a month, for a year"),
    replace(BASE, name="relays put 100 reports in a body", reports=100),
    replace(BASE, name="relays, `late = 3`", reports=100, rows=3 + GRACE),
    replace(BASE, name="one person in a hundred is asked", devices=1e7),
)


def lines() -> Iterator[str]:
    """Yield the tables of the page, line by line."""
    yield from _head("one of", "bytes", "server, us", "Redis, us", "TLS, us")
    yield from _costs(COSTS)
    yield ""
    yield from _head("in the busiest hour", "requests/s", "Gbit/s", "TLS", "aggregator", "Redis")
    yield from map(_busiest, FLEETS)
    yield ""
    yield from _head("held", "rows, billions", "Redis, GB", "shards", "log, TB a day", "ends first")
    yield from map(_held, FLEETS)
    yield ""
    yield from _head("machines it fills alone", "cores", "memory", "network", "a day, prices")
    yield from map(_machines, FLEETS)


def _costs(costs: Costs) -> Iterator[str]:
    yield _line(
        "a body of one report",
        *(f"{costs.body_bytes:,} + {costs.handshake_bytes:,}", f"{costs.server:g}"),
        *(f"{costs.store:g}", f"{costs.handshake:g}"),
    )
    further = (costs.further_bytes, costs.further_server, costs.further_store)
    yield _line("a further report in it", *(f"{cost:g}" for cost in further), "")


def _head(*names: str) -> Iterator[str]:
    yield _line(*names)
    yield f"|{'---|' * len(names)}"


def _busiest(fleet: Fleet) -> str:
    needs = Needs.from_fleet(fleet)
    found = (needs.requests, needs.network, needs.proxy, needs.server, needs.store)
    return _line(fleet.name, *map(_few, found))


def _held(fleet: Fleet) -> str:
    needs = Needs.from_fleet(fleet)
    found = (fleet.rows_kept / GIGA, needs.memory, needs.shards(), needs.disk)
    return _line(fleet.name, *map(_few, found), needs.first)


def _machines(fleet: Fleet) -> str:
    needs = Needs.from_fleet(fleet)
    return _line(fleet.name, *map(_few, needs.machines().values()), _few(needs.price()))


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _few(value: float) -> str:
    """Return a number in two digits: more are not known."""
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"


# -- a smaller fleet, through the real intake ------------------------------------------------------

NOTES = (
    "Of one report of one device that is new, one a body, 32 connections; CPU of processes. One",
    "  worker on a durable Redis Cluster of three; targets: 1.35 times what `COSTS` has, from",
    "  which docs/scale.md is reckoned.",
)
OFF = 1.35  # by so much a machine that is shared may be off
SECONDS, MOST_A_SECOND = 5, 5_000
TURNS = 24  # some 100,000 devices, or more


def run(*, quick: bool) -> Table:
    """Send one report of each device; divide."""
    with tempfile.TemporaryDirectory() as name:
        rows = list(_devices(Path(name), 1 if quick else TURNS))
    return Table("scale: what a device costs, of very many", rows, NOTES)


def _devices(folder: Path, turns: int) -> Iterator[Row]:
    file = folder / "collections.toml"
    file.write_text(definitions(1), encoding="utf-8")
    with ExitStack() as stack:
        store = stack.enter_context(engine(CLUSTER, folder / "redis"))
        server = stack.enter_context(served(store, file))
        settings = server, 1, Shape(1), MOST_A_SECOND, SECONDS
        load(*settings)  # what is made once is no device's
        before = _bytes_of(store)
        costs = [load(*settings) for _ in range(turns)]
        memory, log = (b - a for a, b in zip(before, _bytes_of(store), strict=True))
    devices = sum(turn.requests for turn in costs)
    yield figure("devices", devices, f"{turns} turns")
    for what, value, paper in (
        ("us of the aggregator", median(turn.app for turn in costs), COSTS.server),
        ("us of Redis", median(turn.store for turn in costs), COSTS.store),
        ("bytes of Redis", memory / devices, COSTS.row + 1),
        ("bytes of Redis's log", log / devices, COSTS.log),
    ):
        yield figure(what, value, f"on paper {paper:g}", paper * OFF)


def _bytes_of(store: Engine) -> tuple[int, int]:
    """Return what a cluster holds in memory, and what it has appended to its files."""
    logs = (node.info("persistence")["aof_current_size"] for node in store.nodes)
    return sum(map(data_bytes, store.nodes)), sum(map(int, logs))


if __name__ == "__main__":
    print("\n".join(lines()))
