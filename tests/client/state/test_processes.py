"""Both engines against each other, among threads and processes, and through kills."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from veilcount_client.state import (
    ClientState,
    ConsentDecision,
    DrawOutcome,
    OutboxLimits,
    Resumption,
    StateError,
    file_checks,
)
from veilcount_client.state.losses import Loss
from veilcount_client.state.redis import RedisState

from ...redis_server import RedisServer
from .conftest import Engine, SqliteEngine
from .state_apps import fork, share, start, store
from .state_fixtures import ANN, BEN, COST, NOW, OTHER, SERIES, agree, draw, held, lease_all, spent

PROCESSES, THREADS, PERIODS = 3, 8, 12


def random_step(random: Random) -> Callable[[ClientState], Any]:
    """Return something to do with a state, whose result says what it did."""
    who, series = random.choice([ANN, BEN]), random.choice([SERIES, OTHER])
    now = NOW + random.randrange(8)
    first, second, third = (random.randrange(1, 60) for _ in range(3))
    draws = [
        draw(
            random.randrange(6),
            random.randrange(2),
            person=random.choice([ANN, BEN]),
            series=random.choice([SERIES, OTHER]),
            lineage=random.choice(["theme", "sound"]),
            message=bytes(random.randrange(1, 90)),
            day_cap=3 * COST,
            life_cap=9 * COST,
            send_at=now + random.random() * 9,
            earliest=now,
            expires=now + random.randrange(2, 30),
            free=random.random() < 0.5,
        )
        for _ in range(random.randrange(1, 6))
    ]
    limits = OutboxLimits(random.randrange(5, 30), random.randrange(200, 2000))
    period = random.randrange(3)
    value = held(random.choice("ab"), person=who, series=series, period=period, due=now + 2)
    through, is_likely = random.randrange(6), random.random() < 0.8
    decision = ConsentDecision(
        now,
        consented=random.choice([True, True, True, False, None]),
        covered={series: Resumption(now if is_likely else 0.0, now)},
        withdrawn=frozenset({random.choice([SERIES, OTHER])} if random.random() < 0.3 else ()),
        declined=frozenset(random.sample(["theme", "sound"], random.randrange(3))),
    )
    steps: list[tuple[int, Callable[[ClientState], Any]]] = [
        (6, lambda state: state.commit(draws)),
        (3, lambda state: sorted(state.lease(now, now + 3, 1000, hurry=is_likely), key=number)),
        (3, lambda state: state.settle([first, second], {third: Loss.FULL})),
        (2, lambda state: state.reschedule({first: now + 1, second: now + 2}, unsent=is_likely)),
        (2, lambda state: sorted(state.overdue(now, now + 4, 1000))),
        (2, lambda state: state.hold(state.held(who, series), value)),
        (1, lambda state: state.drop_held(value)),
        (1, lambda state: state.close_row(who, series, through)),
        (1, lambda state: state.expire(now, limits)),
        (1, lambda state: state.retire(series, now if is_likely else 0.0)),
        (3, lambda state: state.consent(who, decision)),
        (1, lambda state: state.forget(who) if is_likely else None),
        (1, lambda state: state.lose({(Loss.AGED, series): 1})),
    ]
    weights = [weight for weight, _ in steps]
    return random.choices([step for _, step in steps], weights)[0]


def number(queued: Any) -> int:
    return int(queued.number)


def view(state: ClientState) -> object:
    """Return all that a state can be queried for, its secrets left out."""
    return [
        state.next_due(),
        state.losses(),
        sorted(state.consenting()),
        [state.waiting(NOW + at) for at in (0, 4, 9)],
        [(state.sent(who), state.spent(who)) for who in (ANN, BEN)],
        [state.used(who, series) for who in (ANN, BEN) for series in (SERIES, OTHER)],
        [state.held(who, series) for who in (ANN, BEN) for series in (SERIES, OTHER)],
        sorted(state.held_due(NOW + 9, 1000), key=repr),
        [state.next_held(), state.attempts()],
    ]


def decisions(state: ClientState) -> list[object]:
    """Return what both persons have decided; who was forgotten exists again from here on."""
    persons = [state.person(who) for who in (ANN, BEN)]
    return [(each.consented, each.coverage, each.declined) for each in persons]


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 40))]
)
def test_the_engines_do_the_same(sqlite: SqliteEngine, redis: Engine, seed: int) -> None:
    """Whatever is done with them, in whatever order."""
    random, one, other = Random(seed), sqlite.open(), redis.open()
    for state in (one, other):
        agree(state, ANN, BEN)
    for at in range(120):
        step = random_step(random)

        assert step(one) == step(other)
        assert decisions(one) == decisions(other)
        assert at % 4 or view(one) == view(other)


# -- at the same time ------------------------------------------------------------------------------


def test_processes_that_share_a_new_state(engine: Engine) -> None:
    """None takes what another is making for damage; each slot has one winner, under the caps.

    No period goes back, each report is leased once, and after the leases all are there again.
    """
    apps = [start(share, engine.location, PERIODS) for _ in range(PROCESSES)]
    results = [app.rest() for app in apps]
    stored, charged, back = (sum(column) for column in zip(*(r[:3] for r in results), strict=True))
    leased = [number for result in results for number in result[3:]]
    state = engine.open()
    slots = [(each.report.fingerprint, each.report.period) for each in state.sent(ANN)]
    days = [period for series, period in slots if series == SERIES]

    assert days == sorted(set(days))
    assert stored == len(days) == spent(state)
    assert charged == slots.count((OTHER, 0)) == spent(state, lineage="event") == 5
    assert (back, state.losses()) == (0, {})
    assert len(leased) == len(set(leased)) == len(slots)
    assert lease_all(state, NOW + 599) == []
    assert {each.number for each in lease_all(state, NOW + 600)} == set(leased)
    if isinstance(engine, SqliteEngine):  # whoever wrote the mark last, in whatever order
        assert file_checks.read_mark(engine.mark) == engine.committed()


def test_threads_that_want_the_same_slots_have_one_winner_each(engine: Engine) -> None:
    state = engine.open()
    agree(state)
    outcomes: Counter[DrawOutcome] = Counter()

    def race() -> None:
        for period in range(PERIODS):
            outcomes.update(state.commit([draw(period), draw(0, lineage="x", series=OTHER)]))

    threads = [threading.Thread(target=race) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    reports = [each.report for each in state.sent(ANN)]
    assert len(set(reports)) == len(reports) == outcomes[DrawOutcome.STORED] == spent(state) + 1
    assert state.used(ANN, SERIES) == (PERIODS - 1, 1)
    assert outcomes.total() == THREADS * PERIODS * 2


# -- ends ------------------------------------------------------------------------------------------


def expect_whole(state: ClientState, reported: list[int]) -> None:
    """What a process reported is stored; every report has its charge, every charge its report."""
    periods = [each.report.period for each in state.sent(ANN)]

    assert set(reported) <= set(periods)
    assert len(periods) == len(set(periods)) == spent(state)
    assert state.used(ANN, SERIES)[0] == max(periods)


@pytest.mark.parametrize(
    "rounds", [2, pytest.param(40, marks=[pytest.mark.full, pytest.mark.timeout(600)])]
)
def test_processes_killed_while_they_store_lose_nothing(sqlite: SqliteEngine, rounds: int) -> None:
    """At any moment; and no mark is ahead of what was committed, which would be a rollback."""
    agree(sqlite.open())
    random, reported = Random(rounds), list[int]()
    for _ in range(rounds):
        one, other = (start(store, sqlite.location) for _ in range(2))
        reported += one.numbers(1 + random.randrange(20)) + one.kill() + other.kill()

        assert file_checks.read_mark(sqlite.mark) <= sqlite.committed()
        assert not sqlite.open().losses()
    expect_whole(sqlite.open(), reported)


@pytest.mark.parametrize(
    "rounds", [2, pytest.param(20, marks=[pytest.mark.full, pytest.mark.timeout(300)])]
)
def test_a_redis_killed_while_it_stores_loses_nothing(frail: RedisServer, rounds: int) -> None:
    """What it had confirmed is there when it is back, and the same state goes on."""
    state = RedisState(frail.url)
    agree(state)
    reported = []
    for attempt in range(rounds):
        app = start(store, frail.url)
        reported += app.numbers(20 + 13 * attempt % 50)
        frail.kill()
        reported += app.rest()
        with pytest.raises(StateError):
            state.waiting(NOW)
        frail.start()

    expect_whole(state, reported)
    state.close()


def test_a_child_outlives_its_parent(engine: Engine, tmp_path: Path) -> None:
    """What a daemon stores after its parent ended is there, though it was killed."""
    start(fork, engine.location, tmp_path).rest()
    state = engine.open()

    assert (tmp_path / "forked").exists()
    assert spent(state) >= 3
    assert len(state.sent(ANN)) == spent(state)
    assert state.used(ANN, SERIES) == (3, 1)
    assert not state.losses()
