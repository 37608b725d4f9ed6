"""What an envelope costs a shuffler that is served: HTTP, group and disk, by all its processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from tests.processes import cpu_seconds, family, wait_until
from tests.system.server import HOST, free_port, listens

from veilcount_shared.shuffling.envelope import ENVELOPE_TYPE, Envelope
from veilcount_shuffler.plain_envelopes import ENVELOPES_PATH
from veilcount_shuffler.served_crowds import ServedCrowd, crowds_of
from veilcount_shuffler.store_settings import StoreSettings

from .load import CONNECTIONS, send

MOST_A_SECOND = 30_000
FIRST = 1  # seconds before: what is made once is no envelope's


def hold_over_http(settings: StoreSettings, seconds: float) -> float:
    """Return the CPU microseconds of an envelope of random bytes, each acknowledged."""
    now = datetime.now(UTC)
    crowd = next(crowd for crowd in crowds_of(settings) if crowd.opens <= now < crowd.closes)
    with _served(settings) as (port, pid):
        _post(port, crowd, FIRST)
        before = cpu_seconds(*family(pid))
        answered = _post(port, crowd, seconds)
        return (cpu_seconds(*family(pid)) - before) / answered * 1e6


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


def _post(port: int, crowd: ServedCrowd, seconds: float) -> float:
    """Post for so long; return how many were acknowledged."""
    raw = [
        Envelope(crowd.crowd_id, crowd.period, os.urandom(crowd.size)).encode()
        for _ in range(round(MOST_A_SECOND * seconds))
    ]
    head = f"Content-Type: {ENVELOPE_TYPE}\r\n"
    figures = send(f"http://{HOST}:{port}{ENVELOPES_PATH}", head, raw, seconds, CONNECTIONS)
    assert not figures["refused"] + figures["broken"], figures
    return figures["answered"]
