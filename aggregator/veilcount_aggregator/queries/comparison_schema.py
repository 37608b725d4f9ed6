"""Types of the result of a comparison."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from msgspec import Meta, Struct

from veilcount_shared.periods import Unit

from ..estimation import LookCount
from ..text.api_types import Count
from ..text.privacy_guarantees import PrivacyFigures
from .estimate_schema import ResultValue


class SideView(Struct, rename={"first": "from", "last": "to"}):
    """One side: whole periods of one series, the first and the last UTC day included."""

    label: str
    fingerprint: str
    unit: Unit
    epsilon: PrivacyFigures
    first: date
    last: date
    open_period: bool
    segments: dict[str, str]
    n: Count
    counts: str
    contributions: Count


class SideFigure(Struct):
    """One side's estimate and its interval."""

    figure: float
    low: float
    high: float


class ComparisonRow(Struct):
    """Difference a - b; `differs` goes by `holm`, the p-value adjusted for all values."""

    value: Annotated[ResultValue | None, Meta(description="null: a mean")]
    a: SideFigure
    b: SideFigure
    difference: float
    low: float
    high: float
    p: float
    holm: float
    detectable: Annotated[float, Meta(description="smallest difference detected with power 0.8")]
    differs: bool
    sentence: str


class CompareResult(Struct):
    """Two sides compared value by value; only a sentence where a side has no reports."""

    collection: str
    level: float
    looks: Annotated[
        LookCount, Meta(description="number of looks at growing data for which the intervals hold")
    ]
    validity: Annotated[str, Meta(description="the same in words")]
    estimand: str
    family: Count
    a: SideView
    b: SideView
    rows: list[ComparisonRow]
    sentence: str
    note: Annotated[str, Meta(description="assumptions; may be empty")]
