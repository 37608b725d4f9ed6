"""Tokens on the device: requested once, kept before use, and no report leaves without its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from veilcount_client.recording.answer_times import TOKEN_WINDOW, tokens_requested_at
from veilcount_client.state.sqlite import SqliteState
from veilcount_shared.report import Report
from veilcount_shared.tokens import parse_key, signed_message, verify

from ..device_fixtures import HOUR, Device, at, clock_at, minutes_of, one_collection
from .signing_issuer import SigningIssuer, public

DAYS = 10
DATES = {"from": "2026-12-01", "until": f"2026-12-{DAYS + 1}"}


class Crash(BaseException):
    """The process is gone, here and now."""


@pytest.fixture(autouse=True)
def hours() -> Iterator[None]:
    with minutes_of(HOUR):
        yield


class TokenDevice(Device):
    """A device with an issuer of its own, from the first morning on."""

    def __init__(self, place: Path, issuer: SigningIssuer | None = None, **keys: Any) -> None:
        clock = clock_at(at(0, 1))
        self.issuer = issuer or SigningIssuer(clock.now)
        self.issuer.now = clock.now
        collections = self.issuer.of(**DATES | keys)
        super().__init__(
            place, collections, clock, person="p", issuer=self.issuer, account="account"
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
    assert periods == tuple(range(DAYS))


def test_each_report_has_the_token_of_its_slot_and_leaves_after_the_window(
    tmp_path: Path,
) -> None:
    device = TokenDevice(tmp_path, per_day=2, unit="event")
    device.issuer.per_period = 2
    for day in range(DAYS):
        device.run_until(at(day, 12))
        device.record()
        device.record()
    device.run_until(at(DAYS + 2))

    assert len(device.counted) == 2 * DAYS
    assert all(map(device.is_valid, device.counted))
    assert len({each.pseudonym for each in device.counted}) == 2 * DAYS
    assert {each.slot for each in device.counted} == {0}
    assert all(len(each.batch.reports) == 1 for each in device.wire.attempts)
    assert min(each.instant for each in device.wire.attempts) >= device.person.since + TOKEN_WINDOW


def lose_reply(signed: list[bytes]) -> list[bytes]:
    raise TimeoutError


def wrong_signature(signed: list[bytes]) -> list[bytes]:
    return signed[::-1]


@pytest.mark.parametrize("fault", [lose_reply, wrong_signature])
def test_a_reply_that_is_lost_or_wrong_costs_nothing(tmp_path: Path, fault: Any) -> None:
    """The same blinded messages are sent again, and no other."""
    device = TokenDevice(tmp_path)
    device.issuer.fault = fault
    device.record()
    device.run_until(device.requested_at + 3 * HOUR)
    first = device.issuer.blinded[:DAYS]

    assert len(device.issuer.log) >= 2
    assert device.issuer.blinded == first * len(device.issuer.log)
    assert any("issuer" in each for each in device.client.explain("it").reasons)
    device.issuer.fault = lambda signed: signed
    device.run_until(at(DAYS + 2))
    assert [device.is_valid(each) for each in device.counted] == [True]


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
    device.record()
    device.run_until(at(3))
    assert len(device.counted) == 1
    device.client.forget()
    device.client.consent(True)
    for day in range(4, DAYS):
        device.run_until(at(day, 12))
        device.record()
    device.run_until(at(DAYS + 2))

    assert len(device.counted) == 1
    assert device.losses()["over_cap"] == DAYS - 4
    assert device.state.waiting(at(99)) == 0


@pytest.mark.parametrize("step", ["before", "after"])
def test_a_crash_between_signature_and_use_loses_no_token(tmp_path: Path, step: str) -> None:
    device = TokenDevice(tmp_path)
    device.record()

    def cut(*arguments: Any) -> None:
        if step == "after":
            keep(*arguments)
        raise Crash

    keep = SqliteState.keep_tokens
    with patch.object(SqliteState, "keep_tokens", cut), pytest.raises(Crash):
        device.run_until(at(3))
    device.crash()
    device.start()
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
    assert len(logs[0][1]) == DAYS


def test_two_collections_are_requested_at_instants_of_their_own(tmp_path: Path) -> None:
    device = TokenDevice(tmp_path)
    other = one_collection("it", linkage="token", tokens="a" * 64, **DATES)["it"]

    assert tokens_requested_at(device.person, other) != device.requested_at


@pytest.mark.parametrize(
    "options",
    [{"issuer": None, "account": None}, {"development": True}, {"persons": True}, {"account": None,
     "issuer": "https://issuer.example.org"}, {"issuer": "http://issuer.example.org"}],
)  # fmt: skip
def test_without_an_issuer_the_collection_is_refused(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    issuer = SigningIssuer(lambda: 0.0)
    more: dict[str, Any] = {"issuer": issuer, "account": "account", **options}
    device = Device(tmp_path, issuer.of(**DATES), at(0, 1), consent=None, **more)

    assert "load it" in device.client._session.problems.messages
