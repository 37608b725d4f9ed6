"""doctor through a real relay to a real server, and to a real issuer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from veilcount_aggregator.operate.cli.main import run
from veilcount_aggregator.records.definitions import load_catalog
from veilcount_aggregator.store import open_store
from veilcount_client.diagnostics.doctor import examine
from veilcount_client.settings import read_settings
from veilcount_issuer.accounts import read_account_key, sign_account

from ..client.device_fixtures import definitions_text
from .server import Server

DAY = timedelta(days=1)


def definitions(folder: Path, more: str = "") -> Path:
    today = datetime.now(UTC).date()
    path = folder / "collections.toml"
    path.write_text(definitions_text(theme={"from": today, "until": today + 2 * DAY}) + more)
    return path


@contextmanager
def relay_to(server: Server) -> Iterator[str]:
    command = [sys.executable, "-m", "veilcount_aggregator", "relay", "serve", "--dev-only"]
    line = [*command, "--port", "0", "--to", server.url]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as served:
        assert served.stdout is not None
        try:
            yield served.stdout.readline().split()[2].rstrip(",")
        finally:
            served.terminate()


def found(account: str | None = None, **options: str) -> dict[str, tuple[bool, str]]:
    results = examine(read_settings({}, **options), account=account)
    return {each.subject: (each.ok, each.message) for each in results}


def test_the_way_through_a_relay(tmp_path: Path) -> None:
    """Two keys, the older retired; then both: nothing is counted by looking."""
    file, store, keys = definitions(tmp_path), f"sqlite:///{tmp_path}/s.db", tmp_path / "relay.keys"
    for line in (["init", "--yes"], ["collections", "push", str(file)]):
        assert run([*line, "--store", store]) == 0
    for _ in range(2):
        assert run(["relay-keys", "create", "--out", str(keys), "--store", store]) == 0
    look = {"collections": str(file), "relay_keys": str(keys), "state": str(tmp_path / "state")}
    with Server(store, tmp_path) as server, relay_to(server) as url:
        usable = found(relay=url, **look)
    assert run(["relay-keys", "retire", "1", "--store", store]) == 0
    with Server(store, tmp_path) as server, relay_to(server) as url:
        one_left = found(relay=url, **look)
        assert run(["relay-keys", "retire", "2", "--store", store]) == 0
    with Server(store, tmp_path) as server, relay_to(server) as url:
        none_left = found(relay=url, **look)
    with closing(open_store(store)) as opened:
        (series,) = load_catalog(opened).series.values()
        counted = sum(opened.report_counts(series).values())

    assert usable["relay"][0]
    assert usable["gateway key 1"] == usable["gateway key 2"]
    assert usable["aggregator"] == (True, "speaks version 1")
    assert one_left["gateway key 2"] == usable["gateway key 2"]
    assert one_left["gateway key 1"][0]
    assert "another one is in use" in one_left["gateway key 1"][1]
    assert not none_left["gateway key 2"][0]
    assert "aggregator" not in none_left
    assert counted == 0


def test_the_issuer_and_the_account(tmp_path: Path) -> None:
    file, store = (
        definitions(tmp_path, 'linkage = "token"\nanswers = 1\n'),
        f"sqlite:///{tmp_path}/issuer.db",
    )
    accounts = str(tmp_path / "account.key")
    assert run(["issuer", "keys", "--collections", str(file), "--store", store]) == 0
    assert run(["issuer", "account-key", accounts]) == 0
    key = read_account_key(Path(accounts))
    valid, expired = (sign_account(key, "me", datetime.now(UTC) + days) for days in (DAY, -DAY))
    flags = ["--collections", str(file), "--account-key", accounts, "--workers", "1"]
    program = ("veilcount_aggregator", "issuer")
    with Server(store, tmp_path, *flags, program=program) as issuer:
        look = {"collections": str(file), "issuer": issuer.url, "url": "http://127.0.0.1:9"}
        good, late, unasked = (found(each, **look) for each in (valid, expired, None))
        other = tmp_path / "other.toml"
        other.write_text(file.read_text().replace("epsilon = 1", "epsilon = 2"))
        unknown = found(valid, **look | {"collections": str(other)})

    assert good["issuer, theme"][0]
    assert good["account"] == (True, "the issuer knows it")
    assert not late["account"][0]
    assert unasked["account"][0]
    assert not unknown["issuer, theme"][0]
    assert "definitions file" in unknown["issuer, theme"][1]
