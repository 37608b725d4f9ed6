"""To a shuffler: each sealed report alone, in an envelope, over a connection of its own.

202: it is held, which is all that is ever known of it. 410: its batch has left. Anything else, or
nothing, keeps it, and nothing else here depends on a reply.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from veilcount_shared import Collection, RandomSource, schedule
from veilcount_shared.shuffling.envelope import ENVELOPE_TYPE
from veilcount_shared.shuffling.times import grace_end

from ..state import Notes, Outbox, QueuedReport
from ..state.losses import Loss
from .replies import HELD, Replies
from .transport import Delivered, HttpTransport, Later, Outcome, Rejected

PATH = "/v1/envelopes"
RETRY = 3600.0  # seconds within which what settled nothing is sent again
GRAIN = 1_000_000
ACCEPTED, GONE = 202, 410
GATEWAY_FAILURES = frozenset({502, 504})  # of a proxy, behind which the shuffler may have read it
ADDRESSES = "shufflers"  # note: since when each address is in use
MOST_ADDRESSES = 8


class EnvelopeTransport(Protocol):
    """Sends envelopes to a shuffler."""

    def send_envelope(self, envelope: bytes) -> Outcome:
        """Post one: Delivered if it is held, Rejected if its batch has left, or else Later."""


class ShufflerTransport(HttpTransport):
    """Posts to a shuffler by HTTP."""

    def __init__(self, url: str, now: Callable[[], float]) -> None:
        """Remember the address. A shuffler knows no app, and is shown no key."""
        super().__init__(url, None, now)

    def send_envelope(self, envelope: bytes) -> Outcome:
        """Post an envelope."""
        try:
            reply = self.request("POST", PATH, envelope, ENVELOPE_TYPE)
        except Exception as error:  # noqa: BLE001 - whatever went wrong on the way: it is kept
            return Later(type(error).__name__, seen=not self._http.is_unsent(error))
        if reply.status == ACCEPTED:
            return Delivered((HELD,))
        if reply.status == GONE:
            return Rejected(f"{GONE}")
        return Later(f"{reply.status}", seen=reply.status in GATEWAY_FAILURES)


class ShufflerAddresses:
    """Which address takes a period: a new one, those that begin after it came with the app.

    A crowd is of one shuffler. Had it two, each would mix fewer than was promised, and the server
    could be shown one report in both.
    """

    def __init__(self, notes: Notes, address: str, now: float) -> None:
        """Read which addresses there were, and keep a new one."""
        stored: list[tuple[float, str]] = [
            (float(since), str(url)) for since, url in json.loads(notes.note(ADDRESSES) or "[]")
        ]
        if not stored or stored[-1][1] != address:
            stored.append((now if stored else 0.0, address))
            notes.keep(ADDRESSES, json.dumps(stored[-MOST_ADDRESSES:]))
        self._addresses = stored

    def of_period(self, start: float) -> str:
        """Return the address for a period that begins at an instant."""
        earlier = [url for since, url in self._addresses if since <= start]
        return earlier[-1] if earlier else self._addresses[0][1]


@dataclass(frozen=True)
class Shuffler:
    """Sends sealed reports, and settles them by the two replies that say something."""

    collections: Mapping[str, Collection]  # that travel by shuffler, by fingerprint
    addresses: ShufflerAddresses
    connect: Callable[[str], EnvelopeTransport]  # to an address
    replies: Replies
    randomness: RandomSource
    now: Callable[[], float]

    def send(self, queued_report: QueuedReport) -> Outcome:
        """Send one, unless its time is over."""
        report = queued_report.report
        collection = self.collections.get(report.fingerprint)
        if collection is None:
            return Later("no such collection", seen=False)
        if grace_end(collection, report.period).timestamp() <= self.now():
            return Later("the grace is over", seen=False)  # it expires in the outbox
        start = schedule.period_start(collection, report.period).timestamp()
        return self.connect(self.addresses.of_period(start)).send_envelope(queued_report.sealed)

    def settle(self, outbox: Outbox, queued_report: QueuedReport, outcome: Outcome) -> None:
        """Take one off the outbox, or give it another time."""
        number = queued_report.number
        if isinstance(outcome, Rejected):
            is_first = queued_report.tries == 1
            outbox.settle((), {number: Loss.OVER if is_first else Loss.UNANSWERED})
            return
        self.replies.add([queued_report.report], outcome)
        if isinstance(outcome, Delivered):
            outbox.settle([number], {})
        else:
            again = self.now() + RETRY * self.randomness.below(GRAIN) / GRAIN
            outbox.reschedule({number: again}, unsent=not outcome.seen)
