"""Clients that are wrong about consent, forgetting, clocks and restarts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from veilcount_client.consent import ConsentDecisions
from veilcount_client.delivery import uploader
from veilcount_client.delivery.uploader import Uploader
from veilcount_client.recording import answer_drawing, answer_times
from veilcount_client.recording.answer_drawing import PersonAnswer
from veilcount_client.state import (
    DrawOutcome,
    PersonState,
    ReportDraw,
    sqlite,
    sqlite_commit,
    sqlite_database,
)
from veilcount_client.state.sqlite import SqliteState
from veilcount_client.state.sqlite_commit import charge
from veilcount_shared import Collection

from ...client.planting import Original, Plant, constant, do_nothing, in_place_of

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
        patch.object(sqlite_database, "_begin_as_another", do_nothing),
        patch.object(sqlite_database, "_bar", do_nothing),
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
    ("a withdrawal wipes nothing", constant(sqlite, "_withdraw", _uncover)),
    ("a withdrawal leaves the running value", keeps_the_running_value),
    ("a withdrawal frees slots", frees_slots_by_a_withdrawal),
    ("sends on forget", sends_on_forget),
    ("keeps the pseudonym after forget", keeps_the_pseudonym),
    ("keeps the outbox after forget", keeps_the_outbox),
    ("forgets what was spent", forgets_the_account),
    ("draws answering periods from the secret", draws_periods_from_the_secret),
    ("a copy goes on", goes_on_from_a_copy),
    ("a copy answers begun periods", constant(sqlite_database, "_bar", do_nothing)),
    ("answers an earlier period after the clock was set back", answers_an_earlier_period),
    ("waits for the time that a wrong clock set", constant(uploader, "FURTHEST", math.inf)),
    ("sends everything overdue at once", constant(Uploader, "_postpone", do_nothing)),
    ("a restart answers again", forgets_at_a_restart),
    ("a restart loses what waits", loses_the_outbox_at_a_restart),
)  # fmt: skip
