"""A ledger that may lack tokens that were issued issues none, until an operator accepts it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from shutil import copy, copytree, rmtree

import pytest

from veilcount_aggregator.operate.cli.main import run
from veilcount_aggregator.store import open_store
from veilcount_aggregator.store.backup import backup, restore
from veilcount_issuer import issuer as issuer_module
from veilcount_issuer.issuer_checks import CHECKS, IssuerSubject
from veilcount_issuer.key_setup import begin_ledger
from veilcount_issuer.key_vault import FolderVault
from veilcount_issuer.worker import IssuerSettings
from veilcount_serving.findings import Severity

from ..aggregator.store.engines import Empty
from ..redis_server import RedisServer
from .issuer_fixtures import NOON, Issuance, problem

ACCOUNT = "account"


@pytest.fixture
def restored(issuance: Issuance, empty: Empty, tmp_path: Path) -> Iterator[Issuance]:
    """An issuer whose store was backed up, which then issued a token, and was restored."""
    backup(issuance.url, tmp_path / "older.db")
    issuance.tokens(ACCOUNT, issuance.slots([0]))
    url = empty()
    restore(tmp_path / "older.db", url)
    with closing(open_store(url)) as store:
        yield Issuance(issuance.definitions, store, url=url)


def ask_again(issuance: Issuance) -> int:
    """Ask for a second token of the period, as an app that was installed anew."""
    return issuance.ask(ACCOUNT, issuance.requests(issuance.slots([0], person=1))).status_code


def accept(issuance: Issuance, *options: str) -> int:
    return run(["issuer", "accept", "--store", issuance.url, "--yes", *options])


def test_a_restored_ledger_issues_nothing_until_it_is_accepted(restored: Issuance) -> None:
    """What was issued since would be issued twice; the refusal is a 503, which devices retry."""
    reply = restored.ask(ACCOUNT, restored.requests(restored.slots([0], person=1)))
    ready = restored.web.get("/health/ready").status_code

    assert (reply.status_code, problem(reply), ready) == (503, "unavailable", 503)
    assert "veilcount issuer accept" in restored.log.getvalue()
    assert accept(restored) == 0
    assert restored.web.get("/health/ready").status_code == 200
    assert ask_again(restored) == 200  # the caps once more, as the operator has accepted


def test_planted_an_issuer_that_trusts_every_ledger_issues_a_second_token(
    restored: Issuance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuer_module, "ledger_is_whole", lambda _: True)

    assert ask_again(restored) == 200


def test_published_numbers_that_are_imported_accept_no_ledger(restored: Issuance) -> None:
    deployment = ["--collections", str(restored.definitions), "--store", restored.url]
    keys = ["--keys", str(restored.definitions.parent / "keys")]

    assert run(["issuer", "issued", "import", *deployment, *keys]) == 0
    assert ask_again(restored) == 503


def test_a_store_newer_than_its_keys_issues_nothing(definitions: Path, empty: Empty) -> None:
    """Its ledger was lost, or is on another host; keys that are made again change nothing."""
    url = empty()
    with closing(open_store(url, make=True)) as store:
        vault = FolderVault(definitions.parent / "keys")
        begin_ledger(store, vault)
        issuance = Issuance(definitions, store, url=url)

        assert ask_again(issuance) == 503
        assert accept(issuance) == 0
        assert ask_again(issuance) == 200


def test_a_store_s_loss_that_is_accepted_accepts_no_ledger(issuance: Issuance) -> None:
    """`veilcount store accept` is of reports: what an issuer forgets is another decision."""
    assert run(["store", "accept", "--yes", "--store", issuance.url]) == 0
    assert ask_again(issuance) == 503
    assert accept(issuance) == 0
    assert ask_again(issuance) == 200


def test_accepting_needs_a_person_or_a_flag(
    restored: Issuance, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["issuer", "accept", "--store", restored.url]) == 2
    assert "give --yes" in capfd.readouterr().err
    assert ask_again(restored) == 503


def test_an_acceptance_is_in_the_audit_log(restored: Issuance) -> None:
    accept(restored)

    acts = [value.decode() for value in restored.store.records("audit").values()]
    assert any("issuer accept" in act for act in acts)


def test_doctor_names_a_ledger_that_may_lack_tokens(restored: Issuance) -> None:
    settings = IssuerSettings(
        restored.url, (restored.definitions,), restored.definitions.parent / "keys"
    )
    subject = IssuerSubject(settings, restored.store, NOON)
    before = next(iter(CHECKS["ledger"](subject)))
    accept(restored)

    assert (before.state, "issuer accept" in before.fix) == (Severity.WRONG, True)
    assert [each.state for each in CHECKS["ledger"](subject)] == [Severity.OK]


# -- put back by hand ------------------------------------------------------------------------------


def test_a_file_that_is_put_back_by_hand_issues_nothing(definitions: Path, tmp_path: Path) -> None:
    """The heights next to it are of the newer one."""
    url, file = f"sqlite:///{tmp_path}/issuer.db", tmp_path / "issuer.db"
    with closing(open_store(url, make=True)) as store:
        issuance = Issuance.begun(definitions, store, url)
    copy(file, tmp_path / "older.db")
    with closing(open_store(url)) as store:
        issuance = Issuance(definitions, store, url=url)
        issuance.tokens(ACCOUNT, issuance.slots([0]))
    for name in ("issuer.db", "issuer.db-wal", "issuer.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    copy(tmp_path / "older.db", file)
    with closing(open_store(url)) as store:
        issuance = Issuance(definitions, store, url=url)

        assert ask_again(issuance) == 503
        assert accept(issuance) == 0
        assert ask_again(issuance) == 200


def test_a_redis_that_is_put_back_issues_nothing(definitions: Path, tmp_path: Path) -> None:
    """The folder of the keys knows; planted: an issuer without it issues a second token."""
    copytree(definitions.parent, tmp_path / "issuer")
    definitions = tmp_path / "issuer" / "collections.toml"
    (tmp_path / "redis").mkdir()
    redis = RedisServer(tmp_path / "redis")
    kept = IssuerSettings(redis.url, (definitions,), definitions.parent / "keys")
    with closing(open_store(redis.url, make=True)) as store:
        Issuance.begun(definitions, store, redis.url)
    redis.kill()
    copytree(tmp_path / "redis", tmp_path / "older")
    redis.start()
    with closing(kept.open_store()) as store:
        issuance = Issuance(definitions, store, url=redis.url)
        issuance.tokens(ACCOUNT, issuance.slots([0]))
    redis.kill()
    rmtree(tmp_path / "redis")
    copytree(tmp_path / "older", tmp_path / "redis")
    redis.start()
    try:
        with closing(kept.open_store()) as store:
            refused = ask_again(Issuance(definitions, store, url=redis.url))
        with closing(open_store(redis.url)) as store:
            planted = ask_again(Issuance(definitions, store, url=redis.url))
        with closing(kept.open_store()) as store:
            issuance = Issuance(definitions, store, url=redis.url)
            still_refused = ask_again(issuance)
            accept(issuance, "--keys", str(kept.keys))
        with closing(kept.open_store()) as store:
            accepted = ask_again(Issuance(definitions, store, url=redis.url))
    finally:
        redis.kill()

    assert (refused, planted, still_refused, accepted) == (503, 200, 503, 200)
