"""An aggregator on a port of the loopback, in this process, by a clock that stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from datetime import datetime
from email.utils import format_datetime
from typing import Any

from veilcount_aggregator.records.api_keys import Role, create_key
from veilcount_aggregator.server.app import create_app
from veilcount_aggregator.service import Aggregator
from veilcount_aggregator.settings import Settings
from veilcount_issuer.app import create_issuer_app
from veilcount_issuer.worker import IssuerSettings, opened_issuer
from veilcount_serving.structured_logging import FaultLog

from ..aggregator.operate.cli.server_fixtures import listening


class Served:
    """The real store and endpoints; in granian's place a server that needs no process."""

    def __init__(self, settings: Settings, clock: Callable[[], datetime]) -> None:
        self.aggregator = Aggregator.open(settings, clock)
        self._clock = clock
        app = create_app(self.aggregator)

        def dated(environ: Any, start: Callable[..., Any]) -> Iterable[bytes]:
            """Date replies by the clock."""
            date = ("Date", format_datetime(clock(), usegmt=True))
            return app(
                environ, lambda status, headers, *rest: start(status, [*headers, date], *rest)
            )

        self._stack = ExitStack()
        self._stack.callback(self.aggregator.close)
        self.url = self._stack.enter_context(listening(dated))
        self.close = self._stack.close

    def key(self, role: str) -> str:
        _, secret = create_key(self.aggregator.store, Role(role), "page", self._clock())
        self.refresh()
        return secret

    def refresh(self) -> None:
        """Know what a command has just changed in the store."""
        self.aggregator.catalog_cache.refresh()


class ServedIssuer:
    """A real issuer, in granian's place a server that needs no process."""

    def __init__(self, settings: IssuerSettings, clock: Callable[[], datetime]) -> None:
        self._stack = ExitStack()
        issuer = self._stack.enter_context(opened_issuer(settings, clock))
        issuer.publish()
        app, _ = create_issuer_app(
            issuer, settings.verifier(), faults=FaultLog(), rate=settings.rate_limit
        )
        self.url = self._stack.enter_context(listening(app))
        self.close = self._stack.close
