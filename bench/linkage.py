"""What the hours at which a device runs reveal to a server, and what short-lived processes deliver.

The whole client in simulated time, with a state in memory. Each device runs at hours of its own;
the server sees all but addresses, and pairs the rows of two collections by when they arrived: the
pairing of all rows whose times correlate best. A blind pairing has one right on the average.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.stats import poisson
from tests.client.device_fixtures import (
    HOUR,
    MINUTE,
    Device,
    Wire,
    at,
    clock_at,
    file,
    minutes_of,
    pass_time,
    quick,
    secrets,
    set_clock,
)

from veilcount_client.delivery.transport import Later, Outcome
from veilcount_client.integrations.cli_kit.sender import MARGIN
from veilcount_client.settings import JITTER
from veilcount_client.testing import SeededRandomSource
from veilcount_shared import Collection

from .table import Row, Table

ALPHA = 1e-6  # of the bound of a blind pairing
DEVICES, FEW = 90, 30  # in the whole run, and in the quick one
SENDER = JITTER + MARGIN  # seconds that the sender of a command stays
Floats = NDArray[np.float64]
Session = tuple[float, float]

VALUES = {"values": ["x", "y", "z"]}
PERIOD = file(a=VALUES, b={"range": [0, 9], "measure": "mean"})
LINKED = file(a=VALUES | {"linkage": "collection"}, b=VALUES | {"linkage": "collection"})
HIDDEN = file(
    a={"presence": "hidden", "linkage": "collection"},
    b={"presence": "hidden", "linkage": "collection"},
)
CENTRAL = file(a={"model": "central", "budget": 1}, b={"model": "central", "budget": 1})


@dataclass(frozen=True)
class Habit:
    """When devices run: so many sessions a day, of so many hours, each at hours of its own."""

    sessions: int
    hours: float

    def times(self, chance: Random, days: int) -> list[Session]:
        """Return when one device runs."""
        times: list[Session] = []
        for day in range(days):
            for hour in sorted(chance.sample(range(24 - int(self.hours)), self.sessions)):
                begin = at(day, hour) + chance.uniform(0, HOUR / 2)
                if not times or begin > times[-1][1] + MINUTE:
                    times.append((begin, begin + self.hours * HOUR))
        return times

    def __str__(self) -> str:
        """Return it in words."""
        length = f"{self.hours:.3g} h" if self.hours >= 1 else f"{self.hours * HOUR:.0f} s"
        return f"{self.sessions} x {length} a day"


@dataclass(frozen=True)
class Case:
    """Devices with a habit, and a server that counts or refuses everything."""

    name: str
    collections: Mapping[str, Collection]
    habit: Habit
    days: int
    records: int = 1_000_000  # in so many sessions, from the first
    refuses: bool = False
    trusts: bool = False
    bin: float = HOUR  # resolution of the server, in seconds
    flushes: bool = False  # at each start, as commands without the kit were advised to


CASES = (
    Case("period, server counts", PERIOD, Habit(3, 1), 5, 1),
    Case("period, server counts", PERIOD, Habit(1, 10), 5, 1),
    Case("period, server answers 503", PERIOD, Habit(3, 1), 5, 1, refuses=True),
    Case("period, server answers 503", PERIOD, Habit(1, 10), 5, 1, refuses=True),
    Case("collection, server counts", LINKED, Habit(1, 2), 3),
    Case("collection, hidden, server counts", HIDDEN, Habit(1, 2), 3),
    Case("period, commands, by the kit's sender", PERIOD, Habit(3, SENDER / HOUR), 5, bin=MINUTE),
    Case(
        "period, commands, flush() at a start",
        PERIOD,
        Habit(3, 10 / HOUR),
        5,
        bin=MINUTE,
        flushes=True,
    ),
    Case("true values, closed after 40 s", CENTRAL, Habit(1, 40 / HOUR), 1, 1, False, True, 1.0),
)


def run(*, quick: bool) -> Table:
    """Return how many devices are paired, and which share of the reports of short lives arrives."""
    devices = FEW if quick else DEVICES
    rows = [_pairing(case, devices) for case in CASES]
    rows += [_arriving(seconds, 4 if quick else 12) for seconds in (10, 60, 600, int(SENDER))]
    note = f"blind, at most: but for one case in {1 / ALPHA:,.0f}"
    return Table("what the hours at which a device runs reveal", rows, (note,))


# -- pairing ---------------------------------------------------------------------------------------


def _pairing(case: Case, devices: int) -> Row:
    seen = [_attempts(case, device) for device in range(devices)]
    one, other = (np.array([_binned(each[name], case) for each in seen]) for name in "ab")
    return {
        "case": case.name,
        "runs": str(case.habit),
        "devices": devices,
        "days": case.days,
        "attempts a row": float(np.mean([len(each["a"]) for each in seen])),
        "paired": _paired(one, other),
        "blind, at most": int(poisson.isf(ALPHA, 1)),
    }


def _attempts(case: Case, seed: int) -> dict[str, list[float]]:
    """Return when bodies of each collection of one device reach the server."""
    sessions = case.habit.times(Random(seed), case.days)
    clock = clock_at(sessions[0][0])
    wire = Wire(clock)
    if case.refuses:
        wire.mood = _refuse
    with (
        tempfile.TemporaryDirectory(dir=quick()) as place,
        secrets(("linkage", seed)),
        minutes_of(HOUR),
    ):
        device = Device(
            Path(place), case.collections, clock, wire,
            randomness=SeededRandomSource(seed), trust_curator=case.trusts,
        )  # fmt: skip
        _live(device, sessions, lambda session: session < case.records, flushes=case.flushes)
    names = {each.fingerprint: name for name, each in case.collections.items()}
    seen: dict[str, list[float]] = {name: [] for name in case.collections}
    for arrival in wire.attempts:
        for report in arrival.batch.reports:
            seen[names[report.fingerprint]].append(arrival.instant)
    return seen


def _refuse() -> Outcome:
    return Later("503")


def _live(
    device: Device,
    sessions: Sequence[Session],
    records: Callable[[int], bool],
    *,
    flushes: bool = False,
) -> None:
    for number, (begin, end) in enumerate(sessions):
        set_clock(device.clock, max(begin, device.clock.now()))
        if number:
            device.start()
        device.work()
        if flushes:
            device.client.flush()
        for name in device.collections if records(number) else ():
            device.client.record(name, 1)
        device.work()
        pass_time(device.clock, end, device)
        device.stop()


def _binned(instants: Sequence[float], case: Case) -> Floats:
    bins = np.zeros(int((24 * case.days + 48) * HOUR / case.bin))
    for instant in instants:
        bins[int((instant - at(0)) / case.bin)] = 1
    return np.convolve(bins, [0.5, 1, 0.5], "same")


def _paired(ones: Floats, others: Floats) -> int:
    """Return how many of the best pairing are right; a shuffled order, since ties favour places."""
    ones, others = (rows - rows.mean(axis=0) for rows in (ones, others))
    lengths = np.outer(np.linalg.norm(ones, axis=1), np.linalg.norm(others, axis=1))
    order = np.array(Random(7).sample(range(len(others)), len(others)))
    found, places = linear_sum_assignment(-(ones @ others.T / (lengths + 1e-9))[:, order])
    return int((found == order[places]).sum())


# -- short lives -----------------------------------------------------------------------------------


def _arriving(seconds: int, devices: int) -> Row:
    """Return which share of a month's daily reports arrives of processes that live so long."""
    days, arrived = 30, 0
    collections = file(a={})
    for seed in range(devices):
        chance = Random(seed)
        begins = [
            at(day, 12 * half + chance.uniform(0, 8)) for day in range(days) for half in (0, 1)
        ]
        clock = clock_at(begins[0])
        wire = Wire(clock)
        with tempfile.TemporaryDirectory(dir=quick()) as place, secrets(("lives", seed)):
            device = Device(
                Path(place), collections, clock, wire, randomness=SeededRandomSource(seed)
            )
            _live(device, [(begin, begin + seconds) for begin in begins], lambda _: True)
        arrived += len(wire.counted)
    return {
        "case": "daily reports, no flush()",
        "runs": f"2 x {seconds} s a day",
        "devices": devices,
        "days": days,
        "arrives, %": 100 * arrived / (devices * days),
    }
