"""The whole client against a model, under every fault at once [hypothesis RuleBasedStateMachine].

Whatever is recorded, however the process ends, wherever it is cut and whatever the server does:
one message a slot, ever; what is charged is what was stored; no cap is exceeded; nothing leaves
without consent; of a row that the server has closed nothing is drawn or leaves once that was heard;
and once the server is well, whatever was stored and may still arrive does.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from random import randrange
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from veilcount_client.delivery.closed_rows import ClosedRows
from veilcount_client.delivery.transport import Outcome
from veilcount_client.delivery.uploader import Uploader
from veilcount_client.state import ConsentDecision, QueuedReport, sqlite_commit
from veilcount_client.state.sqlite import SqliteState
from veilcount_shared.report import Report

from ..planting import Plant, in_place_of
from .device_life import Life, checked_life


@pytest.mark.parametrize(
    ("lives", "steps"),
    [
        (25, 14),  # what is rarer is cut on purpose below
        pytest.param(2000, 40, marks=[pytest.mark.full, pytest.mark.timeout(1800)]),
    ],
)
def test_no_life_breaks_a_promise(lives: int, steps: int) -> None:
    run_state_machine_as_test(
        Life, settings=settings(max_examples=lives, stateful_step_count=steps, deadline=None)
    )


def record_and_deliver(life: Life) -> None:
    """Wherever a round is cut, what was durable arrives once and what was not costs nothing."""
    life.record("event", True)
    life.flush()
    life.record("alone", False)
    life.advance(3)


def record_and_hear_of_a_closing(life: Life) -> None:
    """The word is kept before its report is off the outbox, or another process draws again."""
    life.set_verdict("event", "closed")
    for _ in range(2):
        life.record("event", True)
        life.flush()
    life.record("event", True)

    assert sum(draw.lineage == "event" for draw in life.stored) <= 2


@pytest.mark.parametrize("live", [record_and_deliver, record_and_hear_of_a_closing])
@pytest.mark.parametrize("steps", range(1, 13))
def test_a_cut_between_two_steps_breaks_nothing(live: Callable[[Life], None], steps: int) -> None:
    with checked_life() as life:
        life.crash_soon(steps)
        live(life)


# -- planted bugs ----------------------------------------------------------------------------------


@in_place_of(SqliteState, "consent")
def keeps_no_withdrawal(
    original: Callable[..., None], state: SqliteState, key: bytes, decision: ConsentDecision
) -> None:
    """Wrong: a withdrawal is not written down, and what is on its way leaves."""
    if decision.consented:
        original(state, key, decision)


@in_place_of(SqliteState, "__init__")
def forgets_on_restart(original: Callable[..., None], state: SqliteState, *arguments: Any) -> None:
    """Wrong: a new process does not know what the last one answered."""
    original(state, *arguments)
    with state._writing() as database:
        database.execute("delete from used")


@in_place_of(Uploader, "_send")
def draws_at_sending(
    original: Callable[..., Outcome], uploader: Uploader, reports: list[Report]
) -> Outcome:
    """Wrong: each try draws again."""
    return original(uploader, [replace(each, message=bytes([randrange(2)])) for each in reports])


@in_place_of(Uploader, "_put_back")
def loses_what_failed(
    _: object,
    uploader: Uploader,
    __: object,
    queued_reports: list[QueuedReport],
    *___: Any,
    **____: Any,
) -> None:
    """Wrong: what could not be sent is not tried again."""
    uploader.state.settle([each.number for each in queued_reports], {})


def charges_too_late() -> AbstractContextManager[object]:
    """Wrong: the ledger is charged for what is delivered, not for what is drawn."""
    return patch.object(sqlite_commit, "charge", lambda *_: True)


def closes_no_row() -> AbstractContextManager[object]:
    """Wrong: that a row was closed is not written down."""
    return patch.object(SqliteState, "close_row", lambda *_: None)


def closes_for_records_alone() -> AbstractContextManager[object]:
    """Wrong: of a closed row nothing is drawn, but what waits leaves all the same."""
    return patch.object(ClosedRows, "holds", lambda *_: False)


def record_and_withdraw(life: Life) -> None:
    life.record("event", True)
    life.consent(granted=False)
    life.advance(3)


def record_in_two_processes(life: Life) -> None:
    life.record("event", True)
    life.restart()
    life.record("event", True)


def lose_three_replies(life: Life) -> None:
    life.server("well", loses_reply=True)
    life.record("event", True)
    for _ in range(3):
        life.flush()
        life.advance(3)


def record_after_a_close(life: Life) -> None:
    life.set_verdict("event", "closed")
    life.record("event", True)
    life.flush()
    life.restart()
    life.record("event", True)


def close_while_another_waits(life: Life) -> None:
    """Record twice, each to leave at its own time; the first hears that its row is closed."""
    life.set_verdict("event", "closed")
    life.record("event", True)
    life.record("event", True)
    life.advance(3)


def record_and_wait(life: Life) -> None:
    """Record while the server is away, and wait until it is back."""
    life.server("offline", loses_reply=False)
    life.record("event", True)
    life.flush()
    life.server("well", loses_reply=False)
    life.advance(24)


LIVES: dict[Plant, Callable[[Life], None]] = {
    keeps_no_withdrawal: record_and_withdraw,
    forgets_on_restart: record_in_two_processes,
    draws_at_sending: lose_three_replies,
    loses_what_failed: record_and_wait,
    charges_too_late: record_and_wait,
    closes_no_row: record_after_a_close,
    closes_for_records_alone: close_while_another_waits,
}


@pytest.mark.parametrize("bug", LIVES)
def test_each_life_breaks_a_promise_only_with_its_bug(bug: Plant) -> None:
    with checked_life() as life:
        LIVES[bug](life)

    with bug(), pytest.raises(AssertionError), checked_life() as life:
        LIVES[bug](life)


@pytest.mark.full
@pytest.mark.parametrize("bug", list(LIVES)[:5])
def test_the_machine_finds(bug: Plant) -> None:
    """A planted bug breaks a promise within a few hundred short lives."""
    quiet = settings(
        max_examples=800, stateful_step_count=14, database=None, phases=[Phase.generate]
    )
    with bug(), pytest.raises(AssertionError):
        run_state_machine_as_test(Life, settings=quiet)
