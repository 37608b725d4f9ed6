"""From a decoded body and a day to verdicts, without HTTP.

A bad report in a good batch gets its verdict and the rest count. A report's age is judged here, but
the store looks up spent slots first: a late retry learns that it had succeeded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from veilcount_shared.report import Losses
from veilcount_shared.verdict import Verdict

from ..errors import ClockUntrusted
from ..mechanisms import valid_messages
from ..series.series import Series
from ..store import (
    CODES,
    COUNTED,
    LIMITED,
    ROW_BYTES,
    UNDECIDED,
    VERDICT,
    VERDICTS,
    Codes,
    MemoryLimits,
    Quota,
    SeriesReports,
    ServiceCounter,
)
from ..store.memory_limit import DEFAULT_LIMITS
from .body_limit import within_limit
from .decode import DecodedBody, ReportColumns
from .pseudonym_limit import PseudonymLimit, RequestOrigin
from .service_counters import ServiceCounters

Commit = Callable[[Sequence[SeriesReports]], list[Codes]]
Chosen = np.ndarray[tuple[int], np.dtype[np.bool_]]
PlacedReports = tuple[
    np.ndarray[tuple[int], np.dtype[np.intp]], SeriesReports
]  # with their places in the batch

LOSS = "loss"
POSTPONED = "postponed"
BY_BODY = "body"


@dataclass(frozen=True, slots=True)
class IntakePipeline:
    """Turns bodies into verdicts: checks, limits, commits and counts."""

    commit: Commit
    service_counters: ServiceCounters
    limit: PseudonymLimit
    memory: MemoryLimits = DEFAULT_LIMITS

    def process(
        self,
        body: DecodedBody,
        known: Mapping[str, Series],
        day: date,
        origin: RequestOrigin | None = None,
    ) -> list[Verdict]:
        """Return one verdict for each report, in the batch's order; what is counted is durable.

        Without an origin (a caller in this process) only the periods' limits hold.
        """
        if body.losses is not None:
            self._count_losses(body.losses, known)
        verdicts = np.full(body.reports, CODES[Verdict.UNKNOWN_COLLECTION], np.uint8)
        batches: list[PlacedReports] = []
        admitted = within_limit(body, self.limit.for_body(origin))
        for columns in body.series_columns:
            series = known.get(columns.fingerprint)
            if series is None:
                self._count("", Verdict.UNKNOWN_COLLECTION, len(columns))
                continue
            codes = check_reports(series, columns)
            if admitted is not None:
                self._reject_excess_pseudonyms(series, codes, admitted[columns.places])
            verdicts[columns.places] = codes
            accepted = codes == COUNTED
            if not accepted.all():
                self._count_rejected(series, codes)
            batches += self._by_limit(series, columns, accepted, day, origin)
        for (places, _), codes in zip(
            batches, self.commit([each for _, each in batches]) if batches else (), strict=True
        ):
            verdicts[places] = self._decided(codes)
        return [VERDICTS[code] for code in verdicts.tolist()]

    def _decided(self, codes: Codes) -> Codes:
        """Return a retriable verdict for each report whose shard failed, others being counted.

        Of protocol 1's verdicts with which a device keeps a report and sends it again, `early` says
        nothing wrong of the definition. One that was counted after all is then a duplicate.
        """
        undecided = codes == UNDECIDED
        if undecided.any():
            self.service_counters.count(ServiceCounter(POSTPONED, "", -1, ""), int(undecided.sum()))
            return np.where(undecided, CODES[Verdict.EARLY], codes)
        return codes

    def _by_limit(
        self,
        series: Series,
        columns: ReportColumns,
        accepted: Chosen,
        day: date,
        origin: RequestOrigin | None,
    ) -> Iterator[PlacedReports]:
        """Yield the reports that fit their definition, those of one limit together."""
        quota, memory = self.limit.quota(series, origin), self.limit.memory(series, self.memory)
        groups: list[tuple[Chosen | slice, int]] = []
        if self.limit.is_secret(series):
            for period in np.unique(columns.periods[accepted]).tolist():
                chosen = accepted & (columns.periods == period)
                groups.append((chosen, self.limit.for_period(series, period)))
        elif accepted.any():
            # a slice, where all are chosen, copies nothing
            groups.append((slice(None) if accepted.all() else accepted, self.limit.most))
        for group, limit in groups:
            reports = to_series_reports(
                series, columns, group, day, limit, quota=quota, memory=memory
            )
            yield columns.places[group], reports

    def _reject_excess_pseudonyms(self, series: Series, codes: Codes, admitted: Chosen) -> None:
        """Answer `full` to reports of more pseudonyms than a body may name; change the codes."""
        excess = ~admitted & (codes == COUNTED)
        codes[excess] = CODES[Verdict.FULL]
        if number := int(excess.sum()):
            self.service_counters.count(
                ServiceCounter(LIMITED, series.fingerprint, -1, BY_BODY), number
            )

    def _count_rejected(self, series: Series, codes: Codes) -> None:
        for code, number in enumerate(np.bincount(codes).tolist()):
            if number and code != COUNTED:
                self._count(series.fingerprint, VERDICTS[code], number)

    def _count(self, fingerprint: str, verdict: Verdict, number: int) -> None:
        self.service_counters.count(ServiceCounter(VERDICT, fingerprint, -1, verdict), number)

    def _count_losses(self, losses: Losses, known: Mapping[str, Series]) -> None:
        """Count one device's losses by reason and bucket; of unknown series none are kept."""
        if losses.fingerprint not in known:
            return
        for reason in ("aged", "evicted", "corrupt"):
            if bucket := getattr(losses, reason):
                self.service_counters.count(
                    ServiceCounter(LOSS, losses.fingerprint, -1, f"{reason}:{bucket}")
                )


