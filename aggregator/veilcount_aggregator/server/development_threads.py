"""The server of `veilcount dev` where nothing forks: threads of one process, and plain HTTP.

It has werkzeug's server, which comes with Flask. Each connection is one request, and one on which
nothing comes is closed, so that the end waits for all threads: Windows removes no store that one of
them has open.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import ExitStack
from wsgiref.types import WSGIApplication

from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from veilcount_serving.listen_address import ListenAddress

SILENT_SECONDS = 5.0
ENDING = ("SIGINT", "SIGTERM", "SIGBREAK")  # the last is Windows' own


class _Handler(WSGIRequestHandler):
    """A request, of which no line is logged."""

    protocol_version = "HTTP/1.0"
    timeout = SILENT_SECONDS

    def log(self, type: str, message: str, *_: object) -> None:  # noqa: A002 - werkzeug's name
        """Log nothing: a request is nobody's business."""


class _Server(ThreadedWSGIServer):
    allow_reuse_address = False  # on Windows two servers would share the port
    daemon_threads = False


def serve_threads(
    application: WSGIApplication, bind: ListenAddress, started: Callable[[], object]
) -> None:
    """Answer requests until SIGINT, SIGTERM or Ctrl-Break; call `started` once it does."""
    for name in ENDING:
        if hasattr(signal, name):  # SIGINT is ignored by what is started in the background
            signal.signal(getattr(signal, name), signal.default_int_handler)
    with ExitStack() as stack:
        server = stack.enter_context(_Server(bind.host, bind.port, application, _Handler))
        started()
        server.serve_forever()
