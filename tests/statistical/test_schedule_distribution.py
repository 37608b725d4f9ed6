"""Every draw of the schedule follows its distribution, and a wrong one would have been seen.

The secrets are hashes of a counter, so that nothing flakes; alpha is one in a million. Each check
is also run on planted wrong distributions, which it must reject at the same alpha and size.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
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
    """Return the secret of one simulated person."""
    return hashlib.sha256(b"schedule law %d" % number).digest()


def p_value(draw: Draw, outcomes: Iterable[Hashable], persons: int) -> float:
    """Return how likely so uneven a count is if every outcome is equally likely (chi-square)."""
    counts = Counter(draw(secret(number)) for number in range(persons))
    possible = set(outcomes)
    if counts.keys() - possible:
        return 0.0
    mean = persons / len(possible)
    distance = sum((counts[each] - mean) ** 2 / mean for each in possible)
    return float(chi2.sf(distance, len(possible) - 1))


def uniform(draw: Draw, outcomes: Iterable[Hashable], persons: int) -> bool:
    """Whether the draw may well be uniform over these outcomes."""
    return p_value(draw, outcomes, persons) > ALPHA


def calendar_of(unit: Unit, days: int, answers: int | None = None) -> Collection:
    """Return a collection of so many days."""
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


# -- answering periods -----------------------------------------------------------------------------


@cache
def answering(person: bytes, collection: Collection) -> frozenset[int]:
    """Return the product's draw."""
    return schedule.draw_answering_periods(person, collection)


def first_periods(person: bytes, collection: Collection) -> frozenset[int]:
    """Wrong: always the first ones."""
    return frozenset(range(collection.answering))


def off_by_one(person: bytes, collection: Collection) -> frozenset[int]:
    """Wrong: Floyd's algorithm with a draw that never reaches the top."""
    randomness = SecretRandomSource(person, "wrong")
    drawn: set[int] = set()
    for top in range(collection.periods - collection.answering, collection.periods):
        period = randomness.below(top) if top else 0
        drawn.add(top if period in drawn else period)
    return frozenset(drawn)


def modulo(person: bytes, collection: Collection) -> frozenset[int]:
    """Wrong: Floyd's algorithm with four bits modulo the number of periods."""
    randomness = SecretRandomSource(person, "wrong")
    drawn: set[int] = set()
    for top in range(collection.periods - collection.answering, collection.periods):
        period = randomness.below(16) % (top + 1)
        drawn.add(top if period in drawn else period)
    return frozenset(drawn)


def a_run(person: bytes, collection: Collection) -> frozenset[int]:
    """Wrong: each period as likely as any other, but only neighbours together."""
    start = SecretRandomSource(person, "wrong").below(collection.periods)
    return frozenset((start + step) % collection.periods for step in range(collection.answering))


SHAPES = [(6, 2), (6, 3), (5, 4), (7, 1)]


def subsets(periods: int, answers: int) -> list[frozenset[int]]:
    """Return all sets of so many periods."""
    return [frozenset(each) for each in combinations(range(periods), answers)]


@pytest.mark.parametrize(("periods", "answers"), SHAPES)
def test_every_set_of_answering_periods_is_equally_likely(periods: int, answers: int) -> None:
    """All subsets of the given size, 10,000 persons."""
    draw = partial(answering, collection=calendar_of(Unit.DAY, periods, answers))

    assert uniform(draw, subsets(periods, answers), 10_000)


@pytest.mark.parametrize("wrong", [first_periods, off_by_one, modulo, a_run])
def test_a_wrong_choice_of_answering_periods_would_be_seen(
    wrong: Callable[[bytes, Collection], frozenset[int]],
) -> None:
    """Three periods of six, 10,000 persons."""
    collection = calendar_of(Unit.DAY, 6, 3)

    assert not uniform(lambda person: wrong(person, collection), subsets(6, 3), 10_000)


# -- instants --------------------------------------------------------------------------------------

MONTH = calendar_of(Unit.MONTH, 31)
HOURS = list(product(range(31), range(24)))
DAY_SECONDS = 24 * 3600


def hour(person: bytes) -> tuple[int, int]:
    """Return day and hour of the product's draw."""
    instant = schedule.draw_instant(person, MONTH, 0)
    return instant.day - 1, instant.hour


