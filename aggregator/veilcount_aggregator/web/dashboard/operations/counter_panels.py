"""The service counters: verdicts of reports, latency of requests, rejected bodies, commits.

Summed over all workers since the store was created. Collections with secret counts are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from veilcount_analysis.series.series import Series
from veilcount_analysis.text.privacy_guarantees import counts_are_public
from veilcount_shared.schedule import period_start
from veilcount_shared.verdict import Verdict

from ....intake.group_intake import GROUP, SIZES
from ....records.service_counters import ANSWERED, REFUSED, REPORTS
from ....store import VERDICT, Cell, ServiceCounter, TallyReader
from ...api.problems import PROBLEM_KINDS
from ...api.request_metrics import BUCKET_BOUNDS, BUCKET_LABELS, MICROSECONDS, RELAYED
from .. import charts
from ..collection_status import PERIODS
from ..overview import REASONS

UNKNOWN_DEFINITIONS = "(unknown definitions)"
NO_PERIOD = -1
WORDS = {Verdict.COUNTED: "counted"} | REASONS

Counts = Mapping[ServiceCounter, int]
Sizes = Mapping[Cell, int]


@dataclass(frozen=True, slots=True)
class VerdictTable:
    """A row of counts for each title; its columns are the verdicts that occurred."""

    columns: Sequence[str]
    rows: Mapping[str, Sequence[int]]


def by_collection(
    store: TallyReader, named: Mapping[str, Sequence[Series]], notes: Counts
) -> VerdictTable:
    """Return the verdicts of each collection, over all its definitions."""
    by_name: dict[str, Counter[Verdict]] = {}
    known: set[str] = set()
    for name, series in named.items():
        known.update(one_series.fingerprint for one_series in series)
        if all(counts_are_public(one_series.collection) for one_series in series):
            counts = (
                verdict_counts(store.report_counts(one_series), one_series, notes)
                for one_series in series
            )
            by_period = (period for count in counts for period in count.values())
            by_name[name] = sum(by_period, Counter[Verdict]())
    by_name[UNKNOWN_DEFINITIONS] = Counter(
        {
            Verdict(note.word): number
            for note, number in notes.items()
            if note.what == VERDICT and note.fingerprint not in known
        }
    )
    return _table((name, counts) for name, counts in by_name.items() if counts)


def verdict_counts(sizes: Sizes, series: Series, notes: Counts) -> dict[int, Counter[Verdict]]:
    """Return the verdicts of a series by period; -1: decided before the period was known."""
    verdicts_by_period: dict[int, Counter[Verdict]] = {}
    for cell, number in sizes.items():
        verdicts_by_period.setdefault(cell.period, Counter())[Verdict.COUNTED] += number
    for note, number in notes.items():
        if note.what == VERDICT and note.fingerprint == series.fingerprint:
            verdicts_by_period.setdefault(note.period, Counter())[Verdict(note.word)] += number
    return dict(sorted(verdicts_by_period.items()))


def by_period(series: Series, counts: Mapping[int, Counter[Verdict]]) -> charts.Chart:
    """Draw the verdicts of a series by period."""
    table = _table((_title(series, period), count) for period, count in counts.items())
    periods = [period for period in counts if period != NO_PERIOD]
    titles = [_title(series, period) for period in periods]
    parts = tuple(
        charts.counts(
            [counts[period][verdict] for period in periods],
            [
                f"{title}: {counts[period][verdict]:,} {WORDS[verdict]}"
                for period, title in zip(periods, titles, strict=True)
            ],
            WORDS[verdict],
        )
        for verdict in _occurring(counts[period] for period in periods)
    )
    x = charts.Axis("UTC day on which the period begins", labels=tuple(titles))
    name, unit = series.collection.name, PERIODS.get(series.collection.unit, "campaign")
    return charts.Chart(
        "verdicts",
        charts.StackedColumns(parts, x, charts.Axis("reports")),
        f"Reports for {name} by verdict; each bar one {unit}, by the newest definition",
        ("Period from UTC day", *table.columns),
        [(title, *(f"{number:,}" for number in row)) for title, row in table.rows.items()],
    )


def _table(rows: Iterable[tuple[str, Counter[Verdict]]]) -> VerdictTable:
    rows_by_title = dict(rows)
    columns = _occurring(rows_by_title.values())
    return VerdictTable(
        [WORDS[verdict] for verdict in columns],
        {
            title: [counts[verdict] for verdict in columns]
            for title, counts in rows_by_title.items()
        },
    )


def _occurring(counts: Iterable[Counter[Verdict]]) -> list[Verdict]:
    """Return the verdicts that occur, in the protocol's order; counted is always among them."""
    occurring = {verdict for count in counts for verdict in count if count[verdict]}
    return [verdict for verdict in Verdict if verdict in occurring | {Verdict.COUNTED}]


