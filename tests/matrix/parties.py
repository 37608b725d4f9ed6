"""Server, issuer and relay of a population: what each logs, and what it replies."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from veilcount_client.delivery import backoff
from veilcount_client.delivery.issuer import IssuerUnavailable, SlotsRefused, SlotToSign
from veilcount_client.delivery.transport import Delivered, Later, Outcome
from veilcount_shared import Collection
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import decode_binary

from ..client.device_fixtures import number
from ..client.privacy.relayed_wire import UNKNOWN_KEY
from .cells import PERIODS, Combination, Question, member_of, question_of
from .shuffler import hand_over, name_of
from .simulation import CHANGED, Calendar

TURNED_AWAY, CLOSED, DENIED = 0.6, 0.2, 0.3  # shares of marked attempts, and of token requests
Row = tuple[str, str, bytes]  # a question, pseudonym: all that tells one row from another


# -- what the parties log --------------------------------------------------------------------------


class Attempt(NamedTuple):
    """One body that reached the server: what it knows, and whose it is, which it does not know."""

    instant: float
    until: float  # when the row is free again that was asked to wait
    period: int
    length: int
    marks: bytes
    person: int
    member: int = 0  # of a group, which of its questions it answers


class TokenRequest(NamedTuple):
    """One request of an account to the issuer."""

    instant: float
    account: int
    fingerprint: str
    periods: tuple[int, ...]
    is_signed: bool


@dataclass
class Logs:
    """All that server, issuer and relay have of one population."""

    combination: Combination
    calendar: Calendar
    collections: Mapping[str, Collection] = field(default_factory=dict)  # by fingerprint
    attempts: dict[Row, list[Attempt]] = field(default_factory=dict)
    envelopes: dict[Row, list[Attempt]] = field(default_factory=dict)  # as the shuffler has them
    strays: list[bytes] = field(default_factory=list)  # bodies that are no reports
    requests: list[TokenRequest] = field(default_factory=list)
    relay: list[tuple[float, int]] = field(default_factory=list)  # instant and address
    answers: dict[tuple[int, str, int], set[tuple[bytes, int]]] = field(default_factory=dict)
    recorded: dict[tuple[int, str], list[float]] = field(default_factory=dict)
    active: set[int] = field(default_factory=set)  # who records, where presence is hidden

    def rows(self, name: str, period: int | None = None) -> list[Row]:
        """Return the rows of a question, and perhaps of a period, in an order that says nothing."""
        rows = [row for row in self.attempts if row[1] == name]
        if period is not None:
            rows = [row for row in rows if self.attempts[row][0].period == period]
        return sorted(rows, key=lambda row: number("order", row))

    def person(self, row: Row) -> int:
        return self.attempts[row][0].person

    def member(self, row: Row) -> int:
        """Return which question of a group a row answers: that of its person, in all periods."""
        return self.attempts[row][0].member

    def question(self, request: TokenRequest) -> Question:
        """Return the question whose tokens were requested."""
        return question_of(self.collections[request.fingerprint])

    def requested_member(self, request: TokenRequest) -> int:
        """Return which question of a group an account requests tokens of."""
        return member_of(self.collections[request.fingerprint])

    def leave_by_shuffler(self, *files: Mapping[str, Collection]) -> None:
        """Give the shuffler what was logged so far, and the server the batches instead.

        Covers are left out, as for a server that knows them.
        """
        self.envelopes, self.attempts = self.attempts, {}
        owners = {row[2]: attempts[0].person for row, attempts in self.envelopes.items()}
        arrivals = [
            (attempt.instant, attempt.marks)
            for attempts in self.envelopes.values()
            for attempt in attempts
        ]
        for row in hand_over(files, arrivals):
            name = name_of(row.sealed)
            if name in owners:
                whose = owners[name], member_of(row.collection)
                self.attempts[*question_of(row.collection), name] = [
                    Attempt(row.instant, row.instant, row.period, len(row.sealed), b"", *whose)
                ]

    def hour(self, row: Row) -> int:
        """Return what public presence shows: of which hour's record a row's first report is.

        Hidden presence has no such hour, and no batch has.
        """
        if self.combination.presence == "hidden" or self.combination.is_by_shuffler:
            return 0
        first = self.attempts[row][0]
        recorded = self.recorded.get((first.person, row[1]), [])
        return bisect_right(recorded, first.instant)


@dataclass
class Server:
    """Chooses its replies to one question's rows, and counts the reports of the others.

    Of reports that go by a shuffler it is the shuffler that replies.
    """

    logs: Logs

    def reply(
        self, person: int, marks: Callable[[], bytes], now: Callable[[], float], body: bytes, _: int
    ) -> Outcome:
        batch = decode_binary(body)
        if not batch.reports:
            return Delivered(())
        report = batch.reports[0]
        collection = self.logs.collections[report.fingerprint]
        row = (*question_of(collection), report.pseudonym)
        attempts = self.logs.attempts.setdefault(row, [])
        wait, outcome = self._choose(row, len(attempts))
        whose = person, member_of(collection)
        attempts.append(Attempt(now(), now() + wait, report.period, len(body), marks(), *whose))
        if self.logs.combination.route == "relay":
            self.logs.relay.append(
                (now() - number("delay", row, len(attempts)) % 1000 / 1000, person)
            )
        for report_in_body in batch.reports:
            key = person, collection.name, report_in_body.period
            self.logs.answers.setdefault(key, set()).add(
                (report_in_body.pseudonym, report_in_body.slot)
            )
        return outcome

    def _choose(self, row: Row, tries: int) -> tuple[float, Outcome]:
        """Mark the rows of one question by delays of all lengths; watch the others."""
        if row[1] != CHANGED:
            return 0.0, Delivered((Verdict.COUNTED,))
        randomness = Random(number("reply", row, tries))
        if randomness.random() < TURNED_AWAY:
            seconds = backoff.retry_after(str(randomness.choice([1, 301, 3000, 10**6])), 0)
            whys = ["503", "429", "302", "SSLError", "ReadTimeout"]
            if self.logs.combination.route == "relay":
                whys.append("unknown key")
            why = randomness.choice(whys)
            if why == "unknown key":
                return 0.0, UNKNOWN_KEY
            return seconds, Later(why, seconds if why in {"503", "429"} else 0.0)
        if randomness.random() < CLOSED:
            return 0.0, Delivered((Verdict.CLOSED,))
        return 0.0, Delivered((randomness.choice([Verdict.COUNTED, Verdict.FULL]),))


@dataclass
class Issuer:
    """Logs who requests tokens of which periods, and turns some requests away.

    It signs nothing: `simulated_tokens` replaces the algebra, which `test_both_logs` attacks.
    """

    logs: Logs
    account: int
    now: Callable[[], float]
    blinded: dict[tuple[str, int], bytes] = field(default_factory=dict)
    denies: bool = True

    def keys(self, _fingerprint: str) -> list[bytes]:
        return [b""] * PERIODS

    def sign(self, fingerprint: str, slots: Sequence[SlotToSign]) -> list[bytes]:
        place = len(self.logs.requests)
        is_denied = self.denies and Random(number("denied", self.account, place)).random() < DENIED
        periods = tuple(slot.period for slot in slots)
        self.logs.requests.append(
            TokenRequest(self.now(), self.account, fingerprint, periods, not is_denied)
        )
        if is_denied:
            raise IssuerUnavailable("503")
        left = [
            slot.period
            for slot in slots
            if self.blinded.get((fingerprint, slot.period), slot.blinded) == slot.blinded
        ]
        if len(left) < len(slots):
            raise SlotsRefused(frozenset(left))
        self.blinded |= {(fingerprint, slot.period): slot.blinded for slot in slots}
        return [b""] * len(slots)
