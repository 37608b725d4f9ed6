"""Releases: the true counts under noise, with intervals of stated coverage.

Besides public constants, all of a release follows from its noised integers. Intervals are of the
noise's own distribution: each covers the true figure with at least the stated level.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import chain
from typing import Any

from veilcount_shared.epsilon import EPSILON_GRAIN
from veilcount_shared.kinds import CellLabel

from ..series.packed_rows import Counters
from .noise import NoisyMax, calibrated_noise, noise_selector, noise_source
from .noise_kinds import NoiseDistribution, NoiseKind
from .opendp_noise import NoiseSource, Selector
from .priced_query import PricedQuery
from .query import counters_a_period
from .truncated_laplace import noise_reach, truncated

LEVEL = 0.95
SELECTIONS = frozenset({NoiseKind.EXPONENTIAL, NoiseKind.GUMBEL})


@dataclass(frozen=True, slots=True)
class PartNoise:
    """The noise on one part: what it is calibrated to, and how far it goes."""

    name: str
    sensitivity: int  # L1; of Gaussian noise, it is calibrated to L2
    scale: float
    deviation: float
    half_width: int  # the noise, or a selection's loss, exceeds it with probability 1 - level
    distribution: NoiseKind = NoiseKind.LAPLACE
    threshold: int | None = None  # what is below it is not released
    delta: float | None = None  # with which one person's strings pass it


@dataclass(frozen=True, slots=True)
class Release:
    """A central release. Counts and sums are unbiased, and may be negative."""

    canonical: str
    written_query: Any  # as it was written first
    kind: str
    labels: tuple[CellLabel, ...]
    values: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    level: float  # of each interval
    n: int | None  # the exact number of answers, where it is public
    noise: tuple[PartNoise, ...]
    noised: tuple[tuple[int, ...], ...]  # what came out of the noise, part by part
    adjacency: str
    micro_epsilon: int  # of one unit; 0: Gaussian noise, which has no epsilon
    person_epsilon: str  # of all units of one person together, exact; "": likewise
    first_period: int
    last_period: int
    rho: str = ""  # of one unit, exact; "": the budget is in epsilon
    person_rho: str = ""  # of all units of one person together

    @property
    def epsilon(self) -> Fraction | None:
        """The epsilon of one unit; None: Gaussian noise, which has none."""
        return Fraction(self.micro_epsilon, EPSILON_GRAIN) if self.micro_epsilon else None

    def to_json(self) -> dict[str, Any]:
        """Return the release as JSON holds it."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Release:
        """Return the release that was written down."""
        return cls(
            **{name: _tuples(value) for name, value in content.items() if name != "noise"},
            noise=tuple(map(_part, content["noise"])),
        )


def _part(content: Mapping[str, Any]) -> PartNoise:
    """Return the noise on a part."""
    return PartNoise(**{**content, "distribution": NoiseKind(content["distribution"])})


def _tuples(value: Any) -> Any:
    """Return JSON's lists, and those within, as the tuples that they were."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def draw_release(
    question: PricedQuery,
    counters: Counters,
    level: float = LEVEL,
    *,
    noise: NoiseSource | None = None,
    select: Selector | None = None,
) -> Release:
    """Draw the release. `counters` are the true ones of all its periods, and not kept: summed,
    or a row for each period if the query wants them so, or hashes and their counts.

    Whoever calls this has charged the question, and writes charge and release down together. Other
    noise than OpenDP's is for simulations alone.
    """
    collection, query = question.collection, question.query
    shape = (len(question.periods),) * query.by_period + (counters_a_period(collection),)
    if query.by_hash:
        shape = (2, counters.shape[-1])
    if counters.shape != shape or (counters < 0).any():
        raise ValueError(f"{collection.name}: give {shape[-1]} counts of true answers")
    n = int(counters[query.by_hash :].sum()) if question.publishes_n else None
    parts = part_noise(question, level)
    widths = [part.half_width for part in parts]
    drawn: tuple[tuple[int, ...], ...] = ()
    for part in parts:
        values = query.part_values(collection, counters, drawn, widths)
        drawn = (*drawn, _drawn(part, values, noise, select))
    figures = query.figures(drawn, parts, (1 - level) / len(parts), n)
    return Release(
        canonical=question.canonical,
        written_query=question.written_query,
        kind=query.kind,
        labels=query.labels(collection, drawn),
        values=tuple(value for value, _, _ in figures),
        low=tuple(low for _, low, _ in figures),
        high=tuple(high for _, _, high in figures),
        level=level,
        n=n,
        noise=parts,
        noised=drawn,
        adjacency=str(collection.adjacency),
        micro_epsilon=question.micro_epsilon,
        person_epsilon=_exact(question.person_epsilon),
        first_period=question.periods[0],
        last_period=question.periods[-1],
        rho=_exact(question.rho),
        person_rho=_exact(question.person_rho),
    )


def _drawn(
    part: PartNoise, values: list[int], noise: NoiseSource | None, select: Selector | None
) -> tuple[int, ...]:
    if part.distribution in SELECTIONS:
        return ((select or noise_selector(part.distribution))(values, part.scale),)
    draw = noise or noise_source(part.distribution)
    if part.threshold is None:
        return tuple(draw(values, part.scale))
    if part.distribution is NoiseKind.LAPLACE:
        draw = truncated(draw, part.threshold - 1)
    return _above(part.threshold, values[::2], draw(values[1::2], part.scale))


def _above(threshold: int, places: list[int], noised: list[int]) -> tuple[int, ...]:
    """Return places and counts by turns, of the counts that reach a threshold."""
    both = zip(places, noised, strict=True)
    return tuple(chain.from_iterable(pair for pair in both if pair[1] >= threshold))


def _exact(number: Fraction | None) -> str:
    return "" if number is None else str(number)


def part_noise(question: PricedQuery, level: float = LEVEL) -> tuple[PartNoise, ...]:
    """Return the noise on each part, from declared constants alone.

    Two parts share what their intervals may miss together.
    """
    if not 0 < level < 1:
        raise ValueError(f"level = {level}: give a probability between 0 and 1")
    alpha = (1 - level) / len(question.parts)
    noises = []
    for part in question.parts:
        noise = calibrated_noise(question.cost.noise, part, question.cost.amount)
        noises.append(
            PartNoise(
                part.name,
                part.sensitivity,
                noise.scale,
                noise.deviation,
                question.query.error_width(noise, alpha),
                noise.kind if isinstance(noise, NoisyMax) else question.cost.noise,
                least_released(question, noise) if part.has_threshold else None,
                float(question.threshold_delta) if part.has_threshold else None,
            )
        )
    return tuple(noises)


def least_released(question: PricedQuery, noise: NoiseDistribution | NoisyMax) -> int:
    """Return the least count that is released, of places that one person may have made.

    A person of c answers makes c places at most, with c in each at most. Under Gaussian noise each
    passes with noise of the threshold - c or more: with probability delta / c at most, on one side
    [KKMN09]. A substitute takes c answers away, and gives c: half of the delta is for either.
    """
    answers = question.person_contributions
    if question.cost.noise is NoiseKind.LAPLACE:
        delta = question.threshold_delta / question.sensitivity
        return noise_reach(noise.scale, delta, answers) + 1
    return answers + 1 + noise.half_width(2 * float(question.threshold_delta) / answers)
