"""Supervisor of the analysis process, in the server's parent.

The process is forked, as workers are: it starts at once and shares the memory of its code. Workers
connect to a socket of the parent, whose backlog holds requests while the process is replaced.
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

from .worker import EXIT_GROWN

PREFIX = "veilcount-"
BACKLOG = 128
STABLE_SECONDS = 5.0  # a process that lived so long is replaced at once
MIN_DELAY, MAX_DELAY = 0.2, 10.0
STOP_SECONDS = 4.0
FAILED = 70  # exit code of an unexpected error

Run = Callable[[socket.socket, int], int]


class AnalysisProcess:
    """Keeps one analysis process running."""

    def __init__(self, run: Run) -> None:
        """Call `run` in the process, with the listener and the parent's PID."""
        self._run = run
        self._folder = _folder()
        self._listener = socket.socket(socket.AF_UNIX)
        self._stopping = threading.Event()
        self._forked = threading.Event()
        self._lock = threading.Lock()
        self._pid = 0
        self._thread = threading.Thread(
            target=self._supervise, name="veilcount-analysis", daemon=True
        )

    @property
    def address(self) -> str:
        """The socket that workers connect to, in a directory of mode 700."""
        return str(self._folder / "socket")

    def start(self) -> None:
        """Listen, and start the first process."""
        self._listener.bind(self.address)
        self._listener.listen(BACKLOG)
        self._thread.start()
        self._forked.wait()  # before the server forks its workers, from another thread

    def stop(self) -> None:
        """Stop the process; workers have ended by now."""
        self._stopping.set()
        self._signal(signal.SIGTERM)
        self._thread.join(STOP_SECONDS)
        self._signal(signal.SIGKILL)
        self._thread.join(STOP_SECONDS)
        self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _supervise(self) -> None:
        delay = MIN_DELAY
        while not self._stopping.is_set():
            started = time.monotonic()
            code = self._run_once()
            if self._stopping.is_set():
                return
            if code != EXIT_GROWN:
                log_event("analysis process replaced", logging.WARNING)
            stable = time.monotonic() - started > STABLE_SECONDS
            delay = MIN_DELAY if stable else min(delay * 2, MAX_DELAY)
            self._stopping.wait(0 if stable else delay)

    def _run_once(self) -> int:
        """Run one process to its end; return its exit code."""
        parent = os.getpid()
        with self._lock:
            pid = self._pid = os.fork()
        if not pid:
            self._run_child(parent)
        self._forked.set()
        _, status = os.waitpid(pid, 0)
        with self._lock:
            self._pid = 0
        return os.waitstatus_to_exitcode(status)

    def _run_child(self, parent: int) -> None:
        """Run in the forked process, and exit: none of the parent's cleanup may run here."""
        code = FAILED
        try:
            os.setsid()  # Ctrl-C goes to the server, which stops this process last
            code = self._run(self._listener, parent)
            if os.getppid() != parent:  # the parent was killed: clean up for it
                shutil.rmtree(self._folder, ignore_errors=True)
        finally:
            os._exit(code)

    def _signal(self, number: signal.Signals) -> None:
        with self._lock, suppress(ProcessLookupError):
            if self._pid:
                os.kill(self._pid, number)


def _folder() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=PREFIX))
    except OSError as error:
        why = f"no temporary folder can be made there ({error.strerror}): give one that is writable"
        raise SettingsError("TMPDIR", tempfile.gettempdir(), why) from error
