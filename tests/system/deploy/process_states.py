"""States in which processes are gone, die or hang, and those of an issuer.

What needs a process or a real delay runs `veilcount serve`; the rest asks the same application
without a socket.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from veilcount_aggregator.records.api_keys import Role, create_key
from veilcount_aggregator.server.analysis_pool.places import ALIVE_SECONDS
from veilcount_aggregator.store import open_store
from veilcount_aggregator.web.api.request_metrics import RequestMetrics
from veilcount_issuer.issuance_metrics import IssuanceMetrics

from ...aggregator.web.api.deployment_fixtures import Deployment
from ..server import Server
from .alert_timelines import MINUTE, UP, Timeline, acted, scraped, state
from .promtool import Sample, Scrape, read

FINGERPRINT = "a" * 64  # of a collection with tokens


@acted("WorkersDie", twice=True)
def workers_die(made: Deployment) -> None:
    """Five workers were replaced within ten minutes, as each counts when it starts."""
    for _ in range(5):
        RequestMetrics(made.aggregator.service_counters).replaced()


def gone(alert: str, *left: Sample) -> None:
    """Register the state in which only this is left of all figures."""

    @state(alert)
    def timeline(folder: Path) -> Timeline:
        with scraped(folder) as found:
            found.scrape(0)
        found.timeline.add(10 * MINUTE, [*left])
        return found.timeline


gone("Down", Sample(UP, {"job": "veilcount"}, 0))  # nobody answers: Prometheus has its own figure
gone("NotScraped")  # Prometheus has lost its targets, and has not even that
ISSUER_UP = Sample(UP, {"job": "veilcount-issuer"}, 1)


def issuer_figures(folder: Path, *problems: str, unpublished: int = 0) -> list[Sample]:
    """Return what an issuer exports after it has refused requests for these reasons."""
    with closing(open_store(f"sqlite:///{folder}/issuer.db", make=True)) as store:
        metrics = IssuanceMetrics(store)
        metrics.issued(FINGERPRINT, 4)
        for problem in problems:
            metrics.refused(problem)
        metrics.flush()
        exposition = "".join(metrics.exposition({FINGERPRINT: unpublished}))
    return [ISSUER_UP, *read(exposition)]


@state("IssuerDown")
def issuer_down(_: Path) -> Timeline:
    timeline = Timeline([Scrape(0, [ISSUER_UP])])
    timeline.add(10 * MINUTE, [ISSUER_UP._replace(value=0)])
    return timeline


def issuer_after(alert: str, *problems: str, unpublished: int = 0) -> None:
    """Register an issuer that refuses for these reasons, and has then so much to publish."""

    @state(alert)
    def timeline(folder: Path) -> Timeline:
        timeline = Timeline()
        for at, count in ((0, 0), (10 * MINUTE, unpublished)):
            timeline.add(at, issuer_figures(folder, *problems, unpublished=count))
        return timeline


issuer_after("IssuerUnavailable", "unavailable")  # its store is away: each account hears 503
issuer_after("IssuerUnpublished", unpublished=1)


@state("NoAnalysis", slow=True)
def no_analysis(folder: Path) -> Timeline:
    """The processes that compute hang: analysts hear 503."""
    url, timeline = f"sqlite:///{folder}/store.db", Timeline()
    with closing(open_store(url, make=True)) as store:
        _, key = create_key(store, Role.ANALYST, "prometheus", datetime.now(UTC))
    with Server(url, folder) as server:
        for at, how in ((0, signal.SIGCONT), (10 * MINUTE, signal.SIGSTOP)):
            for pid in server.analysis():
                os.kill(pid, how)
            time.sleep(ALIVE_SECONDS + 1)
            reply = server.ask("GET", "/metrics", headers={"Authorization": f"Bearer {key}"})
            timeline.add(at, list(read(reply.text)))
        for pid in server.analysis():
            os.kill(pid, signal.SIGCONT)
    return timeline
