"""What the intake costs, next to bare Flask on the same server: every report new, and durable.

Every figure of CPU is of processes, as the kernel counts it; a ratio is made of two that were
measured within the same few seconds, and what is shown is the median of all rounds.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from veilcount_aggregator.series.series import Series
from veilcount_aggregator.store import open_store

from .ingest_inside import bytes_a_row
from .ingest_load import CONNECTIONS, BodyFile, Heard, Shape, definitions, load, question
from .ingest_servers import Served, engine, served
from .table import Row, Table

COLUMNS = {"what": "", "value": ".4g", "where": "", "target": "", "met": ""}
NOTES = (
    "us: CPU microseconds a request, server and workers; bare: reads the body and answers 204.",
    "A marginal report: what n = 100 costs beyond n = 1, over 99. A body is of one pseudonym, as",
    "  devices send them; mixed: of a hundred, as no device does.",
    "INVALID: the generator took more than half of what the servers took.",
    "SQLite with synchronous=FULL, Redis with appendfsync always; {} connections, one worker.",
)
SLOTS = 128  # of the question that is asked: more than a body's reports
MOST_A_SECOND = {1: 12_000, 100: 4_000}  # bodies; if there are fewer than sent, a run is shorter
MOST_SHARE = 0.5  # of the generator, in what the servers take
ALONE, MANY, MIXED = Shape(1), Shape(100), Shape(100, mixed=True)
BARE, SQLITE, REDIS, CLUSTER = "bare Flask", "SQLite", "Redis", "Redis Cluster"

Subject = tuple[str, Shape]
Round = Mapping[Subject, Heard]
Figure = Callable[[Round], float]


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured."""

    seconds: int
    rounds: int
    servers: tuple[str, ...]
    rows: int


def run(*, quick: bool) -> Table:
    """Measure everything, round after round."""
    effort = Effort(1, 3, ("granian",), 10**5) if quick else Effort(3, 3, SERVERS, 10**6)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [row for server in effort.servers for row in _of_server(server, folder, effort)]
        rows += _alone(folder, effort)
    notes = tuple(note.format(CONNECTIONS) for note in NOTES)
    return Table("ingest: what a report costs the aggregator", COLUMNS, rows, notes)


SERVERS = ("granian", "gunicorn")


# -- on a server -----------------------------------------------------------------------------------


def _of_server(server: str, folder: Path, effort: Effort) -> Iterator[Row]:
    """Load each store behind this server, and bare Flask, in turn."""
    place = folder / server
    place.mkdir()
    file = place / "collections.toml"
    file.write_text(definitions(SLOTS), encoding="utf-8")
    with ExitStack() as stack:
        loads = Loads(place, effort.seconds)
        for name, kind in ENGINES.items():
            found = stack.enter_context(engine(kind, place / kind)) if kind else None
            loads.servers[name] = stack.enter_context(served(server, found, file))
        rounds = [loads.round() for _ in range(effort.rounds)]
        loads.check()
    yield from _compared(server, rounds)


ENGINES = {BARE: "", SQLITE: "sqlite", REDIS: "redis", CLUSTER: "cluster"}


class Loads:
    """Servers side by side, loaded one after the other."""

    def __init__(self, folder: Path, seconds: int) -> None:
        self.servers: dict[str, Served] = {}
        self._seconds = seconds
        self._file = folder / "bodies"
        self._question = question(SLOTS)
        self._chance = np.random.default_rng()
        self._answered = dict.fromkeys(ENGINES, 0)
        self._runs = dict.fromkeys(ENGINES, 0)

    def round(self) -> Round:
        """Load each server with each shape of bodies."""
        return {
            (name, shape): self._load(name, shape)
            for shape in (ALONE, MANY, MIXED)
            for name in self.servers
        }

    def _load(self, name: str, shape: Shape) -> Heard:
        heard = load(self.servers[name], self.body_file(shape), self._seconds)
        self._answered[name] += heard.requests * shape.reports
        self._runs[name] += shape.reports
        return heard

    def body_file(self, shape: Shape) -> BodyFile:
        """Return bodies that nobody has seen."""
        number = MOST_A_SECOND[shape.reports] * self._seconds
        return BodyFile.write(self._file, self._question, shape, number, self._chance)

    def check(self) -> None:
        """Refuse figures of reports that were not counted: nearly free, and worth nothing.

        What was on its way when a run was over may have been counted or not.
        """
        for name, server in self.servers.items():
            if not server.engine.url:
                continue
            store = open_store(server.engine.url)
            counted = sum(store.report_counts(Series(self._question)).values())
            store.close()
            doubtful = self._runs[name] * CONNECTIONS
            assert abs(counted - self._answered[name]) <= doubtful, (name, counted)


