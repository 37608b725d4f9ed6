"""The true answers of all users in columns, by the device's rule `takes = "first"`.

In which periods a user answers is not decided here: a device draws that from its secret.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from veilcount_shared import Collection
from veilcount_shared.periods import Unit

from ..sampling.mixture import Ints
from .campaign import FIRST_TAP, Campaign
from .population import DemoUsers, Flags


@dataclass(frozen=True, slots=True, eq=False)
class TrueAnswers:
    """One collection's answers, a row each."""

    people: Ints
    periods: Ints
    days: Ints
    orders: Ints  # the place of each among the answers of its period
    segments: Ints
    values: Ints  # the true place of a value, or a number of minutes

    def __len__(self) -> int:
        """Return the number of answers."""
        return len(self.people)

    def where(self, chosen: Flags | Ints) -> TrueAnswers:
        """Return some of the rows."""
        return TrueAnswers(*(column[chosen] for column in self._columns()))

    def joined_with(self, other: TrueAnswers) -> TrueAnswers:
        """Return the rows of both."""
        pairs = zip(self._columns(), other._columns(), strict=True)
        return TrueAnswers(*map(np.concatenate, pairs))

    def _columns(self) -> list[Ints]:
        return [getattr(self, each.name) for each in fields(self)]


def true_answers(people: DemoUsers, collection: Collection, campaign: Campaign) -> TrueAnswers:
    """Return the answers of everyone who consents, as if selected in all periods."""
    if collection.unit is Unit.EVENT:
        who, days, orders = _every_walk(people, collection.per_period)
    else:
        who, days = _first_days(people, campaign.periods(collection.unit))
        orders = np.zeros_like(who)
    screens = people.screens[who] if collection.name == FIRST_TAP else np.zeros_like(who)
    return TrueAnswers(
        people=who,
        periods=campaign.periods(collection.unit)[days],
        days=days,
        orders=orders,
        segments=screens,
        values=people.true_values(collection.name, who, days, orders),
    )


def _every_walk(people: DemoUsers, most: int) -> tuple[Ints, Ints, Ints]:
    """Return who walked, on which day, and which of that day's walks each is."""
    walks = np.where(people.consents[:, np.newaxis], people.walks, 0)
    who, days, orders = np.nonzero(np.arange(most) < walks[:, :, np.newaxis])
    return who, days, orders


def _first_days(people: DemoUsers, periods: Ints) -> tuple[Ints, Ints]:
    """Return who used the app in each period, and on which of its days first."""
    used = (people.walks > 0) & people.consents[:, np.newaxis]
    found: list[tuple[Ints, Ints]] = []
    for period in range(int(periods[-1]) + 1):
        (days,) = np.nonzero(periods == period)
        within = used[:, days]
        (who,) = np.nonzero(within.any(axis=1))
        found.append((who, days[within[who].argmax(axis=1)]))
    return np.concatenate([who for who, _ in found]), np.concatenate([day for _, day in found])
