"""Every draw of the schedule follows its distribution, and a wrong one would have been seen.

The secrets are hashes of a counter, so that nothing flakes; alpha is one in a million. Each check
is also run on planted wrong distributions, which it must reject at the same alpha and size.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fractions import Fraction
from functools import cache, partial
from itertools import combinations, permutations, product

import pytest
from scipy.stats import chi2

from veilcount_shared import schedule
from veilcount_shared.collection import Collection
from veilcount_shared.domain import Boolean
from veilcount_shared.periods import Unit
from veilcount_shared.schedule import SecretRandomSource

ALPHA = 1e-6
Draw = Callable[[bytes], Hashable]


@cache
def secret(number: int) -> bytes:
    return hashlib.sha256(b"schedule law %d" % number).digest()


@dataclass(frozen=True)
class Check:
    """A draw whose outcomes are equally likely, and planted ones whose outcomes are not."""

    draw: Draw
    outcomes: Sequence[Hashable]
    persons: int
    wrong: tuple[Draw, ...] = ()

    def uniform(self, draw: Draw) -> bool:
        """Whether a draw may well be uniform over the outcomes: chi-square at ALPHA."""
        counts = Counter(draw(secret(number)) for number in range(self.persons))
        if counts.keys() - set(self.outcomes):
            return False
        mean = self.persons / len(self.outcomes)
        distance = sum((counts[outcome] - mean) ** 2 / mean for outcome in self.outcomes)
        return float(chi2.sf(distance, len(self.outcomes) - 1)) > ALPHA


def calendar_of(unit: Unit, days: int, answers: int | None = None) -> Collection:
    start = date(2026, 12, 1)
    return Collection(
        app="acme",
        name="q",
        question="Is it?",
        domain=Boolean(),
        unit=unit,
        start=start,
        until=start + timedelta(days=days),
        epsilon=Fraction(1),
        answers=answers,
    )


# -- answering periods: the wrong draws are of three of six ----------------------------------------


@cache
def answering(person: bytes, collection: Collection) -> frozenset[int]:
    return schedule.draw_answering_periods(person, collection)


def first_periods(_person: bytes) -> frozenset[int]:
    """Wrong: always the first ones."""
    return frozenset(range(3))


def off_by_one(person: bytes) -> frozenset[int]:
    """Wrong: Floyd's algorithm with a draw that never reaches the top."""
    randomness = SecretRandomSource(person, "wrong")
    drawn: set[int] = set()
    for top in range(3, 6):
        period = randomness.below(top) if top else 0
        drawn.add(top if period in drawn else period)
    return frozenset(drawn)


def modulo(person: bytes) -> frozenset[int]:
    """Wrong: Floyd's algorithm with four bits modulo the number of periods."""
    randomness = SecretRandomSource(person, "wrong")
    drawn: set[int] = set()
    for top in range(3, 6):
        period = randomness.below(16) % (top + 1)
        drawn.add(top if period in drawn else period)
    return frozenset(drawn)


def a_run(person: bytes) -> frozenset[int]:
    """Wrong: each period as likely as any other, but only neighbours together."""
    start = SecretRandomSource(person, "wrong").below(6)
    return frozenset((start + step) % 6 for step in range(3))


def subsets(periods: int, answers: int) -> list[frozenset[int]]:
    return [frozenset(combination) for combination in combinations(range(periods), answers)]


# -- instants --------------------------------------------------------------------------------------

MONTH = calendar_of(Unit.MONTH, 31)
HOURS = list(product(range(31), range(24)))
DAY_SECONDS = 24 * 3600


def hour(person: bytes) -> tuple[int, int]:
    instant = schedule.draw_instant(person, MONTH, 0)
    return instant.day - 1, instant.hour


def hour_of(second: int) -> tuple[int, int]:
    return second // DAY_SECONDS, second % DAY_SECONDS // 3600


def modulo_second(person: bytes) -> tuple[int, int]:
    """Wrong: 22 bits modulo the month's seconds."""
    return hour_of(SecretRandomSource(person, "wrong").below(1 << 22) % (31 * DAY_SECONDS))


def short_month(person: bytes) -> tuple[int, int]:
    """Wrong: the last day is never drawn."""
    return hour_of(SecretRandomSource(person, "wrong").below(30 * DAY_SECONDS))


def office_hours(person: bytes) -> tuple[int, int]:
    """Wrong: an hour between 8 and 18 is a fifth likelier."""
    randomness = SecretRandomSource(person, "wrong")
    day, clock = hour_of(randomness.below(31 * DAY_SECONDS))
    return day, 8 + randomness.below(10) if randomness.bernoulli(1, 5) else clock


# -- slots -----------------------------------------------------------------------------------------

FOUR_A_DAY = replace(calendar_of(Unit.EVENT, 3), per_day=4)


def order(person: bytes) -> tuple[int, ...]:
    return tuple(schedule.draw_slot(person, FOUR_A_DAY, 1, answer) for answer in range(4))


def naive_shuffle(person: bytes) -> tuple[int, ...]:
    """Wrong: each place is swapped with any place."""
    randomness, slots = SecretRandomSource(person, "wrong"), list(range(4))
    for place in range(4):
        other = randomness.below(4)
        slots[place], slots[other] = slots[other], slots[place]
    return tuple(slots)


