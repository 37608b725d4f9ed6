"""An aggregator with its pages, served in this process on a free port of the loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from werkzeug.serving import WSGIRequestHandler, make_server

from tests.aggregator.api.deployment_fixtures import Deployment
from veilcount_aggregator.auth import sessions
from veilcount_aggregator.auth.api_keys import Role

HOST = "127.0.0.1"


@dataclass
class Site:
    """The address of the pages, and the deployment behind them."""

    base: str
    deployment: Deployment

    def link(self, role: Role) -> str:
        store, now = self.deployment.aggregator.store, self.deployment.clocks.now
        return sessions.link_url(self.base, sessions.create_link(store, role, now))


class _Silent(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - werkzeug's name
        """Log nothing."""


@contextmanager
def served(made: Deployment) -> Iterator[Site]:
    server = make_server(HOST, 0, made.app, threaded=True, request_handler=_Silent)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield Site(f"http://{HOST}:{server.server_port}", made)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
