"""`veilcount_aggregator.server.wsgi:app`: the aggregator for any WSGI server, configured by
environment variables.

Nothing is opened before the first request of a process (or `open()`): a server may load the
application and fork, and every worker has files, connections and threads of its own.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from multiprocessing.util import Finalize
from wsgiref.types import StartResponse, WSGIEnvironment

from veilcount_serving.request_ids import ENVIRON_NAME, RequestIds
from veilcount_serving.structured_logging import FaultLog, configure_logging
from veilcount_shared.errors import VeilcountError
from veilcount_shared.problem_details import PROBLEM_TYPE, RETRY_SECONDS
from veilcount_shared.wire import JSON_TYPE

from ..errors import StoreError, StoreUnavailable
from ..intake.group_intake import GroupIntake
from ..intake.live_reports import LiveReports
from ..service import Aggregator
from ..settings import Settings, variable_name
from ..store.retention.clock_guard import Clock
from ..web.api.health import ALIVE, ALIVE_PATH, NOT_OPEN, READY_PATH
from ..web.api.problems import problem_from_error
from ..web.api.request_metrics import RequestMetrics
from . import blas_threads  # noqa: F401 - before whatever imports numpy
from .analysis_pool.supervisor import AnalysisPool
from .app import WebApplication, assemble
from .background import BackgroundThread

NAME = "worker"
UNAVAILABLE = "503 Service Unavailable"
OPENING_SECONDS = 1.0  # that a request waits for another thread to open the store
CLOSING = 100  # priority of the finalizer


@dataclass(frozen=True, slots=True)
class OpenApplication:
    """The application and the resources that one process has opened."""

    pid: int
    aggregator: Aggregator
    background: BackgroundThread
    web: WebApplication
    faults: FaultLog

    def close(self) -> None:
        """Flush the counters and close the store."""
        self.background.stop()
        try:
            self.aggregator.close()
        except StoreError as error:  # the counters of the last second are lost, no report
            self.faults.log("store", NAME, error, reason=str(error))


class LazyApplication:
    """A WSGI application that opens its aggregator in the process that serves."""

    def __init__(
        self,
        variables: Mapping[str, str],
        seconds: Callable[[], float],
        clock: Clock = lambda: datetime.now(UTC),
    ) -> None:
        """Read nothing yet; `seconds` is a monotonic clock."""
        self._variables = variables
        self._seconds = seconds
        self._clock = clock
        self.faults = FaultLog(seconds)  # one for all of a process: a fault leaves one line
        self._lock = threading.Lock()
        self._kept: list[
            OpenApplication
        ] = []  # a parent's stays referenced: closing it here would close it there
        self._retries = seconds()
        self._opening: threading.Thread | None = None
        self.pool: AnalysisPool | None = None  # computes what analysts ask, if the server has one
        self.is_replacement = False  # in the place of a worker that died
        self.intake = GroupIntake  # whose threads wait; a worker's event loop has another
        self.live: LiveReports | None = None  # of `veilcount dev`

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        """Respond to one request; the liveness probe depends on no store."""
        if self.opened is None and environ["PATH_INFO"] == ALIVE_PATH:
            return _reply(start, "200 OK", JSON_TYPE, ALIVE)
        try:
            opened = self.open()
        except VeilcountError as error:
            if environ["PATH_INFO"] == READY_PATH:
                return _reply(start, UNAVAILABLE, JSON_TYPE, NOT_OPEN)
            return self._not_ready(error, environ, start)
        return opened.web.flask(environ, start)

    def open(self) -> OpenApplication:
        """Return the application of this process; open it on first use."""
        if (opened := self.opened) is not None:
            return opened
        if not self._lock.acquire(timeout=OPENING_SECONDS):
            raise StoreUnavailable("the store is being opened")
        try:
            return self.opened or self._open()
        finally:
            self._lock.release()

    @property
    def ids(self) -> RequestIds:
        """What names requests, also while other settings are invalid."""
        return RequestIds(self._variables.get(variable_name("proxy_request_ids")) == "1")

    def _not_ready(
        self, error: VeilcountError, environ: WSGIEnvironment, start: StartResponse
    ) -> Iterable[bytes]:
        """Respond 503 whatever is wrong: devices keep their reports and retry."""
        name = self.ids.choose(environ.get(ENVIRON_NAME))
        problem = replace(problem_from_error(StoreUnavailable(str(error))), request=name)
        return _reply(start, UNAVAILABLE, PROBLEM_TYPE, problem.body, *problem.headers.items())

    def open_in_background(self) -> threading.Thread:
        """Have a thread open it, unless one does: a store may let its opening wait for long."""
        if self._opening is None or not self._opening.is_alive():
            self._opening = threading.Thread(target=self._try_to_open, daemon=True)
            self._opening.start()
        return self._opening

    def _try_to_open(self) -> None:
        with suppress(VeilcountError):  # it was logged
            self.open()

    @property
    def opened(self) -> OpenApplication | None:
        """The application of this process, if it is open."""
        opened = self._kept[-1] if self._kept else None
        return opened if opened is not None and opened.pid == os.getpid() else None

    def _open(self) -> OpenApplication:
        """Open, unless that failed a moment ago: not every request should wait for a timeout."""
        if self._seconds() < self._retries:
            raise StoreUnavailable("the store did not answer a moment ago")
        configure_logging(sys.stderr)
        try:
            settings = Settings.from_environment(self._variables)
            aggregator = Aggregator.open(settings, self._clock)
        except VeilcountError as error:
            self._retries = self._seconds() + RETRY_SECONDS
            self.faults.log("store", NAME, error, reason=str(error))
            raise
        if self.is_replacement:
            RequestMetrics(aggregator.service_counters).replaced()
        web = assemble(
            aggregator,
            pool=self.pool,
            intake_type=self.intake,
            live=self.live,
            faults=self.faults,
        )
        opened = OpenApplication(
            os.getpid(), aggregator, BackgroundThread(aggregator, self.faults), web, self.faults
        )
        opened.background.start()
        # Not `atexit`: processes forked by `multiprocessing` end without it.
        Finalize(None, opened.close, exitpriority=CLOSING)
        self._kept.append(opened)
        return opened


def _reply(
    start: StartResponse, status: str, kind: str, body: bytes, *headers: tuple[str, str]
) -> Iterable[bytes]:
    start(status, [("Content-Type", kind), ("Cache-Control", "no-store"), *headers])
    return [body]


app = LazyApplication(os.environ, time.monotonic)
