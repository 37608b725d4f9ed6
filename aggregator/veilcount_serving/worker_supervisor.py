"""Worker processes: started, replaced when they die, drained on SIGTERM.

Granian serves, by RSGI: in one run on one machine a bare answer by it cost a quarter of what bare
Flask's costs there, and one by ASGI half as much again (`./dev bench ingest`). It drains: on
SIGTERM it accepts no more connections, finishes the requests it has accepted, and ends.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.mp import MPServer

from .listen_address import ListenAddress
from .structured_logging import log_event

NAME = "veilcount"
MOST_CONNECTIONS = 16_384  # of a worker at once: one whose body drips takes 40 kB
DRAIN_SECONDS = 8  # less than the ten that a container gets
HEADER_MILLISECONDS = 10_000
HEADER_BYTES = 16 << 10  # roughly, and what a connection buffers of a body, several times
RESTART_SECONDS = 1.0
MAX_RESTARTS_IN_A_ROW = 10

#: Granian's own messages go where our log lines go, without their text
LOGGING = {
    "formatters": {"json": {"()": "veilcount_serving.structured_logging.JsonFormatter"}},
    "handlers": {
        "json": {
            "class": "logging.StreamHandler",
            "formatter": "json",
            "stream": "ext://sys.stderr",
        }
    },
    "loggers": {"_granian": {"handlers": ["json"], "propagate": False}},
}


class RestartPolicy:
    """Restarts at most once a second, and gives up after ten in a row: no worker seems to live."""

    def __init__(self, seconds: float = RESTART_SECONDS) -> None:
        self._seconds = seconds
        self._last = -seconds
        self._in_a_row = 0

    def admit(self) -> bool:
        """Wait until the next restart is due; return False if it is one too many."""
        now = time.monotonic()
        self._in_a_row = self._in_a_row + 1 if now - self._last < 2 * self._seconds else 0
        time.sleep(max(0.0, self._last + self._seconds - now))
        self._last = time.monotonic()
        return self._in_a_row <= MAX_RESTARTS_IN_A_ROW


class WorkerSupervisor(MPServer):
    """Granian's supervisor of worker processes, with a restart policy of our own.

    Granian ends the whole server when one worker dies twice within five seconds of being replaced.
    """

    def __init__(
        self,
        bind: ListenAddress,
        workers: int,
        interface: Interfaces = Interfaces.RSGI,
        load_replacement: Callable[[], object] | None = None,
        *,
        shares_socket: bool = False,
    ) -> None:
        """Set up Granian; `load_replacement` loads the application where a worker has died.

        `shares_socket`: the workers get one socket, which is bound here and listens once one does.
        """
        super().__init__(
            NAME,
            address=bind.host,
            port=bind.port,
            uds=bind.path,
            interface=interface,
            workers=workers,
            backpressure=MOST_CONNECTIONS,
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
        self._policy = RestartPolicy()
        self._load_replacement = load_replacement
        self._shared = bind if shares_socket else None

    def _init_shared_socket(self) -> None:
        super()._init_shared_socket()  # type: ignore[no-untyped-call]
        if self._sso is None and self._shared is not None:  # by itself it shares Unix sockets
            self._sso = self._shared.bound()

    def _respawn_workers(
        self,
        workers: Sequence[int],
        spawn_target: Callable[..., None],
        target_loader: Callable[..., Any],
        delay: float = 0,
    ) -> None:
        for worker in workers:
            admitted = self._policy.admit()
            load = self._load_replacement or target_loader
            super()._respawn_workers([worker], spawn_target, load, delay)
            log_event("worker replaced", logging.WARNING)
            if admitted:  # what Granian finds here at the next death counts as a crash loop
                self.respawned_wrks.clear()
