"""The server's half of a kind of question: everything that depends on what was asked.

Queries, pages and commands ask a kind; none of them looks at a domain or a mechanism. A kind is
pure but for `load` and `read`, which read through a `Source`. One module a kind; `kinds.registry`
names them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.random import Generator

from veilcount_shared import Collection, RandomSource

from ..audit.audit_case import AuditCase, report_case
from ..errors import QueryError
from ..estimation import LookCount, MeanEstimate, ShareEstimates, View
from ..estimation.confidence_intervals import Counts
from ..mechanisms import handler_of
from ..mechanisms.candidate_search import Candidates
from ..mechanisms.handler import MechanismHandler
from ..privacy.trust_models import Quantity
from ..query_params import Parameters
from ..simulation.simulated_figures import SimulatedFigures, SimulationQuery
from .estimate_query import EstimateQuery
from .labels import Value
from .sample_adequacy import GOAL, SIGNIFICANT, ErrorModel
from .scope import Scope
from .time_ranges import TimeRange

D = TypeVar("D")
T = TypeVar("T")
NOT_TAKEN = "this collection does not take it: remove it"
#: by what a side is of, the rarest last
SUBJECTS = ("listed values", "open strings", "a number")
NAMED = 3  # candidates in an error
NUMBER_ROWS = 600  # a curve, a histogram, quantiles


@dataclass(slots=True)  # not frozen: that is three times slower, and a result has thousands
class Figure:
    """One figure with its interval, in its own unit.

    `of` is the value, range or numbers that it is of; `at` is a coordinate: the edge of a curve,
    the requested share of a quantile.
    """

    kind: str
    of: Value | None
    figure: float | None
    low: float | None = None
    high: float | None = None
    fake_low: float | None = None
    fake_high: float | None = None
    at: float | None = None
    answers: float | None = None
    count: int | None = None
    simultaneous_low: float | None = None
    simultaneous_high: float | None = None

    @property
    def width(self) -> float:
        """The width of its interval; 0 without one."""
        return 0.0 if self.low is None or self.high is None else self.high - self.low


@dataclass(frozen=True, slots=True)
class RangeFigures:
    """The figures of one time range, and what they estimate."""

    n: int
    estimand: str
    figures: tuple[Figure, ...]
    leader: Value | None = None
    bands: str = ""  # what the bands of a curve and its quantiles cover


@dataclass(frozen=True, slots=True)
class RangeResult:
    """The figures of a time range of whole periods, and whether they can be read."""

    first: date
    last: date
    first_period: int
    last_period: int
    open_period: bool
    n: int
    usable: bool
    adequacy: str
    estimand: str
    contributions: int
    figures: tuple[Figure, ...]
    leader: Value | None
    bands: str


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """The counters of some reports, and how many of these are cover reports of a shuffler."""

    counters: Counts
    covers: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The shown values, decided over the whole range; `facts` are what a series states of it."""

    labels: tuple[Value, ...] = ()
    places: Counts = field(default_factory=lambda: np.zeros(0, np.int64))
    groups: tuple[Counts, ...] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class CommonValues:
    """The places of the values that two sides have in common, and the value of each."""

    first: Counts
    second: Counts
    value: Callable[[int], Value]  # by its index: there may be a million


@dataclass(frozen=True, slots=True, eq=False)
class CandidateSearch:
    """One test of candidates: those found, the most frequent first, and what a test costs now."""

    texts: tuple[str, ...]
    places: Counts
    candidates: int
    tested: int
    alpha: float
    named: tuple[str, ...] = ()
    discovers: bool = False


class Searches(Protocol):
    """The searches of one series: who tests many candidates finds some by chance.

    `about` identifies the tested reports: the same test of the same reports counts once.
    """

    def known(self) -> CandidateSearch:
        """Return the strings that were found in any test, and what a further test would cost."""

    def test(
        self, whole: Tally, candidates: Candidates, about: Sequence[object]
    ) -> CandidateSearch:
        """Count a test of each candidate, and return those found."""

    def discover(
        self, whole: Tally, dictionary: Sequence[str], about: Sequence[object]
    ) -> CandidateSearch:
        """Count a search letter by letter, and return the strings found."""


class Source(Protocol):
    """Where a kind reads one series: a store, or a notebook's arrays."""

    def tally(self, periods: range, cells: Sequence[int]) -> Tally:
        """Return the tally of periods and cells together."""

    def is_over(self, period: int) -> bool:
        """Whether a period has ended."""

    @property
    def searches(self) -> Searches:
        """The searches among open strings, which are counted."""


