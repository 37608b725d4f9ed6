"""What an envelope costs a shuffler that is served: HTTP, group and disk, by all its processes."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime

from tests.processes import cpu_seconds, family, wait_until
from tests.system.server import HOST, free_port, listens

from veilcount_shared.shuffling.envelope import ENVELOPE_TYPE, Envelope
from veilcount_shuffler.envelopes_endpoint import ENVELOPES_PATH
from veilcount_shuffler.served_crowds import ServedCrowd, crowds_of
from veilcount_shuffler.store_settings import StoreSettings

CONNECTIONS = 32
FIRST = 320  # envelopes that are held before: what is made once is no envelope's


def hold_over_http(settings: StoreSettings, number: int) -> float:
    """Return the CPU microseconds of an envelope of random bytes, each acknowledged."""
    now = datetime.now(UTC)
    crowd = next(crowd for crowd in crowds_of(settings) if crowd.opens <= now < crowd.closes)
    with _served(settings) as (port, pid):
        _post(port, crowd, FIRST)
        before = cpu_seconds(*family(pid))
        _post(port, crowd, number)
        return (cpu_seconds(*family(pid)) - before) / number * 1e6


@contextmanager
def _served(settings: StoreSettings) -> Iterator[tuple[int, int]]:
    """Serve a store; yield the port and the process."""
    port = free_port()
    command = [sys.executable, "-m", "veilcount_aggregator", "shuffler", "serve", "--rate", "0"]
    command += ["--store", str(settings.store), "--bind", f"{HOST}:{port}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: listens(port))
            yield port, process.pid
        finally:
            process.terminate()


def _post(port: int, crowd: ServedCrowd, number: int) -> None:
    with ThreadPoolExecutor(CONNECTIONS) as senders:
        jobs = [
            senders.submit(_send, port, crowd, number // CONNECTIONS) for _ in range(CONNECTIONS)
        ]
        for job in jobs:
            job.result()


def _send(port: int, crowd: ServedCrowd, number: int) -> None:
    """Send envelopes over one connection."""
    connection = http.client.HTTPConnection(HOST, port, timeout=60)
    for _ in range(number):
        raw = Envelope(crowd.crowd_id, crowd.period, os.urandom(crowd.size)).encode()
        connection.request("POST", ENVELOPES_PATH, raw, {"Content-Type": ENVELOPE_TYPE})
        response = connection.getresponse()
        assert response.read()
        assert response.status == http.HTTPStatus.ACCEPTED
    connection.close()
