"""Central queries of the true counts: their interface and their registry.

Each query type is one module of `query_types`. A subclass of `Query` registers itself under its
`kind`; everything else (pricing, noise, releases, the form's texts) goes through this interface.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol

import numpy as np

from veilcount_shared import Collection
from veilcount_shared.kinds import CellLabel

from ..errors import QueryError
from ..series.packed_rows import Counters
from .noise_kinds import DrawnNoise, NoiseKind

Figure = tuple[float, float, float]  # a value, and the ends of its interval
Noised = Sequence[Sequence[int]]  # what came out of the noise, part by part
Numbers = Sequence[int]  # that a collection's values stand for, for sums, means and conditions

MAX_NUMBER = 1 << 30  # with as many answers, a sum still fits 64 bits


@dataclass(frozen=True, slots=True)
class CandidateScores:
    """A part of which only the largest is released, by its place: report noisy max."""

    monotonic: bool  # whether one more answer moves all scores the same way
    steps: int = 1  # of a score: how many are one answer


@dataclass(frozen=True, slots=True)
class QueryPart:
    """Integers that noise is added to: their sensitivities, and their share of the cost."""

    name: str
    size: int
    sensitivity: int  # L1; of a selection, of each score
    share: Fraction = Fraction(1)
    l2_squared: int | None = None  # None: of one number, where both are the same
    has_threshold: bool = False  # of places and counts by turns: those from a threshold on
    selection: CandidateScores | None = None  # None: each integer is released with its noise

    @property
    def squared_sensitivity(self) -> int:
        """The square of the L2 sensitivity."""
        return self.sensitivity**2 if self.l2_squared is None else self.l2_squared


@dataclass(frozen=True, slots=True)
class QueryOption:
    """A query that a form offers; one with an `argument` needs a text, which `read` completes."""

    name: str
    text: str
    argument: str = ""  # the label of the text
    example: str = ""
    lines: int = 1
    read: Callable[[str], object] | None = None

    def written(self, argument: str) -> object:
        """Return the query as it is parsed."""
        return self.read(argument) if self.read else self.name


class ErrorBound(Protocol):
    """Noise, or a selection's loss."""

    def half_width(self, alpha: float) -> int:
        """Return a width that it exceeds with probability alpha at most."""


class Query(ABC):
    """One query of one collection, parsed. Equal queries have equal canonical forms."""

    __slots__ = ()

    #: the name of the query type, in releases
    kind: ClassVar[str] = ""
    #: the ways to write it (NAME: the collection's), and what each asks
    forms: ClassVar[Mapping[str, str]] = {}
    #: whether it needs the counters of each period, instead of their sum
    by_period: ClassVar[bool] = False
    #: whether it needs the hashes of strings: any other has the number of answers alone
    by_hash: ClassVar[bool] = False
    #: its place among the options of a form
    order: ClassVar[int] = 0

    def __init_subclass__(cls) -> None:
        if cls.kind:
            QUERY_TYPES[cls.kind] = cls

    @classmethod
    @abstractmethod
    def parse(cls, written: object, collection: Collection) -> Query | None:
        """Return the query, None if another type is written, or refuse it for this collection."""

    @classmethod
    @abstractmethod
    def options(cls, collection: Collection) -> Iterator[QueryOption]:
        """Yield what a form offers for a collection."""

    @classmethod
    def describe(cls, written: object) -> str:
        """Return a query of this type in words; nothing if it is of another."""
        return cls.forms.get(json.dumps(written), "")

    def canonical(self) -> Any:
        """Return the canonical form of the query, as JSON: by default its name."""
        return self.kind

    @abstractmethod
    def parts(self, collection: Collection) -> tuple[QueryPart, ...]:
        """Return what noise is added to; the shares of the cost add up to all of it."""

    @abstractmethod
    def part_values(
        self, collection: Collection, counters: Counters, drawn: Noised, widths: Sequence[int]
    ) -> list[int]:
        """Return the true integers of the next part; they may depend on the earlier parts' noise.

        `drawn` are the results of the earlier parts, `widths` the half widths of all.
        """

    def over(self, periods: range, noise: NoiseKind, collection: Collection) -> Query:
        """Return the query over these periods, or refuse them; most do not depend on them."""
        del periods, noise, collection
        return self

    def error_width(self, noise: ErrorBound, alpha: float) -> int:
        """Return the error of a part that is stated, by default of each of its numbers."""
        return noise.half_width(alpha)

    @abstractmethod
    def figures(
        self, noised: Noised, noise: Sequence[DrawnNoise], alpha: float, n: int | None
    ) -> list[Figure]:
        """Return each released value with its interval, which misses with alpha a part at most.

        n: the exact number of answers, if it is public.
        """

    def labels(self, collection: Collection, noised: Noised) -> tuple[CellLabel, ...]:
        """Return the label of each released value."""
        del collection, noised
        return (self.kind,)


