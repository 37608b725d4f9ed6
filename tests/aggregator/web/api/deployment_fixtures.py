"""A deployment for tests: a real store, the real application, and clocks that a test sets."""

from __future__ import annotations

import io
import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote
from wsgiref.util import setup_testing_defaults

from flask import Flask
from werkzeug.test import run_wsgi_app

from veilcount_aggregator.errors import StoreError
from veilcount_aggregator.records.api_keys import Role, create_key
from veilcount_aggregator.records.definitions import DefinitionSource
from veilcount_aggregator.server.app import create_app
from veilcount_aggregator.service import Aggregator
from veilcount_aggregator.settings import Settings
from veilcount_aggregator.store import open_store
from veilcount_aggregator.store.retention.retention_guard import delete_rows, drop_ended_epochs
from veilcount_analysis.series.series import Series
from veilcount_shared.problem_details import TYPE_PREFIX
from veilcount_shared.report import MAX_REPORTS, Batch, Report
from veilcount_shared.schedule import period_at
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import BINARY_TYPE, encode_binary

NOW = datetime(2026, 12, 3, 12, tzinfo=UTC)
FILE = """
app = "acme-editor"

[theme]
question = "Which theme is active?"
values = ["light", "dark", "system"]
epsilon = 1
unit = "month"
from = 2026-12-01
until = 2027-12-01

[opened]
question = "How was it opened?"
values = ["menu", "key"]
epsilon = 0.5
unit = "event"
per_day = 2
from = 2026-12-01
until = 2026-12-31
segments = {arm = ["A", "B"]}

[alone]
question = "Alone?"
boolean = true
epsilon = 1
unit = "day"
linkage = "none"
from = 2026-12-01
until = 2026-12-31
"""
CENTRAL = """
app = "acme-editor"

[visits]
question = "Was it visited?"
boolean = true
unit = "day"
model = "central"
budget = 1
from = 2026-12-01
until = 2026-12-31
"""
ONCE = CENTRAL.replace("visits", "once").replace('"day"', '"user"') + 'adjacency = "substitute"\n'


@dataclass(frozen=True)
class Response:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def problem(self) -> str:
        """The type of the problem document, which the body must be."""
        assert self.headers["Content-Type"] == "application/problem+json"
        assert self.json["status"] == self.status
        return str(self.json["type"]).removeprefix(TYPE_PREFIX)


@dataclass
class Deployment:
    """One worker of a deployment."""

    aggregator: Aggregator
    app: Flask
    clocks: Clocks

    def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        key: str = "",
        kind: str = "application/json",
        environ: Mapping[str, Any] | None = None,
    ) -> Response:
        """Call an endpoint, as a WSGI server does."""
        path, _, query = path.partition("?")
        request: dict[str, Any] = {
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": kind,
            "CONTENT_LENGTH": str(len(body)),
            "SERVER_PROTOCOL": "HTTP/1.1",
            "wsgi.input": io.BytesIO(body),
        }
        setup_testing_defaults(request)
        if key:
            request["HTTP_AUTHORIZATION"] = f"Bearer {key}"
        request |= environ or {}
        pieces, status, headers = run_wsgi_app(self.app.wsgi_app, request, buffered=True)
        return Response(int(status[:3]), dict(headers), b"".join(pieces))

    def send(self, batch: Batch, **named: Any) -> Response:
        return self.ask("POST", "/v1/reports", encode_binary(batch), kind=BINARY_TYPE, **named)

    def verdicts(self, *reports: Report, **named: Any) -> list[Verdict]:
        reply = self.send(Batch(reports), **named)

        assert reply.status == 200, reply.body
        return [Verdict(word) for word in reply.json["verdicts"]]

    def key(self, role: Role, label: str = "") -> str:
        """Create a key that this worker knows immediately."""
        _, secret = create_key(self.aggregator.store, role, label, self.clocks.now)
        self.aggregator.catalog_cache.refresh()
        return secret

    def push(self, text: str, **files: str) -> None:
        """Push definitions and the files they name (without `.txt`), known immediately."""
        source = DefinitionSource(text, {f"{name}.txt": lines for name, lines in files.items()})
        self.aggregator.push(source, "cli")

    def series(self, name: str) -> Series:
        return self.aggregator.known().catalog.by_name[name][0]

    def report(self, name: str, **changed: Any) -> Report:
        """Return a report that would be counted, of a new pseudonym in the running period."""
        series = self.series(name)
        period = period_at(series.collection, self.clocks.now)
        assert period is not None
        slot = period * series.collection.per_day if series.linked else 0
        message = next(
            number for number in range(1 << 16) if series.collection.mechanism.valid(number)
        )
        packed = series.collection.pack(message)
        report = Report(series.fingerprint, period, 0, secrets.token_bytes(16), slot, packed)
        return replace(report, **changed)

    def drop_ended_epochs(self) -> int:
        """Drop ended epochs, as a worker with a trusted clock does; return their number."""
        store, series = self.aggregator.store, self.aggregator.known().catalog.series.values()
        dropped = drop_ended_epochs(store, series, self.clocks.now)
        while delete_rows(store, series):
            pass
        return dropped

    def counted(self, name: str) -> int:
        return sum(self.aggregator.store.report_counts(self.series(name)).values())


@dataclass
class Clocks:
    """A wall clock and a monotonic clock, set by the test."""

    now: datetime = NOW
    passed: float = field(default=1000.0)


#: tests send many pseudonyms in one body
LIMITS = {"max_pseudonyms_per_body": MAX_REPORTS}


@contextmanager
def deployment(
    folder: Path, *files: str, url: str = "", now: datetime = NOW, **settings: Any
) -> Iterator[Deployment]:
    """Yield a deployment with definitions on a new store, by default SQLite in the folder."""
    file = f"sqlite:///{quote(str(folder))}/store.db?durability=relaxed"
    with open_worker(url or file, now, make=True, **settings) as made:
        for text in files:
            made.push(text)
        yield made


@contextmanager
def open_worker(
    url: str, now: datetime = NOW, *, make: bool = False, **settings: Any
) -> Iterator[Deployment]:
    if make:
        open_store(url, make=True).close()
    clocks = Clocks(now)
    aggregator = Aggregator.open(
        Settings(url, **LIMITS | settings), lambda: clocks.now, lambda: clocks.passed
    )
    try:
        yield Deployment(aggregator, create_app(aggregator, lambda: clocks.passed), clocks)
    finally:
        with suppress(StoreError):  # a test made it read-only
            aggregator.close()
