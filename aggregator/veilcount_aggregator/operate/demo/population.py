"""The simulated population: its users, when they use the app, and their true values.

The true values stay in this process and follow from the seed. They change over the months: ever
more maps are dark, and ever more walkers come by train. Taps differ by home screen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from veilcount_analysis.mechanisms.sampling import Floats, Ints
from veilcount_shared import Collection
from veilcount_shared.periods import Unit

from .campaign import SCREENS, TRAILS, Campaign, Question

Flags = NDArray[np.bool_]

CONSENT = 0.85
FROM_THE_START = 0.55  # have the app on the first day; the others get it later
WEEKDAY, WEEKEND = 0.22, 0.38  # the chance that somebody walks on a day
SECOND_WALK = 0.25
SATURDAY = 5

DARK = (0.28, 0.48)  # at the beginning, and today
TAPS = {  # resume a walk, search, nearby, saved walks, friends, weather
    "list": (0.34, 0.22, 0.12, 0.18, 0.06, 0.08),
    "map": (0.24, 0.14, 0.34, 0.14, 0.06, 0.08),
}
WAYS = (  # car, train, bus, bicycle, on foot: at the beginning, and today
    (0.52, 0.16, 0.12, 0.12, 0.08),
    (0.42, 0.27, 0.12, 0.11, 0.08),
)
ZIPF = 1.1
STROLL, HIKE = (45.0, 14.0), (250.0, 60.0)  # minutes: mean and standard deviation
HIKES = (0.15, 0.55)  # of all walks, on a weekday and on a weekend
SHORTEST, LONGEST = 1, 480


@dataclass(frozen=True, slots=True, eq=False)
class DemoUsers:
    """All users, by number, with a true value for each question, user and day."""

    consents: Flags
    joined: Ints  # the day on which each got the app
    screens: Ints  # the home screen of each
    walks: Ints  # (person, day): how many walks, and so whether the app is open
    _dark_since: Ints
    _by_period: Mapping[str, tuple[Ints, Ints]]  # the period of each day; (person, period): a value
    _minutes: Ints  # (person, day, walk)

    @classmethod
    def draw(cls, size: int, campaign: Campaign, generator: Generator) -> DemoUsers:
        """Draw so many users."""
        days, weekend = campaign.days, _weekends(campaign)
        late = generator.integers(1, days, size=size)
        joined = np.where(generator.random(size) < FROM_THE_START, 0, late)
        screens = generator.integers(len(SCREENS), size=size)
        weeks, months = campaign.periods[Unit.WEEK], campaign.periods[Unit.MONTH]
        ways = _ways(size, int(months[-1]) + 1, generator)
        return cls(
            consents=generator.random(size) < CONSENT,
            joined=joined,
            screens=screens,
            walks=_walks(joined, weekend, generator),
            _dark_since=_dark_since(size, days, generator),
            _by_period={
                Question.FIRST_TAP: (weeks, _taps(screens, int(weeks[-1]) + 1, generator)),
                Question.TRAIL: (weeks, _trails(size, int(weeks[-1]) + 1, generator)),
                Question.WAY_THERE: (months, ways),
                Question.WAY_THERE_CENTRAL: (months, ways),
            },
            _minutes=_minutes(size, weekend, generator),
        )

    def __len__(self) -> int:
        """Return the number of users."""
        return len(self.consents)

    def true_values(self, name: str, people: Ints, days: Ints, walks: Ints) -> Ints:
        """Return the true values of these people on these days, after these of the day's walks.

        Each is the place of a value in the question's list, or a number of minutes.
        """
        if name == Question.DARK_MAP:
            return (days >= self._dark_since[people]).astype(np.int64)
        if name == Question.WALK_MINUTES:
            return self._minutes[people, days, walks].astype(np.int64)
        period, values = self._by_period[name]
        return values[people, period[days]]


def _weekends(campaign: Campaign) -> Flags:
    return np.array([campaign.day(each).weekday() >= SATURDAY for each in range(campaign.days)])


def _walks(joined: Ints, weekend: Flags, generator: Generator) -> Ints:
    """Return how often each person walks on each day: never before they have the app."""
    shape = len(joined), len(weekend)
    out = generator.random(shape, np.float32) < np.where(weekend, WEEKEND, WEEKDAY)
    twice = generator.random(shape, np.float32) < SECOND_WALK
    out &= np.arange(len(weekend)) >= joined[:, np.newaxis]
    return (out * (1 + twice)).astype(np.int8)


def _dark_since(size: int, days: int, generator: Generator) -> Ints:
    """Return the day from which on each map is dark; some are from the start."""
    first, last = DARK
    turns = (generator.random(size) - first) / (last - first) * days
    return np.ceil(np.maximum(turns, 0)).astype(np.int64)


def _taps(screens: Ints, weeks: int, generator: Generator) -> Ints:
    """Return the first tap of each person in each week, by home screen."""
    distributions = np.array([np.cumsum(TAPS[screen]) for screen in SCREENS])[screens]
    drawn = generator.random((len(screens), weeks))
    return _drawn(distributions[:, np.newaxis, :], drawn)


def _trails(size: int, weeks: int, generator: Generator) -> Ints:
    """Return each person's trail of each week, by a Zipf distribution."""
    distribution = np.cumsum(np.arange(1, len(TRAILS) + 1) ** -ZIPF)
    drawn: Floats = generator.random((size, weeks))
    ranks: Ints = np.searchsorted(distribution / distribution[-1], drawn)
    by_rank: Ints = generator.permutation(len(TRAILS))
    return by_rank[np.minimum(ranks, len(TRAILS) - 1)]


def _ways(size: int, months: int, generator: Generator) -> Ints:
    """Return how each person gets there in each month; some change over time."""
    begin, end = (np.array(distribution) for distribution in WAYS)
    shares = np.linspace(0, 1, months)[:, np.newaxis]
    distributions = np.cumsum(begin * (1 - shares) + end * shares, axis=1)
    return _drawn(distributions, np.repeat(generator.random((size, 1)), months, axis=1))


def _drawn(distributions: Floats, drawn: Floats) -> Ints:
    """Return for each number of [0, 1) its place in a cumulative distribution."""
    places = (drawn[..., np.newaxis] >= distributions).sum(axis=-1)
    found: Ints = np.minimum(places, distributions.shape[-1] - 1)  # the sum may be just below 1
    return found


def _minutes(size: int, weekend: Flags, generator: Generator) -> Ints:
    """Return how long each walk takes: strolls on most days, hikes on weekends."""
    shape = size, len(weekend), 2
    share = np.where(weekend, HIKES[1], HIKES[0])[:, np.newaxis]
    hikes = generator.random(shape, np.float32) < share
    middle, spread = (
        np.where(hikes, hike, stroll) for stroll, hike in zip(STROLL, HIKE, strict=True)
    )
    taken = middle + spread * generator.standard_normal(shape, np.float32)
    return np.clip(np.rint(taken), SHORTEST, LONGEST).astype(np.int16)


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
    """Return the answers of everyone who consents, as if selected in all periods.

    They follow the device's rule `takes = "first"`. In which periods a user answers is not decided
    here: a device draws that from its secret.
    """
    if collection.unit is Unit.EVENT:
        who, days, orders = _every_walk(people, collection.per_period)
    else:
        who, days = _first_days(people, campaign.periods[collection.unit])
        orders = np.zeros_like(who)
    screens = people.screens[who] if collection.name == Question.FIRST_TAP else np.zeros_like(who)
    return TrueAnswers(
        people=who,
        periods=campaign.periods[collection.unit][days],
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
