"""The processes of `veilcount issuer serve`: workers as the aggregator's, another application."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from veilcount_issuer.worker import IssuerSettings, IssuerWorker, opened_issuer
from veilcount_serving.listen_address import ListenAddress
from veilcount_serving.structured_logging import configure_logging
from veilcount_serving.worker_processes import (
    Announce,
    StartupSummary,
    enter_worker,
    limit_malloc_arenas,
    raise_file_limit,
    run_workers,
)
from veilcount_serving.wsgi_threads import WsgiThreads

from ...store.store_url import redact_url


class IssuerSummary(StartupSummary):
    """The line that is printed once the issuer accepts connections."""

    def __str__(self) -> str:
        return f"veilcount: issuing at {self.bind} from {self.store} ({self.durable})"


class IssuerRsgi:
    """One worker's application, which Granian calls: every request takes a thread."""

    def __init__(self, worker: IssuerWorker) -> None:
        self._threads = WsgiThreads(worker, worker.faults)

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        await self._threads.respond(scope, protocol)


def serve_issuer(
    settings: IssuerSettings, bind: ListenAddress, workers: int, announce: Announce
) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code."""
    bind.check()
    with opened_issuer(settings) as issuer:
        health = issuer.store.health()
    ready = IssuerSummary(bind, redact_url(settings.store), health.durable.value, workers, "issuer")
    configure_logging(sys.stderr)
    limit_malloc_arenas()
    raise_file_limit()
    return run_workers(ready, partial(_load, settings), announce)


def _load(settings: IssuerSettings) -> IssuerRsgi:
    enter_worker()
    worker = IssuerWorker(settings)
    worker.start()
    return IssuerRsgi(worker)
