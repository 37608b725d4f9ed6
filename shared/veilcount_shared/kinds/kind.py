"""The device's half of a kind of question, found by the domain's type and the measure.

Pure, without state, and of the standard library alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Generic, TypeVar

from ..domain import Domain
from ..mechanisms import Randomizer

D = TypeVar("D", bound=Domain)


@dataclass(frozen=True, slots=True)
class Price(Generic[D]):
    """What the randomizer of a definition depends on."""

    domain: D
    inputs: int  # that of `absent` included
    epsilon: Fraction
    periods: int
    changes: int | None


class DeviceKind(ABC, Generic[D]):
    """One kind of question: how its answers are randomized."""

    name: ClassVar[str]

    @abstractmethod
    def randomizer(self, price: Price[D]) -> Randomizer:
        """Return the mechanism of a local report."""
