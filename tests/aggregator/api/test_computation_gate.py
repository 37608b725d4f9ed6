"""How many computations there are at once, and what becomes of the others; long bodies."""

from __future__ import annotations

import threading

import pytest

from veilcount_aggregator.api.computation_gate import ComputationGate
from veilcount_aggregator.api.json_io import PIECE, CompressedBody, respond
from veilcount_aggregator.api.problems import problem_from_error
from veilcount_aggregator.errors import Overloaded


def test_two_compute_and_the_next_waits_for_one_of_them() -> None:
    gate, entered = ComputationGate(), threading.Event()
    first, _second = gate.enter(), gate.enter()

    def enter() -> None:
        gate.enter()
        entered.set()

    waiting = threading.Thread(target=enter)
    waiting.start()
    waits = not entered.wait(0.2)
    first.release()

    assert waits
    assert entered.wait(20)
    waiting.join()


def test_a_request_that_waits_too_long_gets_retry_after() -> None:
    refused: list[int] = []
    gate = ComputationGate(lambda: refused.append(1), places=1, seconds=0.05)
    held = gate.enter()

    with pytest.raises(Overloaded, match="other queries are being computed") as busy:
        gate.enter()

    assert busy.value.seconds == 2
    assert refused == [1]
    held.release()
    gate.enter()


def test_no_more_than_some_wait() -> None:
    """The next is refused at once, however long the others may wait."""
    gate = ComputationGate(places=1, waiting=1, seconds=30)
    held = gate.enter()
    waiting = threading.Thread(target=gate.enter)
    waiting.start()
    while gate._waiting._value:
        waiting.join(0.01)

    with pytest.raises(Overloaded):
        gate.enter()
    held.release()
    waiting.join(20)


@pytest.mark.parametrize("fails", [False, True])
def test_a_place_is_released_however_a_view_ends(*, fails: bool) -> None:
    gate = ComputationGate(places=1, seconds=0)

    @gate.bounded
    def view() -> str:
        if fails:
            raise MemoryError
        return "done"

    for _ in range(3):
        if fails:
            with pytest.raises(MemoryError):
                view()
        else:
            assert view() == "done"


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
