"""Definition: the keys of one collection as a plain record, and what follows by arithmetic.

What validates, prices or serializes a collection takes this, and so needs no `Collection`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from math import prod

from . import periods
from .batch_rules import BatchRules
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
from .population_margins import PopulationMargins
from .question_group import QuestionGroup
from .translations import Translations


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
