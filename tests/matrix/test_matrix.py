"""Every promise on linkage, presence, tokens and relay, over the rows of all combinations.

By default a tenth of the rows and all planted bugs; with --full all rows, their CPU time printed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import cache

import pytest

from veilcount_shared.epsilon import exp_lower

from ..client.privacy.relayed_wire import one_memory_of_keys
from ..client.privacy.test_active_joiner import one_back_off
from ..client.recording.test_groups import all_are_answered, drawn_per_period
from ..client.state.test_moved_state import begins_anew
from . import lifetimes, planted, promises
from .cells import FIRST_ROWS, Combination, rows
from .lives import PERSONS, population
from .parties import Logs
from .simulation import CHANGED, NAMES, Plant
from .streams import bodies_of, count_all, emissions, idle, recording, turn_away

MORE_PERSONS = 3 * PERSONS  # among whom a planted bug is found, whatever the seed
WATCHED = [name for name in NAMES if name != CHANGED]
in_rows = pytest.mark.parametrize("combination", rows(), ids=str)
enumerable = [row for row in rows() if lifetimes.is_enumerable(row)]


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Log nothing: thousands of warnings of simulated devices take longer than the devices."""
    caplog.set_level(logging.CRITICAL, "veilcount")


@pytest.fixture(autouse=True)
def cpu_time(record_property: Callable[[str, object], None]) -> Iterator[None]:
    """Note what a test takes; the sum is printed at the end."""
    begin = time.process_time()
    yield
    record_property("cpu_seconds", time.process_time() - begin)


# -- what the tests look for -----------------------------------------------------------------------


@cache
def joined(
    combination: Combination, plant: Plant = nullcontext, persons: int = PERSONS
) -> list[str]:
    """Return what breaks a promise in a population: joins, stray requests, second answers."""
    logs = population(combination, persons, plant)
    assert len(logs.attempts) >= persons, "a population that says nothing"
    problems = [
        f"{promise.target}, {promise.adversary}: {figure} by {figure.way}, {figure.where}"
        for promise, figure in promises.broken(logs)
    ]
    problems += [f"no report: {body!r}" for body in logs.strays]
    problems += [f"answered twice: {answer}" for answer in promises.answered_twice(logs)]
    problems += [f"two questions of a group: {one}" for one in promises.drawn_twice(logs)]
    return problems


def a_sender(combination: Combination) -> int:
    """Return the first person whose device runs when a report to the watched question is due."""
    stream = recording(combination, 0)
    return next(
        person
        for person in range(1, 9)
        if bodies_of(WATCHED, emissions(combination, stream, person=person)[0], combination)
    )


def is_moved_by_replies(
    combination: Combination, plant: Plant = nullcontext, person: int = 1
) -> bool:
    """Whether a reply to one question's rows changes a byte or an instant of the others."""
    stream = recording(combination, 0)
    sent = [
        emissions(combination, stream, reply=reply, plant=plant, person=person)[0]
        for reply in (count_all, turn_away)
    ]
    watched = [bodies_of(WATCHED, emitted, combination) for emitted in sent]
    assert watched[0]
    return watched[0] != watched[1]


@cache
def problems_of_lives(combination: Combination, plant: Plant = nullcontext) -> list[str]:
    """Return where the exact distributions of whole lives break epsilon, or say too little."""
    bound = exp_lower(lifetimes.epsilon_of_life(combination))
    ratios = [
        lifetimes.max_ratio(
            *(lifetimes.distribution(combination, stream, plant) for stream in pair)
        )
        for pair in lifetimes.neighbours(combination)
    ]
    problems = [f"{float(ratio):.3f} > {float(bound):.3f}" for ratio in ratios if ratio > bound]
    if max(ratios) <= bound / 2:
        problems.append(f"at most {float(max(ratios)):.3f}: a life that says less than it may")
    if min(ratios) == 1:
        problems.append("two different streams that nothing tells apart")
    return problems


# -- the promises ----------------------------------------------------------------------------------


@pytest.mark.one_in(10)
@in_rows
def test_nobody_joins_what_a_promise_keeps_apart(combination: Combination) -> None:
    assert joined(combination) == []


@pytest.mark.one_in(10)
@in_rows
def test_no_value_and_no_hidden_use_shows(combination: Combination) -> None:
    """To the byte and the instant, through restart, backup, release and forget."""
    person = a_sender(combination)
    usual, logs = emissions(combination, recording(combination, 0), person=person)
    streams = {"another value": recording(combination, 1), "odd": recording(combination, 2, 1)}
    if combination.presence == "hidden":
        streams["idle"] = idle

    assert usual
    for name, stream in streams.items():
        emitted, others = emissions(combination, stream, person=person)
        assert emitted == usual, name
        assert others.requests == logs.requests, name


