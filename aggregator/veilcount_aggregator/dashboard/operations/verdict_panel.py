"""What became of reports: verdicts by collection, and of one collection by period.

Where a trusted curator's collection must not tell its counts, it has no line at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from veilcount_shared.schedule import period_start
from veilcount_shared.verdict import Verdict

from ...series.series import Series
from ...store import VERDICT, Cell, ServiceCounter, Store
from ...text.privacy_guarantees import counts_are_public
from .. import charts
from ..intake_summary import WHY

UNKNOWN = "(unknown definitions)"
NO_PERIOD = -1
WORDS = {Verdict.COUNTED: "counted"} | WHY

Noted = Mapping[ServiceCounter, int]
Sizes = Mapping[Cell, int]


@dataclass(frozen=True, slots=True)
class Line:
    """How often each verdict was given, in the order of the columns."""

    title: str
    counts: Sequence[int]


@dataclass(frozen=True, slots=True)
class Table:
    """Lines, with the verdicts that were given at all as columns."""

    columns: Sequence[str]
    lines: Sequence[Line]


def by_collection(store: Store, named: Mapping[str, Sequence[Series]], noted: Noted) -> Table:
    """Return the verdicts of each collection, over all its definitions."""
    found: dict[str, Counter[Verdict]] = {}
    known: set[str] = set()
    for name, series in named.items():
        known.update(each.fingerprint for each in series)
        if all(counts_are_public(each.collection) for each in series):
            counts = (counted(store.report_counts(each), each, noted) for each in series)
            found[name] = sum((each.total() for each in counts), Counter[Verdict]())
    found[UNKNOWN] = _of({Verdict(note.word): n for note, n in noted.items() if _lost(note, known)})
    return _table((name, counts) for name, counts in found.items() if counts)


@dataclass(frozen=True, slots=True)
class Counted:
    """The verdicts of one series by period."""

    periods: Mapping[int, Counter[Verdict]]

    def total(self) -> Counter[Verdict]:
        """Return those of all periods."""
        return sum(self.periods.values(), Counter[Verdict]())


def counted(sizes: Sizes, series: Series, noted: Noted) -> Counted:
    """Return the verdicts of a series by period; -1: judged before a period was looked at."""
    found: dict[int, Counter[Verdict]] = {}
    for cell, number in sizes.items():
        found.setdefault(cell.period, Counter())[Verdict.COUNTED] += number
    for note, number in noted.items():
        if note.what == VERDICT and note.fingerprint == series.fingerprint:
            found.setdefault(note.period, Counter())[Verdict(note.word)] += number
    return Counted(dict(sorted(found.items())))


def by_period(series: Series, counts: Counted) -> Table:
    """Return a series' verdicts, each period a line."""
    return _table((_title(series, period), each) for period, each in counts.periods.items())


def drawn(series: Series, counts: Counted) -> charts.Drawn:
    """Return the same as columns, one on the other."""
    periods = [period for period in counts.periods if period != NO_PERIOD]
    titles = [_title(series, period) for period in periods]
    parts = [
        charts.counts(
            [counts.periods[period][verdict] for period in periods],
            [
                f"{title}: {counts.periods[period][verdict]:,} {WORDS[verdict]}"
                for period, title in zip(periods, titles, strict=True)
            ],
            WORDS[verdict],
        )
        for verdict in _given(counts.periods[period] for period in periods)
    ]
    days = charts.axis("UTC day on which the period begins", type="category")
    found = charts.columns(titles, parts, days, charts.axis("reports"))
    return found | {"stacked": True, "height": 300}


def _table(lines: Iterator[tuple[str, Counter[Verdict]]]) -> Table:
    listed = list(lines)
    columns = _given(counts for _, counts in listed)
    return Table(
        [WORDS[verdict] for verdict in columns],
        [Line(title, [counts[verdict] for verdict in columns]) for title, counts in listed],
    )


def _given(counts: Iterator[Counter[Verdict]]) -> list[Verdict]:
    """Return the verdicts that were given, in the protocol's order; counted stands there always."""
    given = {verdict for each in counts for verdict in each if each[verdict]}
    return [verdict for verdict in Verdict if verdict in given | {Verdict.COUNTED}]


def _title(series: Series, period: int) -> str:
    if period == NO_PERIOD:
        return "of no period"
    return str(period_start(series.collection, period).date())


def _lost(note: ServiceCounter, known: set[str]) -> bool:
    return note.what == VERDICT and note.fingerprint not in known


def _of(counts: Mapping[Verdict, int]) -> Counter[Verdict]:
    return Counter(counts)
