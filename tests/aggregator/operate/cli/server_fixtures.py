"""A server in this process, over real HTTP: for commands that ask one, not for servers."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from wsgiref.simple_server import WSGIRequestHandler, make_server
from wsgiref.types import WSGIApplication

from veilcount_aggregator.server.app import create_app
from veilcount_aggregator.service import Aggregator
from veilcount_aggregator.settings import Settings

HOST = "127.0.0.1"


class Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its own name
        pass


@contextmanager
def listening(app: WSGIApplication, certificate: Path | None = None) -> Iterator[str]:
    server = make_server(HOST, 0, app, handler_class=Quiet)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http{'s' if certificate else ''}://{HOST}:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def serving(store: str) -> Iterator[str]:
    with (
        closing(Aggregator.open(Settings(store))) as aggregator,
        listening(create_app(aggregator).wsgi_app) as url,
    ):
        yield url
