"""A worker of an issuer: it waits for its store, and keeps its figures and keys in order."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import Client

from veilcount_aggregator.errors import StoreUnavailable
from veilcount_aggregator.records.definitions import add_definitions, read_source
from veilcount_aggregator.store import Store, open_store
from veilcount_issuer import worker
from veilcount_issuer.accounts import create_account_key
from veilcount_issuer.issuance_metrics import IssuanceMetrics
from veilcount_issuer.issuer import Issuer
from veilcount_issuer.key_vault import FolderVault
from veilcount_issuer.worker import IssuerSettings, IssuerWorker
from veilcount_serving.errors import SettingsError
from veilcount_serving.structured_logging import configure_logging

from ..client.device_fixtures import definitions_text
from .issuer_fixtures import NOON, Issuance, declare_whole, problem, set_up


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[IssuerSettings]:
    """Settings whose stores are closed in the end: a worker keeps its own open."""
    today = datetime.now(UTC).date()
    definitions = tmp_path / "collections.toml"
    year = {"from": date(today.year, 1, 1), "until": date(today.year + 1, 1, 1)}
    theme = {"unit": "month", "answers": 1, "linkage": "token", **year}
    definitions.write_text(definitions_text(theme=theme))
    set_up(definitions, FolderVault(tmp_path / "keys", make=True), today)
    account_key = create_account_key(tmp_path / "account.key", ed25519=False)
    url = f"sqlite:///{tmp_path}/issuer.db"
    with ExitStack() as stores:

        def opened(*where: str, **options: Any) -> Store:
            return stores.enter_context(closing(open_store(*where, **options)))

        monkeypatch.setattr(worker, "open_store", opened)
        yield IssuerSettings(url, (definitions,), tmp_path / "keys", (account_key,))


def make_store(url: str) -> None:
    with closing(open_store(url, make=True)) as store:
        declare_whole(store)


def test_a_worker_waits_for_its_store(settings: IssuerSettings) -> None:
    """It lives and is not ready until then; nothing is answered that devices would drop."""
    found = IssuerWorker(settings)
    web = Client(found)

    def states() -> list[int]:
        paths = ("/health/live", "/health/ready", "/v1/tokens", "/metrics")
        return [web.get(path).status_code for path in paths]

    found.keep_up()
    assert states() == [200, 503, 503, 503]
    assert problem(web.post("/v1/tokens")) == "unavailable"
    make_store(settings.store)
    found.keep_up()
    assert states() == [200, 200, 405, 200]
    assert problem(web.post("/v1/tokens")) == "no-account"


def test_figures_outlive_a_store_that_is_away(
    issuance: Issuance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StoreUnavailable("gone")

    issuance.tokens("alice", issuance.slots([0]))
    with monkeypatch.context() as patched:
        patched.setattr(issuance.store, "commit", fail)
        with pytest.raises(StoreUnavailable):
            issuance.metrics.flush()
    issuance.metrics.flush()

    assert "requests_total{} 1\n" in issuance.web.get("/metrics").text


def test_keys_are_retired_at_the_start_and_each_hour(
    settings: IssuerSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault in one round ends neither the thread nor the next round."""
    make_store(settings.store)
    hours, retired = [1000.0], []

    def retire(_: Issuer) -> None:
        retired.append(hours[0])
        raise ZeroDivisionError

    monkeypatch.setattr(Issuer, "retire", retire)
    found = IssuerWorker(settings, lambda: hours[0] * 3600)
    for hour in (1000.0, 1000.5, 1001.0, 1001.9, 1002.1):
        hours[0] = hour
        found.keep_up()

    assert retired == [1000.0, 1001.0, 1002.1]


def test_numbers_are_published_whatever_else_fails(
    settings: IssuerSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Figures that cannot be written keep no period waiting; an older ledger is logged once."""

    def fail(*_: object) -> None:
        raise StoreUnavailable("gone")

    rounds = list[str]()
    make_store(settings.store)
    monkeypatch.setattr(IssuanceMetrics, "flush", fail)
    monkeypatch.setattr(Issuer, "publish", lambda _: rounds.append("published"))
    monkeypatch.setattr(Issuer, "contradictions", lambda _: iter(["the ledger is older"]))
    log = io.StringIO()
    configure_logging(log)
    found = IssuerWorker(settings)
    for _ in range(3):
        found.keep_up()
    contradictions = [line for line in log.getvalue().splitlines() if "contradiction" in line]

    assert rounds == ["published"] * 3
    assert [json.loads(line)["reason"] for line in contradictions] == ["the ledger is older"]


@pytest.mark.parametrize(
    ("name", "what"), [("ledger", "secret of the ledger"), ("issued-numbers", "key of the publish")]
)
def test_an_issuer_without_a_secret_does_not_start(
    definitions: Path, store: Store, tmp_path: Path, name: str, what: str
) -> None:
    """It would know no account again, or publish nothing."""
    shutil.copytree(definitions.parent, tmp_path / "copied")
    (tmp_path / "copied" / "keys" / name).unlink()
    with pytest.raises(SettingsError, match=what):
        Issuance(tmp_path / "copied" / definitions.name, store)


def test_an_aggregators_store_is_refused(definitions: Path, store: Store) -> None:
    """One backup would hold reports and keys, and one operator's eyes see both."""
    add_definitions(store, read_source(definitions), NOON, "test")
    with pytest.raises(SettingsError, match="give the issuer a store of its own"):
        Issuance(definitions, store)


LOADED = """
import sys
import veilcount_aggregator.operate.cli.issuer
from veilcount_aggregator.store import open_store
open_store(sys.argv[1], make=True).close()
names = [name.split(".") for name in sys.modules if name.startswith("veilcount_")]
print(*{part for parts in names for part in parts[:3]})
"""


def test_the_process_of_an_issuer_loads_nothing_of_what_is_collected(tmp_path: Path) -> None:
    """Neither intake nor queries nor pages: what is not there leaks nothing."""
    command = [sys.executable, "-c", LOADED, f"sqlite:///{tmp_path}/issuer.db"]
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    loaded = set(subprocess.check_output(command, text=True, env=environ).split())

    assert "veilcount_issuer" in loaded
    assert not loaded & {"intake", "queries", "releases", "service", "web"}
