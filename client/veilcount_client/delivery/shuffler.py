"""To a shuffler: each sealed report alone, in an envelope, over a connection of its own.

202: it is held, which is all that is ever known of it. 410: its batch has left. Anything else, or
nothing, keeps it, and nothing else here depends on a reply.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from veilcount_shared import Collection, RandomSource
from veilcount_shared.problem_details import OVER
from veilcount_shared.shuffling.envelope import ENVELOPE_TYPE
from veilcount_shared.shuffling.times import grace_end

from ..state import Notes, Outbox, QueuedReport
from ..state.losses import Loss
from .late_http import http
from .replies import HELD, Replies
from .transport import Delivered, HttpTransport, Later, Outcome, Rejected, Reply, problem_document

PATH = "/v1/envelopes"
RETRY = 3600.0  # seconds within which what settled nothing is sent again
GRAIN = 1_000_000
ACCEPTED, GONE = 202, 410
#: by which a shuffler, or a proxy, says that it has not held an envelope; others may be anybody's
NOT_HELD = frozenset({400, 404, 405, 413, 415, 429, 503})
ADDRESSES = "shufflers"  # note: since when each address is in use
MOST_ADDRESSES = 64
SEPARATOR = b"\0"  # between an address and an envelope, in the outbox


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
            return Later(type(error).__name__, seen=not http().is_unsent(error))
        if reply.status == ACCEPTED and _state(reply) == HELD:
            return Delivered((HELD,))
        if reply.status == GONE and problem_document(reply).get("type") == OVER.uri:
            return Rejected(f"{GONE}")
        return Later(f"{reply.status}", seen=reply.status not in NOT_HELD)


def _state(reply: Reply) -> object:
    """Return the state in a shuffler's reply; None if another answered in its place."""
    try:
        return json.loads(reply.content)["state"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


class ShufflerAddresses:
    """Which address takes a period: a new one, those that begin after it came with the app.

    It is stored with what is sealed: shown to two shufflers, a report would be in two batches, and
    who has both knows it from the covers.
    """

    def __init__(self, notes: Notes, address: str, now: float) -> None:
        """Read which addresses there were, and keep a new one."""
        stored: list[tuple[float, str]] = [
            (float(since), str(url)) for since, url in json.loads(notes.note(ADDRESSES) or "[]")
        ]
        entries = [(min(since, now), url) for since, url in stored]  # a clock was ahead
        if not entries or entries[-1][1] != address:
            entries.append((now if entries else 0.0, address))
        if entries != stored:
            notes.keep(ADDRESSES, json.dumps(entries[-MOST_ADDRESSES:]))
        self._addresses = entries

    def of_period(self, start: float) -> str:
        """Return the address for a period that begins at an instant."""
        earlier = [url for since, url in self._addresses if since <= start]
        return earlier[-1] if earlier else self._addresses[0][1]


NOT_SENT = Later("not sent", seen=False)


def _is_over(collection: Collection, period: int, now: float) -> bool:
    return grace_end(collection, period).timestamp() <= now


@dataclass(frozen=True)
class Shuffler:
    """Sends sealed reports, and settles them by the two replies that say something."""

    collections: Mapping[str, Collection]  # that travel by shuffler, by fingerprint
    connect: Callable[[str], EnvelopeTransport]  # to an address
    replies: Replies
    randomness: RandomSource
    now: Callable[[], float]

    def send(self, queued_report: QueuedReport) -> Outcome:
        """Send one, unless its time is over."""
        report = queued_report.report
        collection = self.collections.get(report.fingerprint)
        if collection is None or _is_over(collection, report.period, self.now()):
            return NOT_SENT  # it expires in the outbox
        address, _, envelope = queued_report.sealed.partition(SEPARATOR)
        return self.connect(address.decode()).send_envelope(envelope)

    def settle(self, outbox: Outbox, queued_report: QueuedReport, outcome: Outcome) -> None:
        """Take one off the outbox, or give it another time."""
        number = queued_report.number
        if isinstance(outcome, Rejected):
            is_first = queued_report.tries == 1
            outbox.settle((), {number: Loss.OVER if is_first else Loss.UNANSWERED})
            return
        if outcome is not NOT_SENT:
            self.replies.add([queued_report.report], outcome)
        if isinstance(outcome, Delivered):
            outbox.settle([number], {})
        else:
            outbox.reschedule({number: self._again(queued_report)}, unsent=not outcome.seen)

    def _again(self, queued_report: QueuedReport) -> float:
        """Return another time: within the hour, and within what is left of the grace."""
        report, now = queued_report.report, self.now()
        collection = self.collections.get(report.fingerprint)
        left = grace_end(collection, report.period).timestamp() - now if collection else RETRY
        return now + min(RETRY, max(left, 0.0)) * self.randomness.below(GRAIN) / GRAIN
