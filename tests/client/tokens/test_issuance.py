"""Tokens on the device: requested once, kept before use, and no report leaves without its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from veilcount_client.recording.answer_drawing import AnswerDrawer, PersonAnswer
from veilcount_client.recording.answer_times import tokens_requested_at
from veilcount_client.state.sqlite import SqliteState
from veilcount_client.testing import SettableClock
from veilcount_shared.report import Report
from veilcount_shared.tokens import parse_key, signed_message, verify

from ..device_fixtures import HOUR, Device, at, clock_at, minutes_of, one_collection
from .signing_issuer import SigningIssuer, public

DAYS = 10
DATES = {"from": "2026-12-01", "until": f"2026-12-{DAYS + 1}", "answers": DAYS - 1}


class Crash(BaseException):
    """The process is gone, here and now."""


@pytest.fixture(autouse=True)
def hours() -> Iterator[None]:
    with minutes_of(HOUR):
        yield


class TokenDevice(Device):
    """A device with an issuer of its own, from the first morning on."""

    def __init__(
        self,
        place: Path,
        issuer: SigningIssuer | None = None,
        clock: SettableClock | None = None,
        **keys: Any,
    ) -> None:
        clock = clock or clock_at(at(0, 1))
        self.issuer = issuer or SigningIssuer(clock.now)
        self.issuer.now = clock.now
        collections = self.issuer.of(**DATES | keys)
        super().__init__(
            place,
            collections,
            clock,
            person="p",
            issuer=self.issuer,
            account="account",
            ceiling=99,
            daily_ceiling=99,
        )

    @property
    def requested_at(self) -> float:
        return tokens_requested_at(self.person, self.collections["it"])

    @property
    def counted(self) -> list[Report]:
        return list(self.wire.counted.values())

    def is_valid(self, report: Report) -> bool:
        """Whether a report has the signature of its period's key for its own pseudonym."""
        key = parse_key(public(self.issuer.pairs[report.period]))
        message = signed_message(report.fingerprint, report.period, report.pseudonym)
        return verify(key, message, report.token)


def test_all_tokens_are_requested_once_at_an_instant_that_was_drawn(tmp_path: Path) -> None:
    device = TokenDevice(tmp_path)
    device.record()
    device.run_until(device.requested_at - 1)
    assert device.issuer.log == []

    device.run_until(at(DAYS + 2))
    (when, _, periods), *more = device.issuer.log

    assert more == []
    assert 0 <= when - device.requested_at < HOUR
    assert when < at(1)
    assert periods == tuple(range(1, DAYS))


def test_more_tokens_than_one_request_may_ask_for_come_by_several(tmp_path: Path) -> None:
    days: dict[str, Any] = {"until": "2026-12-04", "answers": 2}
    device = TokenDevice(tmp_path, unit="event", per_day=70, epsilon=0.25, **days)
    device.issuer.per_period = 70
    device.run_until(at(1))

    assert [len(periods) for _, _, periods in device.issuer.log] == [128, 12]
    assert len(set(device.issuer.blinded)) == 140


def test_who_consents_before_the_campaign_gives_all_answers(tmp_path: Path) -> None:
    """Tokens are fetched within a day; each period but one may then be drawn."""
    device = TokenDevice(tmp_path, clock=clock_at(at(-3, 1)))
    device.run_until(at(-1))
    ((when, _, periods),) = device.issuer.log

    assert at(-3, 1) <= when < at(-2, 1) + HOUR
    assert len(periods) == DAYS - 1


def test_who_joins_late_answers_in_the_periods_that_are_left(tmp_path: Path) -> None:
    """Those that begin after the tokens came, drawn from these alone."""
    few, all_left = (
        TokenDevice(tmp_path / str(answers), clock=clock_at(at(4, 9)), answers=answers)
        for answers in (2, 8)
    )
    for device in (few, all_left):
        device.run_until(at(5, 1))

    assert len(few.issuer.log[0][2]) == 2
    assert min(few.issuer.log[0][2]) > 4
    assert all_left.issuer.log[0][2] == tuple(range(5, DAYS))


