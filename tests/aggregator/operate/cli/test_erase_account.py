"""`veilcount issuer erase-account`: the account is named nowhere, and not twice in the store."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from veilcount_aggregator.store import open_store
from veilcount_issuer.issuer import open_publication
from veilcount_issuer.key_vault import StoreVault
from veilcount_issuer.ledger import SlotRequest
from veilcount_shared import load_collections

from ....issuer.issuer_fixtures import FILE, TODAY, set_up
from .conftest import Type


@pytest.fixture
def issuer(tmp_path: Path) -> tuple[str, str]:
    """The store and the definitions of an issuer that has issued to two accounts."""
    definitions, url = tmp_path / "tokens.toml", f"sqlite:///{tmp_path}/issuer.db"
    definitions.write_text(FILE, encoding="utf-8")
    with closing(open_store(url, make=True)) as store:
        vault = StoreVault(store)
        set_up(definitions, vault, TODAY)
        ledger = open_publication(store, vault).ledger
        theme = load_collections(definitions)["theme"]
        for account in ("alice", "ben"):
            ledger.record(account, theme, [SlotRequest(0, bytes(256))], 0)
    return url, str(definitions)


def test_an_account_is_erased_once(
    typed: Type, issuer: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    url, definitions = issuer
    options = ["--collections", definitions, "--store", url]
    first = typed("issuer", "erase-account", "alice", *options)
    again = typed("issuer", "erase-account", "alice", *options)
    other = typed("issuer", "erase-account", "ben", *options, "--json")

    assert (first.code, again.code, other.json) == (0, 0, {"erased": ["theme"]})
    assert "erased: theme" in first.out
    assert "no record of this account" in again.out
    assert "alice" not in first.out + first.err + again.out + again.err + caplog.text
