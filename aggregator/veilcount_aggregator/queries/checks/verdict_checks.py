"""Checks of verdicts that honest devices on a healthy deployment hardly ever get.

They use totals since the store was created, so an old problem stays visible. A collection whose
counts are not public is left out, and then so are the totals of requests.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from veilcount_analysis.text.privacy_guarantees import counts_are_public
from veilcount_serving.findings import CheckResult, or_ok, warn
from veilcount_shared.verdict import Verdict

from ...records.service_counters import (
    ANSWERED,
    REFUSED,
    REPORTS,
    UNKNOWN,
    VerdictCounts,
    counts_by_series,
)
from .store_snapshot import StoreSnapshot

FEW = 100  # reports or requests, below which a share is not meaningful
NO_KEY = "no-key"


class VerdictLimit(NamedTuple):
    """The share of a collection's reports above which a verdict is reported, and the fix."""

    share: float
    fix: str


LIMITS: Mapping[Verdict, VerdictLimit] = {
    Verdict.OVER_BUDGET: VerdictLimit(
        0.001, "the client never sends these: look for a modified client or an attack"
    ),
    Verdict.MALFORMED: VerdictLimit(0.001, "look for a modified or incompatible client"),
    Verdict.EARLY: VerdictLimit(
        0.01, "the devices' clocks are ahead, or this machine's is behind: check it"
    ),
    Verdict.STALE: VerdictLimit(
        0.05, "devices are offline for longer than `late`: allow more days"
    ),
    Verdict.FULL: VerdictLimit(
        0.0,
        "`veilcount_full_total` shows the limit: raise --max-new-pseudonyms or"
        " --max-new-pseudonyms-per-hour of `veilcount serve`;"
        " if unexpected, look for a flood",
    ),
    Verdict.UNKNOWN_COLLECTION: VerdictLimit(
        0.01, "apps ship a definition that was never pushed: `veilcount collections push FILE`"
    ),
}
UNKEYED = VerdictLimit(0.01, "devices send no key, or a revoked one: ship a valid one with the app")


@dataclass(frozen=True, slots=True)
class VerdictTotals:
    """The number of verdicts by collection, of requests, and of requests without a key."""

    verdicts: Mapping[str, Counter[str]]
    requests: int = 0
    unkeyed: int = 0


def verdicts(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Check the verdict counters of a store."""
    yield from verdict_problems(_counted(stored))


def _counted(stored: StoreSnapshot) -> VerdictTotals:
    counters, series = stored.store.service_counts(), stored.catalog.series
    counts = counts_by_series(counters)
    totals_by_name: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for fingerprint, one_series in series.items():
        if counts_are_public(one_series.collection):
            reports = sum(stored.store.report_counts(one_series).values())
            totals = counts.get(fingerprint, VerdictCounts()).with_counted(reports)
            totals_by_name[one_series.collection.name].update(totals)
    for fingerprint in counts.keys() - series.keys():
        totals_by_name[UNKNOWN].update(counts[fingerprint].verdicts)
    if stored.secret:
        return VerdictTotals(totals_by_name)
    requests = sum(
        n
        for counter, n in counters.items()
        if counter.what == ANSWERED and counter.word.partition(":")[0] == REPORTS
    )
    unkeyed = sum(
        n for counter, n in counters.items() if (counter.what, counter.word) == (REFUSED, NO_KEY)
    )
    return VerdictTotals(totals_by_name, requests, unkeyed)


@or_ok("no verdict stands out")
def verdict_problems(intake: VerdictTotals) -> Iterator[CheckResult]:
    """Yield the verdicts above their limits."""
    everything = sum(counts.total() for counts in intake.verdicts.values())
    for name, counts in sorted(intake.verdicts.items()):
        all_reports = everything if name == UNKNOWN else counts.total()
        for verdict, limit in LIMITS.items():
            yield from _share(f"of {name}'s reports", verdict, counts[verdict], all_reports, limit)
    yield from _share("of requests", "without a key", intake.unkeyed, intake.requests, UNKEYED)


def _share(
    of: str, what: str, times: int, everything: int, limit: VerdictLimit
) -> Iterator[CheckResult]:
    if everything >= FEW and times > limit.share * everything:
        yield warn(f"{times / everything:.2%} {of} were {what}", limit.fix)
