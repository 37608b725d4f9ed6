"""The summary of a replay, for people and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from numpy.random import Generator

from veilcount_shared.schedule import period_end, period_start
from veilcount_shared.verdict import Verdict

from ..analysis.budget.privacy_levels import PrivacyLevels, figures
from ..analysis.budget.spend_histogram import SpendHistogram, count_spending
from ..queries.budgets import spent_slots
from ..queries.json_encoding import decimal
from .figures import CuratorFigure, TrustModelFigures, released, rows
from .run import DemoResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Participation:
    """The number of participants, and the verdicts of their reports."""

    devices: int
    clients: int  # of them real ones
    consented: int
    sent_by_clients: Mapping[Verdict, int]
    sent_by_simulated: Mapping[Verdict, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionCost:
    """The epsilon of one question: promised, and counted where reports can be linked."""

    collection: str
    question: str
    answers: int  # that are in the store
    linked: bool
    promised: PrivacyLevels
    counted: SpendHistogram | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSummary:
    """The central release and its cost."""

    collection: str
    first: date
    last: date
    epsilon: str
    adjacency: str
    level: float
    n: int
    rows: list[CuratorFigure]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The whole summary."""

    app: str
    begins: date
    today: date
    until: date
    seed: int
    level: float
    participation: Participation
    rows: list[TrustModelFigures]
    release: ReleaseSummary
    accounts: list[CollectionCost]

    @property
    def sent(self) -> int:
        """How many reports were sent."""
        both = (self.participation.sent_by_clients, self.participation.sent_by_simulated)
        return sum(sum(each.values()) for each in both)

    @property
    def counted(self) -> int:
        """How many answers are in the store."""
        return sum(account.answers for account in self.accounts)

    @property
    def covered(self) -> int:
        """How many of the local intervals cover the truth."""
        return sum(row.local.covers(row.truth) for row in self.rows)


def summary(result: DemoResult, *, seed: int, level: float, generator: Generator) -> Summary:
    """Summarize a replay; the simulated curator draws from the generator."""
    campaign = result.run.campaign
    return Summary(
        app=next(iter(campaign.collections.values())).app,
        begins=campaign.start,
        today=campaign.today,
        until=campaign.until,
        seed=seed,
        level=level,
        participation=_participation(result),
        rows=list(rows(result, level, generator)),
        release=_release(result),
        accounts=[_account(result, name) for name in campaign.collections],
    )


def _participation(result: DemoResult) -> Participation:
    people = result.run.people
    return Participation(
        devices=len(people),
        clients=len(result.run.real),
        consented=int(people.consents.sum()),
        sent_by_clients=_plain(result.real),
        sent_by_simulated=_plain(result.simulated),
    )


def _plain(verdicts: Counter[Verdict]) -> dict[Verdict, int]:
    return {verdict: number for verdict, number in verdicts.items() if number}


def _account(result: DemoResult, name: str) -> CollectionCost:
    series = result.series(name)
    collection, histogram = series.collection, spent_slots(result.snapshot, series)
    return CollectionCost(
        collection=name,
        question=collection.question,
        answers=result.counted(name),
        linked=series.linked,
        promised=figures(collection),
        counted=None if histogram is None else count_spending(collection, histogram),
    )


def _release(result: DemoResult) -> ReleaseSummary:
    question, made = result.released.question, result.released.release
    assert made.n is not None  # noqa: S101 - one answer a person and month, substituted: n is public
    collection = question.collection
    return ReleaseSummary(
        collection=collection.name,
        first=period_start(collection, made.first_period).date(),
        last=period_end(collection, made.last_period).date() - timedelta(days=1),
        epsilon=decimal(question.epsilon),
        adjacency=made.adjacency,
        level=made.level,
        n=made.n,
        rows=released(result),
    )
