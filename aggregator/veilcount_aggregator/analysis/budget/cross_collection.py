"""Composition over several collections, for one person: one total per model and adjacency.

Local epsilons compare data sets that differ in a value, a curator's what its definition says:
their sum would bound neither, so none is formed. Within a total, whoever is in one cohort of a draw
is in no other: over the cohorts the largest sum counts (parallel composition), since they are drawn
before any data. Of two paired collections one is local and one is not: each total has its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from veilcount_shared import Collection
from veilcount_shared.collection import Adjacency, Model
from veilcount_shared.composition import basic_composition, parallel_composition


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
    draws: tuple[Draw, ...]


@dataclass(frozen=True, slots=True)
class Draw:
    """One draw of cohorts, and what each cohort with a collection costs."""

    draw: str
    of: int
    cohorts: tuple[tuple[int, Fraction], ...]


def compose_collections(collections: Mapping[str, Collection]) -> CrossCollectionBudget:
    """Return what the collections of one file cost one person."""
    groups: dict[tuple[Model, Adjacency], dict[str, Collection]] = {}
    for name, each in collections.items():
        groups.setdefault((each.model, each.epsilon_adjacency), {})[name] = each
    return CrossCollectionBudget(
        collections=tuple(collections),
        totals=tuple(_total(*key, groups[key]) for key in sorted(groups, reverse=True)),
    )


def _total(model: Model, adjacency: Adjacency, collections: Mapping[str, Collection]) -> Total:
    listed = list(collections.values())
    draws = tuple(
        _draw(name, listed)
        for name in sorted({each.cohort.draw for each in listed if each.cohort is not None})
    )
    everyone = basic_composition(each.epsilon_user for each in listed if each.cohort is None)
    chosen = basic_composition(
        parallel_composition(cost for _, cost in draw.cohorts) for draw in draws
    )
    return Total(
        model=model,
        adjacency=adjacency,
        collections=tuple(collections),
        plain=basic_composition(each.epsilon_user for each in listed),
        worst=everyone + chosen,
        draws=draws,
    )


def _draw(name: str, listed: Iterable[Collection]) -> Draw:
    cohorts: dict[int, Fraction] = {}
    of = 0
    for each in listed:
        if each.cohort is not None and each.cohort.draw == name:
            of, number = each.cohort.of, each.cohort.number
            cohorts[number] = cohorts.get(number, Fraction(0)) + each.epsilon_user
    return Draw(name, of, tuple(sorted(cohorts.items())))
