"""Whoever has the issuer's complete log, its private keys and the aggregator's log joins nothing.

Each campaign has PERSONS accounts that all report in every period. The joiner guesses for each
report whose it is, in the best way it knows: by algebra (the blinding that would turn a blinded
message into a token, with the private key), by the keys that each account was given, and by times.
Guesses are right with probability 1 / PERSONS if the logs tell nothing: of all campaigns, so many
right ones that chance has them with probability below ALPHA are a leak. Seeded; three planted leaks
are found by the same statistic.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from scipy.stats import binom

from veilcount_client.delivery import issuance
from veilcount_client.delivery.uploader import Uploader
from veilcount_client.state import PersonState, QueuedReport
from veilcount_client.testing import SettableClock
from veilcount_shared import Collection, schedule
from veilcount_shared.report import Report
from veilcount_shared.schedule import SecretRandomSource
from veilcount_shared.tokens import SlotSecret, check_key_list, digest

from ..device_fixtures import HOUR, Device, Wire, at, clock_at, minutes_of, pass_time
from ..planting import Plant
from ..privacy.relayed_wire import RelayedWire
from .signing_issuer import SigningIssuer

PERSONS, PERIODS, CAMPAIGNS = 5, 3, 4
ALPHA = 1e-6
SOON = 3 * HOUR
DATES = {
    "from": "2026-12-01",
    "until": f"2026-12-{PERIODS + 2:02}",
    "answers": PERIODS,
    "late": 20,
}  # consent on the first day, and an answer on each of the others


@dataclass
class Logs:
    """All that issuer and aggregator know; and the truth, which the guesses are held against."""

    issuers: list[SigningIssuer]  # one an account: when it was asked, and for which messages
    reports: list[tuple[float, Report]]
    owners: list[int]


def campaign(
    place: Path, seed: int, *, own_keys: bool, wire: Callable[[SettableClock], Wire]
) -> Logs:
    clock = clock_at(at(0, 1))
    issuers = [
        SigningIssuer(clock.now, first=each * (PERIODS + 1) * own_keys) for each in range(PERSONS)
    ]
    devices = [
        Device(
            place / str(number), issuer.of(**DATES), clock, wire(clock),
            person=(seed, number), issuer=issuer, account=str(number),
        )
        for number, issuer in enumerate(issuers)
    ]  # fmt: skip
    for day in range(1, PERIODS + 1):
        pass_time(clock, at(day, 2), *devices)
        for device in devices:
            device.record()
    pass_time(clock, at(PERIODS + 6), *devices)
    sent = [
        (each.instant, report, number)
        for number, device in enumerate(devices)
        for each in device.wire.attempts
        for report in each.batch.reports
    ]
    sent.sort(key=lambda each: each[0])
    for device in devices:
        device.stop()
    return Logs(issuers, [each[:2] for each in sent], [each[2] for each in sent])


def blindings(issuer: SigningIssuer, report: Report) -> set[int]:
    """Return the blinding with which each of an account's requests would fit a token."""
    pair = issuer.pairs[report.period]
    n, token = pair.public_numbers.n, int.from_bytes(report.token, "big")
    inverse = pow(token, -1, n)  # a blinding is the root of the message times this
    return {
        root(pair, int.from_bytes(each, "big")) * inverse % n
        for each in issuer.issued[report.fingerprint, report.period]
    }


@cache
def root(pair: rsa.RSAPrivateNumbers, number: int) -> int:
    """Return the e-th root, which a private key gives, from its two halves."""
    halves = pow(number, pair.dmp1, pair.p), pow(number, pair.dmq1, pair.q)
    return halves[1] + pair.q * ((halves[0] - halves[1]) * pair.iqmp % pair.p)


def by_algebra(logs: Logs, place: int, chance: Random) -> int:
    """The account whose blinding is the same for this report and for another one."""
    _, report = logs.reports[place]
    others = [each for _, each in logs.reports if each.period != report.period]
    for account, issuer in enumerate(logs.issuers):
        elsewhere = {found for each in others for found in blindings(issuer, each)}
        if blindings(issuer, report) & elsewhere:
            return account
    return chance.randrange(PERSONS)


def by_keys(logs: Logs, place: int, chance: Random) -> int:
    """The account that was given the key under which the token verifies, if only one was."""
    _, report = logs.reports[place]
    lists = [issuer.keys(report.fingerprint)[report.period] for issuer in logs.issuers]
    fits = [account for account, issuer in enumerate(logs.issuers) if is_token(issuer, report)]
    alone = [account for account in fits if lists.count(lists[account]) == 1]
    return alone[0] if alone else chance.randrange(PERSONS)