class Kind(ABC, Generic[D, T]):
    """One kind of question of one collection.

    `D` is the type of its domain, `T` what it reads of a time range.
    """

    #: the query parameters that it takes, of those that depend on the kind (`parameters`)
    accepted_parameters: ClassVar[frozenset[str]] = frozenset()
    #: why it takes no other: the fix by the parameter; others have `NOT_TAKEN`
    refused_parameters: ClassVar[Mapping[str, str]] = {}
    rows: ClassVar[int] = 0  # figures in a time range, where values are not selected
    figure: ClassVar[str] = "values"  # the subject of a verdict on n
    untested: ClassVar[str] = ""  # why there is no poisoning test
    measures_width: ClassVar[bool] = False  # adequacy by the widths of intervals instead of by n

    # -- of comparisons
    subject: ClassVar[str] = "listed values"  # of one side; sides of another are not compared
    uncompared: ClassVar[str] = ""  # why it is not compared at all
    named_values: ClassVar[bool] = False  # whether values are known by their names alone
    released_as: ClassVar[str] = "histogram"  # the central release that shows the same

    #: the options of its simulation; None: there is none
    simulation: ClassVar[type[SimulationQuery] | None] = None

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self.domain: D = collection.domain  # type: ignore[assignment] # the registry pairs them

    @property
    def handler(self) -> MechanismHandler[Any]:
        """The server's side of its mechanism."""
        return handler_of(self.collection.mechanism)

    # -- a query -----------------------------------------------------------------------------------

    def parameter_problem(self, name: str) -> str:
        """Return why it does not take a parameter; empty: it does."""
        if name in self.accepted_parameters:
            return ""
        return self.refused_parameters.get(name, NOT_TAKEN)

    def check(self, query: EstimateQuery) -> None:
        """Refuse a query that it cannot answer."""
        for name, value in parameters(query):
            if problem := self.parameter_problem(name):
                raise QueryError(name.partition("=")[0], value, problem)

    def load(self, source: Source, query: EstimateQuery, scope: Scope, whole: Tally) -> Selection:
        """Return what is shown, selected by the tally of the whole range."""
        return Selection()

    @abstractmethod
    def read(self, source: Source, scope: Scope, time_range: TimeRange) -> T:
        """Return the data of one time range."""

    @abstractmethod
    def figures(
        self, data: T, query: EstimateQuery, selection: Selection, time_range: TimeRange
    ) -> RangeFigures:
        """Return the figures of one time range."""

    # -- what goes with the figures ----------------------------------------------------------------

    def poisoning(self, whole: Tally) -> tuple[bool, str]:
        """Return whether the poisoning test failed, and its message."""
        return False, self.untested

    @property
    @abstractmethod
    def quantity(self) -> Quantity:
        """The estimated quantity, whoever adds the noise: family, inputs, width."""

    @property
    def line(self) -> float | None:
        """The noise line at one report, where figures are a long list."""
        return None

    @property
    def range_width(self) -> float:
        """The width of a figure's range: 1 of a share, else in a number's unit."""
        return 1.0

    @cached_property
    def error_model(self) -> ErrorModel:
        """The error of its figures: n times their variance, and what is good enough."""
        quantity, line = self.quantity, self.line
        noise = self.handler.noise_variance() * quantity.width**2
        goal = GOAL * quantity.width if line is None else SIGNIFICANT
        of_shares = quantity.inputs is not None
        return ErrorModel(noise, quantity.sampling(None), goal, of_shares, self.figure, line)

    def audit(self, randomness: RandomSource) -> AuditCase:
        """Return what an audit of its epsilon samples; randomness is the device's."""
        return report_case(self.collection, randomness)

    def simulate(self, options: Parameters, generator: Generator) -> SimulatedFigures:
        """Return the figures of a population that is drawn, with the truth."""
        raise NotImplementedError(f"{type(self).__name__} has no simulation")

    # -- comparisons -------------------------------------------------------------------------------

    def comparison_problem(self, other: Kind[Any, Any]) -> str:
        """Return why it is not compared with another kind; empty: it is."""
        if self.subject == other.subject:
            return ""
        rarer = max(self.subject, other.subject, key=SUBJECTS.index)
        return f"one side is of {rarer}, the other is not"

    def common_values(self, other: Kind[Any, Any], words: Sequence[str]) -> CommonValues | None:
        """Return the values that both sides have, of those named; None: each has one mean."""
        raise NotImplementedError(self.uncompared)

    def side_estimate(
        self, tally: Tally, query: EstimateQuery, contributions: int, places: Counts | None
    ) -> ShareEstimates | MeanEstimate:
        """Return the estimate of one side of a comparison, from at least one report."""
        raise NotImplementedError(self.uncompared)

    def frequencies(self, whole: Tally) -> tuple[float, ...] | None:
        """Return observed shares, for a comparison of trust models; None: none are listed."""
        return None


class SummedKind(Kind[D, Tally]):
    """A kind that estimates a time range from the sum of its counters."""

    def read(self, source: Source, scope: Scope, time_range: TimeRange) -> Tally:
        return source.tally(time_range.periods, scope.cells)


def parameters(query: EstimateQuery) -> Iterator[tuple[str, Any]]:
    """Yield the parameters of a query that depend on the kind, and their values; in this order."""
    values: dict[str, Any] = {
        "view=consistent": str(query.view) if query.view is View.CONSISTENT else "",
        "page": query.page if query.page > 1 else 0,
        "looks=every": str(query.looks) if query.looks is LookCount.EVERY else "",
        "candidates": list(query.candidates[:NAMED]),
        "discover": query.discover,
        "top": query.top,
        "group": list(query.groups),
        "values": list(query.values),
        "regress": query.regress,
    }
    yield from ((name, value) for name, value in values.items() if value)
