"""The privacy loss of a window of time: w-event privacy [KPXP14], from the schedule alone.

A person answers in at most so many periods of a window as it touches, and in at most `answers` of
the campaign. A window that begins with a period touches one period less than one that begins at
any moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from veilcount_shared import Collection
from veilcount_shared.periods import Unit

#: periods of the windows that are shown: a day, a week, a month, a year and the like
LENGTHS = {
    Unit.EVENT: (1, 7, 30, 365),
    Unit.DAY: (1, 7, 30, 365),
    Unit.WEEK: (1, 4, 13, 52),
    Unit.MONTH: (1, 3, 12),
    Unit.USER: (),
}
NAMES = {Unit.EVENT: "UTC day", Unit.DAY: "UTC day", Unit.WEEK: "week", Unit.MONTH: "month"}


@dataclass(frozen=True, slots=True)
class WindowEpsilon:
    """The largest epsilon of a window: of whole periods, and of as long a time from any moment."""

    periods: int
    window: str
    epsilon: Fraction
    at_any_moment: Fraction


def window_epsilons(collection: Collection) -> tuple[WindowEpsilon, ...]:
    """Return the windows that are shorter than the campaign, by the collection's adjacency."""
    unit = collection.unit
    return tuple(
        WindowEpsilon(
            length,
            NAMES[unit] if length == 1 else f"{length} {NAMES[unit]}s in a row",
            window_epsilon(collection, length),
            window_epsilon(collection, length + 1),
        )
        for length in LENGTHS[unit]
        if length < collection.periods
    )


def window_epsilon(collection: Collection, periods: int) -> Fraction:
    """Return the largest epsilon of a person within so many periods in a row."""
    return collection.epsilon_within(periods)
