"""The device's half of a kind of question, found by the domain's type and the measure.

Pure, without state, and of the standard library alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from math import sqrt
from typing import ClassVar, Generic, Protocol, TypeVar

from ..definition_record import Definition
from ..domain import Domain
from ..enums import Model, Takes
from ..mechanisms import Randomizer
from .toml_values import Table
from .true_cells import TrueCells

Z95 = 1.96
D = TypeVar("D", bound=Domain)
ReadValues = Callable[[str], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Price(Generic[D]):
    """What the randomizer of a definition depends on."""

    domain: D
    inputs: int  # that of `absent` included
    epsilon: Fraction
    periods: int
    changes: int | None


@dataclass(frozen=True, slots=True)
class TableContext:
    """What surrounds a table; `read_values` maps the name of a file to its lines."""

    app: str
    name: str
    start: date
    read_values: ReadValues


class DeviceKind(ABC, Generic[D]):
    """One kind of question: how it is declared and how its answers are randomized."""

    name: ClassVar[str]
    declared_by: ClassVar[tuple[str, ...]]  # keys of a table, one of which it has
    keys: ClassVar[Mapping[str, str]] = {}  # others that it takes: the fix elsewhere
    foreign: ClassVar[str] = ""  # the fix for a key of another kind, if all have the same

    defaults: ClassVar[Mapping[str, object]] = {}  # of other fields
    takes: ClassVar[frozenset[Takes]] = frozenset({Takes.FIRST, Takes.LAST})
    canonical_keys: ClassVar[tuple[str, ...]] = ()  # of its own, in every canonical form
    fresh: ClassVar[bool] = True  # False: a person's messages are one random draw, priced once
    absent_fix: ClassVar[str] = ""  # where a period without a record cannot be reported
    #: the key to change, and the fix
    unsupported_models: ClassVar[Mapping[Model, tuple[str, str]]] = {}
    raked: ClassVar[bool] = False  # whether its figures can be reweighted to margins
    measure_fix: ClassVar[str] = ""  # where another domain has this measure
    domain_fix: ClassVar[str] = ""  # where this domain has another measure

    @abstractmethod
    def parse(self, table: Table, context: TableContext) -> D:
        """Return the domain that a table declares."""

    def check(self, definition: Definition, domain: D) -> None:
        """Refuse what does not suit the kind; by default nothing."""

    def check_true_cells(self, definition: Definition, domain: D) -> None:
        """Refuse what a trusted curator cannot release; by default nothing."""

    def inputs(self, domain: D) -> int:
        """Return the number of inputs of a local mechanism, without that of `absent`."""
        return domain.size

    def true_cells(self, domain: D) -> TrueCells | None:  # noqa: ARG002 - by kind
        """Return the counters of a trusted curator; by default none: a curator has no query."""
        return None

    def labels(self, domain: D) -> int:  # noqa: ARG002 - by kind
        """Return how many labels may be translated; by default none."""
        return 0

    def translated(self, domain: D, labels: tuple[str, ...]) -> D:  # noqa: ARG002 - by kind
        """Return the domain with labels of another language."""
        return domain

    @abstractmethod
    def randomizer(self, price: Price[D]) -> Randomizer:
        """Return the mechanism of a local report."""

    def precision_advice(self, price: Price[D], answers: int) -> str:  # noqa: ARG002 - by kind
        """Return advice if so many answers show too little; empty by default."""
        return ""


class TwoLevel(Protocol):
    """A mechanism whose reports support the true value more often than any other."""

    @property
    def P(self) -> Fraction:
        """The probability that a report supports its input."""

    @property
    def Q(self) -> Fraction:
        """The probability that it supports another one."""


def share_margin(mechanism: TwoLevel, answers: float) -> float:
    """Return half the interval of a share near 0."""
    p, q = mechanism.P, mechanism.Q
    return Z95 * sqrt(q * (1 - q) / answers) / float(p - q)
