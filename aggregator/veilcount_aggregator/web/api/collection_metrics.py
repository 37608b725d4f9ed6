"""Metrics of collections: reports by verdict, new pseudonyms, memory, poisoning tests.

A collection whose number of reports is not public is left out of all but the last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from veilcount_analysis.mechanisms import handler_of, poisoning_test
from veilcount_analysis.mechanisms.handler import ShareHandler
from veilcount_analysis.series.series import Series
from veilcount_analysis.text.privacy_guarantees import counts_are_public

from ...records.counter_admission import AdmittedMemory
from ...records.service_counters import UNKNOWN, VerdictCounts
from ...service import Aggregator
from ...store import Cell, TallyReader
from .exposition import Labels, gauge, metric

#: a test reads all counters, so it runs again only when the number of reports has grown by 1 %:
#: about 700 times between a thousand reports and a million
GROWN = 1.01


class FakeReportFlags:
    """The last result of each series' poisoning test."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, bool]] = {}

    def is_flagged(self, store: TallyReader, series: Series) -> bool:
        """Whether the counters contain what no honest population would send."""
        sizes = store.report_counts(series)
        answers = sum(sizes.values())
        looked_at, failed = self._seen.get(series.fingerprint, (0, False))
        if answers < max(1, looked_at * GROWN):
            return failed
        outcome = poisoning_test(series.collection, store.counters(series, list(sizes)))
        self._seen[series.fingerprint] = answers, outcome.failed
        return outcome.failed


def is_tested(series: Series) -> bool:
    """Whether a poisoning test of listed values exists for this series."""
    handler = handler_of(series.collection.mechanism)
    return isinstance(handler, ShareHandler) and handler.lists_values


ReportsByCell = Mapping[str, Mapping[Cell, int]]  # by fingerprint


def public_report_counts(store: TallyReader, series: Mapping[str, Series]) -> ReportsByCell:
    """Return the reports of each series by cell, where their number is public."""
    return {
        fingerprint: store.report_counts(one_series)
        for fingerprint, one_series in series.items()
        if counts_are_public(one_series.collection)
    }


def report_metrics(
    reports_by_cell: ReportsByCell,
    series: Mapping[str, Series],
    counts: Mapping[str, VerdictCounts],
) -> Iterator[str]:
    """Yield reports and losses by collection, summed over its series."""
    verdicts: Counter[Labels] = Counter()
    losses: Counter[Labels] = Counter()
    for fingerprint, reports in reports_by_cell.items():
        verdict_counts = counts.get(fingerprint, VerdictCounts())
        collection = ("collection", series[fingerprint].collection.name)
        for verdict, number in verdict_counts.with_counted(sum(reports.values())).items():
            verdicts[collection, ("verdict", verdict)] += number
        for word, number in verdict_counts.losses.items():
            reason, _, digits = word.partition(":")
            losses[collection, ("reason", reason), ("digits", digits)] += number
    for (
        fingerprint,
        verdict_counts,
    ) in counts.items():  # one label, or anyone could make as many as he likes
        if fingerprint not in series:
            for verdict, number in verdict_counts.verdicts.items():
                verdicts[("collection", UNKNOWN), ("verdict", verdict)] += number
    yield from metric("verdicts_total", "counter", "Reports by verdict.", verdicts.items())
    yield from metric("losses_total", "counter", "Devices that lost reports.", losses.items())


def pseudonym_metrics(
    store: TallyReader, series: Mapping[str, Series], counts: Mapping[str, VerdictCounts]
) -> Iterator[str]:
    """Yield new pseudonyms, and reports refused by each limit."""
    new: Counter[Labels] = Counter()
    full: Counter[Labels] = Counter()
    for fingerprint, one_series in series.items():
        if not counts_are_public(one_series.collection):
            continue
        collection = ("collection", one_series.collection.name)
        new[(collection,)] += sum(store.new_pseudonyms(one_series).values())
        for limit, number in counts.get(fingerprint, VerdictCounts()).full().items():
            full[collection, ("limit", limit)] += number
    yield from metric("new_pseudonyms_total", "counter", "Pseudonyms that are new.", new.items())
    yield from metric("full_total", "counter", "Reports refused by a limit.", full.items())


def memory_metrics(
    aggregator: Aggregator, series: Mapping[str, Series], reports_by_cell: ReportsByCell
) -> Iterator[str]:
    """Yield what the counters of all collections can need, and the limit."""
    admitted = AdmittedMemory.from_store(
        aggregator.store,
        series.values(),
        aggregator.today(),
        aggregator.settings.max_counter_memory,
        lambda one_series: reports_by_cell[one_series.fingerprint],
    )
    needs = "Bytes that the counters of all collections can need."
    yield from gauge("counter_memory_bytes", needs, admitted.needs)
    if admitted.limit is not None:
        limit_text = "Bytes that they may need: definitions are admitted by it."
        yield from gauge("counter_memory_limit_bytes", limit_text, admitted.limit)


def poisoning_metrics(
    store: TallyReader, series: Mapping[str, Series], flags: FakeReportFlags
) -> Iterator[str]:
    """Yield for each collection whether the poisoning test of any of its series failed."""
    failed: Counter[Labels] = Counter()
    for one_series in series.values():
        if is_tested(one_series):
            label = ("collection", one_series.collection.name)
            failed[(label,)] |= flags.is_flagged(store, one_series)
    description = "1: the poisoning test failed."
    yield from metric("poisoning_test_failed", "gauge", description, failed.items())
