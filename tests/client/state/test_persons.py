"""What both engines promise of persons: secrets, consent, and the rows of whoever is forgotten."""

from __future__ import annotations

import hashlib

from veilcount_client.state import (
    ClientState,
    ConsentDecision,
    Coverage,
    add_closed_series,
    closed_series,
)
from veilcount_client.state.key_derivation import person_key
from veilcount_client.state.losses import Loss

from .conftest import Engine
from .state_fixtures import (
    ANN,
    BEN,
    NOW,
    OTHER,
    SERIES,
    THIRD,
    agree,
    draw,
    held,
    lease_all,
    lease_numbers,
    spent,
    statuses,
    withdraw,
    yes,
)


def test_a_person_keeps_a_secret_of_their_own(engine: Engine, state: ClientState) -> None:
    person, other = state.person(ANN), engine.open()

    assert (person.consented, person.covered, len(person.secret)) == (None, frozenset(), 32)
    assert (person, state.root) == (other.person(ANN), other.root)
    assert person.secret != state.person(BEN).secret


def test_ids_are_not_stored(engine: Engine, state: ClientState) -> None:
    """Neither as text nor as a key that could be made without the root."""
    agree(state, person_key(state.root, "ann@example.org"))
    agree(state, person_key(state.root, "\udc80"))  # a lone surrogate, from a broken database

    stored = engine.everything()
    assert b"ann@example.org" not in stored
    assert hashlib.sha256(b"ann@example.org").digest()[:8] not in stored


def test_each_definition_keeps_its_first_coverage(engine: Engine, state: ClientState) -> None:
    """Through a withdrawal, and to be forgotten; a resumption is kept with it."""
    state.consent(ANN, ConsentDecision(NOW - 1, consented=False))
    assert (state.person(ANN).consented, state.person(ANN).coverage) == (False, {})

    state.consent(ANN, yes(SERIES))
    withdraw(state)
    assert state.person(ANN).coverage == {SERIES: Coverage(NOW, 0.0, is_current=False, round=1)}
    again = yes(SERIES, OTHER, at=NOW + 2, if_new=NOW + 2, if_returning=NOW + 2)
    for _ in range(2):  # what is covered already does not resume
        state.consent(ANN, again)
    state.forget(ANN)

    person = engine.open().person(ANN)
    assert (person.consented, person.covered) == (None, frozenset())
    assert person.coverage == {
        SERIES: Coverage(NOW, NOW + 2, is_current=False, round=2),
        OTHER: Coverage(NOW + 2, NOW + 2, is_current=False, round=1),
    }


def test_a_no_to_one_definition_leaves_the_others(engine: Engine, state: ClientState) -> None:
    """What waits of it is wiped, and only that; the refusal is kept by its lineage."""
    agree(state, ANN, BEN)
    both = [draw(0, person=who, series=series) for who in (ANN, BEN) for series in (SERIES, OTHER)]
    state.commit(both)
    state.hold(None, held("1", series=OTHER, period=1))
    no = ConsentDecision(NOW, True, withdrawn=frozenset({OTHER}), declined=frozenset({"sound"}))
    state.consent(ANN, no)

    person = engine.open().person(ANN)
    assert person.consented is True
    assert (person.declined, person.covered) == (frozenset({"sound"}), frozenset({SERIES, THIRD}))
    assert [each.report.fingerprint for each in state.sent(ANN)] == [SERIES]
    assert (state.held(ANN, OTHER), len(state.sent(BEN))) == (None, 2)


def test_a_withdrawal_wipes_what_waits_to_be_forgotten_makes_another(state: ClientState) -> None:
    """Of somebody else nothing is changed; the ledger stays in any case."""
    agree(state, ANN, BEN)
    before = state.person(ANN)
    state.commit([draw(0), draw(0, series=OTHER), draw(1), draw(0, person=BEN)])
    state.settle([lease_numbers(state)[0]], {})
    withdraw(state)
    assert state.consenting() == [BEN]
    assert (statuses(state), spent(state), state.used(ANN, SERIES)) == (["delivered"], 3, (1, 1))
    assert [each.person for each in lease_all(state, NOW + 601)] == [BEN]

    state.forget(ANN)
    state.close_row(ANN, SERIES, 9)  # a reply to a report of the person that is no more
    after = state.person(ANN)
    assert after.secret != before.secret
    assert (after.root, after.consented) == (before.root, None)
    assert (statuses(state), spent(state), state.used(ANN, SERIES)) == ([], 3, (-1, 0))
    assert statuses(state, BEN) == ["waiting"]
    assert not state.losses()


# -- losses and notes ------------------------------------------------------------------------------


def test_losses_notes_and_closed_series_are_stored(engine: Engine, state: ClientState) -> None:
    """Losses add up by reason and collection; a closed series outlives whoever leaves."""
    agree(state, ANN, BEN)
    state.lose({(Loss.CRASHED, "a b"): 3, (Loss.AGED, ""): 1})
    state.lose({(Loss.CRASHED, "a b"): -1})
    state.keep("a", "1")
    state.keep("a", "ü\n")
    add_closed_series(state, SERIES)
    withdraw(state)
    state.forget(BEN)
    state.close()
    state.close()

    for opened in (state, engine.open()):
        assert opened.losses() == {(Loss.CRASHED, "a b"): 2, (Loss.AGED, ""): 1}
        assert (opened.note("a"), opened.note("b")) == ("ü\n", None)
        assert closed_series(opened, [SERIES, OTHER]) == {SERIES}


def test_tokens_are_a_persons_own_until_they_are_forgotten(state: ClientState) -> None:
    agree(state, ANN, BEN)
    one, two = b"1" * 16, b"2" * 16
    state.keep_tokens(state.person(ANN), {one: b"a" * 256, two: b"\0" * 256})
    state.keep_tokens(state.person(BEN), {one: b"b" * 256})

    assert state.token(ANN, one) == b"a" * 256
    assert state.token(ANN, two) == b"\0" * 256
    assert state.token(BEN, two) is None
    state.forget(ANN)
    assert (state.token(ANN, one), state.token(BEN, one)) == (None, b"b" * 256)