def one_cycle(person: bytes) -> tuple[int, ...]:
    """Wrong: no slot ever stays in its place, as in Sattolo's algorithm."""
    randomness, slots = SecretRandomSource(person, "wrong"), list(range(4))
    for place in range(3, 0, -1):
        other = randomness.below(place)
        slots[place], slots[other] = slots[other], slots[place]
    return tuple(slots)


def rotation(person: bytes) -> tuple[int, ...]:
    """Wrong: each slot as likely as any other, but in a fixed order."""
    start = SecretRandomSource(person, "wrong").below(4)
    return tuple((start + step) % 4 for step in range(4))


# -- cohorts and twins -----------------------------------------------------------------------------

TWIN = replace(calendar_of(Unit.DAY, 3, 1), twin="other")


@cache
def cohort(person: bytes) -> int:
    return schedule.draw_cohort(person, "acme", "spring", 3)


def all_three(person: bytes) -> tuple[int, bool, frozenset[int]]:
    return cohort(person), schedule.is_selected(person, TWIN), answering(person, TWIN)


def modulo_cohort(person: bytes) -> int:
    """Wrong: four bits modulo three."""
    return SecretRandomSource(person, "wrong").below(16) % 3


def biased_twin(person: bytes) -> tuple[int, bool, frozenset[int]]:
    """Wrong: the coin falls on one side in 55 of 100."""
    return (
        cohort(person),
        SecretRandomSource(person, "w").bernoulli(55, 100),
        answering(person, TWIN),
    )


def twin_by_cohort(person: bytes) -> tuple[int, bool, frozenset[int]]:
    """Wrong: a fair coin and fair cohorts, which for one in ten persons agree too well."""
    randomness = SecretRandomSource(person, "wrong")
    number, side = cohort(person), randomness.bernoulli(1, 2)
    if randomness.bernoulli(1, 10) and number < 2:
        side = number == 1
    return number, side, answering(person, TWIN)


def period_by_cohort(person: bytes) -> tuple[int, bool, frozenset[int]]:
    """Wrong: both drawn from one stream of random draws."""
    number = cohort(person)
    return number, schedule.is_selected(person, TWIN), frozenset({number})


# -- all draws -------------------------------------------------------------------------------------


def minute_or_second(unit: str, person: bytes) -> object:
    return getattr(schedule.draw_instant(person, MONTH, 0), unit)


def days_of_two_answers(person: bytes) -> tuple[int, ...]:
    return tuple(schedule.draw_instant(person, MONTH, 0, answer).day for answer in (0, 1))


def cohorts_of_two_draws(person: bytes) -> tuple[int, ...]:
    """Return the cohorts of an experiment in spring, which must not follow into autumn."""
    return tuple(schedule.draw_cohort(person, "acme", draw, 3) for draw in ("spring", "autumn"))


ONE = calendar_of(Unit.DAY, 4, 2)
OTHER = replace(ONE, name="other")


def periods_of_two_collections(person: bytes) -> tuple[frozenset[int], ...]:
    """Return the answering periods of two collections: one's days must not tell another's."""
    return answering(person, ONE), answering(person, OTHER)


CHECKS = {
    **{
        f"{answers} of {periods} answering periods": Check(
            partial(answering, collection=calendar_of(Unit.DAY, periods, answers)),
            subsets(periods, answers),
            6_000,
            (first_periods, off_by_one, modulo, a_run) if (periods, answers) == (6, 3) else (),
        )
        for periods, answers in ((6, 2), (6, 3), (7, 1))
    },
    "hours of a month": Check(hour, HOURS, 10_000, (modulo_second, short_month, office_hours)),
    "minutes": Check(partial(minute_or_second, "minute"), range(60), 6_000),
    "seconds": Check(partial(minute_or_second, "second"), range(60), 6_000),
    "days of two answers": Check(
        days_of_two_answers, list(product(range(1, 32), repeat=2)), 10_000
    ),
    "orders of slots": Check(
        order, list(permutations(range(4))), 8_000, (naive_shuffle, one_cycle, rotation)
    ),
    "cohorts": Check(cohort, range(3), 10_000, (modulo_cohort,)),
    "a thousand cohorts": Check(
        partial(schedule.draw_cohort, app="acme", draw="big", of=1000), range(1000), 10_000
    ),
    "cohort, twin and answering period together": Check(
        all_three,
        list(product(range(3), (False, True), subsets(3, 1))),
        16_000,
        (biased_twin, twin_by_cohort, period_by_cohort),
    ),
    "cohorts of two draws": Check(cohorts_of_two_draws, list(product(range(3), repeat=2)), 6_000),
    "answering periods of two collections": Check(
        periods_of_two_collections, list(product(subsets(4, 2), repeat=2)), 6_000
    ),
}


@pytest.mark.parametrize("name", CHECKS)
def test_every_outcome_is_equally_likely_and_a_wrong_draw_would_be_seen(name: str) -> None:
    check = CHECKS[name]

    assert check.uniform(check.draw)
    assert [wrong.__name__ for wrong in check.wrong if check.uniform(wrong)] == []
