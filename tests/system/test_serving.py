"""`veilcount serve`, for real: what it does while it serves, and how it ends."""

from __future__ import annotations

import gzip
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from select import select
from typing import Any

import pytest
import requests

from veilcount_aggregator.records.api_keys import Role, create_key, revoke_key
from veilcount_aggregator.records.definitions import (
    DefinitionSource,
    add_definitions,
    close_collection,
    load_catalog,
)
from veilcount_aggregator.records.service_counters import ANSWERED
from veilcount_aggregator.store import ServiceCounter, open_store
from veilcount_aggregator.web.api.reports import SOURCE_CLASS
from veilcount_aggregator.web.api.request_metrics import REPLACED
from veilcount_serving.group_commit import MAX_WAITING_BYTES
from veilcount_shared import Collection, parse_collections
from veilcount_shared.limits import PSEUDONYM_BYTES
from veilcount_shared.report import MAX_PADDING, Batch, Losses, Report
from veilcount_shared.wire import BINARY_TYPE, JSON_TYPE, encode_binary

from ..redis_server import RedisServer
from .server import HOST, Server, free_port, listens, slow_commits, wait_until

YESTERDAY = datetime.now(UTC).date() - timedelta(days=1)
FILE = f"""
app = "acme-editor"
[{{}}]
question = "Is autosave on?"
boolean = true
epsilon = 1
unit = "day"
from = {YESTERDAY}
until = {YESTERDAY + timedelta(days=60)}
"""
KNOWN = FILE.format("autosave")
COUNTED = ["counted"]
Hanging = tuple[str, AbstractContextManager[None]]


def collection(text: str = KNOWN) -> Collection:
    (only,) = parse_collections(text, lambda _: []).values()
    return only


def report(requested: Collection, **changed: Any) -> Report:
    """Return a report of a device that was never heard of."""
    pseudonym = secrets.token_bytes(PSEUDONYM_BYTES)
    return replace(Report(requested.fingerprint, 0, 0, pseudonym, 0, b"\1"), **changed)


def body(requested: Collection, **changed: Any) -> bytes:
    """Return what a device sends that was never heard of."""
    return encode_binary(Batch((report(requested, **changed),)))


def send(url: str, what: bytes) -> requests.Response:
    """Send it on a connection of its own, which any worker may take."""
    headers = {"Content-Type": BINARY_TYPE, "Connection": "close"}
    with requests.Session() as session:
        session.trust_env = False
        return session.post(f"{url}/v1/reports", what, headers=headers, timeout=30)


def counted(url: str) -> int:
    with closing(open_store(url)) as store:
        known = load_catalog(store).series.values()
        return sum(sum(store.report_counts(each).values()) for each in known)