def test_a_question_that_is_added_later_counts_from_its_own_consent(tmp_path: Path) -> None:
    device = TokenDevice(tmp_path)
    added = one_collection("new", linkage="token", tokens=device.collections["it"].tokens, **DATES)
    device.run_until(at(4, 9))
    device.stop()
    device.start({**device.collections, **added})
    device.client.consent(True, only="new")
    device.run_until(at(5, 1))
    (_, _, first), (when, _, second) = device.issuer.log

    assert first == tuple(range(1, DAYS))
    assert at(4, 9) <= when < at(5)
    assert second == tuple(range(5, DAYS))


def test_each_report_has_the_token_of_its_slot_and_no_other_way_out(tmp_path: Path) -> None:
    device = TokenDevice(tmp_path, per_day=2, unit="event")
    device.issuer.per_period = 2
    for day in range(DAYS):
        device.run_until(at(day, 12))
        device.record()
        device.record()
    device.run_until(at(DAYS + 2))

    assert len(device.counted) == 2 * (DAYS - 1)
    assert all(map(device.is_valid, device.counted))
    assert len({each.pseudonym for each in device.counted}) == 2 * (DAYS - 1)
    assert {each.slot for each in device.counted} == {0}
    assert all(len(each.batch.reports) == 1 for each in device.wire.attempts)
    assert min(each.period for each in device.counted) == 1


def lose_reply(signed: list[bytes]) -> list[bytes]:
    raise TimeoutError


def wrong_signature(signed: list[bytes]) -> list[bytes]:
    return signed[::-1]


@pytest.mark.parametrize("fault", [lose_reply, wrong_signature])
def test_a_reply_that_is_lost_or_wrong_costs_nothing(tmp_path: Path, fault: Any) -> None:
    """The same blinded messages are sent again, and no other."""
    device = TokenDevice(tmp_path, clock=clock_at(at(-3, 1)))  # no period's end cuts the tries
    device.issuer.fault = fault
    device.run_until(device.requested_at + 3 * HOUR)
    first = device.issuer.blinded[: DAYS - 1]

    assert len(device.issuer.log) >= 2
    assert device.issuer.blinded == first * len(device.issuer.log)
    assert any("issuer" in each for each in device.client.explain("it").reasons)
    device.issuer.fault = lambda signed: signed
    device.record_at(at(device.issuer.log[0][2][-1], 9))
    device.run_until(at(DAYS + 2))
    assert [device.is_valid(each) for each in device.counted] == [True]


def test_an_issuer_that_answers_late_finds_no_report_that_is_late(tmp_path: Path) -> None:
    """What is recorded before the tokens came is dropped at its own instant, and counted as lost.

    Such reports once waited for their tokens: an issuer that answered 503 to one account, until
    the end, found all of its reports (5 of 5).
    """
    device = TokenDevice(tmp_path, late=20)
    device.issuer.fault = lose_reply
    for day in range(4):
        device.record_at(at(day, 9))
    device.run_until(at(4, 9))
    device.issuer.fault = lambda signed: signed
    for day in range(5, DAYS):
        device.record_at(at(day, 9))
    device.run_until(at(DAYS + 2))

    assert {each.period for each in device.counted} == set(range(5, DAYS))
    assert device.losses() == {"no_token": 3, "not_selected": 1}


def test_keys_that_are_one_persons_alone_are_found_out(tmp_path: Path) -> None:
    """Nothing is requested under a list that is not the pinned one, and nothing leaves."""
    device = TokenDevice(tmp_path)
    device.issuer.pairs = device.issuer.pairs[:-1][::-1]
    device.record()
    device.run_until(at(DAYS + 2))

    assert device.issuer.log == []
    assert device.wire.attempts == []
    assert "give each person another list" in str(device.client.explain("it"))


