"""The aggregator's last reply on each series: a warning while it is trouble, kept for `explain`.

A reply is a verdict, a status or the error of an exchange. What is kept is that word and two days,
in a note of the state that is written only when one of them changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from veilcount_shared.problem_details import UNKNOWN_VERSION
from veilcount_shared.report import Report
from veilcount_shared.verdict import DELIVERED, UNKNOWN_VERDICT, Verdict

from ..clock import instant
from ..errors import log
from ..state import Notes, StateError
from .transport import Delivered, Outcome, Rejected

QUIET = 3600.0  # seconds in which trouble that comes and goes is not warned of again
MOST_TEXT = 60  # characters of an error's name
REJECTED = "rejected "
HELD = "held"  # by a shuffler

#: what a verdict means for the app, and what to do
VERDICTS: Mapping[str, str] = {
    Verdict.UNKNOWN_COLLECTION: "has no such definition: have its operator push the app's"
    " definitions file (veilcount collections push); reports wait",
    Verdict.EARLY: "has not reached this period yet: this machine's clock is ahead, let NTP set it",
    Verdict.STALE: "dropped what arrived later than `late` allows: this machine's clock is behind"
    " (let NTP set it), or it was offline for too long",
    Verdict.FULL: "has reached its limit of new pseudonyms: reports wait; tell its operator",
    Verdict.OVER_BUDGET: "has counted these slots already: was the state copied or restored?",
    Verdict.MALFORMED: "refuses the messages: bring app and aggregator to the same release",
    Verdict.CLOSED: "takes no more for this collection: leave it out of the app's next version",
    UNKNOWN_VERDICT: "gives a verdict that this release does not know: ship a newer one with the"
    " app; reports wait",
}
#: likewise a status
STATUSES: Mapping[str, str] = {
    "401": "the key is missing or not valid: give VEILCOUNT_KEY one of its device keys",
    "403": "the key is of another role: give VEILCOUNT_KEY one of its device keys",
    **dict.fromkeys(("404", "405", "410"), "no aggregator at this address, check the path"),
    "408": "the body came too slowly: check the network; reports wait",
    "415": "it takes no bodies of this release: have its operator update it; reports wait",
    "429": "too many requests: reports wait; tell its operator if it lasts",
    **dict.fromkeys(("301", "302", "307", "308"), "no redirect is followed: give the new address"),
    **dict.fromkeys(
        ("500", "502", "503", "504"),
        "it is busy or down: reports wait; tell its operator if it lasts",
    ),
}
#: likewise a status of a shuffler
SHUFFLER_STATUSES: Mapping[str, str] = {
    **STATUSES,
    "404": "it does not serve this period (yet): have its operator load the app's definitions and"
    " relay.keys, and let NTP set this clock; reports wait until the grace ends",
}
#: likewise other exchanges that settled nothing, most of them through a relay
EXCHANGES = {
    UNKNOWN_VERSION.name: "does not know this release's version of the protocol: have its operator"
    " update it; reports wait",
    "KeyRetired": "does not know the key that came with the app, or the relay says so: ship the"
    " file of `veilcount relay-keys create`; reports wait",
    "NoGatewayReply": "did not reply: the relay, or something on the way, answered in its place;"
    " check the relay; reports wait",
}
KEYS = {
    False: "it requires a key: give VEILCOUNT_KEY one of its device keys",
    True: "it does not know the key: give VEILCOUNT_KEY one of its device keys",
}


def describe(kind: str, *, keyed: bool, test: bool = False) -> str:
    """Return what a reply that is trouble means, with the aggregator as the subject."""
    if sentence := VERDICTS.get(kind) or EXCHANGES.get(kind):
        return sentence
    status = kind.removeprefix(REJECTED)
    if kind != status:
        why = "bring app and aggregator to the same release"
        if test:
            why = "test batches need `veilcount dev`; leave out development=True otherwise"
        return f"answers {status} and refused the reports for good: {why}"
    if not status.isdecimal():
        return f"cannot be reached ({status}): check the address and the network; reports wait"
    unknown = "not as an aggregator would: is a proxy in between?"
    why = KEYS[keyed] if status == "401" else STATUSES.get(status, unknown)
    return f"answers {status}: {why}"


def describe_shuffler(kind: str) -> str:
    """Return what a shuffler's reply that is trouble means, with the shuffler as the subject."""
    if not kind.isdecimal():
        return f"cannot be reached ({kind}): check the address and the network; reports wait"
    unknown = "not as a shuffler would: is a proxy in between?"
    return f"answers {kind}: {SHUFFLER_STATUSES.get(kind, unknown)}"


