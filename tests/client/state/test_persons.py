"""What both engines promise of persons: secrets, consent, and the rows of whoever is forgotten."""

from __future__ import annotations

import hashlib
import os

import pytest

from veilcount_client.state import ClientState, OutboxLimits, add_closed_series, closed_series
from veilcount_client.state.key_derivation import person_key
from veilcount_client.state.losses import Loss

from .conftest import Engine
from .state_fixtures import (
    ANN,
    BEN,
    NOW,
    OTHER,
    SERIES,
    agree,
    draw,
    lease_all,
    lease_numbers,
    pseudonym,
    spent,
    statuses,
    withdraw,
)


def test_a_new_person_has_no_consent_decision(state: ClientState) -> None:
    person = state.person(ANN)

    assert person.consented is None
    assert person.covered == frozenset()
    assert len(person.secret) == 32


def test_a_person_keeps_a_secret_of_their_own(engine: Engine, state: ClientState) -> None:
    other = engine.open()

    assert state.person(ANN) == state.person(ANN) == other.person(ANN)
    assert state.root == other.root
    assert state.person(ANN).secret != state.person(BEN).secret


def test_ids_are_not_stored(engine: Engine, state: ClientState) -> None:
    """Neither as text nor as a key that could be made without the root."""
    agree(state, person_key(state.root, "ann@example.org"))

    stored = engine.everything()
    assert b"ann@example.org" not in stored
    assert hashlib.sha256(b"ann@example.org").digest()[:8] not in stored


def test_any_id_has_a_key(state: ClientState) -> None:
    assert len(person_key(state.root, "\udc80")) == 16  # lone surrogates: from broken databases


def test_consent_is_kept_with_its_coverage_and_the_first_instant(
    engine: Engine, state: ClientState
) -> None:
    state.consent(ANN, False, frozenset(), NOW - 1)
    assert (state.person(ANN).consented, state.person(ANN).since) == (False, 0.0)

    state.consent(ANN, True, frozenset({SERIES}), NOW)
    state.consent(ANN, False, frozenset(), NOW + 1)
    state.consent(ANN, True, frozenset({SERIES, OTHER}), NOW + 2)

    person = engine.open().person(ANN)
    assert (person.consented, person.since) == (True, NOW)
    assert person.covered == {SERIES, OTHER}


def test_only_those_who_consent_are_listed(state: ClientState) -> None:
    many = [os.urandom(16) for _ in range(40)]
    agree(state, *many, ANN)
    withdraw(state, BEN)
    withdraw(state, many[0])
    state.person(bytes(16))

    assert set(state.consenting()) == {*many[1:], ANN}


def test_a_withdrawal_wipes_only_what_waits(state: ClientState) -> None:
    agree(state, ANN, BEN)
    state.commit([draw(0), draw(1), draw(0, person=BEN)])
    state.settle([lease_numbers(state)[0]], {})
    withdraw(state)

    assert statuses(state) == ["delivered"]
    assert spent(state) == 2
    assert state.used(ANN, SERIES) == (1, 1)
    assert [each.person for each in lease_all(state, NOW + 601)] == [BEN]
    assert not state.losses()


def test_a_forgotten_person_is_another_with_the_same_ledger(state: ClientState) -> None:
    agree(state, ANN, BEN)
    before = state.person(ANN)
    state.commit([draw(0), draw(0, series=OTHER), draw(1), draw(0, person=BEN)])
    state.settle([lease_numbers(state)[0]], {})
    state.forget(ANN)
    after = state.person(ANN)

    assert after.secret != before.secret
    assert (after.root, after.consented) == (before.root, None)
    assert statuses(state) == []
    assert state.used(ANN, SERIES) == (-1, 0)
    assert spent(state) == 3
    assert statuses(state, BEN) == ["waiting"]


# -- rows to be closed -----------------------------------------------------------------------------


def test_only_rows_of_leased_reports_are_to_be_closed(engine: Engine, state: ClientState) -> None:
    """However the report ended."""
    agree(state, ANN, BEN)
    third, fourth = "ef" * 32, "0a" * 32
    state.commit([draw(0), draw(0, series=OTHER), draw(0, series=third, expires=NOW)])
    state.commit([draw(0, series=fourth, send_at=NOW + 9), draw(0, person=BEN)])
    delivered, waiting, *_ = lease_all(state)
    state.settle([delivered.number], {})
    state.reschedule({waiting.number: NOW + 5})
    state.forget(ANN)

    closes = engine.open().row_closes(NOW, 1000)
    series = {delivered.report.fingerprint, waiting.report.fingerprint, third}
    assert {(each.series, each.pseudonym) for each in closes} == {
        (each, pseudonym(ANN)) for each in series
    }
    assert {each.due for each in closes} == {0.0}


def test_a_report_that_aged_before_it_was_leased_has_no_row(state: ClientState) -> None:
    agree(state)
    state.commit([draw(0, expires=NOW)])
    state.expire(NOW, OutboxLimits())
    state.forget(ANN)

    assert state.row_closes(NOW, 1000) == []


def test_a_row_close_is_due_at_its_time_until_it_is_finished(state: ClientState) -> None:
    """Finished, it does not return."""
    agree(state)
    state.commit([draw(0), draw(0, series=OTHER)])
    lease_all(state)
    state.forget(ANN)
    one, other = sorted(state.row_closes(NOW, 1000), key=lambda each: each.series)
    state.schedule_row_closes({(one.series, one.pseudonym): NOW + 5})
    state.finish_row_close(other.series, other.pseudonym)
    state.schedule_row_closes({(other.series, other.pseudonym): NOW})

    assert state.row_closes(NOW + 4, 1000) == []
    assert state.next_row_close() == NOW + 5
    assert [each.due for each in state.row_closes(NOW + 5, 1000)] == [NOW + 5]


def test_of_an_unknown_person_nothing_is_known_and_nothing_is_to_be_closed(
    state: ClientState,
) -> None:
    assert state.spent(ANN) == {}
    assert state.used(ANN, SERIES) == (-1, 0)
    assert state.sent(ANN) == []
    state.forget(ANN)
    assert state.row_closes(NOW, 1000) == []
    assert state.next_row_close() is None


# -- losses and notes ------------------------------------------------------------------------------


def test_losses_add_up_by_reason_and_collection(engine: Engine, state: ClientState) -> None:
    state.lose({(Loss.CRASHED, "a b"): 3, (Loss.AGED, ""): 1})
    state.lose({(Loss.CRASHED, "a b"): -1})

    assert engine.open().losses() == {(Loss.CRASHED, "a b"): 2, (Loss.AGED, ""): 1}


def test_the_last_note_under_a_name_is_kept(engine: Engine, state: ClientState) -> None:
    state.keep("a", "1")
    state.keep("a", "ü\n")

    assert engine.open().note("a") == "ü\n"
    assert state.note("b") is None


@pytest.mark.parametrize("leave", [withdraw, ClientState.forget])
def test_a_closed_series_stays_closed(engine: Engine, state: ClientState, leave: object) -> None:
    """For whoever opens the state, and whoever withdraws or is forgotten."""
    agree(state)
    add_closed_series(state, SERIES)
    withdraw(state) if leave is withdraw else state.forget(ANN)

    assert closed_series(engine.open(), [SERIES, OTHER]) == {SERIES}


def test_a_closed_state_opens_again(state: ClientState) -> None:
    agree(state)
    state.close()
    state.close()

    assert spent(state) == 0
    assert state.person(ANN).consented
