"""A process that opens parts of batches for one worker, since HPKE holds the interpreter.

It starts with the first part, opens one at a time, and ends with its worker: its input ends then. A
worker has a thread for each of the parts that wait; beyond these a shuffler is answered with 503.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress
from typing import IO

import msgspec

from veilcount_serving.errors import Overloaded
from veilcount_shared.problem_details import RETRY_SECONDS

from ..intake.shuffled_batches.opening import OpenedPart, SealedPart, open_part

MOST_WAITING = 4
ANSWER_SECONDS = 30.0  # a hundred times what a part takes
LOWER_PRIORITY = 5  # devices' reports come first
LENGTH_BYTES = 8
WHY = "parts of batches are being opened: retry in a moment"


class OpeningProcess:
    """Opens parts in another process. For any thread."""

    def __init__(self) -> None:
        self._permits = threading.BoundedSemaphore(MOST_WAITING)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def __call__(self, part: SealedPart) -> OpenedPart:
        """Return an opened part, or raise `Overloaded`; a process that failed is replaced."""
        if not self._permits.acquire(blocking=False):
            raise Overloaded(RETRY_SECONDS, WHY)
        try:
            with self._lock:
                return self._ask(part)
        finally:
            self._permits.release()

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _ask(self, part: SealedPart) -> OpenedPart:
        process = self._running()
        assert process.stdin is not None  # noqa: S101 - both are pipes
        assert process.stdout is not None  # noqa: S101
        watchdog = threading.Timer(ANSWER_SECONDS, process.kill)
        watchdog.start()
        try:
            _write(process.stdin, msgspec.msgpack.encode(part))
            answer = _read(process.stdout)
        except OSError:
            answer = None
        finally:
            watchdog.cancel()
        if answer is None:
            self._end()
            raise Overloaded(RETRY_SECONDS, WHY)
        return msgspec.msgpack.decode(answer, type=OpenedPart)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            command = [sys.executable, "-m", __name__]
            self._process = subprocess.Popen(  # noqa: S603 - this module
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with suppress(OSError):
                process.communicate()


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Open what comes, until nothing comes any more."""
    while (request := _read(requests)) is not None:
        part = msgspec.msgpack.decode(request, type=SealedPart)
        _write(answers, msgspec.msgpack.encode(open_part(part)))


def _write(file: IO[bytes], body: bytes) -> None:
    file.write(len(body).to_bytes(LENGTH_BYTES, "big") + body)
    file.flush()


def _read(file: IO[bytes]) -> bytes | None:
    """Return the next message; None: there is none any more."""
    length = file.read(LENGTH_BYTES)
    if len(length) < LENGTH_BYTES:
        return None
    size = int.from_bytes(length, "big")
    body = file.read(size)
    return body if len(body) == size else None


if __name__ == "__main__":
    os.nice(LOWER_PRIORITY)
    serve(sys.stdin.buffer, sys.stdout.buffer)