def hour_of(second: int) -> tuple[int, int]:
    """Return day and hour of a second of the month."""
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


def test_every_hour_of_a_period_is_equally_likely() -> None:
    """The 744 hours of a month of 31 days, 15,000 persons."""
    assert uniform(hour, HOURS, 15_000)


def test_every_minute_and_second_of_an_hour_is_equally_likely() -> None:
    """Sixty of each, 20,000 persons."""
    instants = partial(schedule.draw_instant, collection=MONTH, period=0)

    assert uniform(lambda person: instants(person).minute, range(60), 20_000)
    assert uniform(lambda person: instants(person).second, range(60), 20_000)


def test_the_instants_of_two_answers_are_independent() -> None:
    """The days of both, 961 pairs, 20,000 persons."""
    days = list(product(range(1, 32), repeat=2))

    assert uniform(
        lambda person: tuple(
            schedule.draw_instant(person, MONTH, 0, answer).day for answer in (0, 1)
        ),
        days,
        20_000,
    )


@pytest.mark.parametrize("wrong", [modulo_second, short_month, office_hours])
def test_a_wrong_choice_of_instants_would_be_seen(wrong: Draw) -> None:
    """At the same 15,000 persons."""
    assert not uniform(wrong, HOURS, 15_000)


# -- slots -----------------------------------------------------------------------------------------

FOUR_A_DAY = replace(calendar_of(Unit.EVENT, 3), per_period=4)


def order(person: bytes) -> tuple[int, ...]:
    """Return the slots of the product's draw, by answer."""
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


def test_every_order_of_slots_is_equally_likely() -> None:
    """The 24 orders of four, 12,000 persons."""
    assert uniform(order, permutations(range(4)), 12_000)


@pytest.mark.parametrize("wrong", [naive_shuffle, one_cycle, rotation])
def test_a_wrong_order_of_slots_would_be_seen(wrong: Draw) -> None:
    """At the same 12,000 persons."""
    assert not uniform(wrong, permutations(range(4)), 12_000)


# -- cohorts and twins -----------------------------------------------------------------------------

TWIN = replace(calendar_of(Unit.DAY, 3, 1), twin="other")


@cache
def cohort(person: bytes) -> int:
    """Return the product's draw of a cohort."""
    return schedule.draw_cohort(person, "acme", "spring", 3)


def all_three(person: bytes) -> tuple[int, bool, frozenset[int]]:
    """Return the product's draws of cohort, twin and answering period."""
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


JOINT = list(product(range(3), (False, True), subsets(3, 1)))


def test_every_cohort_is_equally_likely() -> None:
    """Three of them, 20,000 persons; and 1,000, 30,000 persons."""
    assert uniform(cohort, range(3), 20_000)
    assert uniform(lambda one: schedule.draw_cohort(one, "acme", "big", 1000), range(1000), 30_000)


def test_a_biased_cohort_would_be_seen() -> None:
    """At the same 20,000 persons."""
    assert not uniform(modulo_cohort, range(3), 20_000)


def test_cohort_twin_and_answering_period_are_uniform_and_independent() -> None:
    """All 18 combinations are equally likely, 30,000 persons."""
    assert uniform(all_three, JOINT, 30_000)


@pytest.mark.parametrize("wrong", [biased_twin, twin_by_cohort, period_by_cohort])
def test_a_biased_or_dependent_draw_would_be_seen(wrong: Draw) -> None:
    """At the same 30,000 persons."""
    assert not uniform(wrong, JOINT, 30_000)


def test_two_draws_of_cohorts_are_independent() -> None:
    """An experiment in spring does not follow into autumn: 9 pairs, 20,000 persons."""
    pairs = list(product(range(3), repeat=2))

    assert uniform(
        lambda one: tuple(
            schedule.draw_cohort(one, "acme", draw, 3) for draw in ("spring", "autumn")
        ),
        pairs,
        20_000,
    )


def test_the_answering_periods_of_two_collections_are_independent() -> None:
    """One collection's days do not tell another's: 36 pairs, 20,000 persons."""
    one = calendar_of(Unit.DAY, 4, 2)
    two = replace(one, name="other")

    assert uniform(
        lambda person: (answering(person, one), answering(person, two)),
        product(subsets(4, 2), repeat=2),
        20_000,
    )
