"""How many computations there are at once, and what becomes of the others; long bodies."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from veilcount_aggregator.web.api.computation_gate import ComputationGate
from veilcount_aggregator.web.api.json_io import PIECE, CompressedBody, respond
from veilcount_aggregator.web.api.problems import problem_from_error
from veilcount_serving.errors import Overloaded


def test_two_compute_one_waits_for_one_of_them_and_the_next_is_refused_at_once() -> None:
    """However long the one that waits may."""
    refused: list[int] = []
    gate = ComputationGate(lambda: refused.append(1), waiting=1, seconds=60)
    go = threading.Event()
    view = gate.bounded(lambda: go.wait(60))
    with ThreadPoolExecutor(3) as threads:
        computing = [threads.submit(view) for _ in range(3)]
        while gate._waiting._value:
            time.sleep(0.01)
        with pytest.raises(Overloaded):
            view()
        waits = not any(each.done() for each in computing)
        go.set()

        assert waits
        assert all(each.result() for each in computing)
        assert refused == [1]


def test_a_request_that_waits_too_long_gets_retry_after() -> None:
    gate = ComputationGate(places=1, seconds=0.05)

    def compute() -> None:
        with pytest.raises(Overloaded, match="other queries are being computed") as busy:
            gate.bounded(lambda: None)()
        assert busy.value.seconds == 2

    gate.bounded(compute)()
    gate.bounded(lambda: None)()


def test_a_place_is_released_however_a_view_ends() -> None:
    gate = ComputationGate(places=1, seconds=0)

    @gate.bounded
    def view(*, fails: bool) -> str:
        if fails:
            raise MemoryError
        return "done"

    for _ in range(2):
        assert view(fails=False) == "done"
        with pytest.raises(MemoryError):
            view(fails=True)


def test_a_result_over_the_memory_limit_suggests_a_smaller_query() -> None:
    problem = problem_from_error(MemoryError())

    assert (problem.status, problem.kind.name) == (503, "busy")
    assert "fewer values" in problem.detail
    assert problem.headers == {"Retry-After": "2"}


def test_a_long_body_is_held_small_and_sent_whole() -> None:
    pieces = [b"a,b\r\n", b"1,2\r\n" * PIECE, b""]
    body = CompressedBody(pieces)
    held = sum(map(len, body._held))

    assert body.length == sum(map(len, pieces))
    assert held < body.length / 50
    assert b"".join(body) == b"".join(pieces)
    assert respond([b"x" * 9], "text/csv").headers["Content-Length"] == "9"
