"""A scaled-down fleet through the real intake: does a device cost as much as computed?

A server of one worker on a durable Redis Cluster of three takes one body of each device, each once;
what a device costs is divided out of what the kernel and Redis say.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np
from tests.redis_cluster import RedisCluster

from veilcount_aggregator.store import open_store

from .ingest_load import BodyFile, Heard, Shape, definitions, load, question
from .ingest_servers import Engine, Served, served
from .scale import COSTS
from .table import Row, Table

COLUMNS = {"what": "", "measured": ".4g", "on paper": ".4g", "target": "", "met": ""}
NOTES = (
    "Of one report of one device that is new, one a body, 32 connections; CPU of processes.",
    "on paper: `COSTS` of bench/scale.py, from which docs/scale.md is reckoned.",
)
OFF = 1.35  # by so much a machine that is shared may be off
SECONDS, MOST_A_SECOND = 5, 5_000
TURNS = 24  # some 100,000 devices, or more


def run(*, quick: bool) -> Table:
    """Send one report of each device; divide."""
    with tempfile.TemporaryDirectory() as name:
        rows = list(_devices(Path(name), 1 if quick else TURNS))
    return Table("scale: what a device costs, of very many", COLUMNS, rows, NOTES)


def _devices(folder: Path, turns: int) -> Iterator[Row]:
    (folder / "redis").mkdir()
    file = folder / "collections.toml"
    file.write_text(definitions(1), encoding="utf-8")
    cluster = RedisCluster(folder / "redis")
    try:
        open_store(cluster.url, make=True).close()
        store = Engine(cluster.url, tuple(node._process.pid for node in cluster.nodes))
        with served("granian", store, file) as server:
            _turn(server, folder)  # what is made once is no device's
            before = _memory_and_keys(cluster)
            heard = [_turn(server, folder) for _ in range(turns)]
            memory, log = (b - a for a, b in zip(before, _memory_and_keys(cluster), strict=True))
    finally:
        for node in cluster.nodes:
            node.kill()
    devices = sum(each.requests for each in heard)
    yield {"what": f"devices, {turns} turns", "measured": devices}
    yield _row("us of the aggregator", median(each.app for each in heard), COSTS.server)
    yield _row("us of Redis", median(each.store for each in heard), COSTS.store)
    yield _row("bytes of Redis", memory / devices, COSTS.row + 1)
    yield _row("bytes of Redis's log", log / devices, COSTS.log)


def _turn(server: Served, folder: Path) -> Heard:
    """Send bodies of devices that are new, one each."""
    number, chance = SECONDS * MOST_A_SECOND, np.random.default_rng()
    body_file = BodyFile.write(folder / "bodies", question(1), Shape(1), number, chance)
    return load(server, body_file, SECONDS)


def _memory_and_keys(cluster: RedisCluster) -> tuple[int, int]:
    """Return what the cluster holds in memory, and what it has appended to its files."""
    held = logged = 0
    for node in cluster.nodes:
        with node.connection() as connection:
            memory, log = connection.info("memory"), connection.info("persistence")
        held += int(memory["used_memory"]) - int(memory["mem_clients_normal"])
        logged += int(log["aof_current_size"])
    return held, logged


def _row(what: str, measured: float, paper: float) -> Row:
    met = measured <= paper * OFF
    limit = f"<= {paper * OFF:.3g}"
    return {"what": what, "measured": measured, "on paper": paper, "target": limit, "met": met}
