"""Counters of the service (verdicts, losses, requests): in one worker until the next commit, and
read back as verdicts by series.

Kept in memory for a second at most while reports come in; a worker that is killed loses that
second's figures of the service, and no answer.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from veilcount_shared.verdict import Verdict

from ..store import BY_HOUR, LIMITED, VERDICT, ServiceCounter, ServiceCounts

SECONDS = 1.0

#: what counters of requests are called, and the endpoint of reports in them
ANSWERED = "answered"
REFUSED = "refused"
REPORTS = "reports"
UNKNOWN = "(unknown)"  # no collection can be named so
LOSS = "loss"
BY_BODY = "body"  # the limit of one request; the other limit is BY_HOUR


class ServiceCounters:
    """Counters that are taken out about once a second. Thread-safe."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        """Begin empty; `seconds` is a clock that never goes back."""
        self._seconds = seconds
        self._taken = seconds()
        self._lock = threading.Lock()
        self._counts: Counter[ServiceCounter] = Counter()

    def count(self, counter: ServiceCounter, number: int = 1) -> None:
        """Add to a counter."""
        with self._lock:
            self._counts[counter] += number

    def take(self, *, now: bool = False) -> ServiceCounts:
        """Return what was counted since, once a second has passed (or now); else nothing."""
        with self._lock:
            if not self._counts or not (now or self._seconds() - self._taken >= SECONDS):
                return {}
            self._taken = self._seconds()
            counts, self._counts = self._counts, Counter()
            return counts

    def restore(self, counts: ServiceCounts) -> None:
        """Count again what could not be written."""
        with self._lock:
            self._counts.update(counts)


@dataclass(frozen=True, slots=True)
class VerdictCounts:
    """Counters of one series: rejected reports by verdict, losses, and limits reached."""

    verdicts: Counter[str] = field(default_factory=Counter)
    losses: Counter[str] = field(default_factory=Counter)
    limited: Counter[str] = field(default_factory=Counter)  # `full`, but not by a period

    def full(self) -> dict[str, int]:
        """Return how many reports were answered `full`, by the limit that was reached."""
        of_period = self.verdicts[Verdict.FULL] - self.limited.total()
        refused = {limit: self.limited[limit] for limit in (BY_BODY, BY_HOUR)}
        return refused | {"period": of_period}

    def with_counted(self, reports: int) -> dict[str, int]:
        """Return how often each verdict was given, all of them, in the protocol's order."""
        return {
            verdict.value: reports if verdict is Verdict.COUNTED else self.verdicts[verdict]
            for verdict in Verdict
        }


def counts_by_series(noted: Mapping[ServiceCounter, int]) -> dict[str, VerdictCounts]:
    """Return the notes of each series, summed over its periods."""
    by_series: defaultdict[str, VerdictCounts] = defaultdict(VerdictCounts)
    for note, number in noted.items():
        if note.what == VERDICT:
            by_series[note.fingerprint].verdicts[note.word] += number
        elif note.what == LOSS:
            by_series[note.fingerprint].losses[note.word] += number
        elif note.what == LIMITED:
            by_series[note.fingerprint].limited[note.word] += number
    return by_series