def _title(series: Series, period: int) -> str:
    if period == NO_PERIOD:
        return "no period"
    return str(period_start(series.collection, period).date())


SHARES = (0.5, 0.95, 0.99)


#: an endpoint, its requests, those answered with 5xx, the mean, and the latency of each share
EndpointLatency = tuple[str, int, int, str, tuple[str, ...]]


def latencies(counts: Counts, *, intake: bool) -> list[EndpointLatency]:
    """Return the latency of each endpoint; the intake's only where its counts are public."""
    held: dict[str, Counter[str]] = {}
    failed: Counter[str] = Counter()
    microseconds: Counter[str] = Counter()
    for note, number in counts.items():
        if note.what == ANSWERED:
            endpoint, status, end = note.word.split(":")
            held.setdefault(endpoint, Counter())[end] += number
            failed[endpoint] += number * (status == "5xx")
        elif note.what == MICROSECONDS:
            microseconds[note.word] += number
    return [
        _latency(endpoint, ends, failed[endpoint], microseconds[endpoint])
        for endpoint, ends in sorted(held.items())
        if intake or endpoint != REPORTS
    ]


def _latency(endpoint: str, ends: Counter[str], failed: int, microseconds: int) -> EndpointLatency:
    requests = ends.total()
    mean = f"{microseconds / requests / 1000:,.1f} ms"
    return endpoint, requests, failed, mean, tuple(_within(ends, share) for share in SHARES)


def _within(ends: Counter[str], share: float) -> str:
    """Return the end of the first bucket at which so large a share is reached."""
    below = accumulate(ends[word] for word in BUCKET_LABELS)
    place = next(n for n, number in enumerate(below) if number >= share * ends.total())
    return (
        f"{BUCKET_BOUNDS[place] * 1000:g} ms"
        if place < len(BUCKET_BOUNDS)
        else f"over {BUCKET_BOUNDS[-1]:g} s"
    )


def rejected_bodies(counts: Counts) -> list[tuple[str, int]]:
    """Return how many bodies were rejected as a whole, by problem, the most frequent first."""
    rejected: Counter[str] = Counter()
    for note, number in counts.items():
        if note.what == REFUSED:
            rejected[note.word] += number
    return [(PROBLEM_KINDS[word].title, number) for word, number in rejected.most_common()]


def commit_chart(counts: Counts) -> charts.Chart | None:
    """Draw commits by the number of requests they hold; None: nothing was committed yet."""
    commits: Counter[str] = Counter()
    for note, number in counts.items():
        if note.what == GROUP:
            commits[note.word] += number
    sizes = list(map(str, SIZES))
    last = max((n for n, size in enumerate(sizes) if commits[size]), default=-1)
    groups = [(_bucket(place), commits[size]) for place, size in enumerate(sizes[: last + 1])]
    if not groups:
        return None
    texts = [f"{number:,} commits of {size} requests" for size, number in groups]
    part = charts.counts([number for _, number in groups], texts)
    x = charts.Axis("requests in one commit", labels=tuple(size for size, _ in groups))
    return charts.Chart(
        "commits",
        charts.StackedColumns((part,), x, charts.Axis("commits"), charts.LOW),
        "Durable commits by how many requests shared one: the slower the store, the more",
        ("Requests in one commit", "Commits"),
        [(size, f"{number:,}") for size, number in groups],
    )


def _bucket(place: int) -> str:
    least = SIZES[place - 1] + 1 if place else 1
    return str(SIZES[place]) if least == SIZES[place] else f"{least} to {SIZES[place]}"


def relayed(counts: Counts) -> tuple[int, int]:
    """Return the accepted requests with reports: those through a relay, and all."""
    relayed_counts: Counter[str] = Counter()
    for note, number in counts.items():
        accepted = note.what == ANSWERED and note.word.startswith(f"{REPORTS}:2xx:")
        relayed_counts[note.what] += number * (accepted or note.what == RELAYED)
    return relayed_counts[RELAYED], relayed_counts[ANSWERED]
