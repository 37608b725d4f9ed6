"""What both engines promise of a commit: a draw is charged, frozen and stored, or none of it."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from veilcount_client.state import ClientState, DrawOutcome, HeldChange, ReportDraw, SpentBudget

from .conftest import Engine
from .state_fixtures import (
    ANN,
    BEN,
    COST,
    DAY,
    NOW,
    OTHER,
    SERIES,
    THIRD,
    agree,
    draw,
    held,
    spent,
    statuses,
    withdraw,
)

MONTH, A_DAY, WEEK = (DAY, DAY + 31), (DAY + 9, DAY + 10), (DAY + 28, DAY + 35)
FORGONE = ReportDraw(ANN, "theme", SERIES, period=0, answer=0)

#: draws and their outcomes, which period and number of answers is used, and what Ann has spent
COMMITS: dict[str, tuple[list[ReportDraw], str, tuple[int, int], int]] = {
    "a slot is answered once": (
        [draw(message=b"a"), draw(message=b"b")], "stored frozen", (0, 1), 1),
    "answers of a period come in order": (
        [draw(0, 1), draw(0, 0), draw(0, 2), draw(0, 1), draw(1, 1)],
        "frozen stored frozen stored frozen", (0, 2), 2),
    "periods only move forward": (
        [draw(5), draw(3), draw(5), draw(7)], "stored frozen frozen stored", (7, 1), 2),
    "series and persons are frozen apart": (
        [draw(5), draw(3, series=OTHER, lineage="sound"), draw(3, person=BEN)],
        "stored stored stored", (5, 1), 1),
    "the lifetime cap may be reached": (
        [draw(period, life_cap=2 * COST) for period in range(3)],
        "stored stored over_cap", (1, 1), 2),
    "the cap of a day": (
        [*(draw(0, each, day_cap=2 * COST) for each in range(3)), draw(1, day_cap=2 * COST)],
        "stored stored over_cap stored", (1, 1), 3),
    "two redefinitions share no day by going back to it": (
        [draw(9), draw(0, series=OTHER), draw(1, series=OTHER)],
        "stored over_cap over_cap", (9, 1), 1),
    "of a paid month no day is paid again, nor a month of a paid day": (
        [draw(0, days=MONTH), draw(0, series=OTHER, days=A_DAY), draw(1, series=OTHER, days=WEEK),
         draw(2, series=OTHER, days=(DAY + 31, DAY + 32)),
         draw(0, person=BEN, days=A_DAY), draw(0, series=OTHER, person=BEN, days=MONTH)],
        "stored over_cap over_cap stored stored over_cap", (0, 1), 2),
    "another form of the same days spends what is left": (
        [draw(0, days=MONTH, day_cap=COST), draw(0, series=OTHER, days=MONTH, day_cap=COST),
         draw(0, series=THIRD, days=MONTH, day_cap=2 * COST)],
        "stored over_cap stored", (0, 1), 2),
    "a forgone answer takes its slot and costs nothing": (
        [FORGONE, draw(0), draw(1)], "stored frozen stored", (1, 1), 1),
    "series of one lineage share a ledger, lineages and persons do not": (
        [draw(life_cap=COST), draw(series=OTHER, life_cap=COST),
         draw(series=OTHER, life_cap=COST, lineage="sound"), draw(person=BEN, life_cap=COST)],
        "stored over_cap stored stored", (0, 1), 1),
    "a true value is charged and not stored": (
        [replace(draw(), report=None)] * 2, "stored frozen", (0, 1), 1),
    "a free draw is stored over any cap and takes no slot": (
        [draw(free=True, life_cap=0, day_cap=0)] * 3, "stored stored stored", (-1, 0), 0),
    "nothing": ([], "", (-1, 0), 0),
}  # fmt: skip


@pytest.mark.parametrize("at_once", [True, False], ids=["one commit", "a commit each"])
@pytest.mark.parametrize("case", COMMITS)
def test_draws_are_charged_frozen_and_stored(
    state: ClientState,
    case: str,
    at_once: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    draws, outcomes, used, epsilons = COMMITS[case]
    agree(state, ANN, BEN)
    if at_once:
        found = state.commit(draws)
    else:
        found = [outcome for each in draws for outcome in state.commit([each])]
    stored = [each for each, outcome in zip(draws, found, strict=True) if outcome == "stored"]

    assert found == outcomes.split()
    assert state.used(ANN, SERIES) == used
    assert spent(state) == epsilons
    for person in (ANN, BEN):
        reports = [each.report for each in stored if each.person == person and each.report]
        assert [each.report for each in state.sent(person)] == reports


def test_a_commit_is_there_in_another_opening(engine: Engine, state: ClientState) -> None:
    agree(state)
    state.commit([draw(4, message=b"\0\xff")])
    other = engine.open()

    assert other.spent(ANN) == {"theme": SpentBudget(COST, DAY + 4, DAY + 5, COST)}
    assert other.used(ANN, SERIES) == (4, 1)
    assert [each.report for each in other.sent(ANN)] == [draw(4, message=b"\0\xff").report]


@pytest.mark.parametrize("person", ["unknown", "not asked", "withdrawn", "forgotten"])
def test_without_consent_nothing_is_stored_or_held(state: ClientState, person: str) -> None:
    """Not even a free draw, nor a value that another process still had in memory."""
    if person == "not asked":
        state.person(ANN)
    elif person != "unknown":
        agree(state)
        state.forget(ANN) if person == "forgotten" else withdraw(state)

    assert state.commit([draw(), draw(free=True)]) == [DrawOutcome.NO_CONSENT] * 2
    assert not state.hold(None, held("a"))
    assert state.held(ANN, SERIES) is None
    assert state.spent(ANN) == {}
    assert statuses(state) == []


def test_a_thousand_draws_are_committed_in_one_step(state: ClientState) -> None:
    persons = [os.urandom(16) for _ in range(1000)]
    agree(state, *persons[::100])
    outcomes = state.commit([draw(person=person) for person in persons])

    assert [each is DrawOutcome.STORED for each in outcomes] == [
        not place % 100 for place in range(1000)
    ]
    assert state.waiting(NOW) == 10


def test_a_held_value_is_due_at_its_instant_until_it_is_dropped(state: ClientState) -> None:
    """And only as it is: another process may have added to it meanwhile."""
    agree(state)
    value = held("ü", due=NOW + 1)
    state.hold(None, value)
    state.drop_held(replace(value, value="other"))

    assert (state.next_held(), state.held_due(NOW, 9)) == (NOW + 1, [])
    assert state.held_due(NOW + 1, 9) == [value]
    state.drop_held(value)
    assert (state.next_held(), state.held(ANN, SERIES)) == (None, None)


def test_a_draw_changes_the_held_value_it_was_made_from_or_nothing(state: ClientState) -> None:
    """A state that another process changed meanwhile is looked at again."""
    agree(state)
    first, meanwhile, later = held("a"), held("b"), held("c", period=1, due=NOW + 90)
    state.hold(None, first)
    state.hold(first, meanwhile)
    stale = replace(draw(), held=HeldChange(first, later))

    assert state.commit([stale]) == [DrawOutcome.FROZEN]
    assert (state.used(ANN, SERIES), spent(state)) == ((-1, 0), 0)
    assert state.commit([replace(stale, held=HeldChange(meanwhile, later))]) == ["stored"]
    assert state.held_due(NOW + 90, 9) == [later]
    assert state.commit([replace(draw(1), held=HeldChange(later, None))]) == ["stored"]
    assert (state.next_held(), state.held(ANN, SERIES)) == (None, None)
