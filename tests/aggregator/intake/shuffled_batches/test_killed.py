"""A worker, or its Redis, is killed before and after the commit of each part: all counts once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from veilcount_shared.shuffling import part as parts_module
from veilcount_shared.shuffling.part import BatchPart

from ....redis_server import RedisServer
from ...web.api.deployment_fixtures import open_worker
from .batch_fixtures import AFTER_GRACE, FILE, TestShuffler

MESSAGES = (0, 1, 1, 0, 1)
POINTS = [(number, after) for number in range(3) for after in (False, True)]


@pytest.fixture(params=["sqlite", "redis"])
def engine(request: pytest.FixtureRequest, memory: Path, tmp_path: Path) -> Iterator[Any]:
    """The URL of a store that survives, and its server if it has one."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/store.db", None
        return
    server = RedisServer(tmp_path)
    yield server.url, server
    server.kill()


def killed_in(url: str, part: BatchPart, key: str, *, after: bool) -> int:
    """Have another worker take a part, killed at its commit; return the signal that ended it."""
    pid = os.fork()
    if not pid:
        try:
            with open_worker(url, AFTER_GRACE) as made:
                change_batch = type(made.aggregator.store).change_batch

                def killed(*arguments: Any) -> None:
                    if after:
                        change_batch(*arguments)
                    os.kill(os.getpid(), signal.SIGKILL)

                type(made.aggregator.store).change_batch = killed  # type: ignore[method-assign]
                kind = parts_module.PART_TYPE
                made.ask("POST", "/v1/batches", part.encode(), key=key, kind=kind)
        finally:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    return os.WTERMSIG(status)


@pytest.mark.parametrize(("number", "after"), POINTS)
def test_a_part_whose_reply_was_lost_counts_once(
    engine: tuple[str, RedisServer | None],
    number: int,
    after: bool,  # noqa: FBT001 - a parameter of the test
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parts_module, "PART_REPORTS", 2)
    url, server = engine
    with open_worker(url, AFTER_GRACE, make=True) as made:
        made.push(FILE)
        shuffler = TestShuffler(made)
        parts = shuffler.batch([shuffler.seal(message) for message in MESSAGES])
        for part in parts[:number]:
            assert shuffler.send(part).status == 200
    assert killed_in(url, parts[number], shuffler.key, after=after) == signal.SIGKILL
    if server is not None:
        server.kill()
        server.start()

    with open_worker(url, AFTER_GRACE) as made:
        shuffler.deployed = made
        whole = after and number == len(parts) - 1
        assert shuffler.counters() == ([2, 3] if whole else [0, 0])
        replies = [shuffler.send(part) for part in parts]
        assert [reply.json["accepted"] for reply in replies] == [2, 2, 1]
        assert shuffler.counters() == [2, 3]
