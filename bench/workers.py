"""What a second worker on one SQLite file costs: requests a second for each CPU second, by turns.

One of two workers takes all reports, and its groups are as large as those of one that is alone; the
other one stands by. Both servers are loaded within the same few seconds.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from tests.engines import SQLITE, engine

from .definitions import definitions
from .ingest import ALONE, AT_ONCE, MOST_A_SECOND, SLOTS
from .load import Costs, Served, Shape, load, served
from .table import Row, Table, figure

NOTES = (
    "us: CPU microseconds a request, of the server with all its workers. A share: the median of",
    "  ratios of two runs of one round. SQLite with synchronous=FULL.",
)
ROUNDS = 7
LEAST_SHARE = 0.85  # of the requests a CPU second of one worker

Turns = Sequence[tuple[Costs, Costs]]  # of one worker, and of two


def run(*, quick: bool) -> Table:
    """Load one worker and two in turn, with few connections and with many."""
    seconds, rounds = (1, 3) if quick else (3, ROUNDS)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        servers = [_server(stack, Path(name), workers) for workers in (1, 2)]
        turns = [(shape, _turns(servers, shape, rounds, seconds)) for shape in (ALONE, AT_ONCE)]
        rows = [row for shape, costs in turns for row in _rows(shape, costs)]
    return Table("workers: two on one SQLite file", rows, NOTES)


def _server(stack: ExitStack, folder: Path, workers: int) -> Served:
    file = folder / "collections.toml"
    file.write_text(definitions(SLOTS), encoding="utf-8")
    store = stack.enter_context(engine(SQLITE, folder / f"workers-{workers}"))
    return stack.enter_context(served(store, file, workers))


def _turns(servers: Sequence[Served], shape: Shape, rounds: int, seconds: int) -> Turns:
    turns = []
    for _ in range(rounds):
        one, two = (load(server, SLOTS, shape, MOST_A_SECOND[1], seconds) for server in servers)
        turns.append((one, two))
    return turns


def _rows(shape: Shape, turns: Turns) -> Iterator[Row]:
    for workers, costs in zip(("one", "two"), zip(*turns, strict=True), strict=True):
        yield figure("us", median(cost.app for cost in costs), f"{workers}, {shape}")
        yield figure("requests/s", median(cost.a_second for cost in costs), f"{workers}, {shape}")
    gained = median(two.a_second / one.a_second for one, two in turns)
    yield figure("requests/s, two / one", gained, str(shape), least=1)
    shares = sorted(one.app / two.app for one, two in turns)
    yield figure("requests a CPU second, two / one", median(shares), str(shape), least=LEAST_SHARE)
    yield figure("the same, least", shares[0], str(shape))
    yield figure("the same, most", shares[-1], str(shape))
