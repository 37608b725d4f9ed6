"""When a person responds, in which slot, under which pseudonym: from secret and calendar alone.

`schedule.json` pins the draws themselves, and `test_schedule_distribution` tests that those of
other secrets, series and experiments are independent.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial
from unittest.mock import patch

import pytest

from veilcount_client.testing import SeededRandomSource
from veilcount_shared import schedule
from veilcount_shared.collection import (
    Adjacency,
    Cohort,
    Collection,
    Linkage,
    Model,
    parse_collections,
)
from veilcount_shared.definition_record import QuestionGroup
from veilcount_shared.periods import Unit
from veilcount_shared.randomness import RandomSource

from .definition_harness import calendar_of, definition_file, no_values_file

SECRET = bytes(range(32))
SECRETS = [number.to_bytes(32, "big") for number in range(60)]


MONTHLY = calendar_of(Unit.MONTH, "2026-12-01", "2027-12-01")
DAILY = calendar_of(Unit.DAY, "2026-12-01", "2027-03-01")
EVENTS = calendar_of(Unit.EVENT, "2026-12-01", "2027-03-01", per_day=5)


# -- answering periods -----------------------------------------------------------------------------


@pytest.mark.parametrize(("answers", "periods"), [(1, 1), (45, 45), (None, 90)])
def test_a_person_answers_in_exactly_as_many_periods_as_allowed(
    answers: int | None, periods: int
) -> None:
    """In all of them by default."""
    collection = replace(DAILY, answers=answers)
    drawn = [schedule.draw_answering_periods(secret, collection) for secret in SECRETS]

    assert {len(each) for each in drawn} == {periods}
    assert all(each <= set(range(90)) for each in drawn)


# -- instants --------------------------------------------------------------------------------------


def test_the_answers_of_a_period_have_different_instants_in_it_on_whole_seconds() -> None:
    for period in range(EVENTS.periods):
        instants = [schedule.draw_instant(SECRET, EVENTS, period, answer) for answer in range(5)]

        assert {schedule.period_at(EVENTS, instant) for instant in instants} == {period}
        assert {instant.microsecond for instant in instants} == {0}
        assert len(set(instants)) == 5
        assert instants[0] == schedule.draw_instant(SECRET, EVENTS, period)  # the default


# -- slots -----------------------------------------------------------------------------------------


def test_the_answers_of_a_period_take_its_slots_in_an_order_of_its_own() -> None:
    """A slot number does not reveal how many answers came before."""
    orders = [
        tuple(schedule.draw_slot(SECRET, EVENTS, period, answer) for answer in range(5))
        for period in range(90)
    ]

    assert {tuple(sorted(order)) for order in orders} == {(0, 1, 2, 3, 4)}
    assert len(set(orders)) > 50


def test_slots_of_a_linked_campaign_are_each_used_once() -> None:
    linked = replace(EVENTS, linkage=Linkage.COLLECTION)
    slots = [
        [schedule.draw_slot(SECRET, linked, p, answer) for answer in range(5)] for p in range(90)
    ]

    assert sorted(slot for each in slots for slot in each) == list(range(linked.slots))
    assert all({slot // 5 for slot in each} == {period} for period, each in enumerate(slots))


# -- pseudonyms ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("linkage", "different"), [(Linkage.COLLECTION, 1), (Linkage.PERIOD, 10), (Linkage.NONE, 20)]
)
def test_a_pseudonym_changes_as_the_linkage_states(linkage: Linkage, different: int) -> None:
    """Of the first ten periods, each derived twice."""
    collection, randomness = replace(DAILY, linkage=linkage), SeededRandomSource(1)
    drawn = [
        schedule.derive_pseudonym(SECRET, collection, period, randomness)
        for period in range(10)
        for _ in range(2)
    ]

    assert len(set(drawn)) == different
    assert {len(each) for each in drawn} == {16}


def test_a_fresh_pseudonym_is_random_in_every_byte() -> None:
    collection, randomness = replace(DAILY, linkage=Linkage.NONE), SeededRandomSource(1)
    drawn = [schedule.derive_pseudonym(SECRET, collection, 0, randomness) for _ in range(260)]

    assert set(b"".join(drawn)) == set(range(256))


# -- selection into twins and cohorts -------------------------------------------------------------

NEAR = replace(MONTHLY, name="near", twin="far")
FAR = replace(
    MONTHLY,
    name="far",
    twin="near",
    model=Model.CENTRAL,
    epsilon=None,
    budget=Fraction(1),
    adjacency=Adjacency.ADD_REMOVE,
)
COHORTS = [replace(MONTHLY, cohort=Cohort("spring", 3, number)) for number in range(3)]


def selected(*collections: Collection) -> list[tuple[bool, ...]]:
    """Return for each person which of the collections select them."""
    return [
        tuple(schedule.is_selected(secret, collection) for collection in collections)
        for secret in SECRETS
    ]


def test_a_person_is_selected_by_exactly_one_cohort_of_a_draw_for_all_its_collections() -> None:
    one_of_three = {(True, False, False), (False, True, False), (False, False, True)}
    other = replace(DAILY, name="p", cohort=COHORTS[1].cohort)

    assert set(selected(*COHORTS)) == one_of_three
    assert selected(COHORTS[1]) == selected(other)


def test_the_draw_between_twins_is_the_one_of_the_protocol_and_outlives_a_redefinition() -> None:
    """Its purpose is `twin`, the app and both names, sorted: else both could select a person."""
    sources = [schedule.SecretRandomSource(one, "twin", "acme", "far", "near") for one in SECRETS]
    near = [source.below(2) == 1 for source in sources]
    changed = replace(NEAR, epsilon=Fraction(2), question="Is it still?")

    assert selected(NEAR, changed, FAR) == [(each, each, not each) for each in near]


def test_a_twin_within_a_cohort_selects_its_share_of_the_cohort() -> None:
    cohort = Cohort("spring", 2, 0)
    both = selected(replace(NEAR, cohort=cohort), replace(FAR, cohort=cohort))
    alone = selected(replace(MONTHLY, cohort=cohort))

    assert [(any(each),) for each in both] == alone
    assert {sum(each) for each in both} == {0, 1}


@pytest.mark.parametrize("secret", [b"", bytes(31), bytes(33)])
def test_a_secret_of_another_length_is_refused(secret: bytes) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        schedule.draw_answering_periods(secret, replace(MONTHLY, answers=3))


# -- the questions of a group ----------------------------------------------------------------------

HABITS = QuestionGroup("habits", ("a", "b", "c"), "ab" * 32)
SPORTS = QuestionGroup("sports", ("d", "e", "f"), "cd" * 32)
ROOTS = [number.to_bytes(32, "big") for number in range(9_000)]


class _FirstWord(RandomSource):
    """A source of one word: what is rejected raises."""

    def __init__(self, word: int) -> None:
        self._words = iter([word])

    def word(self) -> int:
        return next(self._words)


def draws_of_words(members: int) -> Counter[str]:
    """Count what every word draws that is not rejected, by its highest bits: exactly."""
    group = QuestionGroup("habits", tuple(map(str, range(members))), "ab" * 32)
    bits, drawn = (members - 1).bit_length(), Counter[str]()
    for word in range(1 << bits):
        source = partial(_FirstWord, word << 64 - bits)
        with (
            patch.object(schedule, "SecretRandomSource", lambda *_, source=source: source()),
            suppress(StopIteration, RuntimeError),
        ):
            drawn[schedule.draw_question(SECRET, group)] += 1
    return drawn


def test_each_question_of_a_group_is_drawn_by_as_many_words() -> None:
    for members in range(2, 101):
        assert draws_of_words(members) == dict.fromkeys(map(str, range(members)), 1)


def test_a_remainder_in_place_of_a_rejection_is_detected() -> None:
    """Planted: the same bits of the word, modulo the number of questions."""

    def by_remainder(source: RandomSource, n: int) -> int:
        return (source.word() >> 64 - (n - 1).bit_length()) % n

    with patch.object(RandomSource, "below", by_remainder):
        assert max(draws_of_words(3).values()) == 2


def pairs_drawn() -> float:
    """Return chi-square of the pairs of two groups' questions against even ones, of 8 degrees."""
    pairs = Counter(
        (schedule.draw_question(root, HABITS), schedule.draw_question(root, SPORTS))
        for root in ROOTS
    )
    even = len(ROOTS) / 9
    return sum(
        (pairs[first, second] - even) ** 2 / even
        for first in HABITS.questions
        for second in SPORTS.questions
    )


