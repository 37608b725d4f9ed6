"""Central releases as responses: one release, a dry run, all releases of a series.

No true count gets here: what the curator returns is noised and charged.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from fractions import Fraction
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from veilcount_analysis.mechanisms.candidate_search import Candidates
from veilcount_analysis.releases import (
    MAX_HISTOGRAM_VALUES,
    NoiseKind,
    PartNoise,
    Release,
    quantile,
)
from veilcount_analysis.releases.price import Accounting, period_budget
from veilcount_analysis.releases.release import LEVEL
from veilcount_analysis.series.series import Series
from veilcount_shared import Collection
from veilcount_shared.collection import Adjacency
from veilcount_shared.errors import format_value
from veilcount_shared.schedule import period_end, period_start

from ..json_results import Count, Decimal
from ..releases.budget_ledger import StoredRelease, load_releases, period_accounts
from ..releases.curator import DryRun, ReleaseResult
from ..store import RecordStore
from .named_strings import NamedStrings, name_strings

#: the quantiles that come with a number's histogram
QUANTILES = tuple(Fraction(share, 100) for share in (5, 25, 50, 75, 95))

Value = str | int | bool | list[str | int]


class CountQuery(Struct, forbid_unknown_fields=True):
    """How many answers are one of these values; of crossed domains, a list each."""

    count: Annotated[list[Value], Meta(min_length=1, max_length=MAX_HISTOGRAM_VALUES)]


class NoiseView(Struct):
    """The noise on one part of a release."""

    name: str
    distribution: NoiseKind
    sensitivity: Annotated[Count, Meta(description="L1")]
    scale: float
    deviation: float
    half_width: Annotated[Count, Meta(description="noise is within it, at the level")]
    threshold: Annotated[Count | None, Meta(description="the least count that is released")]
    delta: Annotated[
        float | None, Meta(description="with which one person's strings pass the threshold")
    ]


class ReleasedFigure(Struct):
    """One figure of a release: its value, and the interval of the true figure."""

    value: Value
    figure: float
    low: float
    high: float


class ReleaseView(Struct, rename={"first": "from", "last": "to"}):
    """A release: query, periods, epsilon, noise and figures."""

    query: str | CountQuery
    epsilon: Annotated[Decimal | None, Meta(description="null: Gaussian noise, which has none")]
    person_epsilon: Annotated[
        Decimal | None, Meta(description="of all units of one person together")
    ]
    rho: Annotated[Decimal | None, Meta(description="null: the budget is in epsilon")]
    person_rho: Annotated[Decimal | None, Meta(description="of all units of one person together")]
    first: date
    last: date
    level: float
    noise: list[NoiseView]
    day: Annotated[date | None, Meta(description="when it was drawn; null: a dry run")]
    n: Annotated[Count | None, Meta(description="null where the exact count is secret")]
    figures: list[ReleasedFigure]


class QuantileView(Struct):
    """A number at or below which a share of the answers lies, and its interval."""

    share: float
    value: int
    low: int
    high: int


class ReleaseResponse(ReleaseView, rename={"first": "from", "last": "to"}):
    """A requested release, with the budget of the period that has least left."""

    collection: str
    fingerprint: str
    adjacency: Adjacency | None
    quantiles: Annotated[list[QuantileView], Meta(description="of a number's histogram, free")]
    strings: Annotated[NamedStrings | None, Meta(description="the request's candidates, free")]
    dry_run: bool
    charged: Annotated[bool, Meta(description="false: a dry run, or released before")]
    unit: Annotated[Accounting, Meta(description="of what is requested, spent and remaining")]
    requested: Decimal
    spent: Decimal
    remaining: Decimal


class PeriodBudget(Struct, rename={"first": "from", "last": "to"}):
    """The spent and the remaining budget of one period."""

    period: Count
    first: date
    last: date
    spent: Decimal
    remaining: Decimal


class SeriesReleases(Struct):
    """All releases of one series, the oldest first, and the budget of its periods."""

    fingerprint: str
    adjacency: Adjacency | None
    unit: Annotated[Accounting, Meta(description="of budget, spent and remaining")]
    budget: Annotated[Decimal, Meta(description="of each period")]
    delta: Annotated[Decimal | None, Meta(description="null: pure epsilon")]
    periods: list[PeriodBudget]
    releases: list[ReleaseView]


def release_response(
    series: Series, result: ReleaseResult, candidates: Candidates | None = None
) -> ReleaseResponse:
    """Return a release, charged now or before, and which candidates are in it."""
    collection, release = series.collection, result.release
    return _response(
        series,
        result,
        _view(collection, release, date.fromisoformat(result.day)),
        charged=result.charged,
        quantiles=_quantiles(release),
        strings=name_strings(collection, release, candidates) if candidates else None,
    )


def dry_run_response(series: Series, dry_run: DryRun) -> ReleaseResponse:
    """Return the price and the error of a release that is not drawn."""
    question = dry_run.question
    view = ReleaseView(
        query=_query(question.written_query),
        epsilon=_decimal(question.epsilon),
        person_epsilon=_decimal(question.person_epsilon),
        rho=_decimal(question.rho),
        person_rho=_decimal(question.person_rho),
        first=days_of(series.collection, question.periods[0])[0],
        last=days_of(series.collection, question.periods[-1])[1],
        level=LEVEL,
        noise=_noise(dry_run.noise),
        day=None,
        n=None,
        figures=[],
    )
    return _response(series, dry_run, view, dry_run=True)


def _response(
    series: Series,
    result: ReleaseResult | DryRun,
    view: ReleaseView,
    *,
    dry_run: bool = False,
    charged: bool = False,
    quantiles: Iterable[QuantileView] = (),
    strings: NamedStrings | None = None,
) -> ReleaseResponse:
    """Return a release with the budget of the period that has least left."""
    least = min(result.accounts, key=lambda account: account.remaining)
    return ReleaseResponse(
        **msgspec.structs.asdict(view),
        collection=series.collection.name,
        fingerprint=series.fingerprint,
        adjacency=series.collection.adjacency,
        quantiles=list(quantiles),
        strings=strings,
        dry_run=dry_run,
        charged=charged,
        unit=result.question.accounting,
        requested=format_value(result.question.requested),
        spent=format_value(least.spent),
        remaining=format_value(least.remaining),
    )


def series_releases(store: RecordStore, series: Series) -> SeriesReleases:
    """Return all releases of a series, and the budget of its periods."""
    collection = series.collection
    stored = load_releases(store, series.fingerprint)
    return SeriesReleases(
        series.fingerprint,
        collection.adjacency,
        Accounting.of_collection(collection),
        format_value(period_budget(collection)),
        _decimal(collection.delta),
        [
            PeriodBudget(
                account.period,
                *days_of(collection, account.period),
                format_value(account.spent),
                format_value(account.remaining),
            )
            for account in period_accounts(series, stored, range(collection.periods))
        ],
        [_stored_view(collection, stored_release) for stored_release in stored],
    )


def latest_release(store: RecordStore, series: Series) -> ReleaseView | None:
    """Return the release of a series that was drawn last."""
    stored = load_releases(store, series.fingerprint)
    return _stored_view(series.collection, stored[-1]) if stored else None


def days_of(collection: Collection, period: int) -> tuple[date, date]:
    """Return the first and the last UTC day of a period."""
    last = period_end(collection, period).date() - timedelta(days=1)
    return period_start(collection, period).date(), last


def _stored_view(collection: Collection, stored: StoredRelease) -> ReleaseView:
    day = date.fromisoformat(stored.day)
    return _view(collection, Release.from_json(stored.answer), day)


def _view(collection: Collection, release: Release, day: date) -> ReleaseView:
    columns = zip(release.labels, release.values, release.low, release.high, strict=True)
    return ReleaseView(
        query=_query(release.written_query),
        epsilon=_decimal(release.epsilon),
        person_epsilon=_parsed(release.person_epsilon),
        rho=_parsed(release.rho),
        person_rho=_parsed(release.person_rho),
        first=days_of(collection, release.first_period)[0],
        last=days_of(collection, release.last_period)[1],
        level=release.level,
        noise=_noise(release.noise),
        day=day,
        n=release.n,
        figures=[
            ReleasedFigure(list(label) if isinstance(label, tuple) else label, *figure)
            for label, *figure in columns
        ],
    )


def _decimal(number: Fraction | None) -> str | None:
    return None if number is None else format_value(number)


def _parsed(exact: str) -> str | None:
    return format_value(Fraction(exact)) if exact else None


def _query(written: Any) -> str | CountQuery:
    return CountQuery(**written) if isinstance(written, dict) else str(written)


def _quantiles(release: Release) -> list[QuantileView]:
    """Return the quantiles of a number's histogram; none of another release."""
    if release.kind != "histogram" or not all(type(label) is int for label in release.labels):
        return []
    quantiles = [quantile(release, share, release.level) for share in QUANTILES]
    return [
        QuantileView(float(released.share), released.value, released.low, released.high)
        for released in quantiles
    ]


def _noise(parts: Iterable[PartNoise]) -> list[NoiseView]:
    return [msgspec.convert(part, NoiseView, from_attributes=True) for part in parts]
