"""Keeps one analysis process alive, from the server's parent.

It is forked, as workers are, so that it is there at once and shares its code's memory with them.
The socket that workers connect to is the parent's: while the process is replaced, requests wait
there.
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

from ...errors import SettingsError
from ...structured_logging import log_event
from .worker import EXIT_GROWN

PREFIX = "veilcount-"
BACKLOG = 128
STABLE_SECONDS = 5.0  # one that lived for so long is replaced at once
FIRST_DELAY, LONGEST_DELAY = 0.2, 10.0
STOP_SECONDS = 4.0
FAILED = 70  # of an analysis process: something that nobody foresaw

Run = Callable[[socket.socket, int], int]


class AnalysisProcess:
    """The analysis process of one server, whichever it is at the moment."""

    def __init__(self, run: Run) -> None:
        """Run this in it, with the listener and the parent's id."""
        self._run = run
        self._folder = _folder()
        self._listener = socket.socket(socket.AF_UNIX)
        self._stopping = threading.Event()
        self._forked = threading.Event()
        self._lock = threading.Lock()
        self._pid = 0
        self._thread = threading.Thread(target=self._keep, name="veilcount-analysis", daemon=True)

    @property
    def address(self) -> str:
        """Where workers connect to: in a folder that this user alone may enter."""
        return str(self._folder / "socket")

    def start(self) -> None:
        """Listen, and start the first process."""
        self._listener.bind(self.address)
        self._listener.listen(BACKLOG)
        self._thread.start()
        self._forked.wait()  # before the server forks its workers, from another thread

    def stop(self) -> None:
        """End it, once no worker needs it any more."""
        self._stopping.set()
        self._signal(signal.SIGTERM)
        self._thread.join(STOP_SECONDS)
        self._signal(signal.SIGKILL)
        self._thread.join(STOP_SECONDS)
        self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _keep(self) -> None:
        delay = FIRST_DELAY
        while not self._stopping.is_set():
            begun = time.monotonic()
            code = self._once()
            if self._stopping.is_set():
                return
            if code != EXIT_GROWN:
                log_event("analysis process replaced", logging.WARNING)
            stable = time.monotonic() - begun > STABLE_SECONDS
            delay = FIRST_DELAY if stable else min(delay * 2, LONGEST_DELAY)
            self._stopping.wait(0 if stable else delay)

    def _once(self) -> int:
        """Run one process to its end; return its exit code."""
        parent = os.getpid()
        with self._lock:
            pid = self._pid = os.fork()
        if not pid:
            self._live(parent)
        self._forked.set()
        _, status = os.waitpid(pid, 0)
        with self._lock:
            self._pid = 0
        return os.waitstatus_to_exitcode(status)

    def _live(self, parent: int) -> None:
        """Be the process. It ends here: nothing of the parent's is to run in it."""
        code = FAILED
        try:
            os.setsid()  # Ctrl-C is for the server, which ends this one last
            code = self._run(self._listener, parent)
            if os.getppid() != parent:  # killed: nobody else takes this away
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
