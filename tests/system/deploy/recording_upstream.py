"""What stands behind a proxy in a test and remembers what reached it, whole or in part."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.system.server import HOST


class RecordingUpstream(ThreadingHTTPServer):
    """An aggregator's place. It takes anything, and sets a cookie, as none should."""

    daemon_threads = True

    def __init__(self) -> None:
        self.connections = 0
        self.headers: list[dict[str, str]] = []
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
        self.server.headers.append({name.lower(): v for name, v in self.headers.items()})
        body = b'{"verdicts":[]}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Set-Cookie", "who=me")
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_DELETE = answer  # noqa: N815 - the names that are called

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def recording_upstream() -> Iterator[RecordingUpstream]:
    server = RecordingUpstream()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
