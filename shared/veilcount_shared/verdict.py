"""Verdicts: the outcomes of a report, and what the device does on each."""

from __future__ import annotations

from enum import StrEnum

#: in the place of a verdict of a later release: the device keeps the report, as on `full`
UNKNOWN_VERDICT = "unknown verdict"


class Verdict(StrEnum):
    """What the aggregator did with one report."""

    #: counted, now durable
    COUNTED = "counted"
    #: its slot was spent before: this very report, or another for the same slot; success
    DUPLICATE = "duplicate"
    #: no such slot: the pseudonym has no budget for it
    OVER_BUDGET = "over_budget"
    #: its period closed longer ago than `late`
    STALE = "stale"
    #: the collection was closed by its operator
    CLOSED = "closed"
    #: no message of this series
    MALFORMED = "malformed"
    #: a limit is reached: on new pseudonyms of the period, hour or body
    FULL = "full"
    #: the aggregator has no such definition (yet)
    UNKNOWN_COLLECTION = "unknown_collection"
    #: its period has not begun
    EARLY = "early"

    @property
    def delivered(self) -> bool:
        """Whether the answer is among the counted ones."""
        return self in DELIVERED

    @property
    def retry(self) -> bool:
        """Whether the device keeps the report and tries again, until its age limit."""
        return self in _RETRY

    @property
    def dropped(self) -> bool:
        """Whether the device gives the report up, with this verdict as the reason."""
        return not (self.delivered or self.retry)


DELIVERED = frozenset({Verdict.COUNTED, Verdict.DUPLICATE})
#: `full` too: an hour's limit ends with it, and a period's can be raised
_RETRY = frozenset({Verdict.UNKNOWN_COLLECTION, Verdict.EARLY, Verdict.FULL})
