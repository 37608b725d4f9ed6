"""Counters of the service itself: verdicts, losses and requests, by series and period."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .series_reports import HOURLY_FULL, MEMORY_FULL, VERDICTS


class ServiceCounter(NamedTuple):
    """The name of a counter: of a verdict, a loss or a request."""

    what: str
    fingerprint: str  # "": of no series
    period: int  # -1: of no period
    word: str


ServiceCounts = Mapping[ServiceCounter, int]

#: counted by the engines for each report that was not counted
VERDICT = "verdict"
#: a report that was answered `full` by another limit than its period's, and by which
LIMITED = "limited"
BY_HOUR = "hour"
BY_MEMORY = "memory"
_LIMITS = {int(HOURLY_FULL): BY_HOUR, int(MEMORY_FULL): BY_MEMORY}


def refusal_counts(
    fingerprint: str, period: int, code: int, times: int
) -> dict[ServiceCounter, int]:
    """Return the counters of reports that were not counted."""
    found = {ServiceCounter(VERDICT, fingerprint, period, VERDICTS[code]): times}
    limit = _LIMITS.get(code)
    return found | ({ServiceCounter(LIMITED, fingerprint, -1, limit): times} if limit else {})
