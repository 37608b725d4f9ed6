"""What central releases reveal of one person, over all periods and collections of an app.

A person answers in at most A periods, with at most c answers in each. In epsilon, what one unit of
a period loses is what the period spent, so a person loses at most c times the A largest of these.
In rho, each period is charged for a person's units already (`price`): the A largest in sum.

Over collections, epsilons add up, and so do rhos; a rho is converted once, at the end. The bound
for ever takes whole budgets instead of what was spent. It also holds if each release was chosen
after the results of all others: the loss of the pure part is at most its sum whatever happens, and
the moments of the other part are those of its budget, which was fixed before [WRRW23].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from veilcount_shared import Collection
from veilcount_shared.collection import Adjacency

from .price import Accounting, conversion_delta, period_budget
from .zcdp import epsilon_of_rho


@dataclass(frozen=True, slots=True)
class PersonLoss:
    """The loss of one person by one adjacency: so far, and at most for ever."""

    adjacency: Adjacency
    collections: tuple[str, ...]
    epsilon: Fraction  # spent of budgets in epsilon
    rho: Fraction  # spent of budgets in rho
    most_epsilon: Fraction  # all budgets, with rho converted
    delta: Fraction  # that `most_epsilon` has; 0: no budget is in rho


def person_spent(collection: Collection, spent: Iterable[Fraction]) -> Fraction:
    """Return what one person lost by the releases of a series; `spent`: by each period."""
    largest = sum(sorted(spent, reverse=True)[: collection.answering], Fraction(0))
    in_epsilon = Accounting.of_collection(collection) is Accounting.EPSILON
    return largest * (collection.per_day if in_epsilon else 1)


def person_losses(
    spent: Mapping[Collection, Sequence[Fraction]], current: Iterable[Collection]
) -> list[PersonLoss]:
    """Return the losses by adjacency.

    `spent` has each series' periods; `current`, whose budgets can still be spent, are among them.
    """
    open_ = set(current)
    by_adjacency: dict[Adjacency, list[Collection]] = {}
    for collection in spent:
        by_adjacency.setdefault(collection.epsilon_adjacency, []).append(collection)
    return [
        _loss(adjacency, {collection: spent[collection] for collection in series}, open_)
        for adjacency, series in sorted(by_adjacency.items())
    ]


def _loss(
    adjacency: Adjacency, spent: Mapping[Collection, Sequence[Fraction]], current: set[Collection]
) -> PersonLoss:
    so_far = {
        collection: person_spent(collection, periods) for collection, periods in spent.items()
    }
    most = {
        collection: max(
            so_far[collection], _whole_budget(collection) if collection in current else Fraction(0)
        )
        for collection in spent
    }
    # one chance for each series: their deltas add up, and the conversion uses them all
    converting = sum(map(conversion_delta, spent), Fraction(0))
    in_rho = _sum(most, Accounting.RHO)
    converted = epsilon_of_rho(in_rho, converting) if in_rho else Fraction(0)
    return PersonLoss(
        adjacency,
        tuple(dict.fromkeys(collection.name for collection in spent)),
        _sum(so_far, Accounting.EPSILON),
        _sum(so_far, Accounting.RHO),
        _sum(most, Accounting.EPSILON) + converted,
        sum((collection.delta or Fraction(0) for collection in spent), Fraction(0)),
    )


def _whole_budget(collection: Collection) -> Fraction:
    return person_spent(collection, [period_budget(collection)] * collection.periods)


def _sum(figures: Mapping[Collection, Fraction], unit: Accounting) -> Fraction:
    wanted = (
        figure
        for collection, figure in figures.items()
        if Accounting.of_collection(collection) is unit
    )
    return sum(wanted, Fraction(0))
