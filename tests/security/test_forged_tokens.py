"""Tokens in the intake: what was not signed for this very slot never counts."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from veilcount_aggregator.records.definitions import DefinitionSource, add_definitions
from veilcount_shared.errors import DefinitionError
from veilcount_shared.report import Batch, Report
from veilcount_shared.tokens import (
    PublicKey,
    digest,
    encode_key,
    encode_key_list,
    key_list_name,
    signed_message,
)
from veilcount_shared.verdict import Verdict

from ..aggregator.web.api.deployment_fixtures import Deployment, deployment
from ..redis_server import RedisServer

NOW = datetime(2026, 12, 3, 12, tzinfo=UTC)
PERIODS = 4
TABLE = """
[{name}]
question = "Is it on?"
boolean = true
epsilon = 1
unit = "day"
from = 2026-12-01
until = 2026-12-05
late = 1
answers = 1
linkage = "{linkage}"
{more}
"""
PSS = padding.PSS(padding.MGF1(hashes.SHA384()), 48)


@cache
def signers(name: str) -> list[rsa.RSAPrivateKey]:
    return [rsa.generate_private_key(65537, 2048) for _ in range(PERIODS)]


def listed(name: str) -> list[bytes]:
    numbers = [each.public_key().public_numbers() for each in signers(name)]
    return [encode_key(PublicKey(each.n)) for each in numbers]


def definitions() -> DefinitionSource:
    tables, files = [], {}
    for name in ("one", "two"):
        pinned = digest(listed(name))
        tables.append(TABLE.format(name=name, linkage="token", more=f'tokens = "{pinned}"'))
        files[key_list_name(pinned)] = encode_key_list(listed(name))
    plain = TABLE.format(name="plain", linkage="period", more="")
    return DefinitionSource('app = "acme"\n' + "".join([*tables, plain]), files)


@pytest.fixture(params=["sqlite", "redis"])
def deployed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Deployment]:
    server = RedisServer(tmp_path) if request.param == "redis" else None
    try:
        with deployment(tmp_path, now=NOW, url=server.url if server else "") as made:
            add_definitions(made.aggregator.store, definitions(), NOW, "cli")
            made.aggregator.catalog_cache.refresh()
            yield made
    finally:
        if server:
            server.kill()


def token(name: str, report: Report, period: int | None = None) -> bytes:
    """Return the token that an issuer would sign for a report of this collection and period."""
    period = report.period if period is None else period
    message = signed_message(report.fingerprint, period, report.pseudonym)
    return signers(name)[period].sign(message, PSS, hashes.SHA384())


def honest(deployed: Deployment, name: str = "one", period: int = 2) -> Report:
    report = deployed.report(name, period=period)
    return replace(report, token=token(name, report))


def other(deployed: Deployment) -> Report:
    return honest(deployed)


#: what an adversary who has tokens of their own, and sees those of others, makes of a sound report
FORGERIES: dict[str, Callable[[Deployment, Report], Report]] = {
    "random bytes": lambda _, report: replace(report, token=secrets.token_bytes(256)),
    "zeros": lambda _, report: replace(report, token=bytes(256)),
    "one": lambda _, report: replace(report, token=(1).to_bytes(256, "big")),
    "a changed byte": lambda _, report: replace(
        report, token=bytes([report.token[0] ^ 1]) + report.token[1:]
    ),
    "above the modulus": lambda _, report: replace(report, token=b"\xff" * 256),
    "another pseudonym": lambda _, report: replace(report, pseudonym=secrets.token_bytes(16)),
    "another person's token": lambda made, report: replace(report, token=other(made).token),
    "another period": lambda _, report: replace(report, period=1),
    "the same period of another collection": lambda made, report: replace(
        report, fingerprint=made.series("two").fingerprint
    ),
    "signed for another period by this one's key": lambda _, report: replace(
        report,
        token=signers("one")[report.period].sign(
            signed_message(report.fingerprint, 1, report.pseudonym), PSS, hashes.SHA384()
        ),
    ),
    "signed by another collection's key": lambda _, report: replace(
        report, token=token("two", report)
    ),
    "no token": lambda _, report: replace(report, token=b""),
    "a token where there are none": lambda made, report: replace(
        made.report("plain"), token=report.token
    ),
}


def verdict(deployed: Deployment, report: Report) -> Verdict:
    (verdict,) = deployed.verdicts(report)
    return verdict


def test_no_forged_token_counts(deployed: Deployment) -> None:
    for why, forge in FORGERIES.items():
        forged = forge(deployed, honest(deployed))
        assert verdict(deployed, forged) is Verdict.MALFORMED, why
    assert [deployed.counted(name) for name in ("one", "two", "plain")] == [0, 0, 0]


def test_a_token_counts_once_whatever_its_message_says(deployed: Deployment) -> None:
    report = honest(deployed)
    again = replace(report, message=bytes([report.message[0] ^ 1]))

    assert verdict(deployed, report) is Verdict.COUNTED
    assert verdict(deployed, report) is Verdict.DUPLICATE
    assert verdict(deployed, again) is Verdict.DUPLICATE
    assert verdict(deployed, replace(report, slot=1)) is Verdict.OVER_BUDGET
    assert deployed.counted("one") == 1


def test_forged_reports_in_a_group_do_not_harm_the_others(deployed: Deployment) -> None:
    sound = [honest(deployed, name) for name in ("one", "two", "one")]
    forged = replace(sound[0], pseudonym=secrets.token_bytes(16))
    plain = deployed.report("plain")
    reply = deployed.send(Batch((sound[0], forged, sound[1], plain, sound[2])))

    assert reply.json["verdicts"] == ["counted", "malformed", "counted", "counted", "counted"]


def test_what_is_of_no_open_period_is_not_even_verified(deployed: Deployment) -> None:
    early, stale = (honest(deployed, period=each) for each in (3, 0))

    assert deployed.verdicts(early) == [Verdict.EARLY]
    assert deployed.verdicts(stale) == [Verdict.STALE]
    assert deployed.counted("one") == 0


def test_definitions_come_with_their_keys_or_are_refused(deployed: Deployment) -> None:
    source, store = definitions(), deployed.aggregator.store
    text = source.text.replace('app = "acme"', 'app = "other"')
    (name, keys), *_ = source.files.items()
    for files, fix in (
        ({}, "along with the definitions"),
        ({**source.files, name: "{}"}, "give {"),
        ({**source.files, name: keys.replace("[", '["AAAA", ', 1)}, "5 for 4 periods"),
    ):
        with pytest.raises(DefinitionError, match=fix.replace("{", r"\{")) as refused:
            add_definitions(store, DefinitionSource(text, files), NOW, "cli")
        assert refused.value.key == "tokens"
