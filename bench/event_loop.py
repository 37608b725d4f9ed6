"""For how long a decision stops an event loop: called as in a thread's app, and awaited."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from itertools import pairwise
from statistics import median

from veilcount_client import Client, Person
from veilcount_shared import parse_collections

from .table import Row, Table, figure

FILE = """
app = "bench"

[theme]
question = "Which theme is active?"
values = ["light", "dark", "system"]
epsilon = 1
unit = "month"
from = 2026-01-01
until = 2027-01-01
"""
NOTES = (
    "The longest time between two turns of a loop that has nothing else to do, during one call;",
    "  by turns, each for another person, in a state on a disk. `sleep` calls nothing: it is what",
    "  this machine pauses by itself, and is taken off both before they are compared.",
)
SHARE = 0.5  # of the pause that the plain call makes, at the median
SLEEP = 0.005  # seconds: about as long as a decision takes to be stored

Call = Callable[[Person], Awaitable[object]]


def run(*, quick: bool) -> Table:
    """Measure each call in one loop."""
    with tempfile.TemporaryDirectory() as folder:
        pauses = asyncio.run(_measure(folder, 50 if quick else 500))
    rows = [row for name, figures in pauses.items() for row in _rows(name, figures)]
    plain, awaited, sleep = (median(figures) for figures in pauses.values())
    ratio = (awaited - sleep) / (plain - sleep)
    rows.append(figure("aconsent() over consent(), both less sleep", ratio, "median", SHARE))
    return Table("event-loop: how long a decision stops it", rows, NOTES)


def _rows(name: str, pauses: list[float]) -> list[Row]:
    where = f"{len(pauses)} persons"
    return [
        figure(f"{name}: pause, ms, median", median(pauses) * 1e3, where),
        figure(f"{name}: pause, ms, worst", max(pauses) * 1e3, where),
    ]


async def _measure(folder: str, persons: int) -> dict[str, list[float]]:
    collections = parse_collections(FILE, lambda _: [])
    calls: dict[str, Call] = {"consent()": _consent, "aconsent()": _aconsent, "sleep": _sleep}
    pauses: dict[str, list[float]] = {name: [] for name in calls}
    async with Client(
        "http://127.0.0.1:9", collections=collections, state_dir=folder, persons=True
    ) as client:
        for number in range(persons):
            for name, call in calls.items():
                person = client.person(f"{name} {number}")
                pauses[name].append(await _longest_pause(call, person))
    return pauses


async def _sleep(_: Person) -> None:
    await asyncio.sleep(SLEEP)


async def _consent(person: Person) -> None:
    person.consent(True)


async def _aconsent(person: Person) -> None:
    await person.aconsent(True)


async def _longest_pause(call: Call, person: Person) -> float:
    """Return the longest time between two turns of the loop until a call has ended."""
    ticks = [time.perf_counter()]
    task = asyncio.ensure_future(call(person))
    while not task.done():
        await asyncio.sleep(0.0002)
        ticks.append(time.perf_counter())
    assert await task is None
    return max(later - earlier for earlier, later in pairwise(ticks))
