"""The device's half of a kind of question, found by the domain's type and the measure.

Pure, without state, and of the standard library alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import ClassVar, Generic, TypeVar

from ..domain import Domain
from ..mechanisms import Randomizer
from .toml_values import Table

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
    keys: ClassVar[Mapping[str, str]] = {}  # others that it takes, and the fix where a kind has not
    foreign: ClassVar[str] = ""  # the fix for a key of another kind, if all have the same

    @abstractmethod
    def parse(self, table: Table, context: TableContext) -> D:
        """Return the domain that a table declares."""

    @abstractmethod
    def randomizer(self, price: Price[D]) -> Randomizer:
        """Return the mechanism of a local report."""
