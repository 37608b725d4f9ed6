"""Definition: the keys of one collection as a plain record, and what follows by arithmetic.

What validates, prices or serializes a collection takes this, and so needs no `Collection`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from math import prod

from . import periods
from .cached_property import cached_property
from .domain import Domain
from .enums import (
    Adjacency,
    Cohort,
    Held,
    Linkage,
    Measure,
    Model,
    Noise,
    Presence,
    Segments,
    Takes,
)
from .periods import Unit
from .translations import Translations

#: days after a period in which a device may send; longer periods are answered by rarer visitors
_GRACE = {Unit.DAY: 3, Unit.WEEK: 7}
_LONG_GRACE = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRules:
    """The batch of a period: how small it may be, when it leaves, what hides a report in it."""

    least: int  # reports without covers; a batch of fewer is never handed over
    grace: int  # days
    covers: int = 0
    epsilon: Fraction | None = None  # against the server, by the covers alone
    delta: Fraction | None = None
    honest: int | None = None  # of `least` reports: for the page of accuracy, never a promise
    allow_large_epsilon: bool = False

    @property
    def time_to_send(self) -> timedelta:
        """How long after the end of a period a device may send its report."""
        return timedelta(days=self.grace)


def default_grace(unit: Unit) -> int:
    """Return the days that a batch waits for the devices of a period."""
    return _GRACE.get(unit, _LONG_GRACE)


@dataclass(frozen=True, slots=True)
class PopulationMargins:
    """The shares of the categories of some segments, in their order; together 1 or 100.

    Who consents differs from who does not: figures are reweighted to these margins. That is done to
    figures alone, so a change begins no new series and reweights the reports of the old one.
    """

    shares: tuple[tuple[str, tuple[Fraction, ...]], ...]
    source: str
    as_of: date

    @property
    def normalized(self) -> dict[str, tuple[Fraction, ...]]:
        """The shares by segment; of each together exactly 1."""
        return {
            name: tuple(share / sum(shares) for share in shares) for name, shares in self.shares
        }


@dataclass(frozen=True, slots=True)
class QuestionGroup:
    """The members of a group, of which a person's root draws one, for the whole epsilon.

    Split epsilon over d questions, and the variance of each grows with d squared; with a drawn
    question it grows with d. The digest pins all members: whoever changes one changes the draw.
    """

    name: str
    questions: tuple[str, ...]
    digest: str

    def number(self, collection: str) -> int:
        """Return a member's place, which is the number that is drawn for it."""
        return self.questions.index(collection)


@dataclass(frozen=True, kw_only=True)
class Definition:
    """The keys of one collection; the README documents each."""

    app: str
    name: str
    question: str
    domain: Domain
    unit: Unit
    start: date
    until: date
    epsilon: Fraction | None = None
    measure: Measure | None = None
    changes: int | None = None
    per_day: int = 1
    takes: Takes = Takes.FIRST
    held: Held | None = None
    answers: int | None = None
    late: int = 30
    linkage: Linkage | None = None
    tokens: str | None = None
    presence: Presence = Presence.PUBLIC
    segments: Segments = ()
    cohort: Cohort | None = None
    model: Model = Model.LOCAL
    batch: BatchRules | None = None  # None: reports travel alone
    twin: str | None = None
    budget: Fraction | None = None
    delta: Fraction | None = None
    noise: Noise | None = None  # None: Gaussian where there is a delta, else Laplace
    adjacency: Adjacency | None = None
    owner: str | None = None
    purpose: str | None = None
    replaces: str | None = None
    measured_in: str | None = None  # of a number, such as minutes
    group: QuestionGroup | None = None  # None: whoever is asked answers this collection
    margins: PopulationMargins | None = None  # None: figures are of whoever answered
    translations: Translations = ()  # by language; `question` and `purpose` are the fallback

    # -- privacy -------------------------------------------------------------------------------

    @property
    def unit_epsilon(self) -> Fraction:
        """Epsilon of one unit: of one answer, or of all releases of its period."""
        epsilon = self.budget if self.epsilon is None else self.epsilon  # a definition has one
        assert epsilon is not None, "validation requires it"  # noqa: S101 - narrows the type
        return epsilon

    @property
    def epsilon_event(self) -> Fraction:
        """Epsilon of one event: at most one answer."""
        return self.unit_epsilon

    @property
    def epsilon_day(self) -> Fraction:
        """Epsilon of a UTC day."""
        return self.unit_epsilon * self.per_day

    @property
    def epsilon_adjacency(self) -> Adjacency:
        """The neighbouring relation of every epsilon; the local model substitutes a value."""
        return self.adjacency or Adjacency.SUBSTITUTE

    @property
    def substitution_factor(self) -> int:
        """The factor by which epsilon bounds the substitution of one value.

        Under add-remove a substitution is a removal and an addition, so group privacy doubles it.
        """
        return 2 if self.epsilon_adjacency is Adjacency.ADD_REMOVE else 1

    @property
    def answering(self) -> int:
        """The number of periods in which a person answers; of a trend the most."""
        return self.answers or self.periods

    @property
    def is_retention(self) -> bool:
        """Whether a period reports that the person was there in the period before as well."""
        return self.takes is Takes.RETURNING

    @property
    def held_on_device(self) -> bool:
        """Whether a pending value is kept on the device's disk instead of in process memory."""
        return self.held is Held.DEVICE

    @property
    def drawn_share(self) -> Cohort | None:
        """The share of the population that answers: of a draw, a person is in one share alone.

        The questions of a group are the cohorts of the draw that its digest names.
        """
        if self.group is None:
            return self.cohort
        draw = f"group {self.group.name} {self.group.digest}"
        return Cohort(draw, len(self.group.questions), self.group.number(self.name))

    # -- periods, slots, cells -----------------------------------------------------------------

    @cached_property
    def periods(self) -> int:
        """The number of periods of the campaign."""
        return periods.count_periods(self.unit, self.start, self.until)

    @property
    def slots(self) -> int:
        """The number of slots of an epoch."""
        if self.linkage is Linkage.COLLECTION:
            return self.periods * self.per_day
        return self.per_day if self.linkage is Linkage.PERIOD else 1

    @property
    def cells(self) -> int:
        """The number of segment cells."""
        return prod(len(labels) for _, labels in self.segments)
