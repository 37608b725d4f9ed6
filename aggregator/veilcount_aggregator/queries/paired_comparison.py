"""Paired collections: half of the persons answer locally, half to a trusted curator.

Both halves are drawn before any data, so they are samples of the same population.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated

from msgspec import Meta, Struct

from veilcount_analysis.kinds.estimate_query import EstimateQuery
from veilcount_analysis.kinds.labels import value_key, value_of_label
from veilcount_analysis.kinds.registry import kind_of
from veilcount_analysis.kinds.time_ranges import time_range
from veilcount_analysis.releases import Release
from veilcount_analysis.series.series import Series
from veilcount_analysis.text.number_format import decimal
from veilcount_shared import Collection
from veilcount_shared.collection import Adjacency

from ..releases.budget_ledger import load_releases
from .estimate import estimate
from .estimate_schema import ResultValue
from .snapshot import Snapshot

UNRELEASED = "Nothing comparable was released yet: a release must be requested, and costs budget."
SHARES = "Both as shares."
COUNTS = "The curator's are counts: the number of reports is secret."
MEANS = "Both as means."


class PairedFigure(Struct):
    """One figure and its interval."""

    figure: float | None
    low: float
    high: float


class PairedRow(Struct):
    """The same value on both sides; null: a mean, or nothing that was released."""

    value: ResultValue | None
    local: PairedFigure
    central: PairedFigure | None


class PairedComparison(Struct, rename={"first": "from", "last": "to"}):
    """A local collection and its central pair over the same periods."""

    local: str
    central: str
    adjacency: Adjacency | None
    first: date
    last: date
    n: Annotated[int, Meta(ge=0, description="reports on the local side")]
    estimand: str
    central_n: int | None
    level: float
    central_level: float | None
    central_epsilon: str | None
    units: str
    rows: list[PairedRow]


def compare_pair(snapshot: Snapshot, series: Series, level: float) -> PairedComparison | None:
    """Return a collection and its pair over the last release; None: it has no pair."""
    other = _other(snapshot, series)
    if other is None:
        return None
    pair = (other, series) if series.collection.trust.releases else (series, other)
    return _view(snapshot, *pair, level)


def _other(snapshot: Snapshot, series: Series) -> Series | None:
    """Return the newest series of the pair, if that names this collection too."""
    paired = snapshot.catalog.by_name.get(series.collection.twin or "", ())
    fit = (other for other in paired if other.collection.twin == series.collection.name)
    return next((other for other in fit if other.collection.model != series.collection.model), None)


def _view(snapshot: Snapshot, local: Series, central: Series, level: float) -> PairedComparison:
    release = _last(snapshot, local, central)
    periods = range(local.collection.periods)
    if release is not None:
        periods = range(release.first_period, release.last_period + 1)
    covered = time_range(local, periods, snapshot.today)
    query = EstimateQuery(
        first=covered.first, last=covered.last, level=level, series=(local.fingerprint,)
    )
    estimated = estimate(snapshot, local.collection.name, query).series[0].ranges[0]
    figures = {} if release is None else _figures(central.collection, release)
    epsilon = release.epsilon if release else None
    followed = kind_of(local.collection).followed
    sides = [
        (row.of, PairedFigure(row.figure, *row.interval))
        for row in estimated.figures
        if row.kind == followed
    ]
    return PairedComparison(
        local=local.collection.name,
        central=central.collection.name,
        adjacency=central.collection.adjacency,
        first=covered.first,
        last=covered.last,
        n=estimated.n,
        estimand=estimated.estimand,
        central_n=release.n if release else None,
        level=level,
        central_level=release.level if release else None,
        central_epsilon=None if epsilon is None else decimal(epsilon),
        units=_units(release),
        rows=[PairedRow(value, side, figures.get(value_key(value))) for value, side in sides],
    )


def _last(snapshot: Snapshot, local: Series, central: Series) -> Release | None:
    """Return the newest release comparable with the local half."""
    wanted = kind_of(local.collection).released_as
    releases = [
        Release.from_json(release.answer)
        for release in load_releases(snapshot.store, central.fingerprint)
    ]
    return next((release for release in reversed(releases) if release.kind == wanted), None)


def _figures(collection: Collection, release: Release) -> dict[str, PairedFigure]:
    """Return the released figures by value: shares where n is public, else counts."""
    whole = 1 if release.kind == "mean" else release.n or 1
    columns = zip(release.labels, release.values, release.low, release.high, strict=True)
    return {
        value_key(_named(collection, label, release)): PairedFigure(
            *(figure / whole for figure in figures)
        )
        for label, *figures in columns
    }


def _named(collection: Collection, label: object, release: Release) -> ResultValue | None:
    """Return a release's label as values are written here."""
    return None if release.kind == "mean" else value_of_label(collection, label)


def _units(release: Release | None) -> str:
    if release is None:
        return UNRELEASED
    if release.kind == "mean":
        return MEANS
    return COUNTS if release.n is None else SHARES
