"""`veilcount relay serve`: a relay for development and tests.

Only another party's relay hides addresses from this server: this one says so, and listens on the
loopback alone.
"""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import click
import requests

from . import options
from .output import print_result

HOST = "127.0.0.1"
MOST = 4 << 20  # bytes of a body: of the longest batch, encapsulated
SECONDS = 30.0
REQUEST_TYPE = "message/ohttp-req"


@click.group("relay")
def command() -> None:
    """Serve a relay for development."""


@command.command("serve")
@click.option("--to", "target", required=True, help="The server, such as http://127.0.0.1:8420.")
@click.option("--port", type=int, default=8440, show_default=True, help="0: any that is free.")
@click.option("--dev-only", is_flag=True, help="Confirm that it is for development.")
@options.as_json
def serve(target: str, port: int, *, dev_only: bool, as_json: bool) -> None:
    """Hand requests on to one server's gateway, on the loopback, until it is ended."""
    if not dev_only:
        raise click.UsageError(
            "a relay hides addresses only if somebody else runs it: for development, add --dev-only"
        )
    with ThreadingHTTPServer((HOST, port), _handler(target.rstrip("/") + "/v1/ohttp")) as server:
        url = f"http://{HOST}:{server.server_address[1]}"
        print_result({"url": url, "to": target}, [f"relay at {url}, to {target}"], as_json=as_json)
        server.serve_forever()


def _handler(gateway: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Hands on a body and its type, and nothing of who sent it."""

        def do_POST(self) -> None:
            """Hand one request on, and its reply back."""
            length = self.headers.get("Content-Length", "")
            if not length.isdigit() or int(length) > MOST:
                self.send_error(413)
                return
            body = self.rfile.read(int(length))
            status, kind, content = _forward(gateway, body)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Write nothing: a relay's log is what it knows."""

    return Handler


def _forward(gateway: str, body: bytes) -> tuple[int, str, bytes]:
    headers = {"Content-Type": REQUEST_TYPE, "User-Agent": "relay"}
    try:
        reply = requests.post(gateway, data=body, headers=headers, timeout=SECONDS)
    except requests.RequestException:
        return 502, "text/plain", b"the server cannot be reached"
    return reply.status_code, reply.headers.get("Content-Type", ""), reply.content