def test_whoever_begins_anew_gets_no_second_vote(tmp_path: Path) -> None:
    """Forgotten, and so another secret: the account's tokens are spent, whatever is recorded."""
    device = TokenDevice(tmp_path)
    device.record_at(at(1, 12))
    device.run_until(at(3))
    assert len(device.counted) == 1
    device.client.forget()
    device.client.consent(True)
    for day in range(4, DAYS):
        device.run_until(at(day, 12))
        device.record()
    device.run_until(at(DAYS + 2))

    assert len(device.counted) == 1
    assert device.losses()["no_token"] == DAYS - 4
    assert device.state.waiting(at(99)) == 0


@pytest.mark.parametrize("step", ["before", "after"])
def test_a_crash_between_signature_and_use_loses_no_token(tmp_path: Path, step: str) -> None:
    device = TokenDevice(tmp_path)

    def cut(*arguments: Any) -> None:
        if step == "after":
            keep(*arguments)
        raise Crash

    keep = SqliteState.keep_tokens
    with patch.object(SqliteState, "keep_tokens", cut), pytest.raises(Crash):
        device.run_until(at(1))
    device.crash()
    device.start()
    device.record_at(at(1, 9))
    device.run_until(at(DAYS + 2))

    assert [device.is_valid(each) for each in device.counted] == [True]
    assert max(map(len, device.issuer.issued.values())) == 1


def test_requests_are_alike_whatever_is_recorded(tmp_path: Path) -> None:
    logs = []
    for place, days in enumerate([(), (0,), range(DAYS)]):
        device = TokenDevice(tmp_path / str(place), presence="hidden")
        for day in days:
            device.run_until(at(day, 12))
            device.record()
        device.run_until(at(DAYS + 2))
        sent = [(each.instant, len(each.body)) for each in device.wire.attempts]
        logs.append((device.issuer.log, [when for when, _ in sent], {size for _, size in sent}))

    assert logs[0] == logs[1] == logs[2]
    assert len(logs[0][1]) == DAYS - 1


@pytest.mark.parametrize("planted", [False, True])
def test_hidden_reports_leave_at_drawn_instants_whatever_was_recorded(
    tmp_path: Path,
    planted: bool,  # noqa: FBT001 - pytest's
) -> None:
    """Within a day of consent as well: the time of a record once showed who recorded (31 of 32).

    Planted: reports wait for tokens that come within a day of the consent, as they did.
    """

    def times(drawer: AnswerDrawer, answer: PersonAnswer, number: int) -> tuple[float, float]:
        ready = drawn_at(drawer, answer, number)
        if answer.absent or answer.at > answer.person.coverage[answer.collection.fingerprint].since:
            return (answer.at, answer.at) if not answer.absent else ready
        return ready

    drawn_at = AnswerDrawer._times
    instants = []
    with patch.object(AnswerDrawer, "_times", times if planted else drawn_at):
        for name, days in (("idle", ()), ("active", range(DAYS))):
            device = TokenDevice(tmp_path / name, presence="hidden")
            for day in days:
                device.record_at(at(day, 0.5 if day else 2))
            device.run_until(at(DAYS + 1))
            instants.append([each.instant for each in device.wire.attempts])

    assert len(instants[0]) == DAYS - 1
    assert (instants[0] == instants[1]) is not planted


def test_two_collections_are_requested_at_instants_of_their_own(tmp_path: Path) -> None:
    device = TokenDevice(tmp_path)
    other = one_collection("other", linkage="token", tokens="a" * 64, **DATES)
    device.stop()
    device.start({**device.collections, **other})
    device.client.consent(True)

    assert tokens_requested_at(device.person, other["other"]) != device.requested_at


@pytest.mark.parametrize(
    "options",
    [{"issuer": None, "account": None}, {"development": True}, {"persons": True}, {"account": None,
     "issuer": "https://issuer.example.org"}, {"issuer": "http://issuer.example.org"}],
)  # fmt: skip
def test_without_an_issuer_it_is_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    issuer = SigningIssuer(lambda: 0.0)
    more: dict[str, Any] = {"issuer": issuer, "account": "account", **options}
    device = Device(tmp_path, issuer.of(**DATES), at(0, 1), consent=None, **more)

    assert "load it" in device.client._session.problems.messages
