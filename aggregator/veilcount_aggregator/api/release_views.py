"""Responses about central releases: one release, a dry run, all releases of a series.

No true count gets here: what the curator returns is noised and charged.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

import msgspec

from veilcount_shared import Collection
from veilcount_shared.epsilon import EPSILON_GRAIN
from veilcount_shared.errors import format_value
from veilcount_shared.schedule import period_end, period_start

from ..central import PartNoise, PricedQuery, Release, quantile
from ..central.budget_ledger import PeriodAccount, StoredRelease, load_releases, period_accounts
from ..central.curator import DryRun, ReleaseResult
from ..series.series import Series
from ..store import Store
from .schemas import (
    CountQuery,
    NoiseView,
    PeriodBudget,
    QuantileView,
    ReleasedFigure,
    ReleaseResponse,
    ReleaseView,
    SeriesReleases,
)

#: what is told of a number's histogram
SHARES = tuple(Fraction(share, 100) for share in (5, 25, 50, 75, 95))


def release_response(series: Series, told: ReleaseResult) -> ReleaseResponse:
    """Return a release that was asked for, charged now or before."""
    shown = _view(series.collection, told.release, told.day)
    return _answer(
        series,
        told.question,
        told.accounts,
        shown,
        charged=told.charged,
        quantiles=_quantiles(told.release),
    )


def dry_run_response(series: Series, foreseen: DryRun) -> ReleaseResponse:
    """Return the price and the error of a release that is not drawn."""
    question, collection = foreseen.question, series.collection
    shown = ReleaseView(
        query=_query(question.asked),
        epsilon=format_value(question.epsilon),
        person_epsilon=format_value(question.person_epsilon),
        first=_first(collection, question.periods[0]),
        last=_last(collection, question.periods[-1]),
        level=foreseen.forecast.level,
        noise=_noise(foreseen.forecast.noise),
        day=None,
        n=None,
        figures=[],
    )
    return _answer(series, question, foreseen.accounts, shown, charged=None, quantiles=[])


def _answer(
    series: Series,
    question: PricedQuery,
    standing: Iterable[PeriodAccount],
    shown: ReleaseView,
    *,
    charged: bool | None,
    quantiles: list[QuantileView],
) -> ReleaseResponse:
    """Return a release with what it asks of a budget; one that was not drawn is a dry run."""
    least = min(standing, key=lambda account: account.remaining)
    return ReleaseResponse(
        **{name: getattr(shown, name) for name in ReleaseView.__struct_fields__},
        collection=series.collection.name,
        fingerprint=series.fingerprint,
        adjacency=series.collection.adjacency,
        quantiles=quantiles,
        dry_run=charged is None,
        charged=bool(charged),
        requested=format_value(question.epsilon),
        spent=format_value(least.spent),
        remaining=format_value(least.remaining),
    )


def series_releases(store: Store, series: Series) -> SeriesReleases:
    """Return all that was ever released of a series, and where its periods stand."""
    collection = series.collection
    kept = load_releases(store, series.fingerprint)
    standing = period_accounts(series, kept, range(collection.periods))
    return SeriesReleases(
        series.fingerprint,
        collection.adjacency,
        format_value(collection.unit_epsilon),
        [_period(collection, account) for account in standing],
        [_kept(collection, each) for each in kept],
    )


def _kept(collection: Collection, kept: StoredRelease) -> ReleaseView:
    return _view(collection, Release.from_json(kept.answer), kept.day)


def _view(collection: Collection, release: Release, day: str) -> ReleaseView:
    columns = zip(release.labels, release.values, release.low, release.high, strict=True)
    return ReleaseView(
        query=_query(release.asked),
        epsilon=format_value(Fraction(release.micro_epsilon, EPSILON_GRAIN)),
        person_epsilon=format_value(Fraction(release.person_epsilon)),
        first=_first(collection, release.first_period),
        last=_last(collection, release.last_period),
        level=release.level,
        noise=_noise(release.noise),
        day=date.fromisoformat(day),
        n=release.n,
        figures=[ReleasedFigure(_value(label), *figure) for label, *figure in columns],
    )


def _period(collection: Collection, account: PeriodAccount) -> PeriodBudget:
    first, last = _first(collection, account.period), _last(collection, account.period)
    return PeriodBudget(
        account.period, first, last, format_value(account.spent), format_value(account.remaining)
    )


def _query(written: Any) -> str | CountQuery:
    return CountQuery(**written) if isinstance(written, dict) else str(written)


def _quantiles(release: Release) -> list[QuantileView]:
    """Return what a histogram says of its numbers; nothing, if it has none."""
    if release.kind != "histogram" or not all(type(label) is int for label in release.labels):
        return []
    found = [quantile(release, share, release.level) for share in SHARES]
    return [QuantileView(float(each.share), each.value, each.low, each.high) for each in found]


def _noise(parts: Iterable[PartNoise]) -> list[NoiseView]:
    return [msgspec.convert(part, NoiseView, from_attributes=True) for part in parts]


def _value(label: Any) -> Any:
    """Return a label as JSON has it."""
    return list(label) if isinstance(label, tuple) else label


def _first(collection: Collection, period: int) -> date:
    return period_start(collection, period).date()


def _last(collection: Collection, period: int) -> date:
    return period_end(collection, period).date() - timedelta(days=1)
