"""What stands in for a server that is away, as a load balancer would: 503, and when to come back.

Its own process may not be locust's, nor need it be another's: it has next to nothing to do.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HOST = "127.0.0.1"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    retry_seconds = 0

    def do_POST(self) -> None:  # what http.server calls it
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(HTTPStatus.SERVICE_UNAVAILABLE)
        self.send_header("Retry-After", str(self.retry_seconds))
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class _Page(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


@contextmanager
def page(port: int, retry_seconds: int) -> Iterator[None]:
    """Stand at a port for as long as this lasts."""
    handler = type("Handler", (_Handler,), {"retry_seconds": retry_seconds})
    with _Page((HOST, port), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
