"""What the intake costs, next to bare Flask on the same server: every report new, and durable.

Every figure of CPU is of processes, as the kernel counts it; a ratio is made of two that were
measured within the same few seconds, and what is shown is the median of all rounds.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from operator import attrgetter
from pathlib import Path
from statistics import median

from tests.engines import CLUSTER, REDIS, SQLITE, Engine, engine

from veilcount_aggregator.store import open_store

from .bare import KINDS
from .definitions import definitions, questions
from .load import CONNECTIONS, Costs, Served, Shape, load, served
from .table import Row, Table, figure

NOTES = (
    "us: CPU microseconds a request, server and workers; bare: reads the body and answers 204.",
    "A body of a hundred is of one pseudonym, as devices send them; mixed: of a hundred, as a",
    "  server that acts for many sends.",
    "INVALID: the generator took more than half of what the servers took.",
    f"SQLite with synchronous=FULL, Redis with appendfsync always; {CONNECTIONS} connections, one",
    "  worker.",
)
SLOTS = 128  # of the question that is asked: more than a body's reports
MOST_A_SECOND = {1: 16_000, 100: 4_000}  # bodies; if there are fewer than sent, a run is shorter
MOST_SHARE = 0.5  # of the generator, in what the servers take
ALONE, MANY, MIXED = Shape(1), Shape(100), Shape(100, mixed=True)
AT_ONCE = Shape(1, connections=256)
SEVERAL = Shape(1, questions=32)
PROXIED = Shape(1, proxied=True)
SINGLE = (ALONE, AT_ONCE)
BARE, *OTHER_BARE = KINDS
NAMES = {SQLITE: "SQLite", REDIS: "Redis", CLUSTER: "Redis Cluster"}
#: a store, a shape, whose CPU, and how many times bare Flask's it may be, on a quiet machine
LIMITS = (
    (SQLITE, ALONE, "app", 0.24),
    (REDIS, ALONE, "app", 0.21),
    (REDIS, ALONE, "store", 0.17),
    (SQLITE, AT_ONCE, "app", 0.12),
    (REDIS, AT_ONCE, "app", 0.09),
    (SQLITE, SEVERAL, "app", 0.35),
    (REDIS, SEVERAL, "app", 0.35),
    (SQLITE, MANY, "app", 1.7),
    (REDIS, MANY, "app", 0.85),
)
#: a store and a shape, and the microseconds of a request
MICROSECONDS = {(SQLITE, MIXED): 600, (REDIS, MIXED): 60}
CLUSTER_LIMITS = {(ALONE, "app"): 1.2, (ALONE, "store"): 1.6}  # over a single server
P99_LIMIT = 5  # ms
ROUNDS = 3

Round = Mapping[tuple[str, Shape], Costs]


def run(*, quick: bool) -> Table:
    """Measure everything, round after round."""
    seconds = 1 if quick else 3
    with tempfile.TemporaryDirectory() as name:
        rows = list(_servers(Path(name), seconds))
    return Table("ingest: what a report costs the aggregator", rows, NOTES)


def _servers(folder: Path, seconds: int) -> Iterator[Row]:
    """Load each store, and what counts nothing, in turn."""
    file = folder / "collections.toml"
    file.write_text(definitions(SLOTS, SEVERAL.questions), encoding="utf-8")
    with ExitStack() as stack:
        servers = {
            kind: stack.enter_context(served(Engine("none:"), file, bare=kind)) for kind in KINDS
        }
        for kind in NAMES:
            store = stack.enter_context(engine(kind, folder / kind))
            servers[kind] = stack.enter_context(served(store, file))
        rounds = [_round(servers, seconds) for _ in range(ROUNDS)]
        _check(servers, rounds)
    yield from _costs(rounds)
    yield from _ratios(rounds)


def _round(servers: Mapping[str, Served], seconds: int) -> Round:
    """Load each server with each shape of bodies."""
    return {
        (name, shape): load(server, SLOTS, shape, MOST_A_SECOND[shape.reports], seconds)
        for shape in (ALONE, PROXIED, AT_ONCE, SEVERAL, MANY, MIXED)
        for name, server in servers.items()
        if name in NAMES or shape in SINGLE
    }


def _check(servers: Mapping[str, Served], rounds: Sequence[Round]) -> None:
    """Refuse figures of reports that were not counted: nearly free, and worth nothing.

    What was on its way when a run was over may have been counted or not.
    """
    answered, doubtful = Counter[str](), Counter[str]()
    series = questions(SLOTS, SEVERAL.questions)
    for (name, shape), costs in (pair for turn in rounds for pair in turn.items()):
        answered[name] += costs.requests * shape.reports
        doubtful[name] += shape.reports * shape.connections
    for name in NAMES:
        with closing(open_store(servers[name].engine.url)) as store:
            counts = [sum(store.report_counts(one).values()) for one in series]
        assert abs(sum(counts) - answered[name]) <= doubtful[name], (name, counts)


def _costs(rounds: Sequence[Round]) -> Iterator[Row]:
    for (name, shape), costs in _by_subject(rounds).items():
        invalid = ", INVALID" if max(cost.share for cost in costs) > MOST_SHARE else ""
        where = f"{NAMES.get(name, name)}, {shape}{invalid}"
        limit = MICROSECONDS.get((name, shape))
        yield figure("us", median(cost.app for cost in costs), where, limit)
    worst = max(costs.share for turn in rounds for costs in turn.values())
    yield figure("generator / server, worst", worst, "", MOST_SHARE)
    for name in (SQLITE, REDIS):
        for shape in SINGLE:
            p99 = median(cost.p99 for cost in _by_subject(rounds)[name, shape])
            limit = P99_LIMIT if shape is ALONE else None
            yield figure("p99, ms", p99 / 1000, f"{NAMES[name]}, {shape}", limit)


def _by_subject(rounds: Sequence[Round]) -> dict[tuple[str, Shape], list[Costs]]:
    return {subject: [turn[subject] for turn in rounds] for subject in rounds[0]}


def _ratios(rounds: Sequence[Round]) -> Iterator[Row]:
    bare = (BARE, ALONE), "app"
    for name in OTHER_BARE:
        yield figure("x bare Flask", _ratio(rounds, ((name, ALONE), "app"), bare), name)
    for name, shape, part, most in LIMITS:
        own = (BARE, shape) if shape in SINGLE else bare[0]
        ratio = _ratio(rounds, ((name, shape), part), (own, "app"))
        where = f"{part}, {shape}, {NAMES[name]}"
        yield figure("x bare Flask", ratio, where, most)
    for shape in (ALONE, MANY, MIXED):
        for part in ("app", "store"):
            ratio = _ratio(rounds, ((CLUSTER, shape), part), ((REDIS, shape), part))
            limit = CLUSTER_LIMITS.get((shape, part))
            yield figure("cluster / single", ratio, f"{part}, {shape}", limit)


Part = tuple[tuple[str, Shape], str]  # a server and a shape, and whose CPU


def _ratio(rounds: Sequence[Round], one: Part, other: Part) -> float:
    """Return the median ratio of two costs that were measured within one round."""
    return median(_cost(turn, one) / _cost(turn, other) for turn in rounds)


def _cost(costs: Round, part: Part) -> float:
    return float(attrgetter(part[1])(costs[part[0]]))
