"""A process of the pool: the WSGI application of a worker, for one request at a time.

It yields the CPU to the workers (nice), has a memory limit (RLIMIT_DATA), and ends to be replaced
once its memory has grown. It ends on SIGTERM, and when the server is gone.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from contextlib import suppress
from mmap import PAGESIZE
from multiprocessing.connection import Connection
from pathlib import Path
from wsgiref.types import WSGIApplication

from werkzeug.wrappers import Response

from veilcount_serving.malloc import return_large_arrays
from veilcount_serving.structured_logging import FaultLog

from .messages import ACCEPTED, receive_request, send_response
from .places import PoolPlace

NAME = "vc-analysis"  # as ps and top show it
ENDPOINT = "analysis"
NICE = 10
OOM_SCORE = "500"
POLL_SECONDS = 0.2
GROWN = 0.5  # of its memory limit: a process above it is replaced between two requests

EXIT_ENDED, EXIT_GROWN = 0, 4


def run(
    listener: socket.socket,
    application: WSGIApplication,
    place: PoolPlace,
    megabytes: int,
    *,
    parent: int,
) -> int:
    """Serve requests until there is a reason to end; return the exit code."""
    limit_resources(megabytes)
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    listener.settimeout(POLL_SECONDS)
    faults = FaultLog(time.monotonic)
    while not stopping.is_set() and os.getppid() == parent:
        if megabytes and resident_megabytes() > GROWN * megabytes:
            return EXIT_GROWN
        try:
            accepted, _ = listener.accept()
        except TimeoutError:
            continue
        except OSError:  # no file descriptor is free: some are soon
            time.sleep(POLL_SECONDS)
            continue
        accepted.settimeout(None)
        with Connection(accepted.detach()) as connection:
            serve(connection, application, place, faults)
    return EXIT_ENDED


def serve(
    connection: Connection, application: WSGIApplication, place: PoolPlace, faults: FaultLog
) -> None:
    """Compute one request; the worker handles a connection that breaks off."""
    place.begin()
    try:
        connection.send_bytes(ACCEPTED)
        environ = receive_request(connection).environ
        with Response.from_app(application, environ) as response:
            send_response(connection, response)
    except (OSError, EOFError):
        pass  # the worker or its client went away
    except Exception as error:  # noqa: BLE001 - a response that cannot be finished breaks off
        faults.log("failed", ENDPOINT, error)
    finally:
        place.end()


def limit_resources(megabytes: int) -> None:
    """Lower the priority, keep little of what is freed, and limit memory for data (0: no limit)."""
    return_large_arrays()
    with suppress(OSError):
        Path("/proc/self/comm").write_text(NAME, encoding="ascii")
    with suppress(OSError):
        os.nice(NICE)
    with suppress(OSError):  # killed before a worker if memory runs out
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE, encoding="ascii")
    if megabytes:
        import resource  # noqa: PLC0415 - where nothing is served it may be missing

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        with suppress(ValueError):  # the system has a lower limit already
            resource.setrlimit(resource.RLIMIT_DATA, (megabytes << 20, hard))


def resident_megabytes() -> float:
    """Return the resident memory of this process in MB; 0 where it is unknown."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0.0
    return pages * PAGESIZE / (1 << 20)
