"""The figures of a kind: rows with one set of columns, and what holds for a whole time range."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

from .labels import Value
from .sample_adequacy import SampleAdequacy
from .time_ranges import TimeRange


@dataclass(slots=True)  # not frozen: that is three times slower, and a result has thousands
class Figure:
    """One figure with its interval, `low` to `high`, in its own unit; null: it cannot be stated.

    `kind` is what it is: share, absent, mean, bucket, curve, quantile; of several numbers also
    deviation, covariance, correlation, coefficient (of the second number, for the first) and
    intercept. `of` is the value, range or numbers that it is of. `at` is a coordinate: where a
    bucket begins, the edge that a share of a curve is below, the requested share of a quantile.

    `fake_low` to `fake_high` is the poisoning band; null for a figure with an interval: it has no
    band, or could be any number. `answers` is a share times n, `count` how many reports support a
    value; null: a sum of values. The simultaneous intervals of all values cover at once: they are
    for decisions between values.
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
class RangeFigures:
    """The figures of one time range, and what they estimate."""

    n: int
    estimand: str
    figures: tuple[Figure, ...]
    leader: Value | None = None
    bands: str = ""  # what the bands of a curve and its quantiles cover


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