@pytest.mark.one_in(10)
@in_rows
def test_no_reply_to_one_question_moves_another(combination: Combination) -> None:
    assert not is_moved_by_replies(combination, person=a_sender(combination))


@pytest.mark.one_in(5)
@pytest.mark.parametrize("combination", enumerable, ids=str)
def test_a_whole_life_keeps_epsilon_and_reaches_it(combination: Combination) -> None:
    """Every outcome of every draw, exactly: within e^epsilon of the user, and over half of it."""
    assert problems_of_lives(combination) == []


# -- planted bugs ----------------------------------------------------------------------------------


MONTHLY, TOKENS, VISITS, WEEKLY, DAILY, RELAYED, SHUFFLED, SHUFFLED_TOKENS, GROUP = FIRST_ROWS
FEW = 8  # persons: as many as a life differs by
NEWEST = "several", "any number", "tables", "group"  # measures whose mechanisms or draws are new


def a_row_of(measure: str) -> Combination:
    """Return a row of a measure whose lives are short, as those with tokens are not."""
    rows_of_measure = [row for row in enumerable if row.measure == measure]
    return next(row for row in rows_of_measure if row.linkage != "token")


@pytest.mark.parametrize(
    ("combination", "plant", "persons"),
    [
        (MONTHLY, planted.first_consent, MORE_PERSONS),
        (MONTHLY, planted.clipped_instants, MORE_PERSONS),
        pytest.param(  # by hours alone, which tell little: test_both_logs has it of few persons
            *(TOKENS, planted.tokens_at_once, 14 * PERSONS), marks=pytest.mark.full
        ),
        (WEEKLY, begins_anew, MORE_PERSONS),
        (DAILY, planted.closing_forget, MORE_PERSONS),
        (SHUFFLED, planted.kept_order, PERSONS),
        (SHUFFLED, planted.hurried, PERSONS),
        (SHUFFLED, begins_anew, PERSONS),
        (SHUFFLED, planted.closing_forget, PERSONS),
        (GROUP, all_are_answered, PERSONS),
        (GROUP, drawn_per_period, PERSONS),
    ],
)
def test_the_joiner_finds(combination: Combination, plant: Plant, persons: int) -> None:
    assert joined(combination) == []
    assert joined(combination, plant, persons)


@pytest.mark.parametrize(
    ("combination", "plant"),
    [(WEEKLY, one_back_off), (RELAYED, one_memory_of_keys), (SHUFFLED, planted.one_wait)],
)
def test_a_device_that_remembers_a_reply_is_found(combination: Combination, plant: Plant) -> None:
    assert not is_moved_by_replies(combination)
    assert any(is_moved_by_replies(combination, plant, person) for person in range(1, 9))


@cache
def sealed_by_few(combination: Combination, plant: Plant = nullcontext) -> Logs:
    return population(combination, FEW, plant)


@pytest.mark.parametrize("plant", [planted.clipped_instants, one_back_off])
def test_no_envelope_shows_it(plant: Plant) -> None:
    """Of bugs in the times of reports that travel alone: not a byte and no instant differs."""
    usual, with_bug = sealed_by_few(SHUFFLED), sealed_by_few(SHUFFLED, plant)

    assert usual.envelopes
    assert with_bug.envelopes == usual.envelopes
    assert with_bug.strays == usual.strays


@pytest.mark.parametrize(
    ("combination", "plant"),
    [(SHUFFLED, planted.first_consent), (SHUFFLED_TOKENS, planted.tokens_at_once)],
)
def test_no_batch_shows_it(combination: Combination, plant: Plant) -> None:
    """Of bugs that put persons into other batches: where they stand in these joins nothing."""
    usual, with_bug = sealed_by_few(combination), sealed_by_few(combination, plant)

    assert with_bug.envelopes.keys() != usual.envelopes.keys()
    assert joined(combination, plant) == []


@pytest.mark.parametrize(
    ("combination", "plant"),
    [
        (VISITS, planted.lost_visits),
        *((a_row_of(measure), planted.doubled_epsilon) for measure in NEWEST),
    ],
)
def test_a_life_that_says_too_much_or_too_little_is_found(
    combination: Combination, plant: Plant
) -> None:
    """A visit that is not kept, and answers at twice their epsilon."""
    assert problems_of_lives(combination) == []
    assert problems_of_lives(combination, plant)
