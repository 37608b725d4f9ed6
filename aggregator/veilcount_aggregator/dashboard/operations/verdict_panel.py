"""Verdicts of reports, by collection and by period; collections with secret counts are left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from veilcount_shared.schedule import period_start
from veilcount_shared.verdict import Verdict

from ...series.series import Series
from ...store import VERDICT, Cell, ServiceCounter, Store
from ...text.privacy_guarantees import counts_are_public
from .. import charts
from ..collection_status import PERIODS
from ..overview import REASONS

UNKNOWN = "(unknown definitions)"
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
    store: Store, named: Mapping[str, Sequence[Series]], notes: Counts
) -> VerdictTable:
    """Return the verdicts of each collection, over all its definitions."""
    found: dict[str, Counter[Verdict]] = {}
    known: set[str] = set()
    for name, series in named.items():
        known.update(each.fingerprint for each in series)
        if all(counts_are_public(each.collection) for each in series):
            counts = (verdict_counts(store.report_counts(each), each, notes) for each in series)
            found[name] = sum((each.total() for each in counts), Counter[Verdict]())
    found[UNKNOWN] = Counter(
        {
            Verdict(note.word): number
            for note, number in notes.items()
            if note.what == VERDICT and note.fingerprint not in known
        }
    )
    return _table((name, counts) for name, counts in found.items() if counts)


@dataclass(frozen=True, slots=True)
class PeriodVerdicts:
    """The verdicts of one series by period."""

    periods: Mapping[int, Counter[Verdict]]

    def total(self) -> Counter[Verdict]:
        """Return the sum over all periods."""
        return sum(self.periods.values(), Counter[Verdict]())


def verdict_counts(sizes: Sizes, series: Series, notes: Counts) -> PeriodVerdicts:
    """Return the verdicts of a series by period; -1: decided before the period was known."""
    found: dict[int, Counter[Verdict]] = {}
    for cell, number in sizes.items():
        found.setdefault(cell.period, Counter())[Verdict.COUNTED] += number
    for note, number in notes.items():
        if note.what == VERDICT and note.fingerprint == series.fingerprint:
            found.setdefault(note.period, Counter())[Verdict(note.word)] += number
    return PeriodVerdicts(dict(sorted(found.items())))


def by_period(series: Series, counts: PeriodVerdicts) -> charts.Chart:
    """Draw the verdicts of a series by period."""
    table = _table((_title(series, period), each) for period, each in counts.periods.items())
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
        for verdict in _occurring(counts.periods[period] for period in periods)
    ]
    x = charts.axis("UTC day on which the period begins", type="category")
    drawing = charts.columns(titles, parts, x, charts.axis("reports"))
    name, unit = series.collection.name, PERIODS.get(series.collection.unit, "campaign")
    return charts.Chart(
        "verdicts",
        drawing | {"stacked": True, "height": 300},
        f"Reports for {name} by verdict; each bar one {unit}, by the newest definition",
        ("Period from UTC day", *table.columns),
        [(title, *(f"{each:,}" for each in row)) for title, row in table.rows.items()],
    )


def _table(rows: Iterable[tuple[str, Counter[Verdict]]]) -> VerdictTable:
    found = dict(rows)
    columns = _occurring(found.values())
    return VerdictTable(
        [WORDS[verdict] for verdict in columns],
        {title: [counts[verdict] for verdict in columns] for title, counts in found.items()},
    )


def _occurring(counts: Iterable[Counter[Verdict]]) -> list[Verdict]:
    """Return the verdicts that occur, in the protocol's order; counted is always among them."""
    occurring = {verdict for each in counts for verdict in each if each[verdict]}
    return [verdict for verdict in Verdict if verdict in occurring | {Verdict.COUNTED}]


def _title(series: Series, period: int) -> str:
    if period == NO_PERIOD:
        return "no period"
    return str(period_start(series.collection, period).date())
