"""Attackers: what they conclude about one person from a release."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import comb, expm1, tanh

from veilcount_shared.composition import guessing_probability

from ..aggregator.releases.release_fixtures import ADD_REMOVE, ask
from .claim_harness import claim
from .exact_noise import clamped
from .test_definitions import events
from .test_which_of_two import success, survey

LAPLACE = "aggregator/analysis/veilcount_analysis/releases/discrete_laplace.py"
COMPOSITION = "shared/veilcount_shared/composition.py"
HALF, ONE = Fraction(1, 2), Fraction(1)
RECORDS, SHARE = 4, Fraction(1, 3)  # of the population who say yes


@claim(
    COMPOSITION,
    lambda epsilon: float(guessing_probability(epsilon, 1)),
    lambda epsilon: 0.5 + expm1(epsilon) / 2,
    lambda _: 1.0,
)
def test_a_query_that_singles_somebody_out_reveals_no_more_than_epsilon(
    stated: Callable[[Fraction], float], *, holds: bool
) -> None:
    """An answer that a query singles out is guessed from the noised count with probability
    1 / (1 + e^-epsilon) = (1 + tanh(epsilon / 2)) / 2 at best: 52.5 % at epsilon 0.1 [Wasserman &
    Zhou 2010].

    The best attacker, over the noise's distribution. Planted: (1 + (e^epsilon - 1)) / 2, a loose
    bound; and the count without noise.
    """
    found = []
    for epsilon in (Fraction(1, 10), HALF, ONE):
        right = success(ask(survey(ADD_REMOVE), "age >= 1", epsilon), 0, 2, 1)
        assert abs(right - (1 + tanh(epsilon / 2)) / 2) < 1e-9
        found.append(abs(right - stated(epsilon)) < 1e-8)

    assert all(found) == holds


Release = Callable[[int], list[Fraction]]


def noised(count: int) -> list[Fraction]:
    return clamped(HALF, RECORDS, count)


def exact(count: int) -> list[Fraction]:
    return [Fraction(y == count) for y in range(RECORDS + 1)]


def seen(release: Release, *, member: bool) -> list[Fraction]:
    """Return the chances of all (target's answer, release), of one of the records or of nobody."""
    drawn = RECORDS - member
    return [
        (SHARE if answer else 1 - SHARE)
        * sum(
            comb(drawn, yes) * SHARE**yes * (1 - SHARE) ** (drawn - yes) * release(yes + own)[y]
            for yes in range(drawn + 1)
        )
        for answer in (0, 1)
        for own in [answer * member]
        for y in range(RECORDS + 1)
    ]


@claim(LAPLACE, noised, exact, lambda count: clamped(HALF**4, RECORDS, count))
def test_membership_is_inferred_within_epsilon(stated: Release, *, holds: bool) -> None:
    """Whatever an attacker takes for a sign that a person is in the data is at most e^epsilon times
    as likely if the person is in it as if not, and the reverse [Yeom, Giacomelli,
    Fredrikson & Jha 2018].

    All sets of signs in a count of four records of a population, at epsilon = ln 2. Planted: no
    noise, and noise of four times the epsilon.
    """
    member, stranger = (seen(stated, member=member) for member in (True, False))
    within = [
        sum(one[sign] for sign in signs) <= sum(other[sign] for sign in signs) / HALF
        for signs in events(list(range(len(member))))
        for one, other in ((member, stranger), (stranger, member))
    ]

    assert sum(member) == sum(stranger) == 1
    assert all(within) == holds
