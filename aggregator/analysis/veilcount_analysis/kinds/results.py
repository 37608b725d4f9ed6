"""The figures of a kind: rows with one set of columns, and what holds for a whole time range."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from math import nan

from .labels import Value
from .sample_adequacy import SampleAdequacy
from .time_ranges import TimeRange

SEPARATOR = ", "  # of the names of two numbers or questions, which have none


@dataclass(slots=True)  # not frozen: that is three times slower, and a result has thousands
class Figure:
    """One figure with its interval, `low` to `high`, in its own unit; null: it cannot be stated.

    `kind` is what it is: share, absent, raked (a share, reweighted to the margins of a population),
    mean, bucket, curve, quantile; of several numbers also deviation, covariance, correlation,
    coefficient (of the second number, for the first) and intercept; of two questions cell (both
    answers), within (the second answer among those with the first), odds_ratio, and independence
    (how probable such a table is where they are independent, by Holm over all pairs). `of` is the
    value, range, numbers or questions that it is of. `at` is a coordinate: where a bucket begins,
    the edge that a share of a curve is below, the requested share of a quantile.

    `fake_low` to `fake_high` is the poisoning band; null for a figure with an interval: it has no
    band, or could be any number. `n` reports are counted; `answers` is how many people have the
    value, estimated, `count` how many reports support it; null: a sum of values. The simultaneous
    intervals of all values cover at once: they are for decisions between values.
    """

    kind: str
    of: Value | None
    figure: float | None
    low: float | None = None
    high: float | None = None
    fake_low: float | None = None
    fake_high: float | None = None
    at: float | None = None
    answers: float | None = None
    count: int | None = None
    simultaneous_low: float | None = None
    simultaneous_high: float | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of its interval; NaN without one."""
        return (nan if self.low is None else self.low, nan if self.high is None else self.high)

    @property
    def fake_band(self) -> tuple[float, float] | None:
        """The ends of its poisoning band, if it has one."""
        if self.fake_low is None or self.fake_high is None:
            return None
        return self.fake_low, self.fake_high

    @property
    def width(self) -> float:
        """The width of its interval; 0 without one."""
        return 0.0 if self.low is None or self.high is None else self.high - self.low


@dataclass(frozen=True, slots=True)
class Weighting:
    """How figures of a time range were reweighted to the margins of a population, or why not.

    `method` is raked or none. The design effect is the factor of their variance; the largest weight
    of a report is in average weights. `notes` are what a reader must know.
    """

    method: str
    segments: tuple[str, ...]
    source: str
    as_of: date
    estimand: str = ""
    design_effect: float | None = None
    largest_weight: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def sentences(self) -> Iterator[str]:
        """What people read of the weights."""
        if self.design_effect is not None and self.largest_weight is not None:
            yield (
                f"Reweighted to the {' and '.join(self.segments)} of the population"
                f" ({self.source}, {self.as_of}): design effect {self.design_effect:.2f}, largest"
                f" weight {self.largest_weight:.1f}"
            )
        yield from self.notes


@dataclass(frozen=True, slots=True)
class RangeFigures:
    """The figures of one time range, and what they estimate."""

    n: int
    estimand: str
    figures: tuple[Figure, ...]
    leader: Value | None = None
    bands: str = ""  # what the bands of a curve and its quantiles cover
    weighting: Weighting | None = None  # None: no margins are stated


@dataclass(frozen=True, slots=True)
class RangeEstimate:
    """The figures of a time range of whole periods, and whether they can be read.

    `contributions` is the largest number of reports of one person among n. So many cover reports
    were subtracted.
    """

    time_range: TimeRange
    contributions: int
    adequacy: SampleAdequacy
    result: RangeFigures
    covers: int = 0