def require_trusted_day(
    body: DecodedBody, known: Mapping[str, Series], day: date, sure: date
) -> None:
    """Raise `ClockUntrusted` if a report is stale by an unconfirmed day, but not by the day `sure`.

    Devices drop stale reports; refused ones come back once the day is confirmed or corrected.
    """
    if sure >= day:
        return
    for columns in body.series_columns:
        series = known.get(columns.fingerprint)
        if series is not None:
            oldest, (sure_oldest, _) = series.open_periods(day)[0], series.open_periods(sure)
            if ((columns.periods < oldest) & (columns.periods >= sure_oldest)).any():
                raise ClockUntrusted(
                    f"a report would be stale on {day}, a day that waits for confirmation:"
                    " `veilcount store confirm-clock`"
                )


def check_reports(series: Series, columns: ReportColumns) -> Codes:
    """Return each report's verdict by its definition, as `veilcount_shared.report.check` does."""
    collection = series.collection
    width = collection.per_period
    first = columns.periods * width if series.linked else 0
    size = width if collection.slots >= width else 1
    sound = (columns.periods < collection.periods) & (columns.segments < collection.cells)
    granted = (columns.slots >= first) & (columns.slots < first + size)
    messages = valid_messages(collection, columns.messages)
    codes = np.full(len(columns), COUNTED)
    if (sound & granted & messages).all():  # nearly always
        return codes
    codes[~messages] = CODES[Verdict.MALFORMED]
    codes[~granted] = CODES[Verdict.OVER_BUDGET]
    codes[~sound] = CODES[Verdict.MALFORMED]
    return codes


def to_series_reports(
    series: Series,
    columns: ReportColumns,
    chosen: Chosen | slice,
    day: date,
    limit: int,
    *,
    quota: Quota | None = None,
    memory: MemoryLimits = DEFAULT_LIMITS,
) -> SeriesReports:
    """Return the chosen reports in the form that the store commits, their ages judged."""
    periods = columns.periods[chosen]
    oldest, newest = series.open_periods(day)
    otherwise = np.full(len(periods), COUNTED)
    otherwise[periods > newest] = CODES[Verdict.EARLY]
    otherwise[periods < oldest] = CODES[Verdict.STALE]
    if series.closed:
        otherwise[:] = CODES[Verdict.CLOSED]
    return SeriesReports(
        series,
        columns.pseudonyms[chosen][:, :ROW_BYTES],
        np.zeros_like(periods) if series.linked else periods,
        periods,
        columns.segments[chosen],
        columns.slots[chosen],
        columns.messages[chosen],
        otherwise,
        limit,
        quota,
        memory,
    )
