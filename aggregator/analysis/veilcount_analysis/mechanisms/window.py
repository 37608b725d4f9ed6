"""What all mechanisms have in common that report a level near the number: windows of levels."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol, TypeVar

from numpy.random import Generator

from veilcount_shared.composition import Overlap
from veilcount_shared.mechanisms import Mechanism, SquareWave

from ..series.packed_rows import Counters
from .handler import NumberHandler
from .sampling import Ints, Mixture, scattered


class WindowMechanism(Mechanism, Protocol):
    """A mechanism that reports a level of a square wave."""

    @property
    def window(self) -> SquareWave:
        """The square wave."""


W = TypeVar("W", bound=WindowMechanism)


class WindowHandler(NumberHandler[W]):
    """An input is a start and owns the levels of the window from it."""

    def describe(self) -> str:
        return f"window: {self.mechanism.window.width} of {self.mechanism.window.levels} levels"

    def overlaps(self) -> tuple[Overlap, ...]:
        """Return the overlap of the two ends of the range, which are the most different."""
        window = self.mechanism.window
        width, levels = window.width, window.levels
        apart = min(width, levels - width)
        return (Overlap(Fraction(width, levels), Fraction(apart, levels), window.P),)

    def draw_messages(self, inputs: Ints, generator: Generator) -> Ints:
        width = self.mechanism.window.width

        def inside(own: Ints) -> Ints:
            return own + generator.integers(width, size=len(own))

        return mixture_of(self.mechanism.window).draw(inputs, inside, generator)

    def draw_counters(self, held: Ints, generator: Generator) -> Counters:
        return draw_levels(self.mechanism.window, held, generator)


def mixture_of(window: SquareWave) -> Mixture:
    """Return a window as a mixture."""
    return Mixture(window.P, window.width, window.levels)


def draw_levels(window: SquareWave, held: Ints, generator: Generator) -> Counters:
    """Return how many reports name each level, by how many devices have each start."""
    informative = mixture_of(window).informative_counts(held, generator)
    uniform = (held - informative).sum(keepdims=True)
    counts: Counters = scattered(uniform, window.levels, generator)[0]
    for start, inside in enumerate(scattered(informative, window.width, generator)):
        counts[start : start + window.width] += inside
    return counts
