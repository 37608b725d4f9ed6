"""The JSON of an estimate: figures as nested rows, and the reports that n does not include.

Those are rejected ones, and those that devices lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from veilcount_analysis.kinds.estimate import SeriesFigures, judge
from veilcount_analysis.kinds.estimate_query import EstimateQuery
from veilcount_analysis.kinds.features import SEPARATOR
from veilcount_analysis.kinds.kind import RangeResult
from veilcount_analysis.kinds.registry import kind_of
from veilcount_analysis.kinds.sample_adequacy import SampleAdequacy
from veilcount_analysis.kinds.values import ABSENT
from veilcount_analysis.series.series import Series
from veilcount_analysis.text.privacy_guarantees import epsilons, promise
from veilcount_shared import Collection
from veilcount_shared.report import MAX_BUCKET

from ..intake.pipeline import LOSS
from ..store import VERDICT, ServiceCounter
from .estimate_schema import (
    BucketRow,
    CurveRow,
    LossRow,
    MeanRow,
    MomentRow,
    QuantileRow,
    SearchResult,
    SeriesEstimate,
    ShareRow,
    Spread,
    TimeRangeEstimate,
)

Row = Any  # a `Figure`: its kind decides which of its fields are numbers
#: what n counts, by whether presence is hidden: absence is then one of the answers
COUNTS = {False: "answers", True: "reports: answers, and those of devices that had none"}
NO_FACTS = {"P": None, "Q": None, "size": None, "page": 1, "pages": 1, "stand_out": None}


def series_estimate(
    series: Series, figures: SeriesFigures, uncounted: UncountedReports
) -> SeriesEstimate:
    """Return the result of a series; a kind's facts are its own."""
    collection = series.collection
    facts = {name: figures.facts.get(name, fact) for name, fact in NO_FACTS.items()}
    search: dict[str, Any] = {
        name: figures.facts.get(name) for name in SearchResult.__struct_fields__
    }
    return SeriesEstimate(
        fingerprint=series.fingerprint,
        question=collection.question,
        unit=collection.unit,
        epsilon=epsilons(collection),
        promise=promise(collection),
        counts=COUNTS[collection.has_absent],
        **facts,
        poisoning_test_failed=figures.poisoning_test_failed,
        poisoning_test=figures.poisoning_test,
        unplaced=uncounted.unplaced(),
        losses=uncounted.losses(),
        time_ranges=[_time_range(result, uncounted) for result in figures.ranges],
        search=SearchResult(**search) if "discovers" in figures.facts else None,
    )


def _time_range(result: RangeResult, uncounted: UncountedReports) -> TimeRangeEstimate:
    rows: dict[str, list[Row]] = {}
    for figure in result.figures:
        rows.setdefault(figure.kind, []).append(figure)
    has_moments = "deviation" in rows
    absent = [_share(figure) for figure in rows.get(ABSENT, [])]
    means = [] if has_moments else [_mean(figure) for figure in rows.get("mean", [])]
    return TimeRangeEstimate(
        first=result.first,
        last=result.last,
        first_period=result.first_period,
        last_period=result.last_period,
        open_period=result.open_period,
        n=result.n,
        usable=result.usable,
        adequacy=result.adequacy,
        estimand=result.estimand,
        contributions=result.contributions,
        verdicts=uncounted.verdicts(range(result.first_period, result.last_period + 1)),
        values=[_share(figure) for figure in rows.get("share", [])],
        leader=result.leader,
        absent=absent[0] if absent else None,
        mean=means[0] if means else None,
        spread=_spread(result.bands, rows) if result.bands else None,
        moments=[_moment(figure) for figure in result.figures] if has_moments else [],
    )


def _share(row: Row) -> ShareRow:
    return ShareRow(
        row.of, row.figure, row.answers, row.low, row.high, row.fake_low, row.fake_high,
        row.count, row.simultaneous_low, row.simultaneous_high,
    )  # fmt: skip


def _mean(row: Row) -> MeanRow:
    return MeanRow(row.figure, row.low, row.high, row.fake_low, row.fake_high)


def _moment(row: Row) -> MomentRow:
    numbers = row.of.split(SEPARATOR)
    return MomentRow(row.kind, numbers, row.figure, row.low, row.high, row.fake_low, row.fake_high)


def _spread(bands: str, rows: Mapping[str, list[Row]]) -> Spread:
    return Spread(
        bands,
        [BucketRow(row.of["from"], row.of["below"], row.figure) for row in rows.get("bucket", [])],
        [CurveRow(row.at, row.figure, row.low, row.high) for row in rows["curve"]],
        [QuantileRow(row.at, row.figure, row.low, row.high) for row in rows["quantile"]],
    )


def adequacy_of(
    collection: Collection, query: EstimateQuery, estimate: TimeRangeEstimate
) -> SampleAdequacy:
    """Return whether the sample of a time range is large enough."""
    rows = [estimate.mean] if estimate.mean else estimate.values
    width = max((row.high - row.low for row in rows), default=0.0)
    return judge(kind_of(collection), query, estimate.n, width, estimate.contributions)


WHY = {
    "aged": "expired before they were sent",
    "evicted": "were evicted from the full outbox",
    "corrupt": "were corrupt",
}


@dataclass(frozen=True, slots=True)
class UncountedReports:
    """The service counters of one series."""

    counts: Mapping[ServiceCounter, int]

    @classmethod
    def from_counts(
        cls, counts: Mapping[ServiceCounter, int], fingerprint: str
    ) -> UncountedReports:
        """Select the counters of a series."""
        return cls({note: n for note, n in counts.items() if note.fingerprint == fingerprint})

    def verdicts(self, periods: range) -> dict[str, int]:
        """Return the number of rejected reports of these periods, by verdict."""
        verdicts = Counter[str]()
        for note, number in self.counts.items():
            if note.what == VERDICT and note.period in periods:
                verdicts[note.word] += number
        return dict(sorted(verdicts.items()))

    def unplaced(self) -> dict[str, int]:
        """Return the number of rejected reports whose period is invalid or unread, by verdict."""
        return self.verdicts(range(-1, 0))

    def losses(self) -> list[LossRow]:
        """Return the losses that devices reported, over the whole campaign."""
        return list(self._losses())

    def _losses(self) -> Iterator[LossRow]:
        for note, devices in sorted(self.counts.items()):
            if note.what == LOSS:
                reason, _, digits = note.word.partition(":")
                yield _row(reason, int(digits), devices)


def _row(reason: str, digits: int, devices: int) -> LossRow:
    least = 10 ** (digits - 1)
    most = None if digits >= MAX_BUCKET else 10 * least - 1
    many = f"{least:,} or more" if most is None else f"{least:,} to {most:,}"
    whose = "1 device" if devices == 1 else f"{devices:,} devices"
    text = f"{many} reports of {whose}{'' if devices == 1 else ' each'} {WHY.get(reason, reason)}"
    return LossRow(reason, devices, least * devices, None if most is None else most * devices, text)
