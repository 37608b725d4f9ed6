"""Clients that report something else, at another time, or of other periods."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from veilcount_client.consent import ConsentDecisions
from veilcount_client.delivery.worker import ClientWorker
from veilcount_client.recording import answer_drawing, answer_times, recorder, trend_states
from veilcount_client.recording.answer_drawing import AnswerDrawer, PersonAnswer
from veilcount_client.recording.recorder import Recorder
from veilcount_client.recording.visits import Visits
from veilcount_client.state import DrawOutcome, Resumption, memory_outbox, sqlite_commit
from veilcount_client.state.sqlite import SqliteState
from veilcount_shared import Collection, schedule
from veilcount_shared.collection import Linkage, Presence

from ...client.planting import Original, Plant, constant, do_nothing, in_place_of

# -- what a period reports -------------------------------------------------------------------------


@in_place_of(recorder, "merge")
def reports_the_first(_: Original, __: object, pending: object, ___: object) -> object:
    return pending


@in_place_of(recorder, "merge")
def reports_the_last(_: Original, __: object, ___: object, new: object) -> object:
    return new


@in_place_of(Recorder, "_waits")
def holds_every_value(_: Original, __: object, answer: PersonAnswer) -> bool:
    return answer.at < answer.instants[0]


@contextmanager
def answers_a_slot_again() -> Iterator[None]:
    with (
        patch.object(answer_drawing, "_next_answer", lambda *_: 0),
        patch.object(sqlite_commit, "spend", lambda *_: DrawOutcome.STORED),
    ):
        yield


@in_place_of(schedule, "draw_slot")
def reuses_a_slot(
    original: Original, secret: bytes, collection: Collection, period: int, _: int
) -> Any:
    return original(secret, collection, period, 0)


@in_place_of(schedule, "draw_slot")
def numbers_slots_in_order(
    _: Original, __: bytes, collection: Collection, period: int, answer: int
) -> int:
    is_one_epoch = collection.linkage is Linkage.COLLECTION
    return period * collection.per_day * is_one_epoch + answer


@in_place_of(Visits, "_answer")
def returns_after_a_pause(original: Original, visits: Visits, answer: Any, visit: Any) -> Any:
    if visit is not None:
        visit = replace(visit, period=answer.period - 1)
    with patch.object(sqlite_commit, "_is_held", lambda *_: True):
        return original(visits, answer, visit)


@in_place_of(trend_states, "decode_state")
def uses_a_sign_twice(original: Original, held: Any) -> Any:
    return replace(original(held), used=0)


@in_place_of(ClientWorker, "_store_queue")
def keeps_no_running_value(original: Original, worker: ClientWorker) -> None:
    with patch.object(SqliteState, "hold", lambda *_: True):
        original(worker)


# -- hidden presence -------------------------------------------------------------------------------


def sends_no_absence() -> AbstractContextManager[object]:
    return patch.object(Recorder, "_missing", lambda *_: iter(()))


@in_place_of(AnswerDrawer, "_times")
def sends_absences_at_once(
    original: Original, drawer: AnswerDrawer, answer: PersonAnswer, number: int
) -> tuple[float, float]:
    earliest, due = original(drawer, answer, number)
    return (earliest - 60, due - 60) if answer.absent else (earliest, due)


@in_place_of(AnswerDrawer, "_times")
def sends_hidden_records_soon(
    original: Original, drawer: AnswerDrawer, answer: PersonAnswer, number: int
) -> tuple[float, float]:
    earliest, due = original(drawer, answer, number)
    is_record = answer.collection.presence is Presence.HIDDEN and not answer.absent
    return (answer.at, answer.at + due % 60) if is_record else (earliest, due)


def _first_of_all(*_: object) -> int:
    return 0


@contextmanager
def answers_before_the_consent() -> Iterator[None]:
    with (
        patch.object(recorder, "first_period", _first_of_all),
        patch.object(answer_times, "first_period", _first_of_all),
    ):
        yield


@in_place_of(ConsentDecisions, "_covered")
def resumes_within_a_period(
    original: Original, consents: ConsentDecisions, *arguments: Any
) -> dict[str, Resumption]:
    return dict.fromkeys(original(consents, *arguments), Resumption())


WRONG_CLIENTS: tuple[tuple[str, Plant], ...] = (
    ("reports the first value", reports_the_first),
    ("reports the last value, whatever the definition takes", reports_the_last),
    ("waits with a first value for the instant", holds_every_value),
    ("answers again with the second value", answers_a_slot_again),
    ("gives all answers of a period one slot", reuses_a_slot),
    ("numbers slots in the order of records", numbers_slots_in_order),
    ("returning: any visit before counts", returns_after_a_pause),
    ("a trend's sign is used again", uses_a_sign_twice),
    ("a running value is kept nowhere", keeps_no_running_value),
    ("a true value may wait an hour", constant(memory_outbox, "JITTER", 3600.0)),
    ("a true value is lost with its process", constant(ClientWorker, "_send_last", do_nothing)),
    ("sends no absence", sends_no_absence),
    ("sends absences a minute early", sends_absences_at_once),
    ("sends hidden records soon", sends_hidden_records_soon),
    ("answers periods before the consent", answers_before_the_consent),
    ("resumes hidden presence within a period", resumes_within_a_period),
)  # fmt: skip
