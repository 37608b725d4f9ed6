"""Loss reasons and their counts: a closed list; never a value, never a time.

Reasons that depend on what a person did stay on the device, for the receipt and for `explain`. Only
what was lost in transport is reported to the aggregator, coarsely [shared README, the wire].
"""

from __future__ import annotations

from collections import Counter, deque
from enum import StrEnum


class Loss(StrEnum):
    """Why a record, an answer or a report went nowhere."""

    #: the person has not consented, or not to this collection
    NO_CONSENT = "no_consent"
    #: a kill switch of the environment is on
    DISABLED = "disabled"
    #: the definitions have no such collection, or could not be read
    UNKNOWN = "unknown"
    #: it did not fit under the ceilings when the definitions were loaded
    REFUSED = "refused"
    #: outside the campaign, or in a period in which this person does not answer
    NOT_SELECTED = "not_selected"
    #: this period's answer is given and does not change
    FROZEN = "frozen"
    #: the ledger's cap of the day or of the campaign is reached
    OVER_CAP = "over_cap"
    #: more was recorded at once than memory may hold
    QUEUE_FULL = "queue_full"
    #: a true value for a trusted curator was in memory when the process died
    CRASHED = "crashed"
    #: a bug of veilcount's: see the log
    FAILED = "failed"
    #: no durable place for the state
    NO_STATE = "no_state"
    #: the segment was not one that the definition declares
    SEGMENT = "segment"

    #: the issuer gave no token for it in time, or has given the account's to another device
    NO_TOKEN = "no_token"  # noqa: S105 - a reason

    #: transport: older than the aggregator accepts
    AGED = "aged"
    #: transport: the outbox was full, and this was the oldest
    EVICTED = "evicted"
    #: transport: the state's file was damaged; how many it held is not known, so files are counted
    CORRUPT = "corrupt"

    #: the shuffler had handed the batch over when it came
    OVER = "over"
    #: the shuffler was sent it, and gave no answer: it may be in the batch
    UNANSWERED = "unanswered"
    #: the file of keys that came with the app has none for the period
    NO_KEY = "no_key"

    #: the state was copied or rolled back, and began anew as another person
    MOVED = "moved"

    #: verdicts of the aggregator
    OVER_BUDGET = "over_budget"
    STALE = "stale"
    CLOSED = "closed"
    MALFORMED = "malformed"
    #: of releases before `full` was retried; states may still count it
    FULL = "full"


TRANSPORT = (Loss.AGED, Loss.EVICTED, Loss.CORRUPT)


class LossCounter:
    """Counts losses from any thread without a lock, which a fork could leave held."""

    _MOST = 1000

    def __init__(self) -> None:
        """Start with nothing lost."""
        self._pending: deque[tuple[Loss, str, int]] = deque()

    def add(self, loss: Loss, collection: str, count: int = 1) -> None:
        """Count a loss; `deque` makes each step atomic."""
        self._pending.append((loss, collection, count))
        if len(self._pending) > self._MOST:
            for (lost, name), number in self.take().items():
                self._pending.append((lost, name, number))

    def counts(self) -> Counter[tuple[Loss, str]]:
        """Return what was counted since the last `take`, and keep it."""
        counts: Counter[tuple[Loss, str]] = Counter()
        for loss, collection, count in list(self._pending):
            counts[loss, collection] += count
        return counts

    def take(self) -> Counter[tuple[Loss, str]]:
        """Return what was counted since the last time."""
        counts: Counter[tuple[Loss, str]] = Counter()
        while True:
            try:
                loss, collection, count = self._pending.popleft()
            except IndexError:
                return counts
            counts[loss, collection] += count
