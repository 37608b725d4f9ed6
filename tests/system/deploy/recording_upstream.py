"""What stands behind a proxy in a test and remembers what reached it, whole or in part."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from ..server import HOST


class RecordingUpstream(ThreadingHTTPServer):
    """An aggregator's place. It takes anything, and sets a cookie, as none should."""

    daemon_threads = True

    def __init__(self) -> None:
        self.connections = 0
        self.certificate = Path()
        self.names: set[str] = set()  # that clients of TLS asked for
        self.headers: list[dict[str, str]] = []
        self.lines: list[str] = []
        self.reply = (200, {"Set-Cookie": "who=me"})
        super().__init__((HOST, 0), _Request)

    def process_request(self, request: object, client_address: object) -> None:
        """Count it, whether or not it says anything."""
        self.connections += 1
        super().process_request(request, client_address)  # type: ignore[arg-type]  # a socket


class _Request(BaseHTTPRequestHandler):
    server: RecordingUpstream
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.lines.append(self.requestline)
        self.server.headers.append({name.lower(): v for name, v in self.headers.items()})
        body = b'{"verdicts":[]}'
        status, headers = self.server.reply
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_DELETE = do_OPTIONS = answer  # noqa: N815 - the names that are called

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def recording_upstream(tls: Path | None = None) -> Iterator[RecordingUpstream]:
    """Run one; with the folder of a certificate and its key, over TLS."""
    server = RecordingUpstream()
    if tls:
        server.certificate = tls / "certificate.pem"
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(server.certificate, tls / "key.pem")
        context.sni_callback = lambda _, name, __: server.names.add(name)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
