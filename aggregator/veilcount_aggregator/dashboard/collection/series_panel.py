"""One series on the page: its verdict, its charts, and what is not among its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from veilcount_shared.domain import Number
from veilcount_shared.wire import JSON_TYPE

from ...estimation import LookCount
from ...queries import Denominator, EstimateResult, Snapshot
from ...queries.estimate_schema import SeriesEstimate, TimeRangeEstimate
from ...queries.export import CSV_TYPE
from ...series.series import Series
from .filters import Ways, cuts
from .formatting import days
from .numeric_panel import Told, numbers
from .sample_adequacy import Judged, Verdict, verdict, verdict_seen
from .share_panel import Chart, shares
from .time_series import asked_over_time, over
from .uncounted_notes import lost, refused
from .url_state import Address, Given, Shown, over_time

FORMS = {"csv": CSV_TYPE, "json": JSON_TYPE}
DIGITS = 8  # of a fingerprint, in what charts are called
TWO = 2  # values, whose shares mirror each other

Files = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Over:
    """How figures move: the chart, the ways to cut it, the files that say the same."""

    chart: Chart
    cuts: Ways | None
    files: Files


@dataclass(frozen=True, slots=True)
class Section:
    """What is said of one series."""

    fingerprint: str
    said: SeriesEstimate
    span: str
    n: str
    open_period: bool
    verdict: Verdict
    bars: Chart | None
    number: Told | None
    files: Files
    over: Over | None
    refused: Sequence[tuple[str, str, str]]
    lost: Sequence[str]


@dataclass(frozen=True, slots=True)
class Look:
    """A page's question and its answer, from which each series gets its section."""

    snapshot: Snapshot
    at: Address
    shown: Shown
    answer: EstimateResult

    def section(self, series: Series, said: SeriesEstimate) -> Section:
        """Return a series' section."""
        time_range, name = said.time_ranges[-1], _name(said)
        return Section(
            fingerprint=said.fingerprint,
            said=said,
            span=days(time_range.first, time_range.last),
            n=f"{time_range.n:,}",
            open_period=time_range.open_period,
            verdict=self._verdict(series, time_range),
            bars=shares(self.answer, said, time_range, name),
            number=numbers(self.answer, time_range, name),
            files=_files(self.at, {**self.shown.given, "series": [said.fingerprint]}),
            over=self._over(series, said),
            refused=refused(said),
            lost=lost(said),
        )

    def _verdict(self, series: Series, time_range: TimeRangeEstimate) -> Verdict:
        collection, at_once = series.collection, 1
        if time_range.n and (
            self.answer.among is Denominator.ANSWERED or self.answer.looks is LookCount.EVERY
        ):
            rows = [time_range.mean] if time_range.mean else time_range.values
            widest = max(row.high - row.low for row in rows)
            return verdict_seen(collection, time_range.n, widest / 2)
        if self.answer.simultaneous and not isinstance(collection.domain, Number):
            at_once = collection.inputs if collection.inputs > TWO else 1
        each = collection.answering * collection.per_period  # before there are any, of them all
        most = time_range.contributions if time_range.n else each
        judged = Judged(self.answer.level, at_once, most == 1)
        return verdict(collection, time_range.n, judged)

    def _over(self, series: Series, said: SeriesEstimate) -> Over | None:
        n = said.time_ranges[-1].n
        cut = over_time(self.snapshot, series, self.shown, self.at.given, n)
        if cut is None:
            return None
        asked = asked_over_time(series, self.shown, cut, said)
        chart = over(self.snapshot, self.at.name, asked, f"{_name(said)}-time")
        if chart is None:
            return None
        return Over(chart, cuts(self.at, series.collection, cut), _files(self.at, asked))


def _name(said: SeriesEstimate) -> str:
    return f"answers-{said.fingerprint[:DIGITS]}"


def _files(at: Address, asked: Given) -> Files:
    return {form.upper(): at.export(form, asked) for form in FORMS}
