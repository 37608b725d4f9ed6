"""The comparison of `test_non_interference` rejects a client with any of these bugs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from veilcount_client.delivery import loss_reports
from veilcount_client.delivery.uploader import Uploader
from veilcount_client.recording import answer_drawing
from veilcount_client.recording import recorder as recorder_module
from veilcount_client.recording.answer_drawing import AnswerDrawer, PersonAnswer
from veilcount_client.recording.recorder import RecordCall, Recorder
from veilcount_client.state import DrawOutcome
from veilcount_client.state.losses import Loss
from veilcount_client.state.sqlite import SqliteState
from veilcount_shared import Collection
from veilcount_shared.domain import Boolean

from ...vectors.wrong_states.wrong_consents import forgets_at_a_restart
from ..device_fixtures import HOUR, MINUTE, Device, at, one_collection
from ..planting import Plant, in_place_of
from .emissions import LIVES, NEVER, Life, Stream, assert_alike, at_once, emissions, recording

Times = Callable[..., tuple[float, float]]
Missing = Callable[..., Iterator[PersonAnswer]]


@contextmanager
def redraws_daily() -> Iterator[None]:
    """Wrong: a month's answer is drawn again on another day, with all the spend it takes."""
    original = answer_drawing._next_answer

    def fresh(used: tuple[int, int], answer: PersonAnswer) -> int | None:
        today = answer.at // (24 * HOUR)
        known = last.setdefault(answer.collection.name, today)
        last[answer.collection.name] = today
        return 0 if known != today else original(used, answer)

    last: dict[str, float] = {}
    with (
        patch.object(answer_drawing, "_next_answer", fresh),
        patch("veilcount_client.state.sqlite_commit.spend", lambda *_: DrawOutcome.STORED),
    ):
        yield


@in_place_of(AnswerDrawer, "_times")
def hurries_the_hidden(
    original: Times, answers: AnswerDrawer, answer: PersonAnswer, number: int
) -> tuple[float, float]:
    """Wrong: a flush takes hidden reports along."""
    return answer.at, original(answers, answer, number)[1]


@in_place_of(Recorder, "_answer")
def skips_what_it_does_not_know(
    original: Callable[..., PersonAnswer | Loss], answers: Recorder, record: RecordCall
) -> PersonAnswer | Loss:
    """Wrong: a value outside the domain makes no report."""
    if isinstance(record.collection.domain, Boolean) and record.value not in {True, False}:
        return Loss.UNKNOWN
    return original(answers, record)


@in_place_of(AnswerDrawer, "_times")
def sends_absences_at_once(
    original: Times, answers: AnswerDrawer, answer: PersonAnswer, number: int
) -> tuple[float, float]:
    """Wrong: an absence leaves when it is drawn, a minute before a recorded answer would."""
    earliest, send_at = original(answers, answer, number)
    return (earliest - MINUTE, send_at - MINUTE) if answer.absent else (earliest, send_at)


@in_place_of(Recorder, "_missing")
def forgets_absences(original: Missing, answers: Recorder, *more: Any) -> Iterator[PersonAnswer]:
    """Wrong: periods in which the app did not run are not caught up."""
    for answer in original(answers, *more):
        if at(answer.period + 1) > more[-1]:
            yield answer


@in_place_of(recorder_module, "_merged")
def keeps_the_time_of_the_largest(_: object, held: PersonAnswer, new: PersonAnswer) -> PersonAnswer:
    """Wrong, and once so: of two records, the one whose value stays says when."""
    return new if new.value > held.value else held  # type: ignore[operator] # numbers, here


@in_place_of(Device, "fork")
def copies_the_queue(_: object, device: Device) -> None:
    """Wrong: a forked child stores what its parent recorded, too."""
    queue = list(device.worker._queue)
    device.worker.store()
    device.worker.after_fork()
    device.worker._queue.extend(queue)


def reports_hidden_losses() -> AbstractContextManager[object]:
    """Wrong, and once so: what aged in the outbox is reported; absences would not have aged."""
    return patch.object(loss_reports, "Presence", type("Presence", (), {"HIDDEN": "never"}))


