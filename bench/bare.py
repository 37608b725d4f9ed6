"""The baselines of the intake: what reads a body and answers 204, on the same servers.

`python -m bench.bare KIND serve --bind ADDRESS ...` serves one as `veilcount serve` does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from flask import Flask, request
from granian.constants import Interfaces

from veilcount_serving.listen_address import ListenAddress
from veilcount_serving.worker_supervisor import WorkerSupervisor

THREADS = 32
app = Flask(__name__)


@app.post("/v1/reports")
def read() -> tuple[str, int]:
    """Read everything, do nothing."""
    request.get_data(cache=False)
    return "", 204


async def rsgi(_: Any, protocol: Any) -> None:
    """Do the same on an event loop."""
    await protocol()
    protocol.response_empty(204, [])


async def asgi(_: Any, receive: Any, send: Any) -> None:
    """Do the same by ASGI."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


KINDS: dict[str, tuple[Interfaces, Callable[..., Any]]] = {
    "bare Flask": (Interfaces.WSGI, app),
    "bare RSGI": (Interfaces.RSGI, rsgi),
    "bare ASGI": (Interfaces.ASGI, asgi),
}


if __name__ == "__main__":
    bind = ListenAddress.parse(sys.argv[sys.argv.index("--bind") + 1])
    interface, target = KINDS[sys.argv[1]]
    print("{}", flush=True)  # as `veilcount serve --json` does
    supervisor = WorkerSupervisor(bind, 1, interface)
    supervisor.blocking_threads = THREADS if interface is Interfaces.WSGI else 1
    supervisor.serve(target_loader=lambda: target, wrap_loader=False)
