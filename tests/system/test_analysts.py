"""Analysts who ask for all they can: the intake goes on, and nothing of it grows."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
import requests
from bench.reads import Devices, fill, prepare
from loadtests.analysts import definitions, parse

from veilcount_aggregator.records.api_keys import Role, create_key
from veilcount_aggregator.server.analysis_pool.client import MOST_WAITING
from veilcount_aggregator.server.analysis_pool.places import PLACES
from veilcount_aggregator.store import open_store

from ..processes import cpu_seconds, peak_megabytes, stopped
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


def test_what_analysts_ask_is_computed_in_a_process_of_the_pool(server: Server, key: str) -> None:
    """A worker's memory holds none of it, and the length is announced.

    The worker only passes the response on: it grows far less than the process that computes it.
    """
    (worker,), pool = server.workers(), server.analysis()
    before = peak_megabytes(worker), {pid: peak_megabytes(pid) for pid in pool}
    reply = ask(server, key, CSV)
    grown, computed = (
        peak_megabytes(worker) - before[0],
        max(peak_megabytes(pid) - before[1][pid] for pid in pool),
    )

    assert reply.status_code == 200
    assert len(reply.content.splitlines()) == VALUES + 1
    assert int(reply.headers["Content-Length"]) == len(reply.content) > 2_000_000
    assert len(pool) == PLACES
    assert computed > 10  # MB
    assert grown < computed / 3


@contextmanager
def hung(server: Server) -> Iterator[None]:
    """Stop the pool, and let it go on again.

    Processes that have nothing to do, so that they hold none; and that are not about to be
    replaced.
    """
    wait_until(lambda: is_settled(server), 60)
    with stopped(server.analysis()):
        yield


def is_settled(server: Server) -> bool:
    """Whether the pool computes nothing for a while, and stays the same."""
    pids = server.analysis()
    before = sum(map(cpu_seconds, pids))
    time.sleep(2)
    return (
        len(pids) == PLACES
        and server.analysis() == pids
        and sum(map(cpu_seconds, pids)) <= before + 0.1
    )


def test_a_pool_that_hangs_holds_up_no_device(server: Server, key: str, devices: Devices) -> None:
    """At most a dozen requests wait, the next are refused immediately; who waited gets a response,
    unless the machine is so busy that its wait ends first.

    Lists and metrics are the worker's, so that they come meanwhile.
    """
    with ThreadPoolExecutor(MOST_WAITING + 4) as analysts:
        with hung(server):
            requested: list[Future[requests.Response]] = [
                analysts.submit(ask, server, key, CSV) for _ in range(MOST_WAITING + 4)
            ]
            wait_until(lambda: sum(each.done() for each in requested) >= 4, 60)
            devices.send(0.5)
            healthy = server.ask("GET", "/healthz").status_code
            listed = ask(server, key, "/v1/collections").status_code
            wait_until(lambda: is_up(server, key) == "0", 60)
            down = ask(server, key, "/metrics").text
        replies = [each.result() for each in requested]
    wait_until(lambda: is_up(server, key) == "1")

    codes = [each.status_code for each in replies]
    assert codes.count(200) + codes.count(503) == len(codes)
    assert codes.count(503) >= 4
    assert {each.headers.get("Retry-After") for each in replies if not each.ok} == {"2"}
    assert (healthy, listed) == (200, 200)
    assert devices.failed == 0
    assert devices.seconds
    assert 'veilcount_analysis_refused_total{reason="busy"}' in down


def is_up(server: Server, key: str) -> str:
    lines = ask(server, key, "/metrics").text.splitlines()
    (line,) = [line for line in lines if line.startswith("veilcount_analysis_up{}")]
    return line.rpartition(" ")[2]


def test_a_process_of_the_pool_that_is_killed_is_replaced(server: Server, key: str) -> None:
    """Whoever waits for it gets a whole response, or has to ask again."""
    pids = server.analysis()
    idle = {pid: cpu_seconds(pid) for pid in pids}
    with ThreadPoolExecutor(1) as analyst:
        waiting = analyst.submit(ask, server, key, CSV)
        wait_until(lambda: any(cpu_seconds(pid) > idle[pid] for pid in pids) or waiting.done())
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
    received = waiting.result()
    wait_until(lambda: len(set(server.analysis()) - set(pids)) == PLACES)

    assert received.status_code in {200, 503}
    assert len(received.content) == int(received.headers["Content-Length"])
    assert ask(server, key, CSV).status_code == 200
    assert '"event": "analysis process replaced"' in server.log_text()


def test_what_one_process_changed_every_other_reads_at_once(tmp_path: Path) -> None:
    """A key and a definition, made through whichever worker took the request: no delay, no 401."""
    url = f"sqlite:///{tmp_path}/store.db?durability=relaxed"
    with closing(open_store(url, make=True)) as store:
        _, admin = create_key(store, Role.ADMIN, "", datetime.now(UTC))
    with Server(url, tmp_path, "--workers", "3") as server:
        assert len(list(definitions_of_one_each(TEXT))) > 1
        for name, text in definitions_of_one_each(TEXT):
            created = change(server, admin, "keys", {"role": "analyst", "label": name}).json()
            change(server, admin, "collections", {"text": text})
            codes = {
                ask(server, created["key"], path).status_code
                for path in ("/v1/collections", f"/v1/collections/{name}/estimate")
                for _ in range(4)
            }

            assert codes == {200}, name


def change(server: Server, key: str, what: str, body: dict[str, str]) -> requests.Response:
    headers = {"Authorization": f"Bearer {key}", "Connection": "close"}
    reply = requests.post(f"{server.url}/v1/{what}", json=body, headers=headers, timeout=60)
    reply.raise_for_status()
    return reply


def definitions_of_one_each(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each collection of a file as a file of its own."""
    app, *tables = text.split("\n[")
    for table in tables:
        yield table.partition("]")[0], f"{app}\n[{table}"
