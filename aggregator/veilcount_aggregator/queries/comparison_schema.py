"""What a comparison's answer says, as types."""

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
    filling: bool
    segments: dict[str, str]
    n: Count
    counts: str
    contributions: Count


class SideFigure(Struct):
    """One side's figure and its interval."""

    figure: float
    low: float
    high: float


class ComparisonRow(Struct):
    """First less second; `holm` is p in the family of all values, which `differs` goes by."""

    value: Annotated[ResultValue | None, Meta(description="null: a mean")]
    a: SideFigure
    b: SideFigure
    difference: float
    low: float
    high: float
    p: float
    holm: float
    detectable: Annotated[float, Meta(description="would have been found 4 times out of 5")]
    differs: bool
    sentence: str


class CompareResult(Struct):
    """Two sides, value by value; without answers on both sides, a sentence alone."""

    collection: str
    level: float
    looks: Annotated[LookCount, Meta(description="at how many looks at growing answers they hold")]
    validity: Annotated[str, Meta(description="the same in words")]
    of: str
    family: Count
    a: SideView
    b: SideView
    rows: list[ComparisonRow]
    sentence: str
    note: Annotated[str, Meta(description="what else to know; may be empty")]
