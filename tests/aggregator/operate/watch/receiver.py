"""A real receiver of events, which answers as a test lets it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, repeat
from typing import Any

DRIPS = 0  # instead of a status: the head of a response, byte by byte
HANGS = -1


class Receiver:
    """Takes events; answers with these statuses, and then with 204."""

    def __init__(self, *statuses: int) -> None:
        self.statuses: Iterator[int] = chain(statuses, repeat(204))
        self.accepted: list[dict[str, Any]] = []
        self.stopped = threading.Event()


@contextmanager
def listening(receiver: Receiver) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = next(receiver.statuses)
            if status in {DRIPS, HANGS}:
                while status == HANGS and not receiver.stopped.wait(0.05):
                    pass
                while not receiver.stopped.wait(0.05):
                    self.wfile.write(b"H")
                return
            if status == 204:
                receiver.accepted.append(json.loads(body))
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its own name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/secret-path"
    finally:
        receiver.stopped.set()
        server.shutdown()
        thread.join()
        server.server_close()
