"""What became of reports: verdicts that honest devices on a sound deployment hardly ever get.

Shares of everything since the store was made, so that an old trouble is seen for long. Where a
count may not leave, its collection is passed over; and so are, then, the requests as a whole.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from veilcount_shared.verdict import Verdict

from ..api.collection_metrics import UNKNOWN
from ..api.exposition import PREFIX
from ..api.reports import ENDPOINT
from ..api.request_metrics import ANSWERED, REFUSED
from ..api.verdict_counts import VerdictCounts, counts_by_series
from ..text.privacy_guarantees import counts_are_public
from .finding import CheckResult, problems_or_ok, warn
from .store_snapshot import StoreSnapshot

FEW = 100  # reports or requests, below which a share says nothing
NO_KEY = "no-key"


class VerdictLimit(NamedTuple):
    """From which share of a collection's reports on a verdict is worth a look, and what to do."""

    share: float
    fix: str


LIMITS: Mapping[Verdict, VerdictLimit] = {
    Verdict.OVER_BUDGET: VerdictLimit(
        0.001, "devices refuse this themselves: look for a modified client or an attack"
    ),
    Verdict.MALFORMED: VerdictLimit(0.001, "look for a client that is not ours, or was altered"),
    Verdict.EARLY: VerdictLimit(
        0.01, "clocks of devices are ahead; is this machine's clock right?"
    ),
    Verdict.STALE: VerdictLimit(
        0.05, "devices are offline for longer than `late`: define more days"
    ),
    Verdict.FULL: VerdictLimit(
        0.0,
        "`veilcount_full_total` says by which limit: raise --max-new-pseudonyms,"
        " --max-new-pseudonyms-per-hour or --max-series-memory of `veilcount serve`;"
        " if unexpected, look for a flood",
    ),
    Verdict.UNKNOWN_COLLECTION: VerdictLimit(
        0.01, "apps ship a definition that was never pushed: `veilcount collections push FILE`"
    ),
}
UNKEYED = VerdictLimit(
    0.01, "devices show no key, or one that was revoked: ship a valid one with the app"
)

_LINE = re.compile(rf"{PREFIX}(\w+)_total{{(.*)}} ([0-9.e+]+)")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class VerdictTotals:
    """How often each collection's reports got each verdict; requests, and those without a key."""

    verdicts: Mapping[str, Counter[str]]
    requests: int = 0
    unkeyed: int = 0


def verdicts(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Look at the verdicts that a store has counted."""
    yield from verdict_problems(_counted(stored))


def verdict_problems(intake: VerdictTotals) -> Iterator[CheckResult]:
    """Yield what stands out."""
    yield from problems_or_ok(_complaints(intake), "no verdict stands out")


def read_metrics(text: str) -> VerdictTotals:
    """Return what the figures of a running server say."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    requests = unkeyed = 0
    for name, labelled, number in _LINE.findall(text):
        labels, times = dict(_LABEL.findall(labelled)), int(float(number))
        if name == "verdicts":
            found[labels["collection"]][labels["verdict"]] += times
        elif name == "requests" and labels["endpoint"] == ENDPOINT:
            requests += times
        elif name == "refused" and labels["problem"] == NO_KEY:
            unkeyed += times
    return VerdictTotals(found, requests, unkeyed)


def _counted(stored: StoreSnapshot) -> VerdictTotals:
    noted, series = stored.store.service_counts(), stored.catalog.series
    counts = counts_by_series(noted)
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for fingerprint, each in series.items():
        if counts_are_public(each.collection):
            reports = sum(stored.store.report_counts(each).values())
            told = counts.get(fingerprint, VerdictCounts()).with_counted(reports)
            found[each.collection.name].update(told)
    for fingerprint in counts.keys() - series.keys():
        found[UNKNOWN].update(counts[fingerprint].verdicts)
    if stored.secret:
        return VerdictTotals(found)
    requests = [
        n for note, n in noted.items() if (note.what, _door(note.word)) == (ANSWERED, ENDPOINT)
    ]
    unkeyed = [n for note, n in noted.items() if (note.what, note.word) == (REFUSED, NO_KEY)]
    return VerdictTotals(found, sum(requests), sum(unkeyed))


def _door(word: str) -> str:
    return word.partition(":")[0]


def _complaints(intake: VerdictTotals) -> Iterator[CheckResult]:
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