def answered(url: str) -> int:
    """Return the store's count of requests to the report endpoint."""
    with closing(open_store(url)) as store:
        noted = store.service_counts().items()
    return sum(n for note, n in noted if (note.what, note.word[:8]) == (ANSWERED, "reports:"))


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Where a new store is that knows one collection."""
    return with_definitions(f"sqlite:///{tmp_path}/store.db")


def with_definitions(url: str) -> str:
    with closing(open_store(url, make=True)) as made:
        add_definitions(made, DefinitionSource(KNOWN), datetime.now(UTC), "test")
    return url


def polled(ask: Callable[[], object]) -> set[object]:
    """Return the results of many requests: one worker of two takes all once in 10^7 times."""
    return {ask() for _ in range(24)}


# -- while it serves -------------------------------------------------------------------------------


def test_all_workers_hear_of_changes_and_end_with_the_server(store: str, tmp_path: Path) -> None:
    """Of a revoked key and new definitions, without a restart; none holds the port for ever."""
    with closing(open_store(store)) as records:
        key, secret = create_key(records, Role.ANALYST, "", datetime.now(UTC))
    headers = {"Authorization": f"Bearer {secret}", "Connection": "close"}
    text = FILE.format("spelling")
    with Server(store, tmp_path, "--workers", "2") as server:

        def status() -> int:
            return server.ask("GET", "/v1/collections", headers=headers).status_code

        def verdict() -> str:
            (only,) = send(server.url, body(collection(text))).json()["verdicts"]
            return str(only)

        before = polled(status) | polled(verdict)
        with closing(open_store(store)) as records:
            revoke_key(records, key.id, datetime.now(UTC))
            add_definitions(records, DefinitionSource(text), datetime.now(UTC), "test")
        wait_until(lambda: polled(status) <= {401, 429}, 60)  # of many guesses, some are 429
        wait_until(lambda: polled(verdict) == {"counted"}, 60)

        assert before == {200, "unknown_collection"}
        assert server.ready == {
            "bind": server.url,
            "store": store,
            "durable": "durable: WAL, synchronous=FULL",
            "workers": 2,
            "intake": "open",
        }
        assert len(server.workers()) == 2
        os.kill(server.pid, signal.SIGKILL)
        server.process.wait()
    wait_until(lambda: not listens(server.port), 60)


def test_on_a_unix_socket_the_last_figures_are_written(store: str, tmp_path: Path) -> None:
    path = tmp_path / "veilcount.sock"
    with Server(store, tmp_path, "--bind", f"unix:{path}") as server:
        connection = HTTPConnection("veilcount")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(path))
        connection.request("POST", "/v1/reports", body(collection()), {"Content-Type": BINARY_TYPE})
        answer = connection.getresponse().read()
        connection.close()

        assert server.ready["bind"] == f"unix:{path}"
        assert json.loads(answer)["verdicts"] == COUNTED
    assert not path.exists()
    assert answered(store) == 1


@pytest.fixture(params=["sqlite", "redis"])
def hanging(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Hanging]:
    """A store, and what lets no commit end."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/store.db"
        yield with_definitions(url), slow_commits(tmp_path / "store.db")
        return
    redis = RedisServer(tmp_path)
    yield with_definitions(redis.url), redis.frozen()
    redis.kill()


UNWRITABLE = r'store_writable\{\} 0|shard_up\{shard="0"\} 0'


def metrics(server: Server, key: str) -> str:
    return server.ask("GET", "/metrics", headers={"Authorization": f"Bearer {key}"}).text


def test_a_store_that_hangs_keeps_nobody_waiting(hanging: Hanging, tmp_path: Path) -> None:
    """Health is answered before any device is; all devices are asked to retry while it still hangs,
    and later are counted, each once. Metrics show it meanwhile.
    """
    store, held = hanging
    with closing(open_store(store)) as opened:
        _, key = create_key(opened, Role.ANALYST, "", datetime.now(UTC))
    sent = [body(collection()) for _ in range(8)]
    with Server(store, tmp_path) as server, ThreadPoolExecutor(8) as devices:
        server.wait_until_open()
        with held:
            waiting = [devices.submit(send, server.url, each) for each in sent]
            alive = []
            while not any(each.done() for each in waiting):
                alive.append(server.ask("GET", "/healthz").status_code)
            refused = [*(each.result() for each in waiting), send(server.url, sent[0])]
            wait_until(lambda: re.search(UNWRITABLE, metrics(server, key)))
        wait_until(lambda: send(server.url, body(collection())).status_code == 200)
        verdicts = [send(server.url, each).json()["verdicts"] for each in sent]

    assert len(alive) > 1
    assert set(alive) == {200}
    assert [each.status_code for each in refused] == [503] * 9
    assert {each.headers["Retry-After"] for each in refused} == {"2"}
    assert all(each in (["counted"], ["duplicate"]) for each in verdicts)
    assert counted(store) == 1 + len(sent)


def test_a_worker_started_in_a_hang_keeps_nobody_waiting(store: str, tmp_path: Path) -> None:
    """The one before it was killed with a group of requests. Each is counted once, later."""
    sent = [body(collection()) for _ in range(8)]
    with Server(store, tmp_path) as server, ThreadPoolExecutor(8) as devices:
        with slow_commits(tmp_path / "store.db"):
            waiting = [devices.submit(send, server.url, each) for each in sent]
            time.sleep(0.5)
            (killed,) = server.workers()
            os.kill(killed, signal.SIGKILL)
            broken = [type(each.exception()) for each in waiting]
            wait_until(lambda: {*server.workers()} - {killed} and listens(server.port))
            refused = [*devices.map(partial(send, server.url), sent)]
            alive = server.ask("GET", "/healthz").status_code
        wait_until(lambda: send(server.url, body(collection())).status_code == 200)
        verdicts = [send(server.url, each).json()["verdicts"] for each in sent]

    assert broken == [requests.ConnectionError] * 8
    assert alive == 200
    assert [(each.status_code, each.headers["Retry-After"]) for each in refused] == [(503, "2")] * 8
    assert verdicts == [COUNTED] * 8
    assert counted(store) == 1 + len(sent)
    with closing(open_store(store)) as opened:
        assert opened.service_counts()[ServiceCounter(REPLACED, "", -1, "")] == 1


