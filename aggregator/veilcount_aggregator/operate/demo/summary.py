"""The summary of a replay: for programs, and as lines and tables for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from numpy.random import Generator

from veilcount_analysis.privacy.budget.account import SpendHistogram, count_spending
from veilcount_analysis.privacy.budget.privacy_levels import PrivacyLevels, figures
from veilcount_analysis.text import number_format
from veilcount_analysis.text.number_format import decimal
from veilcount_shared.schedule import period_end, period_start
from veilcount_shared.verdict import Verdict

from ...queries.budgets import spent_slots
from .campaign import Question
from .figures import MEAN, CuratorFigure, EstimatedFigure, TrustModelFigures, released, rows
from .party_logs import PartyLogs
from .run import DemoResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Participation:
    """The number of participants, and the verdicts of their reports."""

    devices: int
    clients: int  # of them real ones
    consented: int
    sent_by_clients: Mapping[Verdict, int]
    sent_by_simulated: Mapping[Verdict, int]
    sent_by_beta: int  # over the relay


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


@dataclass(frozen=True, slots=True)
class PartyView:
    """What one party to the relayed question saw: how often, of whom, and one entry."""

    party: str
    entries: int
    sender: str
    entry: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayedSummary:
    """The logs of the parties, and how much of the aggregator's stands in the others'."""

    collection: str
    parties: list[PartyView]
    lengths: int  # different ones that the relay saw
    in_common: int
    compared: int


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
    relayed: RelayedSummary | None  # without real clients, none

    @property
    def sent(self) -> int:
        """How many reports were sent."""
        part = self.participation
        both = (part.sent_by_clients, part.sent_by_simulated)
        return sum(sum(each.values()) for each in both) + part.sent_by_beta

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
        accounts=[_account(result, name) for name in result.names],
        relayed=_relayed(result.logs) if result.logs.aggregator else None,
    )


def _participation(result: DemoResult) -> Participation:
    people = result.run.people
    return Participation(
        devices=len(people),
        clients=len(result.run.real),
        consented=int(people.consents.sum()),
        sent_by_clients=_plain(result.real),
        sent_by_simulated=_plain(result.simulated),
        sent_by_beta=len(result.logs.aggregator),
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


def _relayed(logs: PartyLogs) -> RelayedSummary:
    signed, exchange, report = logs.issuer[0], logs.relay[0], logs.aggregator[0]
    return RelayedSummary(
        collection=Question.SHARED_POSITION,
        parties=[
            PartyView(
                "issuer",
                len(logs.issuer),
                signed.account,
                f"blinded {_start(signed.blinded)}, signed {_start(signed.signature)}",
            ),
            PartyView(
                "relay",
                len(logs.relay),
                exchange.address,
                f"{len(exchange.body):,} bytes {_start(exchange.body)},"
                f" reply {len(exchange.reply)} bytes {_start(exchange.reply)}",
            ),
            PartyView(
                "aggregator",
                len(logs.aggregator),
                "the relay",
                f"pseudonym {_start(report.pseudonym)}, token {_start(report.token)},"
                f" message {report.message.hex()}",
            ),
        ],
        lengths=len({(len(each.body), len(each.reply)) for each in logs.relay}),
        in_common=logs.in_common(),
        compared=2 * len(logs.aggregator),
    )


def _start(raw: bytes) -> str:
    return raw[:SHOWN].hex() + "..."


def _release(result: DemoResult) -> ReleaseSummary:
    question, made = result.released.question, result.released.release
    assert made.n is not None  # noqa: S101 - one answer a person and month, substituted: n is public
    assert made.epsilon is not None  # noqa: S101 - Laplace noise
    collection = question.collection
    return ReleaseSummary(
        collection=collection.name,
        first=period_start(collection, made.first_period).date(),
        last=period_end(collection, made.last_period).date() - timedelta(days=1),
        epsilon=decimal(made.epsilon),
        adjacency=made.adjacency,
        level=made.level,
        n=made.n,
        rows=released(result),
    )


PARTIES = ("party", "entries", "from", "one of them")
FIGURES = ("question", "value", "truth", "local", "interval", "n", "curator")
RELEASED = ("value", "truth", "released", "interval")
SHOWN = 6  # bytes of what is random to whoever sees it
UNJOINED = "not joinable"  # pseudonyms change, so that the store cannot know
WITHHELD = "withheld"  # how many answered is itself secret

PRICES = (
    "Epsilon: promised for an event, a UTC day and a user; and counted by the aggregator,"
    " where one pseudonym is one person: mean and maximum of a user."
)
COSTS = ("question", "protects", "event", "day", "user", "by", "counted", "worst", "answers")


def participation_lines(found: Summary) -> Iterator[str]:
    """Yield the participation and the verdicts of reports."""
    part = found.participation
    yield (
        f"{found.app}, a fictional hiking app, {found.begins} to {found.today} (until"
        f" {found.until}): {part.devices:,} devices, {part.consented:,} consented."
    )
    yield (
        f"{part.clients:,} are real clients, over HTTP:"
        f" {_verdicts(part.sent_by_clients)}. The others are simulated:"
        f" {_verdicts(part.sent_by_simulated)}, through the same intake (--seed {found.seed})."
        f" {part.sent_by_beta:,} reports of a beta came over a relay."
    )
    yield f"{found.sent:,} reports were sent, {found.counted:,} reports are in the store."


def _verdicts(verdicts: Mapping[Verdict, int]) -> str:
    return ", ".join(f"{number:,} {verdict}" for verdict, number in verdicts.items()) or "none"


def figure_cells(row: TrustModelFigures) -> Iterator[str]:
    """Yield the cells of one figure: true, local and central."""
    shares = row.value != MEAN
    yield f"{row.collection} ({row.segment})" if row.segment else row.collection
    yield row.value
    yield number_format.figure(row.truth, of_shares=shares)
    yield from _estimate_cells(row.local, shares=shares)
    yield f"{row.n:,}"
    curator, half = row.central, (row.central.high - row.central.low) / 2
    around = number_format.around(half, of_shares=shares).removesuffix(number_format.POINTS)
    yield f"{number_format.figure(curator.value, of_shares=shares)} {around}"


def _estimate_cells(figure: EstimatedFigure, *, shares: bool) -> Iterator[str]:
    yield number_format.figure(figure.value, of_shares=shares)
    yield number_format.interval(figure.low, figure.high, of_shares=shares)


def notes(found: Summary) -> Iterator[str]:
    """Yield notes on the figures and the release."""
    release = found.release
    yield (
        f"The truth is in {found.covered} of {len(found.rows)} local intervals (level"
        f" {found.level:.4g}, of each value on its own). The curator's column is"
        " simulated: the true values with central noise of the same epsilon."
    )
    yield ""
    yield (
        f"Sent to a trusted curator, and released once for epsilon {release.epsilon}"
        f" ({number_format.adjacency(release.adjacency)}):"
        f" {release.collection}, {release.first} to {release.last}, n = {release.n:,}, level"
        f" {release.level:.4g}"
    )


def release_cells(row: CuratorFigure) -> Iterator[str]:
    """Yield the cells of one released figure."""
    yield row.value
    yield number_format.figure(row.truth, of_shares=True)
    yield from _estimate_cells(row.figure, shares=True)


def cost_cells(account: CollectionCost) -> Iterator[str]:
    """Yield the cells of what one question costs a person."""
    promised, counted = account.promised, account.counted
    yield account.collection
    yield f"one {promised.unit}"
    yield from map(number_format.epsilon, (promised.event, promised.day, promised.user))
    yield number_format.adjacency(promised.adjacency)
    if counted is None or counted.mean is None or counted.worst is None:
        yield from (WITHHELD if account.linked else UNJOINED, "")
    else:
        yield f"{float(counted.mean):.3g}"
        yield number_format.epsilon(counted.worst)
    yield f"{account.answers:,}"


def relayed_lines(found: RelayedSummary) -> Iterator[str]:
    """Yield what the relayed question shows."""
    yield (
        f"{found.collection} travels over a relay, each report with a token of an issuer. What the"
        " three parties see, were each to write down all of it:"
    )


def party_cells(view: PartyView) -> Iterator[str]:
    """Yield the cells of one party."""
    yield from (view.party, f"{view.entries:,}", view.sender, view.entry)


def privacy_of_logs(found: RelayedSummary) -> Iterator[str]:
    """Yield what the logs have in common."""
    yield (
        f"Of {found.compared:,} pseudonyms and tokens that the aggregator has, {found.in_common:,}"
        " are anywhere in a log of the others. Requests and replies at the relay:"
        f" {'all alike in length' if found.lengths == 1 else f'{found.lengths} lengths'}."
        " (Here all addresses are this machine's, and all logs in one hand.)"
    )


def question_lines(found: Summary) -> Iterator[str]:
    """Yield the questions, word for word."""
    for account in found.accounts:
        yield f"{account.collection}: {account.question}"
