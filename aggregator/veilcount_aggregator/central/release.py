"""Releases: the true counts under noise, with intervals of stated coverage.

Besides public constants, all of a release follows from its noised integers. Intervals are of the
noise's own distribution: each covers the true figure with at least the stated level.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..series.packed_rows import Counters
from .discrete_laplace import DiscreteLaplaceNoise
from .opendp_noise import NoiseSource, add_noise, calibrated_scale
from .priced_query import PricedQuery
from .query import Label

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class PartNoise:
    """The noise on one part: what it is calibrated to, and how far it goes."""

    name: str
    sensitivity: int
    scale: float
    deviation: float
    half_width: int  # each number's noise exceeds it with probability 1 - level at most


@dataclass(frozen=True, slots=True)
class Release:
    """A central release. Counts and sums are unbiased, and may be negative."""

    canonical: str
    written_query: Any  # as it was written first
    kind: str
    labels: tuple[Label, ...]
    values: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    level: float  # of each interval
    n: int | None  # the exact number of answers, where it is public
    noise: tuple[PartNoise, ...]
    noised: tuple[tuple[int, ...], ...]  # what came out of the noise, part by part
    adjacency: str
    micro_epsilon: int
    person_epsilon: str  # of all units of one person together, exact
    first_period: int
    last_period: int

    def to_json(self) -> dict[str, Any]:
        """Return the release as JSON holds it."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Release:
        """Return the release that was written down."""
        return cls(
            **{name: _tuples(value) for name, value in content.items() if name != "noise"},
            noise=tuple(PartNoise(**part) for part in content["noise"]),
        )


def _tuples(value: Any) -> Any:
    """Return JSON's lists, and those within, as the tuples that they were."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def draw_release(
    question: PricedQuery,
    counters: Counters,
    level: float = LEVEL,
    *,
    noise: NoiseSource = add_noise,
) -> Release:
    """Draw the release. `counters` are the true ones of all its periods, summed, and not kept.

    Whoever calls this has charged the question, and writes charge and release down together. Other
    noise than OpenDP's is for simulations alone.
    """
    collection, query = question.collection, question.query
    if counters.shape != (collection.inputs,) or (counters < 0).any():
        raise ValueError(f"{collection.name}: give {collection.inputs} counts of true answers")
    n = int(counters.sum()) if question.publishes_n else None
    parts = part_noise(question, level)
    true = query.true_values(collection, counters)
    drawn = tuple(
        tuple(noise(numbers, part.scale)) for numbers, part in zip(true, parts, strict=True)
    )
    figures = query.figures(drawn, [part.half_width for part in parts], n)
    return Release(
        canonical=question.canonical,
        written_query=question.written_query,
        kind=query.kind,
        labels=query.labels(collection),
        values=tuple(value for value, _, _ in figures),
        low=tuple(low for _, low, _ in figures),
        high=tuple(high for _, _, high in figures),
        level=level,
        n=n,
        noise=parts,
        noised=drawn,
        adjacency=str(collection.adjacency),
        micro_epsilon=question.micro_epsilon,
        person_epsilon=str(question.person_epsilon),
        first_period=question.periods[0],
        last_period=question.periods[-1],
    )


def part_noise(question: PricedQuery, level: float = LEVEL) -> tuple[PartNoise, ...]:
    """Return the noise on each part, from declared constants alone.

    Two parts share what their intervals may miss together.
    """
    if not 0 < level < 1:
        raise ValueError(f"level = {level}: give a probability between 0 and 1")
    alpha = (1 - level) / len(question.parts)
    found = []
    for part in question.parts:
        noise = DiscreteLaplaceNoise(calibrated_scale(part.sensitivity, part.epsilon))
        width = noise.half_width(alpha)
        found.append(PartNoise(part.name, part.sensitivity, noise.scale, noise.deviation, width))
    return tuple(found)
