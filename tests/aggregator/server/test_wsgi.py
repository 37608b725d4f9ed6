"""`veilcount_aggregator.server.wsgi`: opened by the process that serves, and not before."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from werkzeug.test import Client

from veilcount_aggregator.server.wsgi import LazyApplication
from veilcount_aggregator.store import open_store
from veilcount_shared.problem_details import RETRY_SECONDS, TYPE_PREFIX

from ...system.server import slow_commits
from ..aggregator_fixtures import SteppedClock


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
def worker(url: str, clock: SteppedClock) -> Iterator[LazyApplication]:
    made = LazyApplication({"VEILCOUNT_STORE": url}, clock)
    yield made
    if made.opened is not None:
        made.opened.close()


def make(url: str) -> None:
    open_store(url, make=True).close()


def test_it_opens_with_its_first_request(url: str, worker: LazyApplication) -> None:
    make(url)
    alive = Client(worker).get("/healthz")
    before = worker.opened

    answer = Client(worker).get("/readyz")

    assert before is None
    assert (alive.status_code, answer.status_code) == (200, 200)
    assert worker.opened is worker.open()


def test_while_it_cannot_be_opened_it_asks_to_come_back_and_then_it_serves(
    url: str, worker: LazyApplication, clock: SteppedClock, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing that makes a device drop its reports; and no try for each of the requests."""
    first = Client(worker).post("/v1/reports", data=b"VC")
    make(url)
    alive = Client(worker).get("/healthz")
    too_early = Client(worker).get("/readyz")
    clock.now += RETRY_SECONDS
    then = Client(worker).get("/readyz")

    assert (first.status_code, first.headers["Retry-After"]) == (503, str(RETRY_SECONDS))
    assert json.loads(first.get_data())["type"] == TYPE_PREFIX + "unavailable"
    assert url not in first.text
    assert (too_early.status_code, then.status_code) == (503, 200)
    assert (too_early.json["ready"], too_early.json["why"]) == (  # type: ignore[index] # JSON
        False,
        "the store is not open yet",
    )
    assert (alive.status_code, alive.json) == (200, {"status": "ok"})  # whatever the store does
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_whoever_must_not_wait_has_one_thread_open_it(
    url: str, worker: LazyApplication, tmp_path: Path
) -> None:
    make(url)
    with slow_commits(tmp_path / "store.db"):
        opening = worker.open_in_background()
        again, opened = worker.open_in_background(), worker.opened
    opening.join()

    assert again is opening
    assert opened is None
    assert worker.opened is not None


def test_without_a_store_it_says_which_variable_is_missing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = Client(LazyApplication({}, lambda: 1_000.0)).get("/readyz")

    assert answer.status_code == 503
    assert "VEILCOUNT_STORE" in capsys.readouterr().err


def test_a_forked_child_opens_its_own_and_leaves_its_parents_open(
    url: str, worker: LazyApplication
) -> None:
    make(url)
    parents = worker.open()

    if not (child := os.fork()):
        own = worker.open()
        os._exit(0 if own is not parents and own.pid == os.getpid() else 1)

    assert os.waitpid(child, 0)[1] == 0
    assert worker.open() is parents
    assert parents.aggregator.store.health().engine == "sqlite"
