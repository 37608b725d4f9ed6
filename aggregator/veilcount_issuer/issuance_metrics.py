"""Figures of the issuer: requests, tokens, refusals, time. None is of an account.

Kept in memory for a second, then added to the store's service counters, so that they are right over
all workers.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping

from veilcount_aggregator.errors import StoreError
from veilcount_aggregator.store import ServiceCounter, Store

ISSUED, REFUSED = "tokens issued", "tokens refused"
REQUESTS, MICROSECONDS = "token requests", "token microseconds"
PREFIX = "veilcount_issuer_"


class IssuanceMetrics:
    """Counts what one worker did. Thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._counts: Counter[ServiceCounter] = Counter()

    def issued(self, fingerprint: str, tokens: int) -> None:
        """Count the tokens of a request that was granted."""
        self._add(ServiceCounter(ISSUED, fingerprint, -1, ""), tokens)

    def refused(self, problem: str) -> None:
        """Count a refused request, by its problem type."""
        self._add(ServiceCounter(REFUSED, "", -1, problem))

    def answered(self, seconds: float) -> None:
        """Count a request for tokens and its duration."""
        self._add(ServiceCounter(REQUESTS, "", -1, ""))
        self._add(ServiceCounter(MICROSECONDS, "", -1, ""), round(seconds * 1e6))

    def flush(self) -> None:
        """Add what was counted to the store's; what it does not take is kept for the next time."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        if not counts:
            return
        try:
            self._store.commit([], counts)
        except StoreError:
            with self._lock:
                self._counts.update(counts)
            raise

    def exposition(self, without_number: Mapping[str, int]) -> Iterator[str]:
        """Yield the figures over all workers, in the Prometheus text format.

        `without_number` counts the periods that began and are not published, by fingerprint.
        """
        counts = self._store.service_counts()
        counts_by_labels = {
            (counter.what, counter.fingerprint, counter.word): n for counter, n in counts.items()
        }
        yield from _metric(
            "tokens_total",
            "Signatures given, by collection.",
            {
                f'fingerprint="{of}"': n
                for (what, of, _), n in counts_by_labels.items()
                if what == ISSUED
            },
        )
        yield from _metric(
            "refused_total",
            "Requests refused, by problem type.",
            {
                f'problem="{why}"': n
                for (what, _, why), n in counts_by_labels.items()
                if what == REFUSED
            },
        )
        requests, microseconds = (
            counts_by_labels.get((what, "", ""), 0) for what in (REQUESTS, MICROSECONDS)
        )
        yield from _metric("requests_total", "Requests for tokens.", {"": requests})
        yield from _metric("seconds_total", "Time of these requests.", {"": microseconds / 1e6})
        yield from _metric(
            "unpublished_periods",
            "Periods that have begun and whose number of accounts is not published.",
            {f'fingerprint="{of}"': n for of, n in without_number.items()},
            kind="gauge",
        )

    def _add(self, counter: ServiceCounter, number: int = 1) -> None:
        with self._lock:
            self._counts[counter] += number


def _metric(
    name: str, help_text: str, values: dict[str, float], kind: str = "counter"
) -> Iterator[str]:
    yield f"# HELP {PREFIX}{name} {help_text}\n# TYPE {PREFIX}{name} {kind}\n"
    for labels, number in sorted(values.items()):
        yield f"{PREFIX}{name}{{{labels}}} {number}\n"
