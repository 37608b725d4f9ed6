"""`veilcount serve`: everything that can be wrong is said first; then workers serve until SIGTERM.

Granian serves. In one run on one machine, with the real application, it took less than half of
gunicorn's CPU a request (`python -m bench.servers`), and it drains: on SIGTERM it takes no more
connections, finishes what it has taken, and ends. A worker that dies is replaced; one whose server
dies ends by itself. What no server here does is to end a body that never comes: 32 of those occupy
a worker, so a proxy that reads bodies first belongs in front of devices.

Workers answer devices and probes. What analysts and administrators ask for is computed in one
process beside them, at a lower priority and in memory of its own (`analysis_server`).
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.mp import MPServer

from veilcount_shared.errors import VeilcountError

from ..api.request_metrics import RequestMetrics
from ..catalog.definitions import read_source
from ..errors import StoreError, StoreUnavailable
from ..service import Aggregator
from ..settings import Settings
from ..store import DurabilityState
from ..store.url_redaction import redact_url
from ..structured_logging import say, set_up
from .analysis_process.forwarding import Forwarder
from .analysis_process.supervisor import AnalysisProcess
from .analysis_process.worker import run as run_analysis
from .app import create_app
from .listen_address import ListenAddress
from .wsgi import app

if TYPE_CHECKING:
    from _typeshed import OptExcInfo

NAME = "veilcount"
THREADS = 32  # a worker's requests at once: what a group commit can group
DRAIN_SECONDS = 8  # less than the ten that a container gets
HEADER_MILLISECONDS = 10_000
HEADER_BYTES = 64 << 10  # roughly: beyond it, a stranger's headers would fill our memory
STARTING_SECONDS = 60.0
OPENING_SECONDS = 3.0
RESPAWN_SECONDS = 1.0
MOST_IN_A_ROW = 10

UNAVAILABLE = "UNAVAILABLE: it is opened when it answers"
_DURABLE = {
    DurabilityState.YES: "durable",
    DurabilityState.NO: "NOT durable",
    DurabilityState.UNKNOWN: "durable?",
}


@dataclass(frozen=True, slots=True)
class StartupSummary:
    """What an operator is told once it serves."""

    bind: ListenAddress
    store: str
    durable: str
    workers: int
    intake: str

    @property
    def facts(self) -> dict[str, str | int]:
        """For programs."""
        return asdict(self) | {"bind": str(self.bind)}

    def __str__(self) -> str:
        """One line."""
        workers = f"{self.workers} worker{'s' if self.workers > 1 else ''}"
        return (
            f"veilcount: serving at {self.bind} from {self.store} ({self.durable}), "
            f"{workers}, intake {self.intake}"
        )


def prepare(settings: Settings, bind: ListenAddress) -> StartupSummary:
    """Try everything that a worker will need, in the process that can still say what is wrong.

    Servers of a store that do not answer now are nothing wrong with the settings: workers serve,
    not ready, and open the store when it answers.
    """
    bind.check()
    try:
        return _opened(settings, bind)
    except StoreUnavailable as error:
        if urlsplit(settings.store).scheme == "sqlite":  # a file that comes to life by nobody
            raise
        set_up(sys.stderr)
        for file in settings.collections:
            read_source(file)
        say("store unavailable", logging.WARNING, why=str(error))
        return StartupSummary(
            bind, redact_url(settings.store), UNAVAILABLE, settings.workers, "unknown"
        )


def _opened(settings: Settings, bind: ListenAddress) -> StartupSummary:
    aggregator = Aggregator.open(settings)
    try:
        create_app(aggregator)
        health = aggregator.store.health()
        intake = "open" if aggregator.known().keyring.intake_is_open else "keyed"
    finally:
        with suppress(StoreUnavailable):  # its figures wait in no memory: nothing was served yet
            aggregator.close()
    durable = _DURABLE[health.durable] + (f": {health.why}" if health.why else "")
    fenced = " FENCED" if health.read_only else ""
    return StartupSummary(
        bind, redact_url(settings.store) + fenced, durable, settings.workers, intake
    )


#: what the server itself says goes where our own lines go, without its words
LOGGING = {
    "formatters": {"lines": {"()": "veilcount_aggregator.structured_logging.Lines"}},
    "handlers": {
        "lines": {
            "class": "logging.StreamHandler",
            "formatter": "lines",
            "stream": "ext://sys.stderr",
        }
    },
    "loggers": {"_granian": {"handlers": ["lines"], "propagate": False}},
}

Tell = Callable[[StartupSummary], None]


def serve(settings: Settings, bind: ListenAddress, tell: Tell) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code."""
    ready = prepare(settings, bind)
    # The files were loaded just now; a worker that is replaced must not load a newer one. A store
    # that was away has them to come still.
    waits = settings.collections if ready.durable == UNAVAILABLE else ()
    os.environ.update(replace(settings, collections=waits).environment())
    set_up(sys.stderr)
    analysis = AnalysisProcess(partial(_analyze, settings.analysis_memory))
    analysis.start()
    server = _server(settings, bind)
    threading.Thread(target=_announce, args=(ready, tell), daemon=True).start()
    try:
        server.serve(target_loader=partial(_load, analysis.address), wrap_loader=False)
    except SystemExit as ended:  # a worker that was faster to end than its server is no failure
        return 0 if server.interrupt_signal else int(ended.code or 0)
    finally:
        analysis.stop()  # after the workers: they may wait for it until they end
    return 0


