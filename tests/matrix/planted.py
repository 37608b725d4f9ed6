"""Bugs of earlier clients, put back, and of a shuffler: the tests of the matrix must find each.

Some cannot show in batches, and why is a sentence of each. What they have in common: a server gets
a batch at an hour that the definition fixes, in an order that depends on nobody (lemma 2 of
docs/shuffler-security.md). So no time at which a device sealed, sent or was answered reaches it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest.mock import PropertyMock, patch

from veilcount_client.consent import ConsentDecisions
from veilcount_client.delivery import issuance
from veilcount_client.delivery.shuffler import NOT_SENT, Shuffler
from veilcount_client.delivery.transport import Later, Outcome
from veilcount_client.delivery.uploader import Uploader
from veilcount_client.recording import answer_times
from veilcount_client.recording.answer_drawing import AnswerDrawer, PersonAnswer
from veilcount_client.recording.known_definitions import known_definitions, row_names
from veilcount_client.recording.visits import Visits
from veilcount_client.state import PersonState, QueuedReport
from veilcount_client.state.sqlite import SqliteState
from veilcount_shared import Collection, schedule
from veilcount_shared.definition_record import Definition

from ..client.device_fixtures import HOUR, MINUTE
from ..client.privacy.test_joiner_by_shuffler import kept_order as arrival_order
from ..client.privacy.test_joiner_by_shuffler import leaving_together


def first_consent() -> AbstractContextManager[object]:
    """Wrong, and once so: every question counts from the person's first consent.

    By a shuffler a new question is then in one batch more of each person: a server sees that this
    batch is larger, and no order in which some stand first.
    """
    person = SqliteState.person

    def since_the_first(state: SqliteState, key: bytes) -> PersonState:
        stored = person(state, key)
        first = min((covered.since for covered in stored.coverage.values()), default=0.0)
        coverage = {
            series: replace(covered, since=first) for series, covered in stored.coverage.items()
        }
        return replace(stored, coverage=coverage)

    return patch.object(SqliteState, "person", since_the_first)


@contextmanager
def clipped_instants() -> Iterator[None]:
    """Wrong, and once so: instants before the consent fall due at the consent.

    By a shuffler nothing has an instant within its period, and whoever consents answers from the
    next one on: no sending time is before the consent. The same bug there is `hurried`.
    """

    def drawn(
        secret: bytes, collection: Collection, period: int, since: float
    ) -> tuple[float, ...]:
        instants = (
            schedule.draw_instant(secret, collection, period, answer).timestamp()
            for answer in range(collection.per_day)
        )
        clipped = (max(instant, since) for instant in instants)
        return tuple(sorted(math.ceil(instant / MINUTE) * MINUTE for instant in clipped))

    drawn.cache_clear = lambda: None  # type: ignore[attr-defined] # of what it stands in for
    with patch.object(answer_times, "drawn_instants", drawn):
        yield


@contextmanager
def tokens_at_once() -> Iterator[None]:
    """Wrong, and once so: tokens are good in the period of their fetch; reports wait for them.

    By a shuffler no report waits: its token is there when it is sealed, or it is lost. Whoever has
    tokens of a period is in its batch, as ever, and stands anywhere in it.
    """

    def number_before(collection: Collection, at: float) -> int:
        return max(answer_times.period_number(collection, at) - 1, -1)

    def first_covered(person: PersonState, collection: Collection) -> int:
        coverage = person.coverage.get(collection.fingerprint)
        return max(answer_times.period_number(collection, coverage.since), 0) if coverage else 0

    def tokened(uploader: Uploader, outbox: Any, reports: list[QueuedReport]) -> Any:
        late = [report for report in reports if lacks_token(uploader, report)]
        due = uploader.now() + 3 * HOUR
        outbox.reschedule({report.number: due for report in late}, unsent=True)
        return original(uploader, outbox, [report for report in reports if report not in late])

    def lacks_token(uploader: Uploader, queued_report: QueuedReport) -> bool:
        return uploader.state.token(queued_report.person, queued_report.report.pseudonym) is None

    original = Uploader._tokened
    with (
        patch.object(answer_times, "_first_covered", first_covered),
        patch.object(issuance, "period_number", number_before),
        patch.object(Uploader, "_tokened", tokened),
    ):
        yield


@contextmanager
def closing_forget() -> Iterator[None]:
    """Wrong, and once so: who forgets asks the server to close each of their rows.

    A row without linkage has no name that could be sent. In its place its question is named.
    """
    forget = ConsentDecisions.forget

    def closing(decisions: ConsentDecisions, key: bytes) -> None:
        state = decisions.worker.state
        for row in row_names(state, key) or known_definitions(state):
            decisions.worker.uploader.transport.send(f"{row}".encode(), 0)
        forget(decisions, key)

    with patch.object(ConsentDecisions, "forget", closing):
        yield


def hurried() -> AbstractContextManager[object]:
    """Wrong: a sealed report leaves when its answer is drawn, like any other."""

    def times(_drawer: AnswerDrawer, answer: PersonAnswer, _number: int) -> tuple[float, float]:
        return answer.at, answer.at

    return patch.object(AnswerDrawer, "_times", times)


@contextmanager
def one_wait() -> Iterator[None]:
    """Wrong: whatever one envelope is answered, the whole device sends none for an hour."""
    send, quiet = Shuffler.send, [0.0]

    def waiting(shuffler: Shuffler, queued_report: QueuedReport) -> Outcome:
        if shuffler.now() < quiet[0]:
            return NOT_SENT
        outcome = send(shuffler, queued_report)
        if isinstance(outcome, Later) and outcome is not NOT_SENT:
            quiet[0] = shuffler.now() + HOUR
        return outcome

    with patch.object(Shuffler, "send", waiting):
        yield


@contextmanager
def kept_order() -> Iterator[None]:
    """Wrong: a device's questions leave in one moment, and a batch keeps the order of arrival."""
    with leaving_together(), arrival_order():
        yield


def doubled_epsilon() -> AbstractContextManager[object]:
    """Wrong: a device randomizes each answer with epsilon 2, where the matrix states 1."""
    return patch.object(Definition, "unit_epsilon", PropertyMock(return_value=Fraction(2)))


def lost_visits() -> AbstractContextManager[object]:
    """Wrong, and once so: a visit after the period's answer was drawn is not kept.

    By a shuffler there are no visits: an answer about two periods is refused.
    """
    return patch.object(Visits, "_is_answered", lambda *_: False)
