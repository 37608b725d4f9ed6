"""Sensitivities that noise is calibrated to: how much one protected unit can change.

A unit is an event, or one person's day, week, month or campaign. It lies in one period and gives
`contributions` answers there, which the server's slots enforce; so a release over many periods
holds no more of a unit than a release over one. What differs is the person, who is many units:
`person_contributions` times the release's epsilon is what it reveals of all of them together.

Neighbouring data differ in one unit: under "add-remove" it answers or does not; under "substitute"
it gives other answers, as many. With c contributions, each between low and high:

| the query                    | add-remove                 | substitute           |
|------------------------------|----------------------------|----------------------|
| how many hold each value, L1 | c                          | 2 c                  |
| the same, L2 squared         | c^2                        | 2 c^2                |
| how many fulfil a condition  | c                          | c                    |
| the sum of the answers       | c max(abs low, abs high)   | c (high - low)       |
| the sum of 2 x - low - high  | c (high - low)             | 2 c (high - low)     |
| terms of one total, L1       | c total                    | 2 c total            |
| the same, L2 squared         | (c total)^2                | 2 (c total)^2        |

The sum of 2 x - low - high is the one from the middle of the range, doubled to stay whole: its
terms lie between -(high - low) and high - low, so that an answer weighs least whatever it is. Terms
of one total are several sums that each answer adds non-negative terms to, whose total is the same
whatever it is: x - low and high - x. A condition that every answer fulfils is counted like any
other, and leaves under noise only: where n is public, it is not sold.
"""

from __future__ import annotations

from fractions import Fraction

from veilcount_shared import Collection
from veilcount_shared.collection import Adjacency
from veilcount_shared.periods import Unit


def contributions(collection: Collection) -> int:
    """Return how many answers one unit gives at most: an event is one of its day's answers."""
    return 1 if collection.unit is Unit.EVENT else collection.per_day


def person_contributions(collection: Collection, periods: range) -> int:
    """Return how many answers one person gives at most in these periods."""
    return collection.per_day * min(collection.answering, len(periods))


def histogram_sensitivity(collection: Collection) -> int:
    """Return the L1 sensitivity of how many hold each value."""
    return contributions(collection) * (2 if _substitute(collection) else 1)


def squared_histogram_sensitivity(collection: Collection) -> int:
    """Return the square of its L2 sensitivity: all c answers leave one value, and enter another."""
    return contributions(collection) ** 2 * (2 if _substitute(collection) else 1)


def count_sensitivity(collection: Collection) -> int:
    """Return the sensitivity of how many fulfil a condition."""
    return contributions(collection)


def sum_sensitivity(collection: Collection, low: int, high: int) -> int:
    """Return the sensitivity of the sum of answers between low and high."""
    largest = high - low if _substitute(collection) else max(abs(low), abs(high))
    return contributions(collection) * largest


def shared_sensitivity(collection: Collection, total: int) -> int:
    """Return the L1 sensitivity of several sums whose terms add up to a total for each answer."""
    return histogram_sensitivity(collection) * total


def squared_shared_sensitivity(collection: Collection, total: int) -> int:
    """Return the square of its L2 sensitivity: a whole total enters one sum, or leaves another."""
    return squared_histogram_sensitivity(collection) * total**2


def rank_sensitivity(collection: Collection, share: Fraction) -> int:
    """Return how far b (answers below) - a n moves, for a share a / b; likewise of those above."""
    a, b = share.numerator, share.denominator
    return contributions(collection) * (b if _substitute(collection) else max(a, b - a))


def _substitute(collection: Collection) -> bool:
    return collection.adjacency is Adjacency.SUBSTITUTE
