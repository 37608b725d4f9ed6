"""Relayed requests on a worker's event loop: opened there, and taken with direct reports."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from veilcount_aggregator.intake.group_intake import IntakeRequest, LoopIntake
from veilcount_aggregator.intake.pipeline import Outcome
from veilcount_aggregator.records.gateway_keys import create_gateway_key
from veilcount_aggregator.server import rsgi
from veilcount_aggregator.server.app import WebApplication, assemble
from veilcount_aggregator.server.opening_queue import OpeningQueue
from veilcount_aggregator.server.rsgi import MOST_ROW_CLOSES, RsgiApplication
from veilcount_aggregator.service import Aggregator
from veilcount_aggregator.web.api import gateway
from veilcount_aggregator.web.api.gateway import ENCAPSULATION
from veilcount_aggregator.web.api.request_metrics import GATEWAY_REFUSED, RELAYED
from veilcount_serving.group_commit import ANSWER_SECONDS
from veilcount_serving.structured_logging import FaultLog
from veilcount_serving.wsgi_threads import WsgiThreads
from veilcount_shared.oblivious_http import binary_http, encapsulation
from veilcount_shared.oblivious_http.encapsulation import (
    REQUEST_TYPE,
    ObliviousExchange,
    seal_request,
)
from veilcount_shared.oblivious_http.hpke import decapsulate
from veilcount_shared.report import Batch
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import BINARY_TYPE, decode_verdicts, encode_binary

from ...system.server import wait_until
from ..web.api.deployment_fixtures import FILE, Deployment, deployment
from .test_wsgi_threads import SCOPE, Protocol

PATIENCE = 60.0


def no_thread(environ: Any, start: Any) -> Any:
    """Stand for all that takes a thread."""
    raise AssertionError(f"{environ['PATH_INFO']} took a thread")


@dataclass
class Worker:
    """One worker in this process: its loop's application, on a real store."""

    made: Deployment
    others: Any = no_thread
    now: float = 1000.0

    def __post_init__(self) -> None:
        self.key = create_gateway_key(self.made.aggregator.store, self.made.clocks.now)
        self.made.aggregator.catalog_cache.refresh()
        threads = WsgiThreads(self.others, FaultLog())
        self.app = RsgiApplication(lambda: self.web, threads, lambda: self.now)
        self.web: WebApplication = assemble(
            self.made.aggregator, lambda: self.now, intake_type=LoopIntake
        )

    def body(self) -> bytes:
        return encode_binary(Batch((self.made.report("alone"),)))

    def seal(self, content: bytes, path: str = "/v1/reports") -> tuple[bytes, ObliviousExchange]:
        fields = (("content-type", BINARY_TYPE),)
        plain = binary_http.Request("POST", path, fields, content).encode()
        return seal_request(self.key.config, plain)

    async def post(
        self, path: str, body: bytes, kind: str, headers: dict[str, str] | None = None
    ) -> Protocol:
        protocol = Protocol((body,))
        fields = {"content-type": kind, "content-length": str(len(body)), "host": "x"}
        scope = SimpleNamespace(**vars(SCOPE) | {"path": path})
        scope.headers = fields | (headers or {})
        await self.app.__rsgi__(scope, protocol)
        return protocol

    async def direct(self, body: bytes) -> Protocol:
        return await self.post("/v1/reports", body, BINARY_TYPE)

    async def relayed(self, body: bytes, path: str = "/v1/reports") -> binary_http.Response:
        """Return the inner response."""
        sealed, exchange = self.seal(body, path)
        reply = await self.post("/v1/ohttp", sealed, REQUEST_TYPE)
        assert reply.status == 200, reply.body
        return binary_http.Response.decode(exchange.open(reply.body))

    def run(self, act: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        async def running() -> Any:
            self.app.__rsgi_init__(asyncio.get_running_loop())
            return await act()

        return asyncio.run(running())

    def refusals(self) -> dict[str, int]:
        self.made.aggregator.flush()
        counts = self.made.aggregator.store.service_counts()
        return {at.word: n for at, n in counts.items() if at.what == GATEWAY_REFUSED}


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Deployment]:
    with deployment(tmp_path, FILE) as deployed:
        yield deployed


@pytest.fixture
def worker(made: Deployment) -> Worker:
    return Worker(made)


