"""An issuer that signs for one account alone finds its report; its file of numbers shows a 1.

That is the price of `linkage = "token"` as the threat model prints it: no blinding prevents it, and
what people can compare is the number, if the issuer does not lie. Everybody consents before the
campaign, records every day, and the issuer guesses whose each report is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from veilcount_aggregator.store import open_store
from veilcount_client.delivery.issuer import SlotsRefused, SlotToSign
from veilcount_issuer.issued_numbers import verify_numbers
from veilcount_issuer.issuer import open_publication
from veilcount_issuer.key_vault import LEDGER, NUMBERS, FolderVault
from veilcount_issuer.ledger import SlotRequest
from veilcount_shared import Collection
from veilcount_shared.report import Report

from ..device_fixtures import HOUR, Device, Wire, at, clock_at, minutes_of, pass_time
from .signing_issuer import SigningIssuer

PERSONS, PERIODS, ANSWERS, CAMPAIGNS = 5, 4, 2, 8
DATES = {"from": "2026-12-01", "until": f"2026-12-{PERIODS + 1:02}", "late": 20, "answers": ANSWERS}
CONSENT = at(-3, 1)


class AccountIssuer(SigningIssuer):
    """Signs for an account, or says that it has had its tokens."""

    serves = True

    def sign(self, fingerprint: str, slots: Sequence[SlotToSign]) -> list[bytes]:
        if not self.serves:
            raise SlotsRefused(frozenset())
        return super().sign(fingerprint, slots)


@dataclass
class Campaign:
    """What was reported and by whom, and what the issuer signed for each account."""

    collection: Collection
    reports: list[tuple[Report, int]]
    signed: dict[int, list[SlotRequest]]
    target: int

    def is_target_found(self, chance: Random) -> bool:
        """Whether a report that the issuer picks as the target's is the target's."""
        return chance.choice(self.reports)[1] == self.target


def play(folder: Path, seed: int, *, alone: bool) -> Campaign:
    """Have everybody answer; an issuer that is after one of them signs for nobody else."""
    clock, target = clock_at(CONSENT), seed % PERSONS
    issuers = [AccountIssuer(clock.now) for _ in range(PERSONS)]
    for account, issuer in enumerate(issuers):
        issuer.serves = account == target or not alone
    devices = [
        Device(
            folder / str(account), issuer.of(**DATES), clock, Wire(clock),
            person=(seed, account), issuer=issuer, account=str(account),
        )
        for account, issuer in enumerate(issuers)
    ]  # fmt: skip
    for day in range(PERIODS):
        pass_time(clock, at(day, 2), *devices)
        for device in devices:
            device.record()
    pass_time(clock, at(PERIODS + 3), *devices)
    reports = [
        (report, account)
        for account, device in enumerate(devices)
        for report in device.wire.counted.values()
    ]
    for device in devices:
        device.stop()
    signed = defaultdict[int, list[SlotRequest]](list)
    for account, issuer in enumerate(issuers):
        for (_, period), messages in issuer.issued.items():
            signed[account] += [SlotRequest(period, message) for message in messages]
    return Campaign(devices[0].collections["it"], reports, signed, target)


def numbers(folder: Path, campaign: Campaign) -> list[int]:
    """Return what an honest file says of a campaign, by the code that an issuer runs."""
    vault = FolderVault(folder / "vault", make=True)
    vault.add({LEDGER: bytes(32), NUMBERS: bytes(range(32))})
    with closing(open_store(f"sqlite:///{folder}/issuer.db", make=True)) as store:
        published = open_publication(store, vault)
        published.publish(campaign.collection, 0)
        for account, requests in campaign.signed.items():
            published.ledger.record(str(account), campaign.collection, requests, 0)
        published.publish(campaign.collection, PERIODS)
        file = published.file(campaign.collection.fingerprint)
        return [number.accounts for number in verify_numbers(file, published.key.public_key())]


@pytest.fixture(scope="module")
def attacked(memory: Path) -> list[Campaign]:
    with minutes_of(HOUR):
        return [play(memory / f"alone {seed}", seed, alone=True) for seed in range(CAMPAIGNS)]


def test_an_issuer_that_signs_for_one_account_finds_it(attacked: list[Campaign]) -> None:
    """In 8 of 8 campaigns, as printed in the threat model: it is no promise of ours."""
    chance = Random(1)

    assert sum(each.is_target_found(chance) for each in attacked) == CAMPAIGNS


def test_its_file_shows_one_account_a_period(attacked: list[Campaign], tmp_path: Path) -> None:
    for seed, campaign in enumerate(attacked):
        folder = tmp_path / str(seed)
        folder.mkdir()
        answered = {report.period for report, _ in campaign.reports}
        shown = numbers(folder, campaign)

        assert answered
        assert {shown[period] for period in answered} == {1}


def test_an_issuer_that_signs_for_all_finds_it_by_chance(memory: Path, tmp_path: Path) -> None:
    """The same guess among all reports; and the file shows how many accounts they could be of."""
    chance = Random(1)
    with minutes_of(HOUR):
        campaigns = [play(memory / f"all {seed}", seed, alone=False) for seed in range(CAMPAIGNS)]
    hits = sum(each.is_target_found(chance) for each in campaigns)

    assert hits <= CAMPAIGNS // 2
    assert sum(numbers(tmp_path, campaigns[0])) == PERSONS * ANSWERS
