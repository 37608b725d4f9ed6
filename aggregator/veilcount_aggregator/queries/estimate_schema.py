"""What an estimate's answer says, as types: the document of the doors is made of them."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from msgspec import Meta, Struct

from veilcount_shared.periods import Unit

from ..estimation import LookCount, View
from ..text.api_types import Count, Counts
from ..text.privacy_guarantees import PrivacyFigures
from .domain_values import Value
from .estimate_query import Denominator, GroupBy

ResultValue = Annotated[
    Value,
    Meta(description="the value; of crossed domains and ranges, an object"),
]


class ShareRow(Struct):
    """The share of one value, one group or one range; null where nothing was received.

    `answers` is the share of n. `fake_low` to `fake_high` is what the honest part may say.
    """

    value: ResultValue
    frequency: float | None
    answers: float | None
    low: float
    high: float
    fake_low: float
    fake_high: float


class MeanRow(Struct):
    """The mean of a number, in its own units."""

    mean: float | None
    low: float
    high: float
    fake_low: float
    fake_high: float


class BucketRow(Struct, rename={"above": "from"}):
    """The share of the numbers of one bucket."""

    above: float
    below: float
    frequency: float


class CurveRow(Struct):
    """The share of the numbers below `at`."""

    at: float
    share: float | None
    low: float
    high: float


class QuantileRow(Struct):
    """The number below which a share of the numbers lies."""

    share: float
    value: float | None
    low: float
    high: float


class Spread(Struct):
    """How a number is spread; no fakes are reckoned with here."""

    covers: Annotated[str, Meta(description="what the bands of curve and quantiles hold for")]
    buckets: list[BucketRow]
    curve: list[CurveRow]
    quantiles: list[QuantileRow]


class LossRow(Struct):
    """What devices say they lost on the way: each tells a coarse number."""

    reason: str
    devices: Count
    least: Count
    most: Annotated[Count | None, Meta(description="null: no end")]
    text: str


class TimeRangeEstimate(Struct, rename={"first": "from", "last": "to"}):
    """The answers of some whole periods, the first and the last UTC day included."""

    first: date
    last: date
    first_period: Count
    last_period: Count
    filling: Annotated[bool, Meta(description="some of it takes reports still: it will move")]
    n: Count
    of: Annotated[str, Meta(description="what the intervals are of")]
    contributions: Annotated[Count, Meta(description="of n, at most so many are one person's")]
    verdicts: Annotated[Counts, Meta(description="reports that were not counted, all segments")]
    values: list[ShareRow]
    absent: ShareRow | None
    mean: MeanRow | None
    spread: Spread | None


class SeriesEstimate(Struct):
    """The answers under one definition."""

    fingerprint: str
    question: str
    unit: Unit
    epsilon: PrivacyFigures
    promise: list[str]
    counts: Annotated[str, Meta(description="what n counts")]
    size: Annotated[Count | None, Meta(description="how many values there are; null: a number")]
    page: Count
    pages: Count
    stand_out: Annotated[
        Count | None,
        Meta(description="values above what noise alone shows; null unless a top list is asked"),
    ]
    suspicious: bool
    suspicion: Annotated[str, Meta(description="what the tests for fakes saw, and cannot see")]
    unplaced: Annotated[Counts, Meta(description="reports that were not counted, of no period")]
    losses: list[LossRow]
    time_ranges: list[TimeRangeEstimate]


class EstimateResult(Struct):
    """The series of a collection side by side, the newest first. They are never summed."""

    collection: str
    by: GroupBy
    view: View
    level: float
    simultaneous: bool
    looks: Annotated[LookCount, Meta(description="at how many looks at growing answers they hold")]
    validity: Annotated[str, Meta(description="the same in words")]
    among: Denominator
    fakes: float
    segments: dict[str, str]
    series: list[SeriesEstimate]
