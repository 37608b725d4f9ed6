"""Kinds of question: one module each, and the registry.

A kind is looked up by the type of the domain and the measure. There is no default: what no row
names is refused, wherever a kind is asked for.
"""

from __future__ import annotations

from typing import Any

from ..domain import Boolean, Choice, Cross, Domain, Features, Number, OpenStrings
from ..enums import Measure
from .features import FeatureKind
from .kind import DeviceKind as DeviceKind
from .kind import Price as Price
from .numbers import DistributionKind, MeanKind, NumberKind, RangesKind
from .strings import StringKind
from .trend import TrendKind
from .values import ValueKind

KINDS: dict[tuple[type[Domain], Measure | None], DeviceKind[Any]] = {
    (OpenStrings, None): StringKind(),
    (Choice, None): ValueKind(),
    (Boolean, None): ValueKind(),
    (Cross, None): ValueKind(),
    (Number, None): NumberKind(),
    (Number, Measure.MEAN): MeanKind(),
    (Number, Measure.DISTRIBUTION): DistributionKind(),
    (Number, Measure.RANGES): RangesKind(),
    (Features, Measure.MOMENTS): FeatureKind(),
    (Boolean, Measure.TREND): TrendKind(),
}


def kind_of(domain: Domain, measure: Measure | None) -> DeviceKind[Any]:
    """Return the kind of a domain and a measure; raise KeyError if no kind has both."""
    return KINDS[type(domain), measure]