@dataclass(frozen=True, slots=True)
class LastReply:
    """The last reply on a series, its day, and the day of the last delivery (empty without)."""

    kind: str
    day: str
    delivered: str = ""

    @property
    def is_trouble(self) -> bool:
        """Whether it was anything but a delivery."""
        return self.kind not in DELIVERED and self.kind != HELD


@dataclass
class Replies:
    """Keeps the last reply on each series, and warns of trouble when it begins and ends."""

    notes: Notes
    names: Mapping[str, str]  # of the collections, by series
    now: Callable[[], float]
    describe: Callable[[str], str]
    host: str
    _known: dict[str, LastReply] = field(default_factory=dict)
    _trouble: set[tuple[str, str]] = field(default_factory=set)  # kind, and series of a verdict
    _quiet_until: dict[tuple[str, str], float] = field(default_factory=dict)

    def last(self, series: str) -> LastReply | None:
        """Return the last reply on a series, perhaps to another process."""
        return last_reply(self.notes, series)

    def forget(self) -> None:
        """Forget all: of one person's device, the days of deliveries are that person's."""
        self._known.clear()
        for series in self.names:
            if self.last(series):
                self.notes.keep(_name(series), "")

    def describe_last(self, reply: LastReply) -> str:
        """Return what a reply that was trouble means, and what to do."""
        return f"{self.host} {self.describe(reply.kind)}"

    def add(self, reports: Iterable[Report], outcome: Outcome) -> None:
        """Take the outcome of a body."""
        for series, kind in _kinds(reports, outcome).items():
            with suppress(StateError):  # a diagnosis is worth no failure
                reply = self._keep(series, kind)
                self._warn(series, reply)

    def _keep(self, series: str, kind: str) -> LastReply:
        known = self._known.get(series) or self.last(series)
        day = instant(self.now()).date().isoformat()
        reply = LastReply(kind, day, known.delivered if known else "")
        if not reply.is_trouble:
            reply = LastReply(kind, day, day)
        if reply != known:
            self.notes.keep(_name(series), f"{reply.kind}|{reply.day}|{reply.delivered}")
        self._known[series] = reply
        return reply

    def _warn(self, series: str, reply: LastReply) -> None:
        if not reply.is_trouble:
            self._end(series)
            return
        trouble = (reply.kind, series if reply.kind in VERDICTS else "")
        now = time.monotonic()
        if trouble in self._trouble or now < self._quiet_until.get(trouble, now):
            return
        self._trouble.add(trouble)
        self._quiet_until[trouble] = now + QUIET
        where = f" [{self.names.get(series, series)}]" if trouble[1] else ""
        log.warning("veilcount, delivery%s: %s %s", where, self.host, self.describe(reply.kind))

    def _end(self, series: str) -> None:
        over = {problem for problem in list(self._trouble) if problem[1] in {"", series}}
        self._trouble -= over
        if over:
            log.warning("veilcount, delivery: %s takes reports again", self.host)


def _kinds(reports: Iterable[Report], outcome: Outcome) -> dict[str, str]:
    """Return the kind of reply of each series: of verdicts, the last that is no delivery."""
    series = [report.fingerprint for report in reports]
    if not isinstance(outcome, Delivered):
        prefix = REJECTED if isinstance(outcome, Rejected) else ""
        return dict.fromkeys(series, prefix + outcome.why.replace("|", " ")[:MOST_TEXT])
    kinds: dict[str, str] = {}
    for fingerprint, verdict in zip(series, outcome.verdicts, strict=True):
        if verdict not in DELIVERED or fingerprint not in kinds:
            kinds[fingerprint] = str(verdict)
    return kinds


def last_reply(notes: Notes, series: str) -> LastReply | None:
    """Return the last reply on a series that a state has kept."""
    stored_reply = notes.note(_name(series))
    return LastReply(*stored_reply.split("|")[:3]) if stored_reply else None


def _name(series: str) -> str:
    return f"reply {series}"
