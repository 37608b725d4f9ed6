"""A body and a day to verdicts: each as the definition says, and each as its age says."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest

from veilcount_aggregator.intake.decode import DecodedBody, DecodedGroup
from veilcount_aggregator.intake.decode.columns import columns_from_reports
from veilcount_aggregator.intake.definition_check import SeriesRules, check_reports
from veilcount_aggregator.intake.pipeline import IntakeDays, IntakePipeline
from veilcount_aggregator.intake.pseudonym_limit import PseudonymLimit
from veilcount_aggregator.records.service_counters import LOSS, ServiceCounters
from veilcount_aggregator.store import COUNTED, ROW_BYTES, VERDICT, VERDICTS, Codes, SeriesReports
from veilcount_analysis.series.series import Series, utc_day
from veilcount_shared.errors import ReportError
from veilcount_shared.report import Losses, Report
from veilcount_shared.schedule import period_end, period_start
from veilcount_shared.verdict import Verdict

from ...report_check import check_report, verdict_from_error
from ..aggregator_fixtures import make_collection

LIMIT = PseudonymLimit(5, lambda: b"")
SERIES = {
    "linked": Series(make_collection(unit='"week"')),
    "by period": Series(make_collection(unit='"event"', per_day=3, until="2026-12-31")),
    "unlinked": Series(
        make_collection(unit='"event"', per_day=3, linkage='"none"', until="2026-12-31")
    ),
    "for life": Series(make_collection(unit='"user"')),
    "with segments": Series(make_collection(segments='{arm = ["A", "B", "C"]}')),
}
every = pytest.mark.parametrize("series", SERIES.values(), ids=SERIES)


@dataclass
class Desk:
    """An intake before a store that counts what it can, and records what it was asked."""

    requested: list[SeriesReports] = field(default_factory=list)
    service_counters: ServiceCounters = field(default_factory=lambda: ServiceCounters(lambda: 0.0))

    def commit(self, spends: Sequence[SeriesReports]) -> list[Codes]:
        """Give each report the verdict it has if its slot is free."""
        self.requested += spends
        return [spend.default_verdicts.astype(np.uint8) for spend in spends]

    def process(self, body: DecodedBody, day: date, series: Iterable[Series]) -> list[Verdict]:
        known = {each.fingerprint: each for each in series}
        pipeline = IntakePipeline(self.commit, self.service_counters, LIMIT)
        group = DecodedGroup.from_body(body)
        ((codes,),) = pipeline.process([(None, group)], known, IntakeDays(day, day))
        assert not isinstance(codes, Exception)
        return [VERDICTS[code] for code in codes.tolist()]

    def take(self, *reports: Report, day: date, series: Sequence[Series] = ()) -> list[Verdict]:
        body = DecodedBody(len(reports), columns_from_reports(reports))
        return self.process(body, day, series or SERIES.values())

    def noted(self) -> dict[tuple[str, str], int]:
        return {
            (note.what, note.word): number
            for note, number in self.service_counters.take(now=True).items()
        }


def report(series: Series, **changed: int | bytes) -> Report:
    packed = series.collection.pack(0)
    good = Report(series.fingerprint, 0, 0, secrets.token_bytes(16), 0, packed)
    return replace(good, **changed)  # type: ignore[arg-type] # by name


def grid(series: Series) -> Iterator[Report]:
    """Yield reports with every number at its ends and a step beyond."""
    collection = series.collection
    for period in {0, 1, 2, collection.periods - 1, collection.periods, 65535}:
        for slot in {0, 1, 2, 3, period % 1024, 3 * period % 1024, (3 * period + 3) % 1024, 1023}:
            for segment in (0, 1, 2, 3, 31):
                for message in (b"\0", b"\1", b"\2", b"\xff"):
                    yield report(series, period=period, slot=slot, segment=segment, message=message)


@every
def test_each_report_is_judged_as_the_definition_says(series: Series) -> None:
    """By `veilcount_shared`, one at a time; here by columns."""
    reports, expected = list(grid(series)), []
    for sent in reports:
        try:
            check_report(sent, series.collection)
            expected.append(Verdict.COUNTED)
        except ReportError as error:
            expected.append(verdict_from_error(error))

    (columns,) = columns_from_reports(reports)
    rules = SeriesRules.of(series, series.collection.start)
    codes = check_reports(rules.shape(columns), [(rules, columns)]).codes
    assert [VERDICTS[code] for code in codes] == expected


@every
def test_ages_are_judged_to_the_second(series: Series) -> None:
    """Early before its period opens, stale once `late` days have gone since it closed."""
    collection = series.collection
    width = collection.per_day
    slots = {period: period * width if series.linked else 0 for period in range(collection.periods)}
    late = timedelta(days=collection.late)
    for period in {0, collection.periods // 2, collection.periods - 1}:
        sent = report(series, period=period, slot=slots[period])
        first, last = period_start(collection, period), period_end(collection, period) + late
        for now in (first, last):
            for moment in (now - timedelta(seconds=1), now, now + timedelta(seconds=1)):
                if moment < first:
                    expected = Verdict.EARLY
                else:
                    expected = Verdict.STALE if moment >= last else Verdict.COUNTED

                assert Desk().take(sent, day=utc_day(moment)) == [expected]


def test_a_day_is_the_days_of_utc() -> None:
    east = datetime.fromisoformat("2026-12-02T01:00:00+05:00")

    assert utc_day(east) == date(2026, 12, 1)
    assert utc_day(datetime(2026, 12, 1, tzinfo=UTC)) == date(2026, 12, 1)


def test_a_spent_slot_is_looked_up_before_the_age_is_judged() -> None:
    """So the store is asked about early, stale and closed ones too, with that verdict at hand."""
    desk, series = Desk(), SERIES["by period"]
    sent = [report(series, period=period) for period in (0, 3, 29)]
    day = date(2027, 1, 2)
    verdicts = desk.take(*sent, day=day)
    closed = Desk()
    verdict = closed.take(sent[1], day=day, series=[replace(series, closed=True)])

    assert verdicts == [Verdict.STALE, Verdict.COUNTED, Verdict.COUNTED]
    assert [len(each) for each in desk.requested] == [3]
    assert verdict == [Verdict.CLOSED]
    assert [len(each) for each in closed.requested] == [1]


def test_only_reports_that_could_count_reach_the_store() -> None:
    """And once for a whole batch; nothing at all if nothing could."""
    desk, series = Desk(), SERIES["linked"]
    desk.take(report(series, message=b"\7"), report(series, slot=9), day=date(2026, 12, 1))

    assert desk.requested == []
    assert desk.noted() == {(VERDICT, "malformed"): 1, (VERDICT, "over_budget"): 1}


def test_the_store_gets_what_was_sent() -> None:
    """The first bytes of each pseudonym, its epoch, and the message."""
    desk, series = Desk(), SERIES["with segments"]
    sent = [report(series, period=period, slot=period, segment=2) for period in (0, 1)]
    desk.take(*sent, day=date(2027, 1, 15))
    (committed,) = desk.requested

    assert committed.rows.tobytes() == b"".join(each.pseudonym[:ROW_BYTES] for each in sent)
    assert (committed.epochs.tolist(), committed.periods.tolist()) == ([0, 0], [0, 1])
    assert (committed.segments.tolist(), committed.slots.tolist()) == ([2, 2], [0, 1])
    assert committed.messages.tobytes() == sent[0].message * 2
    assert committed.default_verdicts.tolist() == [COUNTED] * 2
    assert committed.limits.tolist() == [5] * 2


def test_losses_are_noted_by_reason_and_digits() -> None:
    """Of unknown series none are."""
    desk = Desk()
    for fingerprint in (SERIES["linked"].fingerprint, "0" * 64):
        body = DecodedBody(0, (), Losses(fingerprint, aged=1, corrupt=4))
        assert desk.process(body, date(2026, 12, 1), SERIES.values()) == []

    assert desk.noted() == {(LOSS, "aged:1"): 1, (LOSS, "corrupt:4"): 1}
