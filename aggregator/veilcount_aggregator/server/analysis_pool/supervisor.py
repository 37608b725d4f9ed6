"""Supervisor of the pool, in the server's parent.

Its processes are forked, as workers are: they start at once and share the memory of their code.
Workers connect to a socket of the parent, whose backlog holds requests while none is free.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from veilcount_serving.errors import SettingsError
from veilcount_serving.structured_logging import log_event

from .places import PLACES, PoolPlace, new_places
from .process import EXIT_GROWN, POLL_SECONDS

PREFIX = "veilcount-"
BACKLOG = 128
MAX_COMPUTE_SECONDS = 120.0  # of one request: the process that computes for longer is killed
STABLE_SECONDS = 5.0  # a process that lived so long is replaced at once
MIN_DELAY, MAX_DELAY = 0.2, 10.0
STOP_SECONDS = 4.0
FAILED = 70  # exit code of an unexpected error
ORPHAN_SECONDS = 2.0  # that a process computes on after its server is gone

Run = Callable[[socket.socket, PoolPlace, int], int]


class AnalysisPool:
    """Keeps a process running in each place; a hung one is killed alone."""

    def __init__(self, run: Run, places: int = PLACES) -> None:
        """Call `run` in each process, with the listener that all share, its place, our pid."""
        self._run = run
        self._folder = _folder()
        self._listener = socket.socket(socket.AF_UNIX)
        self._stopping = threading.Event()
        self._forked = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._places = new_places(places)
        self._pids: dict[int, int] = {}  # by the number of the place
        self._threads = [
            threading.Thread(
                target=self._supervise, args=(place,), name="veilcount-analysis", daemon=True
            )
            for place in self._places
        ]

    @property
    def address(self) -> str:
        """The socket that workers connect to, in a directory of mode 700."""
        return str(self._folder / "socket")

    def is_up(self) -> bool:
        """Whether a process of it lives. In workers, too: they are forked after its start."""
        return any(place.is_alive for place in self._places)

    def start(self) -> None:
        """Listen, and start the first processes."""
        self._listener.bind(self.address)
        self._listener.listen(BACKLOG)
        for thread in self._threads:
            thread.start()
        for _ in self._threads:
            self._forked.acquire()  # before the server forks its workers, from another thread

    def stop(self) -> None:
        """Stop the processes; workers have ended by now."""
        self._stopping.set()
        for number in (signal.SIGTERM, signal.SIGKILL):
            self._signal(number)
            for thread in self._threads:
                thread.join(STOP_SECONDS)
        self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _supervise(self, place: PoolPlace) -> None:
        delay = MIN_DELAY
        while not self._stopping.is_set():
            started = time.monotonic()
            code = self._run_once(place)
            if self._stopping.is_set():
                return
            if code != EXIT_GROWN:
                log_event("analysis process replaced", logging.WARNING)
            stable = time.monotonic() - started > STABLE_SECONDS
            delay = MIN_DELAY if stable else min(delay * 2, MAX_DELAY)
            self._stopping.wait(0 if stable else delay)

    def _run_once(self, place: PoolPlace) -> int:
        """Run one process to its end; return its exit code."""
        parent = os.getpid()
        place.end()
        with self._lock:
            pid = self._pids[place.number] = os.fork()
        if not pid:
            self._run_child(place, parent)
        self._forked.release()
        while True:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                break
            if place.computing_seconds > MAX_COMPUTE_SECONDS:
                os.kill(pid, signal.SIGKILL)
            time.sleep(POLL_SECONDS)
        with self._lock:
            del self._pids[place.number]
        return os.waitstatus_to_exitcode(status)

    def _run_child(self, place: PoolPlace, parent: int) -> None:
        """Run in the forked process, and exit: none of the parent's cleanup may run here."""
        code = FAILED
        try:
            os.setsid()  # Ctrl-C goes to the server, which stops this process last
            threading.Thread(target=self._give_signs, args=(place, parent), daemon=True).start()
            code = self._run(self._listener, place, parent)
            self._remove_orphaned(parent)  # it may notice before the thread does, and exit
        finally:
            os._exit(code)

    def _give_signs(self, place: PoolPlace, parent: int) -> None:
        """Give signs of life, until the parent was killed: then clean up for it, and exit."""
        while os.getppid() == parent:
            place.beat()
            time.sleep(POLL_SECONDS)
        self._remove_orphaned(parent)
        time.sleep(ORPHAN_SECONDS)
        os._exit(FAILED)

    def _remove_orphaned(self, parent: int) -> None:
        """Take the folder away if the parent was killed: nobody else does."""
        if os.getppid() != parent:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _signal(self, number: signal.Signals) -> None:
        with self._lock, suppress(ProcessLookupError):
            for pid in self._pids.values():
                os.kill(pid, number)


def _folder() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=PREFIX))
    except OSError as error:
        why = f"no temporary folder can be made there ({error.strerror}): give one that is writable"
        raise SettingsError("TMPDIR", tempfile.gettempdir(), why) from error
