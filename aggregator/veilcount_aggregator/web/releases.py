"""The doors to a trusted curator: ask a central collection, and see what was ever released.

Nothing in here has seen a true count: what comes out of the curator was noised and paid for.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

import msgspec
from flask import Blueprint, Response, g

from veilcount_shared import Collection
from veilcount_shared.collection import Model
from veilcount_shared.epsilon import EPSILON_GRAIN
from veilcount_shared.errors import show
from veilcount_shared.schedule import closes, opens

from ..aggregator import Aggregator
from ..central import PartNoise, Question, Release, quantile
from ..curator import Foreseen, Told
from ..errors import QueryError
from ..keys import Role
from ..ledger import Account, Kept, accounts, releases
from ..series import Series
from ..store.lock import locked
from .answering import answer, asked
from .authority import Authority
from .collections import unknown
from .messages import (
    CollectionReleases,
    CountOf,
    Figure,
    NoiseView,
    PeriodBudget,
    QuantileView,
    ReleaseAnswer,
    ReleaseView,
    SeriesReleases,
    WantedRelease,
)
from .problems import refusal

#: what is told of a number's histogram
SHARES = tuple(Fraction(share, 100) for share in (5, 25, 50, 75, 95))


def doors(aggregator: Aggregator, authority: Authority) -> Blueprint:
    """Return the doors."""
    blueprint = Blueprint("releases", __name__)
    curator = aggregator.curator

    @blueprint.post("/v1/collections/<name>/releases")
    @authority.opens_to(Role.ANALYST)
    def ask(name: str) -> Response:
        """Ask, or see what asking would cost."""
        wanted = asked(WantedRelease)
        series = _chosen(_named(aggregator, name), wanted.series)
        if wanted.dry_run:
            return answer(_foreseen(series, curator.foresee(series, _request(wanted))))
        told = curator.answer(series, _request(wanted), aggregator.clock(), g.key.id)
        return answer(_told(series, told))

    @blueprint.get("/v1/collections/<name>/releases")
    @authority.opens_to(Role.ANALYST)
    def list_all(name: str) -> Response:
        """Everything that was ever released of a collection, and what is left."""
        series = [_released(aggregator, each) for each in _central(_named(aggregator, name))]
        return answer(CollectionReleases(name, bool(locked(aggregator.store)), series))

    return blueprint


def _named(aggregator: Aggregator, name: str) -> tuple[Series, ...]:
    """Return a collection's series, the newest first."""
    series = aggregator.known().catalogue.named.get(name)
    if series is None:
        raise unknown()
    return series


def _chosen(series: tuple[Series, ...], fingerprint: str) -> Series:
    for each in series:
        if fingerprint in {"", each.fingerprint}:
            return each
    why = "no definition of this collection has this fingerprint: GET /v1/collections/{name}"
    raise refusal("bad-field", why, "series")


def _central(series: tuple[Series, ...]) -> list[Series]:
    found = [each for each in series if each.collection.model is Model.CENTRAL]
    if not found:
        name = series[0].collection.name
        raise QueryError("collection", name, "its model is local: read its estimate")
    return found


def _request(wanted: WantedRelease) -> dict[str, object]:
    """Return a request as the central path reads it."""
    return {
        "query": msgspec.to_builtins(wanted.query),
        "epsilon": wanted.epsilon,
        "from": wanted.first,
        "to": wanted.last,
    }


# -- what is shown ---------------------------------------------------------------------------------


def _told(series: Series, told: Told) -> ReleaseAnswer:
    shown = _view(series.collection, told.release, told.day)
    return _answer(
        series,
        told.question,
        told.accounts,
        shown,
        charged=told.charged,
        quantiles=_quantiles(told.release),
    )


def _foreseen(series: Series, foreseen: Foreseen) -> ReleaseAnswer:
    question, collection = foreseen.question, series.collection
    shown = ReleaseView(
        query=_query(question.asked),
        epsilon=show(question.epsilon),
        person_epsilon=show(question.person_epsilon),
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
    question: Question,
    standing: Iterable[Account],
    shown: ReleaseView,
    *,
    charged: bool | None,
    quantiles: list[QuantileView],
) -> ReleaseAnswer:
    """Return a release with what it asks of a budget; one that was not drawn is a dry run."""
    least = min(standing, key=lambda account: account.remaining)
    return ReleaseAnswer(
        **{name: getattr(shown, name) for name in ReleaseView.__struct_fields__},
        collection=series.collection.name,
        fingerprint=series.fingerprint,
        adjacency=series.collection.adjacency,
        quantiles=quantiles,
        dry_run=charged is None,
        charged=bool(charged),
        requested=show(question.epsilon),
        spent=show(least.spent),
        remaining=show(least.remaining),
    )


def _released(aggregator: Aggregator, series: Series) -> SeriesReleases:
    collection = series.collection
    kept = releases(aggregator.store, series.fingerprint)
    standing = accounts(series, kept, range(collection.periods))
    return SeriesReleases(
        series.fingerprint,
        collection.adjacency,
        show(collection.unit_epsilon),
        [_period(collection, account) for account in standing],
        [_kept(collection, each) for each in kept],
    )


def _kept(collection: Collection, kept: Kept) -> ReleaseView:
    return _view(collection, Release.read(kept.answer), kept.day)


def _view(collection: Collection, release: Release, day: str) -> ReleaseView:
    columns = zip(release.labels, release.values, release.low, release.high, strict=True)
    return ReleaseView(
        query=_query(release.asked),
        epsilon=show(Fraction(release.micro_epsilon, EPSILON_GRAIN)),
        person_epsilon=show(Fraction(release.person_epsilon)),
        first=_first(collection, release.first_period),
        last=_last(collection, release.last_period),
        level=release.level,
        noise=_noise(release.noise),
        day=date.fromisoformat(day),
        n=release.n,
        figures=[Figure(_value(label), *figure) for label, *figure in columns],
    )


def _period(collection: Collection, account: Account) -> PeriodBudget:
    first, last = _first(collection, account.period), _last(collection, account.period)
    return PeriodBudget(account.period, first, last, show(account.spent), show(account.remaining))


def _query(written: Any) -> str | CountOf:
    return CountOf(**written) if isinstance(written, dict) else str(written)


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
    return opens(collection, period).date()


def _last(collection: Collection, period: int) -> date:
    return closes(collection, period).date() - timedelta(days=1)
