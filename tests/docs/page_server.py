"""An aggregator on a port of the loopback, in this process, by a clock that stands."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from email.utils import format_datetime

from werkzeug.serving import WSGIRequestHandler, make_server

from veilcount_aggregator.auth.api_keys import Role, create_key
from veilcount_aggregator.server.app import create_app
from veilcount_aggregator.service import Aggregator
from veilcount_aggregator.settings import Settings

HOST = "127.0.0.1"


class Served:
    """The real store and endpoints; in granian's place a server that needs no process."""

    def __init__(self, settings: Settings, clock: Callable[[], datetime]) -> None:
        self.aggregator = Aggregator.open(settings, clock)
        self._clock = clock
        app = create_app(self.aggregator)
        self._server = make_server(HOST, 0, app, threaded=True, request_handler=_handler(clock))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._server.server_port}"

    def key(self, role: str) -> str:
        _, secret = create_key(self.aggregator.store, Role(role), "page", self._clock())
        self.refresh()
        return secret

    def refresh(self) -> None:
        """Know what a command has just changed in the store."""
        self.aggregator.watch.refresh()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self.aggregator.close()


def _handler(clock: Callable[[], datetime]) -> type[WSGIRequestHandler]:
    """Return what writes no log, as nothing here does, and dates replies by the clock."""

    class Handler(WSGIRequestHandler):
        def log(self, type: str, message: str, *args: object) -> None:  # noqa: A002 - werkzeug's
            """Say nothing."""

        def date_time_string(self, timestamp: float | None = None) -> str:
            return format_datetime(clock(), usegmt=True)

    return Handler
