"""Where the time goes: the functions that take most of it, on the three ways that are gone most.

By cProfile, whose own work falls on what is called often: shares, not times. A call into C counts
as a function of its own, waiting included: `execute` is SQLite, and the disk.
"""

from __future__ import annotations

import cProfile
import io
import pstats
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from datetime import date
from fractions import Fraction
from pathlib import Path
from time import process_time

import numpy as np

from veilcount_aggregator.intake.decode import RequestBody
from veilcount_aggregator.intake.group_intake import IntakeRequest
from veilcount_aggregator.service import Aggregator
from veilcount_aggregator.settings import Settings
from veilcount_aggregator.store import VERDICTS, open_store
from veilcount_analysis import estimate
from veilcount_shared import Collection
from veilcount_shared.domain import Choice
from veilcount_shared.periods import Unit
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import BINARY_TYPE

from . import client_worker
from .ingest_load import Shape, bodies, definitions, question
from .table import Row, Table

COLUMNS = {"way": "", "function": "", "share %": ".1f", "calls": ",d"}
NOTES = (
    "share: of the way's CPU time that a function takes itself, what it calls not counted.",
    "intake: packed bodies of one report, in groups of 32 as the intake's thread takes them, to",
    "  SQLite; the server's own work with a request is no part of it. estimate: a million answers",
    "  about 65,536 values. record: a value of each of many persons, and stored.",
)
SHOWN = 6
GROUP = 32  # bodies: those that arrive while a group is written, from as many connections
VALUES, ANSWERS = 65_536, 1_000_000


def run(*, quick: bool) -> Table:
    """Profile each way."""
    scale = 1 if quick else 4
    with tempfile.TemporaryDirectory() as name:
        rows = [
            *_shares("intake", _intake(Path(name), 500 * scale)),
            *_shares("estimate", _estimate(5 * scale)),
            *_shares("record", _record(Path(name) / "state", 1000 * scale)),
        ]
    return Table("hottest: where the time goes", COLUMNS, rows, NOTES)


def _shares(way: str, call: Callable[[], object]) -> Iterator[Row]:
    call()  # everything is loaded, every table made
    profile = cProfile.Profile(process_time)
    profile.runcall(call)
    found = pstats.Stats(profile, stream=io.StringIO()).stats  # type: ignore[attr-defined] # not in its stub
    times = {where: (own, calls) for where, (_, calls, own, _, _) in found.items()}
    whole = sum(own for own, _ in times.values())
    for where in sorted(times, key=times.__getitem__, reverse=True)[:SHOWN]:
        own, calls = times[where]
        yield {"way": way, "function": _named(*where), "share %": 100 * own / whole, "calls": calls}


def _named(file: str, _line: int, function: str) -> str:
    return function if file == "~" else f"{Path(file).stem}.{function}"


def _intake(folder: Path, number: int) -> Callable[[], object]:
    """Return what takes so many bodies, by groups; it can be called twice, each body is new."""
    file, url = folder / "collections.toml", f"sqlite:///{folder}/store.db"
    file.write_text(definitions(128), encoding="utf-8")
    open_store(url, make=True).close()
    aggregator = Aggregator.open(Settings(url, (file,)))
    rounds = iter([_groups(number), _groups(number)])

    def take() -> None:
        for group in next(rounds):
            for outcome in aggregator.take_group(group):
                assert not isinstance(outcome, Exception), outcome
                assert outcome.tolist() == [VERDICTS.index(Verdict.COUNTED)], outcome

    return take


def _groups(number: int) -> list[list[IntakeRequest]]:
    """Return so many new bodies, in groups."""
    raw = bodies(question(128), Shape(1), number, np.random.default_rng())
    size = len(raw) // number
    packed = (RequestBody(BINARY_TYPE, "", raw[at : at + size]) for at in range(0, len(raw), size))
    requests = [IntakeRequest(body, "", "", Future()) for body in packed]
    return [requests[first : first + GROUP] for first in range(0, number, GROUP)]


def _estimate(times: int) -> Callable[[], object]:
    """Return what estimates so often."""
    collection = Collection(
        app="bench",
        name="bench",
        question="Which?",
        domain=Choice(tuple(range(VALUES))),
        epsilon=Fraction(1),
        unit=Unit.USER,
        start=date(2026, 1, 1),
        until=date(2026, 2, 1),
    )
    counters = getattr(collection.mechanism, "counters", 0)
    drawn = np.random.default_rng(1).multinomial(ANSWERS, np.full(counters, 1 / counters))
    return lambda: [estimate(collection, drawn) for _ in range(times)]


def _record(folder: Path, persons: int) -> Callable[[], object]:
    """Return what records a value of each person, and stores what was randomized."""
    question = client_worker.collection("event", 2)
    client = client_worker.client_of("http://127.0.0.1:9", str(folder), question, persons)
    worker = client_worker.worker_of(client)
    worker.threaded = False  # stored in the thread that is watched
    people = [client.person(number) for number in range(persons)]

    def record() -> None:
        for person in people:
            person.record("bench", True)
        assert worker.store()

    return record
