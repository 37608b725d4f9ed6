"""The query of a privacy budget and its result: the loss of a person, guaranteed and spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Annotated

from msgspec import Meta, Struct, structs

from veilcount_analysis.kinds.registry import kind_of
from veilcount_analysis.privacy.budget import (
    CollectionBudget,
    CrossCollectionBudget,
    UnitComparison,
    compose_collections,
    levels,
)
from veilcount_analysis.privacy.budget import budget as account
from veilcount_analysis.privacy.budget.account import SpendHistogram
from veilcount_analysis.privacy.budget.composition import DELTA
from veilcount_analysis.query_params import Delta, Level, QueryParams, SeriesFilter, parameter
from veilcount_analysis.releases.person_loss import PersonLoss, person_losses
from veilcount_analysis.series.series import Series
from veilcount_analysis.text.privacy_guarantees import counts_are_public
from veilcount_shared.collection import Adjacency
from veilcount_shared.errors import format_value

from ..json_results import Decimal
from ..releases.budget_ledger import load_releases, period_accounts
from .snapshot import Snapshot, series_by_fingerprint

ASSUMED = 10_000
MOST_PERSONS = 10**12

Population = Annotated[
    int | None,
    parameter(
        "Number of persons; by default, those in the store.",
        ge=1,
        le=MOST_PERSONS,
        fix=f"give 1 to {MOST_PERSONS:,} persons",
        metavar="N",
    ),
]


class SeriesBudget(Struct):
    """The budget of one definition."""

    fingerprint: str
    question: str
    budget: CollectionBudget
    bars: Annotated[str, Meta(description="who sees the histogram of spent slots")]
    levels: Annotated[
        UnitComparison, Meta(description="the error under each unit, at one user epsilon")
    ]
    n_source: Annotated[str, Meta(description="origin of n in `levels`")]


class PersonLossView(Struct):
    """What all central releases of an app reveal of one person, over all periods."""

    adjacency: Adjacency
    collections: list[str]
    epsilon: Annotated[Decimal, Meta(description="so far, of budgets in epsilon")]
    rho: Annotated[Decimal, Meta(description="so far, of budgets in rho")]
    most_epsilon: Annotated[Decimal, Meta(description="when all budgets are spent")]
    delta: Annotated[Decimal | None, Meta(description="of most_epsilon; null: it is pure")]


class BudgetResult(Struct):
    """The budgets of a collection's series, and of all collections of its app together."""

    collection: str
    series: list[SeriesBudget]
    cross_collection: Annotated[
        CrossCollectionBudget, Meta(description="the app's collections by their newest definition")
    ]
    released: Annotated[
        list[PersonLossView],
        Meta(description="what the app's central releases reveal of one person, by adjacency"),
    ]


@dataclass(frozen=True, kw_only=True)
class BudgetQuery(QueryParams):
    """The query of a privacy budget."""

    series: SeriesFilter = ()
    delta: Delta = DELTA
    n: Population = None
    level: Level = 0.95


def budget(snapshot: Snapshot, name: str, query: BudgetQuery) -> BudgetResult:
    """Privacy loss of a person per event, day and campaign: guaranteed, and spent so far.

    The histogram of spent slots over pseudonyms is shown to an admin only.
    """
    everyone = snapshot.named(name)
    wanted = [series_by_fingerprint(everyone, fingerprint) for fingerprint in query.series] or list(
        everyone
    )
    return BudgetResult(
        collection=name,
        series=[_series(snapshot, one_series, query) for one_series in wanted],
        cross_collection=_cross_collection(snapshot.catalog.by_name, everyone[0].collection.app),
        released=_released(snapshot, everyone[0].collection.app),
    )


def _released(snapshot: Snapshot, app: str) -> list[PersonLossView]:
    named = [
        [one_series for one_series in series if one_series.collection.trust.releases]
        for series in snapshot.catalog.by_name.values()
    ]
    spent = {
        one_series.collection: _period_spends(snapshot, one_series)
        for series in named
        for one_series in series
        if one_series.collection.app == app
    }
    newest = (series[0].collection for series in named if series)
    return [_loss_view(person_loss) for person_loss in person_losses(spent, newest)]


def _period_spends(snapshot: Snapshot, series: Series) -> list[Fraction]:
    stored = load_releases(snapshot.store, series.fingerprint)
    accounts = period_accounts(series, stored, range(series.collection.periods))
    return [account.spent for account in accounts]


def _loss_view(loss: PersonLoss) -> PersonLossView:
    return PersonLossView(
        loss.adjacency,
        list(loss.collections),
        format_value(loss.epsilon),
        format_value(loss.rho),
        format_value(loss.most_epsilon),
        format_value(loss.delta) if loss.delta else None,
    )


def _cross_collection(named: Mapping[str, tuple[Series, ...]], app: str) -> CrossCollectionBudget:
    of_app = {name: series for name, series in named.items() if series[0].collection.app == app}
    redrawn = {
        name
        for name, series in of_app.items()
        if len({one_series.collection.drawn_share for one_series in series}) > 1
    }
    newest = {name: series[0].collection for name, series in of_app.items()}
    return compose_collections(newest, redrawn)


def without_bars(result: BudgetResult) -> BudgetResult:
    """Return a result without the histogram of spent slots, which admins see."""
    return structs.replace(result, series=[_without_bars(series) for series in result.series])


def _without_bars(series: SeriesBudget) -> SeriesBudget:
    spent = series.budget.spent
    if spent is None or not spent.bars:
        return series
    hidden = replace(series.budget, spent=replace(spent, bars=()))
    return structs.replace(series, budget=hidden, bars="an admin sees them")


def _series(snapshot: Snapshot, series: Series, query: BudgetQuery) -> SeriesBudget:
    loss = account(series.collection, spent_slots(snapshot, series), delta=query.delta)
    n, n_source = persons(snapshot, series, query.n)
    return SeriesBudget(
        fingerprint=series.fingerprint,
        question=series.collection.question,
        budget=loss,
        bars=_shown_bars(loss.spent),
        levels=_levels(series, n, query.level),
        n_source=n_source,
    )


def spent_slots(snapshot: Snapshot, series: Series) -> list[int] | None:
    """Return how many pseudonyms spent 0, 1, ... slots; None where it is secret or unknown."""
    if not series.linked or not counts_are_public(series.collection):
        return None
    spread = snapshot.store.spend_histograms(series)
    return [0, *(spread[0].tolist() if 0 in spread else ())]


def persons(snapshot: Snapshot, series: Series, query: int | None) -> tuple[int, str]:
    """Return the number of persons that errors are computed for, and its origin."""
    if query is not None:
        return query, "as requested"
    if counts_are_public(series.collection):
        fresh = snapshot.store.new_pseudonyms(series).values()
        if series.linked and fresh:
            return sum(fresh), "pseudonyms of the campaign"
        if fresh:
            return max(fresh), "new pseudonyms of the fullest period"
    return ASSUMED, "assumed: no number of persons is known"


def _shown_bars(spent: SpendHistogram | None) -> str:
    if spent is None:
        return "the aggregator cannot tell, or must not: there are none"
    return "all of them" if spent.bars else f"fewer than {spent.floor} pseudonyms: none is shown"


@lru_cache(maxsize=64)  # a table for a number takes a second of exact comparisons
def _levels(series: Series, n: int, level: float) -> UnitComparison:
    quantity = kind_of(series.collection).quantity
    return levels(series.collection, quantity, n, level=level)
