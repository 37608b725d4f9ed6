"""How every cost grows: what is done for n times as much costs n times as much, and no more.

Each size is measured in a process of its own, so that no cache hides a cost. A fixed cost would
hide the growth at small sizes, so a + b size^p is fitted: p is the exponent, with its interval.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
from scipy.optimize import nnls
from scipy.stats import f as fisher

from veilcount_aggregator.queries.estimate import estimate_counts
from veilcount_aggregator.records.definitions import (
    DefinitionSource,
    add_definitions,
    load_catalog,
)
from veilcount_aggregator.store import open_store
from veilcount_analysis.counts import CountersSource
from veilcount_analysis.kinds.estimate_query import EstimateQuery, GroupBy
from veilcount_analysis.series.series import Series
from veilcount_client.testing import ClientHarness
from veilcount_shared import parse_collections

from . import separate
from .stopwatch import cpu_us
from .table import Row, Table, target

NOTES = (
    "CPU microseconds of all n together, the least of three processes; exponent: of n beside a",
    "  fixed cost, with its 95 % interval. Its estimate is to be 1.05 at most. How bodies, rows,",
    "  values, shards and releases grow: `scaling`, `shards`, `central`.",
)
FIRST = date(2020, 1, 1)
QUESTION = """
[q{place}]
question = "Which one?"
values = ["a", "b", "c"]
epsilon = 1
unit = "day"
from = {first}
until = {last}
"""
EXPONENTS = np.arange(0, 250) / 100
LEVEL, MOST = 0.95, 1.05
TIMES = 3


@dataclass(frozen=True, slots=True)
class Growth:
    """A cost is a + b size^exponent; the interval is of the fit, by its likelihood."""

    exponent: float
    low: float
    high: float

    @classmethod
    def fitted_to(cls, sizes: Sequence[float], costs: Sequence[float]) -> Growth:
        """Fit by least squares of relative errors, for each exponent in turn."""
        y, rests = np.asarray(costs, np.float64), []
        for exponent in EXPONENTS:
            powers = np.asarray(sizes, np.float64) ** exponent
            columns = np.stack([np.ones(len(y)), powers / powers[-1] * y[-1]], axis=1)
            rests.append(nnls(columns / y[:, np.newaxis], np.ones(len(y)))[1] ** 2)
        squares, free = np.asarray(rests), len(y) - 3
        allowed = squares.min() * (1 + fisher.ppf(LEVEL, 1, free) / free)
        inside = EXPONENTS[squares <= allowed]
        return cls(float(EXPONENTS[squares.argmin()]), float(inside[0]), float(inside[-1]))


def run(*, quick: bool) -> Table:
    """Measure each cost at each size, and fit."""
    rows = [_row(name, cost, most, quick=quick) for name, (cost, most) in COSTS.items()]
    return Table("growth: how every cost grows", rows, NOTES, digits=3)


def _row(name: str, cost: Callable[[int], float], most: int, *, quick: bool) -> Row:
    steps = 2 * round(np.log10(most)) + 1
    sizes = sorted({round(size) for size in np.geomspace(1, most, steps)})[2 if quick else 1 :]
    costs = [min(separate.run(cost, size) for _ in range(TIMES)) for size in sizes]
    growth = Growth.fitted_to(sizes, costs)
    return {
        "cost": name,
        "from": sizes[0],
        "to": sizes[-1],
        "first us": costs[0],
        "last us": costs[-1],
        "exponent": growth.exponent,
        "interval": f"{growth.low:.2f} to {growth.high:.2f}",
        **target(growth.exponent, MOST),
    }


# -- each in a process of its own ------------------------------------------------------------------


def _file(questions: int, days: int = 30) -> str:
    last = FIRST + timedelta(days=days)
    tables = (QUESTION.format(place=n, first=FIRST, last=last) for n in range(questions))
    return "".join(['app = "bench"\n', *tables])


def parse(questions: int) -> float:
    """Read a file of so many questions."""
    return cpu_us(parse_collections, _file(questions), lambda _: [])


def catalog(questions: int) -> float:
    """Open a store with so many definitions."""
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(open_store(f"sqlite:///{folder}/store.db", make=True)) as store,
    ):
        add_definitions(store, DefinitionSource(_file(questions)), datetime.now(UTC), "bench")
        return cpu_us(load_catalog, store)


def days(number: int) -> float:
    """Estimate each of so many days."""
    series = Series(parse_collections(_file(1, number), lambda _: [])["q0"])
    chance = np.random.default_rng(number)
    counters: Mapping[tuple[int, int], Any] = {
        (day, 0): chance.integers(1000, 2000, series.counters) for day in range(number)
    }
    source = CountersSource(series, counters, FIRST + timedelta(days=number + 5))
    estimate_counts(source, EstimateQuery())  # has it import what an estimate needs
    return cpu_us(estimate_counts, source, EstimateQuery(by=GroupBy.DAY))


@contextmanager
def _quiet() -> Iterator[None]:
    """Log nothing: a client has words on the verdicts that its testing kit draws."""
    logging.disable()
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def persons(number: int) -> float:
    """Record and send a value of each of so many persons of one client."""
    with _quiet(), ClientHarness() as veilcount:
        client = veilcount.client(parse_collections(_file(1), lambda _: []), persons=True)

        def record() -> None:
            for name in range(number):
                client.person(str(name)).record("q0", "a")
            veilcount.advance(days=2)

        return cpu_us(record)


def life(number: int) -> float:
    """Record and send a value on each of so many days."""
    with _quiet(), ClientHarness() as veilcount:
        client = veilcount.client(parse_collections(_file(1, number + 2), lambda _: []))

        def record() -> None:
            for _ in range(number):
                client.record("q0", "a")
                veilcount.advance(days=1)

        return cpu_us(record)


def waiting(number: int) -> float:
    """Send so many reports that waited on a device."""
    text = _file(1, 3).replace('unit = "day"', f'unit = "event"\nper_day = {min(number, 300)}')
    with _quiet(), ClientHarness() as veilcount:
        client = veilcount.client(parse_collections(text, lambda _: []), persons=True)
        for name in range(-(-number // 300)):
            for _ in range(min(number, 300)):
                client.person(str(name)).record("q0", "a")
        client.flush(until="stored")
        us = cpu_us(lambda: veilcount.advance(days=2))
        if len(veilcount.sent) < number:
            raise RuntimeError(f"{len(veilcount.sent)} of {number} reports left")
        return us


COSTS: Mapping[str, tuple[Callable[[int], float], int]] = {
    "a file of definitions, read": (parse, 3_000),
    "store of definitions, opened": (catalog, 3_000),
    "an estimate of each day": (days, 10_000),
    "a report of each person of one client": (persons, 1_000),
    "a report a day of one device": (life, 1_000),
    "waiting reports on a device": (waiting, 10_000),
}
