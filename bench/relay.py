"""What a relay costs: encapsulation at both ends, and a request of one report both ways."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from wsgiref.types import WSGIEnvironment

from werkzeug.test import create_environ, run_wsgi_app

from veilcount_aggregator.records.gateway_keys import create_gateway_key
from veilcount_aggregator.server.app import assemble
from veilcount_aggregator.service import Aggregator
from veilcount_aggregator.settings import Settings
from veilcount_aggregator.store import open_store
from veilcount_client.delivery.padded_bodies import encode_padded
from veilcount_client.delivery.relay import SIZE
from veilcount_shared.oblivious_http.binary_http import Request
from veilcount_shared.oblivious_http.encapsulation import REQUEST_TYPE, open_request, seal_request
from veilcount_shared.report import Batch, Report
from veilcount_shared.wire import BINARY_TYPE

from .stopwatch import Stopwatch, cpu_us
from .table import Row, Table

FILE = """\
app = "bench"
[autosave]
question = "Is it on?"
boolean = true
epsilon = 1
unit = "user"
linkage = "none"
from = {start}
until = {until}
"""
WARM = 10
NOTES = (
    "CPU time. A request: one report over WSGI, committed to SQLite (durable), alternating; the",
    "  encapsulation by the client is not in it. bytes: of the request's body.",
)


def run(*, quick: bool) -> Table:
    """Measure both ends, then requests."""
    with TemporaryDirectory() as folder:
        server = RelayedServer(Path(folder))
        rows = [*server.ends(0.3 if quick else 1.5), *server.requests(20 if quick else 200)]
        server.close()
    return Table("relay: what Oblivious HTTP costs", rows, NOTES)


class RelayedServer:
    """An aggregator in this process, with a gateway's key."""

    def __init__(self, folder: Path) -> None:
        start = datetime.now(UTC).date()
        file, url = folder / "bench.toml", f"sqlite:///{folder}/store.db"
        file.write_text(FILE.format(start=start, until=start.replace(year=start.year + 1)))
        with closing(open_store(url, make=True)) as store:
            self._key = create_gateway_key(store, datetime.now(UTC))
        self._aggregator = Aggregator.open(Settings(url, (file,)))
        self._app = assemble(self._aggregator).flask
        (self._series,) = self._aggregator.known().catalog.series.values()

    def close(self) -> None:
        """Close the store."""
        self._aggregator.close()

    def _direct(self) -> bytes:
        collection = self._series.collection
        name, message = collection.fingerprint, collection.pack(0)
        return encode_padded(Batch((Report(name, 0, 0, secrets.token_bytes(16), 0, message),)))

    def _plain(self) -> bytes:
        fields = (("content-type", BINARY_TYPE),)
        plain = Request("POST", "/v1/reports", fields, self._direct()).encode()
        return plain + bytes(-len(plain) % SIZE)

    def _sealed(self) -> bytes:
        return seal_request(self._key.config, self._plain())[0]

    def ends(self, budget: float) -> Iterator[Row]:
        """Yield what each end spends on one exchange."""
        config, keys = self._key.config, {self._key.key_id: self._key.secret}
        plain, sealed = self._plain(), self._sealed()
        _, exchange = open_request(keys, sealed)
        nonce = os.urandom(exchange.nonce_bytes)
        answer = exchange.seal(bytes(512), nonce)
        steps: dict[str, tuple[Callable[[bytes], object], bytes]] = {
            "client: encapsulate": (lambda raw: seal_request(config, raw), plain),
            "gateway: open": (lambda raw: open_request(keys, raw), sealed),
            "gateway: seal a reply": (lambda raw: exchange.seal(raw, nonce), bytes(512)),
            "client: open a reply": (exchange.open, answer),
        }
        for what, (step, raw) in steps.items():
            yield {"what": what, "us": Stopwatch(step, [raw]).microseconds(budget)}

    def requests(self, rounds: int) -> Iterator[Row]:
        """Yield the cost of a request, direct and through the gateway."""
        ways = {
            "direct": ("/v1/reports", BINARY_TYPE, self._direct),
            "gateway": ("/v1/ohttp", REQUEST_TYPE, self._sealed),
        }
        spent = dict.fromkeys(ways, 0.0)
        for turn in range(rounds + WARM):
            for way, (path, kind, make) in ways.items():
                environ = create_environ(path, method="POST", data=make(), content_type=kind)
                spent[way] += cpu_us(self._post, environ) * (turn >= WARM)
        for way, (_, _, make) in ways.items():
            times = spent[way] / spent["direct"]
            row: Row = {"us": spent[way] / rounds, "times direct": times}
            yield {"what": f"request, {way}", **row, "bytes": len(make())}

    def _post(self, environ: WSGIEnvironment) -> None:
        _, status, _ = run_wsgi_app(self._app, environ)
        assert status == "200 OK", status
