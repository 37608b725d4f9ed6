"""`veilcount serve`: what is wrong is said before anything is served, in one line."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from tests.redis_server import RedisServer
from tests.system.server import HOST, Server, free_port, wait_until
from veilcount_aggregator.server.listen_address import ListenAddress
from veilcount_aggregator.server.serve import StartupSummary
from veilcount_aggregator.server.worker_supervisor import MAX_RESTARTS_IN_A_ROW, RestartPolicy
from veilcount_aggregator.store import open_store

from .conftest import FILE, Type


def test_a_port_that_is_taken_is_refused(typed: Type, store: str) -> None:
    with socket.create_server((HOST, 0)) as taken:
        place = f"{HOST}:{taken.getsockname()[1]}"

        refused = typed("serve", "--store", store, "--bind", place)

    assert refused.code == 2
    assert f"{place}'" in refused.err


def test_definitions_that_are_wrong_are_refused_with_their_key(
    typed: Type, store: str, tmp_path: Path
) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(FILE.replace("epsilon = 1", "epsilon = 99"))

    refused = typed(
        "serve", "--store", store, "--bind", f"{HOST}:{free_port()}", "--collections", str(file)
    )

    assert refused.code == 2
    assert "theme" in refused.err
    assert "epsilon" in refused.err


def test_a_store_that_does_not_answer_is_waited_for(tmp_path: Path) -> None:
    redis = RedisServer(tmp_path)
    open_store(redis.url, make=True).close()
    redis.kill()
    try:
        with Server(redis.url, tmp_path) as server:
            assert "UNAVAILABLE" in server.ready["durable"]
            assert server.ask("GET", "/healthz").status_code == 200
            assert server.ask("GET", "/readyz").status_code == 503
            redis.start()
            wait_until(lambda: server.ask("GET", "/readyz").status_code == 200, 40)
    finally:
        redis.kill()


def test_a_redis_without_a_store_is_refused(typed: Type, tmp_path: Path) -> None:
    redis = RedisServer(tmp_path)
    refused = typed("serve", "--store", redis.url, "--bind", f"{HOST}:{free_port()}")
    redis.kill()

    assert refused.code == 2
    assert "veilcount init" in refused.err


def test_one_line_states_what_serves(store: str, tmp_path: Path) -> None:
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "veilcount_aggregator", "serve"],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join(sys.path),
            "VEILCOUNT_STORE": store,
            "VEILCOUNT_BIND": f"{HOST}:{port}",
            "VEILCOUNT_DEV": "",
        },
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    process.terminate()
    rest = process.communicate(timeout=20)[1]

    assert line == (
        f"veilcount: serving at http://{HOST}:{port} from {store}"
        " (durable: WAL, synchronous=FULL), 1 worker, intake open\n"
    )
    assert rest == ""
    assert process.returncode == 0


def test_the_startup_line_holds_no_password() -> None:
    ready = StartupSummary(ListenAddress(HOST, 1), "redis://:***@host/0", "durable", 2, "keyed")

    assert str(ready).endswith("(durable), 2 workers, intake keyed")
    assert ready.facts["bind"] == f"http://{HOST}:1"


def test_restarts_are_admitted_until_no_worker_seems_to_live() -> None:
    policy = RestartPolicy(seconds=0.02)

    admitted = [policy.admit() for _ in range(MAX_RESTARTS_IN_A_ROW + 2)]

    assert admitted == [True] * (MAX_RESTARTS_IN_A_ROW + 1) + [False]