def _analyze(megabytes: int, listener: socket.socket, parent: int) -> int:
    """Be the analysis process: open what a worker opens, and answer what workers hand on."""
    with suppress(VeilcountError):
        app.open()
    try:
        return run_analysis(listener, app, parent, megabytes)
    finally:
        if app.opened is not None:
            app.opened.close()


def _server(settings: Settings, bind: ListenAddress) -> MPServer:
    server = MPServer(
        NAME,
        address=bind.host,
        port=bind.port,
        uds=bind.path,
        interface=Interfaces.WSGI,
        workers=settings.workers,
        blocking_threads=THREADS,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(
            header_read_timeout=HEADER_MILLISECONDS, max_buffer_size=HEADER_BYTES
        ),
        websockets=False,
        log_dictconfig=LOGGING,
        log_level=LogLevels.error,
        respawn_failed_workers=True,
        workers_kill_timeout=DRAIN_SECONDS,
    )
    server.respawned_wrks = _Respawns()
    return server


class _Respawns(dict[int, float]):
    """When each worker was replaced last, for Granian, which ends altogether when one dies twice
    within five seconds. It finds nothing here and replaces it again, at most once a second; unless
    so many died in a row that no worker seems to live.
    """

    _last = 0.0
    _in_a_row = 0

    def __setitem__(self, worker: int, at: float) -> None:
        self._in_a_row = self._in_a_row + 1 if at - self._last < RESPAWN_SECONDS * 2 else 0
        if self._in_a_row > MOST_IN_A_ROW:
            super().__setitem__(worker, at)
        time.sleep(max(0.0, self._last + RESPAWN_SECONDS - at))
        self._last = time.monotonic()
        say("worker replaced", logging.WARNING)


def _load(analysis: str) -> WSGIApplication:
    """Open in the worker, before its first request. A store that is down now may come back.

    Until it serves, a worker ends at once when asked to (the handler it was born with is the
    server's). Ctrl-C reaches the server alone, which asks its workers: one that is asked twice, by
    two signals, may wait for ever.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    forwarder = Forwarder(app, analysis, changed=_look, refused=_count_refusal)
    app.analysis_is_up = forwarder.is_up  # before it is opened: the metrics are built with it
    opening = threading.Thread(target=_open, daemon=True)
    opening.start()
    opening.join(OPENING_SECONDS)  # a store that hangs does not keep a worker from being alive
    threading.Thread(target=_follow, daemon=True).start()
    return nameless(forwarder)


def _look() -> None:
    """Know at once what the analysis process changed on behalf of a request of this worker."""
    if app.opened is not None:
        with suppress(StoreError):
            app.opened.aggregator.watch.refresh()


def _count_refusal(reason: str) -> None:
    """Count a request that the analysis process did not answer."""
    if app.opened is not None:
        RequestMetrics(app.opened.aggregator.service_counters).unanalyzed(reason)


def _open() -> None:
    with suppress(VeilcountError):  # it was logged
        app.open()


def nameless(onward: WSGIApplication) -> WSGIApplication:
    """Return an application whose replies do not name what serves it: Granian would add itself."""

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        def begin(
            status: str, headers: list[tuple[str, str]], error: OptExcInfo | None = None, /
        ) -> Callable[[bytes], object]:
            return start(status, [*headers, ("Server", NAME)], error)

        return onward(environ, begin)

    return answer


def _follow() -> None:
    """End with the server: a worker whose server was killed would hold the port for ever."""
    server = multiprocessing.parent_process()
    while server is not None and os.getppid() == server.pid:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(DRAIN_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


def _announce(ready: StartupSummary, tell: Tell) -> None:
    """Say so once it takes connections."""
    ends = time.monotonic() + STARTING_SECONDS
    while not ready.bind.answers():
        if time.monotonic() > ends:
            return
        time.sleep(0.02)
    tell(ready)
