"""Analysts who ask for all they can: the intake goes on, and nothing of it grows."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from bench.reads import Devices, fill, prepare
from loadtests.analysts import definitions, parse

from veilcount_aggregator.server.analysis_process.forwarding import MOST_WAITING

from ..processes import cpu_seconds, peak_megabytes
from .server import Server, wait_until

VALUES = 10_000
GROWN = 1.25  # of a worker's peak memory: it was 4
TEXT = definitions(VALUES)
CSV = f"/v1/collections/plugin/estimate?size={VALUES}"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("analysts")
    return f"sqlite:///{folder}/store.db?durability=relaxed"


@pytest.fixture(scope="module")
def key(url: str) -> str:
    return prepare(url, TEXT)


@pytest.fixture(scope="module")
def server(url: str, key: str, memory: Path) -> Iterator[Server]:
    """One server with one worker, for all."""
    with Server(url, memory) as served:
        fill(served.url, parse(TEXT), 50)
        yield served


@pytest.fixture
def devices(server: Server) -> Devices:
    """They answer one of its questions."""
    return Devices(server.url, parse(TEXT)["autosave"])


def ask(server: Server, key: str, path: str, accept: str = "text/csv, */*") -> requests.Response:
    headers = {"Authorization": f"Bearer {key}", "Accept": accept, "Connection": "close"}
    return requests.get(server.url + path, headers=headers, timeout=60)


def test_what_analysts_ask_is_computed_in_the_analysis_process(server: Server, key: str) -> None:
    """A worker's memory holds none of it, and the length is announced.

    The worker only passes the response on: it grows far less than the process that computes it.
    """
    (worker,), (analysis,) = server.workers(), server.analysis()
    before = peak_megabytes(worker), peak_megabytes(analysis)
    reply = ask(server, key, CSV)
    grown, computed = peak_megabytes(worker) - before[0], peak_megabytes(analysis) - before[1]

    assert reply.status_code == 200
    assert len(reply.content.splitlines()) == VALUES + 1
    assert int(reply.headers["Content-Length"]) == len(reply.content) > 2_000_000
    assert computed > 10  # MB
    assert grown < computed / 3


@contextmanager
def hung(server: Server) -> Iterator[None]:
    """Stop the analysis process, and let it go on again.

    One that has nothing to do, so that it holds none; and that is not about to be replaced.
    """
    wait_until(lambda: is_settled(server), 60)
    (pid,) = server.analysis()
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def is_settled(server: Server) -> bool:
    """Whether the analysis process computes nothing for a while, and stays the same."""
    pids = server.analysis()
    before = sum(map(cpu_seconds, pids))
    time.sleep(2)
    return len(pids) == 1 and server.analysis() == pids and cpu_seconds(*pids) <= before + 0.05


def test_an_analysis_process_that_hangs_holds_up_no_device(
    server: Server, key: str, devices: Devices
) -> None:
    """At most a dozen requests wait, the next are refused immediately; who waited gets a response,
    unless the machine is so busy that its wait ends first.

    Metrics show it: they are the worker's, so that they come meanwhile.
    """
    with ThreadPoolExecutor(MOST_WAITING + 4) as analysts:
        with hung(server):
            requested: list[Future[requests.Response]] = [
                analysts.submit(ask, server, key, "/v1/collections")
                for _ in range(MOST_WAITING + 4)
            ]
            wait_until(lambda: sum(each.done() for each in requested) >= 4, 60)
            devices.send(0.5)
            healthy = server.ask("GET", "/healthz").status_code
            down = ask(server, key, "/metrics").text
        replies = [each.result() for each in requested]
    wait_until(lambda: "\nveilcount_analysis_up{} 1\n" in ask(server, key, "/metrics").text)

    codes = [each.status_code for each in replies]
    assert codes.count(200) + codes.count(503) == len(codes)
    assert codes.count(503) >= 4
    assert {each.headers.get("Retry-After") for each in replies if not each.ok} == {"2"}
    assert healthy == 200
    assert devices.failed == 0
    assert devices.seconds
    assert "\nveilcount_analysis_up{} 0\n" in down
    assert 'veilcount_analysis_refused_total{reason="busy"}' in down


def test_an_analysis_process_that_is_killed_is_replaced(server: Server, key: str) -> None:
    """Whoever waits for it gets a whole response, or has to ask again."""
    (killed,) = server.analysis()
    idle = cpu_seconds(killed)
    with ThreadPoolExecutor(1) as analyst:
        waiting = analyst.submit(ask, server, key, CSV)
        wait_until(lambda: cpu_seconds(killed) > idle or waiting.done())
        os.kill(killed, signal.SIGKILL)
    received = waiting.result()
    wait_until(lambda: server.analysis() not in ([], [killed]))

    assert received.status_code in {200, 500, 503}
    assert len(received.content) == int(received.headers["Content-Length"])
    assert ask(server, key, "/v1/collections").status_code == 200
    assert '"event": "analysis process replaced"' in server.log_text()
