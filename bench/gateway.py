"""Whether relayed reports depend on anything but the intake: on analysts, or on garbage.

One server with one worker on SQLite. An honest device sends reports of one body each, by turns
direct and through the gateway, while eight analysts ask for all they can, while the analysis
pool is stopped, and while 48 connections send bodies that do not open. The ratio of the two ways
within one row holds on a busy machine.
"""

from __future__ import annotations

import http.client
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from loadtests.analysts import analyst_load, definitions, parse, report_body
from tests.processes import stopped
from tests.system.server import HOST, Server

from veilcount_aggregator.records.gateway_keys import GatewayKey, create_gateway_key
from veilcount_aggregator.store import open_store
from veilcount_client.delivery.relay import SIZE
from veilcount_shared import Collection
from veilcount_shared.oblivious_http.binary_http import Request, Response
from veilcount_shared.oblivious_http.encapsulation import REQUEST_TYPE, seal_request
from veilcount_shared.oblivious_http.key_config import KeyConfig
from veilcount_shared.wire import BINARY_TYPE

from .reads import FEWEST_REPORTS, fill, prepare
from .table import Row, Table

ANALYSTS, GARBAGE_CONNECTIONS = 8, 48
GARBAGE_BYTES = SIZE + 64
RATIO = 3.0  # of the medians of both ways
PATIENCE = 15.0
NOTES = (
    "One body after the other, by turns direct and relayed; load: the load average of a minute.",
    f"Met: every relayed report is accepted, at {RATIO:g} times a direct one's median at most.",
)


def run(*, quick: bool) -> Table:
    """Measure each state of one server."""
    reports, text = (50 if quick else 300), definitions()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        url = f"sqlite:///{folder}/store.db"
        analyst = prepare(url, text)
        with Server(url, folder) as server:
            key = _create_gateway_key(url)
            collections = parse(text)
            fill(server.url, collections, FEWEST_REPORTS)
            states: Mapping[str, Callable[[], Any]] = {
                "nothing else": nullcontext,
                f"{ANALYSTS} analysts": partial(analyst_load, server.url, analyst, ANALYSTS),
                "analysis pool stopped": partial(stopped, server.analysis()),
                f"garbage, {GARBAGE_CONNECTIONS} connections": partial(
                    garbage, server.port, key.key_id
                ),
            }
            ways = Ways(server.port, key.config, collections["autosave"])
            with closing(ways):
                ways.send(reports)  # the first ones open connections
                rows = [_row(state, begin, ways, reports) for state, begin in states.items()]
    return Table("gateway: what relayed reports wait for", rows, NOTES)


def _create_gateway_key(url: str) -> GatewayKey:
    with closing(open_store(url)) as store:
        key = create_gateway_key(store, datetime.now(UTC))
    time.sleep(1.0)  # until every worker has it
    return key


@dataclass
class Ways:
    """One device that sends each report in both ways, and what they took."""

    port: int
    config: KeyConfig
    collection: Collection
    direct: list[float] = field(default_factory=list)
    relayed: list[float] = field(default_factory=list)
    accepted: int = 0

    def __post_init__(self) -> None:
        self._connection = http.client.HTTPConnection(HOST, self.port, timeout=PATIENCE)

    def close(self) -> None:
        """Close its connection."""
        self._connection.close()

    def send(self, reports: int) -> None:
        """Send so many reports in each way."""
        self.direct, self.relayed, self.accepted = [], [], 0
        for _ in range(reports):
            begun = time.monotonic()
            self._post("/v1/reports", BINARY_TYPE, report_body(self.collection))
            self.direct.append(time.monotonic() - begun)
            sealed, exchange = self._sealed()
            begun = time.monotonic()
            status, reply = self._post("/v1/ohttp", REQUEST_TYPE, sealed)
            self.relayed.append(time.monotonic() - begun)
            if status == http.client.OK:
                inner = Response.decode(exchange.open(reply))
                self.accepted += inner.status == http.client.OK

    def _sealed(self) -> tuple[bytes, Any]:
        fields = (("content-type", BINARY_TYPE),)
        plain = Request("POST", "/v1/reports", fields, report_body(self.collection)).encode()
        return seal_request(self.config, plain + bytes(-len(plain) % SIZE))

    def _post(self, path: str, kind: str, body: bytes) -> tuple[int, bytes]:
        """Return the status and the body of a reply; 0: none came."""
        try:
            self._connection.request("POST", path, body, {"Content-Type": kind})
            reply = self._connection.getresponse()
            return reply.status, reply.read()
        except OSError:
            self._connection.close()
            return 0, b""


@contextmanager
def garbage(
    port: int, key_id: int, connections: int = GARBAGE_CONNECTIONS, size: int = GARBAGE_BYTES
) -> Iterator[None]:
    """Have a process of its own send bodies that do not open, on so many connections."""
    context = get_context("spawn")
    begun, stopping = context.Event(), context.Event()
    head = bytes([key_id]) + bytes.fromhex("002000010003")  # X25519, HKDF-SHA256, ChaCha20
    sender = partial(_post_garbage, port, head, size)
    arguments = (sender, connections, begun, stopping)
    process = context.Process(target=_send_garbage, args=arguments, daemon=True)
    process.start()
    try:
        assert begun.wait(PATIENCE * 2)
        yield
    finally:
        stopping.set()
        process.join()


def _send_garbage(
    send: Callable[[Event], None], connections: int, begun: Event, stopping: Event
) -> None:
    threads = [Thread(target=send, args=(stopping,)) for _ in range(connections)]
    for thread in threads:
        thread.start()
    begun.set()
    for thread in threads:
        thread.join()


def _post_garbage(port: int, head: bytes, size: int, stopping: Event) -> None:
    connection = http.client.HTTPConnection(HOST, port, timeout=PATIENCE)
    while not stopping.is_set():
        body = head + secrets.token_bytes(size - len(head))
        try:
            connection.request("POST", "/v1/ohttp", body, {"Content-Type": REQUEST_TYPE})
            connection.getresponse().read()
        except OSError:
            connection.close()
    connection.close()


def _row(state: str, begin: Callable[[], Any], ways: Ways, reports: int) -> Row:
    number = reports if "stopped" not in state else min(reports, 10)  # each may wait for seconds
    with begin():
        time.sleep(1.0)
        ways.send(number)
    direct, relayed = np.array(ways.direct) * 1000, np.array(ways.relayed) * 1000
    ratio = float(np.median(relayed) / np.median(direct))
    return {
        "meanwhile": state,
        "direct, p50 ms": float(np.median(direct)),
        "direct, p99 ms": float(np.percentile(direct, 99)),
        "relayed, p50 ms": float(np.median(relayed)),
        "relayed, p99 ms": float(np.percentile(relayed, 99)),
        "times direct": ratio,
        "accepted": f"{ways.accepted} of {number}",
        "met": ways.accepted == number and ratio <= RATIO,
    }