def test_two_groups_are_drawn_independently() -> None:
    """A right draw is above 42.7 once in a million (8 degrees of freedom); the roots are fixed."""
    assert pairs_drawn() < 42.7


def test_one_draw_for_two_groups_is_detected() -> None:
    """Planted: the digest is not in the purpose."""
    one_purpose = partial(schedule.SecretRandomSource)

    with patch.object(
        schedule, "SecretRandomSource", lambda secret, name, *_: one_purpose(secret, name)
    ):
        assert pairs_drawn() > 42.7


def test_a_change_of_any_question_draws_all_persons_of_its_group_again() -> None:
    """As often another question as by chance: 2 of 3, within five standard errors (6e-7)."""
    text = "".join(
        definition_file("boolean = true").replace("[q]", f"[{name}]").replace('app = "acme"', "")
        for name in HABITS.questions
    )
    group = '\n[group.habits]\nquestions = ["a", "b", "c"]\n'
    before, after = (
        parse_collections(f'app = "acme"\n{lines}{group}', no_values_file)
        for lines in (text, text.replace("[b]", "[b]\npurpose = 'why'"))
    )
    old, new = before["a"].group, after["a"].group
    assert old is not None
    assert new is not None
    changed = sum(
        schedule.draw_question(root, old) != schedule.draw_question(root, new) for root in ROOTS
    )

    assert {name for name in before if before[name].fingerprint == after[name].fingerprint} == set()
    assert abs(changed / len(ROOTS) - 2 / 3) < 5 * (2 / 9 / len(ROOTS)) ** 0.5