def begin(server: Server, headers: dict[str, str], what: bytes) -> HTTPConnection:
    """Send a request, and do not wait for its answer."""
    connection = HTTPConnection(HOST, server.port, timeout=30)
    connection.request("POST", "/v1/reports", what, headers)
    return connection


def outcome(connection: HTTPConnection) -> list[str]:
    """Return the verdicts of a request, or the problem that it was refused with."""
    answer = json.loads(connection.getresponse().read())
    connection.close()
    problem = answer.get("type", "").rpartition("#")[2]
    return [problem] if problem else list(answer["verdicts"])


def test_each_request_of_a_group_gets_its_own_answer(store: str, tmp_path: Path) -> None:
    """Of every kind, of two keys and of two classes of networks, gathered while commits wait."""
    known, other, closed = map(collection, map(FILE.format, ("autosave", "spelling", "closed")))
    now = datetime.now(UTC)
    with closing(open_store(store)) as records:
        add_definitions(records, DefinitionSource(FILE.format("spelling")), now, "test")
        add_definitions(records, DefinitionSource(FILE.format("closed")), now, "test")
        close_collection(records, "closed", now, "test")
        one, two = (create_key(records, Role.DEVICE, "", now)[1] for _ in range(2))
        _, analyst = create_key(records, Role.ANALYST, "", now)
    packed = {"Content-Type": BINARY_TYPE}
    gzipped, hosted = packed | {"Content-Encoding": "gzip"}, packed | {SOURCE_CLASS: "hosting"}
    first = body(known)
    both, more = (encode_binary(Batch((report(known), report(other)))) for _ in range(2))
    many = encode_binary(Batch(tuple(report(known) for _ in range(5))))
    losses = encode_binary(Batch(losses=Losses(known.fingerprint, aged=1)))
    sent = [
        (one, packed, body(known), ["counted"]),
        (one, packed, first, ["duplicate"]),
        (one, packed, body(closed), ["closed"]),
        (one, packed, body(known, period=3), ["early"]),
        (one, packed, body(known, slot=1), ["over_budget"]),
        (one, packed, first[:-1], ["wrong-length"]),
        (one, packed, encode_binary(Batch((report(known),), test=True)), ["bad-field"]),
        (one, packed, both, ["counted", "counted"]),
        (one, {"Content-Type": JSON_TYPE}, b"{}", ["unsupported"]),
        (one, hosted, body(known), ["counted"]),
        (two, packed, body(known, message=b"\xff"), ["malformed"]),
        (two, packed, body(known, fingerprint="0" * 64), ["unknown_collection"]),
        (two, packed, losses, []),
        (two, packed, more, ["counted", "counted"]),
        (two, gzipped, gzip.compress(more), ["unsupported"]),
        (two, {"Content-Type": "text/plain"}, first, ["unsupported"]),
        (two, hosted, many, ["counted"] * 4 + ["full"]),
    ]
    limits = {"VEILCOUNT_MAX_NEW_PSEUDONYMS_PER_HOUR": "4", "VEILCOUNT_SOURCE_CLASSES": "hosting"}
    with Server(store, tmp_path, environ=limits) as server:
        with slow_commits(tmp_path / "store.db"):
            before = begin(server, packed | {"Authorization": f"Bearer {one}"}, first)
            time.sleep(0.3)
            group = [
                begin(server, headers | {"Authorization": f"Bearer {key}"}, what)
                for key, headers, what, _ in sent
            ]
            time.sleep(1)
        outcomes = [outcome(each) for each in (before, *group)]
        key = {"Authorization": f"Bearer {analyst}"}
        expected_lines = {
            'veilcount_groups_total{up_to="1"} 1',
            'veilcount_groups_total{up_to="32"} 1',
            "veilcount_commits_total{} 2",
            "veilcount_waiting_requests{} 0",
        }
        wait_until(  # a tick writes them
            lambda: (
                expected_lines <= {*server.ask("GET", "/metrics", headers=key).text.splitlines()}
            )
        )

    assert outcomes == [["counted"], *(expected for *_, expected in sent)]
    assert counted(store) == 11


