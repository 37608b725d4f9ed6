"""Clients whose rows go through wrong states: the traces alone must reject each.

Area `states` of the wrong clients: (name, plant), each a mistake of a plausible author.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from random import Random
from typing import Any
from unittest.mock import patch

from veilcount_client.consent import ConsentDecisions
from veilcount_client.delivery import backoff, decisions, transport, uploader
from veilcount_client.delivery.backoff import RowBackoff
from veilcount_client.delivery.closed_rows import ClosedRows
from veilcount_client.delivery.decisions import Effects
from veilcount_client.delivery.loss_reports import LossReports
from veilcount_client.delivery.transport import HttpTransport, Later, Outcome, Rejected, Reply
from veilcount_client.delivery.uploader import Uploader
from veilcount_client.delivery.worker import ClientWorker
from veilcount_client.recording import answer_drawing, answer_times, recorder, trend_states
from veilcount_client.recording.answer_drawing import AnswerDrawer, PersonAnswer
from veilcount_client.recording.recorder import Recorder
from veilcount_client.recording.visits import Visits
from veilcount_client.state import (
    DrawOutcome,
    PersonState,
    QueuedReport,
    ReportDraw,
    Resumption,
    memory_outbox,
    sqlite,
    sqlite_commit,
    sqlite_database,
)
from veilcount_client.state.sqlite import SqliteState
from veilcount_client.state.sqlite_commit import charge
from veilcount_shared import Collection, schedule
from veilcount_shared.collection import Linkage, Presence
from veilcount_shared.errors import WireError
from veilcount_shared.report import Report
from veilcount_shared.verdict import UNKNOWN_VERDICT, Verdict
from veilcount_shared.wire import decode_verdicts

from ..client.planting import Plant, in_place_of

Original = Callable[..., Any]
NONE: Callable[..., None] = lambda *_, **__: None  # noqa: E731 - of a patch


def constant(owner: object, name: str, wrong: object) -> Plant:
    """Return a plant of another constant or function."""
    return lambda: patch.object(owner, name, wrong)


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


# -- replies ---------------------------------------------------------------------------------------


@contextmanager
def draws_at_each_try() -> Iterator[None]:
    draws, original = Random(1), Uploader._send
    sent: set[Report] = set()

    def send(sender: Uploader, reports: list[Report]) -> Outcome:
        fresh = [_drawn_again(report, draws) if report in sent else report for report in reports]
        sent.update(reports)
        return original(sender, fresh)

    with patch.object(Uploader, "_send", send):
        yield


def _drawn_again(report: Report, draws: Random) -> Report:
    return replace(report, message=bytes([report.message[0] ^ draws.getrandbits(1)]))


@in_place_of(decisions, "decide_verdicts")
def sends_the_whole_body_again(
    original: Original, reports: Sequence[QueuedReport], verdicts: Sequence[str]
) -> Effects:
    effects: Effects = original(reports, verdicts)
    return Effects(retried=reports) if effects.retried else effects


@in_place_of(decisions, "decide_verdicts")
def sends_nothing_again(
    original: Original, reports: Sequence[QueuedReport], verdicts: Sequence[str]
) -> Effects:
    effects: Effects = original(reports, verdicts)
    numbers = [report.number for report in effects.retried]
    return replace(effects, delivered=[*effects.delivered, *numbers], retried=())


def _misreading(wrong: Callable[[str], str]) -> Plant:
    """Return a plant that takes a verdict for another."""

    @in_place_of(decisions, "decide_verdicts")
    def plant(original: Original, reports: Sequence[QueuedReport], words: Sequence[str]) -> Any:
        return original(reports, [wrong(word) for word in words])

    return plant


@in_place_of(transport, "decode_verdicts")
def refuses_unknown_verdicts(original: Original, body: bytes, reports: int) -> tuple[str, ...]:
    words: tuple[str, ...] = original(body, reports)
    if UNKNOWN_VERDICT in words:
        raise WireError("verdicts", "unknown")
    return words


@in_place_of(transport, "decode_verdicts")
def refuses_unknown_members(original: Original, body: bytes, reports: int) -> tuple[str, ...]:
    if body.count(b'":') > 1:
        raise WireError("body", "unknown member")
    words: tuple[str, ...] = original(body, reports)
    return words


@in_place_of(transport, "decode_verdicts")
def takes_any_number_of_verdicts(_: Original, body: bytes, reports: int) -> tuple[str, ...]:
    for number in range(3):
        try:
            return (*decode_verdicts(body, number), *[Verdict.COUNTED] * reports)[:reports]
        except WireError:
            continue
    return decode_verdicts(body, reports)


def _refusing(is_refused: Callable[[Reply], bool]) -> Plant:
    """Return a plant that drops the reports after a reply."""

    @in_place_of(HttpTransport, "_read")
    def plant(original: Original, http: HttpTransport, reply: Reply, reports: int) -> Outcome:
        outcome: Outcome = original(http, reply, reports)
        is_kept = isinstance(outcome, Later)
        return Rejected(f"{reply.status}") if is_kept and is_refused(reply) else outcome

    return plant


@in_place_of(HttpTransport, "_read")
def retries_what_is_rejected(original: Original, *arguments: Any) -> Outcome:
    outcome: Outcome = original(*arguments)
    return Later(outcome.why) if isinstance(outcome, Rejected) else outcome


def _exact_delay(header: str | None, _: float) -> float:
    return float(header) if header and header.isdecimal() else 0.0


@in_place_of(RowBackoff, "waiting")
def waits_as_one_device(
    original: Original, rows: RowBackoff, reports: list[QueuedReport], now: float
) -> dict[int, float]:
    original(rows, reports, now)
    due = max(rows._due.values(), default=None)
    return {} if due is None else {report.number: due for report in reports}


@in_place_of(Uploader, "_tokened")
def waits_for_a_token(original: Original, sender: Uploader, outbox: Any, reports: Any) -> Any:
    class Patient:
        """An outbox that keeps what has no token."""

        def settle(self, _: object, dropped: Mapping[int, object]) -> None:
            outbox.reschedule({number: sender.now() + 3600 for number in dropped})

    return original(sender, Patient(), reports)


# -- age, closed rows ------------------------------------------------------------------------------


@in_place_of(SqliteState, "expire")
def knows_no_age_limit(*_: Any) -> None:
    """Drop nothing."""


@in_place_of(LossReports, "_time")
def sends_losses_at_once(_: Original, __: LossReports, ___: str, now: float, ____: float) -> float:
    return now


@in_place_of(ClosedRows, "_last_period")
def closes_the_whole_series(_: Original, rows: ClosedRows, report: Report) -> int:
    return rows.series[report.fingerprint].periods - 1


@in_place_of(ClosedRows, "holds")
def closes_every_row(_: Original, rows: ClosedRows, __: QueuedReport) -> bool:
    return bool(rows._closed)


# -- consent and forgetting ------------------------------------------------------------------------


def _uncover(database: Any, key: bytes, *_: Any) -> None:
    database.execute(f"{sqlite._UNCOVER} where person = ?", (key,))


@in_place_of(sqlite, "_withdraw")
def frees_slots_by_a_withdrawal(original: Original, database: Any, key: bytes) -> None:
    original(database, key)
    database.execute("delete from used where person = ?", (key,))
    database.execute("delete from ledger where person = ?", (key,))


@in_place_of(sqlite, "_withdraw")
def keeps_the_running_value(_: Original, database: Any, key: bytes) -> None:
    database.execute("delete from report where person = ? and status = 'waiting'", (key,))
    _uncover(database, key)


@in_place_of(ConsentDecisions, "forget")
def sends_on_forget(original: Original, consents: ConsentDecisions, key: bytes) -> None:
    consents.worker.deliver(0)
    original(consents, key)


@in_place_of(SqliteState, "forget")
def keeps_the_pseudonym(original: Original, state: SqliteState, key: bytes) -> None:
    salt = state.person(key).salt
    original(state, key)
    with state._writing() as database:
        database.execute("insert into person values (?, ?, null, '')", (key, salt))


@in_place_of(SqliteState, "forget")
def keeps_the_outbox(original: Original, state: SqliteState, key: bytes) -> None:
    with state._writing() as database:
        database.execute("create temp table kept as select * from report")
        original(state, key)
        database.execute("insert into report select * from kept")
        database.execute("drop table kept")


@in_place_of(SqliteState, "forget")
def forgets_the_account(original: Original, state: SqliteState, key: bytes) -> None:
    original(state, key)
    with state._writing() as database:
        database.execute("delete from ledger where person = ?", (key,))


@in_place_of(answer_times, "answering_periods")
def draws_periods_from_the_secret(
    original: Original, person: PersonState, collection: Collection
) -> Any:
    return original(replace(person, root=person.secret), collection)


@contextmanager
def goes_on_from_a_copy() -> Iterator[None]:
    with (
        patch.object(sqlite_database, "_begin_as_another", NONE),
        patch.object(sqlite_database, "_bar", NONE),
    ):
        yield


# -- clocks and restarts ---------------------------------------------------------------------------


@in_place_of(sqlite_commit, "spend")
def _spends_an_earlier_period(original: Original, database: Any, draw: ReportDraw) -> Any:
    period, _ = sqlite_commit.used_slots(database, draw.person, bytes.fromhex(draw.series))
    if draw.period < period:
        charge(database, draw)
        return DrawOutcome.STORED
    return original(database, draw)


@in_place_of(answer_drawing, "_next_answer")
def _answers_an_earlier_period(original: Original, used: Any, answer: PersonAnswer) -> Any:
    return 0 if answer.period < used[0] else original(used, answer)


@contextmanager
def answers_an_earlier_period() -> Iterator[None]:
    with _spends_an_earlier_period(), _answers_an_earlier_period():
        yield


@in_place_of(SqliteState, "__init__")
def forgets_at_a_restart(original: Original, state: SqliteState, *place: Any) -> None:
    original(state, *place)
    with state._writing() as database:
        database.execute("delete from used")
        database.execute("delete from ledger")


@in_place_of(SqliteState, "__init__")
def loses_the_outbox_at_a_restart(original: Original, state: SqliteState, *place: Any) -> None:
    original(state, *place)
    with state._writing() as database:
        database.execute("delete from report")


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
    ("a true value is lost with its process", constant(ClientWorker, "_send_last", NONE)),
    ("sends no absence", sends_no_absence),
    ("sends absences a minute early", sends_absences_at_once),
    ("sends hidden records soon", sends_hidden_records_soon),
    ("answers periods before the consent", answers_before_the_consent),
    ("resumes hidden presence within a period", resumes_within_a_period),
    ("draws the message at each try", draws_at_each_try),
    ("sends the whole body again after a partial `full`", sends_the_whole_body_again),
    ("takes `full` for the end", sends_nothing_again),
    ("takes `duplicate` for a loss to be retried", _misreading(
        lambda word: Verdict.FULL if word is Verdict.DUPLICATE else word)),
    ("drops at an unknown verdict", _misreading(
        lambda word: Verdict.MALFORMED if word == UNKNOWN_VERDICT else word)),
    ("drops at `early`", _misreading(
        lambda word: Verdict.STALE if word is Verdict.EARLY else word)),
    ("drops at `unknown_collection`", _misreading(
        lambda word: Verdict.STALE if word is Verdict.UNKNOWN_COLLECTION else word)),
    ("retries at `stale`", _misreading(
        lambda word: Verdict.FULL if word is Verdict.STALE else word)),
    ("an unknown verdict spoils the reply", refuses_unknown_verdicts),
    ("an unknown member spoils the reply", refuses_unknown_members),
    ("takes a wrong number of verdicts", takes_any_number_of_verdicts),
    ("drops at 415", _refusing(lambda reply: reply.status == 415)),
    ("drops at `unknown-version`", constant(transport, "is_unknown_version", lambda _: False)),
    ("drops at any status of 400 to 499", _refusing(lambda reply: 400 <= reply.status < 500)),
    ("drops at a 400 without a problem document", _refusing(lambda reply: reply.status == 400)),
    ("drops at a redirect", _refusing(lambda reply: reply.status == 302)),
    ("drops at a 200 that holds no verdicts", _refusing(lambda reply: reply.status == 200)),
    ("retries what is rejected", retries_what_is_rejected),
    ("backs off by seconds, whoever has read the body", constant(
        backoff, "spaced_delay", backoff.delay)),
    ("backs off by hours, though nobody has read the body", constant(
        backoff, "delay", backoff.spaced_delay)),
    ("backs off without an end", constant(backoff, "LONGEST", math.inf)),
    ("takes Retry-After to the second", constant(backoff, "retry_after", _exact_delay)),
    ("takes no notice of Retry-After", constant(backoff, "retry_after", lambda *_: 0.0)),
    ("all rows wait with one", waits_as_one_device),
    ("a row does not wait", constant(RowBackoff, "waiting", lambda *_: {})),
    ("waits for a token", waits_for_a_token),
    ("knows no age limit", knows_no_age_limit),
    ("sends losses at once", sends_losses_at_once),
    ("goes on after `closed`", constant(ClosedRows, "add", NONE)),
    ("what waits of a closed row is sent", constant(ClosedRows, "holds", lambda *_: False)),
    ("draws for a closed row", constant(SqliteState, "close_row", NONE)),
    ("closes the series, not the row", closes_the_whole_series),
    ("closes every row of the device", closes_every_row),
    ("a withdrawal wipes nothing", constant(sqlite, "_withdraw", _uncover)),
    ("a withdrawal leaves the running value", keeps_the_running_value),
    ("a withdrawal frees slots", frees_slots_by_a_withdrawal),
    ("sends on forget", sends_on_forget),
    ("keeps the pseudonym after forget", keeps_the_pseudonym),
    ("keeps the outbox after forget", keeps_the_outbox),
    ("forgets what was spent", forgets_the_account),
    ("draws answering periods from the secret", draws_periods_from_the_secret),
    ("a copy goes on", goes_on_from_a_copy),
    ("a copy answers begun periods", constant(sqlite_database, "_bar", NONE)),
    ("answers an earlier period after the clock was set back", answers_an_earlier_period),
    ("waits for the time that a wrong clock set", constant(uploader, "FURTHEST", math.inf)),
    ("sends everything overdue at once", constant(Uploader, "_postpone", NONE)),
    ("a restart answers again", forgets_at_a_restart),
    ("a restart loses what waits", loses_the_outbox_at_a_restart),
)  # fmt: skip
