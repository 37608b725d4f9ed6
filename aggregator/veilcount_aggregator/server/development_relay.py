"""A relay for development, the demo and tests: it hands requests on to one server's gateway.

Only another party's relay hides addresses from this server, so this one listens on the loopback
alone. It writes nothing: a relay's log is what it knows.
"""

from __future__ import annotations

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

import requests

from veilcount_serving.listen_address import ListenAddress
from veilcount_shared.oblivious_http.encapsulation import REQUEST_TYPE

HOST = "127.0.0.1"
MOST = 4 << 20  # bytes of a body: of the longest batch, encapsulated
SECONDS = 30.0


class RelayedExchange(NamedTuple):
    """All that a relay can see of one request and its reply."""

    address: str
    body: bytes
    reply: bytes


Observer = Callable[[RelayedExchange], None]


class DevelopmentRelay(ThreadingHTTPServer):
    """Hands on bodies, and nothing of who sent them."""

    def __init__(self, target: str, port: int, observe: Observer = lambda _: None) -> None:
        """Listen; port 0 is any free one. `observe` is called with what a curious relay has."""
        self.gateway = target.rstrip("/") + "/v1/ohttp"
        self.observe = observe
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise ListenAddress(HOST, port).listen_error(error, "port") from error

    @property
    def url(self) -> str:
        """Where clients reach it."""
        return f"http://{HOST}:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    """Hands on a body and its type."""

    server: DevelopmentRelay

    def do_POST(self) -> None:
        """Hand one request on, and its reply back."""
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > MOST:
            self.send_error(413)
            return
        body = self.rfile.read(int(length))
        status, kind, content = _forward(self.server.gateway, body)
        self.server.observe(RelayedExchange(self.client_address[0], body, content))
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Write nothing."""


def _forward(gateway: str, body: bytes) -> tuple[int, str, bytes]:
    headers = {"Content-Type": REQUEST_TYPE, "User-Agent": "relay"}
    try:
        reply = requests.post(gateway, data=body, headers=headers, timeout=SECONDS)
    except requests.RequestException:
        return 502, "text/plain", b"the server cannot be reached"
    return reply.status_code, reply.headers.get("Content-Type", ""), reply.content