def is_token(issuer: SigningIssuer, report: Report) -> bool:
    numbers = issuer.pairs[report.period].public_numbers
    encoded = pow(int.from_bytes(report.token, "big"), numbers.e, numbers.n)
    return encoded % 256 == 0xBC and encoded.bit_length() < 2048


def by_time(logs: Logs, place: int, _: Random) -> int | None:
    """The account whose tokens were issued in the hours before; no guess where none were."""
    instant, _report = logs.reports[place]
    before = [
        (issuer.log[-1][0], account)
        for account, issuer in enumerate(logs.issuers)
        if instant - SOON <= issuer.log[-1][0] <= instant
    ]
    return max(before)[1] if before else None


def by_order(logs: Logs, place: int, chance: Random) -> int:
    """Of the reports of a period, the n-th is of the account whose tokens were issued n-th."""
    _, report = logs.reports[place]
    alike = [each for _, each in logs.reports if each.period == report.period]
    ranked = sorted(range(PERSONS), key=lambda each: logs.issuers[each].log[-1][0])
    return ranked[alike.index(report) % PERSONS]


JOINERS = (by_algebra, by_keys, by_time, by_order)


def least_p(
    folder: Path,
    plant: Plant = nullcontext,
    *,
    own_keys: bool = False,
    wire: Callable[[SettableClock], Wire] = Wire,
) -> float:
    """Return the least p value of all joiners, corrected for their number."""
    right, guesses, chance = [0] * len(JOINERS), [0] * len(JOINERS), Random(1)
    with plant(), minutes_of(HOUR):
        for seed in range(CAMPAIGNS):
            logs = campaign(folder / str(seed), seed, own_keys=own_keys, wire=wire)
            assert len(logs.reports) == PERSONS * PERIODS
            for number, joiner in enumerate(JOINERS):
                found = [joiner(logs, each, chance) for each in range(len(logs.reports))]
                guesses[number] += sum(each is not None for each in found)
                right[number] += sum(map(operator.eq, found, logs.owners))
    found_p = [binom.sf(each - 1, n, 1 / PERSONS) for each, n in zip(right, guesses, strict=True)]
    return len(JOINERS) * float(min(found_p))


@pytest.mark.parametrize("wire", [Wire, RelayedWire])
def test_both_logs_join_nothing(memory: Path, wire: type[Wire]) -> None:
    """Nor does the gateway's log, where the aggregator has its reports through a relay."""
    assert least_p(memory / wire.__name__, wire=wire) > ALPHA


@contextmanager
def one_blinding() -> Iterator[None]:
    """Wrong: all slots of a person are blinded by one small number of their own."""

    def source(slot: SlotSecret) -> Any:
        return _Small(slot.secret)

    with patch.object(SlotSecret, "_blinding_source", source):
        yield


class _Small(SecretRandomSource):
    """Blinds by the same 64 bits, whatever the slot."""

    def __init__(self, secret: bytes) -> None:
        super().__init__(secret, "one blinding")

    def below(self, n: int) -> int:
        return SecretRandomSource(self._secret, "one blinding").word()


@contextmanager
def waits_for_its_token() -> Iterator[None]:
    """Wrong, and once so: tokens come when a report waits for them, and it leaves soon after."""

    def requested_at(person: PersonState, collection: Collection) -> float:
        first_end = schedule.period_end(collection, 0).timestamp()
        return first_end + 4 * HOUR + person.secret[0] / 256 * 18 * HOUR

    def tokened(uploader: Uploader, outbox: Any, reports: list[QueuedReport]) -> Any:
        late = [each for each in reports if not has_token(uploader, each)]
        outbox.reschedule({each.number: uploader.now() + HOUR for each in late}, unsent=True)
        return original(uploader, outbox, [each for each in reports if each not in late])

    def has_token(uploader: Uploader, each: QueuedReport) -> bool:
        return uploader.state.token(each.person, each.report.pseudonym) is not None

    original = Uploader._tokened
    with (
        patch.object(issuance, "tokens_requested_at", requested_at),
        patch.object(issuance, "period_number", lambda *_: 0),
        patch.object(Uploader, "_tokened", tokened),
    ):
        yield


@contextmanager
def any_keys() -> Iterator[None]:
    """Wrong: the device takes whatever list it is given."""

    def check(keys: list[bytes], periods: int, _: str) -> Any:
        return check_key_list(keys, periods, digest(keys))

    with patch.object(issuance, "check_key_list", check):
        yield


@pytest.mark.parametrize(
    ("plant", "own_keys"), [(one_blinding, False), (waits_for_its_token, False), (any_keys, True)]
)
def test_a_planted_leak_is_found(memory: Path, plant: Plant, own_keys: bool) -> None:  # noqa: FBT001
    assert least_p(memory / plant.__name__, plant, own_keys=own_keys) < ALPHA
