"""Many persons, several processes, forks: one state keeps everybody's caps."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from random import Random

import pytest

from veilcount_client import Client
from veilcount_client.state.sqlite_database import FILE

from .device_fixtures import Wire, at, clock_at, file, quick

COLLECTIONS = file(
    event={"unit": "event", "per_day": 4},
    day={},
    linked={"unit": "event", "per_day": 3, "linkage": "collection"},
)
PROCESSES, FORKS, RECORDS = 2, 2, 2  # of each of two processes two forks, each records twice
PATIENCE = 1000  # times a busy state may refuse before a store is given up


def a_client(place: str) -> Client:
    """Return a client of many persons."""
    clock = clock_at(at(3, 12))
    return Client(
        collections=COLLECTIONS,
        state_dir=place,
        persons=True,
        transport=Wire(clock),
        clock=clock,
        threaded=False,
    )


def busy(place: str, persons: int) -> None:
    """Record for everybody, in this process and in its forks, all at the same time."""
    client = a_client(place)
    children = []
    for _ in range(FORKS):
        child = os.fork()
        if child == 0:
            record(client, persons)
            os._exit(0)
        children.append(child)
    record(client, persons)
    for child in children:
        _, status = os.waitpid(child, 0)
        assert status == 0


def record(client: Client, persons: int) -> None:
    """Record for everybody, in an order of one's own; store a thousand at a time."""
    order = list(range(persons)) * RECORDS
    Random(os.getpid()).shuffle(order)
    for first in range(0, len(order), 300):
        for person in order[first : first + 300]:
            for name in COLLECTIONS:
                client.person(person).record(name, True)
        assert any(client.flush(until="stored") for _ in range(PATIENCE))


def population(persons: int) -> list[tuple[int, int, int, int]]:
    """Return, of each person and collection, answers, slots, pseudonyms and the period."""
    with tempfile.TemporaryDirectory(dir=quick()) as place:
        client = a_client(place)
        for person in range(persons):
            client.person(person).consent(True)
        spawn = get_context("spawn")
        processes = [spawn.Process(target=busy, args=(place, persons)) for _ in range(PROCESSES)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        client.close(0)
        assert [process.exitcode for process in processes] == [0] * PROCESSES
        with closing(sqlite3.connect(Path(place) / FILE)) as database:
            rows = database.execute(
                "select count(*), count(distinct slot), count(distinct pseudonym), period"
                " from report group by person, series, period"
            ).fetchall()
            spent = database.execute("select lineage, max(life), max(range_spent), count(*)"
                                     " from ledger group by lineage").fetchall()  # fmt: skip
    caps = {name: each.per_period for name, each in COLLECTIONS.items()}
    assert sorted(spent) == sorted(
        (name, cap * 10**6, cap * 10**6, persons) for name, cap in caps.items()
    )
    return rows


def check(persons: int) -> None:
    """Every person has given as many answers as the caps allow, and not one more."""
    rows = population(persons)
    wanted = sorted([each.per_period for each in COLLECTIONS.values()] * persons)

    assert sorted(count for count, *_ in rows) == wanted
    assert all(count == slots for count, slots, *_ in rows)
    assert all(names == 1 and period == 3 for *_, names, period in rows)


def test_two_processes_and_four_forks_keep_all_caps() -> None:
    """Six processes record for the same persons at once: every cap is met and none exceeded."""
    check(100)


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_two_processes_and_four_forks_keep_a_hundred_thousand_caps() -> None:
    """The same for as many persons as a large server has."""
    check(100_000)
