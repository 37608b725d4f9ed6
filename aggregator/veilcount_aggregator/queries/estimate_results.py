"""One series of a result: its figures, and the reports that n does not include.

Those are rejected ones, and those that devices lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from veilcount_analysis.kinds.estimate import SeriesFigures
from veilcount_analysis.kinds.estimate_query import EstimateQuery
from veilcount_analysis.kinds.kind import Kind
from veilcount_analysis.kinds.results import RangeEstimate
from veilcount_analysis.series.series import Series
from veilcount_analysis.text.privacy_guarantees import epsilons, promise
from veilcount_shared.report import MAX_BUCKET

from ..records.service_counters import LOSS
from ..store import VERDICT, ServiceCounter
from .estimate_schema import EstimateResult, LossRow, RangeResult, SeriesResult

#: what n counts, by whether presence is hidden: absence is then one of the answers
COUNTS = {False: "reports", True: "reports, those of devices without an answer among them"}


def estimate_result(name: str, query: EstimateQuery, series: list[SeriesResult]) -> EstimateResult:
    """Return the result of a query: what it was, and the series that it covers."""
    return EstimateResult(
        collection=name,
        by=query.by,
        view=query.view,
        level=query.level,
        looks=query.looks,
        validity=query.looks.valid,
        among=query.among,
        fakes=float(query.fakes),
        segments=dict(query.segments),
        series=series,
    )


def series_result(
    series: Series, kind: Kind[Any, Any], figures: SeriesFigures, uncounted: UncountedReports
) -> SeriesResult:
    """Return the result of a series."""
    collection = series.collection
    return SeriesResult(
        fingerprint=series.fingerprint,
        question=collection.question,
        kind=kind.name,
        unit=collection.unit,
        measured_in=collection.measured_in,
        epsilon=epsilons(collection),
        promise=promise(collection),
        counts=kind.counted or COUNTS[collection.has_absent],
        facts=dict(figures.facts),
        notes=list(figures.notes),
        poisoning_test_failed=figures.poisoning_test_failed,
        poisoning_test=figures.poisoning_test,
        unplaced=uncounted.unplaced(),
        losses=uncounted.losses(),
        ranges=[
            _range_result(kind, estimate, figures.facts, uncounted) for estimate in figures.ranges
        ],
    )


def _range_result(
    kind: Kind[Any, Any],
    estimate: RangeEstimate,
    facts: Mapping[str, Any],
    uncounted: UncountedReports,
) -> RangeResult:
    covered, result, finding = estimate.time_range, estimate.result, ""
    if result.n and estimate.adequacy.usable and facts.get("page", 1) == 1:
        leads = result.leader is not None
        finding = kind.headline(result.figures, facts, leads=leads).text
    return RangeResult(
        first=covered.first,
        last=covered.last,
        first_period=covered.periods[0],
        last_period=covered.periods[-1],
        open_period=covered.open_period,
        n=result.n,
        usable=estimate.adequacy.usable,
        adequacy=estimate.adequacy.text,
        estimand=result.estimand,
        contributions=estimate.contributions,
        covers=estimate.covers,
        verdicts=uncounted.verdicts(covered.periods),
        figures=result.figures,
        headline=finding,
        leader=result.leader,
        bands=result.bands,
        weighting=result.weighting,
    )


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
