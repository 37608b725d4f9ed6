"""A body and a day to verdicts. No web in here.

A bad report in a good batch gets its verdict and the rest count. A report's age is judged here, but
a spent slot is looked up first (in the store): a late retry is told that it had succeeded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from types import EllipsisType

import numpy as np

from veilcount_shared.report import Losses
from veilcount_shared.verdict import Verdict

from ..errors import ClockUntrusted
from ..series.message_validation import valid
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
Fits = np.ndarray[tuple[int], np.dtype[np.bool_]]
Fit = Fits | EllipsisType  # `...`: all, and no copies
PlacedReports = tuple[
    np.ndarray[tuple[int], np.dtype[np.intp]], SeriesReports
]  # with their places in the batch

LOSS = "loss"
POSTPONED = "postponed"
BY_BODY = "body"


@dataclass(frozen=True, slots=True)
class IntakePipeline:
    """What turns bodies into verdicts: where they are committed, and what is counted beside."""

    commit: Commit
    service_counters: ServiceCounters
    limit: PseudonymLimit
    memory: MemoryLimits = DEFAULT_LIMITS

    def take(
        self,
        body: DecodedBody,
        known: Mapping[str, Series],
        day: date,
        origin: RequestOrigin | None = None,
    ) -> list[Verdict]:
        """Return one verdict a report, in the batch's order; what is counted is durable.

        Without an origin (a caller in this process) only the periods' limits hold.
        """
        if body.losses is not None:
            self._note_losses(body.losses, known)
        verdicts = np.full(body.reports, CODES[Verdict.UNKNOWN_COLLECTION], np.uint8)
        asked: list[PlacedReports] = []
        admitted = within_limit(body, self.limit.of_body(origin))
        for sheet in body.sheets:
            series = known.get(sheet.fingerprint)
            if series is None:
                self._note("", Verdict.UNKNOWN_COLLECTION, len(sheet))
                continue
            codes = check_reports(series, sheet)
            if admitted is not None:
                self._refuse_beyond(series, codes, admitted[sheet.places])
            verdicts[sheet.places] = codes
            fit = codes == COUNTED
            if not fit.all():
                self._note_refused(series, codes)
            asked += self._spends(series, sheet, fit, day, origin)
        for (places, _), codes in zip(
            asked, self.commit([each for _, each in asked]) if asked else (), strict=True
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
            self.service_counters.note(ServiceCounter(POSTPONED, "", -1, ""), int(undecided.sum()))
            return np.where(undecided, CODES[Verdict.EARLY], codes)
        return codes

    def _spends(
        self,
        series: Series,
        sheet: ReportColumns,
        fit: Fits,
        day: date,
        origin: RequestOrigin | None,
    ) -> Iterator[PlacedReports]:
        """Yield the reports that fit their definition, those of one limit together."""
        whole, quota = bool(fit.all()), self.limit.quota(series, origin)
        memory = self.limit.memory(series, self.memory)
        if not self.limit.secret(series):
            if whole or fit.any():
                places, chosen = sheet.places if whole else sheet.places[fit], ... if whole else fit
                room = self.limit.most
                found = to_series_reports(
                    series, sheet, chosen, day, room, quota=quota, memory=memory
                )
                yield places, found
            return
        for period in np.unique(sheet.periods[fit]).tolist():
            of_period = fit & (sheet.periods == period)
            limit = self.limit.of(series, period)
            found = to_series_reports(
                series, sheet, of_period, day, limit, quota=quota, memory=memory
            )
            yield sheet.places[of_period], found

    def _refuse_beyond(self, series: Series, codes: Codes, admitted: Fits) -> None:
        """Answer `full` to reports of more pseudonyms than a body may name; change the codes."""
        beyond = ~admitted & (codes == COUNTED)
        codes[beyond] = CODES[Verdict.FULL]
        if number := int(beyond.sum()):
            self.service_counters.note(
                ServiceCounter(LIMITED, series.fingerprint, -1, BY_BODY), number
            )

    def _note_refused(self, series: Series, codes: Codes) -> None:
        for code, number in enumerate(np.bincount(codes).tolist()):
            if number and code != COUNTED:
                self._note(series.fingerprint, VERDICTS[code], number)

    def _note(self, fingerprint: str, verdict: Verdict, number: int) -> None:
        self.service_counters.note(ServiceCounter(VERDICT, fingerprint, -1, verdict), number)

    def _note_losses(self, losses: Losses, known: Mapping[str, Series]) -> None:
        """Count one device's losses by reason and bucket; of unknown series none are kept."""
        if losses.fingerprint not in known:
            return
        for reason in ("aged", "evicted", "corrupt"):
            if bucket := getattr(losses, reason):
                self.service_counters.note(
                    ServiceCounter(LOSS, losses.fingerprint, -1, f"{reason}:{bucket}")
                )


def require_trusted_day(
    body: DecodedBody, known: Mapping[str, Series], day: date, sure: date
) -> None:
    """Raise `ClockDoubted` if a report is stale by a day that nobody has confirmed, not by `sure`.

    Devices drop what is stale; what is refused comes back when the day is confirmed, or mended.
    """
    if sure >= day:
        return
    for sheet in body.sheets:
        series = known.get(sheet.fingerprint)
        if series is not None:
            oldest, (sure_oldest, _) = series.taken(day)[0], series.taken(sure)
            if ((sheet.periods < oldest) & (sheet.periods >= sure_oldest)).any():
                raise ClockUntrusted(
                    f"a report would be stale on {day}, a day that waits for confirmation:"
                    " `veilcount store confirm-clock`"
                )


def check_reports(series: Series, sheet: ReportColumns) -> Codes:
    """Return what the definition says of each report, as `veilcount_shared.report.check` does."""
    collection = series.collection
    width = collection.per_period
    first = sheet.periods * width if series.linked else 0
    size = width if collection.slots >= width else 1
    sound = (sheet.periods < collection.periods) & (sheet.segments < collection.cells)
    granted = (sheet.slots >= first) & (sheet.slots < first + size)
    messages = valid(collection, sheet.messages)
    codes = np.full(len(sheet), COUNTED)
    if (sound & granted & messages).all():  # nearly always
        return codes
    codes[~messages] = CODES[Verdict.MALFORMED]
    codes[~granted] = CODES[Verdict.OVER_BUDGET]
    codes[~sound] = CODES[Verdict.MALFORMED]
    return codes


def to_series_reports(
    series: Series,
    sheet: ReportColumns,
    fit: Fit,
    day: date,
    room: int,
    *,
    quota: Quota | None = None,
    memory: MemoryLimits = DEFAULT_LIMITS,
) -> SeriesReports:
    """Return the reports that fit their definition as the store wants them, their ages judged."""
    periods = sheet.periods[fit]
    oldest, newest = series.taken(day)
    otherwise = np.full(len(periods), COUNTED)
    otherwise[periods > newest] = CODES[Verdict.EARLY]
    otherwise[periods < oldest] = CODES[Verdict.STALE]
    if series.closed:
        otherwise[:] = CODES[Verdict.CLOSED]
    return SeriesReports(
        series,
        sheet.pseudonyms[fit][:, :ROW_BYTES],
        np.zeros_like(periods) if series.linked else periods,
        periods,
        sheet.segments[fit],
        sheet.slots[fit],
        sheet.messages[fit],
        otherwise,
        room,
        quota,
        memory,
    )
