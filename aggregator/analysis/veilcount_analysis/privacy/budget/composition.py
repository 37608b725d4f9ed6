"""Composition of T answers: the plain sum, the optimal bound, and this mechanism's own.

The plain sum holds for any sequence, even an adaptive one, and is what is enforced. The other two
are for a schedule fixed in advance, at a delta, and are for display. A mechanism's own bound uses
that a report often does not tell two inputs apart: its loss is +eps, 0 or -eps, and T losses add up
to a multiple of eps.

The averaging attack is what composition means to someone who sees T answers and guesses. Fresh
noise averages out; a frozen answer is the same answer however often it is seen. The guesser knows
the mechanism and holds both truths equally likely; nobody does better [KOV15, Thm 3.1].

Over several collections of one person there is one total per model and adjacency. Local epsilons
compare data sets that differ in a value, a curator's what its definition says: their sum would
bound neither, so none is formed. Within a total, whoever is in one cohort of a draw is in no other:
over the cohorts the largest sum counts (parallel composition), since they are drawn before any
data; so it is with the questions of a group. A name that had another draw before counts for
everybody: who answered one form may not be who answers the other. Of two paired collections one is
local and one is not: each total has its own.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, inf, nextafter

import numpy as np
from numpy.typing import NDArray

from veilcount_shared import Collection
from veilcount_shared.collection import Adjacency, Cohort, Model
from veilcount_shared.composition import (
    MAX_ANSWERS,
    Overlap,
    basic_composition,
    guessing_probability,
    optimal_composition,
    parallel_composition,
)
from veilcount_shared.mechanisms import Randomizer

from ...mechanisms import handler_of
from .privacy_levels import answers

DELTA = Fraction(1, 10**6)
GRAIN = 10**6  # results are in millionths, rounded up
LOST = 1e-9  # relative: far above what convolutions of MAX_ANSWERS positive terms lose
UNDERFLOW = 1e-40  # far above all that is too small for a float

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedEpsilon:
    """The epsilon of so many answers. None where only the plain sum is shown."""

    answers: int
    delta: Fraction
    plain: Fraction
    optimal: Fraction | None
    specific: Fraction | None


def compose_campaign(collection: Collection, delta: Fraction = DELTA) -> ComposedEpsilon:
    """Return what a person's answers of the whole campaign reveal together."""
    if collection.trust.reveals:
        return _plain(answers(collection), collection.epsilon_user, delta)
    return compose_answers(collection.randomizer, answers(collection), delta)


@lru_cache(maxsize=256)  # the optimal bound is exact: seconds at 5,000 answers
def compose_answers(mechanism: Randomizer, times: int, delta: Fraction = DELTA) -> ComposedEpsilon:
    """Return what so many answers of one mechanism reveal together."""
    plain = mechanism.epsilon * times
    if times > MAX_ANSWERS:
        return _plain(times, plain, delta)
    best = optimal_composition(mechanism.epsilon, times, delta)
    own = specific(mechanism, times, delta)
    return ComposedEpsilon(
        answers=times, delta=delta, plain=plain, optimal=best, specific=min(own, best)
    )


def _plain(times: int, plain: Fraction, delta: Fraction) -> ComposedEpsilon:
    return ComposedEpsilon(answers=times, delta=delta, plain=plain, optimal=None, specific=None)


def specific(mechanism: Randomizer, times: int, delta: Fraction) -> Fraction:
    """Return the least epsilon, in millionths, at which so many answers are (epsilon, delta)-DP."""
    losses, plain = losses_of(mechanism, times), mechanism.epsilon * times
    steps = range(int(plain * GRAIN))
    least = bisect_left(steps, True, key=lambda step: losses.delta(step / GRAIN) <= delta)
    return min(Fraction(least, GRAIN), plain)


@dataclass(frozen=True, slots=True)
class LossDistribution:
    """The distribution of the sum of T losses: of 0, 1, ..., T steps (none below counts)."""

    chances: Floats
    step: float

    def delta(self, epsilon: float) -> float:
        """Return an upper bound on delta at this epsilon."""
        excess = np.arange(len(self.chances)) * self.step - epsilon
        above = excess > 0
        return float(self.chances[above] @ -np.expm1(-excess[above])) * (1 + LOST) + UNDERFLOW


@lru_cache(maxsize=64)
def losses_of(mechanism: Randomizer, times: int) -> LossDistribution:
    """Return the losses of so many answers, between the two inputs that are easiest to distinguish.

    The thresholds keep a hair below e^epsilon, each level of a tree its own. Here every ratio is
    e^epsilon: the true distribution is a mixture of that one and of uninformative reports.
    """
    step = nextafter(float(mechanism.epsilon), inf)
    single = np.mean(
        [_single(overlap, step) for overlap in handler_of(mechanism).overlaps()], axis=0
    )
    chances = np.ones(1)
    for bit in f"{times:b}":
        chances = np.convolve(chances, chances)
        if bit == "1":
            chances = np.convolve(chances, single)
    return LossDistribution(chances[times:], step)