def test_more_than_eight_megabytes_in_waiting_are_refused(store: str, tmp_path: Path) -> None:
    """Large bodies, at once, while commits wait. Those that were refused are counted later."""
    headers, first = {"Content-Type": BINARY_TYPE}, body(collection())
    large = [Batch((report(collection()),), padding=MAX_PADDING) for _ in range(140)]
    sent = list(map(encode_binary, large))
    refused = len(sent) - (MAX_WAITING_BYTES - len(first)) // len(sent[0])
    with Server(store, tmp_path) as server:
        with slow_commits(tmp_path / "store.db"):
            before = begin(server, headers, first)
            time.sleep(0.3)
            group = [begin(server, headers, each) for each in sent]
            wait_until(lambda: len(select([each.sock for each in group], [], [], 0)[0]) >= refused)
        outcomes = Counter(word for each in (before, *group) for word in outcome(each))
        again = [outcome(begin(server, headers, each)) for each in sent]

    assert outcomes["busy"] == refused > 10
    assert all(each in (["counted"], ["duplicate"]) for each in again)
    assert counted(store) == 1 + len(sent)


# -- how it ends -----------------------------------------------------------------------------------


UNFINISHED = b"POST /v1/reports HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\nVC"


@pytest.mark.parametrize(
    ("how", "sent"),
    [
        pytest.param(signal.SIGTERM, b"", id="SIGTERM"),
        pytest.param(signal.SIGINT, UNFINISHED, id="SIGINT", marks=pytest.mark.full),
    ],
)
def test_what_is_in_flight_is_finished(
    store: str, tmp_path: Path, how: signal.Signals, sent: bytes
) -> None:
    """Commits are slow; requests wait for them; the server is asked to end; all are answered.

    A device that never finishes its body does not keep it from ending.
    """
    with (
        Server(store, tmp_path, "--workers", "2") as server,
        ThreadPoolExecutor(8) as devices,
        socket.create_connection((HOST, server.port)) as other,
    ):
        other.sendall(sent)
        with slow_commits(tmp_path / "store.db"):
            waiting = [devices.submit(send, server.url, body(collection())) for _ in range(8)]
            time.sleep(0.5)
            os.killpg(server.pid, how)  # as Ctrl-C and systemd do: to the workers as well
            time.sleep(0.5)
            unanswered = not any(each.done() for each in waiting)
        answers = [each.result().json()["verdicts"] for each in waiting]
        code = server.process.wait(60)

    assert unanswered
    assert answers == [COUNTED] * 8
    assert counted(store) == 8
    assert code == 0


def test_any_wsgi_server_may_serve_it_and_fork_after_loading(store: str, tmp_path: Path) -> None:
    """Under gunicorn, which loads it once: each worker opens files of its own, and drains."""
    place = f"{HOST}:{free_port()}"
    command = [sys.executable, "-m", "gunicorn", "--preload", "--no-control-socket", "-b", place]
    workers = ["-w", "2", "-k", "gthread", "veilcount_aggregator.server.wsgi:app"]
    environ = os.environ | {"VEILCOUNT_STORE": store, "PYTHONPATH": os.pathsep.join(sys.path)}
    with (tmp_path / "gunicorn.log").open("wb") as log:
        process = subprocess.Popen([*command, *workers], stdout=log, stderr=log, env=environ)
    try:
        wait_until(lambda: listens(int(place.partition(":")[2])))
        with ThreadPoolExecutor(8) as devices:
            replies = devices.map(lambda _: send(f"http://{place}", body(collection())), range(24))
            answers = [each.json()["verdicts"] for each in replies]
    finally:
        process.terminate()
        code = process.wait(30)

    assert answers == [COUNTED] * 24
    reason = (tmp_path / "gunicorn.log").read_text("utf-8")  # of counters that were not written
    assert (code, counted(store), answered(store)) == (0, 24, 24), reason
