"""A rolling upgrade under load, from an earlier revision to this one.

nginx, two aggregators, a real Redis Cluster, and clients of both revisions that send all the while.
One aggregator after the other is replaced by the new revision; one is rolled back, and upgraded
again. On SQLite one aggregator is stopped, and the next one started on the same file. Afterwards
each acknowledged report must have been counted once; an operator's session, keys and definitions
are looked for in every phase.

Another revision to start from: `UPGRADE_FROM=REVISION ./dev bench upgrade`. A full run waits after
each replacement until nginx has tried the replaced aggregator again; a quick one does not wait.
"""

from __future__ import annotations

import os
import re
import tempfile
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
from tests.redis_cluster import RedisCluster
from tests.system.deploy.nginx import in_front_of
from tests.system.faults.campaign import Campaign
from tests.system.faults.store_verification import assert_consistent
from tests.system.server import free_port

from veilcount_aggregator.errors import StoreUnfit
from veilcount_shared.report import Report
from veilcount_shared.verdict import Verdict

from .table import Row, Table
from .upgrade_deployment import (
    ROOT,
    Deployment,
    Exchange,
    Load,
    Phase,
    RevisionMissing,
    Version,
    extract,
    previous_revision,
)

SUCCESS = {Verdict.COUNTED, Verdict.DUPLICATE}
NO_SERVER = re.compile(r"502|504|[A-Za-z]+")  # nginx found none, or an error of the connection
UNLIMITED = {"rate=1r/s": "rate=10000r/s"}  # all clients of the benchmark have one address
FAIL_TIMEOUT = 11.0  # seconds: nginx sends nothing to a server that refused for ten
Versions = tuple[Version, Version]  # the older, the newer
Step = tuple[str, int, Version, Version | None]  # which aggregator, and `Deployment.replace`
NOTES = (
    "Clients of both revisions, through nginx; latencies are of bodies with verdicts. 503: of an",
    "aggregator; no server: nginx's 502 or 504, or no reply; sent again: bodies with a report sent",
    "before. Met: no other refusal, no verdict but `counted` and `duplicate`; session, keys and",
    "definitions are there; in the end all that was recorded was acknowledged, each acknowledged",
    "report is counted once, and no other is.",
)


def run(*, quick: bool) -> Table:
    """Upgrade on a Redis Cluster, then on SQLite."""
    try:
        revision = previous_revision()
    except RevisionMissing as error:
        if "UPGRADE_FROM" in os.environ:
            raise
        return Table("upgrade: skipped", [{"why": str(error)}])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        versions = extract(revision, folder / "old"), Version(ROOT)
        for version in versions:
            version.check()
        load = Load(12, 0) if quick else Load(150, FAIL_TIMEOUT)
        rows = [*_on_cluster(folder / "cluster", versions, load)]
        rows += _on_sqlite(folder / "sqlite", versions, load)
    return Table(f"upgrade: from {revision} to this revision", rows, NOTES)


def _on_cluster(folder: Path, versions: Versions, load: Load) -> Iterator[Row]:
    old, new = versions
    steps = [
        ("first of two to new", 0, new, None),
        ("second of two to new", 1, new, None),
        ("first back to old", 0, old, new),
        ("first to new again", 0, new, None),
    ]
    with closing(RedisCluster(folder / "redis")) as cluster:
        for row in _upgrade(cluster.url, folder, load, versions, steps):
            yield {"store": "cluster", **row}


def _on_sqlite(folder: Path, versions: Versions, load: Load) -> Iterator[Row]:
    old, new = versions
    steps = [("to new", 0, new, None), ("back to old", 0, old, new), ("to new again", 0, new, None)]
    folder.mkdir()
    for row in _upgrade(f"sqlite:///{folder}/store.db", folder, load, versions, steps):
        yield {"store": "SQLite", **row}


def _upgrade(
    url: str, folder: Path, load: Load, versions: Versions, steps: Sequence[Step]
) -> Iterator[Row]:
    ports = [free_port() for _ in {place for _, place, *_ in steps}]
    campaign = Campaign.write(folder)
    with closing(Deployment(url, campaign, folder, ports, load)) as deployment:
        operator = deployment.start(versions[0])
        with in_front_of(folder / "nginx", *ports, more=UNLIMITED) as nginx:
            deployment.connect(nginx, versions * 2)
            deployment.phase("old", operator)
            for name, place, version, fallback in steps:
                deployment.phase(
                    name, operator, partial(deployment.replace, place, version, fallback)
                )
            deployment.phase("new", operator)
            exchanges, recorded = deployment.finish()
    yield from _rows(deployment.phases, exchanges)
    yield _verify(url, campaign, exchanges, recorded)


def _rows(phases: Sequence[Phase], exchanges: Sequence[Exchange]) -> Iterator[Row]:
    begun = [phase.begun for phase in phases]
    sent: set[Report] = set()
    parts: list[list[tuple[Exchange, bool]]] = [[] for _ in phases]
    for exchange in exchanges:
        place = max(0, bisect_right(begun, exchange.at) - 1)
        parts[place].append((exchange, not sent.isdisjoint(exchange.reports)))
        sent.update(exchange.reports)
    for phase, part in zip(phases, parts, strict=True):
        again = sum(repeated for _, repeated in part)
        yield {**_row(phase, [exchange for exchange, _ in part]), "sent again": again}


def _row(phase: Phase, exchanges: Sequence[Exchange]) -> Row:
    failures = [exchange.why for exchange in exchanges if exchange.why]
    no_server = sum(bool(NO_SERVER.fullmatch(why)) for why in failures)
    wrong = {why for why in failures if why != "503" and not NO_SERVER.fullmatch(why)}
    wrong |= {verdict for exchange in exchanges for verdict in exchange.verdicts} - SUCCESS
    wrong |= {f"lost: {phase.lost}"} if phase.lost else set()
    median, high = np.percentile([e.seconds for e in exchanges if not e.why], (50, 99))
    return {
        "phase": phase.name,
        "bodies": len(exchanges),
        "p50, ms": 1000 * median,
        "p99, ms": 1000 * high,
        "503": failures.count("503"),
        "no server": no_server,
        "outcome": "; ".join([phase.outcome, *sorted(wrong)]).strip("; "),
        "met": not wrong,
    }


def _verify(url: str, campaign: Campaign, exchanges: Sequence[Exchange], recorded: int) -> Row:
    """Hold the store against what was acknowledged."""
    acknowledged = {
        report
        for exchange in exchanges
        for report, verdict in zip(exchange.reports, exchange.verdicts, strict=False)
        if verdict in SUCCESS
    }
    try:
        assert len(acknowledged) == recorded, f"{recorded:,} were recorded"
        assert_consistent(url, campaign, acknowledged)
    except (AssertionError, StoreUnfit) as error:
        outcome, met = str(error).splitlines()[0], False
    else:
        outcome, met = "each counted once", True
    return {
        "phase": "afterwards",
        "outcome": f"{len(acknowledged):,} acknowledged: {outcome}",
        "met": met,
    }
