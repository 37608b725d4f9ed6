"""Analysts who ask for all they can: the intake goes on, and nothing of it grows."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from bench.reads import Devices, fill, peak, prepare
from loadtests.analysts import definitions, parse

from tests.system.server import HOST, Server, wait_until
from veilcount_aggregator.server.analysis_process.forwarding import MOST_WAITING

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


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def test_what_analysts_ask_is_computed_in_the_analysis_process(server: Server, key: str) -> None:
    """A worker's memory holds none of it, and the length is announced."""
    before = peak(server.workers()[0])
    reply = ask(server, key, CSV)

    assert reply.status_code == 200
    assert len(reply.content.splitlines()) == VALUES + 1
    assert int(reply.headers["Content-Length"]) == len(reply.content) > 2_000_000
    assert peak(server.workers()[0]) - before < 2  # MB
    assert peak(server.analysis()[0]) > 0


@contextmanager
def hung(pid: int) -> Iterator[None]:
    """Stop a process, and let it go on again; one that has nothing to do, so that it holds none."""
    wait_until(lambda: is_idle(pid), 60)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def is_idle(pid: int) -> bool:
    """Whether a process computes nothing for a while."""
    before = cpu_seconds(pid)
    time.sleep(0.5)
    return cpu_seconds(pid) <= before + 0.02


def test_an_analysis_process_that_hangs_holds_up_no_device(
    server: Server, key: str, devices: Devices
) -> None:
    """A dozen requests wait, the next are refused immediately; then the dozen get responses.

    Metrics show it: they are the worker's, so that they come meanwhile.
    """
    with ThreadPoolExecutor(MOST_WAITING + 4) as analysts:
        with hung(*server.analysis()):
            requested: list[Future[requests.Response]] = [
                analysts.submit(ask, server, key, "/v1/collections")
                for _ in range(MOST_WAITING + 4)
            ]
            wait_until(lambda: sum(each.done() for each in requested) == 4)
            devices.send(0.5)
            healthy = server.ask("GET", "/healthz").status_code
            down = ask(server, key, "/metrics").text
        replies = [each.result() for each in requested]
    wait_until(lambda: "\nveilcount_analysis_up{} 1\n" in ask(server, key, "/metrics").text)

    assert sorted(each.status_code for each in replies) == [200] * MOST_WAITING + [503] * 4
    assert {each.headers.get("Retry-After") for each in replies if not each.ok} == {"2"}
    assert healthy == 200
    assert devices.failed == 0
    assert devices.seconds
    assert "\nveilcount_analysis_up{} 0\n" in down
    assert 'veilcount_analysis_refused_total{reason="busy"}' in down


def test_an_answer_of_a_killed_analysis_process_is_seen_to_be_cut(server: Server, key: str) -> None:
    """And the process is replaced."""
    (killed,) = server.analysis()
    with socket.create_connection((HOST, server.port), timeout=60) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # most is still to come
        connection.sendall(
            f"GET {CSV} HTTP/1.1\r\nHost: x\r\nAccept: text/csv\r\n"
            f"Authorization: Bearer {key}\r\nConnection: close\r\n\r\n".encode()
        )
        received = connection.recv(1_000)
        os.kill(killed, signal.SIGKILL)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)  # the rest at once
        while piece := connection.recv(1 << 16):
            received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    (length,) = re.findall(rb"(?i)content-length: (\d+)", head)
    wait_until(lambda: server.analysis() not in ([], [killed]))

    assert head.startswith(b"HTTP/1.1 200")
    assert len(body) < int(length)
    assert ask(server, key, "/v1/collections").status_code == 200
    assert '"event": "analysis process replaced"' in server.log_text()
