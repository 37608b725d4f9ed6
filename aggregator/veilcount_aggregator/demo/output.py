"""A summary as a person reads it: lines, and the cells of three tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from veilcount_shared.verdict import Verdict

from ..text import number_format
from .figures import MEAN, CuratorFigure, EstimatedFigure, TrustModelFigures
from .summary import CollectionCost, Summary

FIGURES = ("question", "value", "truth", "local", "interval", "n", "curator")
RELEASED = ("value", "truth", "released", "interval")
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
    )
    yield f"{found.sent:,} reports were sent, {found.counted:,} reports are in the store."


def _verdicts(verdicts: Mapping[Verdict, int]) -> str:
    return ", ".join(f"{number:,} {verdict}" for verdict, number in verdicts.items()) or "none"


def figures(row: TrustModelFigures) -> Iterator[str]:
    """Yield the cells of one figure: true, local and central."""
    shares = row.value != MEAN
    yield f"{row.collection} ({row.segment})" if row.segment else row.collection
    yield row.value
    yield number_format.figure(row.truth, of_shares=shares)
    yield from _figure(row.local, shares=shares)
    yield f"{row.n:,}"
    curator, half = row.central, (row.central.high - row.central.low) / 2
    around = number_format.around(half, of_shares=shares).removesuffix(number_format.POINTS)
    yield f"{number_format.figure(curator.value, of_shares=shares)} {around}"


def _figure(figure: EstimatedFigure, *, shares: bool) -> Iterator[str]:
    yield number_format.figure(figure.value, of_shares=shares)
    yield number_format.interval(figure.low, figure.high, of_shares=shares)


def notes(found: Summary) -> Iterator[str]:
    """Yield notes on the figures and the release."""
    release = found.release
    yield (
        f"The truth is in {found.covered} of {len(found.rows)} local intervals (level"
        f" {found.level:.4g}, the values of a question at once). The curator's column is"
        " simulated: the true values with central noise of the same epsilon."
    )
    yield ""
    yield (
        f"Sent to a trusted curator, and released once for epsilon {release.epsilon}"
        f" ({number_format.adjacency(release.adjacency)}):"
        f" {release.collection}, {release.first} to {release.last}, n = {release.n:,}, level"
        f" {release.level:.4g}"
    )


def released(row: CuratorFigure) -> Iterator[str]:
    """Yield the cells of one released figure."""
    yield row.value
    yield number_format.figure(row.truth, of_shares=True)
    yield from _figure(row.figure, shares=True)


def costs(account: CollectionCost) -> Iterator[str]:
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


def question_lines(found: Summary) -> Iterator[str]:
    """Yield the questions, word for word."""
    for account in found.accounts:
        yield f"{account.collection}: {account.question}"
