"""The server's half of a kind of question: everything that depends on what was asked.

Queries, pages and commands ask a kind; none of them looks at a domain or a mechanism. A kind is
pure but for `load` and `read`, which read through a `Source`. One module a kind; `kinds.registry`
names them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

from numpy.random import Generator

from veilcount_shared import Collection, RandomSource

from ..audit.audit_case import AuditCase, report_case
from ..errors import QueryError
from ..estimation import LookCount, View
from ..estimation.raking import CellSupports
from ..mechanisms import handler_of
from ..mechanisms.handler import MechanismHandler
from ..privacy.trust_models import Quantity
from ..query_params import Parameters
from ..simulation.simulated_figures import SimulatedFigures, SimulationQuery
from .comparison import Comparison
from .estimate_query import EstimateQuery
from .headline import Headline
from .panels import Panel
from .results import Figure, RangeFigures
from .sample_adequacy import GOAL, SIGNIFICANT, ErrorModel
from .scope import Scope
from .source import SelectedValues, Source, Tally
from .time_ranges import TimeRange

D = TypeVar("D")
T = TypeVar("T")
NOT_TAKEN = "this collection does not take it: remove it"
NAMED = 3  # candidates in an error
NUMBER_ROWS = 600  # a curve, a histogram, quantiles


class Kind(ABC, Generic[D, T]):
    """One kind of question of one collection.

    `D` is the type of its domain, `T` what it reads of a time range.
    """

    #: what commands, pages and results call it
    name: ClassVar[str]
    #: what is shown, in this order
    panels: ClassVar[tuple[Panel, ...]]
    #: what its results state of a series, and what each fact is
    facts: ClassVar[Mapping[str, str]] = {}
    #: the figures that are followed over time; empty: none
    followed: ClassVar[str] = "share"
    #: the query parameters that it takes, of those that depend on the kind (`parameters`)
    accepted_parameters: ClassVar[frozenset[str]] = frozenset()
    #: why it takes no other: the fix by the parameter; others have `NOT_TAKEN`
    refused_parameters: ClassVar[Mapping[str, str]] = {}
    rows: ClassVar[int] = 0  # figures in a time range, where values are not selected
    figure: ClassVar[str] = "values"  # the subject of a verdict on n
    untested: ClassVar[str] = ""  # why there is no poisoning test
    counted: ClassVar[str] = ""  # what n counts, if not reports
    smooths: ClassVar[bool] = False  # its figures are read smooth, not smoothed afterwards
    measures_width: ClassVar[bool] = False  # adequacy by the widths of intervals instead of by n
    released_as: ClassVar[str] = "histogram"  # the central release that shows the same

    #: the options of its simulation; None: there is none
    simulation: ClassVar[type[SimulationQuery] | None] = None
    simulates_releases: ClassVar[bool] = False  # of a curator's collection too

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
        if self.accepts(name):
            return ""
        return self.refused_parameters.get(name, NOT_TAKEN)

    def check(self, query: EstimateQuery) -> None:
        """Refuse a query that it cannot answer."""
        for name, value in parameters(query):
            if problem := self.parameter_problem(name):
                raise QueryError(name.partition("=")[0], value, problem)

    def load(
        self, source: Source, query: EstimateQuery, scope: Scope, whole: Tally
    ) -> SelectedValues:
        """Return what is shown, selected by the tally of the whole range."""
        return SelectedValues()

    @abstractmethod
    def read(self, source: Source, scope: Scope, time_range: TimeRange) -> T:
        """Return the data of one time range."""

    @abstractmethod
    def figures(
        self, data: T, query: EstimateQuery, selection: SelectedValues, time_range: TimeRange
    ) -> RangeFigures:
        """Return the figures of one time range."""

    def cell_supports(self, tallies: Iterable[Tally], selection: SelectedValues) -> CellSupports:
        """Return how many reports support what is shown, by the tallies of cells."""
        raise NotImplementedError(f"{type(self).__name__} is not reweighted")

    # -- what a page offers ------------------------------------------------------------------------

    def accepts(self, name: str) -> bool:
        """Whether it takes a parameter."""
        return name in self.accepted_parameters

    @property
    def searchable(self) -> bool:
        """Whether its values are found by a part of their names."""
        return False

    @property
    def groupings(self) -> tuple[str, ...]:
        """The groups that its definition names."""
        return ()

    @property
    def default_values(self) -> tuple[str, ...]:
        """The values that are shown by default; none: all of them, or the largest."""
        return ()

    @property
    def brief(self) -> Kind[Any, Any]:
        """The kind of what is followed, in a headline and over time, which is computed faster."""
        return self

    def unknown_values(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the words that name no value."""
        return ()

    # -- what goes with the figures ----------------------------------------------------------------

    @abstractmethod
    def headline(
        self, figures: Sequence[Figure], facts: Mapping[str, Any], *, leads: bool
    ) -> Headline:
        """Return the finding of a time range with reports."""

    def notes(self, facts: Mapping[str, Any]) -> list[str]:
        """Return what its facts mean, a sentence each."""
        return []

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

    def error_among(self, n: int, covers: int) -> ErrorModel:
        """Return the error of n reports among so many covers of a shuffler."""
        if not covers:
            return self.error_model
        added = covers * self.handler.cover_variance() * self.quantity.width**2 / n
        return self.error_model.with_noise(added)

    def audit(self, randomness: RandomSource) -> AuditCase:
        """Return what an audit of its epsilon samples; randomness is the device's."""
        return report_case(self.collection, randomness)

    def simulate(self, options: Parameters, generator: Generator) -> SimulatedFigures:
        """Return the figures of a population that is drawn, with the truth."""
        raise NotImplementedError(f"{type(self).__name__} has no simulation")

    # -- comparisons -------------------------------------------------------------------------------

    @property
    @abstractmethod
    def comparison(self) -> Comparison | str:
        """How its sides are compared, or why they are not."""

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
        "pair": query.pair,
    }
    yield from ((name, value) for name, value in values.items() if value)