class ParallelQuery(Query):
    """A query of which no part depends on what came out of another."""

    __slots__ = ()

    @abstractmethod
    def true_values(self, collection: Collection, counters: Counters) -> list[list[int]]:
        """Return the true integers of each part."""

    def part_values(
        self, collection: Collection, counters: Counters, drawn: Noised, widths: Sequence[int]
    ) -> list[int]:
        """Return those of the next part."""
        del widths
        return self.true_values(collection, counters)[len(drawn)]


#: the query types by kind; `query_types` fills it
QUERY_TYPES: dict[str, type[Query]] = {}


def parse_query(written: object, collection: Collection) -> Query:
    """Return the query that is written, or refuse what is none of this collection."""
    for query_type in QUERY_TYPES.values():
        query = query_type.parse(written, collection)
        if query is not None:
            return query
    forms = ", ".join(form for query_type in QUERY_TYPES.values() for form in query_type.forms)
    raise QueryError("query", written, f"give {forms}".replace("NAME", collection.name))


def query_options(collection: Collection) -> dict[str, QueryOption]:
    """Return all that a form offers for a collection, by name."""
    types = sorted(QUERY_TYPES.values(), key=lambda query_type: query_type.order)
    return {
        option.name: option for query_type in types for option in query_type.options(collection)
    }


def describe_query(written: object) -> str:
    """Return a query in words, whatever its type."""
    return next(
        text for query_type in QUERY_TYPES.values() if (text := query_type.describe(written))
    )


def count_interval(value: int, half_width: int) -> Figure:
    """Return a count with its interval, whose ends are not below 0."""
    return value, max(0, value - half_width), max(0, value + half_width)


def counters_a_period(collection: Collection) -> int:
    """Return how many counters of a period a query has; of hashes only their sum."""
    return 1 if collection.true_cells.is_hashed else collection.inputs


def query_counters(query: Query, counters: Counters) -> Counters:
    """Return what a query has of the counters of some periods: of hashes only their sum."""
    if query.by_hash or counters.ndim == 1:
        return counters
    return np.asarray(counters[1:].sum(axis=1))


def ranges_from(places: Iterator[int]) -> tuple[tuple[int, int], ...]:
    """Return places as ascending ranges with a gap between each two: one form a set."""
    runs: list[list[int]] = []
    for place in sorted(set(places)):
        if runs and runs[-1][1] == place - 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    return tuple((first, last) for first, last in runs)


def require_summable(query: str, collection: Collection) -> Numbers:
    """Return the numbers of a collection that a sum or mean may be asked of."""
    numbers = collection.true_cells.numbers
    if numbers is None:
        raise QueryError("query", query, f'{collection.name} is not a number: ask "histogram"')
    if max(map(abs, numbers)) > MAX_NUMBER:
        raise QueryError("query", query, f"only for numbers within +/- {MAX_NUMBER:,}: scale them")
    return numbers
