"""From the bodies of a group of requests to verdicts, without HTTP.

A bad report in a good batch gets its verdict and the rest count; a bad body in a good group gets
its error and the others count. A report's age is judged here, but the store looks up spent slots
first: a late retry learns that it had succeeded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from veilcount_analysis.series.series import Series
from veilcount_shared.report import Losses
from veilcount_shared.verdict import Verdict

from ..errors import ClockUntrusted, StoreError, StoreUnavailable
from ..records.service_counters import BY_BODY, LOSS, ServiceCounters
from ..store import (
    CODES,
    COUNTED,
    LIMITED,
    UNDECIDED,
    VERDICT,
    VERDICTS,
    Codes,
    Flags,
    SeriesPart,
    SeriesReports,
    ServiceCounter,
)
from .body_limit import within_limit
from .decode import DecodedGroup, SeriesColumns
from .definition_check import CheckedReports, RulesOfDay, SeriesRules, Shape, check_reports
from .pseudonym_limit import PseudonymLimit, RequestOrigin
from .token_check import reject_invalid_tokens

Commit = Callable[[Sequence[SeriesReports]], list[Codes]]
Places = np.ndarray[tuple[int], np.dtype[np.intp]]
#: what a request gets: the verdicts of its reports, or why there are none
Outcome = Codes | Exception

POSTPONED = "postponed"


class IntakeFailed(Exception):
    """An unexpected error of ours, which is no fault of any body."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class IntakeDays(NamedTuple):
    """The day by which reports are judged, and the latest day that needs no confirmation."""

    day: date
    sure: date


@dataclass(frozen=True, slots=True)
class JudgedGroup:
    """A group with the verdicts that are known, and what the store has to decide."""

    group: DecodedGroup
    verdicts: Codes
    errors: dict[int, Exception]
    batches: list[tuple[Places, SeriesReports]] = field(default_factory=list)

    def bodies_of(self, places: Places) -> Places:
        """Return the body of each report."""
        return self.group.starts.searchsorted(places, side="right") - 1

    def settle(self, codes: Sequence[Codes]) -> None:
        """Take what the store decided."""
        for (places, _), row_codes in zip(self.batches, codes, strict=True):
            self.verdicts[places] = row_codes

    def refuse_undecided(self) -> None:
        """Refuse a body as a whole of which no report could be decided: it comes back."""
        committed = np.concatenate([places for places, _ in self.batches])
        decided = set(self.bodies_of(committed[self.verdicts[committed] != UNDECIDED]).tolist())
        for body in set(self.bodies_of(committed).tolist()) - decided:
            self.errors[body] = StoreUnavailable("all shards of this request's reports are away")

    def fail(self, error: StoreError) -> None:
        """Refuse every body that has reports for the store, which failed."""
        for places, _ in self.batches:
            self.errors.update(dict.fromkeys(self.bodies_of(places).tolist(), error))

    def outcomes(self) -> list[Outcome]:
        """Return what each body's request gets."""
        starts = self.group.starts.tolist()
        return [
            self.errors.get(body) or self.verdicts[begin:end]
            for body, (begin, end) in enumerate(pairwise(starts))
        ]


