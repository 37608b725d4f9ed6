"""`veilcount serve`: check the settings, start the processes, serve until SIGTERM.

Workers answer devices and probes. What analysts and administrators request is computed in one
separate process, at a lower priority and in memory of its own (`analysis_process`).
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
from wsgiref.types import WSGIApplication

from veilcount_serving.listen_address import ListenAddress
from veilcount_serving.structured_logging import configure_logging, log_event
from veilcount_serving.worker_processes import (
    Announce,
    StartupSummary,
    enter_worker,
    limit_malloc_arenas,
    raise_file_limit,
    run_workers,
)
from veilcount_serving.wsgi_threads import WsgiThreads
from veilcount_shared.errors import VeilcountError

from ..errors import StoreError, StoreUnavailable
from ..records.definitions import read_source
from ..releases.release_journal import ReleaseJournal
from ..service import Aggregator
from ..settings import Settings
from ..store import DurabilityState, store_file
from ..store.store_url import redact_url
from ..web.api.request_metrics import RequestMetrics
from .analysis_process.forwarding import Forwarder
from .analysis_process.supervisor import AnalysisProcess
from .analysis_process.worker import run as run_analysis
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


def serve(settings: Settings, bind: ListenAddress, announce: Announce) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code."""
    ready = start(settings, bind)
    analysis = AnalysisProcess(partial(_analyze, settings.analysis_memory))
    analysis.start()
    try:
        address = analysis.address
        return run_workers(
            ready, partial(_load, address), announce, partial(_load_replacement, address)
        )
    finally:
        analysis.stop()  # after the workers: they may wait for it until they end


def start(settings: Settings, bind: ListenAddress) -> StartupSummary:
    """Check the settings, and set up this process for those that it forks."""
    ready = prepare(settings, bind)
    # The files were loaded just now; a restarted worker must not load a newer version. A store that
    # is unavailable still has to receive them.
    pending = settings.collections if ready.durable == UNAVAILABLE else ()
    os.environ.update(replace(settings, collections=pending).environment())
    configure_logging(sys.stderr)
    limit_malloc_arenas()  # before processes are forked
    raise_file_limit()
    return ready


def _analyze(megabytes: int, listener: socket.socket, parent: int) -> int:
    """Run the analysis process: open the application, answer what workers forward."""
    with suppress(VeilcountError):
        app.open()
    try:
        return run_analysis(listener, app, parent, megabytes)
    finally:
        if app.opened is not None:
            app.opened.close()


def _load(analysis: str) -> RsgiApplication:
    """Load the application in a worker that leaves queries to the analysis process."""
    forwarder = Forwarder(app, analysis, changed=_refresh, refused=_count_refusal, ids=app.ids)
    app.analysis_is_up = forwarder.is_up
    return load_worker(forwarder)


def _load_replacement(analysis: str) -> RsgiApplication:
    """Load it in the place of a worker that died, and count that."""
    app.is_replacement = True
    return _load(analysis)


def load_worker(others: WSGIApplication) -> RsgiApplication:
    """Load the application in a worker, before its first request; `others` are not of devices.

    A store that is unavailable now may return.
    """
    enter_worker()
    threads = WsgiThreads(others, app.faults, ids=app.ids)
    application = RsgiApplication(_opened_here, threads)
    app.deliver = application.deliver  # before it is opened, since it is put together with this
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


def _refresh() -> None:
    """Reload definitions and keys after a forwarded request changed them."""
    if app.opened is not None:
        with suppress(StoreError):
            app.opened.aggregator.catalog_cache.refresh()


def _count_refusal(reason: str) -> None:
    if app.opened is not None:
        RequestMetrics(app.opened.aggregator.service_counters).unanalyzed(reason)