def _single(overlap: Overlap, step: float) -> Floats:
    """Return the probabilities of -1, 0 and 1 steps: a message of the other, or the true input."""
    ratio, own, alone = exp(step), float(overlap.own), float(overlap.alone)
    wrong = alone / (ratio * own + 1 - own)
    right = ratio * wrong
    return np.array([wrong, 1 - right - wrong, right])


SEEN = (1, 7, 30, 90, 365)
FINE = 10**9  # chances are rounded up to so many parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """The chance of a right guess after so many answers, rounded up."""

    answers: int
    fresh: Fraction  # whatever the mechanism, at this epsilon
    mechanism: Fraction  # by this mechanism
    frozen: Fraction


def guessing_curve(mechanism: Randomizer, most: int) -> tuple[Guess, ...]:
    """Return the curve up to a person's number of answers, which is its last point."""
    seen = sorted({*(times for times in SEEN if times < most), min(most, MAX_ANSWERS)})
    return tuple(guessing_chance(mechanism, times) for times in seen)


def guessing_chance(mechanism: Randomizer, times: int) -> Guess:
    """Return one point of the curve: half of 1 + the distance in total variation, delta at 0."""
    fresh = guessing_probability(mechanism.epsilon, times)
    own = (1 + losses_of(mechanism, times).delta(0.0)) / 2
    return Guess(
        answers=times,
        fresh=fresh,
        mechanism=min(fresh, Fraction(ceil(own * FINE), FINE)),
        frozen=guessing_probability(mechanism.epsilon, 1),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossCollectionBudget:
    """What the listed collections can cost one person, each over its whole campaign."""

    collections: tuple[str, ...]
    totals: tuple[Total, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """The epsilons that may be added up: of one model and one adjacency."""

    model: Model
    adjacency: Adjacency
    collections: tuple[str, ...]
    plain: Fraction
    worst: Fraction
    delta: Fraction  # of the sum of epsilons; 0: all are pure
    draws: tuple[Draw, ...]


@dataclass(frozen=True, slots=True)
class Draw:
    """One draw of cohorts or of a group's question, and what each share with a collection costs."""

    draw: str
    of: int
    cohorts: tuple[tuple[int, Fraction], ...]


def compose_collections(
    collections: Mapping[str, Collection], redrawn: Container[str] = frozenset()
) -> CrossCollectionBudget:
    """Return what the collections of one file cost one person; `redrawn` had another draw."""
    groups: dict[tuple[Model, Adjacency], dict[str, Collection]] = {}
    for name, collection in collections.items():
        groups.setdefault((collection.model, collection.epsilon_adjacency), {})[name] = collection
    return CrossCollectionBudget(
        collections=tuple(collections),
        totals=tuple(_total(*key, groups[key], redrawn) for key in sorted(groups, reverse=True)),
    )


def _total(
    model: Model,
    adjacency: Adjacency,
    collections: Mapping[str, Collection],
    redrawn: Container[str],
) -> Total:
    listed = list(collections.values())
    shares = {name: collection.drawn_share for name, collection in collections.items()}
    drawn = {
        name: share for name, share in shares.items() if share is not None and name not in redrawn
    }
    draws = tuple(
        _draw(
            draw, {name: share for name, share in drawn.items() if share.draw == draw}, collections
        )
        for draw in sorted({share.draw for share in drawn.values()})
    )
    everyone = basic_composition(
        budget.epsilon_user for name, budget in collections.items() if name not in drawn
    )
    chosen = basic_composition(
        parallel_composition(cost for _, cost in draw.cohorts) for draw in draws
    )
    return Total(
        model=model,
        adjacency=adjacency,
        collections=tuple(collections),
        plain=basic_composition(budget.epsilon_user for budget in listed),
        worst=everyone + chosen,
        delta=sum((budget.delta or Fraction(0) for budget in listed), Fraction(0)),
        draws=draws,
    )


def _draw(draw: str, shares: Mapping[str, Cohort], collections: Mapping[str, Collection]) -> Draw:
    cohorts: dict[int, Fraction] = {}
    for name, share in shares.items():
        cost = collections[name].epsilon_user
        cohorts[share.number] = cohorts.get(share.number, Fraction(0)) + cost
    of = next(iter(shares.values())).of
    return Draw(draw, of, tuple(sorted(cohorts.items())))
