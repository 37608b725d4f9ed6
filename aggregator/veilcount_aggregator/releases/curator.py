"""The trusted curator: answers priced queries from the true counts under noise.

True counts are read, noised and dropped in one call. Neither a release nor an error carries one: an
error between the counts and the noise is reported by its type and code location, without frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

import numpy as np

from veilcount_analysis.releases import (
    PartNoise,
    PricedQuery,
    Release,
    draw_release,
    part_noise,
    price_query,
)
from veilcount_analysis.releases.opendp_noise import load_opendp
from veilcount_analysis.releases.query import query_counters
from veilcount_analysis.series.series import Series
from veilcount_serving.structured_logging import code_location

from ..errors import StoreError
from ..store import Cell, TallyReader
from .budget_ledger import PeriodAccount, ReleaseContent, period_accounts
from .privacy_filter import PrivacyFilter


class DrawFailed(RuntimeError):
    """An internal error between the true counts and the noise. Nothing was charged."""


@dataclass(frozen=True, slots=True)
class ReleaseResult:
    """A release, whether it was charged now, and the budgets of its periods afterwards."""

    question: PricedQuery
    release: Release
    day: str
    charged: bool
    accounts: list[PeriodAccount]


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a release would cost, its noise, and the budgets of its periods."""

    question: PricedQuery
    noise: tuple[PartNoise, ...]
    accounts: list[PeriodAccount]


@dataclass(frozen=True, slots=True)
class Curator:
    """Answers queries of central collections."""

    filter: PrivacyFilter

    def dry_run(self, series: Series, request: Mapping[str, object]) -> DryRun:
        """Return what a request would cost, from the definition and what was spent alone."""
        question = price_query(request, series.collection)
        standing = period_accounts(series, self.filter.prices(series), question.charges)
        return DryRun(question, part_noise(question), standing)

    def answer(
        self, series: Series, request: Mapping[str, object], now: datetime, actor: str
    ) -> ReleaseResult:
        """Return the release that a request asks for, charged if it is new."""
        question = price_query(request, series.collection)
        store = self.filter.store
        paid = self.filter.release(
            series, question, lambda: draw(store, series, question), now, actor
        )
        return ReleaseResult(
            question,
            Release.from_json(paid.release.answer),
            paid.release.day,
            paid.charged,
            period_accounts(series, paid.prices, question.charges),
        )


def draw(store: TallyReader, series: Series, question: PricedQuery) -> ReleaseContent:
    """Return a release, freshly drawn. The true counts live in this call and no longer."""
    load_opendp()  # it refuses before a true count is read
    try:
        return _noised(store, series, question)
    except StoreError:
        raise  # names the store, and nothing that it holds
    except Exception as error:  # noqa: BLE001 - whatever it is, its frames hold true counts
        why = f"{type(error).__name__} at {code_location(error)}"
    # Raised out here: an error that is raised in there would keep the other, and its frames.
    raise DrawFailed(why)


def _noised(store: TallyReader, series: Series, question: PricedQuery) -> ReleaseContent:
    cells: dict[int, list[Cell]] = {period: [] for period in question.periods}
    for cell in store.report_counts(series):
        if cell.period in cells:
            cells[cell.period].append(cell)
    groups = cells.values() if question.query.by_period else [chain.from_iterable(cells.values())]
    counters = [
        query_counters(question.query, store.counters(series, list(group))) for group in groups
    ]
    rows = np.stack(counters) if question.query.by_period else counters[0]
    return draw_release(question, rows).to_json()
