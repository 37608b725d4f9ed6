"""What the dearest body that anybody can send costs a worker, over a device's request."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from tests.engines import SQLITE, engine
from tests.security.hostile_bodies import Body, define, makers, report

from veilcount_client.delivery.padded_bodies import encode_padded
from veilcount_shared import Collection
from veilcount_shared.report import Batch
from veilcount_shared.wire import BINARY_TYPE

from .load import Served, served
from .table import Row, Table, target

NOTES = (
    "CPU of one worker with the default limits and no device key, of a request on a connection of",
    "  its own; honest: one new report, padded, measured in turns with the body. SQLite, durable.",
)
DEFINITIONS = 32
GOAL = 4.0  # times an honest request


def run(*, quick: bool) -> Table:
    """Send each hostile body in turns with honest ones."""
    requests, rounds = (20, 2) if quick else (50, 4)
    with TemporaryDirectory() as name:
        folder = Path(name)
        plain, tokens = define(folder / "bench.toml", DEFINITIONS)
        hostile = makers(plain, tokens)
        with (
            engine(SQLITE, folder / "store") as store,
            served(store, folder / "bench.toml", limited=True) as server,
        ):
            bodies = BodyCosts(server, plain[0], requests, rounds)
            rows = [bodies.row(name, make) for name, make in hostile.items()]
    return Table("worst-body: what a hostile body costs a worker", rows, NOTES)


class BodyCosts:
    """Measures the server's CPU of requests that each have a connection of their own."""

    def __init__(self, server: Served, collection: Collection, requests: int, rounds: int) -> None:
        self._server = server
        self._collection = collection
        self._requests = requests
        self._rounds = rounds

    def row(self, name: str, make: Callable[[], Body]) -> Row:
        """Return the cost of a body and of an honest one, measured in turns."""
        spent = {make: 0.0, self._honest: 0.0}
        for _ in range(self._rounds):
            for maker in spent:
                spent[maker] += self._spend([maker() for _ in range(self._requests)])
        hostile, honest = (1e3 * spent[maker] / self._requests / self._rounds for maker in spent)
        row: Row = {"body": name, "bytes": len(make()[2]), "ms": hostile, "honest ms": honest}
        times = hostile / honest
        return {**row, "times": times, **target(times, GOAL)}

    def _honest(self) -> Body:
        return BINARY_TYPE, "", encode_padded(Batch((report(self._collection),)))

    def _spend(self, bodies: list[Body]) -> float:
        before = sum(self._server.seconds())
        for body in bodies:
            self._send(*body)
        return sum(self._server.seconds()) - before

    def _send(self, kind: str, coding: str, raw: bytes) -> None:
        address = urlsplit(self._server.url)
        headers = {"Content-Type": kind, **({"Content-Encoding": coding} if coding else {})}
        with closing(http.client.HTTPConnection(address.netloc, timeout=30)) as connection:
            connection.request("POST", address.path, raw, headers)
            status = connection.getresponse().status
        if status not in (200, 400, 415):
            raise RuntimeError(f"HTTP {status}: the request was not decided by its body")
