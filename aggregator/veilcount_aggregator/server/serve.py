"""`veilcount serve`: check the settings, start the processes, serve until SIGTERM.

What analysts request is computed in processes of a pool, one request each at a time, at a lower
priority and in memory of their own (`analysis_pool`). Workers answer all other requests.
"""

from __future__ import annotations

import gc
import logging
import os
import socket
import sys
from contextlib import suppress
from dataclasses import replace
from functools import partial

from veilcount_serving.listen_address import ListenAddress
from veilcount_serving.malloc import limit_malloc_arenas
from veilcount_serving.posix import require_posix
from veilcount_serving.structured_logging import configure_logging, log_event
from veilcount_serving.worker_processes import (
    Announce,
    StartupSummary,
    enter_worker,
    raise_file_limit,
    run_workers,
)
from veilcount_serving.wsgi_threads import WsgiThreads
from veilcount_shared.errors import VeilcountError

from ..errors import StoreUnavailable
from ..intake.group_intake import LoopIntake
from ..queries.published_figures import unpublished
from ..records.definitions import read_source
from ..releases.release_journal import ReleaseJournal
from ..service import Aggregator
from ..settings import Settings
from ..store import DurabilityState, store_file
from ..store.store_url import redact_url
from .analysis_pool.places import PLACES, PoolPlace
from .analysis_pool.process import run as run_analysis
from .analysis_pool.supervisor import AnalysisPool
from .app import WebApplication, assemble
from .rsgi import RsgiApplication
from .wsgi import app

OPENING_SECONDS = 3.0

UNAVAILABLE = "UNAVAILABLE: opened once it is reachable"
_DURABLE = {
    DurabilityState.YES: "durable",
    DurabilityState.NO: "NOT durable",
    DurabilityState.UNKNOWN: "durability unknown",
    DurabilityState.MANAGED: "durability vouched for",
}


def prepare(settings: Settings, bind: ListenAddress) -> StartupSummary:
    """Check everything that a worker will need, while errors can still be reported.

    A Redis store that is unreachable now is no error of the settings: workers start, report not
    ready, and open the store once it is reachable.
    """
    bind.check()
    if settings.journal is not None:
        ReleaseJournal(settings.journal).check()
    try:
        return _opened(settings, bind)
    except StoreUnavailable as error:
        if store_file(settings.store):  # no file appears by itself
            raise
        configure_logging(sys.stderr)
        for file in settings.collections:
            read_source(file)
        log_event("store unavailable", logging.WARNING, reason=str(error))
        return StartupSummary(
            bind, redact_url(settings.store), UNAVAILABLE, settings.workers, "unknown"
        )


def _opened(settings: Settings, bind: ListenAddress) -> StartupSummary:
    aggregator = Aggregator.open(settings)
    try:
        assemble(aggregator)
        _log_unpublished(aggregator)
        health = aggregator.store.health()
        intake = "open" if aggregator.known().api_keys.intake_is_open else "keyed"
    finally:
        with suppress(StoreUnavailable):  # no counters to flush: nothing was served yet
            aggregator.close()
    durable = _DURABLE[health.durable] + (f": {health.why}" if health.why else "")
    read_only = " READ-ONLY" if health.read_only else ""
    return StartupSummary(
        bind, redact_url(settings.store) + read_only, durable, settings.workers, intake
    )


def _log_unpublished(aggregator: Aggregator) -> None:
    """Warn of names in --publish that nothing is published of: misspelt, or pushed later."""
    problems = list(unpublished(aggregator.snapshot(), aggregator.settings.publish))
    if problems:
        configure_logging(sys.stderr)
    for problem in problems:
        log_event("not published", logging.WARNING, reason=problem)


def serve(settings: Settings, bind: ListenAddress, announce: Announce) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code."""
    ready = start(settings, bind)
    pool = AnalysisPool(partial(_analyze, settings.analysis_memory // PLACES))
    pool.start()
    try:
        replacement = partial(_load_replacement, pool)
        return run_workers(
            ready,
            partial(_load, pool),
            announce,
            replacement,
            has_front=True,
            turns=_takes_turns(settings),
            spreads=not settings.rate_limit,  # it is the sum of what one worker sees
        )
    finally:
        pool.stop()  # after the workers: they may wait for it until they end


def start(settings: Settings, bind: ListenAddress) -> StartupSummary:
    """Check the settings, and set up this process for those that it forks."""
    require_posix("a server")
    ready = configure(settings, bind)
    limit_malloc_arenas()  # before processes are forked
    raise_file_limit()
    return ready


def configure(settings: Settings, bind: ListenAddress) -> StartupSummary:
    """Check the settings, and have the application of this process, and of its children, use them.

    The files were loaded just now; a restarted worker must not load a newer version. A store that
    is unavailable still has to receive them. Workers that take turns divide no rate limit.
    """
    ready = prepare(settings, bind)
    pending = settings.collections if ready.durable == UNAVAILABLE else ()
    workers = 1 if _takes_turns(settings) else settings.workers
    os.environ.update(replace(settings, collections=pending, workers=workers).environment())
    configure_logging(sys.stderr)
    return ready


def _takes_turns(settings: Settings) -> bool:
    """Whether one worker takes all reports: one that writes a file alone gathers larger groups."""
    return settings.workers > 1 and store_file(settings.store) is not None


def _analyze(megabytes: int, listener: socket.socket, place: PoolPlace, parent: int) -> int:
    """Run a process of the pool: open the application, compute what workers pass on."""
    with suppress(VeilcountError):
        app.open()
    try:
        return run_analysis(listener, app, place, megabytes, parent=parent)
    finally:
        if app.opened is not None:
            app.opened.close()


def _load(pool: AnalysisPool) -> RsgiApplication:
    """Load the application in a worker that leaves computations to the pool."""
    app.pool = pool
    return load_worker()


def _load_replacement(pool: AnalysisPool) -> RsgiApplication:
    """Load it in the place of a worker that died, and count that."""
    app.is_replacement = True
    return _load(pool)


def load_worker() -> RsgiApplication:
    """Load the application in a worker, before its first request.

    A store that is unavailable now may return.
    """
    enter_worker()
    threads = WsgiThreads(app, app.faults, ids=app.ids)
    application = RsgiApplication(_opened_here, threads)
    app.intake = LoopIntake  # before it is opened
    # Not for longer: a store that hangs must not fail the liveness probe.
    app.open_in_background().join(OPENING_SECONDS)
    gc.freeze()  # what was loaded lives as long as the worker: 50 ms a collection otherwise
    return application


def _opened_here() -> WebApplication | None:
    """Return the application, once it is open; the event loop that asks never waits for that."""
    if app.opened is not None:
        return app.opened.web
    app.open_in_background()
    return None
