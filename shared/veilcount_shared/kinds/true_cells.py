"""A trusted curator's counters: into which one a true value falls, and what each of them counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..cached_property import cached_property
from ..domain import GRID_BITS, Boolean, Choice, Cross, Label, Number, OpenStrings
from ..errors import format_value

CellLabel = Label | bool | tuple[Label, ...]
Listed = Boolean | Choice | Cross


class TrueCells(ABC):
    """Counters of true values. A central query asks them alone, never the domain."""

    is_boolean: ClassVar[bool] = False  # no and yes: a sum of them is a count of yes
    is_hashed: ClassVar[bool] = False  # values are hashed: only those that occur have a counter

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of counters."""

    @abstractmethod
    def cell(self, point: int) -> int:
        """Return the counter of a domain's input."""

    @property
    def labels(self) -> Sequence[CellLabel]:
        """The value of each counter; empty where values are hashed."""
        return ()

    @property
    def numbers(self) -> Sequence[int] | None:
        """What each value is in a sum; None: not all are numbers."""
        return None

    @property
    def interval(self) -> range | None:
        """The values, if they are all integers between two ends."""
        return None

    def find(self, label: object) -> int | None:  # noqa: ARG002 - of other cells
        """Return the counter of a label, of the type written; None: it is no value."""
        return None

    @property
    def choice(self) -> str:
        """The fix for what is no value."""
        return f"give some of {format_value(list(self.labels))}"


@dataclass(frozen=True)
class Labelled(TrueCells):
    """A counter for each listed value."""

    domain: Listed

    @property
    def size(self) -> int:
        """The number of values."""
        return self.domain.size

    def cell(self, point: int) -> int:
        """Return the value's own."""
        return point

    @property
    def labels(self) -> Sequence[CellLabel]:
        """The values."""
        return self.domain.labels

    @property
    def numbers(self) -> Sequence[int] | None:
        """The values of a list of integers."""
        if not isinstance(self.domain, Choice):  # the combinations of a crossed one are many
            return None
        integers = tuple(label for label in self.labels if isinstance(label, int))
        return integers if len(integers) == self.size else None

    def find(self, label: object) -> int | None:
        """Look a value up."""
        return self._cells_by_spelling.get(_spelling(label))

    @cached_property
    def _cells_by_spelling(self) -> Mapping[str, int]:
        return {_spelling(label): cell for cell, label in enumerate(self.labels)}


class YesOrNo(Labelled):
    """A counter for no, and one for yes."""

    is_boolean = True

    @property
    def numbers(self) -> Sequence[int]:
        """No adds nothing, yes one."""
        return (0, 1)


@dataclass(frozen=True, slots=True)
class Grid(TrueCells):
    """A counter for each integer of a range."""

    domain: Number

    @property
    def interval(self) -> range:
        """The integers."""
        return range(int(self.domain.low), int(self.domain.high) + 1)

    @property
    def size(self) -> int:
        """The number of integers."""
        return len(self.interval)

    def cell(self, point: int) -> int:
        """Return the nearest integer to a grid point."""
        return (point * (self.size - 1) + (1 << GRID_BITS - 1)) >> GRID_BITS

    @property
    def labels(self) -> range:
        """The integers."""
        return self.interval

    @property
    def numbers(self) -> range:
        """The integers."""
        return self.interval

    def find(self, label: object) -> int | None:
        """Return an integer's distance from the least."""
        if type(label) is not int or label not in self.interval:
            return None
        return self.interval.index(label)

    @property
    def choice(self) -> str:
        """The two ends."""
        return f"give whole numbers from {self.interval[0]} to {self.interval[-1]}"


@dataclass(frozen=True, slots=True)
class Hashed(TrueCells):
    """A counter for each hash of a string. Two of d strings share one with chance d^2 / 2^41."""

    is_hashed: ClassVar[bool] = True

    domain: OpenStrings

    @property
    def size(self) -> int:
        """The number of hashes."""
        return self.domain.size

    def cell(self, point: int) -> int:
        """Return the hash."""
        return point


def _spelling(label: object) -> str:
    """Return a label as written: true is not 1, though they are equal in Python."""
    return repr(list(label) if isinstance(label, tuple) else label)