@contextmanager
def spreads_before_it_sweeps() -> Iterator[None]:
    """Wrong, and once so: after a restart stored answers get new times, fresh absences do not."""
    original = Device.start

    def start(device: Device, *arguments: Any) -> None:
        original(device, *arguments)
        now, state = device.clock.now(), device.worker.state
        late = state.overdue(now - 1, math.inf, 1000)
        state.reschedule({report.number: now + 60 * report.number for report in late})

    with patch.object(Device, "start", start), patch.object(Uploader, "_postpone", lambda *_: None):
        yield


@contextmanager
def closes_to_absences_alone() -> Iterator[None]:
    """Wrong: of a closed row no absence is drawn any more, but what is recorded is, and leaves."""

    def missing(answers: Recorder, *arguments: Any) -> Iterator[PersonAnswer]:
        return iter(()) if closed else original(answers, *arguments)

    def keep(*arguments: Any) -> None:
        closed.append(arguments)

    closed: list[object] = []
    original = Recorder._missing
    with patch.object(SqliteState, "close_row", keep), patch.object(Recorder, "_missing", missing):
        yield


MONTH = one_collection("month", unit="month")
MOOD = one_collection("mood", presence="hidden")
LATE = one_collection("mood", presence="hidden", late=0)
LINKED = one_collection("mood", presence="hidden", linkage="collection")
MOST = one_collection("most", range=[0, 9], measure="mean", takes="max")
FIRST = one_collection("first")
EVENT = one_collection("event", unit="event", per_day=4)

#: two streams of records that show nothing of which is which
TWICE = at_once("month", 0, [9], True), at_once("month", 0, [9], True) + at_once("month", 1, [9], 1)
DAILY = recording("mood", 1, 1, 1, 1, hours=0.2), NEVER
AT_MIDNIGHT = recording("mood", 1, 1, 1, 1, hours=0.01), NEVER
AT_FIRST = recording("mood", True, hours=7.01), NEVER
ODD_VALUE = recording("first", True, True), recording("first", True, "?")
IN_ORDER = at_once("most", 1, [1, 1.5], 9, 1), at_once("most", 1, [1, 1.5], 1, 9)
SAME = (recording("event", 1),) * 2

CLOSED = Life("closed", ((at(1, 0.02), "stop"), (at(3, 10), "start")))
CLOSED_AT_ONCE = Life("closed at once", ((at(0, 7.1), "stop"), (at(2, 9), "start")))
RESTARTED = Life("restarted soon", ((at(1, 1.6), "restart"),))
SHUT = Life("shut by the server", ((at(1, 2), "shut"),))
FORKED = Life("forked at once", ((at(0, 9, 0.001), "fork"),))
PLANTED = (
    (forgets_at_a_restart, MONTH, *TWICE, LIVES[2]),
    (redraws_daily, MONTH, *TWICE, LIVES[0]),
    (hurries_the_hidden, MOOD, *DAILY, LIVES[1]),
    (skips_what_it_does_not_know, FIRST, *ODD_VALUE, LIVES[0]),
    (sends_absences_at_once, MOOD, *DAILY, LIVES[0]),
    (forgets_absences, MOOD, *AT_MIDNIGHT, CLOSED),
    (keeps_the_time_of_the_largest, MOST, *IN_ORDER, RESTARTED),
    (reports_hidden_losses, LATE, *AT_FIRST, CLOSED_AT_ONCE),
    (spreads_before_it_sweeps, MOOD, *AT_MIDNIGHT, CLOSED),
    (closes_to_absences_alone, LINKED, *AT_MIDNIGHT, SHUT),
    (copies_the_queue, EVENT, *SAME, FORKED),
)


@pytest.mark.parametrize("row", PLANTED, ids=lambda row: row[0].__name__)
def test_the_checker_sees(
    row: tuple[Plant, dict[str, Collection], Stream, Stream, Life], caplog: pytest.LogCaptureFixture
) -> None:
    """A planted bug makes two streams differ that the product keeps equal, and says in what.

    It differs in what leaves, and not because the client it was planted into does not start.
    """
    plant, collections, one, other, life = row
    usual = emissions(collections, one, life)
    wrong = [emissions(collections, stream, life, plant=plant) for stream in (one, other)]
    different = next(emitted for emitted in wrong if emitted != usual)

    assert "Error" not in caplog.text
    assert_alike(collections, usual, emissions(collections, other, life))
    shown = f"({next(iter(collections))}|losses)"  # of what was lost the server sees no name
    with pytest.raises(AssertionError, match=rf"^attempt \d+, planted: .*{shown}"):
        assert_alike(collections, usual, different, "planted")
