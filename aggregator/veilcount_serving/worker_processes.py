"""Worker processes of any application: started, announced once they listen, run to the end."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from .front_worker import Fronts, run_fronted_worker, socket_folder
from .listen_address import ListenAddress
from .structured_logging import LogFields
from .worker_supervisor import DRAIN_SECONDS, WorkerSupervisor

STARTING_SECONDS = 60.0
OPEN_MAX = 10_240  # syslimits.h of macOS


@dataclass(frozen=True, slots=True)
class StartupSummary:
    """The line that is printed once the server accepts connections."""

    bind: ListenAddress
    store: str
    durable: str
    workers: int
    intake: str

    @property
    def facts(self) -> LogFields:
        """The summary as JSON fields."""
        return LogFields(
            bind=str(self.bind),
            store=self.store,
            durable=self.durable,
            workers=self.workers,
            intake=self.intake,
        )

    def __str__(self) -> str:
        workers = f"{self.workers} worker{'s' if self.workers > 1 else ''}"
        return (
            f"veilcount: serving at {self.bind} from {self.store} ({self.durable}), "
            f"{workers}, intake {self.intake}"
        )


Announce = Callable[[StartupSummary], None]


def raise_file_limit() -> None:
    """Allow as many open files as the system lets us: each connection is one."""
    import resource  # noqa: PLC0415 - where nothing is served it may be missing

    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if sys.platform == "darwin":  # which refuses what it calls its limit [setrlimit(2), OPEN_MAX]
        most = max(soft, min(most, OPEN_MAX))
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def run_workers(
    ready: StartupSummary,
    load: Callable[[], object],
    announce: Announce,
    load_replacement: Callable[[], object] | None = None,
    *,
    has_front: bool = False,
    turns: bool = False,
    spreads: bool = True,
) -> int:
    """Run workers, each with the application that it loads, to the end; return the exit code.

    A worker in the place of one that died loads it with `load_replacement`, if that is given. With
    `has_front` each worker takes plain requests in front of Granian; by `turns` one does for all,
    and `spreads` what is not its own over the others.
    """
    server = WorkerSupervisor(
        ready.bind, ready.workers, load_replacement=load_replacement, shares_socket=turns
    )
    threading.Thread(target=_announce, args=(ready, announce), daemon=True).start()
    with ExitStack() as stack:
        run = None
        if has_front:
            folder = stack.enter_context(socket_folder())
            workers = ready.workers if spreads else 0
            run = partial(run_fronted_worker, Fronts(ready.bind, Path(folder), turns, workers))
        try:
            server.serve(run, target_loader=cast("Any", load), wrap_loader=False)
        except SystemExit as ended:  # a worker that ended before its server is no failure
            return 0 if server.interrupt_signal else int(ended.code or 0)
    return 0


def enter_worker() -> None:
    """Set up a process that was forked as a worker: its signals, and its end with the server.

    Until the worker serves, SIGTERM ends it at once (the handler it inherits is the server's).
    SIGINT is left to the server, which terminates its workers: one that receives two signals may
    wait for ever.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    threading.Thread(target=_exit_with_server, daemon=True).start()


def _exit_with_server() -> None:
    """End when the server is gone: an orphaned worker would hold the port for ever."""
    server = multiprocessing.parent_process()
    while server is not None and os.getppid() == server.pid:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(DRAIN_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


def _announce(ready: StartupSummary, announce: Announce) -> None:
    ends = time.monotonic() + STARTING_SECONDS
    while not ready.bind.is_listening():
        if time.monotonic() > ends:
            return
        time.sleep(0.02)
    announce(ready)
