"""How many people must have an open string for a release to show it, and how well they are counted.

A string that c answers are is released if c and its noise reach the threshold. The noise is
symmetric, so half of the releases show a string of exactly the threshold; to show it more often,
more answers make up for noise that takes some away.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from .noise import noise_distribution
from .noise_kinds import NoiseKind
from .priced_query import PricedQuery
from .release import LEVEL, part_noise

NEARLY_ALWAYS = 0.95


@dataclass(frozen=True, slots=True)
class StringThreshold:
    """The threshold of a release, and the people that reach it half of the time, or nearly always.

    `half_width` is of the interval of the number of people who have a string that is released.
    """

    noise: NoiseKind
    epsilon: Fraction | None  # of the release, with Laplace noise
    rho: Fraction | None  # the same with Gaussian noise
    delta: float  # with which the strings of one person pass
    threshold: int
    nearly_always: int
    deviation: float
    half_width: int

    @classmethod
    def from_query(cls, question: PricedQuery, level: float = LEVEL) -> StringThreshold:
        """Derive it from declared constants; truncated noise takes away no more."""
        (part,) = part_noise(question, level)
        if part.threshold is None or part.delta is None:
            raise ValueError(f"{question.query.kind}: only strings have a threshold")
        noise = noise_distribution(part.distribution, part.scale)
        return cls(
            part.distribution,
            question.epsilon,
            question.rho,
            part.delta,
            part.threshold,
            part.threshold + noise.half_width(2 * (1 - NEARLY_ALWAYS)),
            part.deviation,
            part.half_width,
        )

    @property
    def sentence(self) -> str:
        """The people that a string needs, in words."""
        return (
            f"a string is released half of the time if {self.threshold:,} people have it, and"
            f" {NEARLY_ALWAYS:.0%} of the time if {self.nearly_always:,} have; their number is"
            f" then known to +/- {self.half_width:,}"
        )
