"""Types of the result of an estimate; the OpenAPI schemas are generated from them."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from msgspec import Meta, Struct

from veilcount_analysis.estimation import LookCount, View
from veilcount_analysis.kinds.estimate_query import Denominator, GroupBy
from veilcount_analysis.kinds.labels import Value
from veilcount_analysis.text.privacy_guarantees import PrivacyFigures
from veilcount_shared.periods import Unit

from .api_types import Count, Counts

ResultValue = Annotated[
    Value, Meta(description="the value; of crossed domains and ranges, an object")
]


Looks = Annotated[
    LookCount, Meta(description="number of looks at growing data for which the intervals hold")
]
Validity = Annotated[str, Meta(description="the same in words")]


class ShareRow(Struct):
    """The share of one value, group or range; null where nothing was received.

    `answers` is the share times n. `fake_low` to `fake_high` is the poisoning band. The
    simultaneous intervals of all values cover at once: they are for decisions between values.
    """

    value: ResultValue
    frequency: float | None
    answers: float | None
    low: float
    high: float
    fake_low: float
    fake_high: float
    count: Annotated[
        Count | None, Meta(description="reports that support the value; null: a sum of values")
    ] = None
    simultaneous_low: float | None = None
    simultaneous_high: float | None = None


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
    """The distribution of a number, without a poisoning band."""

    covers: Annotated[str, Meta(description="what the bands of curve and quantiles cover")]
    buckets: list[BucketRow]
    curve: list[CurveRow]
    quantiles: list[QuantileRow]


class LossRow(Struct):
    """Losses that devices reported, each as an order of magnitude."""

    reason: str
    devices: Count
    least: Count
    most: Annotated[Count | None, Meta(description="null: no end")]
    text: str


class MomentRow(Struct):
    """A figure of one or two of several numbers, in their own units; null: it cannot be stated.

    `fake_low` to `fake_high` is the poisoning band; null for a figure that is stated: it could be
    any number.
    """

    kind: Annotated[
        str,
        Meta(
            description="mean, deviation, covariance, correlation; with `regress` coefficient (of"
            " the second number, for the first) and intercept"
        ),
    ]
    of: list[str]
    figure: float | None
    low: float | None
    high: float | None
    fake_low: float | None = None
    fake_high: float | None = None


class TimeRangeEstimate(Struct, rename={"first": "from", "last": "to"}):
    """The estimates of a time range of whole periods, both days included."""

    first: date
    last: date
    first_period: Count
    last_period: Count
    open_period: Annotated[
        bool, Meta(description="its latest period is still open: estimates will change")
    ]
    n: Count
    usable: Annotated[bool, Meta(description="whether n reports are enough for figures to be read")]
    adequacy: Annotated[str, Meta(description="the same as a sentence")]
    estimand: Annotated[str, Meta(description="what the intervals estimate")]
    contributions: Annotated[
        Count, Meta(description="largest number of reports of one person in n")
    ]
    verdicts: Annotated[Counts, Meta(description="rejected reports by verdict, all segments")]
    values: list[ShareRow]
    leader: Annotated[
        ResultValue | None,
        Meta(
            description="the value with the largest share, all values compared at once; null if"
            " none is significantly the largest, or on one page of several"
        ),
    ]
    absent: ShareRow | None
    mean: MeanRow | None
    spread: Spread | None
    moments: Annotated[list[MomentRow], Meta(description="of several numbers")] = []


class CandidateList(Struct, forbid_unknown_fields=True):
    """Strings to look for, and the other parameters of the estimate."""

    candidates: Annotated[list[str], Meta(min_length=1, max_length=1_000_000)]
    parameters: dict[str, list[str]] = {}


class SearchResult(Struct):
    """Candidates among open strings: those found are the values of the last time range."""

    discovers: Annotated[
        bool, Meta(description="strings are found without candidates, by discover=true")
    ]
    candidates: Annotated[Count, Meta(description="named in this query")]
    found: Annotated[Count, Meta(description="of these, or by discover; else in any query before")]
    missing: Annotated[list[str], Meta(description="not found, of the first 100 candidates")]
    tested: Annotated[
        Count,
        Meta(description="candidates ever tested, each on a range of days and a segment; about"),
    ]
    least_share: Annotated[
        float | None,
        Meta(description="share of a string that a test finds half of the time; null: no reports"),
    ]


class SeriesEstimate(Struct):
    """The estimates under one definition."""

    fingerprint: str
    question: str
    unit: Unit
    epsilon: PrivacyFigures
    promise: list[str]
    counts: Annotated[str, Meta(description="what n counts")]
    P: Annotated[
        float | None,
        Meta(description="probability that a report supports its own value; null: a number"),
    ]
    Q: Annotated[
        float | None,
        Meta(description="of another value: (count / n - Q) / (P - Q) is the raw share"),
    ]
    size: Annotated[
        Count | None, Meta(description="size of the domain; null: a number or open strings")
    ]
    page: Count
    pages: Count
    stand_out: Annotated[
        Count | None,
        Meta(description="number of values significantly above noise; null without `top`"),
    ]
    poisoning_test_failed: bool
    poisoning_test: Annotated[str, Meta(description="result of the poisoning test, and its limits")]
    unplaced: Annotated[Counts, Meta(description="rejected reports without a valid period")]
    losses: list[LossRow]
    time_ranges: list[TimeRangeEstimate]
    search: Annotated[SearchResult | None, Meta(description="null: values are listed")] = None


class EstimateResult(Struct):
    """The series of a collection side by side, the newest first. They are never summed."""

    collection: str
    by: GroupBy
    view: View
    level: Annotated[float, Meta(description="level of the interval of each value on its own")]
    looks: Looks
    validity: Validity
    among: Denominator
    fakes: float
    segments: dict[str, str]
    series: list[SeriesEstimate]
