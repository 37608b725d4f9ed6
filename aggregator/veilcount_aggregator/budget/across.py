"""What one person may reveal over several collections: less by cohorts and twins than the sum.

Whoever is in one cohort of a draw is in no other, and answers one of two twins only: over the
choices the largest sum counts, not the sum of all (parallel composition). Both are drawn before any
data, so that it is decided for each person, not hoped for on average.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from veilcount_shared import Collection
from veilcount_shared.composition import basic, parallel


@dataclass(frozen=True, slots=True, kw_only=True)
class Across:
    """What the listed collections can cost one person, each over its whole campaign."""

    collections: tuple[str, ...]
    plain: Fraction
    worst: Fraction
    draws: tuple[Draw, ...]


@dataclass(frozen=True, slots=True)
class Draw:
    """One draw of cohorts: what each cohort that is asked anything costs."""

    draw: str
    of: int
    cohorts: tuple[tuple[int, Fraction], ...]


def across(collections: Mapping[str, Collection]) -> Across:
    """Return what the collections of one file cost one person."""
    asked = list(collections.values())
    draws = tuple(
        _draw(name, asked)
        for name in sorted({each.cohort.draw for each in asked if each.cohort is not None})
    )
    everyone = _together(each for each in asked if each.cohort is None)
    chosen = basic(parallel(cost for _, cost in draw.cohorts) for draw in draws)
    return Across(
        collections=tuple(collections),
        plain=basic(each.epsilon_user for each in asked),
        worst=everyone + chosen,
        draws=draws,
    )


def _draw(name: str, asked: Iterable[Collection]) -> Draw:
    cohorts: dict[int, list[Collection]] = {}
    of = 0
    for each in asked:
        if each.cohort is not None and each.cohort.draw == name:
            of = each.cohort.of
            cohorts.setdefault(each.cohort.number, []).append(each)
    return Draw(name, of, tuple((number, _together(cohorts[number])) for number in sorted(cohorts)))


def _together(asked: Iterable[Collection]) -> Fraction:
    """Return the cost of one cohort's collections: twins share their domain, dates and cohort."""
    pairs: dict[frozenset[str], list[Fraction]] = {}
    for each in asked:
        pair = frozenset((each.name, each.twin or each.name))
        pairs.setdefault(pair, []).append(each.epsilon_user)
    return basic(map(parallel, pairs.values()))
