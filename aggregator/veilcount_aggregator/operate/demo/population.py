"""The simulated population: its users, when they use the app, and their true answers.

The true values stay in this process and follow from the seed. They change over the months: ever
more maps are dark, and ever more walkers come by train. Taps differ by home screen.
"""

from __future__ import annotations

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
    """All users, by number."""

    consents: Flags
    screens: Ints  # the home screen of each
    walks: Ints  # (person, day): how many walks, and so whether the app is open

    @classmethod
    def draw(cls, size: int, campaign: Campaign, generator: Generator) -> DemoUsers:
        """Draw so many users, who walk on no day before they have the app."""
        days = np.arange(campaign.days)
        late = generator.integers(1, campaign.days, size=size)
        joined = np.where(generator.random(size) < FROM_THE_START, 0, late)
        chance = np.where(_weekends(campaign), WEEKEND, WEEKDAY)
        out = generator.random((size, campaign.days), np.float32) < chance
        twice = generator.random(out.shape, np.float32) < SECOND_WALK
        return cls(
            consents=generator.random(size) < CONSENT,
            screens=generator.integers(len(SCREENS), size=size),
            walks=((out & (days >= joined[:, np.newaxis])) * (1 + twice)).astype(np.int8),
        )

    def __len__(self) -> int:
        """Return the number of users."""
        return len(self.consents)


def _weekends(campaign: Campaign) -> Flags:
    return np.array([campaign.day(number).weekday() >= SATURDAY for number in range(campaign.days)])


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

    def __add__(self, other: TrueAnswers) -> TrueAnswers:
        """Return the rows of both."""
        pairs = zip(self._columns(), other._columns(), strict=True)
        return TrueAnswers(*map(np.concatenate, pairs))

    def _columns(self) -> list[Ints]:
        return [getattr(self, field_.name) for field_ in fields(self)]


def draw_answers(
    users: DemoUsers, collection: Collection, campaign: Campaign, generator: Generator
) -> TrueAnswers:
    """Draw the answers of everyone who consents, as if selected in all periods.

    They follow the device's rule `takes = "first"`. In which periods a user answers is not decided
    here: a device draws that from its secret.
    """
    period_of = campaign.periods[collection.unit]
    walks = np.where(users.consents[:, np.newaxis], users.walks, 0)
    if collection.unit is Unit.EVENT:
        people, days, orders = np.nonzero(np.arange(collection.per_day) < walks[:, :, np.newaxis])
    else:
        people, days = _first_days(walks, period_of)
        orders = np.zeros_like(people)
    segmented = collection.name == Question.FIRST_TAP
    segments = users.screens[people] if segmented else np.zeros_like(people)
    answers = TrueAnswers(people, period_of[days], days, orders, segments, orders)
    values = _values(collection.name, answers, campaign, generator)
    return TrueAnswers(people, answers.periods, days, orders, segments, values)


def _first_days(walks: Ints, period_of: Ints) -> tuple[Ints, Ints]:
    """Return who used the app in each period, and on which of its days first."""
    people, days = np.nonzero(walks)
    periods = people * (period_of[-1] + 1) + period_of[days]
    _, first = np.unique(periods, return_index=True)
    return people[first], days[first]


def _values(name: str, answers: TrueAnswers, campaign: Campaign, generator: Generator) -> Ints:
    """Draw the true value of each answer, by the share of the campaign that has passed."""
    passed = (answers.days / campaign.days)[:, np.newaxis]
    match name:
        case Question.DARK_MAP:  # which stays dark
            turns = generator.random(int(answers.people.max()) + 1)
            return (turns[answers.people] < DARK[0] + passed[:, 0] * (DARK[1] - DARK[0])) * 1
        case Question.FIRST_TAP:
            return _places(
                np.array([TAPS[screen] for screen in SCREENS])[answers.segments], generator
            )
        case Question.TRAIL:
            weights = np.arange(1, len(TRAILS) + 1) ** -ZIPF
            ranks = generator.choice(len(TRAILS), len(answers), p=weights / weights.sum())
            by_rank: Ints = generator.permutation(len(TRAILS))
            return by_rank[ranks]
        case Question.WALK_MINUTES:
            return _minutes(_weekends(campaign)[answers.days], generator)
    return _places(np.array(WAYS[0]) * (1 - passed) + np.array(WAYS[1]) * passed, generator)


def _places(shares: Floats, generator: Generator) -> Ints:
    """Draw a place by each row of shares."""
    drawn = generator.random((len(shares), 1)) * shares.sum(axis=1, keepdims=True)
    places: Ints = (drawn >= np.cumsum(shares, axis=1)[:, :-1]).sum(axis=1)
    return places


def _minutes(weekend: Flags, generator: Generator) -> Ints:
    """Draw how long each walk takes: strolls on most days, hikes on weekends."""
    hikes = generator.random(len(weekend)) < np.where(weekend, HIKES[1], HIKES[0])
    middle, spread = (np.where(hikes, *pair) for pair in zip(HIKE, STROLL, strict=True))
    drawn = np.rint(middle + spread * generator.standard_normal(len(weekend)))
    return np.clip(drawn, SHORTEST, LONGEST).astype(np.int64)
