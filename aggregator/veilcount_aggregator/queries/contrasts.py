"""The query of a trust-model comparison and its result: local, shuffled and central."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import lru_cache
from typing import Annotated

from msgspec import Meta, Struct

from veilcount_analysis.kinds.registry import kind_of
from veilcount_analysis.kinds.time_ranges import TimeRange, time_range
from veilcount_analysis.privacy.trust_models import TrustComparison
from veilcount_analysis.privacy.trust_models import compare_trust_models as contrasted
from veilcount_analysis.privacy.trust_models.comparison import DELTA
from veilcount_analysis.query_params import Delta, Level, QueryParams, SeriesFilter
from veilcount_analysis.series.series import Series
from veilcount_analysis.text.privacy_guarantees import PrivacyFigures, counts_are_public, epsilons
from veilcount_shared import Collection

from .budgets import ASSUMED, Population
from .estimate import StoreSource
from .paired_comparison import PairedComparison, compare_pair
from .snapshot import Snapshot, series_by_fingerprint


class SeriesContrast(Struct, rename={"first": "from", "last": "to"}):
    """One definition under the models of trust."""

    fingerprint: str
    question: str
    epsilon: PrivacyFigures
    n_source: Annotated[str, Meta(description="where n comes from")]
    first: Annotated[date | None, Meta(description="the period that n was observed in")]
    last: date | None
    contrast: TrustComparison
    twin: Annotated[
        PairedComparison | None, Meta(description="where the other half uses the other trust model")
    ]


class ContrastResult(Struct):
    """A collection's series side by side, the newest first."""

    collection: str
    series: list[SeriesContrast]


@dataclass(frozen=True, kw_only=True)
class ContrastQuery(QueryParams):
    """The query of a trust-model comparison: with `n` predicted errors, else observed ones."""

    series: SeriesFilter = ()
    n: Population = None
    level: Level = 0.95
    delta: Delta = DELTA


def contrast(snapshot: Snapshot, name: str, query: ContrastQuery) -> ContrastResult:
    """The same question in the local, shuffled and central model.

    Errors, guarantees, and the number of devices that each model needs.
    """
    everyone = snapshot.named(name)
    wanted = [series_by_fingerprint(everyone, fingerprint) for fingerprint in query.series] or [
        everyone[0]
    ]
    return ContrastResult(name, [_series(snapshot, one_series, query) for one_series in wanted])


def _series(snapshot: Snapshot, series: Series, query: ContrastQuery) -> SeriesContrast:
    collection, seen = series.collection, None
    if query.n is None and counts_are_public(collection):
        seen = _seen(snapshot, series)
    n = query.n or (seen.n if seen else ASSUMED)
    comparison = _contrasted(
        collection, n, seen.frequencies if seen else None, query.level, query.delta
    )
    return SeriesContrast(
        fingerprint=series.fingerprint,
        question=collection.question,
        epsilon=epsilons(collection),
        n_source=_where(query, seen),
        first=seen.covered.first if seen else None,
        last=seen.covered.last if seen else None,
        contrast=comparison,
        twin=compare_pair(snapshot, series, query.level),
    )


def _where(query: ContrastQuery, seen: ObservedPeriod | None) -> str:
    if query.n is not None:
        return "as requested"
    return "reports of the fullest period" if seen else "assumed: no report is counted yet"


@dataclass(frozen=True, slots=True)
class ObservedPeriod:
    """What the fullest period shows; no shares of a mean, nor of a curator's true values."""

    covered: TimeRange
    n: int
    frequencies: tuple[float, ...] | None


def _seen(snapshot: Snapshot, series: Series) -> ObservedPeriod | None:
    sizes: dict[int, int] = {}
    for cell, reports in snapshot.store.report_counts(series).items():
        sizes[cell.period] = sizes.get(cell.period, 0) + reports
    if not sizes:
        return None
    period = max(sizes, key=lambda number: sizes[number])
    covered = time_range(series, range(period, period + 1), snapshot.today)
    return ObservedPeriod(covered, sizes[period], _frequencies(snapshot, series, covered))


def _frequencies(snapshot: Snapshot, series: Series, days: TimeRange) -> tuple[float, ...] | None:
    collection = series.collection
    if collection.epsilon is None:
        return None  # true values are for releases alone
    whole = StoreSource(snapshot, series).tally(days.periods, range(collection.cells))
    return kind_of(collection).frequencies(whole)


@lru_cache(maxsize=32)  # searches over many designs take a second
def _contrasted(
    collection: Collection,
    n: int,
    frequencies: tuple[float, ...] | None,
    level: float,
    delta: Fraction,
) -> TrustComparison:
    quantity = kind_of(collection).quantity
    return contrasted(collection, quantity, n, frequencies=frequencies, level=level, delta=delta)
