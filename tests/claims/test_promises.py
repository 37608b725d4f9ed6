"""What the definition carries over to: groups, functions, several answers, several people."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.claims.databases import ONE, ZERO, Distribution, image, joint, ratio
from tests.enumeration import enumerate_distribution
from veilcount_shared.composition import basic_composition, group_privacy, parallel_composition
from veilcount_shared.epsilon import exp_lower
from veilcount_shared.mechanisms import ProjectiveGeometry, SquareWave, SubsetSelection

HALF, TWO = Fraction(1, 2), Fraction(2)
MECHANISMS = [
    SubsetSelection.for_epsilon(ONE, 2, 1),
    SubsetSelection.for_epsilon(ONE, 4, 1),
    SubsetSelection.for_epsilon(HALF, 4, 2),
    ProjectiveGeometry.for_epsilon(ONE, 4, 2, 3),
    SquareWave.for_epsilon(ONE, 4, 2),
]


def sent(mechanism: SubsetSelection | ProjectiveGeometry | SquareWave, x: int) -> Distribution:
    """The distribution of an input's message: the device's own code, over every outcome."""
    return dict(enumerate_distribution(lambda randomness: mechanism.randomize(x, randomness)))


def bounded(found: Fraction | None) -> Fraction:
    """A ratio that must exist."""
    assert found is not None
    return found


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_group_of_k_is_promised_k_epsilon(k: int) -> None:
    """Group privacy: whatever k people answer together, the outcome's odds move by e^(k eps).

    And it is no less: all of them at once reach the product.
    """
    bit = SubsetSelection.for_epsilon(ONE, 2, 1)
    single = bounded(ratio(sent(bit, 0), sent(bit, 1)))
    together = bounded(ratio(joint(*[sent(bit, 0)] * k), joint(*[sent(bit, 1)] * k)))

    assert together == single**k <= exp_lower(group_privacy(ONE, k))
    assert together > exp_lower(group_privacy(ONE, k) - Fraction(1, 1000))


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_no_function_of_a_message_reveals_more_than_the_message(
    mechanism: SubsetSelection | ProjectiveGeometry | SquareWave,
) -> None:
    """Post-processing is free: every function of it onto two or three outcomes."""
    distributions = [sent(mechanism, 0), sent(mechanism, 1)]
    messages = sorted(distributions[0])
    before = bounded(ratio(*distributions))
    for outcomes in (2, 3):
        for values in product(range(outcomes), repeat=len(messages)):
            function = dict(zip(messages, values, strict=True))
            after = bounded(ratio(*(image(each, function.__getitem__) for each in distributions)))

            assert after <= before


def test_noise_of_its_own_does_not_help_a_reader_either() -> None:
    """Post-processing may draw random draws, as long as they know nothing of the data."""
    first, second = SubsetSelection.for_epsilon(ONE, 2, 1), SubsetSelection.for_epsilon(TWO, 2, 1)
    before = bounded(ratio(sent(first, 0), sent(first, 1)))
    again = [
        image(
            {
                (one, two): p * q
                for one, p in sent(first, x).items()
                for two, q in sent(second, one).items()
            },
            itemgetter(1),
        )
        for x in range(2)
    ]

    assert bounded(ratio(again[0], again[1])) < before


@pytest.mark.parametrize(
    ("one", "two"), [(MECHANISMS[0], MECHANISMS[1]), (MECHANISMS[2], MECHANISMS[4])]
)
def test_several_answers_of_one_person_add_up(
    one: SubsetSelection | SquareWave, two: SubsetSelection | SquareWave
) -> None:
    """Sequential composition: together they are as revealing as the sum, and no less."""
    apart = [bounded(ratio(sent(each, 0), sent(each, each.inputs - 1))) for each in (one, two)]
    together = bounded(
        ratio(
            joint(sent(one, 0), sent(two, 0)),
            joint(sent(one, one.inputs - 1), sent(two, two.inputs - 1)),
        )
    )

    assert together == apart[0] * apart[1]
    assert together <= exp_lower(basic_composition([one.epsilon, two.epsilon]))


def test_answers_of_several_people_do_not() -> None:
    """Parallel composition: who answers one of two questions only changes one of two outcomes."""
    first, second = SubsetSelection.for_epsilon(ONE, 2, 1), SubsetSelection.for_epsilon(TWO, 2, 1)
    nobody_else = sent(first, 0)
    only_first = bounded(
        ratio(joint(sent(first, 0), sent(second, 1)), joint(sent(first, 1), sent(second, 1)))
    )
    only_second = bounded(
        ratio(joint(nobody_else, sent(second, 0)), joint(nobody_else, sent(second, 1)))
    )

    assert max(only_first, only_second) <= exp_lower(parallel_composition([ONE, TWO]))
    assert only_first * only_second > exp_lower(parallel_composition([ONE, TWO]))


@st.composite
def distributions(draw: st.DrawFn) -> list[Distribution]:
    """Three distributions over the same four outcomes, all of them possible."""
    found: list[Distribution] = []
    for _ in range(3):
        weights = draw(st.lists(st.integers(1, 50), min_size=4, max_size=4))
        found.append({x: Fraction(w, sum(weights)) for x, w in enumerate(weights)})
    return found


@given(distributions())
def test_being_indistinguishable_is_transitive_at_a_price(three: list[Distribution]) -> None:
    """If A is within e^x of B and B within e^y of C, then A is within e^(x + y) of C.

    So k steps of epsilon are k epsilon: the ratios multiply.
    """
    first, second, third = three
    near, far = bounded(ratio(first, second)), bounded(ratio(second, third))

    assert bounded(ratio(first, third)) <= near * far


@given(distributions())
def test_zero_delta_is_the_distance_in_total_variation(three: list[Distribution]) -> None:
    """(0, delta): the least delta that holds for every event is half the sum of all differences."""
    one, two, _ = three
    events = product((False, True), repeat=4)
    worst = max(
        sum((one[x] - two[x] for x, held in enumerate(event) if held), ZERO) for event in events
    )

    assert worst == sum((abs(one[x] - two[x]) for x in range(4)), ZERO) / 2