def _compared(server: str, rounds: Sequence[Round]) -> Iterator[Row]:
    for name, shape in rounds[0]:
        yield _cost([each[name, shape] for each in rounds], name, shape.name, server)
    for store, limit in ((SQLITE, 1.6), (REDIS, 1.7)):
        yield _ratio(rounds, _times_bare(store), "n = 1 / bare", limit, store, server)
    for shape, held in ((MANY, True), (MIXED, False)):
        for what, store, limit, figure in _margins(shape):
            where = (what, shape.name, store, server)
            yield _ratio(rounds, figure, "marginal report / bare", limit if held else None, *where)
    for shape, held in ((MANY, True), (MIXED, False)):
        for what, limit in (("app", 1.4), ("store", 1.3)):
            where = (what, shape.name, CLUSTER, server)
            figure = _cluster(what, shape)
            yield _ratio(rounds, figure, "cluster / single", limit if held else None, *where)
    worst = max(heard.share for each in rounds for heard in each.values())
    yield _row("generator / server, worst", worst, server, limit=MOST_SHARE)


def _cost(heard: Sequence[Heard], *where: str) -> Row:
    invalid = ("INVALID",) if max(each.share for each in heard) > MOST_SHARE else ()
    return _row("us", median(each.app for each in heard), *where, *invalid)


def _times_bare(store: str) -> Figure:
    return lambda each: each[store, ALONE].app / each[BARE, ALONE].app


def _margins(shape: Shape) -> Iterator[tuple[str, str, float, Figure]]:
    for what, store, limit in (
        ("app", SQLITE, 0.06),
        ("app", REDIS, 0.012),
        ("store", REDIS, 0.036),
    ):
        yield what, store, limit, _margin(what, store, shape)


def _margin(what: str, store: str, shape: Shape) -> Figure:
    def figure(each: Round) -> float:
        many, one = (getattr(each[store, shape_], what) for shape_ in (shape, ALONE))
        return float(many - one) / (shape.reports - 1) / each[BARE, shape].app

    return figure


def _cluster(what: str, shape: Shape) -> Figure:
    def figure(each: Round) -> float:
        cluster, single = (getattr(each[store, shape], what) for store in (CLUSTER, REDIS))
        return float(cluster / single)

    return figure


# -- the rest --------------------------------------------------------------------------------------


def _alone(folder: Path, effort: Effort) -> Iterator[Row]:
    yield _row("p99 / p50", _spread(folder, effort), "two workers on SQLite, n = 1", limit=4)
    size = bytes_a_row(folder / "memory", effort.rows)
    yield _row("bytes a pseudonym", size, f"Redis, 64 slots, {effort.rows:,} of them", limit=32)


def _spread(folder: Path, effort: Effort) -> float:
    """Return how much longer than half of all requests one in a hundred takes."""
    file = folder / "collections.toml"
    file.write_text(definitions(SLOTS), encoding="utf-8")
    loads = Loads(folder, effort.seconds)
    with engine("sqlite", folder / "two") as found, served("granian", found, file, 2) as server:
        heard = [load(server, loads.body_file(ALONE), effort.seconds) for _ in range(effort.rounds)]
    return median(each.p99 / each.p50 for each in heard)


def _ratio(
    rounds: Sequence[Round], figure: Figure, what: str, limit: float | None, *where: str
) -> Row:
    return _row(what, median(map(figure, rounds)), *where, limit=limit)


def _row(what: str, value: float, *where: str, limit: float | None = None) -> Row:
    row: Row = {"what": what, "value": value, "where": ", ".join(where)}
    if limit is None:
        return row
    return {**row, "target": f"<= {limit:g}", "met": value <= limit}
