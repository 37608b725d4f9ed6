"""The client does what tests/vectors/trace.json says, and the traces reject clients that do not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ...vectors import trace_maker
from ...vectors.trace_runner import Trace, check_trace, traces
from ...vectors.wrong_states import WRONG_CLIENTS
from ..planting import Plant

BY_NAME = {trace["name"]: trace for trace in traces()}


def test_the_file_is_what_its_module_writes() -> None:
    assert trace_maker.FILE.read_text() == trace_maker.contents()


@pytest.mark.parametrize("name", BY_NAME)
def test_a_client_follows_each_trace(name: str) -> None:
    check_trace(BY_NAME[name])


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "plant"), WRONG_CLIENTS, ids=[name for name, _ in WRONG_CLIENTS])
def test_the_traces_reject_a_client_that(name: str, plant: Plant) -> None:
    assert next(rejecting(plant), None), f"{name}: no trace rejects it"


def rejecting(plant: Plant) -> Iterator[Trace]:
    """Yield the traces that a wrong client does not follow, those of many rounds last."""
    for trace in sorted(BY_NAME.values(), key=lambda trace: "hidden" in trace["name"]):
        try:
            with plant():
                check_trace(trace)
        except AssertionError:
            yield trace
