"""Counters of the service itself: verdicts, losses and requests, by series and period."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .series_reports import HOURLY_FULL, MEMORY_FULL, VERDICTS


class ServiceCounter(NamedTuple):
    """Something that is counted beside the answers: a verdict, a loss, a request of the service."""

    what: str
    fingerprint: str  # "": of no series
    period: int  # -1: of no period
    word: str


ServiceCounts = Mapping[ServiceCounter, int]

#: what the engines themselves note of each report that was not counted
VERDICT = "verdict"
#: a report that was answered `full` by another limit than its period's, and by which
LIMITED = "limited"
BY_HOUR = "hour"
BY_MEMORY = "memory"
_LIMITS = {int(HOURLY_FULL): BY_HOUR, int(MEMORY_FULL): BY_MEMORY}


def refusal_counts(
    fingerprint: str, period: int, code: int, times: int
) -> dict[ServiceCounter, int]:
    """Return what is noted of some reports that were not counted."""
    found = {ServiceCounter(VERDICT, fingerprint, period, VERDICTS[code]): times}
    limit = _LIMITS.get(code)
    return found | ({ServiceCounter(LIMITED, fingerprint, -1, limit): times} if limit else {})
