"""Metrics of collections: reports by verdict, new pseudonyms, memory, poisoning tests.

A collection whose number of reports is not public is left out of all but the last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ..series.series import Series
from ..service import Aggregator
from ..store import MemoryLimits, Store
from ..text.privacy_guarantees import counts_are_public
from .exposition import Labels, metric
from .fake_report_flags import FakeReportFlags, is_tested
from .verdict_counts import VerdictCounts

UNKNOWN = "(unknown)"  # no collection can be named so


def report_metrics(
    store: Store, series: Mapping[str, Series], counts: Mapping[str, VerdictCounts]
) -> Iterator[str]:
    """Yield reports and losses by collection, summed over its series."""
    verdicts: Counter[Labels] = Counter()
    losses: Counter[Labels] = Counter()
    for fingerprint, each in series.items():
        if not counts_are_public(each.collection):
            continue
        reports = sum(store.report_counts(each).values())
        found = counts.get(fingerprint, VerdictCounts())
        collection = ("collection", each.collection.name)
        for verdict, number in found.with_counted(reports).items():
            verdicts[collection, ("verdict", verdict)] += number
        for word, number in found.losses.items():
            reason, _, digits = word.partition(":")
            losses[collection, ("reason", reason), ("digits", digits)] += number
    for fingerprint, found in counts.items():  # one label, or anyone could make as many as he likes
        if fingerprint not in series:
            for verdict, number in found.verdicts.items():
                verdicts[("collection", UNKNOWN), ("verdict", verdict)] += number
    yield from metric("verdicts_total", "counter", "Reports by verdict.", verdicts.items())
    yield from metric("losses_total", "counter", "Devices that lost reports.", losses.items())


def pseudonym_metrics(
    store: Store, series: Mapping[str, Series], counts: Mapping[str, VerdictCounts]
) -> Iterator[str]:
    """Yield new pseudonyms, and reports refused by each limit."""
    new: Counter[Labels] = Counter()
    full: Counter[Labels] = Counter()
    for fingerprint, each in series.items():
        if not counts_are_public(each.collection):
            continue
        collection = ("collection", each.collection.name)
        new[(collection,)] += sum(store.new_pseudonyms(each).values())
        for limit, number in counts.get(fingerprint, VerdictCounts()).full().items():
            full[collection, ("limit", limit)] += number
    yield from metric("new_pseudonyms_total", "counter", "Pseudonyms that are new.", new.items())
    yield from metric("full_total", "counter", "Reports refused by a limit.", full.items())


def memory_metrics(
    aggregator: Aggregator, store: Store, series: Mapping[str, Series], *, public: bool
) -> Iterator[str]:
    """Yield the memory of counters: of a collection, its largest series, since each has a limit."""
    use, settings = store.memory_use(), aggregator.settings
    limits = MemoryLimits(settings.max_series_memory, settings.max_store_memory)
    taken: Counter[Labels] = Counter()
    for fingerprint, each in series.items():
        if counts_are_public(each.collection):
            label = (("collection", each.collection.name),)
            taken[label] = max(taken[label], use.series.get(fingerprint, 0))
    most = dict.fromkeys(taken, use.series_limit(limits))
    says, limit = "Bytes of a series' counters.", "Bytes beyond which reports are full."
    yield from metric("series_memory_bytes", "gauge", says, taken.items())
    yield from metric("series_memory_limit_bytes", "gauge", limit, most.items())
    total = use.store_limit(limits)
    if public and total is not None:
        yield from metric("store_memory_bytes", "gauge", "Bytes of all.", [((), use.total)])
        yield from metric("store_memory_limit_bytes", "gauge", limit, [((), total)])


def poisoning_metrics(
    store: Store, series: Mapping[str, Series], flags: FakeReportFlags
) -> Iterator[str]:
    """Yield for each collection whether the poisoning test of any of its series failed."""
    found: Counter[Labels] = Counter()
    for each in series.values():
        if is_tested(each):
            found[(("collection", each.collection.name),)] |= flags.is_flagged(store, each)
    says = "1: the poisoning test failed."
    yield from metric("poisoning_test_failed", "gauge", says, found.items())
