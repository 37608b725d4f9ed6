"""What the intake costs, next to bare Flask on the same server: every report new, and durable.

Every figure of CPU is of processes, as the kernel counts it; a ratio is made of two that were
measured within the same few seconds, and what is shown is the median of all rounds.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from veilcount_aggregator.store import open_store
from veilcount_analysis.series.series import Series

from .ingest_inside import bytes_a_row
from .ingest_load import CONNECTIONS, BodyFile, Heard, Shape, definitions, load, question
from .ingest_servers import Served, engine, served
from .table import Row, Table

COLUMNS = {"what": "", "value": ".4g", "where": "", "target": "", "met": ""}
NOTES = (
    "us: CPU microseconds a request, server and workers; bare: reads the body and answers 204.",
    "A body of a hundred is of one pseudonym, as devices send them; mixed: of a hundred, as a",
    "  server that acts for many sends.",
    "INVALID: the generator took more than half of what the servers took.",
    "SQLite with synchronous=FULL, Redis with appendfsync always; {} connections, one worker.",
)
SLOTS = 128  # of the question that is asked: more than a body's reports
MOST_A_SECOND = {1: 16_000, 100: 4_000}  # bodies; if there are fewer than sent, a run is shorter
MOST_SHARE = 0.5  # of the generator, in what the servers take
ALONE, MANY, MIXED = Shape(1), Shape(100), Shape(100, mixed=True)
SHAPES = (ALONE, MANY, MIXED)
BARE, BARE_RSGI, BARE_ASGI = "bare Flask", "bare RSGI", "bare ASGI"
SQLITE, REDIS, CLUSTER = "SQLite", "Redis", "Redis Cluster"
ENGINES = {SQLITE: "sqlite", REDIS: "redis", CLUSTER: "cluster"}
#: a store, a shape, whose CPU, and how many times bare Flask's it may be on granian
LIMITS = (
    (SQLITE, ALONE, "app", 0.6),
    (REDIS, ALONE, "app", 0.52),
    (REDIS, ALONE, "store", 0.17),
    (SQLITE, MANY, "app", 1.7),
    (REDIS, MANY, "app", 0.85),
)
CLUSTER_LIMIT = 1.3
SPREAD_LIMIT = 3

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
    """Load each store behind this server, and what counts nothing, in turn."""
    place = folder / server
    place.mkdir()
    file = place / "collections.toml"
    file.write_text(definitions(SLOTS), encoding="utf-8")
    with ExitStack() as stack:
        loads = Loads(place, effort.seconds)
        for name in BARES[server]:
            loads.servers[name] = stack.enter_context(served(server, None, file, bare=name))
        for name, kind in ENGINES.items():
            found = stack.enter_context(engine(kind, place / kind))
            loads.servers[name] = stack.enter_context(served(server, found, file))
        rounds = [loads.round() for _ in range(effort.rounds)]
        loads.check()
    yield from _compared(server, rounds)


BARES = {"granian": (BARE, BARE_RSGI, BARE_ASGI), "gunicorn": (BARE,)}


class Loads:
    """Servers side by side, loaded one after the other."""

    def __init__(self, folder: Path, seconds: int) -> None:
        self.servers: dict[str, Served] = {}
        self._seconds = seconds
        self._file = folder / "bodies"
        self._question = question(SLOTS)
        self._chance = np.random.default_rng()
        self._answered: Counter[str] = Counter()
        self._runs: Counter[str] = Counter()

    def round(self) -> Round:
        """Load each server with each shape of bodies."""
        return {
            (name, shape): self._load(name, shape)
            for shape in SHAPES
            for name in self.servers
            if name in ENGINES or shape is ALONE
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
    for name in BARES[server][1:]:
        yield _ratio(rounds, _times_bare(name, ALONE, "app"), "x bare Flask", None, name, server)
    for store, shape, what, limit in LIMITS:
        held = limit if server == "granian" else None
        where = (what, shape.name, store, server)
        yield _ratio(rounds, _times_bare(store, shape, what), "x bare Flask", held, *where)
    for shape in SHAPES:
        for what in ("app", "store"):
            held = CLUSTER_LIMIT if server == "granian" and shape in {ALONE, MANY} else None
            figure = _cluster(what, shape)
            yield _ratio(rounds, figure, "cluster / single", held, what, shape.name, server)
    for store in (SQLITE, REDIS):
        heard = [each[store, ALONE] for each in rounds]
        spread = median(each.p99 / each.p50 for each in heard)
        held = SPREAD_LIMIT if server == "granian" else None
        yield _row("p99 / p50", spread, store, ALONE.name, server, limit=held)
    worst = max(heard.share for each in rounds for heard in each.values())
    yield _row("generator / server, worst", worst, server, limit=MOST_SHARE)


def _cost(heard: Sequence[Heard], *where: str) -> Row:
    invalid = ("INVALID",) if max(each.share for each in heard) > MOST_SHARE else ()
    return _row("us", median(each.app for each in heard), *where, *invalid)


def _times_bare(store: str, shape: Shape, what: str) -> Figure:
    return lambda each: float(getattr(each[store, shape], what) / each[BARE, ALONE].app)


def _cluster(what: str, shape: Shape) -> Figure:
    def figure(each: Round) -> float:
        cluster, single = (getattr(each[store, shape], what) for store in (CLUSTER, REDIS))
        return float(cluster / single)

    return figure


# -- the rest --------------------------------------------------------------------------------------


def _alone(folder: Path, effort: Effort) -> Iterator[Row]:
    found = _two_workers(folder, effort)
    yield _row("requests/s, two workers / one", found, "SQLite, n = 1", at_least=1)
    size = bytes_a_row(folder / "memory", effort.rows)
    yield _row("bytes a pseudonym", size, f"Redis, 64 slots, {effort.rows:,} of them", limit=32)


def _two_workers(folder: Path, effort: Effort) -> float:
    """Return how many times the requests of one worker two of them answer, on one file."""
    file = folder / "collections.toml"
    file.write_text(definitions(SLOTS), encoding="utf-8")
    loads = Loads(folder, effort.seconds)
    with ExitStack() as stack:
        servers = []
        for workers in (1, 2):
            found = stack.enter_context(engine("sqlite", folder / f"workers-{workers}"))
            servers.append(stack.enter_context(served("granian", found, file, workers)))
        ratios = []
        for _ in range(effort.rounds):
            one, two = (load(server, loads.body_file(ALONE), effort.seconds) for server in servers)
            ratios.append(two.a_second / one.a_second)
    return median(ratios)


def _ratio(
    rounds: Sequence[Round], figure: Figure, what: str, limit: float | None, *where: str
) -> Row:
    return _row(what, median(map(figure, rounds)), *where, limit=limit)


def _row(
    what: str,
    value: float,
    *where: str,
    limit: float | None = None,
    at_least: float | None = None,
) -> Row:
    row: Row = {"what": what, "value": value, "where": ", ".join(where)}
    if limit is not None:
        return {**row, "target": f"<= {limit:g}", "met": value <= limit}
    if at_least is not None:
        return {**row, "target": f">= {at_least:g}", "met": value >= at_least}
    return row
