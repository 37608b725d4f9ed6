"""Service counters as verdicts by series."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from veilcount_shared.verdict import Verdict

from ..store import BY_HOUR, LIMITED, VERDICT, ServiceCounter

UNKNOWN = "(unknown)"  # no collection can be named so
LOSS = "loss"
BY_BODY = "body"  # the limit of one request; the other limit is BY_HOUR


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
