"""Which kind a definition is: one line each, by the type of its domain and its measure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from veilcount_shared import Collection
from veilcount_shared.collection import Measure
from veilcount_shared.domain import Boolean, Choice, Cross, Features, Number, OpenStrings, Questions

from .features import FeatureMoments
from .kind import Kind
from .numbers import Distribution, Mean, Ranges
from .strings import Strings
from .tables import TwoWayTables
from .trend import Trend
from .values import Values

NUMBER_KINDS: Mapping[Measure, type[Mean]] = {
    Measure.MEAN: Mean,
    Measure.DISTRIBUTION: Distribution,
    Measure.RANGES: Ranges,
}
KINDS: Mapping[tuple[type, Measure | None], type[Kind[Any, Any]]] = {
    (Boolean, None): Values,
    (Choice, None): Values,
    (Cross, None): Values,
    (Number, None): Mean,  # of true values: the mean is what their release is planned for
    **{(Number, measure): kind for measure, kind in NUMBER_KINDS.items()},
    (OpenStrings, None): Strings,
    (Features, Measure.MOMENTS): FeatureMoments,
    (Questions, None): TwoWayTables,
    (Boolean, Measure.TREND): Trend,
}


KINDS_BY_NAME: Mapping[str, type[Kind[Any, Any]]] = {kind.name: kind for kind in KINDS.values()}


def check_kinds(kinds: Iterable[type[Kind[Any, Any]]]) -> None:
    """Refuse a kind that lacks a choice every kind makes: an abstract one, or a constant."""
    for kind in kinds:
        missing = set(kind.__abstractmethods__)
        missing |= {name for name in ("name", "panels") if not hasattr(kind, name)}
        if missing:
            raise TypeError(f"{kind.__name__}: define {', '.join(sorted(missing))}")


check_kinds(KINDS.values())


@lru_cache(maxsize=1024)
def kind_of(collection: Collection) -> Kind[Any, Any]:
    """Return the kind of a collection; a domain and measure in no row raise KeyError."""
    return KINDS[type(collection.domain), collection.measure](collection)