@dataclass(frozen=True, slots=True)
class IntakePipeline:
    """Turns decoded bodies into verdicts: checks, limits, commits and counts."""

    commit: Commit
    service_counters: ServiceCounters
    limit: PseudonymLimit
    rules: RulesOfDay = field(default_factory=RulesOfDay)

    def process(
        self,
        groups: Sequence[tuple[RequestOrigin | None, DecodedGroup]],
        known: Mapping[str, Series],
        days: IntakeDays,
    ) -> list[list[Outcome]]:
        """Return what each request of each group gets; what is counted is durable.

        A group's requests have one origin. Without one (a caller in this process) only the periods'
        limits hold.
        """
        judged = [self._judge(group, known, days, origin) for origin, group in groups]
        reports = [reports for batches in judged for _, reports in batches.batches]
        try:
            codes = iter(self.commit(reports) if reports else ())
        except StoreError as error:
            for batches in judged:
                batches.fail(error)
        else:
            for batches in judged:
                batches.settle([next(codes) for _ in batches.batches])
        return list(map(self._outcomes, judged))

    def _outcomes(self, judged: JudgedGroup) -> list[Outcome]:
        """Return the outcomes, with a retriable verdict for each report whose shard failed.

        Of protocol 1's verdicts with which a device keeps a report and sends it again, `early` says
        nothing wrong of the definition. One that was counted after all is then a duplicate.
        """
        undecided = judged.verdicts == UNDECIDED
        if undecided.any():
            judged.refuse_undecided()
            postponed = undecided & ~np.isin(
                judged.bodies_of(np.arange(len(undecided))), list(judged.errors)
            )
            self.service_counters.count(ServiceCounter(POSTPONED, "", -1, ""), int(postponed.sum()))
            judged.verdicts[undecided] = CODES[Verdict.EARLY]
        return judged.outcomes()

    def _judge(
        self,
        group: DecodedGroup,
        known: Mapping[str, Series],
        days: IntakeDays,
        origin: RequestOrigin | None,
    ) -> JudgedGroup:
        verdicts = np.full(group.reports, CODES[Verdict.UNKNOWN_COLLECTION], np.uint8)
        judged = JudgedGroup(group, verdicts, dict(group.errors))
        for losses in group.losses:
            self._count_losses(losses, known)
        refused = _untrusted(judged, known, days)
        admitted = within_limit(group, self.limit.for_body(origin))
        tables: dict[Shape, list[tuple[SeriesRules, SeriesColumns]]] = {}
        unknown = 0
        for columns in group.series_columns:
            series = known.get(columns.fingerprint)
            if series is None:
                unknown += len(columns)
                continue
            within = columns if admitted is None else self._within(columns, admitted, verdicts)
            if len(within):  # a body may name every definition
                rules = self.rules.of(series, days.day)
                tables.setdefault(rules.shape(within), []).append((rules, within))
        for shape, parts in tables.items():
            checked = check_reports(shape, parts)
            accepted = self._accepted(checked, verdicts)
            if refused is not None:
                accepted &= ~refused[checked.table.places]
            if not accepted.all():
                checked = checked.select(accepted)
            if len(checked.table):
                judged.batches.append((checked.table.places, self._reports(checked, origin)))
        if unknown:
            self._count("", Verdict.UNKNOWN_COLLECTION, unknown)
        return judged

    def _accepted(self, checked: CheckedReports, verdicts: Codes) -> Flags:
        """Take the verdicts by definition; return which reports the store has to decide."""
        for rules, rows in checked.parts:
            if rules.series.has_tokens:
                periods = range(rules.oldest, rules.newest + 1)
                columns, codes = checked.table.select(rows), checked.codes[rows]
                reject_invalid_tokens(rules.series, columns, codes, periods)
        verdicts[checked.table.places] = checked.codes
        accepted: Flags = checked.codes == COUNTED
        if not accepted.all():
            for rules, rows in checked.parts:
                self._count_rejected(rules.series, checked.codes[rows])
        return accepted

    def _reports(self, checked: CheckedReports, origin: RequestOrigin | None) -> SeriesReports:
        """Return reports with their limits, in the form that the store commits."""
        limits, parts = np.full(len(checked.table), self.limit.most), []
        for rules, rows in checked.parts:
            series = rules.series
            if rules.has_secret_limits:
                limits[rows] = self._secret_limits(series, checked.table.periods[rows].tolist())
            parts.append(SeriesPart(series, rows, self.limit.quota(series, origin)))
        columns: Any = (*checked.columns, limits)
        return SeriesReports(parts, *columns)

    def _secret_limits(self, series: Series, periods: list[int]) -> list[int]:
        """Return the limit of each report's period."""
        limits = {period: self.limit.for_period(series, period) for period in set(periods)}
        return [limits[period] for period in periods]

    def _within(self, columns: SeriesColumns, admitted: Flags, verdicts: Codes) -> SeriesColumns:
        """Return the reports within their body's limit; the others are `full`, and not checked."""
        chosen = admitted[columns.places]
        excess = len(columns) - int(np.count_nonzero(chosen))
        if not excess:
            return columns
        verdicts[columns.places[~chosen]] = CODES[Verdict.FULL]
        self._count(columns.fingerprint, Verdict.FULL, excess)
        self.service_counters.count(
            ServiceCounter(LIMITED, columns.fingerprint, -1, BY_BODY), excess
        )
        return columns.select(chosen)

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


def _untrusted(judged: JudgedGroup, known: Mapping[str, Series], days: IntakeDays) -> Flags | None:
    """Return which reports are of bodies that wait for the day to be confirmed, if any are.

    Those with a report that is stale by an unconfirmed day, but not by the day `sure`: devices drop
    stale reports; refused ones come back once the day is confirmed or corrected.
    """
    if days.sure >= days.day:
        return None
    waiting = ClockUntrusted(
        f"a report would be stale on {days.day}, a day that waits for confirmation:"
        " `veilcount store confirm-clock`"
    )
    for columns in judged.group.series_columns:
        series = known.get(columns.fingerprint)
        if series is not None:
            oldest, sure_oldest = (series.open_periods(day)[0] for day in (days.day, days.sure))
            stale = (columns.periods < oldest) & (columns.periods >= sure_oldest)
            bodies = judged.bodies_of(columns.places[stale])
            judged.errors.update(dict.fromkeys(bodies.tolist(), waiting))
    return np.isin(judged.bodies_of(np.arange(len(judged.verdicts))), list(judged.errors))
