"""`veilcount serve`: what is wrong is said before anything is served, in one line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from veilcount_aggregator.errors import StoreUnfit
from veilcount_aggregator.operate.cli import main, output
from veilcount_aggregator.operate.cli import serve as serve_command
from veilcount_aggregator.server.serve import UNAVAILABLE, prepare
from veilcount_aggregator.settings import Settings
from veilcount_serving.listen_address import ListenAddress
from veilcount_serving.structured_logging import configure_logging
from veilcount_serving.worker_processes import Announce
from veilcount_serving.worker_supervisor import MAX_RESTARTS_IN_A_ROW, RestartPolicy

from ....redis_server import RedisServer
from ....system.server import HOST, free_port
from .conftest import Type


def test_a_redis_without_a_store_is_refused_and_one_that_is_away_is_no_mistake(
    tmp_path: Path,
) -> None:
    redis = RedisServer(tmp_path)
    settings, bind = Settings(redis.url), ListenAddress(HOST, free_port())
    try:
        with pytest.raises(StoreUnfit, match="veilcount init"):
            prepare(settings, bind)
    finally:
        redis.kill()

    assert prepare(settings, bind).durable == UNAVAILABLE


def test_one_line_states_what_serves(store: str) -> None:
    port = free_port()

    assert str(prepare(Settings(store), ListenAddress(HOST, port))) == (
        f"veilcount: serving at http://{HOST}:{port} from {store}"
        " (durable: WAL, synchronous=FULL), 1 worker, intake open"
    )


@pytest.mark.parametrize("is_terminal", [True, False])
def test_stderr_is_json_where_it_is_no_terminal(
    store: str, typed: Type, monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool
) -> None:
    bind = f"{HOST}:{free_port()}"
    for module in (output, main):
        monkeypatch.setattr(module, "is_terminal", lambda: is_terminal)

    def announce_only(settings: Settings, bind: ListenAddress, announce: Announce) -> int:
        configure_logging(sys.stderr)
        announce(prepare(settings, bind))
        return 0

    monkeypatch.setattr(serve_command, "serve", announce_only)
    served = typed("serve", "--store", store, "--bind", bind)
    refused = typed("serve", "--store", store, "--bind", bind, "--workers", "0")

    assert (served.code, refused.code, served.out + refused.out) == (0, 2, "")
    if is_terminal:
        assert served.err.startswith(f"veilcount: serving at http://{bind} from {store} (durable")
        assert refused.err == 'veilcount: --workers = "0": give 1 to 1,024\n'
    else:
        lines = [json.loads(each.err) for each in (served, refused)]
        for line in lines:
            del line["time"]
        assert lines == [
            {
                "level": "info",
                "event": "serving",
                "bind": f"http://{bind}",
                "store": store,
                "durable": "durable: WAL, synchronous=FULL",
                "workers": 1,
                "intake": "open",
            },
            {
                "level": "error",
                "event": "not started",
                "reason": '--workers = "0": give 1 to 1,024',
            },
        ]


def test_the_startup_line_holds_no_password() -> None:
    redis = Settings("redis://me:secret@127.0.0.1:1/0", workers=2)
    ready = prepare(redis, ListenAddress(HOST, free_port()))

    assert "from redis://me:***@127.0.0.1:1/0 (UNAVAILABLE" in str(ready)
    assert "secret" not in f"{ready}{ready.facts}"


def test_restarts_are_admitted_until_no_worker_seems_to_live() -> None:
    policy, most = RestartPolicy(seconds=0.02), MAX_RESTARTS_IN_A_ROW + 1

    assert [policy.admit() for _ in range(most + 1)] == [True] * most + [False]
