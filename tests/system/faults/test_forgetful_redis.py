"""Two real aggregators with journals of their own on one Redis that comes back from older files."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest
import requests

from tests.redis_server import RedisServer
from tests.system.faults.test_restoring import FILE, NOW, release
from tests.system.server import Server, wait_until
from veilcount_aggregator.auth.api_keys import Role, create_key
from veilcount_aggregator.store import open_store


def serve(url: str, folder: Path, name: str) -> Server:
    """Start a host of its own."""
    file = folder / "collections.toml"
    file.write_text(FILE, encoding="utf-8")
    journal = folder / f"{name}.jsonl"
    return Server(url, folder, "--collections", str(file), "--dev", "--journal", str(journal))


def problem(reply: requests.Response) -> str:
    """Return the name of the problem that a release was refused with."""
    return str(reply.json().get("type", "")).rsplit(":", maxsplit=1)[-1]


def released(server: Server, key: str, epsilon: str) -> bool:
    """Whether a release is made; while hosts have yet to confirm, it is not."""
    reply = release(server, key, epsilon)
    return reply.status_code == 200


@pytest.mark.full  # servers, restarts and the seconds that a new journal waits
def test_what_a_redis_forgot_is_spent_at_no_host_and_a_restart_needs_nobody(
    tmp_path: Path,
) -> None:
    """Budget 1: A spends 0.7, the files of before come back; B would have spent 0.6 again."""
    redis = RedisServer(tmp_path)
    saved = tmp_path / "saved"
    try:
        with closing(open_store(redis.url, make=True)) as store:
            _, key = create_key(store, Role.ANALYST, "test", NOW)
        with serve(redis.url, tmp_path, "a") as a, serve(redis.url, tmp_path, "b") as b:
            wait_until(lambda: released(a, key, "0.1"), 60)
            redis.kill()
            shutil.copytree(tmp_path / "appendonlydir", saved)
            redis.start()
            wait_until(lambda: released(a, key, "0.7"), 60)  # nothing was lost: by itself
            redis.kill()
            shutil.rmtree(tmp_path / "appendonlydir")
            shutil.move(saved, tmp_path / "appendonlydir")
            redis.start()
            result: list[str] = []

            def locked() -> bool:
                result.append(problem(release(b, key, "0.6")))
                return result[-1] == "releases-locked"

            wait_until(locked, 60)
            last = [problem(release(each, key, "0.6")) for each in (a, b)]
    finally:
        redis.kill()

    assert set(result) <= {"unavailable", "releases-waiting", "releases-locked"}
    assert last == ["releases-locked"] * 2
