"""Reports that n does not include: rejected ones, and those that devices lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from veilcount_shared.report import MAX_BUCKET

from ..ingest.pipeline import LOSS
from ..store import VERDICT, ServiceCounter
from .estimate_schema import LossRow

WHY = {
    "aged": "expired before they were sent",
    "evicted": "were evicted from the full outbox",
    "corrupt": "were corrupt",
}


@dataclass(frozen=True, slots=True)
class UncountedReports:
    """The service counters of one series."""

    counts: Mapping[ServiceCounter, int]

    @classmethod
    def from_counts(
        cls, counts: Mapping[ServiceCounter, int], fingerprint: str
    ) -> UncountedReports:
        """Select the counters of a series."""
        return cls({note: n for note, n in counts.items() if note.fingerprint == fingerprint})

    def verdicts(self, periods: range) -> dict[str, int]:
        """Return the number of rejected reports of these periods, by verdict."""
        found = Counter[str]()
        for note, number in self.counts.items():
            if note.what == VERDICT and note.period in periods:
                found[note.word] += number
        return dict(sorted(found.items()))

    def unplaced(self) -> dict[str, int]:
        """Return the number of rejected reports whose period is invalid or unread, by verdict."""
        return self.verdicts(range(-1, 0))

    def losses(self) -> list[LossRow]:
        """Return the losses that devices reported, over the whole campaign."""
        return list(self._losses())

    def _losses(self) -> Iterator[LossRow]:
        for note, devices in sorted(self.counts.items()):
            if note.what == LOSS:
                reason, _, digits = note.word.partition(":")
                yield _row(reason, int(digits), devices)


def _row(reason: str, digits: int, devices: int) -> LossRow:
    least = 10 ** (digits - 1)
    most = None if digits >= MAX_BUCKET else 10 * least - 1
    many = f"{least:,} or more" if most is None else f"{least:,} to {most:,}"
    whose = "1 device" if devices == 1 else f"{devices:,} devices"
    text = f"{many} reports of {whose}{'' if devices == 1 else ' each'} {WHY.get(reason, reason)}"
    return LossRow(reason, devices, least * devices, None if most is None else most * devices, text)