@dataclass
class Gate:
    """Lets each group through when the test says so, and notes its bodies."""

    groups: list[list[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.begun, self.go = threading.Semaphore(0), threading.Semaphore(0)

    def admit(self, requests: Sequence[IntakeRequest]) -> None:
        self.groups.append([request.body.raw for request in requests])
        self.begun.release()
        assert self.go.acquire(timeout=PATIENCE)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """A gate in front of the store, for the workers of the test."""
    gate, take = Gate(), Aggregator.take_group

    def take_group(aggregator: Aggregator, requests: Sequence[IntakeRequest]) -> list[Outcome]:
        gate.admit(requests)
        return take(aggregator, requests)

    monkeypatch.setattr(Aggregator, "take_group", take_group)
    yield gate
    for _ in range(8):
        gate.go.release()


def test_a_worker_that_leaves_the_gateway_to_threads_is_noticed(worker: Worker) -> None:
    """Planted: as long as threads had it, an analysis process answered it."""
    sealed, _ = worker.seal(worker.body())
    with patch.object(gateway, "PATH", "/elsewhere"):
        reply = worker.run(lambda: worker.post("/v1/ohttp", sealed, REQUEST_TYPE))

    assert reply.status == 500  # by `no_thread`


def test_a_relayed_report_counts_and_takes_no_thread(worker: Worker) -> None:
    inner = worker.run(lambda: worker.relayed(worker.body()))
    worker.made.aggregator.flush()
    counts = worker.made.aggregator.store.service_counts()

    assert decode_verdicts(inner.content, 1) == (Verdict.COUNTED,)
    assert worker.made.counted("alone") == 1
    assert [n for at, n in counts.items() if at.what == RELAYED] == [1]


def test_relayed_and_direct_reports_are_written_as_one_group(gate: Gate, worker: Worker) -> None:
    """What arrives in both ways while a group is written is the next group."""
    direct, relayed = ([worker.body() for _ in range(3)] for _ in range(2))

    async def send() -> list[Any]:
        first = asyncio.ensure_future(worker.direct(worker.body()))
        await asyncio.to_thread(gate.begun.acquire, timeout=PATIENCE)
        sending = (
            [worker.direct(body) for body in direct],
            [worker.relayed(body) for body in relayed],
        )
        others: list[asyncio.Future[Any]] = [*map(asyncio.ensure_future, chain(*sending))]
        await asyncio.to_thread(wait_until, lambda: worker.web.intake.waiting == len(others))
        gate.go.release()
        gate.go.release()
        await first
        return await asyncio.gather(*others)

    replies = worker.run(send)

    assert [sorted(group) for group in gate.groups[1:]] == [sorted(direct + relayed)]
    assert [reply.status for reply in replies] == [200] * 6


def test_a_store_that_hangs_is_answered_within_the_time_of_direct_reports(
    gate: Gate, worker: Worker
) -> None:
    """Under the encapsulation: the relay learns nothing of the store."""

    async def send() -> binary_http.Response:
        waiting = asyncio.ensure_future(worker.relayed(worker.body()))
        await asyncio.to_thread(gate.begun.acquire, timeout=PATIENCE)
        worker.now += ANSWER_SECONDS
        return await asyncio.wait_for(waiting, PATIENCE)

    inner = worker.run(send)

    assert inner.status == 503
    assert dict(inner.fields)["retry-after"] == "2"


def test_a_queue_that_is_full_refuses_relayed_requests_and_no_direct_ones(worker: Worker) -> None:
    async def send() -> tuple[Protocol, Protocol]:
        sealed, _ = worker.seal(worker.body())
        return (
            await worker.post("/v1/ohttp", sealed, REQUEST_TYPE),
            await worker.direct(worker.body()),
        )

    with patch.object(rsgi, "OpeningQueue", partial(OpeningQueue, lane_bytes=64)):
        refused, direct = worker.run(send)

    assert (refused.status, refused.headers["Retry-After"]) == (503, "2")
    assert direct.status == 200
    assert worker.refusals() == {"busy": 1}


def test_a_body_that_does_not_open_costs_one_try_and_is_counted(worker: Worker) -> None:
    sealed, _ = worker.seal(worker.body())
    changed = sealed[:-1] + bytes([sealed[-1] ^ 1])
    with patch.object(encapsulation, "decapsulate", wraps=decapsulate) as opening:
        refused = worker.run(lambda: worker.post("/v1/ohttp", changed, REQUEST_TYPE))

    assert refused.status == 400
    assert opening.call_count == 1
    assert worker.refusals() == {ENCAPSULATION: 1}
    assert worker.made.counted("alone") == 0


def test_a_row_is_closed_on_a_thread_of_the_worker(made: Deployment) -> None:
    paths: list[str] = []

    def close(environ: Any, start: Any) -> list[bytes]:
        paths.append(environ["PATH_INFO"])
        start("204 No Content", [])
        return []

    worker = Worker(made, others=close)

    assert worker.run(lambda: worker.relayed(b"{}", "/v1/rows/close")).status == 204
    assert paths == ["/v1/rows/close"]


def test_rows_that_wait_for_a_store_that_hangs_take_few_threads_and_bounded_time(
    made: Deployment,
) -> None:
    go = threading.Event()

    def hang(environ: Any, start: Any) -> list[bytes]:
        assert go.wait(PATIENCE)
        start("204 No Content", [])
        return []

    worker = Worker(made, others=hang)

    async def close(number: int) -> list[int]:
        closing = (worker.relayed(b"{}", "/v1/rows/close") for _ in range(number))
        return [reply.status for reply in await asyncio.gather(*closing)]

    async def closings() -> tuple[list[int], list[int]]:
        late = await close(MOST_ROW_CLOSES)
        more = await close(1)
        go.set()
        return late, more

    with patch.object(rsgi, "ANSWER_SECONDS", 0.05):
        late, more = worker.run(closings)

    assert late == [503] * MOST_ROW_CLOSES
    assert more == [503]


def test_a_request_without_a_host_is_refused_as_http_requires(worker: Worker) -> None:
    async def send() -> list[int]:
        statuses = []
        for version, headers in (("1.1", {}), ("1.1", {"host": ""}), ("1.0", {})):
            scope = SimpleNamespace(**vars(SCOPE) | {"path": "/v1/reports"})
            scope.http_version, scope.headers = version, dict(headers)
            protocol = Protocol((worker.body(),))
            await worker.app.__rsgi__(scope, protocol)
            statuses.append(protocol.status)
        return statuses

    first, *others = worker.run(send)

    assert first == 400
    assert others == [415, 415]  # they got as far as their bodies, which name no type
