"""The baseline of the intake: Flask that reads a body and answers 204, on the same servers.

A server loads `app` from here; `python -m bench.ingest_bare PORT` is the one of `veilcount serve`.
"""

from __future__ import annotations

import sys

from flask import Flask, request
from granian.constants import Interfaces

from veilcount_aggregator.server.listen_address import ListenAddress
from veilcount_aggregator.server.worker_supervisor import WorkerSupervisor

app = Flask(__name__)


@app.post("/v1/reports")
def read() -> tuple[str, int]:
    """Read everything, do nothing."""
    request.get_data(cache=False)
    return "", 204


def _load() -> Flask:
    return app


if __name__ == "__main__":
    bind = ListenAddress.parse(f"127.0.0.1:{sys.argv[1]}")
    WorkerSupervisor(bind, 1, Interfaces.WSGI).serve(target_loader=_load, wrap_loader=False)
